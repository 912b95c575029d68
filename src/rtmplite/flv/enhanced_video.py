"""Enhanced video: codecs by FourCC, several tracks in a message, metadata and seek commands.

Implements E-RTMP v2 §"Enhanced Video".  E-RTMP v1 §"Defining Additional Video Codecs" is the part
of it without tracks and ModEx.  A media path that never looks deeper has `enhanced_raw`.

    >>> frame = VideoTrack(VideoFourCc.HEVC, b"...", composition_time=40)
    >>> tag = ExVideoTag(FrameType.KEY, VideoPacketType.CODED_FRAMES, (frame,))
    >>> bytes(tag).hex(" ")
    '91 68 76 63 31 00 00 28 2e 2e 2e'
    >>> ExVideoTag.parse(bytes(tag)) == tag
    True
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.enhanced import (
    ModEx,
    Piece,
    byte,
    nanosecond_offset,
    read_mod_ex,
    read_multitrack,
    read_tracks,
    write_mod_ex,
    write_tracks,
)
from rtmplite.flv.video import FrameType

# §"Enhanced Video" [is-ex-header], E-RTMP v1 §"Defining Additional Video Codecs" [is-ex-header].
IS_EX_HEADER: Final = 0x80


class VideoPacketType(IntEnum):
    """The contents of a packet: §"Enhanced Video" [video-packet-types].

    The first six are also E-RTMP v1 §"Defining Additional Video Codecs" [packet-types].
    """

    SEQUENCE_START = 0
    CODED_FRAMES = 1
    SEQUENCE_END = 2
    CODED_FRAMES_X = 3
    METADATA = 4
    MPEG2TS_SEQUENCE_START = 5
    MULTITRACK = 6
    MOD_EX = 7


class VideoFourCc(IntEnum):
    """The codecs: §"Enhanced Video" [video-fourccs].

    AV1, VP9 and HEVC are E-RTMP v1 §"Defining Additional Video Codecs" [fourccs].
    """

    VP8 = 0x76703038  # vp08
    VP9 = 0x76703039  # vp09
    AV1 = 0x61763031  # av01
    AVC = 0x61766331  # avc1
    HEVC = 0x68766331  # hvc1
    VVC = 0x76766331  # vvc1


class VideoCommand(IntEnum):
    """The command of a frame without video: §"Enhanced Video" [video-commands]."""

    START_SEEK = 0
    END_SEEK = 1


_REORDERED: Final = (VideoFourCc.AVC, VideoFourCc.HEVC, VideoFourCc.VVC)


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """One track's share of a message: §"Enhanced Video".

    `four_cc` is a number that `VideoFourCc` names, or any other.  `composition_time` is in ms,
    signed, and 0 where the wire has none; `track_id` is 0 unless the message is of several tracks.
    """

    four_cc: int
    data: bytes
    track_id: int = 0
    composition_time: int = 0


@dataclass(frozen=True, slots=True)
class ExVideoTag:
    """The body of a video tag or message whose codecs have FourCCs: §"Enhanced Video".

    `packet_type` is that of the tracks; `multitrack` is how they are laid out, None for a single
    one without an id.  A `command` comes instead of tracks, its packet type meaning nothing.
    """

    frame_type: int
    packet_type: int
    tracks: tuple[VideoTrack, ...] = ()
    multitrack: int | None = None
    command: int | None = None
    mod_ex: tuple[ModEx, ...] = ()

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read a video payload: §"Enhanced Video".

        RemoteError if it is no enhanced one or not whole, or its layout is unknown.  A FourCC or a
        packet type that is unknown has a known layout, and is kept as it is.
        """
        first = byte(payload, 0)
        # §"Enhanced Video" [fails-controlled], E-RTMP v1 §"Defining Additional Video Codecs"
        # [fails-gracefully].
        if not first & IS_EX_HEADER:
            raise RemoteError("this video has no ExVideoTagHeader")
        frame_type, multitrack = first >> 4 & 7, None
        mod_ex, packet_type, at = read_mod_ex(payload, first & 0x0F)
        if frame_type == FrameType.INFO_OR_COMMAND and not _is_metadata(payload, packet_type, at):
            if len(payload) != at + 1:  # §"Enhanced Video" [command-has-no-body]
                raise RemoteError("a video command has one byte")
            # §"Enhanced Video" [video-commands]
            return cls(frame_type, packet_type, command=payload[at], mod_ex=tuple(mod_ex))
        if packet_type == VideoPacketType.MULTITRACK:
            multitrack, packet_type = read_multitrack(payload, at, VideoPacketType.MULTITRACK)
            at += 1
        # §"Enhanced Video" [process-completely]
        tracks = (_track(packet_type, piece) for piece in read_tracks(payload, at, multitrack))
        return cls(frame_type, packet_type, tuple(tracks), multitrack, None, tuple(mod_ex))

    def __bytes__(self) -> bytes:
        is_command = (
            self.frame_type == FrameType.INFO_OR_COMMAND
            and self.packet_type != VideoPacketType.METADATA
        )
        if is_command != (self.command is not None):
            raise LocalError("a frame of type 5, and nothing else, has a command")
        packet_type = self.packet_type
        if self.multitrack is not None:
            packet_type = VideoPacketType.MULTITRACK
        head = write_mod_ex(IS_EX_HEADER | self.frame_type << 4, self.mod_ex, packet_type)
        if self.command is not None:
            return head + bytes((self.command,))
        if self.packet_type in (VideoPacketType.MULTITRACK, VideoPacketType.MOD_EX):
            raise LocalError(f"{self.packet_type} is no packet type of a track")
        pieces = [_piece(self.packet_type, track) for track in self.tracks]
        return head + write_tracks(self.packet_type, pieces, self.multitrack)

    @property
    def nanosecond_offset(self) -> int:
        """Return the offset from the tag's time in ns: §"Enhanced Video"."""
        return nanosecond_offset(self.mod_ex)  # §"Enhanced Video" [nano-offset]


