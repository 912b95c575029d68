"""Strategies for payloads of video, for tests of any implementation.

Own design: the oracle's grammar of RFC 6184 §5, of RFC 7798 §4.4 and of RFC 7741 §4.2.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.rtp.payload import h265
from p2psip.rtp.payload.h264 import H264Fragment, aggregate
from p2psip.rtp.payload.vp8 import Vp8Descriptor

_MAYBE_PICTURE = st.none() | st.integers(0, 127) | st.integers(0, 0x7FFF)
_MAYBE_LAYER = st.none() | st.integers(0, 3)
_MAYBE_KEY = st.none() | st.integers(0, 31)
_MAYBE_OCTET = st.none() | st.integers(0, 255)
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


_RESERVED: Final = st.builds(  # Source: RFC 6184 §5.4 Table 3
    lambda priority, kind, body: bytes((priority | kind,)) + body,
    _PRIORITIES,
    st.sampled_from([0, 30, 31]),
    st.binary(max_size=9),
)


def odd_h264_payloads() -> SearchStrategy[tuple[bytes, tuple[bytes, ...]]]:
    """Payloads with NAL units of reserved types, and what a receiver finds: RFC 6184 §5.4."""
    fragments = _RESERVED.map(lambda unit: bytes(H264Fragment(unit[0], unit[1:], True)))
    mixed = st.builds(
        lambda units, reserved: (aggregate([*units, reserved]), tuple(units)),
        st.lists(nal_units(), max_size=2),
        _RESERVED,
    )
    return (_RESERVED | fragments).map(lambda payload: (payload, ())) | mixed


def h265_units(max_octets: int = 60) -> SearchStrategy[bytes]:
    """NAL units of all types that a decoder takes, with any content: RFC 7798 §1.1.4."""
    kinds = st.sampled_from([1, 19, 21, 32, 33, 34, 35]) | st.integers(0, 47)
    return st.builds(
        lambda kind, layer, temporal, body: (
            (kind << 9 | layer << 3 | temporal).to_bytes(2, "big") + body
        ),
        kinds,
        st.just(0) | st.integers(0, 63),
        st.just(1) | st.integers(1, 7),
        st.binary(max_size=max_octets),
    )


def h265_access_units() -> SearchStrategy[list[bytes]]:
    """The NAL units of one picture: RFC 7798 §4.1."""
    return st.lists(h265_units(), min_size=1, max_size=6)


def h265_payloads() -> SearchStrategy[bytes]:
    """Payloads of one stream in the order of decoding: RFC 7798 §4.4."""
    fragments = st.builds(
        lambda unit, data, start, end: bytes(
            h265.H265Fragment(int.from_bytes(unit[:2], "big"), data, start, end)
        ),
        h265_units(),
        st.binary(min_size=1, max_size=60),
        st.booleans(),
        st.booleans(),
    )
    plain = h265_units() | h265_access_units().map(h265.aggregate) | fragments
    return plain | st.builds(_paci, plain, st.binary(max_size=31))


_UNKNOWN: Final = st.builds(  # types without a meaning: RFC 7798 §6
    lambda kind, body: bytes((kind << 1, 1)) + body, st.integers(51, 63), st.binary(max_size=9)
)


def odd_h265_payloads() -> SearchStrategy[tuple[bytes, tuple[bytes, ...]]]:
    """Payloads with NAL units of unknown types, and what a receiver finds: RFC 7798 §6."""
    mixed = st.builds(
        lambda units, unknown: (h265.aggregate([*units, unknown]), tuple(units)),
        st.lists(h265_units(), max_size=2),
        _UNKNOWN,
    )
    return _UNKNOWN.map(lambda payload: (payload, ())) | mixed


def _paci(payload: bytes, extension: bytes) -> bytes:
    """Wrap a payload: RFC 7798 §4.4."""
    kind, fields = payload[0] >> 1 & 0x3F, len(extension) << 4
    head = bytes((payload[0] & 0x01 | h265.PACI << 1, payload[1]))
    return head + (kind << 9 | fields).to_bytes(2, "big") + extension + payload[2:]


@st.composite
def vp8_descriptors(draw: DrawFn) -> Vp8Descriptor:
    """Descriptors with any of the optional fields: RFC 7741 §4.2."""
    picture_id = draw(_MAYBE_PICTURE)
    layer = draw(_MAYBE_LAYER)
    key_index = draw(_MAYBE_KEY)
    is_long = picture_id is not None and (picture_id > 127 or draw(st.booleans()))
    return Vp8Descriptor(
        start=draw(st.booleans()),
        partition=draw(st.integers(0, 7)),
        non_reference=draw(st.booleans()),
        picture_id=picture_id,
        temporal_base=None if layer is None else draw(_MAYBE_OCTET),
        temporal_layer=layer,
        layer_sync=(layer is not None or key_index is not None) and draw(st.booleans()),
        key_index=key_index,
        long_picture_id=is_long,
    )
