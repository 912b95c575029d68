"""RTP, RTCP and telephone events that every reader must refuse, one fault at a time.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
The clauses are of RFC 3550 §5.1 and §6, RFC 4585 §6.1, RFC 5104 §4.2.1,
RFC 3611 §3 and RFC 4733 §2.3.
"""

from struct import pack
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.rtp.rtcp import ReceiverReport
from p2psip.strategies.faults import Drawn, MediaFault, Octets, broken
from p2psip.strategies.rtp import rtp_packets, whole_words, words


def broken_rtp() -> SearchStrategy[Drawn]:
    """Datagrams that are no RTP packet: RFC 3550 §5.1, §5.3.1 and §A.1."""
    return broken(RTP_FAULTS)


def broken_compounds() -> SearchStrategy[Drawn]:
    """Datagrams whose RTCP packets are not framed as they must be: RFC 3550 §6.1 and §A.2."""
    return broken(COMPOUND_FAULTS)


def broken_rtcp() -> SearchStrategy[Drawn]:
    """Datagrams with an RTCP packet shorter than its counts announce: RFC 3550 §6.4 to §6.7."""
    return broken(RTCP_FAULTS)


def broken_feedback() -> SearchStrategy[Drawn]:
    """Datagrams with feedback or an extended report that is cut, or of nothing.

    RFC 4585 §6.1 to §6.3, RFC 5104 §4.2.1 and §4.3.1, RFC 3611 §2 and §3.
    """
    return broken(FEEDBACK_FAULTS)


def broken_events() -> SearchStrategy[Drawn]:
    """Payloads that are no telephone events: RFC 4733 §2.3."""
    return broken(EVENT_FAULTS)


def _cut(whole: Octets, least: int = 0) -> Octets:
    return whole.flatmap(
        lambda data: st.integers(least, len(data) - 1).map(lambda size: data[:size])
    )


def _joined(*parts: Octets) -> Octets:
    return st.tuples(*parts).map(b"".join)


def _exactly(size: int) -> Octets:
    return st.binary(min_size=size, max_size=size)


def _header(bits: int, counts: st.SearchStrategy[int]) -> Octets:
    """The fixed header with version 2, and these bits of its first octet: RFC 3550 §5.1."""
    return _joined(counts.map(lambda count: bytes((0x80 | bits | count,))), _exactly(11))


_NO_CSRC: Final = st.just(0)
_VERSIONS: Final = st.sampled_from([0x00, 0x40, 0xC0])


def _other_version(data: bytes, version: int) -> bytes:
    return bytes((data[0] & 0x3F | version,)) + data[1:]


RTP_FAULTS: Final = (
    MediaFault("header cut", "RFC 3550 §5.1", _cut(_header(0, st.integers(0, 15)))),
    MediaFault(
        "another version",
        "RFC 3550 §5.1",
        st.builds(_other_version, rtp_packets().map(bytes), _VERSIONS),
    ),
    MediaFault(
        "sources cut",
        "RFC 3550 §5.1",
        st.integers(1, 15).flatmap(
            lambda count: _joined(_header(0, st.just(count)), _cut(_exactly(4 * count)))
        ),
    ),
    MediaFault(
        "extension header cut",
        "RFC 3550 §5.3.1",
        _joined(_header(0x10, _NO_CSRC), _cut(_exactly(4))),
    ),
    MediaFault(
        "extension cut",
        "RFC 3550 §5.3.1",
        st.integers(1, 0xFFFF).flatmap(
            lambda count: _joined(
                _header(0x10, _NO_CSRC),
                st.just(pack("!HH", 0xBEDE, count)),
                st.binary(max_size=min(4 * count - 1, 20)),
            )
        ),
    ),
    MediaFault(
        "padding of 0",
        "RFC 3550 §5.1",
        _joined(_header(0x20, _NO_CSRC), st.binary(max_size=20), st.just(b"\0")),
    ),
    MediaFault(
        "padding beyond the payload",
        "RFC 3550 §5.1",
        st.binary(max_size=20).flatmap(
            lambda data: _joined(
                _header(0x20, _NO_CSRC),
                st.integers(len(data) + 2, 255).map(lambda size: data + bytes((size,))),
            )
        ),
    ),
    MediaFault("no room for padding", "RFC 3550 §5.1", _header(0x20, _NO_CSRC)),
)
"""Every fault of an RTP packet: RFC 3550 §5.1 and §5.3.1."""

_REPORT: Final = words.map(lambda ssrc: bytes(ReceiverReport(ssrc)))


