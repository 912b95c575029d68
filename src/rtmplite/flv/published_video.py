"""A publisher's frames as decoders need them: whole, and behind the header that is in force.

Implements FLV 10.1 §E.4.3.2, which has a header before the frames and each frame in one tag,
for publishers that keep to neither; E-RTMP v2 §"Enhanced Video" has the same for HEVC.

Own design: parameter sets that come among the frames make a header, in front of the next key
frame, if they are not those of the last one.  A header that replaces another one waits for the
frame that needs it.  Slices of one frame that come in messages of one time become one message.
Only the next message tells that a frame has ended, so that the first one waits for it, or for
`HOLD`, and later ones where the first has come in several messages.

    >>> class Tape(list):
    ...     def write(self, type_id, timestamp, payload, now):
    ...         self.append((timestamp, payload[:2].hex()))
    >>> sets = bytes.fromhex("000000166742c00cda0507ec0440000003004000000603c50aa80000000468ce3c80")
    >>> head, tape = b"\\x17\\x01\\0\\0\\0", Tape()
    >>> video = PublishedVideo(tape)
    >>> video.write(9, 0, head + sets, 0.0)
    >>> video.write(9, 40, head + bytes.fromhex("00000004658884210000"[:16]), 0.0)
    >>> video.tick(video.deadline)
    >>> tape
    [(40, '1700'), (40, '1701')]
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from rtmplite.errors import RemoteError
from rtmplite.flv import avc, hevc
from rtmplite.flv.audio import is_empty_header
from rtmplite.flv.avc import LENGTH_SIZE, AvcConfig
from rtmplite.flv.enhanced import MOD_EX
from rtmplite.flv.enhanced_raw import VIDEO_MULTITRACK
from rtmplite.flv.enhanced_video import VideoPacketType
from rtmplite.flv.hevc import HevcConfig
from rtmplite.flv.parameter_sets import AvcSets, HevcSets, Sets
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import AvcPacketType, CodecId, FieldCodecId, FrameType, is_key_frame
from rtmplite.flv.video import is_sequence_header as is_video_header

MAX_FRAME: Final = 1 << 20  # bytes of a frame that is put together; longer ones pass as they are
HOLD: Final = 0.5  # s that a frame waits for more of it, longer than one lost packet takes
MAX_SETS: Final = 16 * 1024  # bytes of a message without a frame, and of a header made of sets
MAX_SET: Final = 1024  # bytes of one set; they have some 30

_EXTENDED: Final = 0x80  # E-RTMP v2 §"Enhanced Video"
_AVC_SLICES: Final = range(1, 6)
_AVC_SETS: Final = (avc.SPS, avc.PPS)
_HEVC_SLICES: Final = range(32)
_HEVC_SETS: Final = (hevc.VPS, hevc.SPS, hevc.PPS)


class MessageSink(Protocol):
    """Takes the messages; a `Sink` of live streams is one.  Own design."""

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one message of type 8, 9 or 18; `timestamp` in ms."""

    def end(self, now: float) -> None:
        """Note that no more will come."""


class _Codec(NamedTuple):
    """Describes a codec of NAL units."""

    slices: range
    sets: tuple[int, ...]
    sps: int  # the type of those that a codec cannot do without
    first_at: int  # octet of a slice whose highest bit is set where a picture begins
    kind: Callable[[int], int]  # type of a NAL unit, from its first octet
    learner: Callable[[], Sets]
    read: Callable[[bytes], AvcConfig | HevcConfig]


# RFC 6184 §5.1: a slice whose first_mb_in_slice is 0 begins a picture; an exp-Golomb 0 is one bit.
_AVC: Final = _Codec(
    _AVC_SLICES, _AVC_SETS, avc.SPS, 1, lambda octet: octet & 0x1F, AvcSets, AvcConfig.parse
)
_HEVC: Final = _Codec(
    _HEVC_SLICES,
    _HEVC_SETS,
    hevc.SPS,
    2,
    lambda octet: octet >> 1 & 0x3F,
    HevcSets,
    HevcConfig.parse,
)
_NUMBERED: Final = {int(CodecId.AVC): _AVC, int(FieldCodecId.HEVC): _HEVC}
_NAMED: Final = {b"avc1": _AVC, b"hvc1": _HEVC}


