"""Strategies for RTP, RTCP and payloads, for tests of any implementation.

Own design: the oracle's grammar of RFC 3550 and its payload formats.  Values are made with
the readable codecs, so `.map(bytes)` gives datagrams.
"""

from dataclasses import dataclass, replace
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.rtp.extended_report import ExtendedReport, OtherBlock, VoipMetrics
from p2psip.rtp.feedback import Feedback, RateLimit, Tmmb
from p2psip.rtp.packet import Extension, RtpPacket
from p2psip.rtp.payload import speex
from p2psip.rtp.payload.dtmf import TelephoneEvent
from p2psip.rtp.rtcp import (
    App,
    Bye,
    Fir,
    Nack,
    OtherFeedback,
    Pli,
    ReceiverReport,
    ReportBlock,
    RtcpPacket,
    SdesChunk,
    SenderReport,
    SourceDescription,
    UnknownPacket,
)
from p2psip.rtp.transport_feedback import Remb, TransportFeedback, is_ceiling

sequences: SearchStrategy[int] = st.integers(0, 0xFFFF)
words: SearchStrategy[int] = st.integers(0, 0xFFFFFFFF)
octets: SearchStrategy[int] = st.integers(0, 0xFF)
_ASCII = st.characters(min_codepoint=0x20, max_codepoint=0x7E)


_SHORT = st.text(max_size=20).map(str.encode)
_TEXT = _SHORT | st.integers(0, 255).map(lambda size: b"x" * size)


def whole_words(max_words: int) -> SearchStrategy[bytes]:
    """Octets in multiples of four: RFC 3550 §5.3.1."""
    return st.integers(0, max_words).flatmap(lambda n: st.binary(min_size=4 * n, max_size=4 * n))


def rtp_packets() -> SearchStrategy[RtpPacket]:
    """Any packet that RFC 3550 §5.1 allows, mostly without the rarer fields."""
    return st.builds(
        RtpPacket,
        st.integers(0, 0x7F),
        sequences,
        words,
        words,
        st.binary(max_size=64),
        marker=st.booleans(),
        csrcs=st.lists(words, max_size=15).map(tuple) | st.just(()),
        extension=st.none() | st.builds(Extension, sequences, whole_words(4)),
        padding=st.just(0) | octets,
    )


def report_blocks() -> SearchStrategy[ReportBlock]:
    """One report block: RFC 3550 §6.4.1."""
    lost = st.integers(-0x800000, 0x7FFFFF)
    return st.builds(ReportBlock, words, octets, lost, words, words, words, words)


def sender_reports() -> SearchStrategy[SenderReport]:
    """A sender report with up to 31 blocks: RFC 3550 §6.4.1."""
    ntp = st.integers(0, (1 << 64) - 1)
    return st.builds(SenderReport, words, ntp, words, words, words, _blocks(), whole_words(2))


def receiver_reports() -> SearchStrategy[ReceiverReport]:
    """A receiver report with up to 31 blocks: RFC 3550 §6.4.2."""
    return st.builds(ReceiverReport, words, _blocks(), whole_words(2))


def _blocks() -> SearchStrategy[tuple[ReportBlock, ...]]:
    return st.lists(report_blocks(), max_size=3).map(tuple) | st.lists(
        report_blocks(), min_size=31, max_size=31
    ).map(tuple)


def source_descriptions() -> SearchStrategy[SourceDescription]:
    """Chunks with items of known and unknown types: RFC 3550 §6.5."""
    private = st.tuples(_SHORT, _SHORT).map(lambda two: bytes((len(two[0]),)) + two[0] + two[1])
    plain = st.tuples(st.integers(1, 255).filter(lambda kind: kind != 8), _TEXT)
    # A private item begins with the length of its prefix: RFC 3550 §6.5.
    items = st.lists(plain | st.tuples(st.just(8), private), max_size=4).map(tuple)
    chunks = st.lists(st.builds(SdesChunk, words, items), max_size=4).map(tuple)
    return st.builds(SourceDescription, chunks)


