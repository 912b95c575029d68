"""Strategies for payloads of video, for tests of any implementation.

Own design: the oracle's grammar of RFC 6184 §5 and of RFC 7741 §4.2.
"""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.rtp.payload.h264 import H264Fragment, aggregate
from p2psip.rtp.payload.vp8 import Vp8Descriptor

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
        lambda unit, start, end: bytes(H264Fragment(unit[0], unit[1:], start, end)),
        nal_units(),
        st.booleans(),
        st.booleans(),
    )
    return nal_units() | access_units().map(aggregate) | fragments


@st.composite
def vp8_descriptors(draw: DrawFn) -> Vp8Descriptor:
    """Descriptors with any of the optional fields: RFC 7741 §4.2."""
    picture_id = draw(st.none() | st.integers(0, 127) | st.integers(0, 0x7FFF))
    layer = draw(st.none() | st.integers(0, 3))
    key_index = draw(st.none() | st.integers(0, 31))
    is_long = picture_id is not None and (picture_id > 127 or draw(st.booleans()))
    return Vp8Descriptor(
        start=draw(st.booleans()),
        partition=draw(st.integers(0, 7)),
        non_reference=draw(st.booleans()),
        picture_id=picture_id,
        temporal_base=None if layer is None else draw(st.none() | st.integers(0, 255)),
        temporal_layer=layer,
        layer_sync=(layer is not None or key_index is not None) and draw(st.booleans()),
        key_index=key_index,
        long_picture_id=is_long,
    )