def _packet(kind: int, count: int, body: bytes, *, padded: bool = False) -> bytes:
    """One RTCP packet whose length is right: RFC 3550 §6.4.1."""
    first = 0x80 | (0x20 if padded else 0) | count
    return pack("!BBH", first, kind, len(body) // 4) + body


def _padded(sizes: SearchStrategy[int]) -> Octets:
    """A last packet of two words, with padding of a size that is wrong."""
    return sizes.map(lambda size: _packet(203, 0, bytes(7) + bytes((size,)), padded=True))


COMPOUND_FAULTS: Final = (
    MediaFault("no packet", "RFC 3550 §6.1", st.just(b"")),
    MediaFault(
        "header cut", "RFC 3550 §6.4.1", _joined(_REPORT, _cut(_REPORT.map(lambda r: r[:4]), 1))
    ),
    MediaFault("another version", "RFC 3550 §A.2", st.builds(_other_version, _REPORT, _VERSIONS)),
    MediaFault(
        "another version later",
        "RFC 3550 §A.2",
        st.builds(
            lambda report, data, v: report + _other_version(data, v), _REPORT, _REPORT, _VERSIONS
        ),
    ),
    MediaFault(
        "length beyond the end",
        "RFC 3550 §A.2",
        _joined(
            _REPORT,
            st.builds(
                lambda n, data: pack("!BBH", 0x80, 203, n) + data,
                st.integers(4, 0xFFFF),
                whole_words(3),
            ),
        ),
    ),
    MediaFault(
        "padding before the last packet",
        "RFC 3550 §6.1",
        _joined(_padded(st.just(4)), _REPORT),
    ),
    MediaFault("padding of 0", "RFC 3550 §6.4.1", _joined(_REPORT, _padded(st.just(0)))),
    MediaFault(
        "padding of half a word",
        "RFC 3550 §6.4.1",
        _joined(_REPORT, _padded(st.sampled_from([1, 2, 3, 5, 6, 7]))),
    ),
    MediaFault(
        "padding beyond the packet",
        "RFC 3550 §6.4.1",
        _joined(_REPORT, _padded(st.integers(3, 63).map(lambda count: 4 * count))),
    ),
    MediaFault(
        "padding of no octet", "RFC 3550 §6.4.1", _joined(_REPORT, st.just(b"\xa0\xcb\0\0"))
    ),
)
"""Every fault of the framing of RTCP packets: RFC 3550 §6.1 and §A.2."""


def _inside(
    name: str, clause: str, kind: int, counts: SearchStrategy[int], bodies: Octets
) -> MediaFault:
    """A packet of a right length, behind a report or alone."""
    packets = st.builds(lambda count, body: _packet(kind, count, body), counts, bodies)
    return MediaFault(name, clause, _joined(st.just(b"") | _REPORT, packets))


def _up_to(size: int) -> Octets:
    """Whole words, at most `size` octets."""
    return whole_words(size // 4)


def _long_item(size: int, data: bytes) -> bytes:
    """A source, and an item that says to be longer than the packet: RFC 3550 §6.5."""
    return bytes(4) + bytes((1, size)) + data + bytes(-(6 + len(data)) % 4)


_SOURCES: Final = st.integers(1, 31)

RTCP_FAULTS: Final = (
    _inside("sender report cut", "RFC 3550 §6.4.1", 200, st.just(0), _up_to(20)),
    _inside(
        "blocks of a sender cut",
        "RFC 3550 §6.4.1",
        200,
        _SOURCES,
        _joined(_exactly(24), _up_to(20)),
    ),
    _inside("receiver report cut", "RFC 3550 §6.4.2", 201, st.just(0), st.just(b"")),
    _inside(
        "blocks of a receiver cut",
        "RFC 3550 §6.4.2",
        201,
        _SOURCES,
        _joined(_exactly(4), _up_to(20)),
    ),
    _inside("source missing", "RFC 3550 §6.5", 202, _SOURCES, st.just(b"")),
    _inside(
        "item cut",
        "RFC 3550 §6.5",
        202,
        _SOURCES,
        st.builds(_long_item, st.integers(30, 255), st.binary(min_size=1, max_size=20)),
    ),
    _inside(
        "items not ended",
        "RFC 3550 §6.5",
        202,
        st.just(1),
        _joined(_exactly(4), st.integers(0, 4).map(lambda n: b"\x01\x02ab" * n)),
    ),
    _inside("leaving source missing", "RFC 3550 §6.6", 203, st.integers(4, 31), _up_to(12)),
    _inside(
        "reason cut",
        "RFC 3550 §6.6",
        203,
        st.just(1),
        _joined(_exactly(4), st.integers(4, 255).map(lambda size: bytes((size,)) + b"bye")),
    ),
    _inside("name missing", "RFC 3550 §6.7", 204, st.integers(0, 31), _up_to(4)),
)
"""Every fault within a report, a description or an APP packet: RFC 3550 §6.4 to §6.7."""

FEEDBACK_FAULTS: Final = (
    _inside("feedback cut", "RFC 4585 §6.1", 205, st.integers(2, 31), _up_to(4)),
    _inside("picture loss cut", "RFC 4585 §6.3.1", 206, st.just(1), _up_to(4)),
    _inside("loss of nothing", "RFC 4585 §6.2.1", 205, st.just(1), _exactly(8)),
    _inside("request of nothing", "RFC 5104 §4.3.1.1", 206, st.just(4), _exactly(8)),
    _inside(
        "request cut",
        "RFC 5104 §4.3.1.1",
        206,
        st.just(4),
        st.sampled_from([12, 20, 28]).flatmap(_exactly),
    ),
    _inside("limit of nothing", "RFC 5104 §4.2.1.1", 205, st.just(3), _exactly(8)),
    _inside(
        "limit cut",
        "RFC 5104 §4.2.1.1",
        205,
        st.sampled_from([3, 4]),
        st.sampled_from([12, 20, 28]).flatmap(_exactly),
    ),
    _inside(
        "report block cut",
        "RFC 3611 §3",
        207,
        st.just(0),
        st.builds(
            lambda words, body: bytes(4) + pack("!BBH", 1, 0, words) + body,
            st.integers(4, 0xFFFF),
            _up_to(12),
        ),
    ),
    _inside("report of nobody", "RFC 3611 §2", 207, st.just(0), st.just(b"")),
)
"""Every fault within feedback or an extended report: RFC 4585 §6.1, RFC 3611 §3."""

EVENT_FAULTS: Final = (
    MediaFault("no event", "RFC 4733 §2.3", st.just(b"")),
    MediaFault("event cut", "RFC 4733 §2.3", _cut(_exactly(4), 1)),
    MediaFault(
        "event of a group cut",
        "RFC 4733 §2.5.1.5",
        st.integers(1, 3).flatmap(lambda count: _cut(_exactly(4 * count + 4), 4 * count + 1)),
    ),
)
"""Every fault of telephone events: RFC 4733 §2.3 and §2.5.1.5."""
