"""H.264 in RTP: NAL units alone, several in one packet, or one in several packets.

Implements RFC 6184 §5, for packetization modes 0 and 1 (§6.2, §6.3).

    >>> sps, slice_ = bytes.fromhex("6742e01f"), bytes([0x65]) + bytes(range(20))
    >>> [payload.hex() for payload, marker in pack_h264([sps], 12)]
    ['6742e01f']
    >>> [payload[:3].hex() for payload, marker in pack_h264([sps, slice_], 12)]
    ['6742e0', '7c8500', '7c450a']
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from typing import ClassVar, Final

from p2psip.errors import LocalError, RemoteError

SINGLE_TYPES: Final = range(1, 24)  # Source: §5.2 Table 1
RESERVED_TYPES: Final = (0, 30, 31)  # Source: §5.4 Table 3
STAP_A: Final = 24
FU_A: Final = 28
SINGLE_NAL_MODE, NON_INTERLEAVED_MODE = 0, 1  # Source: §5.4, packetization-mode
FORBIDDEN: Final = 0x80  # Source: §5.3, the bit F of the first octet of a NAL unit
_NRI: Final = 0x60
_TYPE: Final = 0x1F
_START, _END = 0x80, 0x40  # Source: §5.8, bits of the FU header
_SIZE: Final = Struct("!H")
_MAX_AGGREGATED: Final = 0xFFFF  # octets, Source: §5.2, of a NAL unit in an aggregation packet
_LEAST_PACKET: Final = 3  # octets that one fragment needs


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a NAL unit, whose `header` is a number, not in `data`: §5.8, RFC 7798 §4.4.3."""

    HEAD: ClassVar[int] = 1  # octets of the header

    header: int
    data: bytes
    start: bool = False
    end: bool = False

    @property
    def head(self) -> bytes:
        """The octets of the header: §5.3."""
        return self.header.to_bytes(self.HEAD, "big")


class H264Fragment(Fragment):
    """A part of a NAL unit of H.264: §5.8."""

    __slots__ = ()

    def __bytes__(self) -> bytes:
        """Write the payload of an FU-A, the reserved bit clear: §5.8."""
        return _fragment_head(self.header, self.start, self.end) + self.data


def _fragment_head(header: int, start: bool, end: bool) -> bytes:
    # §5.8 [nri-of-the-nal-unit] [reserved-bit] [no-fu-b]
    indicator = header & (FORBIDDEN | _NRI) | FU_A
    return bytes((indicator, (_START if start else 0) | (_END if end else 0) | header & _TYPE))


def read_h264(payload: bytes | memoryview) -> tuple[bytes, ...] | H264Fragment:
    """Read whole NAL units, or a fragment of one: §5.2.  RemoteError, also for other modes."""
    data = bytes(payload)
    if not data:
        raise RemoteError("H.264 payload of nothing")
    kind = data[0] & _TYPE
    if kind in SINGLE_TYPES:
        return (data,)  # §5.6 [single-holds-one], §6.2 [mode-0-is-read]
    if kind in RESERVED_TYPES:
        return ()  # §5.4 [reserved-types-ignored]
    if kind == STAP_A:
        return tuple(_read_aggregate(data))  # §6.3 [mode-1-is-read]
    if kind == FU_A:
        if len(data) < 2:
            raise RemoteError("H.264 fragment without a header")
        header = data[0] & (FORBIDDEN | _NRI) | data[1] & _TYPE  # §5.8 [reserved-bit]
        if header & _TYPE in RESERVED_TYPES:
            return ()  # §5.4 [reserved-types-ignored]
        # §5.8 [fragments-not-nested] [aggregates-not-fragmented]
        if header & _TYPE not in SINGLE_TYPES:
            raise RemoteError("H.264 fragment of no NAL unit")
        # §5.8 [fragment-may-be-empty], §6.3 [mode-1-is-read]
        return H264Fragment(header, data[2:], bool(data[1] & _START), bool(data[1] & _END))
    # §6.3 [no-interleaved-packets], §5.8 [no-fu-b]
    raise RemoteError(f"H.264 payload of type {kind}")


def _read_aggregate(data: bytes) -> Iterable[bytes]:
    """Yield the NAL units of an STAP-A: §5.7.1."""
    for unit in split_aggregate(data, Fragment.HEAD):
        kind = unit[0] & _TYPE
        if kind in SINGLE_TYPES:
            yield unit
        elif kind not in RESERVED_TYPES:  # §5.4 [reserved-types-ignored]
            # §5.7 [aggregates-not-nested] [aggregates-without-fragments]
            raise RemoteError("H.264 aggregate of something else than NAL units")


def split_aggregate(data: bytes, head: int) -> Iterator[bytes]:
    """Yield what stands in an aggregate, after `head` octets: §5.7.1, RFC 7798 §4.4.2."""
    at = head
    if at == len(data):
        raise RemoteError("an aggregate of nothing")
    while at < len(data):
        if at + _SIZE.size > len(data):
            raise RemoteError("an aggregate cut in a size")
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        unit = data[at : at + size]
        if len(unit) < max(head, size):
            raise RemoteError("an aggregate of a NAL unit beyond the end, or of none")
        at += size
        yield unit


