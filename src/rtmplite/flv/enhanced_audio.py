"""Enhanced audio: codecs by FourCC, several tracks in a message, and the place of each channel.

Implements E-RTMP v2 §"Enhanced Audio".  A media path that never looks deeper has `enhanced_raw`.

    >>> tag = ExAudioTag(AudioPacketType.CODED_FRAMES, (AudioTrack(AudioFourCc.OPUS, b"..."),))
    >>> bytes(tag)
    b'\\x91Opus...'
    >>> MultichannelConfig.parse(bytes.fromhex("01 02 00000003")).channels
    (<Channel.FRONT_LEFT: 0>, <Channel.FRONT_RIGHT: 1>)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.audio import SoundFormat
from rtmplite.flv.enhanced import (
    ModEx,
    byte,
    nanosecond_offset,
    read_mod_ex,
    read_multitrack,
    read_tracks,
    write_mod_ex,
    write_tracks,
)

_FIRST: Final = SoundFormat.EXTENDED << 4  # §"Enhanced Audio" [sound-format-9]


class AudioPacketType(IntEnum):
    """The contents of a packet: §"Enhanced Audio" [audio-packet-types]."""

    SEQUENCE_START = 0
    CODED_FRAMES = 1
    SEQUENCE_END = 2
    MULTICHANNEL_CONFIG = 4
    MULTITRACK = 5
    MOD_EX = 7


class AudioFourCc(IntEnum):
    """The codecs: §"Enhanced Audio" [audio-fourccs]."""

    AC3 = 0x61632D33  # ac-3
    EAC3 = 0x65632D33  # ec-3
    OPUS = 0x4F707573  # Opus
    MP3 = 0x2E6D7033  # .mp3
    FLAC = 0x664C6143  # fLaC
    AAC = 0x6D703461  # mp4a


class ChannelOrder(IntEnum):
    """The order of channels in a `MultichannelConfig`: §"Enhanced Audio" [channel-orders]."""

    UNSPECIFIED = 0
    NATIVE = 1
    CUSTOM = 2


class Channel(IntEnum):
    """Loudspeakers by number: bytes of a mapping, bits of a mask: §"Enhanced Audio" [channels]."""

    FRONT_LEFT = 0
    FRONT_RIGHT = 1
    FRONT_CENTER = 2
    LOW_FREQUENCY_1 = 3
    BACK_LEFT = 4
    BACK_RIGHT = 5
    FRONT_LEFT_CENTER = 6
    FRONT_RIGHT_CENTER = 7
    BACK_CENTER = 8
    SIDE_LEFT = 9
    SIDE_RIGHT = 10
    TOP_CENTER = 11
    TOP_FRONT_LEFT = 12
    TOP_FRONT_CENTER = 13
    TOP_FRONT_RIGHT = 14
    TOP_BACK_LEFT = 15
    TOP_BACK_CENTER = 16
    TOP_BACK_RIGHT = 17
    LOW_FREQUENCY_2 = 18
    TOP_SIDE_LEFT = 19
    TOP_SIDE_RIGHT = 20
    BOTTOM_FRONT_CENTER = 21
    BOTTOM_FRONT_LEFT = 22
    BOTTOM_FRONT_RIGHT = 23
    UNUSED = 0xFE
    UNKNOWN = 0xFF


def mask(channels: Iterable[int]) -> int:
    """The channels as bits, for native order: §"Enhanced Audio"."""
    return sum(1 << channel for channel in set(channels))  # §"Enhanced Audio" [channel-mask]


@dataclass(frozen=True, slots=True)
class MultichannelConfig:
    """The loudspeaker of each channel: custom `mapping` or native `flags`: §"Enhanced Audio"."""

    order: int
    channel_count: int
    mapping: tuple[int, ...] = ()
    flags: int = 0

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read the body: §"Enhanced Audio".  RemoteError for an unknown order or wrong size."""
        # §"Enhanced Audio" [multichannel-config]
        order, count = byte(data, 0), byte(data, 1)
        # §"Enhanced Audio" [multichannel-config]
        sizes = {ChannelOrder.UNSPECIFIED: 0, ChannelOrder.NATIVE: 4, ChannelOrder.CUSTOM: count}
        if order not in tuple(ChannelOrder):
            raise RemoteError(f"channel order {order}")
        if len(data) != 2 + sizes[ChannelOrder(order)]:
            raise RemoteError(f"a multichannel configuration of {len(data)} bytes")
        if order == ChannelOrder.NATIVE:
            # §"Enhanced Audio" [multichannel-config]
            return cls(order, count, flags=int.from_bytes(data[2:], "big"))
        # §"Enhanced Audio" [multichannel-config]
        return cls(order, count, tuple(data[2:]))

    def __bytes__(self) -> bytes:
        if len(self.mapping) != (self.channel_count if self.order == ChannelOrder.CUSTOM else 0):
            raise LocalError("custom order, and nothing else, maps every channel")
        if self.flags and self.order != ChannelOrder.NATIVE:
            raise LocalError("native order, and nothing else, has flags")
        head = bytes((self.order, self.channel_count))
        if self.order == ChannelOrder.NATIVE:
            return head + self.flags.to_bytes(4, "big")
        return head + bytes(self.mapping)

    @property
    def channels(self) -> tuple[int, ...]:
        """The loudspeakers in the order of the bitstream, empty if that is unspecified."""
        if self.order == ChannelOrder.NATIVE:
            # §"Enhanced Audio" [channel-mask]
            return tuple(each for each in Channel if self.flags >> each & 1)
        return self.mapping


