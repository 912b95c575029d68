"""A receiving flow: joins fragments to messages, and delivers these in order.

Implements RFC 7016 §3.6.3.
"""

from heapq import heappop, heappush
from typing import Final, Protocol

from rtmplite.rtmfp.session.budget import SessionBudget
from rtmplite.rtmfp.session.flow_states import FIGURE_22, RecvDo, RecvEvent, RecvState
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.range_set import RangeSet
from rtmplite.rtmfp.session.send_flow import SendFlow
from rtmplite.rtmfp.wire.flow_chunks import FragmentControl

LINGER_SECONDS: Final = 120.0  # §3.6.3.8 [receiver-lingers]
BLOCK_BYTES: Final = 1024  # §3.6.3.5 [blocks]
OVERHEAD_BYTES: Final = 100  # of a fragment that waits
_WHOLE, _BEGIN, _END, _MIDDLE = FragmentControl
_DELIVERED: Final = 4  # a fragment that was handed over before its turn


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


class RecvHost(Protocol):
    """The part of a session a receiving flow uses; `buffered` and `gaps` are sums of all flows.

    Own design: `RecvSide` fills this, and so the two modules need not import each other.
    """

    limits: SessionLimits
    budget: SessionBudget
    buffered: int
    gaps: int

    def has_room(self, size: int) -> bool:
        """Whether `size` bytes more may wait in all flows together."""

    def acknowledge_now(self, flow: "RecvFlow") -> None:
        """Send an acknowledgement of the flow as soon as is practical."""

    def linger(self, flow: "RecvFlow", now: float) -> None:
        """Keep the flow for a while, to acknowledge fragments that are sent again."""


class RecvFlow:
    """One receiving flow of a session: §3.6.3.

    `metadata` is the sender's, `associated` the sending flow of ours that it answers, or None.
    `receiver` is its user.  If `ordered` is set to false, messages are delivered as soon as they
    are whole.  `buffered` is BUFFERED_SIZE; `capacity` is BUFFER_CAPACITY in bytes and may be
    changed at any time; 0 stops the sender.
    """

    def __init__(self, side: RecvHost, flow_id: int, capacity: int) -> None:
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
        """Take one fragment: §3.6.3.2.  Returns whether an acknowledgement is due at once.

        A fragment beyond the limits is forgotten as if it were lost, and never acknowledged.
        """
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
        """Whether there is room for a fragment: see `SessionLimits`.

        The next one in order always has room, unless the flow is suspended: §3.6.3.5.
        """
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