@dataclass(slots=True)
class _Track:
    """The video of a codec of NAL units, as one publisher names it."""

    name: bytes  # the octets of a tag that tell it
    codec: _Codec
    sets: Sets
    length_size: int = LENGTH_SIZE
    is_made: bool = False  # the header in force was made of sets
    is_foreign: bool = False  # it was of another codec
    ahead: bytes = b""  # units that came without a frame
    last_at: int | None = None  # the time of the last frame

    def learn(self, record: bytes) -> None:
        """Take the sets of a header as those in force; of a broken one none."""
        self.is_foreign = True
        try:
            config = self.codec.read(record)
        except RemoteError:
            return
        units = (
            (*config.sps, *config.pps)
            if isinstance(config, AvcConfig)
            else tuple(unit for kind in _HEVC_SETS for unit in config.units(kind))
        )
        self.length_size, self.is_foreign = config.length_size, not units
        self.sets.learn(units)
        self.sets.changed = False

    def header(self, unit: bytes) -> bytes:
        """The body of a header with the sets that this slice needs, none if they are missing."""
        config = self.sets.config_for(unit)
        if config is None:
            return b""
        record = bytes(replace(config, length_size=self.length_size))
        if len(self.name) > 1:
            first = _EXTENDED | FrameType.KEY << 4 | VideoPacketType.SEQUENCE_START
            head = bytes((first,)) + self.name
        else:
            first = FrameType.KEY << 4 | self.name[0]
            head = bytes((first, AvcPacketType.SEQUENCE_HEADER, 0, 0, 0))
        return head + record if len(record) <= MAX_SETS else b""


@dataclass(slots=True)
class _Units:
    """Holds the units of a message before its first slice."""

    ahead: list[bytes] = field(default_factory=list)
    begin: int | None = None  # of the first slice


class PublishedVideo:
    """Gives `sink` a publisher's messages, with whole frames: FLV 10.1 §E.4.3.2.  A `Sink`.

    An empty header replaces no other, nor does one of audio: Own design, since encoders send one
    when they are restarted.  Several tracks in a message pass as they are, and frames of another
    codec than they say: some encoders of H.265 have the number of H.264.
    """

    def __init__(self, sink: MessageSink) -> None:
        self._sink = sink
        self._header, self._new = b"", b""  # in force, and to be in force with the next frame
        self._track: _Track | None = None
        self._splits: bool | None = None  # slices come in messages of their own, None: not known
        self._held: tuple[int, bytes] | None = None  # a frame that may go on
        self._until = 0.0  # it waits

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one message of type 8, 9 or 18: RTMP 1.0 §7.1.2 to §7.1.5."""
        if type_id == TagType.VIDEO and payload:
            self._take(timestamp, payload, now)
            return
        if type_id == TagType.AUDIO and is_empty_header(payload):
            return
        if self._held is not None and self._held[0] != timestamp:
            self._release(now)
        self._sink.write(type_id, timestamp, payload, now)

    @property
    def audio_sink(self) -> Callable[[int, int, bytes, float], None] | None:
        """The way of audio that is no header, None while a frame waits: the sink's `write`.

        Own design: a message of video, which comes by `write` of this class, may change the way.
        """
        return self._sink.write if self._held is None else None

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, while a frame waits.  Own design: a still one goes out too."""
        return self._until if self._held is not None else None

    def tick(self, now: float) -> None:
        """Pass on a frame that nothing has followed.  Own design: see `HOLD`."""
        if self._held is not None and now >= self._until:
            self._release(now)

    def end(self, now: float) -> None:
        """Note that no more will come: RTMP 1.0 §7.2.2.3."""
        self._release(now)
        self._sink.end(now)

    def _take(self, timestamp: int, payload: bytes, now: float) -> None:
        first = payload[0]
        if first & _EXTENDED and first & 0x0F in (VIDEO_MULTITRACK, MOD_EX):
            self._pass(timestamp, payload, now)
        elif is_video_header(payload):
            self._take_header(timestamp, payload, now)
        elif (found := _frame_of(payload)) is not None:
            self._take_frame(timestamp, payload, found, now)
        else:
            self._pass(timestamp, payload, now)

    def _pass(self, timestamp: int, payload: bytes, now: float) -> None:
        """Pass a message on as it is, behind all that waits."""
        self._release(now)
        self._put_header(self._new, timestamp, now)
        self._sink.write(TagType.VIDEO, timestamp, payload, now)

    def _take_header(self, timestamp: int, payload: bytes, now: float) -> None:
        name, codec = _codec_of(payload)
        if _is_empty(payload, codec) and (codec is not None or self._header):
            return
        self._release(now)
        if codec is not None:
            track = self._follow(name, codec)
            track.learn(payload[5:])
            track.is_made = False
        if self._header and payload != self._header:
            self._new = payload
            return
        self._header, self._new = payload, b""
        self._sink.write(TagType.VIDEO, timestamp, payload, now)

    def _take_frame(
        self, timestamp: int, payload: bytes, found: tuple[bytes, _Codec, int], now: float
    ) -> None:
        name, codec, at = found
        track = self._follow(name, codec)
        try:
            units = _look(payload, at, track)
        except RemoteError:
            self._pass(timestamp, payload, now)
            return
        kinds = {codec.kind(each[0]) for each in units.ahead}
        if track.is_foreign and codec.sps not in kinds:
            self._pass(timestamp, payload, now)
            return
        track.is_foreign = False
        if has_sets := not kinds.isdisjoint(codec.sets):
            track.sets.learn(unit for unit in units.ahead if len(unit) <= MAX_SET)
        begin = units.begin
        if begin is None:
            if has_sets and len(track.ahead) + len(payload) <= MAX_SETS:
                track.ahead += payload[at:]
            else:
                self._pass(timestamp, payload, now)
            return
        goes_on = not payload[begin + codec.first_at] & 0x80  # RFC 6184 §5.1
        if goes_on and timestamp == track.last_at:
            self._go_on(timestamp, payload[:at], payload[begin - track.length_size :], now)
            return
        self._release(now)
        unit = payload[begin : begin + MAX_SET]
        if is_key_frame(payload) and (track.sets.changed or track.is_made):
            made = track.header(unit)
            track.is_made = bool(made)
            self._new = made or self._new
        payload = payload[:at] + track.ahead + payload[at:] if track.ahead else payload
        track.ahead, track.last_at = b"", timestamp
        self._put_header(self._new, timestamp, now)
        self._pass_or_hold(timestamp, payload, now)

    def _pass_or_hold(self, timestamp: int, payload: bytes, now: float) -> None:
        """Pass a frame on, or hold it if the next message may have more of it."""
        if self._splits is not False and len(payload) <= MAX_FRAME:
            self._held, self._until = (timestamp, payload), now + HOLD
        else:
            self._sink.write(TagType.VIDEO, timestamp, payload, now)

    def _go_on(self, timestamp: int, head: bytes, slices: bytes, now: float) -> None:
        """Take more slices of the last frame, which has gone if nothing told of them."""
        self._splits = True
        if self._held is not None and len(self._held[1]) + len(slices) <= MAX_FRAME:
            self._held = timestamp, self._held[1] + slices
            return
        self._release(now)
        # an inter frame, since no player can begin in the middle of a frame
        first = head[0] & (_EXTENDED | 0x0F) | FrameType.INTER << 4
        self._pass_or_hold(timestamp, bytes((first,)) + head[1:] + slices, now)

    def _release(self, now: float) -> None:
        """Pass on the frame that waits: it is whole."""
        if self._held is not None:
            self._splits = bool(self._splits)
            (timestamp, payload), self._held = self._held, None
            self._sink.write(TagType.VIDEO, timestamp, payload, now)

    def _put_header(self, header: bytes, timestamp: int, now: float) -> None:
        """Pass a header on with the first frame that needs it, unless it is in force."""
        if header and header != self._header:
            self._header = header
            self._sink.write(TagType.VIDEO, timestamp, header, now)

    def _follow(self, name: bytes, codec: _Codec) -> _Track:
        """The track of a codec, a new one if the publisher has changed it."""
        if self._track is None or self._track.name != name:
            self._track = _Track(name, codec, codec.learner())
        return self._track