@dataclass(frozen=True, slots=True)
class AudioTrack:
    """One track's share of a message, with any FourCC, its id 0 if alone: §"Enhanced Audio"."""

    four_cc: int
    data: bytes
    track_id: int = 0


@dataclass(frozen=True, slots=True)
class ExAudioTag:
    """The body of an audio tag or message whose codecs have FourCCs: §"Enhanced Audio".

    `packet_type` is that of the tracks; `multitrack` is how they are laid out, None for a single
    one without an id.
    """

    packet_type: int
    tracks: tuple[AudioTrack, ...]
    multitrack: int | None = None
    mod_ex: tuple[ModEx, ...] = ()

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read an audio payload: §"Enhanced Audio".

        RemoteError if it is no enhanced one or not whole, or its layout is unknown.  A FourCC or a
        packet type that is unknown has a known layout, and is kept as it is.
        """
        first, multitrack = byte(payload, 0), None
        if first >> 4 != SoundFormat.EXTENDED:  # §"Enhanced Audio" [sound-format-9]
            raise RemoteError("this audio has no ExAudioTagHeader")
        mod_ex, packet_type, at = read_mod_ex(payload, first & 0x0F)
        if packet_type == AudioPacketType.MULTITRACK:  # §"Enhanced Audio" [multitrack-not-nested]
            multitrack, packet_type = read_multitrack(payload, at, AudioPacketType.MULTITRACK)
            at += 1
        # §"Enhanced Audio" [fails-controlled] [process-completely]
        pieces = read_tracks(payload, at, multitrack)
        tracks = tuple(AudioTrack(codec, data, track_id) for track_id, codec, data in pieces)
        return cls(packet_type, tracks, multitrack, tuple(mod_ex))

    def __bytes__(self) -> bytes:
        if self.packet_type in (AudioPacketType.MULTITRACK, AudioPacketType.MOD_EX):
            raise LocalError(f"{self.packet_type} is no packet type of a track")
        packet_type = self.packet_type
        if self.multitrack is not None:
            packet_type = AudioPacketType.MULTITRACK
        head = write_mod_ex(_FIRST, self.mod_ex, packet_type)
        pieces = [(track.track_id, track.four_cc, track.data) for track in self.tracks]
        return head + write_tracks(self.packet_type, pieces, self.multitrack)

    @property
    def nanosecond_offset(self) -> int:
        """Return the offset from the tag's time in ns: §"Enhanced Audio"."""
        return nanosecond_offset(self.mod_ex)  # §"Enhanced Audio" [nano-offset]


def is_silence(payload: bytes | memoryview) -> bool:
    """Whether silence follows: empty, or a sequence's end: §"Enhanced Audio"."""
    # §"Enhanced Audio" [silence]
    return not payload or (
        payload[0] >> 4 == SoundFormat.EXTENDED
        and payload[0] & 0x0F == AudioPacketType.SEQUENCE_END
    )
