"""From a phone's packets of H.264, H.265 and VP8 to FLV video tags.

Implements FLV 10.1 §E.4.3.1 and §E.4.3.2 for H.264, and E-RTMP v2 §"Enhanced Video" for the others,
from the frames of RFC 6184 §5, RFC 7798 §4.1 and RFC 7741 §4.5.1.

Pure: packets in, tags out.  A player needs the parameter sets before the first frame and all
slices of a frame in one tag; a phone sends the sets once, or in its description alone, and
slices as it likes.  What a lost frame has spoilt is never passed on: the video freezes until
the next IDR picture, which `wants_key_frame` says to ask for.  A stream that has none, because it
is refreshed bit by bit behind recovery points (`x264 --intra-refresh`), shows nothing until the
phone answers a request with an IDR picture: no player could tell when it is whole.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Generic, SupportsBytes, TypeVar

from p2psip.rtp.payload.h264_access_units import SLICES, AccessUnit, AccessUnitAssembler
from p2psip.rtp.payload.h264_unpacker import H264Unpacker
from p2psip.rtp.payload.h265 import kind_of
from p2psip.rtp.payload.h265_access_units import SLICES as H265_SLICES
from p2psip.rtp.payload.h265_access_units import H265AccessUnitAssembler, H265Unpacker
from p2psip.rtp.payload.vp8 import Vp8Damage, Vp8Unpacked, Vp8Unpacker
from rtmplite.flv.avc import join_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.parameter_sets import AvcSets, HevcSets, Sets
from rtmplite.flv.video import FrameType
from siprtmp.media.translate.conversion import Tag
from siprtmp.media.translate.flv_to_video import vp8_size
from siprtmp.media.translate.timebase import RTP_WRAP, MediaClock, wrapped_difference
from siprtmp.media.translate.video_tag import H264, H265, VP8

CLOCK_RATE: Final = 90_000  # ticks a second: RFC 6184 §5.1 [clock-of-90-khz]
MAX_REORDER: Final = 16  # frames, as many as any decoder keeps
MAX_LEARNT: Final = 4  # frames of these that a stream alone shows, as a deep pyramid has
_KEY, _INTER, _HEADER = b"\x17\x01", b"\x27\x01", b"\x17\x00\0\0\0"  # AVC: FLV 10.1 §E.4.3.1

FrameT = TypeVar("FrameT", AccessUnit, Vp8Unpacked)
Moments = Callable[[int], tuple[int, float | None]]


class VideoToFlv(ABC, Generic[FrameT]):
    """Turns one phone's packets of a codec into tags: FLV 10.1 §E.4.3.1.

    `wants_key_frame` is true while frames are held back that only a key frame can follow, and
    `freezes` counts how often a lost frame has stopped the others.
    """

    name: ClassVar[str]

    def __init__(self) -> None:
        self.wants_key_frame, self.freezes = False, 0
        self._frozen = True
        self._times = DecodeTimes()
        self._take: Callable[[int, int, bool, bytes], list[FrameT]] = self._taker()

    @property
    @abstractmethod
    def size(self) -> tuple[int, int] | None:
        """Width and height in pixels, None before they are known: FLV 10.1 §E.5."""

    @abstractmethod
    def _taker(self) -> Callable[[int, int, bool, bytes], list[FrameT]]:
        """What makes frames of packets: extended sequence number, timestamp, marker, payload."""

    def restart(self) -> None:
        """Begin anew with a new SSRC: RFC 3550 §5.1.  RTMP time goes on."""
        self._take, self._frozen = self._taker(), True
        self._times.restart()

    def take(
        self, sequence: int, timestamp: int, marker: bool, payload: bytes, moments: Moments
    ) -> list[tuple[bool, list[Tag]]]:
        """Whether each frame that is complete with a packet is a key frame, and its tags.

        `moments` gives RTMP times (ms) of an RTP timestamp, as `convert` takes them.
        """
        frames = self._take(sequence, timestamp, marker, payload)
        return [(each.is_key, self.convert(each, *moments(each.timestamp))) for each in frames]

    @abstractmethod
    def convert(self, frame: FrameT, arrival_ms: int, shown_ms: float | None = None) -> list[Tag]:
        """The tags of one frame, with their RTMP time; `arrival_ms` of the gateway's clock.

        `shown_ms` is the RTMP time that the frame's reports say, None where there is none.
        """

    def _freeze(self) -> None:
        """Note that a frame is lost."""
        self.freezes += not self._frozen
        self._frozen = self.wants_key_frame = True


class H264ToFlv(VideoToFlv[AccessUnit]):
    """Turns one phone's H.264 into tags: FLV 10.1 §E.4.3.1.

    `sprop_units` are the NAL units of the description's sprop-parameter-sets: RFC 6184 §8.1.

    Not done: RFC 6184 §5.1 [one-time-of-showing]: a tag is shown once, so a frame that its SEI
    shows several times, as fields of films are, is shown at its first time alone.
    """

    name = H264
    _new_sets: Callable[[], Sets] = AvcSets
    _parts: tuple[H264Unpacker, AccessUnitAssembler]

    def __init__(self, sprop_units: Sequence[bytes] = ()) -> None:
        super().__init__()
        self._sets = self._new_sets()
        # RFC 6184 §8.2.2 [sets-of-the-offer] [sets-of-the-answer]
        self._sets.learn(sprop_units)
        self._config: SupportsBytes | None = None  # as last sent

    def _taker(self) -> Callable[[int, int, bool, bytes], list[AccessUnit]]:
        self._parts = parts = H264Unpacker(), AccessUnitAssembler()
        return _units(*parts)

    @property
    def is_between(self) -> bool:
        """Whether the next packet begins an access unit, which its marker ends: RFC 6184 §5.1."""
        return all(part.is_between for part in self._parts)

    def went_on(self, sequence: int, timestamp: int) -> None:
        """Go on with the packet of this number, after whole access units: RFC 6184 §7.1."""
        unpacker, assembler = self._parts
        unpacker.went_on(sequence, timestamp)
        assembler.went_on(timestamp)

    @staticmethod
    def _is_slice(unit: bytes) -> bool:
        return unit[0] & 0x1F in SLICES

    @staticmethod
    def _header(config: SupportsBytes) -> bytes:
        return _HEADER + bytes(config)

    @staticmethod
    def _tag(is_key: bool, composition: int, slices: list[bytes]) -> bytes:
        head = (_KEY if is_key else _INTER) + composition.to_bytes(3, "big", signed=True)
        # FLV 10.1 §E.4.3.2 [full-frames], §E.4.3.1 [composition-time]
        return head + join_units(slices)

    @property
    def size(self) -> tuple[int, int] | None:
        return self._sets.size

    def convert(
        self, frame: AccessUnit, arrival_ms: int, shown_ms: float | None = None
    ) -> list[Tag]:
        """The tag of one frame, behind one of the parameter sets if these are new to the player."""
        sets, units = self._sets, frame.units
        # RFC 6184 §5.1 [timing-sei-ignored], §9 [no-user-data]
        slices = [unit for unit in units if self._is_slice(unit)]
        if len(slices) < len(units):
            sets.learn(units)
        if frame.damaged:
            self._freeze()
        elif not slices:
            return []
        is_key = frame.is_key
        # RFC 6184 §5.1 [shown-by-rtp-time], RFC 7798 §4.1 [shown-by-rtp-time]
        decode, composition = self._times.of(
            frame.timestamp, is_key, arrival_ms, sets.reorder, shown_ms
        )
        if frame.damaged or (self._frozen and not is_key):
            self.wants_key_frame = True
            return []
        config = self._config
        if is_key or sets.changed:
            config = sets.config_for(slices[0])
            if config is None:  # the sets have not come yet
                self._frozen = self.wants_key_frame = True
                return []
        tags: list[Tag] = []
        if config != self._config and config is not None:
            self._config = config
            tags.append((decode, self._header(config)))
        if is_key:
            self._frozen = self.wants_key_frame = False
        tags.append((decode, self._tag(is_key, composition, slices)))
        return tags


class H265ToFlv(H264ToFlv):
    """Turns one phone's H.265 into tags: E-RTMP v2 §"Enhanced Video", with the FourCC `hvc1`."""

    name = H265
    _new_sets = HevcSets

    def _taker(self) -> Callable[[int, int, bool, bytes], list[AccessUnit]]:
        self._parts = parts = H265Unpacker(), H265AccessUnitAssembler()
        return _units(*parts)

    @staticmethod
    def _is_slice(unit: bytes) -> bool:
        return kind_of(unit) in H265_SLICES

    @staticmethod
    def _header(config: SupportsBytes) -> bytes:
        return _enhanced(True, VideoFourCc.HEVC, bytes(config), VideoPacketType.SEQUENCE_START)

    @staticmethod
    def _tag(is_key: bool, composition: int, slices: list[bytes]) -> bytes:
        return _enhanced(is_key, VideoFourCc.HEVC, join_units(slices), composition=composition)


