"""The command: where octets come from, what is printed, and the exit code."""

import io
import json
import os
import sys

import pytest
from support.lint.scene import A, B, Scene, datagrams

from rtclab.__main__ import main

EVENT = "0b8a0320"
RTP = "80e50007000000a00000cafe"


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


def explain(capsys, *words):
    """Run the command in this process: its exit code, its output and its errors."""
    code = main(["explain", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_digits_are_explained_as_text(capsys):
    code, out, err = explain(capsys, "--as", "telephone-event", EVENT)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("     0  0b 8a 03 20  ")
    assert lines[0].endswith("  -- RFC 4733 §2.5.1.5, p2psip.rtp.payload.dtmf.parse_events")
    assert "event = 11  (key #)" in lines[2]
    assert lines[3].split()[1:3] == ["1...", "...."]


def test_digits_are_explained_as_json(capsys):
    code, out, _ = explain(capsys, "--json", "--as", "telephone-event", "0b:8a 03\n20")
    tree = json.loads(out)
    assert code == 0
    [report] = tree["fields"]
    assert report["class"] == "p2psip.rtp.payload.dtmf.TelephoneEvent"
    assert report["fields"][1] == {
        **{"name": "end", "start": 1, "end": 2, "bits": [0, 1], "octets": "8a", "value": "1"}
    }


def test_what_is_wrong_is_told_at_its_place_and_by_the_exit_code(capsys):
    code, out, _ = explain(capsys, "--as", "telephone-event", EVENT + "0b")
    assert code == 1
    assert "^ error: telephone-event of 1 octets  -- RFC 4733 §2.3.3, p2psip." in out
    code, out, _ = explain(capsys, "--json", "--as", "rtp", "40" + RTP[2:])
    version = json.loads(out)["fields"][0]
    assert version["error"]["reason"] == "RTP version 1"
    assert version["error"]["function"] == "p2psip.rtp.packet.RtpPacket.parse"


def test_a_file_or_standard_input_may_have_octets_or_digits(capsys, tmp_path, monkeypatch):
    file = tmp_path / "octets"
    shown = []
    for content in (bytes.fromhex(RTP), RTP.encode(), f"0x{RTP}\n".encode()):
        file.write_bytes(content)
        shown.append(explain(capsys, str(file)))
        for words in ([], ["-"]):
            monkeypatch.setattr(sys, "stdin", Stdin(content))
            shown.append(explain(capsys, *words))
    assert shown == shown[:1] * 9
    assert shown[0][0] == 0 and "payload type = 101" in shown[0][1]


def test_a_format_is_named_by_an_option(capsys):
    _, out, _ = explain(capsys, "--rtpmap", "101 telephone-event/8000", RTP + EVENT)
    assert "telephone-event" in out and "key #" not in out.splitlines()[0]
    assert "(key #)" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing-here"], "nothing-here is no file, and no hexadecimal digits"),
        ([os.devnull], "there are no octets to explain"),
        (["."], "Is a directory"),
        (["--as", "morse", EVENT], "invalid choice: 'morse'"),
        (["--packets", "x", EVENT], "'x' is not FIRST-LAST"),
        (["--packets", "14-12", EVENT], "'14-12': packets are counted from 1 upwards"),
        (["--packets", "0", EVENT], "'0': packets are counted from 1 upwards"),
        (["--packets", "1", RTP], "--packets is for captures"),
        (["--rtpmap", "x", EVENT], "'x' is not 'TYPE ENCODING/RATE'"),
        (["--key", "x", EVENT], "'x' is not in hexadecimal digits"),
        (["--key", "00", EVENT], "a key has 16 or 32 octets, and not 1"),
        (["--jsn", EVENT], "there is no option --jsn; did you mean --json?"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, words, said):
    code, out, err = explain(capsys, *words)
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1


def test_octets_of_no_known_protocol(capsys):
    code, out, _ = explain(capsys, "00ff00ff")
    assert code == 1 and "no protocol that is known here" in out


def test_packets_of_a_capture_are_chosen(capsys, corpus):
    path = str(corpus / "pcap/rtp/dtmf_2833_1.pcap")
    _, out, _ = explain(capsys, path, "--packets", "2-3")
    assert [line.split()[9:11] for line in out.splitlines() if " packet " in line] == [
        *(["packet", "2"], ["packet", "3"]),
    ]
    _, out, _ = explain(capsys, path, "--packets", "4")
    assert out.count(" packet ") == 1


def test_packets_that_a_capture_lacks_are_a_mistake(capsys, tmp_path):
    path = tmp_path / "one.pcap"
    path.write_bytes(datagrams(Scene().udp(A, B, bytes.fromhex(RTP))))
    assert explain(capsys, str(path), "--packets", "1-9")[0] == 0
    code, out, err = explain(capsys, str(path), "--packets", "2-9")
    assert (code, out, err) == (2, "", "rtclab: the capture's last packet is number 1\n")


def test_a_reader_who_leaves_is_no_error(capsys, monkeypatch):
    """As in `rtclab explain FILE | head`: no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["explain", "--as", "amf0", "05" * 20_000]) == 0
    assert capsys.readouterr().err == ""


def test_an_output_without_letters_is_no_error(capsys, monkeypatch):
    """A terminal of ASCII has no section sign."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["explain", "--as", "telephone-event", EVENT]) == 0
        assert b"RFC 4733 \\xa72.3" in raw.getvalue()
