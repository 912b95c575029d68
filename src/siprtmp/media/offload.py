"""Audio that a packet pump passes on in place of a stream, packet by packet, until something else.

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
from siprtmp.media.pacing import Pacer
from siprtmp.media.translate.conversion import AudioToFlv, AudioToRtp, Packet
from siprtmp.media.translate.opus_passing import OpusToFlv
from siprtmp.media.translate.rtp_to_flv import RtpToFlv
from siprtmp.media.translate.timebase import MediaClock, SampleClock

AGAIN: Final = 10  # packets after which a stream that could not be offloaded is tried again


class Players(NamedTuple):
    """Where the messages go: the template of a header, the longest body, and the outlets.

    `header` is that of a chunk of type 0 without time and length (RTMP 1.0 §5.3.1.2.1);
    `returned(time)` is to be told when the stream goes on itself, with the time of the last message
    in ms, or None.
    """

    header: bytes
    longest: int
    outlets: tuple[Any, ...]
    returned: Callable[[int | None], None]


class Counted(NamedTuple):
    """What a pump has counted, as `Source` (RFC 3550 §A.1 and §A.8) and `MediaClock` have it."""

    packets: int
    octets: int
    jitter: float
    timestamp: int
    heard_at: float
    media_timestamp: int
    ticks: int
    last_ms: int

    @property
    def arrival(self) -> tuple[float, int, float]:
        """What `Source.went_on` takes: RFC 3550 §A.8."""
        return self.jitter, self.timestamp, self.heard_at


class Flow(Protocol):
    """The packets of one transport, while a pump handles them."""

    def reclaim(self) -> tuple[Any, ...] | None:
        """Give the packets back, with the fields of `Counted`; None if the pump had none."""


class Lent(NamedTuple):
    """The parts of a stream that a pump updates in its place, and the flow that it handles."""

    flow: Flow
    players: Players
    reception: Reception
    order: ReorderBuffer[Any]
    next: int  # the extended sequence number that `order` waited for
    clock: MediaClock


class Offloading:
    """Lends the packets of one stream to a pump where it can pass them on, and takes them back.

    `recall` is called when the players change.  `is_wanted` is false where there is no pump, and
    `next_try` is the extended sequence number from which it is worth asking again.
    """

    def __init__(self, is_wanted: bool, recall: Callable[[], None]) -> None:
        self.is_wanted, self.next_try = is_wanted, 0
        self._recall = recall
        self.lent: Lent | None = None  # while the pump has the packets

    def begin(
        self,
        offload: Callable[..., Flow | None],
        players_until: Callable[[Callable[[], None]], Players | None],
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
        players = players_until(self._recall)
        if players is None:
            return
        passing, source = to_rtmp.passing, (following - 1 & 0xFFFF, session.clock_rate, *arrival)
        flow = offload(
            players.outlets, players.header, players.longest, passing.head, passing.check,
            payload_type, reception.ssrc, source, tuple(clock),
        )  # fmt: skip
        if flow is None:
            players.returned(None)
            return
        self.lent = Lent(flow, players, reception, order, following, to_rtmp.clock)

    def end(self) -> Counted | None:
        """Take the packets back, and move all on by the counts of the pump; None if nothing was."""
        lent, self.lent = self.lent, None
        if lent is None:
            return None
        seen = lent.flow.reclaim()
        counted = Counted(*seen) if seen is not None else None
        if counted is None or not counted.packets:
            lent.players.returned(None)
            return None
        lent.players.returned(counted.last_ms)
        self.next_try = 0
        lent.reception.went_on(counted.packets, counted.octets, counted.arrival)
        lent.order.next = lent.next + counted.packets
        lent.clock.went_on(counted.media_timestamp, counted.ticks, counted.last_ms)
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
