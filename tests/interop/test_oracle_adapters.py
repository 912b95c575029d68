"""The oracle's adapters in five languages agree with it, those of libraries show their errors.

Own design: a compiler is a peer like any other.  Debian's take 2 s; Go 1.20 and newer compile their
library first, once on each machine, which takes some 10 s.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from support.oracle import WANTED
from support.peers.process import require

from rtclab.oracle import catalogue
from rtclab.oracle.codec import KINDS, REFUSALS
from rtclab.oracle.compare import SECONDS, Comparison
from rtclab.oracle.neutral import difference
from rtclab.oracle.program import Program

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "oracle"
PATIENCE = 60.0  # s

pytestmark = pytest.mark.interop


def compiled(tmp_path, *words):
    subprocess.run([*words], cwd=tmp_path, check=True, capture_output=True)
    return [str(tmp_path / "rtp")]


COMMANDS = {
    "python": lambda tmp_path: [sys.executable, str(FOLDER / "rtp.py")],
    "javascript": lambda tmp_path: [require("node", "nodejs"), str(FOLDER / "rtp.js")],
    "c": lambda tmp_path: compiled(
        tmp_path, require("gcc", "gcc"), "-Wall", "-Werror", "-o", "rtp", str(FOLDER / "rtp.c")
    ),
    "go": lambda tmp_path: compiled(
        tmp_path, require("go", "golang-go"), "build", "-o", "rtp", str(FOLDER / "rtp.go")
    ),
    "rust": lambda tmp_path: compiled(
        tmp_path, require("rustc", "rustc"), "-o", "rtp", str(FOLDER / "rtp.rs")
    ),
}


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("language", COMMANDS)
def test_a_foreign_adapter_of_less_than_30_lines_agrees(language, tmp_path):
    codec, clock = catalogue.find("rtp"), count(step=SECONDS / 50).__next__
    with Program(COMMANDS[language](tmp_path), PATIENCE) as program:
        comparison = Comparison(codec, program.ask, clock)
        cases = max(15, WANTED // 10)
        report = comparison.run(catalogue.cases_of(codec), KINDS, cases, seed=5)
    assert report.findings == [] and report.cases and not report.skipped
    assert not report.members.missing | report.members.unknown


def test_every_adapter_has_less_than_30_lines():
    adapters = list(FOLDER.glob("rtp.*"))
    assert len(adapters) == len(COMMANDS)
    assert all(len(path.read_text().splitlines()) < 30 for path in adapters)


RECEIVER = "80c9000100000000"  # a report without blocks, which a compound begins with
TWO_CHUNKS = "82ca0005" + "00000000" + "010322c3b0000000" + "00000000" + "04000000"


def request(*lines, via="a.com;branch=z9hG4bK1", sender="<sip:a@b.com>;tag=1"):
    """A request with these headers, in hexadecimal digits."""
    head = [f"OPTIONS sip:b@b.com SIP/2.0\r\nVia: SIP/2.0/UDP {via}\r\nFrom: {sender}"]
    head += ["To: <sip:b@b.com>", "Call-ID: 1", "CSeq: 1 OPTIONS", *lines, "Content-Length: 0"]
    return "\r\n".join([*head, "", ""]).encode().hex()


def session(*lines):
    """A session description with these lines at its end, in hexadecimal digits."""
    head = ["v=0", "o=- 0 0 IN IP4 1.0.0.0", "s=-", "t=0 0"]
    return "\r\n".join([*head, *lines, ""]).encode().hex()


KNOWN = [
    # the adapter, its codec, octets that it reads wrongly, and a part of its answer
    ("dpkt_readers", "rtp", "a0000000000000000000000001", '"payload": "01"'),
    ("dpkt_readers", "rtp", "810000000000000000000000", '"csrcs": []'),
    ("dpkt_readers", "rtp", "900000000000000000000000bede0000", '"payload": "bede0000"'),
    ("dpkt_readers", "stun", "000100002112a443000000000000000000000000", '"attributes": []'),
    ("dpkt_readers", "stun", "000100042112a442000000000000000000000000", '"attributes": []'),
    ("py3amf_reader", "amf0", "0a00000001", "value []"),
    ("py3amf_reader", "amf0", "11", "value []"),
    ("py3amf_reader", "amf0", "0300016109", '"members": []'),
    ("py3amf_reader", "amf0", "0f00000000", "error ParseError"),
    ("pyav_reader", "h264-sps", "67860000f3d820", '"width": 48'),
    ("aiortc_codecs", "rtcp", RECEIVER + TWO_CHUNKS, "error ValueError"),
    ("aiortc_codecs", "rtcp", "80c900020000000000000000", "error ValueError"),
    ("aiortc_codecs", "rtcp", "a0cb00020000000000000004" + RECEIVER, "value"),
    ("aiortc_codecs", "sdp", session("m=audio 5004/2 RTP/AVP 0"), "error AssertionError"),
    (
        "aiortc_codecs",
        "sdp",
        session("m=audio 5004 RTP/AVP 18", "a=fmtp:18 annexb=no"),
        "error StopIteration",
    ),
    (
        "sipmessage_reader",
        "sip",
        request('Contact: "A" <sip:a@x.com>, "B" <sip:b@x.com>'),
        r'"display": "A\" <sip:a@x.com>, \"B"',
    ),
    ("sipmessage_reader", "sip", request(sender="<sip:a@b.com>;tag=a%41"), '[["tag", "aA"]]'),
    ("sipmessage_reader", "sip", request("Subject: a", " b"), "error ValueError"),
    ("sipmessage_reader", "sip", request("Contact : <sip:a@b.com>"), '"contact": []'),
    ("sipmessage_reader", "sip", request(via="pc33"), "error ValueError"),
    ("sipmessage_reader", "sip", request(via="a.com;received=::1"), "error ValueError"),
    ("sipmessage_reader", "sip", request(via='a.com;x="a;b"'), "null]]"),
    ("sipmessage_reader", "sip", request(sender=r'"\a" <sip:a@b.com>'), r'"display": "\\a"'),
    ("sipmessage_reader", "sip", request("Contact: *"), "error ValueError"),
    ("sipmessage_reader", "sip", request() + "61", '"body": "61"'),
    ("sipmessage_reader", "sip", "0d0a" + request(), "error ValueError"),
    ("tshark_reader", "rtp", "900000000000000000000000bede0001", "value"),
    ("tshark_reader", "sip", request().replace(b"Via:".hex(), b"Via :".hex()), '"via": []'),
    ("tshark_reader", "sip", "0d0a" + request(), "error it is no sip"),
]
NEEDS = {"aiortc_codecs": "aiortc", "sipmessage_reader": "sipmessage"}


def command_of(adapter, name):
    """How an adapter is run; skips where its library or program is absent, and fails in CI."""
    library = NEEDS.get(adapter, "json")
    if find_spec(library) is None:
        missing = f"{library} is not installed: pip install .[test]"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    if adapter == "tshark_reader":
        require("tshark", "tshark")
    return [sys.executable, str(FOLDER / f"{adapter}.py"), name]


@pytest.mark.parametrize(
    ("adapter", "name"),
    [
        ("aiortc_codecs", "rtp"),
        ("pyav_reader", "h264-sps"),
        ("sipmessage_reader", "sip"),
        ("tshark_reader", "rtp"),
        ("tshark_reader", "stun"),
    ],
)
def test_a_library_reads_what_is_plain(adapter, name):
    """So that an error below is one of the input, and not of the adapter."""
    plain = {
        "rtp": "b18000070000000000000000" + "00000009" + "bede000110aa0000" + "61620002",
        "h264-sps": "67420000fb04",
        "sip": request(),
        "stun": "0101000c2112a442000000000000000000000001002000080001a147e112a643",
    }[name]
    codec = catalogue.find(name)
    with Program(command_of(adapter, name), PATIENCE) as program:
        said = program.ask(f"decode {plain}")
    assert said.word == "value"
    assert difference(codec.to_neutral(codec.decode(bytes.fromhex(plain))), said.content) is None


@pytest.mark.parametrize(("adapter", "name", "octets", "answer"), KNOWN)
def test_what_others_read_wrongly_is_found(adapter, name, octets, answer):
    """`docs/3-howto/use-as-oracle.md` has these."""
    codec = catalogue.find(name)
    with Program(command_of(adapter, name), PATIENCE) as program:
        said = program.ask(f"decode {octets}")
    assert answer in str(said)
    try:
        assert difference(codec.to_neutral(codec.decode(bytes.fromhex(octets))), said.content)
    except REFUSALS:
        assert said.word == "value"
