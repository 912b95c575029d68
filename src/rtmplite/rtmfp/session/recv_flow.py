"""The receiving half of a session: flows that join fragments to messages, and acknowledgements.

Implements RFC 7016 §3.6.3.
"""

from collections import deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.session.flow_states import FIGURE_22, RecvDo, RecvEvent, RecvState, SendState
from rtmplite.rtmfp.session.heirs import open_to_heirs
from rtmplite.rtmfp.session.limits import SessionBudget, SessionLimits
from rtmplite.rtmfp.session.range_set import RangeSet
from rtmplite.rtmfp.session.send_flow import SendFlow
from rtmplite.rtmfp.wire.acks import range_ack
from rtmplite.rtmfp.wire.chunks import HEADER_LENGTH, encode_chunk
from rtmplite.rtmfp.wire.flow_chunks import (
    FlowException,
    FragmentControl,
    has_unknown_option,
    read_flow_options,
)
from rtmplite.rtmfp.wire.option import Option
from rtmplite.rtmfp.wire.vlu import encode_vlu

LINGER_SECONDS: Final = 120.0  # §3.6.3.8 [receiver-lingers]
BLOCK_BYTES: Final = 1024  # §3.6.3.5 [blocks]
OVERHEAD_BYTES: Final = 100  # of a fragment that waits
_WHOLE, _BEGIN, _END, _MIDDLE = FragmentControl
_DELIVERED: Final = 4  # a fragment that was handed over before its turn


@open_to_heirs
class FlowReceiver:
    """The user of a receiving flow; a subclass overrides the events that it needs: §3.6.3."""

    def on_message(self, flow: "RecvFlow", message: bytes, now: float) -> None:
        """A whole message has come; in order, if the flow is ordered: §3.6.3.3."""

    def on_gap(self, flow: "RecvFlow", missing: int, now: float) -> None:
        """The sender gave up `missing` fragments before the next message: §3.6.1.2."""

    def on_exception(self, flow: "RecvFlow", now: float) -> None:
        """The flow was rejected because its sender broke a rule or a limit: §3.6.3.2."""

    def on_complete(self, flow: "RecvFlow", now: float) -> None:
        """The sender closed the flow, and all its messages have been delivered: §3.6.3.3."""


