"""Media that a packet pump passes on in place of a stream, packet by packet, until something else.

Own design: of a thousand packets of a call hardly one needs more than the next sequence number, a
time and a header of RTMP.  Those may be handled elsewhere (`siprtmp.pump`, in C), by the `Terms`
that a stream gives; every other packet comes to the stream, which first takes back what was counted
meanwhile.  So the stream is always right when anybody looks, and stays the specification.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from p2psip.rtp.reception import Reception
from p2psip.rtp.reorder import ReorderBuffer
from p2psip.rtp.session import RtpSession
from p2psip.rtp.video_receiver import VideoPacket, VideoReceiver
from siprtmp.media.pacing import Pacer
from siprtmp.media.translate.conversion import AudioToFlv, AudioToRtp, Packet
from siprtmp.media.translate.opus_passing import OpusToFlv
from siprtmp.media.translate.rtp_to_flv import RtpToFlv
from siprtmp.media.translate.timebase import MediaClock, SampleClock
from siprtmp.media.translate.video_to_flv import H264ToFlv

NO_HEADER: Final = bytes(12)  # of a chunk, where tags are made
MAX_OCTETS: Final = 65_535  # of the tag of a packet, whose datagram is no longer
AGAIN: Final = 10  # packets after which a stream that could not be offloaded is tried again


class Players(NamedTuple):
    """Where the messages go: the template of a header, the longest body, and the ways to players.

    `header` is that of a chunk of type 0 without time and length (RTMP 1.0 §5.3.1.2.1);
    `returned(time)` is to be told when the stream goes on itself, with the time of the last message
    in ms, or None.
    """

    header: bytes
    longest: int
    ways: tuple[Callable[[bytes], None], ...]
    returned: Callable[[int | None], None]

    @property
    def way(self) -> tuple[tuple[Callable[[bytes], None], ...], bytes, int]:
        """The terms of a pump that writes to them."""
        return self.ways, self.header, self.longest


class TagSink(Protocol):
    """Takes the tags of a stream, or knows the players that do: see `MediaSink`."""

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take audio or video as an RTMP message: RTMP 1.0 §7.1.4."""

    def offload(self, recall: Callable[[], None]) -> Players | None:
        """The players, if a pump may write to them in place of `on_tag`."""


class Counted(NamedTuple):
    """What a pump has counted, as `Source` (RFC 3550 §A.1 and §A.8) and `MediaClock` have it.

    `packets` have come, and `delivered` of them, or access units of pictures, had their turn, with
    `skipped` ones given up; `waiting` are those that had none, and are for Python.
    """

    packets: int
    octets: int
    advance: int
    jitter: float
    timestamp: int
    heard_at: float
    delivered: int
    skipped: int
    media_timestamp: int
    ticks: int
    last_ms: int
    waiting: list[Any]

    @property
    def reception(self) -> tuple[int, int, int, tuple[float, int, float]]:
        """What `Reception.went_on` takes: RFC 3550 §A.1, §A.8."""
        arrival = self.jitter, self.timestamp, self.heard_at
        return self.advance, self.packets, self.octets, arrival


class Flow(Protocol):
    """The packets of one transport, while a pump handles them; `deadline` is when to `tick`."""

    @property
    def deadline(self) -> float | None:
        """When what waits for a lost packet has waited enough, None if nothing does."""

    def tick(self, now: float) -> None:
        """Pass on what has waited enough."""

    def follow(self) -> tuple[Any, ...] | None:
        """Tell the fields of `Counted` since the last time; None if there was nothing."""

    def reclaim(self) -> tuple[Any, ...] | None:
        """Give the packets back, with the fields of `Counted`; None if the pump had none."""


class Lent(NamedTuple):
    """The parts of a stream that a pump updates in its place, and the flow that it handles.

    `players` is None where it makes tags, for whatever takes them.
    """

    flow: Flow
    players: Players | None
    reception: Reception
    order: ReorderBuffer[Any]
    clock: MediaClock
    payload_type: int

    def note(self, counted: Counted) -> None:
        """Move all on by the counts of the pump, and queue here what waited there."""
        order = self.order
        if counted.packets:
            self.reception.went_on(*counted.reception)
        order.went_on(counted.delivered, counted.skipped)
        if counted.delivered:
            clock = counted.media_timestamp, counted.ticks, counted.last_ms
            self.clock.went_on(*clock)
        for ahead, at, timestamp, payload in counted.waiting:
            heard = self.payload_type, timestamp, payload, self.reception.ssrc, at
            order.early[(order.next or 0) - 1 + ahead] = at, heard


