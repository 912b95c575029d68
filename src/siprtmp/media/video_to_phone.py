"""The way of a publisher's frames to a phone: as they are, or made into what the phone takes.

Implements RFC 6184 §5, RFC 7798 §5 and RFC 7741 §4.4 by way of `flv_to_video`, and RFC 3550 §5.1
for the times of the packets.

Own design: frames that pass cost nothing and lose nothing.  They are decoded and encoded only where
the phone, or the operator, sets a limit that they exceed, and only with a `VideoTranscoders`.  Then
they wait in front of the encoder until they are due, and leave as soon as they are made.
"""

from collections.abc import Callable, Iterable
from typing import Final

from p2psip.rtp.video_sender import VideoSender
from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.pacing import Pacer
from siprtmp.media.stream import StreamContext
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.translate.codec_limits import CodecLimits, VideoProperties
from siprtmp.media.translate.conversion import Packet, UnsuitableError
from siprtmp.media.translate.flv_to_video import (
    FlvToH264,
    FlvToH265,
    FlvToVideo,
    FlvToVp8,
)
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference
from siprtmp.media.translate.video_tag import H265, codec_of
from siprtmp.media.transport import MediaWay
from siprtmp.media.video.gop_cache import GopCache, Message
from siprtmp.media.video.video_worker import VideoWorker
from siprtmp.media.video_lines import CLOCK_RATE, VideoPlan

EARLY: Final = 0.02  # s before its time that a frame may leave
NOTHING: Final[list[Packet]] = []
REPEAT_OCTETS: Final = 128 * 1024  # at once, on a path that has just lost something
REPEAT_SECONDS: Final = 2.0  # between two repetitions, for the same reason
METER_LEAST: Final = 1000  # ms from a key frame to a later one, by which rates are counted
METER_MOST: Final = 10_000  # ms, where key frames are rare

# Whether it is a key frame, its packets, and where these are still to be made its time and body.
Item = tuple[bool, list[Packet], int, bytes]
OnShown = Callable[[int, bytes, float], None]


