"""RTP, RTCP and telephone events that every reader must refuse, one fault at a time.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
The clauses are of RFC 3550 §5.1 and §6, RFC 4585 §6.1, RFC 5104 §4.2.1,
RFC 3611 §3, RFC 4733 §2.3 and Transport-wide CC 01 §3.1.
"""

from struct import pack
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.rtp.rtcp import ReceiverReport
from p2psip.strategies.faults import Octets, by_clause
from p2psip.strategies.rtp import rtp_packets, whole_words, words


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


RTP_FAULTS: Final = by_clause(
    {
        "RFC 3550 §5.1": {
            "header cut": _cut(_header(0, st.integers(0, 15))),
            "another version": st.builds(_other_version, rtp_packets().map(bytes), _VERSIONS),
            "sources cut": st.integers(1, 15).flatmap(
                lambda count: _joined(_header(0, st.just(count)), _cut(_exactly(4 * count)))
            ),
            "padding of 0": _joined(
                _header(0x20, _NO_CSRC), st.binary(max_size=20), st.just(b"\0")
            ),
            "padding beyond the payload": st.binary(max_size=20).flatmap(
                lambda data: _joined(
                    _header(0x20, _NO_CSRC),
                    st.integers(len(data) + 2, 255).map(lambda size: data + bytes((size,))),
                )
            ),
            "no room for padding": _header(0x20, _NO_CSRC),
        },
        "RFC 3550 §5.3.1": {
            "extension header cut": _joined(_header(0x10, _NO_CSRC), _cut(_exactly(4))),
            "extension cut": st.integers(1, 0xFFFF).flatmap(
                lambda count: _joined(
                    _header(0x10, _NO_CSRC),
                    st.just(pack("!HH", 0xBEDE, count)),
                    st.binary(max_size=min(4 * count - 1, 20)),
                )
            ),
        },
    }
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


COMPOUND_FAULTS: Final = by_clause(
    {
        "RFC 3550 §6.1": {
            "no packet": st.just(b""),
            "padding before the last packet": _joined(_padded(st.just(4)), _REPORT),
        },
        "RFC 3550 §6.4.1": {
            "header cut": _joined(_REPORT, _cut(_REPORT.map(lambda r: r[:4]), 1)),
            "padding of 0": _joined(_REPORT, _padded(st.just(0))),
            "padding of half a word": _joined(
                _REPORT, _padded(st.sampled_from([1, 2, 3, 5, 6, 7]))
            ),
            "padding beyond the packet": _joined(
                _REPORT, _padded(st.integers(3, 63).map(lambda count: 4 * count))
            ),
            "padding of no octet": _joined(_REPORT, st.just(b"\xa0\xcb\0\0")),
        },
        "RFC 3550 §A.2": {
            "another version": st.builds(_other_version, _REPORT, _VERSIONS),
            "another version later": st.builds(
                lambda report, data, v: report + _other_version(data, v),
                _REPORT,
                _REPORT,
                _VERSIONS,
            ),
            "length beyond the end": _joined(
                _REPORT,
                st.builds(
                    lambda n, data: pack("!BBH", 0x80, 203, n) + data,
                    st.integers(4, 0xFFFF),
                    whole_words(3),
                ),
            ),
        },
    }
)
"""Every fault of the framing of RTCP packets: RFC 3550 §6.1 and §A.2."""


def _inside(kind: int, counts: SearchStrategy[int], bodies: Octets) -> Octets:
    """A packet of a right length, behind a report or alone."""
    packets = st.builds(lambda count, body: _packet(kind, count, body), counts, bodies)
    return _joined(st.just(b"") | _REPORT, packets)


def _up_to(size: int) -> Octets:
    """Whole words, at most `size` octets."""
    return whole_words(size // 4)


def _long_item(size: int, data: bytes) -> bytes:
    """A source, and an item that says to be longer than the packet: RFC 3550 §6.5."""
    return bytes(4) + bytes((1, size)) + data + bytes(-(6 + len(data)) % 4)


_SOURCES: Final = st.integers(1, 31)

RTCP_FAULTS: Final = by_clause(
    {
        "RFC 3550 §6.4.1": {
            "sender report cut": _inside(200, st.just(0), _up_to(20)),
            "blocks of a sender cut": _inside(200, _SOURCES, _joined(_exactly(24), _up_to(20))),
        },
        "RFC 3550 §6.4.2": {
            "receiver report cut": _inside(201, st.just(0), st.just(b"")),
            "blocks of a receiver cut": _inside(201, _SOURCES, _joined(_exactly(4), _up_to(20))),
        },
        "RFC 3550 §6.5": {
            "source missing": _inside(202, _SOURCES, st.just(b"")),
            "item cut": _inside(
                202,
                _SOURCES,
                st.builds(_long_item, st.integers(30, 255), st.binary(min_size=1, max_size=20)),
            ),
            "items not ended": _inside(
                202,
                st.just(1),
                _joined(_exactly(4), st.integers(0, 4).map(lambda n: b"\x01\x02ab" * n)),
            ),
        },
        "RFC 3550 §6.6": {
            "leaving source missing": _inside(203, st.integers(4, 31), _up_to(12)),
            "reason cut": _inside(
                203,
                st.just(1),
                _joined(_exactly(4), st.integers(4, 255).map(lambda size: bytes((size,)) + b"bye")),
            ),
        },
        "RFC 3550 §6.7": {"name missing": _inside(204, st.integers(0, 31), _up_to(4))},
    }
)
"""Every fault within a report, a description or an APP packet: RFC 3550 §6.4 to §6.7."""

FEEDBACK_FAULTS: Final = by_clause(
    {
        "RFC 4585 §6.1": {"feedback cut": _inside(205, st.integers(2, 31), _up_to(4))},
        "RFC 4585 §6.3.1": {"picture loss cut": _inside(206, st.just(1), _up_to(4))},
        "RFC 4585 §6.2.1": {"loss of nothing": _inside(205, st.just(1), _exactly(8))},
        "RFC 5104 §4.3.1.1": {
            "request of nothing": _inside(206, st.just(4), _exactly(8)),
            "request cut": _inside(
                206, st.just(4), st.sampled_from([12, 20, 28]).flatmap(_exactly)
            ),
        },
        "RFC 5104 §4.2.1.1": {
            "limit of nothing": _inside(205, st.just(3), _exactly(8)),
            "limit cut": _inside(
                205, st.sampled_from([3, 4]), st.sampled_from([12, 20, 28]).flatmap(_exactly)
            ),
        },
        "Transport-wide CC 01 §3.1": {
            "arrivals of nothing": _inside(205, st.just(15), st.just(bytes(16))),
            "arrivals cut": _inside(205, st.just(15), _up_to(12)),
            "statuses cut": _inside(205, st.just(15), st.just(bytes(10) + b"\0\1" + bytes(4))),
            "reserved status": _inside(
                205, st.just(15), st.just(bytes(10) + b"\0\1" + bytes(4) + b"\x60\1\0\0")
            ),
            "deltas cut": st.integers(3, 0x1FFF).flatmap(
                lambda count: _inside(
                    205,
                    st.just(15),
                    st.just(bytes(10) + pack("!HIH", count, 0, 0x2000 | count) + bytes(2)),
                )
            ),
        },
        'Field §"Ceilings of a receiver"': {
            "sources missing": _inside(
                206,
                st.just(15),
                st.integers(1, 255).map(lambda n: bytes(8) + b"REMB" + bytes((n, 0, 0, 0))),
            ),
        },
        "RFC 3611 §3": {
            "report block cut": _inside(
                207,
                st.just(0),
                st.builds(
                    lambda words, body: bytes(4) + pack("!BBH", 1, 0, words) + body,
                    st.integers(4, 0xFFFF),
                    _up_to(12),
                ),
            )
        },
        "RFC 3611 §2": {"report of nobody": _inside(207, st.just(0), st.just(b""))},
    }
)
"""Every fault within feedback or an extended report: RFC 4585 §6.1, RFC 3611 §3."""

EVENT_FAULTS: Final = by_clause(
    {
        "RFC 4733 §2.3": {
            "no event": st.just(b""),
            "event cut": _cut(_exactly(4), 1),
        },
        "RFC 4733 §2.5.1.5": {
            "event of a group cut": st.integers(1, 3).flatmap(
                lambda count: _cut(_exactly(4 * count + 4), 4 * count + 1)
            )
        },
    }
)
"""Every fault of telephone events: RFC 4733 §2.3 and §2.5.1.5."""