def byes() -> SearchStrategy[Bye]:
    """Any number of sources leaving, with a reason or not: RFC 3550 §6.6."""
    return st.builds(Bye, st.lists(words, max_size=31).map(tuple), _TEXT)


def rate_limits() -> SearchStrategy[Tmmb]:
    """Requests for lower bit rates, and notices: RFC 5104 §4.2."""
    limit = st.builds(
        RateLimit, words, st.integers(0, 63), st.integers(0, 0x1FFFF), st.integers(0, 511)
    )
    requests = st.builds(Tmmb, words, st.lists(limit, min_size=1, max_size=3).map(tuple))
    notices = st.builds(Tmmb, words, st.lists(limit, max_size=3).map(tuple), st.just(True))
    return requests | notices


def voip_metrics() -> SearchStrategy[VoipMetrics]:
    """How a voice arrives, known or unknown: RFC 3611 §4.7."""
    level = st.none() | st.integers(-128, 126)
    echo = st.none() | st.integers(0, 126)
    rating, score = st.none() | st.integers(0, 100), st.none() | st.integers(10, 50)
    return st.builds(
        VoipMetrics,
        *(words, octets, octets, octets, octets),
        *(sequences, sequences, sequences, sequences),
        *(level, level, echo, octets, rating, rating, score, score),
        *(octets, sequences, sequences, sequences),
    )


def extended_reports() -> SearchStrategy[ExtendedReport]:
    """Reports with VoIP metrics, and blocks of known lengths or unknown types: RFC 3611 §2, §3."""
    reference = st.builds(OtherBlock, st.just(4), st.just(0), st.binary(min_size=8, max_size=8))
    delays = st.builds(OtherBlock, st.just(5), st.just(0), st.binary(min_size=12, max_size=12))
    unknown = st.builds(OtherBlock, st.integers(64, 254), octets, whole_words(3))
    blocks = st.lists(voip_metrics() | reference | delays | unknown, max_size=3).map(tuple)
    return st.builds(ExtendedReport, words, blocks)


def transport_feedbacks() -> SearchStrategy[TransportFeedback]:
    """Times of arrival with runs, gaps and packets out of order: Transport-wide CC 01 §3.1."""
    delta = st.none() | st.integers(0, 255) | st.integers(-0x8000, 0x7FFF)
    runs = st.tuples(delta, st.integers(1, 20)).map(lambda run: (run[0],) * run[1])
    deltas = st.lists(runs, min_size=1, max_size=8).map(lambda all_: sum(all_, ()))
    reference = st.integers(-0x800000, 0x7FFFFF)
    return st.builds(TransportFeedback, words, words, sequences, reference, octets, deltas)


def ceilings() -> SearchStrategy[Remb]:
    """The most that a receiver wants: Field §"Ceilings of a receiver"."""
    ssrcs = st.lists(words, max_size=4).map(tuple)
    return st.builds(Remb, words, st.integers(0, 63), st.integers(0, 0x3FFFF), ssrcs)


def repeats() -> SearchStrategy[tuple[RtpPacket, RtpPacket]]:
    """A packet and its repeat by RTX: RFC 4588 §4."""

    return st.builds(_repeated, rtp_packets(), words, sequences)


def _repeated(original: RtpPacket, ssrc: int, sequence: int) -> tuple[RtpPacket, RtpPacket]:
    payload = original.sequence.to_bytes(2, "big") + original.payload
    again = replace(original, payload=payload, ssrc=ssrc, sequence=sequence, padding=0)
    return original, replace(again, payload_type=97)


def feedbacks() -> SearchStrategy[Feedback]:
    """Requests of picture receivers: RFC 4585 §6.1, RFC 5104 §4.2 and §4.3.1."""
    fci = whole_words(4)
    requests = st.lists(st.tuples(words, octets), min_size=1, max_size=4).map(tuple)
    others = st.builds(OtherFeedback, st.just(206), st.just(15), words, words, fci) | st.builds(
        OtherFeedback, st.just(205), st.integers(16, 30), words, words, fci
    )
    return (
        st.builds(Nack, words, words, fci.filter(bool))
        | st.builds(Pli, words, words)
        | st.builds(Fir, words, requests)
        | rate_limits()
        | transport_feedbacks()
        | ceilings()
        | others.filter(lambda each: not is_ceiling(bytes(8) + each.fci))
    )


