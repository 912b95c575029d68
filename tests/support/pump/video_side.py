"""A phone's pictures on their way to whatever takes tags, all of it real but the clock."""

from support.gateway.video_rig import video_plan
from support.pump.side import Port
from support.sip.elements import random_source

from siprtmp.media.sink import MediaSink
from siprtmp.media.stream import SharedContext, Signalled, StreamContext, StreamSettings
from siprtmp.media.timeline import Timeline
from siprtmp.media.video_stream import VideoStream

PHONE = ("192.0.2.9", 6000)


class VideoSide(MediaSink):
    """A stream of video from its socket to its tags, with a pump or without."""

    def __init__(self, *, pump=None, feedback=(), timeline=None):
        super().__init__()
        self.told, self.tags, self.heard_at, self.now = [], [], 0.0, 0.0
        self.feedback = feedback
        self.port = Port(pump=pump)
        settings = StreamSettings(random_source(1), "c", 60.0, has_pump=pump is not None)
        shared = SharedContext(self.alive, lambda host: False, timeline or Timeline(0.0))
        context = StreamContext(self, settings, 0.0, lambda: None, shared)
        self.stream = VideoStream(self.port, context)
        self.port.on_rtp, self.port.on_rtcp = self.stream.on_rtp, self.stream.on_rtcp
        self.stream.give_to(self)
        self.start()

    def start(self, *fmtps, **options):
        """Take an answer."""
        plan = video_plan(*fmtps, feedback=self.feedback, **options)
        self.stream.start(plan, self.now, Signalled((PHONE[0],)))

    def take(self, data, source=PHONE):
        """A datagram comes, by the pump if there is one."""
        if self.port._flow is None:
            self.port._take(data, source, self.now)
        else:
            self.port._flow.feed(data, source, self.now)

    def wait(self, seconds):
        until = self.now + seconds
        while (at := self.stream.deadline) is not None and at <= until:
            self.now = max(self.now, at)
            self.stream.tick(self.now)
        self.now = until

    def alive(self, now):
        self.heard_at = max(self.heard_at, now)

    def on_tag(self, *tag):
        self.tags.append(tag)

    def state(self):
        """All that anybody can see."""
        stream, receiver, port = self.stream, self.stream._receiver, self.port
        figures = stream.figures  # which takes all back
        source, order = receiver.source, receiver._order
        return {
            "figures": figures,
            "deadline": stream.deadline,
            "source": (source.received, source.lost, source._jitter, source.highest),
            "octets": (receiver.octets, receiver.last_received, receiver.ssrc),
            "candidate": (receiver.candidate_ssrc, receiver.invalid),
            "losses": {key: value for key, value in vars(receiver.losses).items()},
            "order": (order.next, order.late, order.skipped, sorted(order.early)),
            "parts": [vars(part) for part in stream._from_phone._to_flv._parts],
            "port": (port.received, port.strangers, port.failures, port.unsent),
            "told": (self.told, self.heard_at),
        }

    def output(self):
        """All that left."""
        self.port.collect()
        return self.tags, self.port.sent

    def close(self):
        self.stream.close(self.now)
        self.port._phone.close()

    # StreamListener
    def on_hold_back(self, asker, hold):
        self.told.append(hold)

    def on_key_frame_needed(self, now):
        self.told.append(("key frame", now))

    def on_format(self, now):
        self.told.append(("format", self.stream.figures.size, now))
