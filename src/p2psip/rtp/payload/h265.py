"""H.265 in RTP: NAL units alone, several in one packet, or one in several packets.

Implements RFC 7798 §4.4, for one stream in the order of decoding (`sprop-max-don-diff` of 0), as
all phones have it.  A header of a NAL unit has two octets; but for that it is as `h264` says.
Not done: RFC 7798 §4.4: of a PACI the NAL unit counts, and not what else it says.
Not done: RFC 7798 §4.6: without `sprop-max-don-diff` there are no numbers of the decoding order.

    >>> sets, slice_ = [b"\\x42\\x01sps", b"\\x44\\x01pps"], b"\\x26\\x01" + bytes(range(20))
    >>> [payload.hex() for payload, marker in pack_h265(sets, 20)]
    ['60010005420173707300054401707073']
    >>> [payload[:3].hex() for payload, marker in pack_h265([slice_], 14)]
    ['620193', '620153']
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from struct import Struct
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.payload.h264 import Fragment, share, split_aggregate, with_marker

AGGREGATE, FRAGMENT, PACI = 48, 49, 50  # Source: §4.4.2, §4.4.3, §4.4
UNIT_TYPES: Final = range(48)  # Source: §6, types of what a decoder may get
FORBIDDEN: Final = 0x80  # Source: §1.1.4, the bit F of the first octet of a NAL unit
HEAD: Final = 2  # octets of a header: §1.1.4
_TYPE: Final = 0x7E  # Source: §1.1.4, bits of the first octet
_START, _END, _FU_TYPE = 0x80, 0x40, 0x3F  # Source: §4.4.3, bits of the FU header
_SIZE: Final = Struct("!H")
_MAX_AGGREGATED: Final = 0xFFFF  # octets, Source: §4.4.2, of a NAL unit in an aggregation packet
_LEAST_PACKET: Final = 4  # octets that one fragment needs


def kind_of(unit: bytes) -> int:
    """The type of a NAL unit, or of a payload: §1.1.4."""
    return unit[0] >> 1 & 0x3F


class H265Fragment(Fragment):
    """A part of a NAL unit of H.265: §4.4.3."""

    __slots__ = ()
    HEAD = HEAD

    def __bytes__(self) -> bytes:
        first, second = self.head
        # §4.4.3 [fragment-type] [header-of-the-unit] [type-of-the-unit]
        # §4.4.3 [no-number-in-fragments]
        bits = (_START if self.start else 0) | (_END if self.end else 0) | first >> 1 & _FU_TYPE
        return bytes((first & ~_TYPE | FRAGMENT << 1, second, bits)) + self.data


def read_h265(payload: bytes | memoryview) -> tuple[bytes, ...] | H265Fragment:
    """Read whole NAL units (§6 leaves types out), or a fragment of one: §4.4.  RemoteError."""
    data = bytes(payload)
    if len(data) < HEAD:
        raise RemoteError(f"H.265 payload of {len(data)} octets")
    kind = kind_of(data)
    if kind in UNIT_TYPES:  # §6 [other-types-are-kept-back]
        return (data,)
    if kind == AGGREGATE:
        return tuple(_read_aggregate(data))  # §4.4.2 [aggregate-type]
    if kind == PACI:  # §4.4.4 [paci-type]
        return _read_paci(data)
    if kind != FRAGMENT:
        return ()
    # §4.4.3 [fragment-type] [fragment-has-octets]
    if len(data) <= HEAD + 1:
        raise RemoteError("H.265 fragment of nothing")
    inner = data[2] & _FU_TYPE
    # §4.4.3 [fragments-not-nested] [aggregates-not-fragmented], §4.4.4 [paci-stands-alone]
    if inner not in UNIT_TYPES:
        raise RemoteError(f"H.265 fragment of type {inner}")
    # §4.4.3 [header-of-the-unit] [type-of-the-unit]
    header = (data[0] & ~_TYPE | inner << 1) << 8 | data[1]
    return H265Fragment(header, data[3:], bool(data[2] & _START), bool(data[2] & _END))


def _read_aggregate(data: bytes) -> Iterable[bytes]:
    """Yield the NAL units of an aggregation packet: §4.4.2.  One alone is forgiven."""
    for unit in split_aggregate(data, HEAD):
        # §4.4.2 [no-fragments-in-aggregates] [aggregates-not-nested]
        if kind_of(unit) in (AGGREGATE, FRAGMENT):
            raise RemoteError("H.265 aggregate of something else than NAL units")
        if kind_of(unit) in UNIT_TYPES:  # §4.4.4 [paci-stands-alone]
            yield unit


def _read_paci(data: bytes) -> tuple[bytes, ...] | H265Fragment:
    """Read what a PACI packet carries, which is any payload but another PACI: §4.4."""
    if len(data) < 2 * HEAD:
        raise RemoteError("H.265 PACI cut short")
    (fields,) = _SIZE.unpack_from(data, HEAD)
    inner, size = fields >> 9 & 0x3F, fields >> 4 & 0x1F
    if inner == PACI:
        raise RemoteError("H.265 PACI within a PACI")
    if len(data) < 2 * HEAD + size:
        raise RemoteError("H.265 PACI with an extension beyond the end")
    # the bit A stands for the bit F of what is carried
    first = data[0] & ~(_TYPE | FORBIDDEN) | fields >> 8 & FORBIDDEN | inner << 1
    # §4.4.4 [extension-is-ignored]
    return read_h265(bytes((first, data[1])) + data[2 * HEAD + size :])


def aggregate(units: Sequence[bytes]) -> bytes:
    """Write NAL units of one picture as a payload: §4.4.2.  LocalError if one is too long."""
    if not units or any(not HEAD <= len(unit) <= _MAX_AGGREGATED for unit in units):
        raise LocalError("an aggregate is of NAL units of up to 65535 octets")
    # §4.4.2 [aggregate-layer] [aggregate-tid] [aggregate-f]
    heads = [_SIZE.unpack_from(unit)[0] for unit in units]
    layer = min(head >> 3 & 0x3F for head in heads)
    temporal = min(head & 7 for head in heads)
    forbidden = FORBIDDEN << 8 if any(head & FORBIDDEN << 8 for head in heads) else 0
    # §4.4.2 [aggregate-type] [no-number-in-aggregates] [no-difference-in-aggregates]
    head = _SIZE.pack(forbidden | AGGREGATE << 9 | layer << 3 | temporal)
    return head + b"".join(_SIZE.pack(len(unit)) + unit for unit in units)


def pack_h265(units: Iterable[bytes], max_octets: int) -> list[tuple[bytes, bool]]:
    """Cut an access unit into (payload, marker), none longer than `max_octets`: §5."""
    if max_octets < _LEAST_PACKET:
        raise LocalError(f"H.265 in packets of {max_octets} octets")
    units = list(units)
    if any(len(unit) < HEAD or kind_of(unit) not in UNIT_TYPES for unit in units):
        raise LocalError("no NAL unit of H.265")
    # §5 [order-of-decoding] [small-units-share] [sets-share-with-slices]
    return with_marker(share(units, max_octets, HEAD, aggregate, _fragments))  # §4.1


def _fragments(unit: bytes, max_octets: int) -> list[bytes]:
    """Cut one NAL unit into fragments of equal size, but for the last: §4.4.3."""
    body, (header,) = len(unit) - HEAD, _SIZE.unpack_from(unit)
    # §4.4.3 [not-in-one-fragment]: `body` is more than `max_octets` less its header
    size = -(-body // -(-body // (max_octets - HEAD - 1)))
    cuts = [*range(HEAD, len(unit), size), len(unit)]
    # §4.4.3 [start-on-first-alone] [end-on-last-alone]
    return [
        bytes(H265Fragment(header, unit[first:last], first == HEAD, last == len(unit)))
        for first, last in pairwise(cuts)
    ]