class RecvFlow:
    """One receiving flow of a session: §3.6.3.

    `metadata` is the sender's, `associated` the sending flow of ours that it answers, or None.
    `receiver` is its user.  If `ordered` is set to false, messages are delivered as soon as they
    are whole.  `buffered` is BUFFERED_SIZE; `capacity` is BUFFER_CAPACITY in bytes and may be
    changed at any time; 0 stops the sender.
    """

    def __init__(self, side: "RecvSide", flow_id: int, capacity: int) -> None:
        self._side = side
        self.flow_id = flow_id
        self.metadata = b""
        self.associated: SendFlow | None = None
        self.receiver = FlowReceiver()
        self.ordered = True
        self.capacity = capacity
        self.state = RecvState.OPEN
        self.exception_code = 0
        self.final_sn: int | None = None
        self.prev_rwnd: int | None = None
        self.seen = RangeSet()
        self.buffered = 0
        self.is_suspended = False
        self._early: dict[int, tuple[int, bytes]] = {}  # fragments by number
        self._order: list[int] = []  # a heap of their numbers
        self._runs: dict[int, int] = {}  # runs of parts: at the number of either end, the other
        self._partial: list[bytes] | None = None  # the message in progress
        self._partial_bytes = 0
        self._consumed = 0  # up to here all is delivered, given up or in `_partial`
        self._is_done = False  # the user was told of the end, or is not to be

    @property
    def blocks_available(self) -> int:
        """The receive window to advertise, in blocks of 1024 bytes: §3.6.3.5.

        At least one unless the user has suspended the flow; else a gap could never be closed:
        [one-block].
        """
        # §3.6.3.5 [blocks] [window] [one-block]
        capacity = self._side.budget.window(self.capacity)
        blocks = -(-max(0, capacity - self.buffered) // BLOCK_BYTES)
        if blocks == 0 and self.capacity > 0 and not self.is_suspended:
            blocks = 1
        return blocks

    def reject(self, code: int, now: float) -> None:
        """Reject the flow; `code` tells the sender why: §3.6.3.7."""
        self._on(RecvEvent.REJECT, now, code)

    def suspend(self) -> None:
        """Keep messages until `resume`: §3.6.3.3."""
        self.is_suspended = True

    def resume(self, now: float) -> None:
        """Deliver the messages that were kept, and go on: §3.6.3.3."""
        self.is_suspended = False
        self._deliver(now)
        self._complete(now)
        self._side.acknowledge_now(self)

    def take(
        self,
        number: int,
        fsn: int,
        fra: int,
        data: bytes,
        now: float,
        *,
        abandon: bool = False,
        final: bool = False,
    ) -> bool:
        """Take a fragment within the limits; whether to acknowledge at once: §3.6.3.2."""
        seen = self.seen
        gaps = seen.gaps
        # §3.6.3.4.1 [acknowledge-soon]
        ack_now = (
            self.state is not RecvState.OPEN
            or abandon
            or gaps > 0
            or number in seen
            or (self.prev_rwnd is not None and self.prev_rwnd < 2)
        )
        if number not in seen and self._has_room(number, fsn, data):
            if final and self.final_sn is None:
                self.final_sn = number
                ack_now = True
            if self.state is RecvState.OPEN and not abandon:  # §2.3.11 [abandoned-ignored]
                self._keep(number, fra, data, now)
            # §2.3.13 [not-below-fsn], §2.3.14 [not-below-fsn]
            seen.forward(fsn)
            # §3.6.1.3 [acknowledge-truth]: a fragment that is not kept is not in the set
            seen.add(number)
        else:
            # §2.3.13 [not-below-fsn], §2.3.14 [not-below-fsn]
            seen.forward(fsn)
        self._side.gaps += seen.gaps - gaps
        self._deliver(now)
        self._complete(now)
        return ack_now or seen.gaps > 0 or self.capacity - self.buffered < BLOCK_BYTES

    def end(self, now: float) -> None:
        """Stop, because the session is open no longer: §3.5.5 [flows-end]."""
        self._on(RecvEvent.SESSION_ENDS, now)

    def end_linger(self, now: float) -> None:
        """Forget the flow, as nothing of it will be sent again: §3.6.3.8 [receiver-lingers]."""
        self._on(RecvEvent.LINGER_ENDS, now)

    def _on(self, event: RecvEvent, now: float, code: int = 0) -> None:
        """Follow the arrow of `event` in Figure 22; `code` is that of a rejection: §3.6.3."""
        self.state, todo = FIGURE_22[self.state].get(event, (self.state, ()))
        for order in todo:
            match order:
                case RecvDo.FORGET:
                    self._forget()
                case RecvDo.REPORT:
                    self.exception_code = code
                    self._side.acknowledge_now(self)
                case RecvDo.LINGER:
                    self._side.linger(self, now)
                case RecvDo.ACKNOWLEDGE:
                    self._side.acknowledge_now(self)

    def _has_room(self, number: int, fsn: int, data: bytes) -> bool:
        """Whether a fragment has room, as the next in order has: §3.6.3.5, `SessionLimits`."""
        if number <= max(self.seen.csn, fsn) + 1 and not self.is_suspended:
            return True
        size = len(data) + OVERHEAD_BYTES
        if self.buffered + size > self.capacity + 64 * BLOCK_BYTES or not self._side.has_room(size):
            return False
        if self._side.budget.is_tight:
            return False
        return self.seen.gaps < self._side.limits.gaps or not self.seen.would_part(number)

    def _keep(self, number: int, fra: int, data: bytes, now: float) -> None:
        """Put a fragment into the buffer, or straight into its message if it is the next."""
        if number == self.seen.csn + 1 == self._consumed + 1 and not self.is_suspended:
            self._consume(number, fra, data, now)
            return
        self._early[number] = fra, data
        heappush(self._order, number)
        self._count(len(data) + OVERHEAD_BYTES)
        if not self.ordered and not self.is_suspended:
            self._deliver_early(number, now)

    def _deliver(self, now: float) -> None:
        """Deliver the whole messages that are next in order: §3.6.3.3."""
        if self.state is RecvState.REJECTED:
            return
        # §3.6.3.3 [in-order]
        while self._order and self._order[0] <= self.seen.csn and not self.is_suspended:
            number = heappop(self._order)
            self._runs.pop(number, None)
            fra, data = self._early.pop(number)
            self._count(-len(data) - OVERHEAD_BYTES)
            self._consume(number, fra, data, now)
        csn = self.seen.csn
        if csn > self._consumed and not self.is_suspended:
            missing = csn - self._consumed - (csn == self.final_sn)
            self._consumed = csn
            self._miss(missing, now)

    def _consume(self, number: int, fra: int, data: bytes, now: float) -> None:
        """Add the next fragment in order to its message; deliver it if whole: §3.6.3.3."""
        if number > self._consumed + 1:
            self._miss(number - self._consumed - 1, now)
        self._consumed = number
        if fra == _WHOLE:  # §3.6.3.3 [whole-only]
            self._drop_partial()
            self.receiver.on_message(self, data, now)
        elif fra == _BEGIN:
            self._drop_partial()
            self._partial = [data]
            self._extend(data, now)
        elif fra == _DELIVERED:
            self._drop_partial()
        elif self._partial is not None:
            self._partial.append(data)
            self._extend(data, now)
            if fra == _END and self._partial is not None:  # §3.6.3.3 [whole-only]
                message = b"".join(self._partial)
                self._drop_partial()
                self.receiver.on_message(self, message, now)

    def _extend(self, data: bytes, now: float) -> None:
        """Count the bytes of the message in progress; reject the flow if it is too long."""
        size = len(data) + OVERHEAD_BYTES
        self._partial_bytes += size
        self._count(size)
        if self._partial_bytes > self._side.limits.message_bytes or not self._side.has_room(0):
            self.reject(0, now)
            self.receiver.on_exception(self, now)

    def _deliver_early(self, number: int, now: float) -> None:
        """Deliver a message out of order, if it is whole: §3.6.3.3.

        Parts that follow each other form a run.  Only the ends of a run are noted, so that adding a
        part takes the same time however long the run is.
        """
        first = last = number
        if self._continues(number - 1, number):
            first = self._runs.get(number - 1, number - 1)
        if self._continues(number, number + 1):
            last = self._runs.get(number + 1, number + 1)
        self._runs[first], self._runs[last] = last, first
        # The first part may have been consumed already.
        begins = first in self._early and self._early[first][0] in (_WHOLE, _BEGIN)
        # §3.6.3.3 [whole-only]
        if not begins or self._early[last][0] not in (_WHOLE, _END):
            return
        parts = []
        for at in range(first, last + 1):
            data = self._early[at][1]
            parts.append(data)
            self._early[at] = _DELIVERED, b""
            self._runs.pop(at, None)
            self._count(-len(data))
        self.receiver.on_message(self, b"".join(parts), now)

    def _continues(self, number: int, follower: int) -> bool:
        """Whether both are in the buffer, and may be parts of one message."""
        early = self._early
        return (
            number in early
            and follower in early
            and early[number][0] in (_BEGIN, _MIDDLE)
            and early[follower][0] in (_MIDDLE, _END)
        )

    def _miss(self, missing: int, now: float) -> None:
        """Tell the user about fragments that were given up: §3.6.1.2."""
        self._drop_partial()
        if missing > 0:
            self.receiver.on_gap(self, missing, now)  # §3.6.1.2 [gap-told]

    def _complete(self, now: float) -> None:
        """Complete the flow if all has come; tell the user when all is delivered: §3.6.3.8."""
        if self.final_sn is None or self.seen.csn < self.final_sn:
            return
        self._on(RecvEvent.ALL_RECEIVED, now)
        if not self._is_done and not self._order and not self.is_suspended:
            self._is_done = True
            self.receiver.on_complete(self, now)

    def _drop_partial(self) -> None:
        """Forget the parts of a message that will never be whole: §3.6.3.3."""
        if self._partial is not None:
            self._partial = None  # §3.6.3.3 [abandoned-go]
            self._count(-self._partial_bytes)
            self._partial_bytes = 0

    def _count(self, size: int) -> None:
        self.buffered += size
        self._side.buffered += size

    def _forget(self) -> None:
        """Discard the buffer, and deliver nothing any more: §3.6.3.7."""
        self._is_done = True
        self._partial, self._partial_bytes = None, 0
        self._early.clear()
        self._order.clear()
        self._runs.clear()
        self._count(-self.buffered)
        self._consumed = self.seen.csn


DELACK_SECONDS: Final = 0.2  # §3.6.3.4.1 [acknowledge-soon]
RX_DATA_PACKETS: Final = 2
QUICK_PACKETS: Final = 32  # of real-time data that are acknowledged one by one
Options = tuple[Option, ...]


class RecvSide:
    """The state that the receiving flows of a session share: §3.5.

    `buffered` counts the bytes that wait in all of them, `gaps` the holes in their numbers;
    `budget` limits the memory of all sessions.  `overflowed` is set when the far end opens too many
    flows, `is_over` when the session is open no longer.  `should_ack` holds the flows that have to
    send an acknowledgement.

    `sending` are the sending flows of the same session, by identifier.  `on_flow` asks the user for
    the receiver of a new flow; `wake` is called when an acknowledgement is due without a packet.
    """

    def __init__(
        self,
        sending: Mapping[int, SendFlow],
        limits: SessionLimits,
        on_flow: Callable[[RecvFlow, float], FlowReceiver | None],
        wake: Callable[[], None],
        budget: SessionBudget,
    ) -> None:
        self.limits, self.budget = limits, budget
        self.flows: dict[int, RecvFlow] = {}
        self.buffered = self.gaps = 0
        self.overflowed = self.is_over = False
        self.ack_now = False  # ACK_NOW, RX_DATA_PACKETS and DELACK_ALARM: §3.5
        self.rx_data_packets = 0
        self.delack_alarm = inf
        self._quick = QUICK_PACKETS
        self._sending, self._on_flow, self._wake = sending, on_flow, wake
        self.should_ack: dict[RecvFlow, None] = {}
        self._lingering: deque[tuple[float, RecvFlow]] = deque()

    @property
    def deadline(self) -> float:
        """When to call `tick`, infinite for never: §3.6.3.4.4, §3.6.3.8."""
        if self._lingering:
            return min(self.delack_alarm, self._lingering[0][0])
        return self.delack_alarm

    def take(
        self,
        flow_id: int,
        number: int,
        fsn: int,
        flags: int,
        data: bytes,
        options: Options | None,
        now: float,
    ) -> None:
        """Take a chunk of user data: §3.6.3.2.  `flags` are those of §2.3.11."""
        flow = self.flows.get(flow_id)  # §3.6.1.1 [no-meaning-in-ids]
        if flow is None:
            if len(self.flows) >= self.limits.flows:
                self.overflowed = True
                return
            flow = self._open(flow_id, options or (), now)
        elif options and flow.state is RecvState.OPEN and has_unknown_option(options):
            # §3.6.3.2 [unknown-option-rejects], §2.3.16 [automatic-is-0]
            flow.reject(0, now)
            flow.receiver.on_exception(flow, now)
        self.should_ack[flow] = None  # §3.6.3.4 [all-acknowledged]
        fra, abandon, final = flags >> 4 & 3, bool(flags & 2), bool(flags & 1)
        if flow.take(number, fsn, fra, data, now, abandon=abandon, final=final):
            self.ack_now = True
        elif not self.ack_now and self.delack_alarm == inf:
            self.delack_alarm = now + DELACK_SECONDS  # §3.6.3.4.1 [acknowledge-soon]

    def end_packet(self, *, critical: bool) -> None:
        """Count a packet with user data, `critical` if in real time, after its chunks: §3.6.3.2.

        Own design: the first ones in real time are acknowledged one by one.  A sender's window
        grows by a segment for each acknowledgement, so that it doubles in a round trip, and the
        first frames of a stream wait less.
        """
        self.rx_data_packets += 1
        if critical and self._quick:
            self._quick -= 1
            self.ack_now = True
        if self.rx_data_packets >= RX_DATA_PACKETS:  # §3.6.3.4.1 [acknowledge-soon]
            self.ack_now = True

    def on_probe(self, flow_id: int) -> None:
        """Answer a Buffer Probe if its flow is known: §3.6.3.6."""
        flow = self.flows.get(flow_id)
        if flow is not None:
            self.acknowledge_now(flow)  # §2.3.15 [probe-answered]

    def acknowledge_now(self, flow: RecvFlow) -> None:
        """Send an acknowledgement as soon as is practical: §3.6.3.4.5."""
        if self.flows.get(flow.flow_id) is flow:
            self.should_ack[flow] = None
            self.ack_now = True
            self._wake()

    def linger(self, flow: RecvFlow, now: float) -> None:
        """Keep a flow that is complete for 120 s: §3.6.3.8 [receiver-lingers]."""
        self._lingering.append((now + LINGER_SECONDS, flow))

    def has_room(self, size: int) -> bool:
        """Whether `size` bytes more may wait: `SessionLimits.session_buffer_bytes`, §5."""
        return self.buffered + size <= self.limits.session_buffer_bytes

    def assemble(self, packet: bytearray, limit: int) -> None:
        """Add acknowledgements to chunks of at most `limit` bytes.

        §3.6.3.4.5, §3.6.3.4.6.  The first chunk of a packet is cut to
        fit; any other acknowledgement that does not fit whole waits: §3.6.3.4.2.
        """
        may_cut = not packet
        for flow in list(self.should_ack):
            room = limit - len(packet)
            chunk, blocks = _acknowledgement(flow, room if may_cut else 0xFFFF)
            if len(chunk) > room and not may_cut:  # §3.6.3.4.2 [cut-or-wait]
                break
            packet += chunk  # §3.6.3.4.5 [when-due], §3.6.3.4.6 [travel-along]
            may_cut = False
            flow.prev_rwnd = blocks
            del self.should_ack[flow]
        if not self.should_ack:
            self.ack_now = False
            self.rx_data_packets = 0
            self.delack_alarm = inf

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed: §3.6.3.4.4, §3.6.3.8."""
        if now >= self.delack_alarm:
            self.delack_alarm = inf
            self.ack_now = True
        while self._lingering and now >= self._lingering[0][0]:
            flow = self._lingering.popleft()[1]
            flow.end_linger(now)
            del self.flows[flow.flow_id]
            self.gaps -= flow.seen.gaps
            self.should_ack.pop(flow, None)

    def end(self, now: float) -> None:
        """Terminate all flows, as the session is open no longer: §3.5.5."""
        for flow in self.flows.values():
            flow.end(now)  # §3.5.5 [flows-end]
        self.flows.clear()
        self.gaps, self.is_over = 0, True
        self._lingering.clear()
        self.should_ack.clear()
        self.ack_now, self.delack_alarm = False, inf

    def _open(self, flow_id: int, options: Options, now: float) -> RecvFlow:
        """Open a flow, or reject it: §3.6.3.1."""
        flow = self.flows[flow_id] = RecvFlow(self, flow_id, self.limits.buffer_bytes)
        self.ack_now = True
        if self._is_acceptable(flow, options):
            receiver = self._on_flow(flow, now)
            if receiver is None:
                flow.reject(0, now)
            else:
                flow.receiver = receiver
        else:
            flow.reject(0, now)  # §2.3.16 [automatic-is-0]
        return flow

    def _is_acceptable(self, flow: RecvFlow, options: Options) -> bool:
        """Read the options of a new flow; return whether they are acceptable: §3.6.3.1."""
        try:
            # §3.6.3.1 [no-metadata-rejects] [unknown-option-rejects], §2.3.11.1 [unknown-rejects]
            flow.metadata, answers = read_flow_options(options)
        except RemoteError:
            return False
        if answers is not None:
            flow.associated = self._sending.get(answers)
            if flow.associated is None:  # §3.6.3.1 [unknown-association-rejects]
                return False
            # §3.6.3.1 [closed-association-rejects], §2.3.11.1.2 [answers-an-open-flow]
            if flow.associated.state is not SendState.OPEN:
                return False
        return len(flow.metadata) <= self.limits.metadata_bytes


def _acknowledgement(flow: RecvFlow, room: int) -> tuple[bytes, int]:
    """Return a flow's acknowledgement of at most `room` bytes, and its window: §3.6.3.4.3."""
    report = b""
    if flow.state is RecvState.REJECTED:
        # §3.6.1.3 [acknowledge-rejected], §2.3.16 [before-every-ack]
        report = encode_chunk(FlowException(flow.flow_id, flow.exception_code))
    blocks = flow.blocks_available
    room -= len(report) + HEADER_LENGTH
    if not report and not flow.seen.gaps:  # the usual case, without an object
        numbers = encode_vlu(flow.flow_id) + encode_vlu(blocks) + encode_vlu(flow.seen.csn)
        return b"\x51\x00%c%b" % (len(numbers), numbers), blocks
    ack = range_ack(flow.flow_id, blocks, flow.seen.ranges(), room)
    return report + encode_chunk(ack), blocks