class Vp8ToFlv(VideoToFlv[Vp8Unpacked]):
    """Turns one phone's VP8 into tags: E-RTMP v2 §"Enhanced Video"."""

    name = VP8
    size: tuple[int, int] | None = None

    def _taker(self) -> Callable[[int, int, bool, bytes], list[Vp8Unpacked]]:
        return Vp8Unpacker().push

    def convert(
        self, frame: Vp8Unpacked, arrival_ms: int, shown_ms: float | None = None
    ) -> list[Tag]:
        if isinstance(frame, Vp8Damage):
            self._freeze()
            return []
        time, _ = self._times.of(frame.timestamp, frame.is_key, arrival_ms, 0, shown_ms)
        if frame.is_key:
            self._frozen = self.wants_key_frame = False
            self.size = vp8_size(frame.data) or self.size
        elif self._frozen:
            self.wants_key_frame = True
            return []
        return [(time, _enhanced(frame.is_key, VideoFourCc.VP8, frame.data))]


def _units(
    unpacker: H264Unpacker, assembler: AccessUnitAssembler
) -> Callable[[int, int, bool, bytes], list[AccessUnit]]:
    def take(sequence: int, timestamp: int, marker: bool, payload: bytes) -> list[AccessUnit]:
        items = unpacker.push(sequence, timestamp, marker, payload)
        return [frame for item in items for frame in assembler.push(item)]

    return take


