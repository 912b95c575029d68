"""The sending half of a session: its flows, which of them sends next, and losses.

Implements RFC 7016 §3.6.2 and §3.5.2.
"""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final

from rtmplite.errors import LocalError
from rtmplite.rtmfp.session.congestion import CongestionControl
from rtmplite.rtmfp.session.flight import Flight
from rtmplite.rtmfp.session.flow_states import RecvState
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.recv_flow import RecvFlow
from rtmplite.rtmfp.session.rtt import RoundTrip
from rtmplite.rtmfp.session.send_flow import LINGER_SECONDS, FlowSender, Priority, SendFlow
from rtmplite.rtmfp.session.send_queue import Entry
from rtmplite.rtmfp.wire.acks import BUFFER_BLOCK
from rtmplite.rtmfp.wire.fast_path import Ranges
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FlowException

PROBE_SECONDS: Final = 1.0  # §3.6.2.9.1
PROBE_MOST_SECONDS: Final = 60.0


class SendSide:
    """The state that the sending flows of a session share: §3.5.

    `room` is how many bytes of chunks go into a packet, `queued` the memory that the flows take,
    `overflowed` whether that is more than the limit.  `wake` is called when a flow may be ready.
    """

    def __init__(
        self,
        round_trip: RoundTrip,
        congestion: CongestionControl,
        limits: SessionLimits,
        wake: Callable[[], None],
    ) -> None:
        self.round_trip, self.congestion, self.limits = round_trip, congestion, limits
        self._wake = wake
        self.flight = Flight()
        self.flows: dict[int, SendFlow] = {}
        self.room = limits.datagram_bytes
        self.queued = 0
        self.overflowed = False
        self.timeout_alarm = inf  # TIMEOUT_ALARM: §3.6.2.6
        self._next_id = 1
        self._ready: dict[SendFlow, None] = {}
        self._lingering: deque[tuple[float, SendFlow]] = deque()
        self._probes: dict[SendFlow, tuple[float, float]] = {}  # next time, and period after it

    @property
    def deadline(self) -> float:
        """When to call `tick`, infinite for never: §3.5.2.3, §3.6.2.6, §3.6.2.9.1, §3.6.2.11."""
        deadline = min(self.timeout_alarm, self.congestion.burst.alarm)
        if self._lingering:
            deadline = min(deadline, self._lingering[0][0])
        for when, _ in self._probes.values():
            deadline = min(deadline, when)
        return deadline

    @property
    def has_work(self) -> bool:
        """Whether a flow may be ready, and congestion control allows a packet: §3.6.2.3."""
        return self._ready != {} and self.congestion.allows(self.flight.outstanding)

    def open(
        self,
        metadata: bytes,
        *,
        associated: RecvFlow | None,
        sender: FlowSender | None,
        priority: Priority,
        time_critical: bool,
    ) -> SendFlow:
        """Open a flow; LocalError: long metadata or a closed `associated` flow: §3.6.2.1."""
        # §3.6.2.1 [no-return-to-closed]
        if associated is not None and associated.state is not RecvState.OPEN:
            raise LocalError(f"an answer to a flow that is {associated.state}")
        flow = SendFlow(
            self,
            self._next_id,
            metadata,
            answers=None if associated is None else associated.flow_id,
            sender=sender or FlowSender(),
            priority=priority,
            time_critical=time_critical,
        )
        self._next_id += 1  # §3.6.2.11 [lingers-130]: no identifier is ever used twice
        self.flows[flow.flow_id] = flow
        return flow

    def ready(self, flow: SendFlow) -> None:
        """Note that a flow may have something to send: §3.6.2.3."""
        self._ready[flow] = None
        self._wake()

    def check_queued(self) -> None:
        """Set `overflowed` if the flows hold more than `SessionLimits.queued_bytes`: §5."""
        if self.queued > self.limits.queued_bytes:
            self.overflowed = True

    def linger(self, flow: SendFlow, now: float) -> None:
        """Keep a flow that is complete for 130 s: §3.6.2.11."""
        self._lingering.append((now + LINGER_SECONDS, flow))  # §3.6.2.11 [lingers-130]
        self._ready.pop(flow, None)

    def assemble(self, packet: bytearray, limit: int, now: float) -> bool:
        """Add user data up to `limit`, by priority, in turn; true if it is critical: §3.6.2.3."""
        start = len(packet)
        critical = False
        for flow in self._turns():
            size = len(packet)
            is_full = flow.assemble(packet, limit, now)
            if len(packet) > size:
                critical = critical or flow.time_critical
            if not is_full:
                del self._ready[flow]
                self._probe(flow, now)
                continue
            if len(packet) > size:
                del self._ready[flow]
                self.ready(flow)  # after the others
            break
        if len(packet) > start:
            self.congestion.sent(len(packet) - start, critical, now)
            self.timeout_alarm = now + self.round_trip.erto  # §3.6.2.6 [lost-after-erto]
        return critical

    def begin_packet(self) -> None:
        """Prepare for the chunks of a received packet: §A.2."""
        self.congestion.begin()

    def measured(self, now: float) -> None:
        """Have the alarm ring no later than the first measured ERTO says: §3.6.2.6."""
        if self.timeout_alarm != inf:
            self.timeout_alarm = min(self.timeout_alarm, now + self.round_trip.erto)

    def moved(self) -> None:
        """Send again what went to the address that the far end has left: §3.5.4.2.

        Own design: the RFC leaves it to the time-out, which silence has made as long as it gets.
        """
        self.timeout_alarm = inf
        self.round_trip.reset()
        self._lose(self.flight.time_out())
        self.congestion.moved()

    def on_ack(self, flow_id: int, blocks: int, ranges: Ranges, now: float) -> None:
        """Take an acknowledgement with a window of `blocks`, the first range from 0: §3.6.2.4."""
        flow = self.flows.get(flow_id)
        if flow is None:
            return
        count, is_further = flow.acknowledge(ranges, blocks * BUFFER_BLOCK, now)
        self.congestion.acknowledged(count)
        if flow.has_entries:
            self.ready(flow)
        if flow.is_suspended:
            self._probe(flow, now)
        else:
            self._probes.pop(flow, None)  # §3.6.2.9.1 [probes-end]
        if is_further:
            flow.sender.on_writable(flow, now)

    def on_exception(self, chunk: FlowException, now: float) -> None:
        """Take a Flow Exception Report: §3.6.2.10."""
        flow = self.flows.get(chunk.flow_id)
        if flow is not None:
            flow.excepted(chunk.exception, now)

    def end_packet(self, now: float) -> None:
        """Find losses and adapt the window, after a packet's chunks: §3.6.2.5, §A.2."""
        if not self.congestion.any_acks:
            return
        if self.timeout_alarm != inf:
            self.timeout_alarm = now + self.round_trip.erto  # §3.6.2.6 [lost-after-erto]
        self.congestion.any_naks, lost = self.flight.negative()
        self.congestion.lost = sum(entry.transmit_size for entry in lost)
        self._lose(lost)
        self.congestion.finish(self.flight.outstanding, now)
        if not self.has_work:
            self.filled()

    def filled(self) -> None:
        """Note that all has left that may leave now: §A.2."""
        self.congestion.filled(self.flight.outstanding)

    def tick(self, now: float) -> list[BufferProbe]:
        """Act on passed deadlines; return the probes to send: §3.6.2.6, §3.6.2.9.1, §3.6.2.11."""
        if now >= self.timeout_alarm:
            self._time_out()
        self.congestion.burst.tick(now, self.congestion.cwnd)
        while self._lingering and now >= self._lingering[0][0]:
            flow = self._lingering.popleft()[1]
            flow.end_linger(now)
            del self.flows[flow.flow_id]
        probes = []
        for flow, (when, period) in list(self._probes.items()):
            if not flow.is_suspended:
                del self._probes[flow]
            elif now >= when:
                probes.append(BufferProbe(flow.flow_id))
                # §3.6.2.9.1 [probe-each-minute]
                longest = max(PROBE_MOST_SECONDS, self.round_trip.erto)
                # §3.6.2.9.1 [probes-slow-down]
                self._probes[flow] = now + period, min(period * 2, longest)
        return probes

    def end(self, now: float) -> None:
        """Terminate all flows, as the session is open no longer: §3.5.5."""
        for flow in self.flows.values():
            flow.end(now)  # §3.5.5 [flows-end]
        self.flows.clear()
        self._ready.clear()
        self._lingering.clear()
        self._probes.clear()
        self.timeout_alarm = self.congestion.burst.alarm = inf
        self.queued = 0

    def _time_out(self) -> None:
        """Take everything for lost that is in flight: §3.6.2.6 [lost-after-erto]."""
        self.timeout_alarm = inf
        lost = self.flight.time_out()
        if lost:
            self.round_trip.back_off()
        self._lose(lost)
        self.congestion.timeout(bool(lost))

    def _lose(self, lost: list[Entry]) -> None:
        for entry in lost:
            flow = self.flows[entry.flow_id]
            flow.lose(entry)
            self.ready(flow)

    def _turns(self) -> list[SendFlow]:
        """Return the flows that may be ready, the next to send first: §3.6.1.2."""
        if len(self._ready) < 2:
            return list(self._ready)
        return sorted(self._ready, key=_priority, reverse=True)  # stable, reversed too

    def _probe(self, flow: SendFlow, now: float) -> None:
        """Start to probe a receiver whose window is closed: §3.6.2.9.1."""
        if flow.is_suspended and flow not in self._probes:
            # §3.6.2.9.1 [probes] [probe-soon] [probe-period]
            self._probes[flow] = now + PROBE_SECONDS, max(PROBE_SECONDS, self.round_trip.erto)


def _priority(flow: SendFlow) -> Priority:
    return flow.priority