def _codec_of(payload: bytes) -> tuple[bytes, _Codec | None]:
    """The octets that name the codec of a message, and the codec if it is of NAL units."""
    if payload[0] & _EXTENDED:
        return payload[1:5], _NAMED.get(payload[1:5])
    return bytes((payload[0] & 0x0F,)), _NUMBERED.get(payload[0] & 0x0F)


def _frame_of(payload: bytes) -> tuple[bytes, _Codec, int] | None:
    """Name and codec of a message of NAL units, and where these begin; None for others."""
    name, codec = _codec_of(payload)
    if codec is None:
        return None
    if not payload[0] & _EXTENDED:
        is_frame = len(payload) > 5 and payload[1] == AvcPacketType.NALU
        return (name, codec, 5) if is_frame else None
    kind = payload[0] & 0x0F
    if kind == VideoPacketType.CODED_FRAMES:
        return name, codec, 8
    return (name, codec, 5) if kind == VideoPacketType.CODED_FRAMES_X else None


def _is_empty(payload: bytes, codec: _Codec | None) -> bool:
    """Whether a header has nothing for a decoder: no octets, or no sets."""
    record = payload[5:]
    if codec is _AVC:
        return not record or record[5:6] == b"\xe0"
    if codec is _HEVC and len(record) > 22:
        return record[13] >> 4 == 0xF and not record[22]
    return not record


def _look(payload: bytes, at: int, track: _Track) -> _Units:
    """Read the units before the first slice.  RemoteError if one is cut short."""
    units, codec, size, end = _Units(), track.codec, track.length_size, len(payload)
    while at < end:
        begin = at + size
        at = begin + int.from_bytes(payload[at:begin], "big")
        if at > end or begin > end:
            raise RemoteError("a NAL unit is cut short")
        if at - begin > codec.first_at and codec.kind(payload[begin]) in codec.slices:
            units.begin = begin
            break
        if at > begin:
            units.ahead.append(payload[begin:at])
    return units
