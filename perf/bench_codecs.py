"""What one operation of a codec takes, beside a library from PyPI that does the same.

Each pair reads or writes the same octets and looks at the same fields, so that a library that reads
late has to read. Rounds take turns and are counted by the thread's own CPU clock; a ratio is the
median of those of the rounds. The libraries are the test suite's: dpkt, aiortc, aioice, sipmessage,
Py3AMF.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from statistics import median

from options import Options
from results import Figures

Work = Callable[[], object]

ROUND_NS = 10_000_000  # of CPU time, about
ROUNDS, SMALL_ROUNDS = 40, 10
RTP = bytes.fromhex("80e0 1234 00003e80 0badcafe") + bytes(range(160))
REPORT = bytes.fromhex(
    "81c8000c 0badcafe e0000000 80000000 00003e80 00000010 00000a00"
    "deadbeef 01000002 00001234 00000005 12345678 00010000"
)
BINDING = bytes.fromhex(
    "0001 0014 2112a442 000102030405060708090a0b 0006 0009 616c6963653a626f62 000000 0025 0000"
)
INVITE = (
    b"INVITE sip:bob@example.test SIP/2.0\r\n"
    b"Via: SIP/2.0/UDP 192.0.2.7:5060;branch=z9hG4bKcodecs;rport\r\n"
    b"Max-Forwards: 70\r\nFrom: Alice <sip:alice@example.test>;tag=one\r\n"
    b"To: Bob <sip:bob@example.test>\r\nCall-ID: codecs@192.0.2.7\r\nCSeq: 1 INVITE\r\n"
    b"Contact: <sip:alice@192.0.2.7:5060>\r\nUser-Agent: bench\r\nContent-Length: 0\r\n\r\n"
)
ATTRIBUTES = {
    "audio 4000": ("96", "opus/48000/2", "useinbandfec=1"),
    "video 4002": ("98", "H264/90000", "packetization-mode=1"),
}
OFFER = (
    b"v=0\r\no=bench 7 7 IN IP4 192.0.2.7\r\ns=codecs\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n"
    + b"".join(
        f"m={place} RTP/AVP {kind}\r\na=rtpmap:{kind} {codec}\r\na=fmtp:{kind} {more}\r\n"
        f"a=ptime:20\r\na=sendrecv\r\n".encode()
        for place, (kind, codec, more) in ATTRIBUTES.items()
    )
)
STATUS = ["onStatus", 0.0, None, {"level": "status", "code": "NetStream.Play.Start", "n": 1.5}]


def rtp_reads() -> Iterator[tuple[str, Work, str, Work]]:
    """Packets: reading and writing."""
    from p2psip.rtp import fast
    from p2psip.rtp.packet import RtpPacket

    aiortc, foreign = import_module("aiortc.rtp").RtpPacket, import_module("dpkt.rtp").RTP
    ours, other, dpkt = RtpPacket.parse(RTP), aiortc.parse(RTP), foreign(RTP)
    assert (
        (ours.sequence, ours.ssrc) == (other.sequence_number, other.ssrc) == (dpkt.seq, dpkt.ssrc)
    )
    assert bytes(ours) == other.serialize() == bytes(dpkt) == RTP
    yield "RTP, read", partial(RtpPacket.parse, RTP), "aiortc", partial(aiortc.parse, RTP)
    yield "RTP, read", partial(RtpPacket.parse, RTP), "dpkt", partial(foreign, RTP)
    yield "RTP, media path", partial(fast.unpack, RTP), "aiortc", partial(aiortc.parse, RTP)
    yield "RTP, write", partial(bytes, ours), "aiortc", other.serialize
    yield "RTP, write", partial(bytes, ours), "dpkt", partial(bytes, dpkt)


def rtcp() -> Iterator[tuple[str, Work, str, Work]]:
    """A sender report with a block: reading and writing."""
    from p2psip.rtp.rtcp import compound, parse_compound

    aiortc = import_module("aiortc.rtp").RtcpPacket
    ours, other = parse_compound(REPORT), aiortc.parse(REPORT)
    assert compound(*ours) == b"".join(map(bytes, other)) == REPORT
    yield "RTCP, read", partial(parse_compound, REPORT), "aiortc", partial(aiortc.parse, REPORT)
    yield "RTCP, write", partial(compound, *ours), "aiortc", other[0].__bytes__


def stun() -> Iterator[tuple[str, Work, str, Work]]:
    """A binding request."""
    from p2psip.nat.stun import StunMessage

    aioice = import_module("aioice.stun").parse_message
    assert StunMessage.parse(BINDING).transaction_id == aioice(BINDING).transaction_id
    yield "STUN, read", partial(StunMessage.parse, BINDING), "aioice", partial(aioice, BINDING)


def sip() -> Iterator[tuple[str, Work, str, Work]]:
    """A request: reading its typed header fields, and writing it."""
    from p2psip.sip.message import parse_message

    foreign = import_module("sipmessage").Message.parse

    def read() -> object:
        message = parse_message(INVITE)
        return message.via, message.from_, message.to, message.cseq, message.contacts

    def read_other() -> object:
        message = foreign(INVITE)
        return (
            *(message.via[0], message.from_address, message.to_address, message.cseq),
            message.contact,
        )

    ours, other = parse_message(INVITE), foreign(INVITE)
    assert bytes(ours) == bytes(other) == INVITE
    assert read() and read_other()
    yield "SIP, read", read, "sipmessage", read_other
    yield "SIP, write", partial(bytes, ours), "sipmessage", partial(bytes, other)


def sdp() -> Iterator[tuple[str, Work, str, Work]]:
    """An offer of sound and pictures."""
    from p2psip.sdp.session import SessionDescription

    foreign = import_module("aiortc.sdp").SessionDescription.parse
    text = OFFER.decode()
    assert len(SessionDescription.parse(OFFER).media) == len(foreign(text).media) == 2
    yield "SDP, read", partial(SessionDescription.parse, OFFER), "aiortc", partial(foreign, text)


def amf() -> Iterator[tuple[str, Work, str, Work]]:
    """The arguments of onStatus, in both versions."""
    from rtmplite.amf import amf0, amf3

    pyamf = import_module("pyamf")
    for version, ours in ((0, amf0), (3, amf3)):
        data = ours.encode(*STATUS)
        found = list(pyamf.decode(data, encoding=version))
        assert [found[0], dict(found[3])] == [STATUS[0], STATUS[3]]
        assert ours.decode(pyamf.encode(*STATUS, encoding=version).getvalue())[3] == STATUS[3]

        def read(data: bytes = data, version: int = version) -> object:
            return list(pyamf.decode(data, encoding=version))

        def write(version: int = version) -> object:
            return pyamf.encode(*STATUS, encoding=version).getvalue()

        yield f"AMF{version}, read", partial(ours.decode, data), "Py3AMF", read
        yield f"AMF{version}, write", partial(ours.encode, *STATUS), "Py3AMF", write


KINDS = (rtp_reads, rtcp, stun, sip, sdp, amf)


def rows(options: Options) -> Iterator[Figures]:
    """A row for each operation and library; a library that is absent has none."""
    for kind in KINDS:
        try:
            works = list(kind())
        except ImportError as absent:
            print(f"left out: {kind.__name__}, {absent}")
            continue
        for operation, ours, name, other in works:
            yield compare(operation, ours, name, other, SMALL_ROUNDS if options.small else ROUNDS)


def compare(operation: str, ours: Work, name: str, other: Work, rounds: int) -> Figures:
    """The time of an operation, and of the library's; `ratio` below 1 is in our favour."""
    counts = [max(1, ROUND_NS // max(1, timed(work, 20) // 20)) for work in (ours, other)]
    pairs = [
        tuple(timed(work, count) / count for work, count in zip((ours, other), counts, strict=True))
        for _ in range(rounds)
    ]
    return row(operation, name, pairs)


def row(operation: str, name: str, pairs: Sequence[tuple[float, ...]]) -> Figures:
    """The row of these pairs of ns: the medians, and the median and range of the ratios."""
    ratios = sorted(ours / other for ours, other in pairs)
    mine, others = (median(column) / 1000 for column in zip(*pairs, strict=True))
    spread = {"from": ratios[len(ratios) // 10], "to": ratios[-1 - len(ratios) // 10]}
    figures = {"us": mine, "library": others, "ratio": median(ratios), **spread}
    return Figures(name, operation, len(pairs), figures)


def timed(work: Work, count: int) -> int:
    """The CPU time of so many operations, in ns."""
    began = time.thread_time_ns()
    for _ in range(count):
        work()
    return time.thread_time_ns() - began
