"""The command as its users run it, and the captures of other programs."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from support.corpus_lines import CORPUS
from support.lint.frames import TCP, ip, pcap, tcp
from support.lint.media_cases import rtp, sound, stream
from support.lint.scene import A, B, Scene, datagrams
from support.lint.sip_cases import PARTS, call, request, response

from rtclab.__main__ import main
from rtclab.explain.command import KeyFile
from rtclab.explain.fields.context import RtmfpKey
from rtclab.lint.command import lint
from rtclab.lint.findings.rules import RULES
from rtclab.lint.packets import read_capture
from siprtmp.edge.pcap_file import CapturedConnection, PcapFile

CAPTURES = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("**/*.pcap*")) or [None]


def place(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


@pytest.fixture
def bad(tmp_path):
    """A call whose BYE has the CSeq of its INVITE."""
    path = tmp_path / "bad.pcap"
    path.write_bytes(datagrams(call(bye=request("BYE", 3, 1), bye_ok=response(200, 3, "1 BYE"))))
    return path


@pytest.mark.parametrize("name", CAPTURES, ids=str)
def test_a_capture_of_others_is_judged(corpus, name):
    report = lint(read_capture((corpus / name).read_bytes()))
    assert "\n".join(report.lines(ladder=True)) and json.loads(report.json())


@pytest.mark.parametrize(
    "name", ["connect_play_nobody", "publish_play_h264_speex", "publish_play_nohmac_nosseq"]
)
def test_sessions_of_others_are_read_with_their_keys(corpus, name):
    """Those of the protocol's author, in which both ends choose the same session IDs."""
    path = corpus / "rtmfp" / f"{name}.pcap"
    sessions = json.loads(path.with_suffix(".keys.json").read_text())
    keys = [
        RtmfpKey(bytes.fromhex(each[f"{way}_key"])[:16], bytes.fromhex(each[f"{way}_hmac_key"]))
        for each in sessions
        for way in ("client_to_server", "server_to_client")
    ]
    report = lint(read_capture(path.read_bytes()), KeyFile(tuple(keys)))
    assert report.findings == []
    assert any("SessionClose" in row.label for each in report.diagrams for row in each.arrows)