def rtcp_packets() -> SearchStrategy[RtcpPacket]:
    """Any packet of a compound: RFC 3550 §6.1.  The name of an application is ASCII: §6.7."""
    name = st.text(_ASCII, min_size=4, max_size=4).map(lambda text: text.encode("ascii"))
    return st.one_of(
        sender_reports(),
        receiver_reports(),
        source_descriptions(),
        byes(),
        st.builds(App, st.integers(0, 31), words, name, whole_words(4)),
        feedbacks(),
        extended_reports(),
        st.builds(UnknownPacket, st.integers(213, 223), st.integers(0, 31), whole_words(4)),
    )


def compounds() -> SearchStrategy[list[RtcpPacket]]:
    """The packets of one datagram, a report first: RFC 3550 §6.1."""
    first = sender_reports() | receiver_reports()
    return st.builds(_prepend, first, st.lists(rtcp_packets(), max_size=4))


def _prepend(first: RtcpPacket, rest: list[RtcpPacket]) -> list[RtcpPacket]:
    return [first, *rest]


def telephone_events() -> SearchStrategy[TelephoneEvent]:
    """One event report, of a key or of anything else: RFC 4733 §2.3."""
    event = st.integers(0, 15) | octets
    return st.builds(TelephoneEvent, event, sequences, st.booleans(), st.integers(0, 63))


@dataclass(frozen=True, slots=True)
class SpeexPayload:
    """A payload, and the frames that splitting it gives, whole and narrow: RFC 5574 §3.3."""

    payload: bytes
    frames: list[bytes]
    narrow: list[bytes]


@st.composite
def speex_payloads(draw: DrawFn, max_frames: int = 4) -> SpeexPayload:
    """One to `max_frames` frames with any modes, in-band requests and padding: RFC 5574 §3.3."""
    whole, narrow = [], []
    for _ in range(draw(st.integers(1, max_frames))):
        cut = "".join(draw(_SPEEX_REQUESTS)) + draw(_SPEEX_NARROWBAND)
        narrow.append(cut)
        whole.append(cut + "".join(draw(_SPEEX_LAYERS)))
    padded = [_pad(bits) for bits in whole]
    return SpeexPayload(_pad("".join(whole)), padded, [_pad(bits) for bits in narrow])


def _bits(count: int) -> SearchStrategy[str]:
    """Write `count` random bits, as text."""
    return st.integers(0, (1 << count) - 1).map(lambda n: f"{n:0{count}b}" if count else "")


def _behind(head: str, count: int) -> SearchStrategy[str]:
    """Write `count` random bits after those of a head."""
    return _bits(count).map(head.__add__)


_SPEEX_NARROWBAND: Final = st.one_of(
    [_behind(f"0{mode:04b}", bits - 5) for mode, bits in speex.NARROWBAND_BITS.items()]
)
_SPEEX_LAYERS: Final = st.lists(
    st.one_of([_behind(f"1{mode:03b}", bits - 4) for mode, bits in speex.LAYER_BITS.items()]),
    max_size=speex.MAX_LAYERS,
)
# A message to the decoder: a code, and as many bits as the code says.
_SPEEX_REQUESTS: Final = st.lists(
    st.one_of(
        [
            _behind(f"01110{code:04b}", bits)
            for code, bits in enumerate([1, 1, *[4] * 6, 8, 8, 16, 16, 32, 32, 64, 64])
        ]
    ),
    max_size=2,
)


def _pad(bits: str) -> bytes:
    """Fill the last octet with a 0 and then ones: RFC 5574 §3.3."""
    missing = -len(bits) % 8
    bits += "01111111"[:missing]
    return int(bits, 2).to_bytes(len(bits) // 8, "big")
