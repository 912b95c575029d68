"""The pictures of one call: a phone's H.264 on one side, a stream's video tags on the other.

Implements RFC 6184 §5 and §8.2.2 by way of `p2psip.rtp`, between FLV 10.1 §E.4.3.1 tags and RTP.

A sans-I/O machine beside `Leg`, which has the sound.  The packets of a picture leave together, when
the picture is due; a picture of the phone leaves as one tag.  Neither way passes a picture on that
a lost one has spoilt: it freezes, and asks for a key frame.
"""

from collections.abc import Callable, Collection
from typing import Final

from p2psip.rtp.payload.h264_pictures import PictureAssembler
from p2psip.rtp.payload.h264_unpacker import H264Unpacker
from p2psip.rtp.reporter import Reporter
from p2psip.rtp.video_receiver import VideoPacket, VideoReceiver
from p2psip.rtp.video_sender import VideoSender
from rtmplite.flv.video import is_key_frame
from siprtmp.media import repeat
from siprtmp.media.consent import Consent
from siprtmp.media.h264_lines import CLOCK_RATE, VideoPlan
from siprtmp.media.leg_interfaces import VideoListener, Wire
from siprtmp.media.pacing import Pacer
from siprtmp.media.picture_group import PictureGroup
from siprtmp.media.timeline import Timeline
from siprtmp.media.translate.flv_to_h264 import MAX_OCTETS, FlvToH264
from siprtmp.media.translate.flv_to_rtp import Packet, UnsuitableError
from siprtmp.media.translate.h264_to_flv import H264ToFlv
from siprtmp.media.translate.timebase import RTP_WRAP, wrapped_difference

VIDEO: Final = 9  # the message type of video: RTMP 1.0 §7.1.4
EARLY: Final = 0.02  # s before its time that a picture may leave
ASK_SECONDS: Final = 0.5  # between two requests for a key frame by SIP: the frame gets lost too
MAX_WAIT: Final = 5 * CLOCK_RATE  # ticks that the end of a picture may be late
REPORT_OCTETS: Final = 3000.0  # a second, of RTCP: a twentieth of half a megabit of pictures
BY_RTCP: Final = frozenset({"nack pli", "ccm fir"})  # ways to ask for a key frame

OnTag = Callable[[int, int, bytes, float], None]


