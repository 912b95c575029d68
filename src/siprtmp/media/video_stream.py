"""The video of one peer: a phone's packets on one side, a publisher's video tags on the other.

Implements RFC 6184 §5 and §8.2.2 by way of `p2psip.rtp`, between FLV 10.1 §E.4.3.1 tags and RTP;
RFC 7798 and RFC 7741 likewise.

A sans-I/O machine.  The packets of a frame leave together, when the frame is due; a frame of the
phone leaves as one tag.  Neither way passes a frame on that a lost one has spoilt: it freezes, and
asks for a key frame.
"""

from collections.abc import Callable, Sequence
from typing import Final

from p2psip.rtp.reporter import Event, Reporter
from p2psip.rtp.rtcp_timer import MIN_SECONDS
from p2psip.rtp.video_receiver import VideoReceiver
from rtmplite.flv.video import is_sequence_header
from siprtmp.media.lines.h264 import VideoPlan
from siprtmp.media.lines.video_format import CLOCK_RATE
from siprtmp.media.stream import (
    VIDEO,
    MediaStream,
    OnTag,
    SharedContext,
    Signalled,
    StreamListener,
    StreamSettings,
)
from siprtmp.media.transport import MediaTransport
from siprtmp.media.video.gop_cache import GopCache
from siprtmp.media.video_from_phone import VideoFromPhone
from siprtmp.media.video_to_phone import OnShown, VideoToPhone

REPORT_OCTETS: Final = 3000.0  # a second, of RTCP: a twentieth of half a megabit of video


class VideoStream(MediaStream):
    """One call's video, from the description that agrees on it to the end.

    RFC 3550 §6.4 for the session.  The frames follow the time of the audio: see `SharedContext`.
    With a transcoding, frames are made that the phone cannot have as they are.
    """

    def __init__(
        self,
        transport: MediaTransport,
        listener: StreamListener,
        settings: StreamSettings,
        now: float,
        wake: Callable[[], None],
        shared: SharedContext,
    ) -> None:
        super().__init__(transport, listener, wake, shared)
        self._settings, self._transcoding = settings, settings.video_transcoding
        self.plan: VideoPlan | None = None  # of the last answer
        self._to_phone = VideoToPhone(
            transport, listener, settings.random, wake, settings.max_octets, self._transcoding
        )
        self._sender = self._to_phone.sender
        self._receiver: VideoReceiver | None = None  # these come with the first plan
        self._from_phone: VideoFromPhone | None = None

    # -- set-up -------------------------------------------------------------------------

    def start(self, plan: VideoPlan, now: float, by: Signalled) -> None:
        """Send and receive as an answer settled, as `AudioStream.start`; again after later ones.

        RFC 3264 §8: a new answer may move the peer, change the profile, or hold the call.
        """
        if self._closed:
            return
        before, self.plan = self.plan, plan
        if self._from_phone is None:
            self._prepare(plan, now)
        else:
            self._from_phone.plan = plan
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
        self._from_phone = VideoFromPhone(
            plan, receiver, self._timeline, self._listener, self._transcoding
        )
        self._from_phone.on_tag = self.on_tag

    def _let_go(self) -> None:
        self._to_phone.close()
        if self._from_phone is not None:
            self._from_phone.close()

    # -- figures ------------------------------------------------------------------------

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the phone's frames, once they are known: RFC 6184 §8.1."""
        return self._from_phone.size if self._from_phone is not None else None

    @property
    def codec(self) -> str:
        """The codec of the phone's frames as players get them: FLV 10.1 §E.5."""
        return self._from_phone.codec if self._from_phone is not None else ""

    @property
    def freezes(self) -> int:
        """How often a lost frame of the phone has stopped the others.  RFC 6184 §6.3."""
        return self._from_phone.freezes if self._from_phone is not None else 0

    @property
    def received(self) -> int:
        """The packets of video from the phone: RFC 3550 §6.4.1."""
        return self._from_phone.received if self._from_phone is not None else 0

    @property
    def sent(self) -> int:
        """The packets of video to the phone: RFC 3550 §6.4.1."""
        return self._to_phone.sent

    @property
    def unsuitable(self) -> int:
        """The published messages that could not be sent: FLV 10.1 §E.4.3.1."""
        return self._to_phone.unsuitable

    @property
    def left_out(self) -> int:
        """The published frames that came too late.  Own design: see `pacing`."""
        return self._to_phone.left_out

    @property
    def wanted(self) -> int:
        """The key frames that the phone has asked for: RFC 5104 §3.5.1."""
        return self._to_phone.wanted

    @property
    def transcodes(self) -> list[str]:
        """What is decoded and encoded now, as "h264 1280x720 > h264 640x360": RFC 6184 §8.2.2."""
        back = self._from_phone.transcodes if self._from_phone is not None else ""
        return [each for each in (self._to_phone.transcodes, back) if each]

    # -- the two ways -------------------------------------------------------------------

    def give_to(self, on_tag: OnTag) -> None:
        """Give `on_tag` the phone's frames from now on: FLV 10.1 §E.4.3.1."""
        super().give_to(on_tag)
        if self._from_phone is not None:
            self._from_phone.on_tag = on_tag

    @property
    def gop(self) -> GopCache:
        """The frames since the last key frame, also from before the call: FLV 10.1 §E.4.3.1."""
        return self._to_phone.gop

    @gop.setter
    def gop(self, group: GopCache) -> None:
        self._to_phone.gop = group

    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published video message (RTMP 1.0 §7.1.4), and send it when it is due."""
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
            for timestamp, payload in self.gop:
                if is_sequence_header(payload):
                    shown(timestamp, payload, now)

    def on_rtp(self, data: bytes, now: float) -> None:
        """Take one datagram from the RTP port: RFC 3550 §A.1."""
        receiver, from_phone = self._receiver, self._from_phone
        if self._closed or receiver is None or from_phone is None:
            return
        invalid, source = receiver.invalid, receiver.ssrc
        packets = receiver.received(data, now)
        if receiver.invalid != invalid:
            return
        self._alive(now)
        self._welcome(now)
        if receiver.ssrc != source and source is not None:
            from_phone.restart()
        for packet in packets:
            from_phone.take(packet, now)
        if receiver.deadline is not None or from_phone.ask_at is not None:
            self._wake()

    def _heed(self, events: Sequence[Event], now: float) -> None:
        for event in events:
            for datagram in self._sender.on_feedback(event, now):
                self.transport.send_rtp(datagram)

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
        """When to call `tick`: the next frame, report or request.  RFC 3550 §6.2 for reports."""
        reporter, receiver, from_phone = self._reporter, self._receiver, self._from_phone
        if self._closed or reporter is None or receiver is None or from_phone is None:
            return None
        due, lost = self._to_phone.pacer.deadline, receiver.deadline
        times = due, reporter.deadline, lost, self._sender.deadline, from_phone.ask_at
        return min((each for each in times if each is not None), default=None)

    def tick(self, now: float) -> None:
        """Do the work that is due: a frame, a report (RFC 3550 §6.3), a request."""
        from_phone = self._from_phone
        if self._closed or from_phone is None:
            return
        self._to_phone.tick(now)
        self._tell_late(self.left_out, now)
        from_phone.tick(now)
        self._sender.tick(now)
        self._report(now)