def test_a_finding_is_a_line_with_its_packet_time_sender_and_section(bad, capsys):
    assert main(["lint", str(bad)]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    told = "BYE has CSeq 1 after 1"
    assert first == f"#5  0.400000  {A}  sip-cseq: {told}  RFC 3261 §12.2.1.1"
    assert last == f"{bad}: 6 packets, 0.5 s: 1 finding"


def test_nothing_found_is_said_too(tmp_path, capsys):
    path = tmp_path / "good.pcap"
    path.write_bytes(datagrams(call()))
    assert main(["lint", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 6 packets, 0.5 s: no findings\n"


def test_what_recurs_in_a_stream_is_counted(tmp_path, capsys):
    path = tmp_path / "twice.pcap"
    path.write_bytes(datagrams(stream(*sound(6), rtp(6), rtp(6))))
    assert main(["lint", str(path)]) == 1
    [line] = [each for each in capsys.readouterr().out.splitlines() if "duplicate" in each]
    assert "rtp-duplicate: sequence number 6 again, to " in line and " (2 times)  RFC" in line
    path.write_bytes(datagrams(Scene().udp(A, B, b"?")))
    main(["lint", str(path)])
    assert capsys.readouterr().out.endswith(": 1 packet, 0.0 s: no findings\n")


def test_a_ladder_has_every_message_and_the_finding(bad, capsys):
    main(["lint", str(bad), "--ladder"])
    lines = capsys.readouterr().out.splitlines()
    rows = lines[lines.index("call 1@a") + 1 :]
    assert rows[0].split() == [A, B]
    assert "INVITE (SDP)" in rows[1] and rows[1].rstrip().endswith("#1") and ">|" in rows[1]
    assert "180 Text" in rows[2] and "|<" in rows[2]
    assert "BYE" in rows[5] and rows[5].endswith("#5  ! sip-cseq")


def test_json_and_svg_are_for_programs(bad, tmp_path):
    words = ["--json", str(tmp_path / "a.json"), "--svg", str(tmp_path / "a.svg")]
    assert main(["lint", str(bad), *words]) == 1
    report = json.loads((tmp_path / "a.json").read_text())
    [finding] = report["findings"]
    assert (finding["rule"], finding["packet"], finding["who"]) == ("sip-cseq", 5, A)
    assert [each["label"] for each in report["ladders"][0]["arrows"]][-1] == "200 Text"
    texts = [each.text for each in ElementTree.parse(tmp_path / "a.svg").iter() if each.text]
    assert {A, B, "BYE", "sip-cseq"} <= set(texts)


def test_standard_input_and_output_are_a_minus(bad, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in ([], ["--json", "-"], ["--svg", "-"]):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(bad.read_bytes())))
        assert main(["lint", "-", *words]) == 1
    text, rest = capsys.readouterr().out.split("{\n", 1)
    assert text.splitlines()[-1] == "standard input: 6 packets, 0.5 s: 1 finding"
    report, picture = rest.split("\n}\n")
    assert json.loads("{" + report + "}")["file"] == "standard input"
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert not Path("-").exists()


def test_a_second_file_is_a_mistake(bad, capsys):
    assert main(["lint", str(bad), str(bad)]) == 2
    assert capsys.readouterr().err == "rtclab: lint takes one FILE\n"


def test_a_capture_that_is_cut_off_is_judged_up_to_there(bad, capsys):
    bad.write_bytes(bad.read_bytes()[:-40])
    assert main(["lint", str(bad)]) == 2
    said = capsys.readouterr()
    assert "sip-cseq" in said.out and "5 packets" in said.out
    assert said.err == f"rtclab: {bad}: the capture ends or breaks behind packet 5\n"


@pytest.mark.parametrize("data", [b"", b"hello, world", b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a12"])
def test_what_is_no_capture_is_one_line(tmp_path, data, capsys):
    path = tmp_path / "bad.pcap"
    path.write_bytes(data)
    assert main(["lint", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"rtclab: {path}: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["none.pcap"], ["x", "--json"], ["x", "--rtmfp-keys", "y"]])
def test_a_mistake_is_one_line(words, capsys):
    assert main(["lint", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_of_keys_has_a_line_for_each(tmp_path, bad, capsys):
    keys = tmp_path / "keys"
    keys.write_text(f"# of yesterday\n{'00' * 16}\n\n{'11' * 32}:{'22' * 32}  # with an HMAC\n")
    assert main(["lint", str(bad), "--rtmfp-keys", str(keys)]) == 1
    keys.write_text("0011\n")
    assert main(["lint", str(bad), "--rtmfp-keys", str(keys)]) == 2
    assert "a key has 16 or 32 octets" in capsys.readouterr().err


def test_streams_are_put_together_from_any_order():
    """Segments that come twice, out of order, and over a wrap of the numbers."""
    file = io.BytesIO()
    pcap, tale = PcapFile(file), CapturedConnection(place(A), place(B))
    data = PARTS["invite"][1]().replace(b"UDP", b"TCP")
    for at in range(0, len(data), 100):
        pcap.piece(tale, tale.near, data[at : at + 100], 1.0)
    pcap.end(tale, tale.near, 1.0)
    packets = read_capture(file.getvalue()).packets
    order = [*packets[:3], *reversed(packets[3:-1]), *packets[3:-1], packets[-1]]
    scene = Scene()
    scene.packets = order
    labels = [arrow.label for each in scene.judged().ladder.diagrams for arrow in each.arrows]
    assert labels == ["INVITE (SDP)"]


@pytest.mark.parametrize(
    ("data", "shown"),
    [(b"hello", '"hello"'), (b"\r\nPING\r\n\r\n", '"PING"'), (b"\x80\xff", "2 octets")],
)
def test_what_is_no_message_is_one_finding(tmp_path, capsys, data, shown):
    """Some phones keep a mapping open by a word, every few seconds."""
    path = tmp_path / "kept.pcap"
    path.write_bytes(datagrams(call().udp(A, B, data, data, step=5.0)))
    assert main(["lint", str(path)]) == 1
    found, last = capsys.readouterr().out.splitlines()
    what = f"sip-syntax: no message, but {shown} (2 times)  RFC 3261 §7"
    assert found == f"#7  0.600000  {A}  {what}" and last.endswith(": 1 finding")


def test_data_may_come_with_the_syn_and_again_with_more():
    """As RFC 7413 has it; what is sent again may have more than before."""
    data = request("OPTIONS", 1, 1, to_tag="", via="TCP 192.0.2.1")
    frames = [tcp(data[:9], 2**32 - 5, 2), tcp(data[40:50], 36), tcp(data[40:], 36)]
    frames.append(tcp(data[9:40], 5))
    assert drawn(*frames)[0] == ["OPTIONS"]


def drawn(*frames):
    """What is drawn of segments, and the notes."""
    scene = Scene()
    scene.packets = read_capture(pcap(*(ip(each, TCP) for each in frames))).packets
    judge = scene.judged()
    return [row.label for each in judge.ladder.diagrams for row in each.arrows], judge.notes


NO_PROTOCOL = {"a TCP connection speaks no protocol that is judged": 1}


def test_a_first_line_may_come_in_pieces():
    data = request("OPTIONS", 1, 1, to_tag="", via="TCP 192.0.2.1")
    pieces = [tcp(data[at : at + 1], 5 + at) for at in range(len(data))]
    assert drawn(tcp(b"", 4, 2), *pieces) == (["OPTIONS"], {})
    assert drawn(tcp(b"", 4, 2), *pieces[:6]) == ([], NO_PROTOCOL)
    assert drawn(tcp(b"", 4, 2), tcp(b"220 mail\r\n", 5)) == ([], NO_PROTOCOL)


def test_a_connection_whose_end_is_not_captured_is_over_by_the_next_one():
    one, other = (request("OPTIONS", each, each, to_tag="", via="TCP 192.0.2.1") for each in (1, 2))
    frames = [tcp(b"", 4, 2), tcp(one[:50], 5), tcp(b"", 70_000, 2), tcp(other, 70_001)]
    assert drawn(*frames)[0] == ["OPTIONS"]
    again = tcp(b"", 4, 2)
    assert drawn(again, tcp(one, 5), again, tcp(one, 5)) == (["OPTIONS"], {})


def test_the_guide_lists_every_rule():
    page = Path(__file__).parents[3] / "docs/3-howto/lint.md"
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| `")]
    listed = {row[1].strip().strip("`"): (row[2].strip(), row[3].strip()) for row in rows}
    assert listed == {name: (rule.summary, rule.citation) for name, rule in RULES.items()}