class VideoLeg:
    """One call's pictures, from the description that agrees on them to the end.

    RFC 3550 §6.4 for the session; the arguments are those of `Leg`, with the `timeline` of its
    sound, which the pictures follow.  No payload to the phone is longer than `max_octets`.
    `on_tag` is called with each piece of video from the phone (type, RTMP time in ms, tag body,
    now).  `group` may be replaced by one that has pictures from before the call.
    """

    def __init__(
        self,
        wire: Wire,
        listener: VideoListener,
        random: Callable[[int], bytes],
        now: float,
        *,
        cname: str,
        timeline: Timeline | None = None,
        wallclock: float = 0.0,
        wake: Callable[[], None] = lambda: None,
        max_octets: int = MAX_OCTETS,
    ) -> None:
        self.max_octets = max_octets
        self._wire, self._listener, self._wake = wire, listener, wake
        self.on_tag: OnTag = _ignore
        self._timeline = timeline or Timeline(now)
        self._consent = Consent()
        self._plan: VideoPlan | None = None
        self._sender = VideoSender(None, CLOCK_RATE, random, self._on_key_frame_wanted)
        self._cname, self._wallclock = cname, wallclock
        self._reporter: Reporter | None = None  # both come with the first plan
        self._receiver: VideoReceiver | None = None
        self._offset = int.from_bytes(random(4), "big")  # RFC 3550 §5.1: not guessable
        self._random = random
        self._to_phone: FlvToH264 | None = None  # while pictures may be sent
        self.group = PictureGroup()  # for then
        self._payload_type = -1
        self._pacer: Pacer[tuple[bool, list[Packet]]] = Pacer(EARLY)
        self._unpacker, self._assembler = H264Unpacker(), PictureAssembler()
        self._to_rtmp: H264ToFlv | None = None
        self._size: tuple[int, int] | None = None  # as told
        self._ask_at: float | None = None  # when to ask for a key frame by SIP
        self._shown = 0  # the RTP time of the last picture to the phone, without its offset
        self._repeats, self._repeat_at = False, now  # whether to, and not before
        self._holding = self._skipping = self._closed = False
        self._reason = ""
        self.sent = self.received = self.unsuitable = self.wanted = 0

    @property
    def freezes(self) -> int:
        """How often a lost picture of the phone has stopped the others.  RFC 6184 §6.3."""
        return self._to_rtmp.freezes if self._to_rtmp is not None else 0

    # -- set-up -------------------------------------------------------------------------

    def start(
        self,
        plan: VideoPlan,
        now: float,
        *,
        hosts: Collection[str] = (),
        early: bool = False,
        proven: bool = True,
    ) -> None:
        """Send and receive as an answer settled; again after every later one.  As `Leg.start`.

        RFC 3264 §8: a new answer may move the peer, change the profile, or hold the call.
        """
        if self._closed:
            return
        before, self._plan = self._plan, plan
        if self._receiver is None:
            self._prepare(plan, now)
        self._consent.point(plan.media.remote, hosts if proven else (), now, answered=not early)
        if before != plan or not self._consent.is_open:
            self._stop_sending()
        self._wire.hosts, self._wire.rtcp_mux = hosts, plan.media.rtcp_mux
        self._wire.remote = plan.media.remote
        if plan.media.remote_rtcp is not None:
            self._wire.remote_rtcp = plan.media.remote_rtcp
        self._wake()

    def _prepare(self, plan: VideoPlan, now: float) -> None:
        feedback = plan.media.feedback
        self._to_rtmp = H264ToFlv(plan.parameter_sets)
        self._reporter = Reporter(
            self._cname,
            self._random,
            now,
            [self._sender],
            [],
            wallclock=self._wallclock,
            bandwidth=REPORT_OCTETS,
            early=bool(feedback),
            report_interval=plan.media.report_interval,
        )
        self._receiver = VideoReceiver(CLOCK_RATE, self._reporter, feedback, plan.receiving)

    def _stop_sending(self) -> None:
        """Send nothing more by the old plan, also nothing that waits: RFC 3264 §8.3.2."""
        # RFC 3264 §8.3.2 [new-formats-at-once] [no-old-formats]
        self._to_phone = None
        self._pacer.clear()
        self._hold_back(False)

    @property
    def plan(self) -> VideoPlan | None:
        """The plan of the last answer: RFC 3264 §7."""
        return self._plan

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the phone's pictures, once they are known: RFC 6184 §8.1."""
        return self._to_rtmp.size if self._to_rtmp is not None else None

    def close(self, now: float) -> None:
        """Send an RTCP BYE (RFC 3550 §6.6) and close the ports."""
        if self._closed:
            return
        self._closed = True
        if self._consent.is_open and self._wire.remote_rtcp and self._reporter is not None:
            farewell = self._reporter.bye(now)
            if farewell:
                self._wire.send_rtcp(farewell)
        self._wire.close()
        self._pacer.clear()
        self._hold_back(False)

    # -- from the publisher -------------------------------------------------------------

    def publish(self, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published video message (RTMP 1.0 §7.1.4), and send it when it is due."""
        plan = self._plan
        if plan is None or self._closed or not payload:
            return
        self.group.put(timestamp, payload)
        if self._to_phone is None:
            if self._may_send(plan, now):
                self._begin(plan, now)
        elif packets := self._convert(plan, timestamp, payload):
            item, at = (is_key_frame(payload), packets), timestamp / 1000
            if self._repeats:
                self._repeat(packets[0].ticks, item[0], now)
            if self._pacer.passes(at, now):
                self._send(item, now)
            else:
                self._queue(at, item, now)

    def _may_send(self, plan: VideoPlan, now: float) -> bool:
        """Whether the phone takes pictures, can be reached, and its address is proven: `Consent`.

        The address of its sound will do; a phone need not send pictures to get some.
        """
        media = plan.media
        if not media.sends or media.remote is None or not self._wire.is_ready:
            return False
        if not self._consent.is_open and self._listener.hears(media.remote[0]):
            self._consent.hear(now)
        return self._consent.is_open

    def _begin(self, plan: VideoPlan, now: float) -> None:
        """Send all since the last key frame at once, so that the phone need not wait for one."""
        parameters, self._payload_type = plan.for_profile("")
        self._to_phone = FlvToH264(parameters.packetization_mode, self.max_octets)
        self._skipping = False
        for timestamp, payload in self.group:
            self._send((True, self._convert(plan, timestamp, payload)), now)

    def _convert(self, plan: VideoPlan, timestamp: int, payload: bytes) -> list[Packet]:
        """Make a picture into packets; a sequence header, or an unsuitable one, gives none."""
        to_phone = self._to_phone
        assert to_phone is not None
        try:
            packets = to_phone.convert(payload, timestamp)
        except UnsuitableError as error:
            self.unsuitable += 1
            if str(error) != self._reason:
                self._reason = str(error)
                self._listener.on_video_unsuitable(self._reason)
            return []
        if not packets and (profile := to_phone.profile_level) is not None:
            parameters, self._payload_type = plan.for_profile(profile.sub_profile)
            to_phone.mode = parameters.packetization_mode
        return packets

    def _repeat(self, next_ticks: int, is_key: bool, now: float) -> None:
        """Repeat all since the last key frame, before a picture that is none: see `repeat`."""
        to_phone, waits = self._to_phone, self._pacer.deadline is not None
        self._repeats = not is_key and (waits or now < self._repeat_at)
        if self._repeats or is_key or to_phone is None:
            return
        times = range(self._shown + 1, next_ticks)
        before = list(self.group)[:-1]
        self._repeat_at = now + repeat.SECONDS
        self._send((True, repeat.again(before, to_phone.mode, self.max_octets, times)), now)

    def _queue(self, at: float, item: tuple[bool, list[Packet]], now: float) -> None:
        pacer = self._pacer
        idle, dropped = pacer.deadline is None, pacer.dropped
        for due in pacer.put(at, item, now):
            self._send(due, now)
        self._skipping |= pacer.dropped != dropped
        if idle and pacer.deadline is not None:
            self._wake()
        if pacer.is_ahead and not self._holding:
            self._hold_back(True)

    def _send(self, item: tuple[bool, list[Packet]], now: float) -> None:
        is_key, packets = item
        self._skipping = self._skipping and not is_key
        if self._skipping:  # it depends on a picture that was dropped
            return
        send, pack, payload_type = self._wire.send_rtp, self._sender.send, self._payload_type
        for ticks, payload, marker in packets:
            send(pack(payload_type, payload, ticks + self._offset & 0xFFFFFFFF, marker, now))
            self._shown = ticks
        self.sent += len(packets)

    def _hold_back(self, hold: bool) -> None:
        if hold != self._holding:
            self._holding = hold
            self._listener.on_video_hold_back(hold)

    # -- from the phone -----------------------------------------------------------------

    def on_rtp(self, data: bytes, now: float) -> None:
        """Take one datagram from the RTP port: RFC 3550 §A.1."""
        receiver = self._receiver
        if self._closed or receiver is None:
            return
        invalid, source = receiver.invalid, receiver.ssrc
        packets = receiver.received(data, now)
        if receiver.invalid != invalid:
            return
        self._listener.on_picture(now)
        self._consent.hear(now)
        if receiver.ssrc != source and source is not None and self._to_rtmp is not None:
            self._unpacker, self._assembler = H264Unpacker(), PictureAssembler()
            self._to_rtmp.restart()
        for packet in packets:
            self._deliver(packet, now)
        if receiver.deadline is not None or self._ask_at is not None:
            self._wake()

    def on_rtcp(self, data: bytes, now: float) -> None:
        """Take one datagram from the RTCP port: RFC 3550 §6.4, RFC 4585 §6.2.1."""
        reporter = self._reporter
        if self._closed or reporter is None:
            return
        invalid = reporter.invalid
        events = reporter.received(data, now)
        if reporter.invalid == invalid:
            self._listener.on_picture(now)
            self._consent.hear(now)
        for event in events:
            for datagram in self._sender.heed(event, now):
                self._wire.send_rtp(datagram)

    def ask_key_frame(self, now: float) -> None:
        """Ask the phone for a key frame, for a player that has just come: RFC 5104 §3.5.1."""
        if self._receiver is not None and self.received:
            if self._asks_by_rtcp:
                self._receiver.join(now)
            elif self._ask_at is None:
                self._ask_at = now
            self._wake()

    def _deliver(self, packet: VideoPacket, now: float) -> None:
        plan, to_rtmp, receiver = self._plan, self._to_rtmp, self._receiver
        # RFC 3264 §6.1; RFC 3550 §5.1: what was never agreed is ignored
        if plan is None or to_rtmp is None or receiver is None:
            return
        if packet.payload_type not in plan.receiving:
            return
        self.received += 1
        timeline = self._timeline
        sequence, _, timestamp, marker, payload = packet
        for item in self._unpacker.push(sequence, timestamp, marker, payload):
            for picture in self._assembler.push(item):
                behind = wrapped_difference(timestamp, picture.timestamp, RTP_WRAP)
                came = now - min(max(0, behind), MAX_WAIT) / CLOCK_RATE
                # RFC 3550 §6.4.1 [sound-and-picture-together]
                moment = receiver.time_of(picture.timestamp)
                shown = timeline.at(moment, came) if moment is not None else None
                tags = to_rtmp.convert(picture, int(timeline.arrival(came)), shown)
                if tags and to_rtmp.size != self._size:
                    self._size = to_rtmp.size
                    self._listener.on_picture_size(now)
                for time, tag in tags:
                    self.on_tag(VIDEO, time, tag, now)
                if to_rtmp.wants_key_frame:
                    self._damaged(now)
                elif picture.is_key:
                    self._ask_at = None
                    receiver.refreshed()

    def _damaged(self, now: float) -> None:
        """Ask for a key frame until one has come, by the way that the phone takes."""
        if self._asks_by_rtcp:
            assert self._receiver is not None
            self._receiver.damaged(now)
        elif self._ask_at is None:
            self._ask_at = now

    @property
    def _asks_by_rtcp(self) -> bool:
        # RFC 5168 §3 [feedback-first]
        return self._plan is not None and not BY_RTCP.isdisjoint(self._plan.media.feedback)

    def want_key_frame(self, now: float) -> None:
        """Take the phone's wish for a key frame, which came by SIP: RFC 5168 §4."""
        self._sender.want(now)

    def _on_key_frame_wanted(self) -> None:
        """Tell the publisher, and repeat what there is with the next picture if it is none."""
        self.wanted += 1
        self._repeats = True
        self._listener.on_key_frame_wanted()

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: the next picture, report or request.  RFC 3550 §6.2 for reports."""
        if self._closed or self._reporter is None or self._receiver is None:
            return None
        reports, lost = self._reporter.deadline, self._receiver.deadline
        times = self._pacer.deadline, reports, lost, self._sender.deadline, self._ask_at
        return min((each for each in times if each is not None), default=None)

    def tick(self, now: float) -> None:
        """Do the work that is due: a picture, a report (RFC 3550 §6.3), a request."""
        if self._closed or self._reporter is None or self._receiver is None:
            return
        dropped = self._pacer.dropped
        due = self._pacer.tick(now)
        self._skipping |= self._pacer.dropped != dropped
        for item in due:
            self._send(item, now)
        if self._holding and self._pacer.has_room:
            self._hold_back(False)
        for packet in self._receiver.tick(now):
            self._deliver(packet, now)
        self._sender.tick(now)
        if self._ask_at is not None and self._ask_at <= now:
            self._ask_at = now + ASK_SECONDS
            self._listener.on_key_frame_needed(now)  # RFC 5168 §4
        if self._reporter.deadline <= now:
            for report in self._reporter.tick(now):
                if self._consent.is_open:
                    self._wire.send_rtcp(report)


def _ignore(type_id: int, timestamp: int, payload: bytes, now: float) -> None:
    """Drop pictures of the phone while no user has set `on_tag`."""