class Offloading:
    """Lends the packets of one stream to a pump where it can pass them on, and takes them back.

    `recall` is called when the players change, and `wake` when there is an earlier deadline.
    `is_wanted` is false where there is no pump, and `next_try` is the extended sequence number
    from which it is worth asking again.
    """

    def __init__(
        self, is_wanted: bool, recall: Callable[[], None], wake: Callable[[], None]
    ) -> None:
        self.is_wanted, self.next_try = is_wanted, 0
        self._recall, self._wake = recall, wake
        self.lent: Lent | None = None  # while the pump has the packets
        self._last_ms: int | None = None  # of what it passed on

    def begin(
        self,
        offload: Callable[..., Flow | None],
        sink: TagSink,
        session: RtpSession,
        order: ReorderBuffer[Any],
        to_rtmp: AudioToFlv | None,
        payload_type: int,
    ) -> None:
        """Lend the packets after the last one to a pump, if the stream is in its usual state."""
        following, reception = order.next, session.reception
        if following is None:
            return
        self.next_try = following - 1 + AGAIN
        if not isinstance(to_rtmp, RtpToFlv | OpusToFlv):
            return
        arrival, clock = reception.source.arrival, to_rtmp.clock.state
        if reception.source.highest != following - 1 or arrival is None or clock is None:
            return
        players = sink.offload(self._recall)
        out = (sink.on_tag, NO_HEADER, MAX_OCTETS) if players is None else players.way
        passing, source = to_rtmp.passing, (following - 1 & 0xFFFF, session.clock_rate, *arrival)
        flow = offload(
            *out, passing.head, passing.check, payload_type, reception.ssrc, source, tuple(clock),
            order.bounds, self._wake,
        )  # fmt: skip
        if flow is not None:
            self.lent = Lent(flow, players, reception, order, to_rtmp.clock, payload_type)
            self._last_ms = None
        elif players is not None:
            players.returned(None)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, while packets wait for a lost one: RFC 3550 §5.1."""
        return self.lent.flow.deadline if self.lent is not None else None

    def tick(self, now: float) -> None:
        """Have the pump pass on what has waited enough: RFC 3550 §5.1."""
        if self.lent is not None:
            self.lent.flow.tick(now)

    def follow(self) -> Counted | None:
        """Move all on by the counts of the pump, which goes on; None if nothing was."""
        lent = self.lent
        seen = lent.flow.follow() if lent is not None else None
        return self._note(lent, seen) if lent is not None else None

    def end(self) -> Counted | None:
        """Take the packets back, and move all on by the counts of the pump; None if nothing was."""
        lent, self.lent = self.lent, None
        if lent is None:
            return None
        counted = self._note(lent, lent.flow.reclaim())
        if lent.players is not None:
            lent.players.returned(self._last_ms)
        return counted

    def _note(self, lent: Lent, seen: tuple[Any, ...] | None) -> Counted | None:
        counted = Counted(*seen) if seen is not None else None
        if counted is None:
            return None
        lent.note(counted)
        if counted.delivered:
            self._last_ms, self.next_try = counted.last_ms, 0
        return counted


class Gathering:
    """Lends the packets of H.264 to a pump that gives `take` whole access units: RFC 6184 §5.1.

    `take(timestamp, units, now)` is called with the packet that completes one.
    """

    def __init__(
        self, is_wanted: bool, take: Callable[[int, tuple[bytes, ...], float], None]
    ) -> None:
        self.is_wanted, self._take = is_wanted, take
        self.lent: tuple[Flow, VideoReceiver, H264ToFlv] | None = None

    def begin(
        self,
        gather: Callable[..., Flow | None],
        receiver: VideoReceiver,
        to_flv: object,
        payload_type: int,
    ) -> None:
        """Lend the packets after the last one, if the stream is between two access units."""
        arrival = receiver.arrival
        if not isinstance(to_flv, H264ToFlv) or not to_flv.is_between or arrival is None:
            return
        flow = gather(self._take, payload_type, receiver.ssrc, arrival)
        if flow is not None:
            self.lent = flow, receiver, to_flv

    def follow(self) -> Counted | None:
        """Have the source counted as far as the pump is, which goes on; None if nothing came."""
        return self._note(self.lent[0].follow()) if self.lent is not None else None

    def end(self) -> tuple[Counted | None, list[tuple[VideoPacket, float]]]:
        """Take all back: what was counted, and the packets that wait for others, and since when."""
        if self.lent is None:
            return None, []
        flow, receiver, to_flv = self.lent
        counted, self.lent = self._note(flow.reclaim()), None
        if counted is None:
            return None, []
        packets = receiver.waited([data for data, _ in counted.waiting])
        to_flv.went_on(receiver.following - len(packets), counted.media_timestamp)
        times = [at for _, at in counted.waiting]
        return counted, list(zip(packets, times, strict=True))

    def _note(self, seen: tuple[Any, ...] | None) -> Counted | None:
        counted = Counted(*seen) if seen is not None else None
        if counted is not None and counted.packets and self.lent is not None:
            self.lent[1].went_on(*counted.reception)
        return counted


class Sent(NamedTuple):
    """What a pump has sent, as `Sender` (RFC 3550 §5.1), `SampleClock` and `Pacer` have it."""

    packets: int
    octets: int
    timestamp: int
    sent_at: float
    position: int
    anchor: float
    last: float


class Outlet(Protocol):
    """The way of a publisher's audio to a phone, while a pump handles it."""

    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published message, and send it, or give it to the stream."""

    def offload(self, *terms: Any) -> bool:
        """Send messages that meet these terms, see `Sending`; False if it won't."""

    def reclaim(self) -> tuple[Any, ...] | None:
        """Stop, with the fields of `Sent`; None if there was nothing to stop."""


