"""The referee takes SIP out of captures, WebSockets included, and judges what others recorded."""

import pytest
from support.corpus_lines import CORPUS
from support.lint.carried_cases import in_parts, web_call
from support.lint.scene import A, B, Scene, datagrams, streamed
from support.lint.sip_cases import request

from rtclab.__main__ import main
from rtclab.oracle.referee.trace import read

CAPTURES = sorted((CORPUS / "pcap" / "sip").glob("*.pcap*"))


@pytest.mark.parametrize("carry", [None, in_parts])
def test_messages_are_taken_out_of_websockets(carry, tmp_path):
    path = tmp_path / "web.pcap"
    path.write_bytes(streamed(web_call(carry)))
    heard = read(path.read_bytes()).heard
    assert [each.message.cseq.method for each in heard] == ["INVITE"] * 3 + ["ACK", "BYE", "BYE"]
    assert {each.transport for each in heard} == {"WS"}


@pytest.mark.parametrize("carry", [Scene.udp, Scene.tcp])
def test_messages_that_cannot_be_read_are_counted(carry, tmp_path, capsys):
    bad, good = (request("OPTIONS", 1, 1, to_tag="", cseq=f"{one} OPTIONS") for one in ("x", "2"))
    scene, path = Scene(), tmp_path / "bad.pcap"
    carry(
        scene, A, B, bad, good, b"This is no SIP at all, and long enough to be a message.\r\n\r\n"
    )
    path.write_bytes(streamed(scene) if carry is Scene.tcp else datagrams(scene))
    assert len(read(path.read_bytes()).heard) == 1
    main(["oracle", "referee", str(path)])
    last = capsys.readouterr().out.splitlines()[-1]
    said = "in 1 message; 1 message of SIP cannot be read; rtclab lint says why"
    assert last == f"no findings {said}"


@pytest.mark.skipif(not CAPTURES, reason="the corpus of recordings is absent")
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures_are_judged_without_a_crash(path, capsys):
    """Some have no SIP that can be read, which is exit code 2."""
    code = main(["oracle", "referee", str(path)])
    out, err = capsys.readouterr()
    assert code in (0, 1, 2) and (out + err).count("\n") >= 1


@pytest.mark.skipif(not CAPTURES, reason="the corpus of recordings is absent")
def test_sipp_sends_its_ack_and_bye_to_another_place_than_the_contact(capsys):
    """Its built-in scenario takes the address that it called."""
    path = CORPUS / "pcap" / "sip" / "sipp_call_g711a_dtmf.pcap"
    assert main(["oracle", "referee", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (
        "audio 1 is answered with 0; the offer has " in lines[0]
    )  # it answers with what the scenario has
    assert [line.split()[1] for line in lines[1:-1]] == ["ACK", "BYE"]
    assert all("not to the remote target sip:127.0.0.1:5067" in line for line in lines[1:-1])
