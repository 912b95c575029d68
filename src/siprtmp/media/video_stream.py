"""The video of one peer: a phone's packets on one side, a publisher's video tags on the other.

Implements RFC 6184 §5 and §8.2.2 by way of `p2psip.rtp`, between FLV 10.1 §E.4.3.1 tags and RTP;
RFC 7798 and RFC 7741 likewise.

A sans-I/O machine.  The packets of a frame leave together, when the frame is due; a frame of the
phone leaves as one tag.  Neither way passes a frame on that a lost one has spoilt: it freezes, and
asks for a key frame.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from p2psip.rtp.reporter import Event, Reporter
from p2psip.rtp.rtcp_timer import MIN_SECONDS
from p2psip.rtp.video_receiver import VideoPacket, VideoReceiver
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.local_media import RepairSources
from p2psip.srtp.stream import VIDEO_WINDOW
from rtmplite.flv.video import is_sequence_header
from siprtmp.media.offload import Counted, Gathering
from siprtmp.media.sink import VIDEO, MediaSink
from siprtmp.media.stream import MediaStream, Signalled, StreamContext, earliest
from siprtmp.media.transport import MediaTransport, MediaWay
from siprtmp.media.video_from_phone import VideoFromPhone
from siprtmp.media.video_lines import CLOCK_RATE, VideoPlan
from siprtmp.media.video_to_phone import OnShown, VideoToPhone

REPORT_OCTETS: Final = 3000.0  # a second, of RTCP: a twentieth of half a megabit of video


class VideoFigures(NamedTuple):
    """The figures of a stream: packets that were sent, and those of the phone that it received.

    Of what was published, `unsuitable` counts the messages that could not be sent, and `left_out`
    the frames that came too late (see `pacing`); `wanted` counts the key frames that the phone has
    asked for, `freezes` how often a lost frame of the phone has stopped the others.  Width and
    height are those of the phone's frames, once they are known, and `codec` that of their tags.
    `transcodes` has what is made anew now, as "h264 1280x720 > h264 640x360".
    """

    sent: int = 0
    unsuitable: int = 0
    left_out: int = 0
    wanted: int = 0
    received: int = 0
    freezes: int = 0
    size: tuple[int, int] | None = None
    codec: str = ""
    transcodes: Sequence[str] = ()


class VideoStream(MediaStream):
    """One call's video, from the description that agrees on it to the end; it follows the audio."""

    def __init__(self, transport: MediaTransport, context: StreamContext) -> None:
        self._context = context
        self._gathering = Gathering(context.settings.has_pump, self._take_whole)
        self._to_phone = VideoToPhone(
            transport, context, lambda: self.sink.on_key_frame_wanted(), self._hold_back
        )
        self._from_phone: VideoFromPhone | None = None  # these come with the first plan
        self._receiver: VideoReceiver | None = None
        super().__init__(transport, context)
        self.plan: VideoPlan | None = None  # of the last answer
        self._sender = self._to_phone.sender

    # -- set-up -------------------------------------------------------------------------

    def start(self, plan: VideoPlan, now: float, by: Signalled) -> None:
        """Send and receive as an answer settled; a later one may change all of it: RFC 3264 §8."""
        if self._closed:
            return
        self.reclaim()
        before, self.plan = self.plan, plan
        if self._from_phone is None:
            self._prepare(plan, now)
        else:
            self._from_phone.plan = plan
        self._repair_by(plan.media)
        self._trust(plan.media, by, now)
        if before != plan or not self._consent.is_open:
            self._to_phone.stop()
        self._aim(plan.media, by.hosts)
        self._wake()

    def _prepare(self, plan: VideoPlan, now: float) -> None:
        feedback, interval = plan.media.feedback, plan.media.report_interval
        if not plan.media.avpf:  # RFC 3550 §6.2: requests leave at once there too, but no reports
            interval = max(interval, MIN_SECONDS)
        self._reporter = Reporter(
            self._settings.cname,
            self._settings.random,
            now,
            [self._sender],
            [],
            wallclock=self._settings.wallclock,
            bandwidth=REPORT_OCTETS,
            early=bool(feedback),
            report_interval=interval,
        )
        receiver = VideoReceiver(CLOCK_RATE, self._reporter, feedback, plan.arriving)
        self._receiver = receiver
        self._from_phone = VideoFromPhone(plan, receiver, self._context, self.sink)

    @property
    def repair_sources(self) -> RepairSources:
        """The sources of our packets and of their repeats: RFC 4588 §5.3."""
        sender = self._sender
        return RepairSources(sender.ssrc, sender.repeater.ssrc, self._settings.cname)

    def _repair_by(self, media: AgreedMedia) -> None:
        """Send again, and take again, by RTX where that is agreed on: RFC 4588 §8.1."""
        receiver, reporter = self._receiver, self._reporter
        assert receiver is not None and reporter is not None
        self._sender.repairs, receiver.repairs = media.repairs, media.arriving_repairs
        self._sender.on_repair = reporter.senders.append

    _replay_window = VIDEO_WINDOW

    def _go_by(self, way: MediaWay) -> None:
        super()._go_by(way)
        self._gathering.is_wanted = False
        self._to_phone.way = way

    def _let_go(self) -> None:
        self._to_phone.close()
        if self._from_phone is not None:
            self._from_phone.close()

    @property
    def figures(self) -> VideoFigures:
        """What both ways have counted, and what they are about."""
        self.reclaim()
        out, back = self._to_phone, self._from_phone
        figures = VideoFigures(out.sent, out.unsuitable, out.left_out, out.wanted)
        if back is not None:
            counts = back.received, back.freezes, back.size, back.codec
            figures = VideoFigures(*figures[:4], *counts)
        transcodes = out.transcodes, back.transcodes if back is not None else ""
        return figures._replace(transcodes=[each for each in transcodes if each])

    # -- the two ways -------------------------------------------------------------------

    def give_to(self, sink: MediaSink) -> None:
        super().give_to(sink)
        self._to_phone.gop = sink.published.gop
        if self._from_phone is not None:
            self._from_phone.sink = sink

    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        plan, to_phone = self.plan, self._to_phone
        if type_id != VIDEO or self._closed or not payload:
            return
        to_phone.gop.put(timestamp, payload)
        if plan is None:
            return
        if to_phone.is_open:
            to_phone.publish(timestamp, payload, now)
        elif self._reaches(plan.media, now):
            to_phone.begin(plan, now)

    def tap(self, shown: OnShown, now: float) -> None:
        """Give `shown` each tag of the publisher from now on, when it is due: RTMP 1.0 §7.1.4.

        Own design: before anything is decoded; a header that has come comes first.
        """
        self._to_phone.on_shown = shown
        if self._to_phone.is_open:
            for timestamp, payload in self._to_phone.gop:
                if is_sequence_header(payload):
                    shown(timestamp, payload, now)

    def on_rtp(self, data: bytes, now: float) -> None:
        gathering = self._gathering
        if gathering.lent is not None:
            self.reclaim()
        packets = self._hear(data, now)
        if packets and gathering.is_wanted and packets[-1].marker and self._from_phone is not None:
            number = packets[-1].payload_type
            self._from_phone.lend(gathering, self.transport.gather, number)

    def _hear(self, data: bytes, now: float) -> list[VideoPacket]:
        """Take a datagram; the packets whose turn it was then: RFC 3550 §A.1."""
        receiver, from_phone = self._receiver, self._from_phone
        if self._closed or receiver is None or from_phone is None:
            return []
        invalid, source = receiver.invalid, receiver.ssrc
        packets = receiver.received(data, now)
        if receiver.invalid != invalid:
            return []
        self._alive(now)
        self._welcome(now)
        if receiver.ssrc != source and source is not None:
            from_phone.restart()
        for packet in packets:
            from_phone.take(packet, now)
        if receiver.deadline is not None or from_phone.ask_at is not None:
            self._wake()
        return packets

    def _take_whole(self, timestamp: int, units: tuple[bytes, ...], now: float) -> None:
        """Take an access unit that a pump has put together: RFC 6184 §5.1."""
        receiver, from_phone = self._receiver, self._from_phone
        if receiver is None or from_phone is None:
            return
        self._alive(now)
        from_phone.take_whole(timestamp, units, now)
        if receiver.deadline is not None or from_phone.ask_at is not None:
            self._wake()

    def reclaim(self) -> None:
        counted, waiting = self._gathering.end()
        self._count(counted)
        if self._from_phone is not None:
            self._from_phone.received -= len(waiting)  # which are taken now
            for packet, at in waiting:
                self._from_phone.take(packet, at)

    def follow(self) -> None:
        self._count(self._gathering.follow())

    def _count(self, counted: Counted | None) -> None:
        if counted is not None and counted.packets and self._from_phone is not None:
            self._alive(counted.heard_at)
            self._from_phone.received += counted.packets

    def _heed(self, events: Sequence[Event], now: float) -> None:
        if self._receiver is not None and self._receiver.ssrc is None:  # it has said BYE
            self.reclaim()
        for event in events:
            for datagram in self._sender.on_feedback(event, now):
                self.way.send_rtp(datagram)

    def ask_key_frame(self, now: float) -> None:
        """Ask the phone for a key frame, for a player that has just come: RFC 5104 §3.5.1."""
        if self._from_phone is not None and self._from_phone.ask_key_frame(now):
            self._wake()

    def want_key_frame(self, now: float) -> None:
        """Take the phone's wish for a key frame, which came by SIP: RFC 5168 §4."""
        self._sender.want(now)

    # -- time ---------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        reporter, receiver, from_phone = self._reporter, self._receiver, self._from_phone
        if self._closed or reporter is None or receiver is None or from_phone is None:
            return None
        due, lost = self._to_phone.pacer.deadline, receiver.deadline
        times = due, reporter.deadline, lost, self._sender.deadline, from_phone.ask_at
        return earliest(times)

    def tick(self, now: float) -> None:
        from_phone = self._from_phone
        if self._closed or from_phone is None:
            return
        self._to_phone.tick(now)
        self._tell_late(self._to_phone.left_out, now)
        from_phone.tick(now)
        self._sender.tick(now)
        self._report(now)