class Sending:
    """The audio of a publisher that a pump sends in place of a stream, packet by packet.

    `outlet` is None where there is no pump.  `recall` is called before our SSRC collides.
    """

    def __init__(self, outlet: Outlet | None, recall: Callable[[], None]) -> None:
        self.outlet, self._recall, self._wait = outlet, recall, 0
        # What the messages go on with, while the pump has them.
        self.lent: tuple[RtpSession, SampleClock, Pacer[Packet]] | None = None

    def is_due(self) -> bool:
        """Whether it is worth asking the pump, if there is one, after this message."""
        self._wait -= 1
        return self._wait < 0

    def never(self) -> None:
        """Have nothing to do with the pump any more, as somebody wants each packet."""
        self.outlet = None

    def begin(
        self,
        to_phone: AudioToRtp,
        tag: bytes,
        payload_type: int,
        offset: int,
        session: RtpSession,
        pacer: Pacer[Packet],
    ) -> None:
        """Have a pump send the messages behind this one, if that was as usual as can be."""
        self._wait = AGAIN
        if self.outlet is None:
            return
        cutting, pace = to_phone.cutting(tag), pacer.state
        time = cutting.clock.state if cutting is not None else None
        if cutting is None or time is None or pace is None:
            return
        source, clock = (payload_type, session.sequence, session.ssrc), (*time, offset)
        if self.outlet.offload(*cutting[:-1], source, clock, pace):
            self.lent, self._wait = (session, cutting.clock, pacer), 0
            session.on_collision = self._recall

    def end(self) -> int:
        """Take the messages back, and move all on by the counts of the pump, which is returned."""
        lent, self.lent = self.lent, None
        if lent is None or self.outlet is None:
            return 0
        seen, (session, clock, pacer) = self.outlet.reclaim(), lent
        if seen is None or not seen[0]:
            return 0
        sent = Sent(*seen)
        session.went_on(sent.packets, sent.octets, sent.timestamp, sent.sent_at)
        clock.position = sent.position
        pacer.went_on(sent.anchor, sent.last, sent.sent_at)
        return sent.packets
