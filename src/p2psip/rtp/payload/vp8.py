"""VP8 in RTP: a descriptor in front of each part of a frame, and frames out of parts.

Implements RFC 7741 §4.

    >>> descriptor, offset = Vp8Descriptor.parse(bytes.fromhex("9080 8123 00"))
    >>> descriptor.start, descriptor.picture_id, offset
    (True, 291, 4)
    >>> bytes(descriptor).hex()
    '90808123'
"""

from dataclasses import dataclass
from typing import Final, Self, TypeAlias

from p2psip.errors import LocalError, RemoteError

MAX_FRAME_OCTETS: Final = 1 << 22  # Own design: memory must be bounded
SHORT_PICTURE_ID: Final = 0x7F  # Source: §4.2, what seven bits hold
_X, _N, _S = 0x80, 0x20, 0x10  # Source: §4.2, bits of the first octet
_I, _L, _T, _K = 0x80, 0x40, 0x20, 0x10  # of the second
_M: Final = 0x80  # of the picture's number
_INTERFRAME: Final = 0x01  # Source: §4.3, bit P of the payload header


@dataclass(frozen=True, slots=True)
class Vp8Descriptor:
    """What stands before each part of a frame: §4.2; a field that is None is not there.

    `picture_id` has 7 or 15 bits as its value needs, or 15 with `long_picture_id`.
    `layer_sync` is the bit Y, which stands beside `temporal_layer` or `key_index`.
    `temporal_base` is written beside a `temporal_layer` only, and read in any case.
    """

    start: bool = False
    partition: int = 0
    non_reference: bool = False
    picture_id: int | None = None
    temporal_base: int | None = None
    temporal_layer: int | None = None
    layer_sync: bool = False
    key_index: int | None = None
    long_picture_id: bool = False

    def __post_init__(self) -> None:
        limits = (
            (self.partition, 3),
            (self.picture_id or 0, 15),
            (self.temporal_base or 0, 8),
            (self.temporal_layer or 0, 2),
            (self.key_index or 0, 5),
        )
        if any(value >> bits for value, bits in limits):
            raise LocalError("a field of a VP8 descriptor does not fit")

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> tuple[Self, int]:
        """Read a descriptor, and where the frame's octets begin: §4.2.  RemoteError if cut."""
        data, at = bytes(payload[:6]), 1
        try:
            first = data[0]
            extended = 0
            if first & _X:  # §4.2 [extension-follows]
                extended, at = data[at], at + 1
            picture_id, long_ = None, False
            if extended & _I:  # §4.2 [picture-id-with-i] [no-picture-id-without-i]
                picture_id, long_ = data[at] & 0x7F, bool(data[at] & _M)
                at += 1
                # §4.2 [picture-id-of-15-bits] [picture-id-of-any-size]
                if long_:
                    picture_id, at = picture_id << 8 | data[at], at + 1
            base = None
            if extended & _L:  # §4.2 [base-with-l] [no-base-without-l]
                base, at = data[at], at + 1
            layers = 0
            # §4.2 [layers-with-t] [layers-with-k] [no-layers-without-t-or-k]
            if extended & (_T | _K):
                layers, at = data[at], at + 1
        except IndexError:
            raise RemoteError("VP8 descriptor cut short") from None
        return cls(
            start=bool(first & _S),  # §4.2 [reserved-bits] [layer-bits] [key-index-bits]
            partition=first & 7,  # §4.2 [partition-of-three-bits]
            non_reference=bool(first & _N),
            picture_id=picture_id,
            temporal_base=base,
            # §4.2 [tid-ignored-without-t] [keyidx-ignored-without-k]
            temporal_layer=layers >> 6 if extended & _T else None,
            layer_sync=bool(layers & 0x20),
            key_index=layers & 0x1F if extended & _K else None,
            long_picture_id=long_,
        ), at

    def __bytes__(self) -> bytes:
        """Write the descriptor, reserved bits clear: §4.2.  LocalError: a base without a layer."""
        # §4.2 [reserved-bits]
        first = self.partition | (_S if self.start else 0) | (_N if self.non_reference else 0)
        extended, fields = 0, b""
        if self.picture_id is not None:
            extended |= _I  # §4.2 [picture-id-with-i] [no-picture-id-without-i]
            if self.long_picture_id or self.picture_id > SHORT_PICTURE_ID:
                fields += bytes((_M | self.picture_id >> 8, self.picture_id & 0xFF))
            else:
                fields += bytes((self.picture_id,))
        if self.temporal_base is not None:
            if self.temporal_layer is None:  # §4.2 [base-has-a-layer]
                raise LocalError("a VP8 descriptor with an index of the base layer has a layer")
            extended |= _L  # §4.2 [base-with-l] [no-base-without-l]
            fields += bytes((self.temporal_base,))
        if self.temporal_layer is not None or self.key_index is not None:
            # §4.2 [layers-with-t] [layers-with-k] [no-layers-without-t-or-k]
            extended |= (0 if self.temporal_layer is None else _T) | (
                0 if self.key_index is None else _K
            )
            sync = 0x20 if self.layer_sync else 0
            # §4.2 [layer-bits] [key-index-bits]
            fields += bytes(((self.temporal_layer or 0) << 6 | sync | (self.key_index or 0),))
        if not extended:  # §4.2 [no-extension-no-fields]
            return bytes((first,))
        return bytes((_X | first, extended)) + fields