class VideoToPhone:
    """Sends the frames of one publisher; RFC 3550 §5.1.

    `sender` is the source that they leave by.  `gop` may be replaced by one that has frames
    from before the call.  `on_shown` is called with each tag when it is due (RTMP time in ms, body,
    now); what was published before the first has its time.  `want_key_frame` asks the
    publisher, and `hold_back` holds it back.
    """

    def __init__(
        self,
        way: MediaWay,
        context: StreamContext,
        want_key_frame: Callable[[], None],
        hold_back: Callable[[bool], None],
    ) -> None:
        self.way, self._listener, self._wake = way, context.listener, context.wake
        settings = context.settings
        self._max_octets, self._transcoding = settings.max_octets, settings.video_transcoding
        self._want_key_frame, self._hold_back = want_key_frame, hold_back
        random = settings.random
        self._maker: VideoTranscoders | None = None  # if the phone has what it can make
        self.sender = VideoSender(None, CLOCK_RATE, random, self._on_key_frame_wanted)
        self._offset = int.from_bytes(random(4), "big")  # RFC 3550 §5.1: not guessable
        self.gop = GopCache()
        self._plan: VideoPlan | None = None
        self._packetizer: FlvToVideo | None = None  # while frames may be sent
        self._payload_type = -1
        self.pacer: Pacer[Item] = Pacer(EARLY)
        self._shown = 0  # the RTP time of the last frame, without its offset
        self._repeats, self._repeat_at = False, float("-inf")  # whether to, and not before
        self._skipping = False
        self._reason = ""
        self._meter = VideoMeter()
        self._limits = CodecLimits()
        self._work: VideoWorker | None = None
        self._header, self._excess = b"", ""  # the publisher's; why its frames cannot pass
        self.on_shown: OnShown = lambda timestamp, payload, now: None
        self.sent = self.unsuitable = self.wanted = 0
        self._left_out = 0  # by work that is closed

    @property
    def is_open(self) -> bool:
        """Whether frames are sent: RFC 3264 §5.1."""
        return self._packetizer is not None

    @property
    def transcodes(self) -> str:
        """What is decoded and encoded, as "h264 9x9 > h264 9x9"; "" for frames that pass."""
        return self._work.transcodes if self._work is not None else ""

    @property
    def left_out(self) -> int:
        """The frames that came too late, or were too many.  Own design: see `pacing`."""
        encodable = self._work.dropped if self._work is not None else 0
        return self._left_out + encodable + self.pacer.dropped

    def stop(self) -> None:
        """Send nothing more by the old plan, also nothing that waits: RFC 3264 §8.3.2."""
        # RFC 3264 §8.3.2 [new-formats-at-once] [no-old-formats]
        self._packetizer = None
        self._close_work()
        self.pacer.clear()
        self._hold_back(False)

    def close(self) -> None:
        """Send nothing more at all, and keep nothing."""
        self.stop()
        self.gop, self.on_shown = GopCache(), lambda timestamp, payload, now: None

    def begin(self, plan: VideoPlan, now: float) -> None:
        """Send all since the last key frame at once, so that the phone need not wait for one."""
        self._plan, self._excess, self._skipping = plan, "", False
        self._close_work()
        self._maker = self._transcoding if plan.encodable else None
        self._packetize_for(plan, plan.name)
        group = list(self.gop)
        for _, payload in group:
            self.on_shown(group[-1][0], payload, now)
        for timestamp, payload in group:
            packets = self._convert(timestamp, payload)
            if self._excess:
                self._make(self.gop, 1, now)
                return
            self._send((True, packets, 0, b""), now)

    def _packetize_for(self, plan: VideoPlan, name: str, profile: str = "") -> FlvToVideo:
        """Pack frames of a codec, and a profile of H.264, from now on."""
        packetizer, number = packetizer_for(plan, name, profile, self._max_octets)
        self._packetizer, self._payload_type = packetizer, number
        if self._maker is not None:
            self._limits = plan.limits(name).lower(self._maker.limits)
        return packetizer

    def publish(self, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published video message (RTMP 1.0 §7.1.4), and send it when it is due."""
        if self._maker is not None and self._begins_anew(timestamp, payload, now):
            return
        is_key, packets = is_key_frame(payload), NOTHING
        if self._work is None:
            packets = self._convert(timestamp, payload)
            if self._excess:  # what waits leaves as it is, and this frame behind it
                before = [each for each in self.gop if each[1] is not payload]
                self._make(before, 0, now)
                packets = NOTHING
            elif not packets:
                if is_sequence_header(payload):
                    self.on_shown(timestamp, payload, now)
                return
            elif self._repeats:
                self._repeat(packets[0].ticks, is_key, now)
        item, at = (is_key, packets, timestamp, payload), timestamp / 1000
        if self.pacer.passes(at, now):
            self._send(item, now)
        else:
            self._queue(at, item, now)

    def _convert(self, timestamp: int, payload: bytes) -> list[Packet]:
        """Make a frame into packets; a sequence header, or an unsuitable one, gives none."""
        packetizer, plan = self._packetizer, self._plan
        assert packetizer is not None and plan is not None
        begins = is_sequence_header(payload) or is_key_frame(payload)
        if begins and (name := codec_of(payload)) != packetizer.name and name in plan.names:
            packetizer = self._packetize_for(plan, name)
        try:
            packets = packetizer.convert(payload, timestamp)
        except UnsuitableError as error:
            if self._maker is not None:
                self._excess = str(error)
            else:
                self._say_unsuitable(str(error))
            return []
        read = packetizer.profile_level
        if begins and isinstance(packetizer, FlvToH264) and read is not None:
            parameters, self._payload_type = plan.for_profile(read.sub_profile)
            packetizer.mode = parameters.packetization_mode
        if begins:
            self._judge()
        return packets

    def _say_unsuitable(self, reason: str) -> None:
        self.unsuitable += 1
        if reason != self._reason:
            self._reason = reason
            self._listener.on_video_unsuitable(reason)

    # -- frames that are made ---------------------------------------------------------

    def _begins_anew(self, timestamp: int, payload: bytes, now: float) -> bool:
        """Count a frame; begin again with a new header, whose frames may be others."""
        self._meter.put(timestamp, payload)
        if is_sequence_header(payload):
            if payload == self._header:
                return False
            self._header, self._meter = payload, VideoMeter()
            if self._work is not None and self._plan is not None:
                self.stop()
                self.begin(self._plan, now)
                return True
        return False

    def _judge(self) -> None:
        """Note in which respect the publisher's frames are too much for the phone."""
        packetizer = self._packetizer
        if self._maker is None or packetizer is None:
            return
        read, meter = packetizer.profile_level, self._meter
        level, profile = (read.level, read.sub_profile) if read is not None else (0.0, "")
        facts = VideoProperties(*packetizer.size, level, profile, meter.rate, meter.bits)
        self._excess = self._limits.excess(facts)

    def _make(self, group: Iterable[Message], latest: int, now: float) -> None:
        """Decode and encode from now on, and of a group of frames the `latest` ones."""
        maker, plan = self._maker, self._plan
        assert maker is not None and plan is not None
        packetizer = self._packetize_for(plan, plan.encodable, "CB")
        self._repeats = False
        in_slices = isinstance(packetizer, FlvToH264) and not packetizer.mode
        slice_octets = self._max_octets if in_slices else 0
        self._work = VideoWorker(
            maker.transcoder(plan.encodable, self._limits, slice_octets),
            maker.run,
            lambda now: self._want_key_frame(),
            give=self._give,
            changed=self._on_changed,
        )
        self._work.begin(group, latest, now)

    def _close_work(self) -> None:
        if self._work is not None:
            self._left_out += self._work.dropped
            self._work.close()
            self._work = None

    def _give(self, timestamp: int, payload: bytes, at: float, now: float) -> None:
        """Send a frame that has been made; it belongs to the audio of the time `at`."""
        packetizer, work = self._packetizer, self._work
        if packetizer is None or work is None:
            return
        try:
            packets = packetizer.convert(payload, timestamp)
        except UnsuitableError:  # a slice that no encoder could make short enough, in mode 0
            work.want_key_frame()
        else:
            self._transmit(packets, at)

    def _on_changed(self) -> None:
        work = self._work
        if work is not None and work.error:
            self._say_unsuitable(work.error)
        elif work is not None and work.transcodes:
            self._listener.on_transcoding(work.transcodes, self._excess)

    # -- out ----------------------------------------------------------------------------

    def _repeat(self, next_ticks: int, is_key: bool, now: float) -> None:
        """Repeat all since the last key frame, before a frame that is none: see `repeated`."""
        packetizer, waits = self._packetizer, self.pacer.deadline is not None
        self._repeats = not is_key and (waits or now < self._repeat_at)
        if self._repeats or is_key or packetizer is None:
            return
        times = range(self._shown + 1, next_ticks)
        before = list(self.gop)[:-1]
        self._repeat_at = now + REPEAT_SECONDS
        again = repeated(before, packetizer, times)
        self._send((True, again, 0, b""), now)

    def _queue(self, at: float, item: Item, now: float) -> None:
        pacer = self.pacer
        idle, dropped = pacer.deadline is None, pacer.dropped
        for due in pacer.put(at, item, now):
            self._send(due, now)
        self._skip_since(dropped)
        if idle and pacer.deadline is not None:
            self._wake()
        if pacer.is_ahead:
            self._hold_back(True)

    def _skip_since(self, dropped: int) -> None:
        """Skip to a key frame, and ask for one, if the pacer has dropped more than these.

        A browser sends none that nobody has asked for.  The pacer drops at most once a second.
        """
        if self.pacer.dropped != dropped:
            self._skipping = True
            self._want_key_frame()

    def _send(self, item: Item, now: float) -> None:
        is_key, packets, timestamp, payload = item
        self._skipping = self._skipping and not is_key
        if self._skipping and not (payload and is_sequence_header(payload)):
            return  # it depends on a frame that was dropped
        if payload:
            self.on_shown(timestamp, payload, now)
        if packets:
            self._transmit(packets, now)
        elif payload and self._work is not None:
            self._work.put(timestamp, payload, now)

    def _transmit(self, packets: list[Packet], now: float) -> None:
        pack, payload_type, offset = self.sender.send, self._payload_type, self._offset
        self.way.send_run(
            [
                pack(payload_type, payload, ticks + offset & 0xFFFFFFFF, marker, now)
                for ticks, payload, marker in packets
            ]
        )
        self._shown = packets[-1].ticks if packets else self._shown
        self.sent += len(packets)

    def _on_key_frame_wanted(self) -> None:
        """Have a key frame made; where it passes tell the publisher, and repeat what there is."""
        self.wanted += 1
        if self._work is not None:
            # RFC 5104 §4.3.1.2 [refresh-on-fir]
            self._work.want_key_frame()
            return
        self._repeats = True
        self._want_key_frame()

    def tick(self, now: float) -> None:
        """Send the frame that is due: RFC 3550 §5.1."""
        dropped = self.pacer.dropped
        due = self.pacer.tick(now)
        self._skip_since(dropped)
        for item in due:
            self._send(item, now)
        if self.pacer.has_room:
            self._hold_back(False)


class VideoMeter:
    """Counts the frames of one publisher; `rate` and `bits` are a second's, 0 if not known.

    Own design: counted between key frames, at least a second apart, so that key frames, which are
    many times longer than other frames, count as they should.
    """

    def __init__(self) -> None:
        self.rate = self.bits = 0.0
        self._since: int | None = None
        self._count = self._octets = 0

    def put(self, time: int, body: bytes) -> None:
        """Take the body of a video message of RTMP time `time` (ms)."""
        if is_sequence_header(body):
            return
        elapsed = wrapped_difference(time, self._since or 0, RTMP_WRAP)
        is_long = elapsed >= (METER_LEAST if is_key_frame(body) else METER_MOST)
        if self._since is None or elapsed < 0 or is_long:
            if self._since is not None and is_long:
                self.rate = 1000 * self._count / elapsed
                self.bits = 8000 * self._octets / elapsed
            self._since, self._count, self._octets = time, 0, 0
        self._count += 1
        self._octets += len(body)


def repeated(frames: Iterable[Message], packetizer: FlvToVideo, ticks: range) -> list[Packet]:
    """Pack frames of a publisher for the times of `ticks`, one each: RFC 6184 §5.1.

    Own design: RFC 5104 §3.5.1 has the encoder make a key frame, but stock tools cannot be told,
    and ffmpeg makes one in ten seconds.  With the frames since the last one, in the order of
    decoding, a decoder is where it would be without a loss.  They must not take the stream back in
    time, so their RTP times are squeezed between those of the last frame and the next.

    `packetizer` is that of the stream.  Nothing comes out if the frames are too many or too large,
    or if they are shown in another order than they are decoded (B-frames), which no other times
    could keep.

    Departs from RFC 6184 §6.1 [no-duplicates]: whole frames go out twice, each time as frames
    of another time, for without them the phone would show a broken one until the next key frame.
    """
    convert = packetizer.anew().convert
    out: list[Packet] = []
    shown, count, size = -1, 0, 0
    for timestamp, payload in frames:
        try:
            packets = convert(payload, timestamp)
        except UnsuitableError:
            return []
        if not packets:
            continue
        size += len(payload)
        if packets[0].ticks <= shown or count == len(ticks) or size > REPEAT_OCTETS:
            return []
        shown = packets[0].ticks
        out += [each._replace(ticks=ticks[count]) for each in packets]
        count += 1
    return out


def packetizer_for(
    plan: VideoPlan, name: str, profile: str, max_octets: int
) -> tuple[FlvToVideo, int]:
    """What packs frames of a codec, of H.264 of a profile, and the payload type: RFC 3264 §6.1."""
    other = plan.other(name)
    if other is None:
        parameters, number = plan.for_profile(profile)
        return FlvToH264(parameters.packetization_mode, max_octets), number
    return (FlvToH265 if name == H265 else FlvToVp8)(max_octets), other.send_type
