"""The parts that enhanced audio and video share: FourCCs, ModEx, several tracks in a message.

Implements E-RTMP v2 §"Enhanced Video"; E-RTMP v2 §"Enhanced Audio" has the same parts.

    >>> hex(four_cc("av01")), four_cc_text(0x4F707573)
    ('0x61763031', 'Opus')
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self, TypeAlias

from rtmplite.errors import LocalError, RemoteError

MOD_EX: Final = 7  # the packet type, the same for both media: §"Enhanced Video"
MAX_MOD_EX: Final = 16  # of one packet.  Own design: one kind is defined, and it comes once
MAX_TRACKS: Final = 256  # of one message, as many as there are track ids: §"Enhanced Video"
MAX_OFFSET: Final = 999_999  # ns: §"Enhanced Video"

_MAX_SIZE: Final = 0xFFFFFF  # bytes, UI24: §"Enhanced Video"
_LONG: Final = 256  # the size that means: see the next two bytes

Piece: TypeAlias = tuple[int, int, bytes]  # track id, FourCC, and what belongs to that track


def four_cc(text: str) -> int:
    """Give four characters as a number: E-RTMP v2 §"Simple Data Types".  Else LocalError."""
    raw = text.encode("latin-1", "replace")
    if len(raw) != 4:
        raise LocalError(f"{text!r} has not four characters")
    return int.from_bytes(raw, "big")  # E-RTMP v2 §"Simple Data Types" [big-endian]


def four_cc_text(number: int) -> str:
    """The four characters of a number, any byte being one: E-RTMP v2 §"Simple Data Types"."""
    return number.to_bytes(4, "big").decode("latin-1")


class MultitrackType(IntEnum):
    """The layout of the tracks of a message: §"Enhanced Video" [multitrack-types]."""

    ONE_TRACK = 0
    MANY_TRACKS = 1
    MANY_TRACKS_MANY_CODECS = 2


class ModExType(IntEnum):
    """The kinds of ModEx, by the property it modifies: §"Enhanced Video"."""

    TIMESTAMP_OFFSET_NANO = 0


@dataclass(frozen=True, slots=True)
class ModEx:
    """One modifier in front of a packet, 1 to 65536 bytes of it: §"Enhanced Video"."""

    kind: int
    data: bytes

    @classmethod
    def offset(cls, nanoseconds: int) -> Self:
        """Delay a packet by less than 1 ms: §"Enhanced Video".  LocalError beyond that."""
        if not 0 <= nanoseconds <= MAX_OFFSET:
            raise LocalError(f"an offset of {nanoseconds} ns")
        # §"Enhanced Video" [nano-offset]
        return cls(ModExType.TIMESTAMP_OFFSET_NANO, nanoseconds.to_bytes(3, "big"))

    @property
    def nanoseconds(self) -> int | None:
        """Return the offset in ns, None for another modifier: §"Enhanced Video"."""
        if self.kind != ModExType.TIMESTAMP_OFFSET_NANO:
            return None
        return int.from_bytes(self.data[:3], "big")  # §"Enhanced Video" [nano-offset]


def nanosecond_offset(mod_ex: Sequence[ModEx]) -> int:
    """The modifiers' offset to a tag's time, in ns; the last one counts: §"Enhanced Video"."""
    offsets = [each.nanoseconds for each in mod_ex if each.nanoseconds is not None]
    return offsets[-1] if offsets else 0


def read_mod_ex(payload: bytes | memoryview, packet_type: int) -> tuple[list[ModEx], int, int]:
    """Read the modifiers after the first byte, whose packet type is given.

    The modifiers, the packet type that follows them, and where the header goes on:
    §"Enhanced Video".  RemoteError if they are cut short, too many, or an offset
    has less than its three bytes.
    """
    found: list[ModEx] = []
    at = 1
    while packet_type == MOD_EX:  # §"Enhanced Video" [mod-ex-chain]
        if len(found) == MAX_MOD_EX:
            raise RemoteError(f"more than {MAX_MOD_EX} ModEx in a packet")
        data, at = _mod_ex_data(payload, at)
        kinds, at = byte(payload, at), at + 1
        found.append(ModEx(kinds >> 4, data))  # §"Enhanced Video" [mod-ex-chain]
        packet_type = kinds & 0x0F  # §"Enhanced Video" [mod-ex-chain]
        # §"Enhanced Video" [nano-offset]
        if found[-1].kind == ModExType.TIMESTAMP_OFFSET_NANO and len(data) < 3:
            raise RemoteError(f"a nanosecond offset of {len(data)} bytes")
    return found, packet_type, at


def _mod_ex_data(payload: bytes | memoryview, at: int) -> tuple[bytes, int]:
    size, at = byte(payload, at) + 1, at + 1  # §"Enhanced Video" [mod-ex-size]
    if size == _LONG:
        # §"Enhanced Video" [mod-ex-size]
        size, at = (byte(payload, at) << 8 | byte(payload, at + 1)) + 1, at + 2
    if at + size > len(payload):
        raise RemoteError("a ModEx is cut short")
    return bytes(payload[at : at + size]), at + size


def write_mod_ex(first: int, mod_ex: Sequence[ModEx], packet_type: int) -> bytes:
    """Write a first byte, whose high half is given, and the modifiers: §"Enhanced Video"."""
    parts = [bytes((first | (MOD_EX if mod_ex else packet_type),))]
    for at, each in enumerate(mod_ex, 1):
        size = len(each.data)
        if not 1 <= size <= 1 << 16:
            raise LocalError(f"a ModEx of {size} bytes")
        # §"Enhanced Video" [mod-ex-chain]
        following = packet_type if at == len(mod_ex) else MOD_EX
        # §"Enhanced Video" [mod-ex-size]
        length = bytes((size - 1,)) if size < _LONG else b"\xff" + (size - 1).to_bytes(2, "big")
        parts += length, each.data, bytes((each.kind << 4 | following,))
    return b"".join(parts)


def read_multitrack(payload: bytes | memoryview, at: int, multitrack: int) -> tuple[int, int]:
    """Read layout and packet type behind `multitrack`: §"Enhanced Video".  RemoteError."""
    both = byte(payload, at)
    if both >> 4 not in tuple(MultitrackType):  # §"Enhanced Video" [multitrack-types]
        raise RemoteError(f"multitrack type {both >> 4}")
    if both & 0x0F in (multitrack, MOD_EX):  # §"Enhanced Video" [multitrack-not-nested]
        raise RemoteError(f"packet type {both & 0x0F} within a multitrack packet")
    return both >> 4, both & 0x0F  # §"Enhanced Video" [multitrack-types]


def read_tracks(payload: bytes | memoryview, at: int, multitrack: int | None) -> list[Piece]:
    """Split a body into tracks, one without `multitrack`: §"Enhanced Video".  RemoteError."""
    codec = 0
    if multitrack != MultitrackType.MANY_TRACKS_MANY_CODECS:
        codec, at = _number(payload, at, 4), at + 4
    if multitrack is None:
        return [(0, codec, bytes(payload[at:]))]
    if multitrack == MultitrackType.ONE_TRACK:
        return [(byte(payload, at), codec, bytes(payload[at + 1 :]))]
    pieces: list[Piece] = []
    # §"Enhanced Video" [process-completely], and E-RTMP v2 §"Multitrack Media Message Guidelines"
    # [all-tracks].
    while at < len(payload) or not pieces:
        if len(pieces) == MAX_TRACKS:
            raise RemoteError(f"more than {MAX_TRACKS} tracks in a message")
        if multitrack == MultitrackType.MANY_TRACKS_MANY_CODECS:
            codec, at = _number(payload, at, 4), at + 4
        # §"Enhanced Video" [track-id] [track-size]
        track_id, size, at = byte(payload, at), _number(payload, at + 1, 3), at + 4
        if at + size > len(payload):  # §"Enhanced Video" [track-size]
            raise RemoteError(f"track {track_id} is cut short")
        pieces.append((track_id, codec, bytes(payload[at : at + size])))
        at += size
    return pieces


def write_tracks(packet_type: int, pieces: Sequence[Piece], multitrack: int | None) -> bytes:
    """Write tracks behind the packet type: §"Enhanced Video".  LocalError if they do not fit."""
    many = multitrack in (MultitrackType.MANY_TRACKS, MultitrackType.MANY_TRACKS_MANY_CODECS)
    codecs = {codec for _, codec, _ in pieces}
    # E-RTMP v2 §"Multitrack Media Message Guidelines" [distinct-ids]
    if len({track_id for track_id, _, _ in pieces}) < len(pieces):
        raise LocalError("two tracks of one id in a message")
    if not pieces or (len(pieces) > 1 and not many):  # §"Enhanced Video" [multitrack-types]
        raise LocalError(f"{len(pieces)} tracks in a message of multitrack type {multitrack}")
    if len(codecs) > 1 and multitrack != MultitrackType.MANY_TRACKS_MANY_CODECS:
        raise LocalError("tracks of several codecs in a message of one")
    shared = codecs.pop().to_bytes(4, "big")
    if multitrack is None:
        return shared + pieces[0][2]
    parts = [bytes((multitrack << 4 | packet_type,))]
    if multitrack != MultitrackType.MANY_TRACKS_MANY_CODECS:
        parts.append(shared)
    for track_id, codec, data in pieces:
        if len(data) > _MAX_SIZE:  # §"Enhanced Video" [track-size]
            raise LocalError(f"a track of {len(data)} bytes")
        if multitrack == MultitrackType.MANY_TRACKS_MANY_CODECS:
            parts.append(codec.to_bytes(4, "big"))
        # §"Enhanced Video" [track-id], and E-RTMP v2 §"Multitrack Media Message Guidelines"
        # [video-track-id] [audio-track-id].
        parts.append(bytes((track_id,)))
        if many:
            parts.append(len(data).to_bytes(3, "big"))  # §"Enhanced Video" [track-size]
        parts.append(data)
    return b"".join(parts)


def byte(payload: bytes | memoryview, at: int) -> int:
    """The byte at `at`.  Own design: RemoteError if the payload ends before it."""
    if at >= len(payload):
        raise RemoteError("an enhanced tag is cut short")
    return payload[at]


def _number(payload: bytes | memoryview, at: int, size: int) -> int:
    if at + size > len(payload):
        raise RemoteError("an enhanced tag is cut short")
    return int.from_bytes(payload[at : at + size], "big")
