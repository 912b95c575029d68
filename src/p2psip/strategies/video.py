"""Strategies for payloads of video, for tests of any implementation.

Own design: the oracle's grammar of RFC 6184 §5, and of what it builds on.
"""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from p2psip.rtp.payload.h264 import Fragment, aggregate

_PRIORITIES = st.sampled_from([0x00, 0x20, 0x40, 0x60])


def nal_units(max_octets: int = 60) -> SearchStrategy[bytes]:
    """NAL units of all types that H.264 defines, with any content: RFC 6184 §5.3."""
    kinds = st.sampled_from([1, 5, 6, 7, 8, 9]) | st.integers(1, 23)
    return st.builds(
        lambda priority, kind, body: bytes((priority | kind,)) + body,
        _PRIORITIES,
        kinds,
        st.binary(max_size=max_octets),
    )


def access_units() -> SearchStrategy[list[bytes]]:
    """The NAL units of one picture: RFC 6184 §5.1."""
    return st.lists(nal_units(), min_size=1, max_size=6)


def h264_payloads() -> SearchStrategy[bytes]:
    """Payloads of packetization modes 0 and 1: RFC 6184 §5.2."""
    fragments = st.builds(
        lambda unit, start, end: bytes(Fragment(unit[0], unit[1:], start, end)),
        nal_units(),
        st.booleans(),
        st.booleans(),
    )
    return nal_units() | access_units().map(aggregate) | fragments
