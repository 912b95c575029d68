"""From FLV video tags to RTP payloads, for codecs whose frames are NAL units.

Implements RFC 6184 §5 and §6, from tags as FLV 10.1 §E.4.3.1 lays them out, or E-RTMP v2
§"Enhanced Video"; RFC 7798 §4 and §5 are alike in all that is here.

Pure: tags in, packets out.  A publisher sends its parameter sets once, in a tag of their own; a
phone has to get them in the stream, before each key frame, for it may have lost or missed any
earlier one.  Delimiters, fillers and enhancement information (SEI) stay behind: what a phone shows
does not need them, and packets cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from p2psip.errors import LocalError
from rtmplite.errors import RemoteError
from rtmplite.flv.avc import split_units
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.flv.enhanced_video import ExVideoTag, VideoPacketType, VideoTrack
from rtmplite.flv.video import CODEC_NAMES, AvcPacketType, FrameType, VideoTag
from siprtmp.media.translate.flv_to_rtp import Packet, UnsuitableError
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

MAX_OCTETS: Final = 1200  # of a payload, Own design: with all headers less than any link carries
TICKS_PER_MS: Final = 90  # RFC 6184 §5.1 [clock-of-90-khz]
CODED: Final = (VideoPacketType.CODED_FRAMES, VideoPacketType.CODED_FRAMES_X)


class Config(Protocol):
    """A record with parameter sets: FLV 10.1 §E.4.3.2."""

    @property
    def length_size(self) -> int:
        """The octets of a NAL unit's length: FLV 10.1 §E.4.3.2."""


ConfigT = TypeVar("ConfigT", bound=Config)
Coded: TypeAlias = tuple[bool, int, bytes]
"""Whether a tag has a key frame, composition time (ms), and NAL units with their lengths."""


class FlvToUnits(ABC, Generic[ConfigT]):
    """Packs the frames of one publisher for one phone: RFC 6184 §6.

    No payload is longer than `max_octets`.
    """

    name: ClassVar[str]  # of the codec
    codec_id: ClassVar[int]  # in tags
    four_cc: ClassVar[int]
    slices: ClassVar[Collection[int]]  # types of NAL units
    sets: ClassVar[Collection[int]]
    intra: ClassVar[Collection[int]]  # of slices where a decoder can begin
    first_at: ClassVar[int]  # octet of a slice whose highest bit is set where a frame begins

    def __init__(self, max_octets: int = MAX_OCTETS) -> None:
        self.max_octets = max_octets
        self._config: ConfigT | None = None
        self._waiting = True  # for a key frame
        self._announce = False  # the parameter sets, as they have changed
        self._time: int | None = None  # ms, unbounded
        self._shown: int | None = None  # ms, of the last frame

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the publisher's frames, 0 if they are not known: FLV 10.1 §E.5."""
        try:
            return self._size_of(self._config) if self._config is not None else (0, 0)
        except (IndexError, RemoteError):
            return 0, 0

    @abstractmethod
    def anew(self) -> Self:
        """Another one that packs in the same way, and has seen nothing yet: RFC 6184 §5."""

    @staticmethod
    @abstractmethod
    def _config_of(data: bytes) -> ConfigT:
        """The record of a sequence header."""

    @staticmethod
    @abstractmethod
    def _size_of(config: ConfigT) -> tuple[int, int]:
        """Width and height by a record.  IndexError without a set."""

    def _read(self, body: bytes) -> ConfigT | Coded | None:
        """Read a tag body: a sequence header, a frame, or what has neither."""
        if body[:1] < b"\x80":
            content = numbered(body, self.codec_id)
            return self._config_of(content.data) if isinstance(content, VideoTag) else content
        found = track_of(body, self.four_cc)
        if found is None:
            return None
        if found[0].packet_type == VideoPacketType.SEQUENCE_START:
            return self._config_of(found[1].data)
        return coded(*found)

    @staticmethod
    @abstractmethod
    def _kind(unit: bytes) -> int:
        """The type of a NAL unit."""

    @abstractmethod
    def _sets_of(self, config: ConfigT) -> Sequence[bytes]:
        """The parameter sets of a record, none if some are missing."""

    @abstractmethod
    def _payloads(self, units: list[bytes]) -> list[tuple[bytes, bool]]:
        """The payloads of a frame, each with its marker.

        UnsuitableError or LocalError if one cannot be sent.
        """

    def restart(self) -> None:
        """Send nothing until a key frame: the phone has missed frames.  RFC 6184 §5."""
        self._waiting = True

    def convert(self, body: bytes, timestamp_ms: int) -> list[Packet]:
        """The packets of a tag body of RTMP time `timestamp_ms`: FLV 10.1 §E.4.3.1.

        Their time is that of showing, as RFC 6184 §5.1 asks for.  UnsuitableError for another
        codec, for what is broken, and for a NAL unit that cannot be sent; what follows is left out
        until a key frame.
        """
        if self._time is None:
            self._time = timestamp_ms
        self._time += wrapped_difference(timestamp_ms, self._time, RTMP_WRAP)
        try:
            content = self._read(body)
            if content is None:
                return []
            if not isinstance(content, tuple):
                self._announce |= content != self._config
                self._config = content
                return []
            is_key, composition, data = content
            length_size = self._config.length_size if self._config is not None else 4
            units = split_units(data, length_size)
        except RemoteError as error:
            self._waiting = True
            raise UnsuitableError(error.description) from None
        return self._pack(units, is_key, self._time + composition)

    def _pack(self, units: list[bytes], is_key: bool, shown: int) -> list[Packet]:
        kept = [unit for unit in units if self._kind(unit) in (*self.slices, *self.sets)]
        kinds = {self._kind(unit) for unit in kept}
        is_key |= not kinds.isdisjoint(self.intra)
        if kinds.isdisjoint(self.slices) or (self._waiting and not is_key):
            return []
        if shown == self._shown and not self._begins(kept):  # RFC 6184 §5.1
            kept = [unit for unit in kept if self._kind(unit) in self.slices]
            if self._waiting:
                return []
        elif (is_key or self._announce) and not kinds.issuperset(self.sets):
            sets = self._sets_of(self._config) if self._config is not None else ()
            if not sets:
                self._waiting = True
                raise UnsuitableError("pictures without parameter sets")
            # RFC 6184 §8.2.2 [sets-among-the-pictures], §8.1 [sets-for-those-who-ask]
            # RFC 6184 §8.4 [sets-are-repeated] [sets-before-their-use]
            # RFC 6184 §6.1 [repeated-sets-are-the-same] [repeated-in-packets-of-their-own]
            kept = [*sets, *(unit for unit in kept if self._kind(unit) not in self.sets)]
        try:
            payloads = self._payloads(kept)
        except (LocalError, UnsuitableError) as error:
            self._waiting = True
            raise UnsuitableError(str(error)) from None
        self._waiting, self._announce, self._shown = False, False, shown
        # RFC 7798 §4.1 [clock-is-90000] [sets-have-the-time-of-their-picture]
        ticks = TICKS_PER_MS * shown  # RFC 6184 §5.7 [aggregate-time]
        return [Packet(ticks, payload, marker) for payload, marker in payloads]

    def _begins(self, units: list[bytes]) -> bool:
        """Whether the first slice is that of a frame; one cut short is."""
        first = next(unit for unit in units if self._kind(unit) in self.slices)
        return len(first) <= self.first_at or bool(first[self.first_at] & 0x80)