def has_composition_time(packet_type: int, codec: int) -> bool:
    """Whether three bytes of composition time come first: §"Enhanced Video"."""
    # §"Enhanced Video" [composition-time], and for HEVC E-RTMP v1
    # §"Defining Additional Video Codecs" [composition-time]
    return packet_type == VideoPacketType.CODED_FRAMES and codec in _REORDERED


def _is_metadata(payload: bytes | memoryview, packet_type: int, at: int) -> bool:
    """Whether the frame type is to be ignored: §"Enhanced Video".

    The text says so of the packet type that is found in the end, though its pseudocode asks before
    it looks into a multitrack packet; a command has one byte there, metadata never.
    """
    if packet_type == VideoPacketType.MULTITRACK and len(payload) > at + 1:
        packet_type = payload[at] & 0x0F
    # §"Enhanced Video" [metadata-ignores-frame-type]
    return packet_type == VideoPacketType.METADATA


def _track(packet_type: int, piece: Piece) -> VideoTrack:
    track_id, codec, data = piece
    if not has_composition_time(packet_type, codec):
        return VideoTrack(codec, data, track_id)
    if len(data) < 3:
        raise RemoteError("a composition time is cut short")
    return VideoTrack(codec, data[3:], track_id, int.from_bytes(data[:3], "big", signed=True))


def _piece(packet_type: int, track: VideoTrack) -> Piece:
    if not has_composition_time(packet_type, track.four_cc):
        if track.composition_time:
            raise LocalError("this packet has no room for a composition time")
        return track.track_id, track.four_cc, track.data
    if not -(1 << 23) <= track.composition_time < 1 << 23:
        raise LocalError(f"a composition time of {track.composition_time} ms")
    time = track.composition_time.to_bytes(3, "big", signed=True)
    return track.track_id, track.four_cc, time + track.data