def aggregate(units: Sequence[bytes]) -> bytes:
    """Write NAL units of one time as an STAP-A: §5.7.1.  LocalError if one is too long."""
    if not units or any(not 0 < len(unit) <= _MAX_AGGREGATED for unit in units):
        raise LocalError("an aggregate is of NAL units of up to 65535 octets")
    # §5.7 [aggregate-f] [aggregate-nri] [aggregate-type]
    head = max(unit[0] & _NRI for unit in units) | STAP_A
    if any(unit[0] & FORBIDDEN for unit in units):
        head |= FORBIDDEN
    # §5.5 [order-in-aggregates]
    return bytes((head,)) + b"".join(_SIZE.pack(len(unit)) + unit for unit in units)


def pack_h264(
    units: Iterable[bytes], max_octets: int, mode: int = NON_INTERLEAVED_MODE
) -> list[tuple[bytes, bool]]:
    """Cut the NAL units of one access unit, in decoding order, into (payload, marker): §6.

    No payload is longer than `max_octets`.  In mode 0 each NAL unit is a payload, so one that
    is longer is a LocalError: the encoder must make smaller slices.
    """
    if mode not in (SINGLE_NAL_MODE, NON_INTERLEAVED_MODE) or max_octets < _LEAST_PACKET:
        raise LocalError(f"H.264 mode {mode} in packets of {max_octets} octets")
    units = list(units)
    for unit in units:
        # §5.4 [reserved-types-unsent], §5.7 [aggregates-without-fragments]
        if not unit or unit[0] & _TYPE not in SINGLE_TYPES:
            raise LocalError("no NAL unit of H.264")
        if mode == SINGLE_NAL_MODE and len(unit) > max_octets:
            raise LocalError(f"a NAL unit of {len(unit)} octets, in mode 0")
    if mode == SINGLE_NAL_MODE:  # §5.5 [order-of-mode-0], §6.2 [single-only] [decoding-order]
        return with_marker(units)  # §5.6 [decoding-order], §5.1 [one-nal-unit-goes-alone]
    # §5.5 [order-of-mode-1], §6.3 [decoding-order]
    return with_marker(share(units, max_octets, Fragment.HEAD, aggregate, _fragments))


def share(
    units: Iterable[bytes],
    max_octets: int,
    head: int,
    aggregate: Callable[[Sequence[bytes]], bytes],
    cut: Callable[[bytes, int], list[bytes]],
) -> list[bytes]:
    """Write small NAL units together, long ones in parts: §5.7, §5.8; RFC 7798 §5.

    `head` is how many octets the header of an aggregate has.
    """
    payloads: list[bytes] = []
    waiting: list[bytes] = []  # to be aggregated
    aggregated = head  # octets of an aggregate of these
    for unit in units:
        # §5.7 [aggregate-fits], RFC 7798 §4.4.2 [two-units-and-they-fit]
        if aggregated + _SIZE.size + len(unit) > max_octets:
            payloads += _written(waiting, aggregate)
            waiting, aggregated = [], head
        if len(unit) > max_octets:
            # §5.8 [fragments-follow-each-other], RFC 7798 §4.4.3 [fragments-follow-each-other]
            payloads += cut(unit, max_octets)
        else:
            # §5.5 [order-without-depth], §6.1 [slices-in-order]
            waiting.append(unit)
            aggregated += _SIZE.size + len(unit)
    return payloads + _written(waiting, aggregate)


def _written(units: list[bytes], aggregate: Callable[[Sequence[bytes]], bytes]) -> list[bytes]:
    """Write one payload, or none: a NAL unit alone stands for itself, §5.6."""
    # §5.7.1 [one-time-is-aggregated], §5.1 [one-nal-unit-goes-alone]
    # RFC 7798 §4.4.1 [header-is-a-copy] [no-number-alone], §5 [one-goes-alone]
    return [aggregate(units)] if len(units) > 1 else units


def with_marker(payloads: Sequence[bytes]) -> list[tuple[bytes, bool]]:
    """The payloads of one access unit, the last one with the marker: §5.1, RFC 7798 §4.1."""
    # §5.1 [marker-on-last] [aggregate-marker]
    return [(payload, at == len(payloads)) for at, payload in enumerate(payloads, 1)]


def _fragments(unit: bytes, max_octets: int) -> list[bytes]:
    """Cut one NAL unit into FU-As of equal size, but for the last: §5.8.

    Own design: about as many octets are in all of them, and the system sends them as one buffer.
    """
    body = len(unit) - 1
    # §5.8 [not-in-one-fragment]: `body` is no less than `max_octets`
    size = -(-body // -(-body // (max_octets - 2)))
    cuts = [*range(1, len(unit), size), len(unit)]  # §5.8 [each-octet-once]
    return [
        _fragment_head(unit[0], first == 1, last == len(unit)) + unit[first:last]
        for first, last in pairwise(cuts)
    ]