def refused(body: bytes) -> UnsuitableError:
    """The error for a tag of a codec with a number: FLV 10.1 §E.4.3.1."""
    number = VideoTag.parse(body).codec_id
    return UnsuitableError(f"video codec {CODEC_NAMES.get(number, number)}")


def numbered(body: bytes, codec_id: int) -> VideoTag | Coded | None:
    """Read a tag with a codec's number: the header as it is, or a frame.  FLV 10.1 §E.4.3.1.

    None for other packets; UnsuitableError for another codec.
    """
    tag = VideoTag.parse(body)
    if tag.codec_id != codec_id:
        raise refused(body)
    if tag.avc_packet_type == AvcPacketType.SEQUENCE_HEADER:
        return tag
    if tag.avc_packet_type != AvcPacketType.NALU:
        return None
    return tag.frame_type == FrameType.KEY, tag.composition_time, tag.data


def track_of(body: bytes, four_cc: int) -> tuple[ExVideoTag, VideoTrack] | None:
    """A tag with FourCCs, and its default track: E-RTMP v2 §"Enhanced Video".

    None without one, and for metadata; UnsuitableError for another codec.
    """
    tag = ExVideoTag.parse(body)
    track = next((each for each in tag.tracks if not each.track_id), None)
    if track is None or tag.packet_type == VideoPacketType.METADATA:
        return None
    if track.four_cc != four_cc:
        raise UnsuitableError(f"video codec {four_cc_text(track.four_cc)}")
    return tag, track


def coded(tag: ExVideoTag, track: VideoTrack) -> Coded | None:
    """The frame of a track, None without: E-RTMP v2 §"Enhanced Video"."""
    if tag.packet_type not in CODED:
        return None
    return tag.frame_type == FrameType.KEY, track.composition_time, track.data
