"""Broken STUN messages, and broken ChannelData of TURN, one fault at a time.

Own design: `p2psip.strategies.faults` says why faults are drawn one at a time.
The clauses are of RFC 8489 §5, §6.3 and §14, and of RFC 8656 §12 and §18.2.
"""

from collections.abc import Callable
from struct import pack
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.nat.stun import write_address
from p2psip.strategies.faults import Octets, by_clause
from p2psip.strategies.stun import addresses, messages

_MESSAGE: Final = messages().map(lambda message: message.data)


def _edited(edit: Callable[[bytes, int], bytes], numbers: SearchStrategy[int]) -> Octets:
    return st.builds(edit, _MESSAGE, numbers)


def _with_length(data: bytes, more: int) -> bytes:
    """The same octets, and a length that is wrong by `more`."""
    return data[:2] + pack("!H", len(data) - 20 + more & 0xFFFF) + data[4:]


def _with_cut_attribute(data: bytes, missing: int) -> bytes:
    """One more attribute, which announces more octets than the message has."""
    grown = data + pack("!HH", 0x8022, 4 + missing) + b"abcd"
    return _with_length(grown, 0)


STUN_FAULTS: Final = by_clause(
    {
        "RFC 8489 §5": {
            "header cut": _edited(lambda data, n: data[:n], st.integers(0, 19)),
            "first bits not zero": _edited(
                lambda data, n: bytes((data[0] | n << 6,)) + data[1:], st.integers(1, 3)
            ),
            "no magic cookie": _edited(
                lambda data, n: data[:4] + pack("!I", 0x2112A442 ^ n) + data[8:],
                st.integers(1, 0xFFFFFFFF),
            ),
            "length beyond the end": _edited(
                _with_length, st.integers(1, 100).map(lambda words: 4 * words)
            ),
            "length of no whole words": _edited(
                lambda data, n: _with_length(data + bytes(n), 0), st.integers(1, 3)
            ),
        },
        "RFC 8489 §14": {
            "attribute beyond the end": _edited(_with_cut_attribute, st.integers(1, 1000))
        },
    }
)
"""Every fault of the form of a STUN message: RFC 8489 §5, §14."""

VALUE_FAULTS: Final = by_clause(
    {
        "RFC 8489 §14.1": {
            "unknown family": st.builds(
                lambda value, family: value[:1] + bytes((family,)) + value[2:],
                addresses.map(write_address),
                st.integers(3, 255) | st.just(0),
            ),
            "address of the other family's length": addresses.map(write_address).map(
                lambda v: v[:1] + bytes((3 - v[1],)) + v[2:]
            ),
            "address cut": st.builds(
                lambda value, n: value[:n], addresses.map(write_address), st.integers(0, 7)
            ),
        },
    }
)
"""Every fault of MAPPED-ADDRESS and its kind: RFC 8489 §14.1."""


CHANNEL_FAULTS: Final = by_clause(
    {
        "RFC 8656 §12.4": {
            "header cut": st.binary(max_size=3),
            "data beyond the end": st.builds(
                lambda number, more, data: pack("!HH", number, len(data) + more) + data,
                st.integers(0x4000, 0x4FFF),
                st.integers(1, 999),
                st.binary(max_size=20),
            ),
        },
        "RFC 8656 §12": {
            "number of no channel": st.builds(
                lambda number, data: pack("!HH", number, len(data)) + data,
                st.integers(0, 0x3FFF) | st.integers(0x5000, 0xFFFF),
                st.binary(max_size=20),
            )
        },
    }
)
"""Every fault of ChannelData: RFC 8656 §12, §12.4."""

LIFETIME_FAULTS: Final = by_clause(
    {
        "RFC 8656 §18.2": {"no 32 bits": st.binary(max_size=3) | st.binary(min_size=5, max_size=8)},
    }
)
"""The one fault of LIFETIME: RFC 8656 §18.2."""