def pack_vp8(
    frame: bytes, max_octets: int, picture_id: int | None = None
) -> list[tuple[bytes, bool]]:
    """Cut a frame of this `picture_id` into (payload, marker) of `max_octets` at most: §4.4."""
    head = len(bytes(Vp8Descriptor(True, picture_id=picture_id)))
    if not frame or max_octets <= head:
        raise LocalError(f"a VP8 frame of {len(frame)} octets in packets of {max_octets}")
    count = -(-len(frame) // (max_octets - head))
    cuts = [len(frame) * at // count for at in range(count + 1)]
    return [
        # §4.4 [start-on-first-alone] [marker-on-last]
        # §4.4 [partitions-in-order] [one-frame-in-a-payload]
        # §4.2 [start-at-a-partition] [start-on-first] [first-partition-is-0]
        # §4.2 [one-start]
        # §4.2 [unknown-reference], §4.1 [marker-on-last]
        (
            bytes(Vp8Descriptor(at == 0, picture_id=picture_id)) + frame[cuts[at] : cuts[at + 1]],
            at == count - 1,
        )
        for at in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Vp8Frame:
    """A whole frame, with the descriptor of its first packet: §4.5.1."""

    data: bytes
    timestamp: int
    descriptor: Vp8Descriptor

    @property
    def is_key(self) -> bool:
        """Whether the frame needs no other: §4.3."""
        return not self.data[0] & _INTERFRAME


@dataclass(frozen=True, slots=True)
class Vp8Damage:
    """Something is missing at these timestamps and between: §4.5.1; `lost` packets never came."""

    since: int
    until: int
    lost: int
    is_key = False

    @property
    def timestamp(self) -> int:
        """The timestamp of the last frame that may be damaged: §4.5.1."""
        return self.until


Vp8Unpacked: TypeAlias = Vp8Frame | Vp8Damage
"""What `Vp8Unpacker` gives: §4.5.1."""


class Vp8Unpacker:
    """Puts frames together from packets in order, and notices what is missing: §4.5.1."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._timestamp = 0
        self._descriptor: Vp8Descriptor | None = None  # of the frame under way
        self._parts: list[bytes] = []
        self._octets = 0
        self._told: int | None = None  # the timestamp of a frame known to be damaged

    def push(
        self, sequence: int, timestamp: int, marker: bool, payload: bytes | memoryview
    ) -> list[Vp8Unpacked]:
        """Take the next packet; one whose turn has passed is dropped: §4.5.1."""
        out: list[Vp8Unpacked] = []
        if self._next is not None and sequence < self._next:
            return out
        lost = 0 if self._next is None else sequence - self._next
        if lost or (self._parts and timestamp != self._timestamp):
            out.append(Vp8Damage(self._timestamp, timestamp, lost))
            self._forget()
            self._told = timestamp if lost else None
        self._next, self._timestamp = sequence + 1, timestamp
        try:
            descriptor, at = Vp8Descriptor.parse(payload)
        except RemoteError:
            descriptor, at = Vp8Descriptor(), len(payload)
        begins = descriptor.start and descriptor.partition == 0 and not self._parts
        if begins and at < len(payload):
            self._descriptor = descriptor  # §4.5.1 [frame-begins-with-s]
        part = bytes(payload[at:])
        self._octets += len(part)
        if self._descriptor is None or not part or self._octets > MAX_FRAME_OCTETS:
            if self._told != timestamp:
                out.append(Vp8Damage(timestamp, timestamp, 0))
            self._told = timestamp
            self._forget()
            return out
        self._parts.append(part)
        if marker:  # §4.5.1 [frame-ends-with-marker]
            out.append(Vp8Frame(b"".join(self._parts), timestamp, self._descriptor))
            self._forget()
        return out

    def _forget(self) -> None:
        self._descriptor, self._parts, self._octets = None, [], 0