def _enhanced(
    is_key: bool,
    codec: VideoFourCc,
    data: bytes,
    packet_type: VideoPacketType = VideoPacketType.CODED_FRAMES,
    composition: int = 0,
) -> bytes:
    kind = FrameType.KEY if is_key else FrameType.INTER
    track = VideoTrack(codec, data, composition_time=composition)
    return bytes(ExVideoTag(kind, packet_type, (track,)))


class DecodeTimes:
    """Times of decoding for frames that have times of showing only: FLV 10.1 §E.4.3.1.

    RFC 6184 §5.1 gives each frame the time when it is shown, and sends in the order of decoding.
    With B-frames the one runs back and forth.  A frame is decoded when the last but `reorder` of
    those so far is shown, which never runs backwards and is never after its own time.  Where nobody
    says how many frames are reordered, the stream shows it: then composition times are negative
    until so many frames have come.

    Where reports say at what time a frame is to be shown, the times come closer to that with each
    frame, by an eighth of the time that passes: less than any order of frames could notice.
    """

    def __init__(self) -> None:
        self._clock = MediaClock(CLOCK_RATE)
        self._reorder = 0
        self._shown: list[int] = []  # the latest times of showing in ms, sorted
        self._newest: int | None = None  # the highest RTP timestamp
        self._newest_ms = self._last_ms = self._unshifted = 0
        self._shift = 0.0  # ms, what reports have added to the media clock

    def restart(self) -> None:
        """Forget the RTP side, as a new SSRC requires: RFC 3550 §5.1."""
        self._clock.restart(CLOCK_RATE)
        self._newest = None

    def of(
        self,
        timestamp: int,
        is_key: bool,
        arrival_ms: int,
        reorder: int,
        shown_ms: float | None = None,
    ) -> tuple[int, int]:
        """Time of decoding (ms) and composition time of the next frame: FLV 10.1 §E.4.3.1.

        `reorder` is how many frames may come before one that is shown earlier, at least.
        """
        shown = self._time(timestamp, is_key, arrival_ms, shown_ms)
        times = self._shown
        insort(times, shown)
        later = len(times) - bisect_right(times, shown)  # frames that are shown after it
        self._reorder = max(self._reorder, reorder, min(later, MAX_LEARNT))
        if len(times) == 1:  # those before the first one are as if they had been 1 ms apart
            times[:0] = range(shown - MAX_REORDER, shown)
        del times[: -1 - MAX_REORDER]
        decode = max(times[-1 - self._reorder], self._last_ms)
        self._last_ms = decode
        return decode, max(-(1 << 23), min(shown - decode, (1 << 23) - 1))

    def _time(self, timestamp: int, is_key: bool, arrival_ms: int, shown_ms: float | None) -> int:
        """RTMP time of showing; before the newest one it is counted back from there."""
        if self._newest is not None:
            back = -wrapped_difference(timestamp, self._newest, RTP_WRAP)
            # Nothing behind a key frame is shown before it, nothing waits for more frames.
            if 0 < back <= 2 * CLOCK_RATE and not is_key:
                return self._newest_ms - back * 1000 // CLOCK_RATE
            if back > 0:
                self.restart()
        begins = self._newest is None
        if begins:
            self._shown, self._reorder = [], 0
        self._newest = timestamp
        own = self._clock.milliseconds(timestamp, arrival_ms)
        if shown_ms is not None or begins:
            self._follow(own, arrival_ms if shown_ms is None else shown_ms, begins)
        self._unshifted = own
        self._newest_ms = int(own + self._shift)
        return self._newest_ms

    def _follow(self, own: int, shown_ms: float, begins: bool) -> None:
        """Bring the media clock's time `own` closer to the time of the reports: RFC 3550 §6.4.1."""
        if begins:
            self._shift = max(shown_ms, self._newest_ms) - own
        else:
            step = (own - self._unshifted) / 8
            self._shift += max(-step, min(shown_ms - own - self._shift, step))
