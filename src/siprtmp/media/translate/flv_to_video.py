"""From FLV video tags to RTP payloads of H.264, H.265 and VP8.

Implements RFC 6184 §5 and §6, RFC 7798 §4 and §5, and RFC 7741 §4, from tags as FLV 10.1 §E.4.3.1
and E-RTMP v2 §"Enhanced Video" lay them out.

Pure: tags in, packets out.  A publisher of H.264 or H.265 sends its parameter sets once, in a tag
of their own; a phone has to get them in the stream, before each key frame, for it may have lost or
missed any earlier one.  Delimiters, fillers and enhancement information (SEI) stay behind: what a
phone shows does not need them, and packets cost.  A frame of VP8 has all that a decoder needs; the
VPCodecConfigurationRecord of a sequence start says nothing that a phone needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import suppress
from struct import Struct
from typing import ClassVar, Final, NamedTuple, Self

from p2psip.errors import LocalError
from p2psip.rtp.payload.h264 import SINGLE_NAL_MODE, pack_h264
from p2psip.rtp.payload.h264_access_units import IDR, SLICES
from p2psip.rtp.payload.h265 import kind_of, pack_h265
from p2psip.rtp.payload.h265_access_units import INTRA
from p2psip.rtp.payload.h265_access_units import SLICES as H265_SLICES
from p2psip.rtp.payload.vp8 import pack_vp8
from p2psip.sdp.h264_parameters import ProfileLevel
from rtmplite.errors import RemoteError
from rtmplite.flv.avc import PPS, SPS, AvcConfig, SequenceParameters, split_units
from rtmplite.flv.enhanced_video import VideoFourCc
from rtmplite.flv.hevc import PPS as H265_PPS
from rtmplite.flv.hevc import SPS as H265_SPS
from rtmplite.flv.hevc import VPS, HevcConfig, HevcParameters
from rtmplite.flv.video import CodecId, FieldCodecId
from siprtmp.media.translate.conversion import Packet, UnsuitableError
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference
from siprtmp.media.translate.video_tag import H264, H265, VP8, read_video

MAX_OCTETS: Final = 1200  # of a payload, Own design: with all headers less than any link carries
TICKS_PER_MS: Final = 90  # RFC 6184 §5.1 [clock-of-90-khz]
TOO_LONG: Final = "NAL units longer than a packet, which packetization mode 0 cannot carry"
_PICTURE_IDS: Final = 1 << 15  # Source: RFC 7741 §4.2
_SIZE_AT: Final = 6  # octets of VP8 before width and height, which have 14 bits of 16
_SIDE: Final = 0x3FFF
_SIDES: Final = Struct("<HH")

Payloads = list[tuple[bytes, bool]]  # each with its marker


class FlvToVideo(ABC):
    """Packs the frames of one publisher for one phone: RFC 6184 §6, RFC 7741 §4.4.

    No payload is longer than `max_octets`.  `size` has width and height of the publisher's frames,
    0 if they are not known, and `profile_level` those of H.264.
    """

    name: ClassVar[str]
    codecs: ClassVar[Collection[int]]  # in tags: the number, and the FourCC

    def __init__(self, max_octets: int = MAX_OCTETS) -> None:
        self.max_octets = max_octets
        self.size = 0, 0
        self.profile_level: ProfileLevel | None = None
        self._waiting = True  # for a key frame
        self._time: int | None = None  # ms, unbounded

    def anew(self) -> Self:
        """Make a packetizer that packs in the same way, and has seen nothing yet."""
        return type(self)(self.max_octets)

    def convert(self, body: bytes, timestamp_ms: int) -> list[Packet]:
        """The packets of a tag body of RTMP time `timestamp_ms`, none for a sequence header.

        Their time is that of showing, as RFC 6184 §5.1 asks for.  UnsuitableError for another
        codec, for what is broken, and for a NAL unit that cannot be sent; what follows a broken one
        is left out until a key frame.
        """
        if self._time is None:
            self._time = timestamp_ms
        self._time += wrapped_difference(timestamp_ms, self._time, RTMP_WRAP)
        try:
            content = read_video(body, self.codecs)
            if content is None:
                return []
            if content.is_header:
                self._begin(content.data)
                return []
            shown = self._time + content.composition
            payloads = self._pack(content.data, content.is_key, shown)
        except RemoteError as error:
            self._waiting = True
            raise UnsuitableError(error.description) from None
        # RFC 7798 §4.1 [clock-is-90000] [sets-have-the-time-of-their-picture]
        ticks = TICKS_PER_MS * shown  # RFC 6184 §5.7 [aggregate-time]
        return [Packet(ticks, payload, marker) for payload, marker in payloads]

    @abstractmethod
    def _begin(self, header: bytes) -> None:
        """Take the record of a sequence header."""

    @abstractmethod
    def _pack(self, data: bytes, is_key: bool, shown: int) -> Payloads:
        """The payloads of a frame that is shown at a time (ms), none if it cannot be decoded."""


class Record(NamedTuple):
    """What a sequence header says: octets of a NAL unit's length, and the parameter sets.

    FLV 10.1 §E.4.3.2.  There are no `sets` if some are missing.
    """

    length_size: int = 4
    sets: tuple[bytes, ...] = ()


class FlvToUnits(FlvToVideo):
    """Packs frames that are NAL units, of H.264 or H.265, with their parameter sets."""

    slices: ClassVar[Collection[int]]  # types of NAL units
    sets: ClassVar[Collection[int]]
    intra: ClassVar[Collection[int]]  # of slices where a decoder can begin
    first_at: ClassVar[int]  # octet of a slice whose highest bit is set where a frame begins

    def __init__(self, max_octets: int = MAX_OCTETS) -> None:
        super().__init__(max_octets)
        self._record = Record()
        self._announce = False  # the parameter sets, as they have changed
        self._shown: int | None = None  # ms, of the last frame

    @abstractmethod
    def _read(self, header: bytes) -> Record:
        """Read a record, and note the size."""

    @staticmethod
    @abstractmethod
    def _kind(unit: bytes) -> int:
        """The type of a NAL unit."""

    @abstractmethod
    def _payloads(self, units: list[bytes]) -> Payloads:
        """The payloads of a frame.  UnsuitableError or LocalError if one cannot be sent."""

    def _begin(self, header: bytes) -> None:
        record = self._read(header)
        self._announce |= record != self._record
        self._record = record

    def _pack(self, data: bytes, is_key: bool, shown: int) -> Payloads:
        units = split_units(data, self._record.length_size)
        usual = (*self.slices, *self.sets)
        kept = [unit for unit in units if self._kind(unit) in usual]
        kinds = {self._kind(unit) for unit in kept}
        is_key |= not kinds.isdisjoint(self.intra)
        if kinds.isdisjoint(self.slices) or (self._waiting and not is_key):
            return []
        if shown == self._shown and not self._begins(kept):  # RFC 6184 §5.1
            kept = [unit for unit in kept if self._kind(unit) in self.slices]
            if self._waiting:
                return []
        elif (is_key or self._announce) and not kinds.issuperset(self.sets):
            if not self._record.sets:
                self._waiting = True
                raise UnsuitableError("pictures without parameter sets")
            # RFC 6184 §8.2.2 [sets-among-the-pictures], §8.1 [sets-for-those-who-ask]
            # RFC 6184 §8.4 [sets-are-repeated] [sets-before-their-use]
            # RFC 6184 §6.1 [repeated-sets-are-the-same] [repeated-in-packets-of-their-own]
            kept = [
                *self._record.sets,
                *(each for each in kept if self._kind(each) not in self.sets),
            ]
        try:
            payloads = self._payloads(kept)
        except (LocalError, UnsuitableError) as error:
            self._waiting = True
            raise UnsuitableError(str(error)) from None
        self._waiting, self._announce, self._shown = False, False, shown
        return payloads

    def _begins(self, units: list[bytes]) -> bool:
        """Whether the first slice is that of a frame; one cut short is."""
        first = next(unit for unit in units if self._kind(unit) in self.slices)
        return len(first) <= self.first_at or bool(first[self.first_at] & 0x80)


class FlvToH264(FlvToUnits):
    """Packs the frames of one publisher for one phone: RFC 6184 §6.

    `mode` is the packetization mode, 0 or 1.  `profile_level` is that of the parameter set, for the
    negotiation of RFC 6184 §8.2.2: the octets of the FLV record are not always the same (Flash
    Player 11).

    Departs from RFC 6184 §8.1 [mtu-discovery]: the length is a constant that any link carries, for
    frames do not wait while a path is tried.
    Not done: RFC 6184 §8.1 [no-redundant-slices]: a publisher's redundant slices pass, for no
    encoder in use makes them, and only a look into each slice could tell.
    Not done: RFC 6184 §10 [congestion-control] [loss-is-watched]: frames leave as the publisher
    makes them; lost ones are sent again, but nothing here could make them smaller.
    Not done: RFC 4585 §7 [fair-to-tcp]: for the same reason, whatever feedback tells.
    """

    name, codecs = H264, (CodecId.AVC, VideoFourCc.AVC)
    slices, sets, intra = frozenset(SLICES), frozenset((SPS, PPS)), (IDR,)
    first_at = 1

    def __init__(self, mode: int, max_octets: int = MAX_OCTETS) -> None:
        super().__init__(max_octets)
        self.mode = mode

    def anew(self) -> Self:
        return type(self)(self.mode, self.max_octets)

    def _read(self, header: bytes) -> Record:
        config = AvcConfig.parse(header)
        self.profile_level = None
        if config.sps and len(config.sps[0]) >= 4:
            self.profile_level = ProfileLevel(*config.sps[0][1:4])
        self.size = 0, 0
        with suppress(IndexError, RemoteError):
            read = SequenceParameters.parse(config.sps[0])
            self.size = read.width, read.height
        has_all = config.sps and config.pps
        return Record(config.length_size, (*config.sps, *config.pps) if has_all else ())

    @staticmethod
    def _kind(unit: bytes) -> int:
        return unit[0] & 0x1F

    def _payloads(self, units: list[bytes]) -> Payloads:
        if self.mode == SINGLE_NAL_MODE and any(len(each) > self.max_octets for each in units):
            raise UnsuitableError(TOO_LONG)  # RFC 6184 §5.6
        return pack_h264(units, self.max_octets, self.mode)  # RFC 6184 §8.1 [mode-1]


class FlvToH265(FlvToUnits):
    """Packs the frames of one publisher for one phone: RFC 7798 §5."""

    name, codecs = H265, (FieldCodecId.HEVC, VideoFourCc.HEVC)
    slices, sets, intra = H265_SLICES, frozenset((VPS, H265_SPS, H265_PPS)), INTRA
    first_at = 2

    def _read(self, header: bytes) -> Record:
        config = HevcConfig.parse(header)
        found = [config.units(kind) for kind in (VPS, H265_SPS, H265_PPS)]
        self.size = 0, 0
        with suppress(IndexError, RemoteError):
            read = HevcParameters.parse(found[1][0])
            self.size = read.width, read.height
        return Record(config.length_size, sum(found, ()) if all(found) else ())

    @staticmethod
    def _kind(unit: bytes) -> int:
        return kind_of(unit) if len(unit) > 1 else -1

    def _payloads(self, units: list[bytes]) -> Payloads:
        return pack_h265(units, self.max_octets)


class FlvToVp8(FlvToVideo):
    """Packs the frames of one publisher for one phone; `numbers` gives those of frames."""

    name, codecs = VP8, (VideoFourCc.VP8,)

    def __init__(self, max_octets: int, numbers: Iterator[int] | None = None) -> None:
        super().__init__(max_octets)
        self._numbers = numbers or _picture_ids()

    def anew(self) -> Self:
        """Make a packetizer that continues the picture numbers of this one: RFC 7741 §4.2."""
        return type(self)(self.max_octets, self._numbers)

    def _begin(self, header: bytes) -> None:
        """It says nothing of use."""

    def _pack(self, data: bytes, is_key: bool, shown: int) -> Payloads:
        if not data or (self._waiting and not is_key):
            return []
        self._waiting = False
        if is_key:
            self.size = vp8_size(data) or self.size
        return pack_vp8(data, self.max_octets, next(self._numbers))


def _picture_ids() -> Iterator[int]:
    number = 0
    while True:
        number = (number + 1) % _PICTURE_IDS
        yield number


def vp8_size(key_frame: bytes) -> tuple[int, int] | None:
    """Width and height of a key frame (RFC 6386, not in the catalogue), None if it is cut short."""
    if len(key_frame) < _SIZE_AT + _SIDES.size:
        return None
    width, height = _SIDES.unpack_from(key_frame, _SIZE_AT)
    return width & _SIDE, height & _SIDE
