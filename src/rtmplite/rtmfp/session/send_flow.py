"""A sending flow: messages are fragmented, numbered and repeated until they arrive.

Implements RFC 7016 §3.6.2.  A message with a lifetime is abandoned when that is over, and the
Forward Sequence Number (FSN) tells the receiver not to wait for it.
"""

from collections import deque
from enum import IntEnum
from math import inf
from struct import Struct
from typing import Final, Protocol

from rtmplite.errors import LocalError
from rtmplite.rtmfp.session.flight import Flight
from rtmplite.rtmfp.session.flow_states import FIGURE_19, SendDo, SendEvent, SendState
from rtmplite.rtmfp.session.heirs import open_to_heirs
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.send_queue import ENTRY_BYTES, Entry, Outgoing, SendQueue
from rtmplite.rtmfp.wire.fast_path import Ranges
from rtmplite.rtmfp.wire.flow_chunks import flow_options
from rtmplite.rtmfp.wire.option import encode_options
from rtmplite.rtmfp.wire.vlu import encode_vlu

RX_BUFFER_SIZE: Final = 65536  # bytes, before the receiver says otherwise: §3.6.2
LINGER_SECONDS: Final = 130.0  # §3.6.2.11 [lingers-130]
_WHOLE, _BEGIN, _END, _MIDDLE = 0x00, 0x10, 0x20, 0x30  # fragmentControl in its place: §2.3.11
_HEAD: Final = Struct("!BHB")  # type, length and flags: §2.3, §2.3.11
_OPTIONS, _ABANDON, _FINAL = 0x80, 0x02, 0x01
_NUMBERS: Final = 10 + 3  # a sequence number and an fsnOffset of the longest we write
_CHUNK: Final = 3 + 1  # type, length and flags
_ACK_ROOM: Final = 12  # so that a small acknowledgement goes with a full fragment


class Priority(IntEnum):
    """Which flow goes first, those of one priority in turn: §3.6.1.2."""

    BULK = 0
    NORMAL = 1
    VIDEO = 2
    AUDIO = 3
    IMMEDIATE = 4


@open_to_heirs
class FlowSender:
    """The user of a sending flow; a subclass overrides the events that it needs: §3.6.2."""

    def on_exception(self, flow: "SendFlow", code: int, now: float) -> None:
        """The far end rejects the flow, which closes it: §3.6.2.10."""

    def on_writable(self, flow: "SendFlow", now: float) -> None:
        """There is room, for abandoned messages as of the next acknowledgement: §3.6.2.4."""

    def on_complete(self, flow: "SendFlow", now: float) -> None:
        """The flow was closed, and all of it has arrived or been abandoned: §3.6.2.11."""


class SendHost(Protocol):
    """The part of a session that a sending flow uses; `room` is the bytes of chunks in a packet.

    Own design: `SendSide` fills this, and so the two modules need not import each other.
    """

    limits: SessionLimits
    flight: Flight
    room: int
    queued: int

    def ready(self, flow: "SendFlow") -> None:
        """Note that the flow may have something to send."""

    def check_queued(self) -> None:
        """Look whether all flows together hold too much."""

    def linger(self, flow: "SendFlow", now: float) -> None:
        """Keep the flow's identifier for a while."""


class SendFlow:
    """One sending flow of a session: §3.6.2.  `Session.open_flow` makes them.

    `queued` counts the bytes neither acknowledged nor abandoned, `refused` those that were queued
    when the receiver reported an exception; `outstanding` is F_OUTSTANDING_BYTES, `rx_buffer_size`
    the last advertisement in bytes.  `priority` and `time_critical` may be changed at any time.
    `answers` is the identifier of the receiving flow that this one answers, or None.
    """

    def __init__(
        self,
        side: SendHost,
        flow_id: int,
        metadata: bytes,
        *,
        answers: int | None,
        sender: FlowSender,
        priority: Priority,
        time_critical: bool,
    ) -> None:
        self.flow_id, self.metadata = flow_id, metadata
        self.sender, self.priority, self.time_critical = sender, priority, time_critical
        self.state = SendState.OPEN
        self.exception = False
        self.queued = self.refused = self.outstanding = self._reported = 0
        self.rx_buffer_size = RX_BUFFER_SIZE
        self.final_sn: int | None = None
        self._side = side
        self._id = encode_vlu(flow_id)
        # §3.6.1.1 [one-association]
        # §3.6.1.3 [options-until-acknowledged], §2.3.11.1.2 [from-the-first]
        self._startup_options = encode_options(flow_options(metadata, answers), marker=True)
        self._queue = SendQueue()
        self._mortal: deque[Outgoing] = deque()  # messages with a lifetime, or a latest start

    @property
    def has_entries(self) -> bool:
        """Whether any entry has yet to be acknowledged, abandoned ones included: §3.6.2."""
        return self._queue.entries > 0

    @property
    def is_suspended(self) -> bool:
        """Whether the receiver's window is closed while something waits: §3.6.2.9.1."""
        return self.rx_buffer_size == 0 and not self.exception and self._queue.entries > 0

    def send(
        self,
        message: bytes,
        now: float,
        *,
        lifetime: float | None = None,
        start_by: float | None = None,
    ) -> Outgoing:
        """Queue a message: §3.6.2.2.

        It is abandoned when it is older than `lifetime` seconds, and when none of it has been sent
        `start_by` seconds from now: §3.6.2.7.  LocalError unless the flow is open.  A session
        whose flows queue more than `SessionLimits.queued_bytes` is aborted, as the far end does not
        take it.
        """
        if self.state is not SendState.OPEN:
            raise LocalError(f"a message on a flow that is {self.state}")
        if self._mortal:
            self._give_up_late(now)
        most = self._fragment_bytes()
        count = max(1, -(-len(message) // most))  # §3.6.1.2 [takes-a-number]
        first = self._queue.end
        expires = inf if lifetime is None else now + lifetime
        begin_by = inf if start_by is None else now + start_by
        outgoing = Outgoing(first, first + count - 1, expires, begin_by)
        if count == 1:
            self._append(Entry(self.flow_id, outgoing, first, _WHOLE, bytes(message)))
        else:
            for index in range(count):
                part = bytes(message[index * most : (index + 1) * most])
                fra = _BEGIN if index == 0 else _END if index == count - 1 else _MIDDLE
                self._append(Entry(self.flow_id, outgoing, first + index, fra, part))
        if lifetime is not None or start_by is not None:
            self._mortal.append(outgoing)
        self._side.ready(self)
        self._side.check_queued()
        return outgoing

    def announce(self, now: float) -> None:
        """Open the flow at the far end without a message: §3.6.2.1."""
        self._append_abandoned()
        self._side.ready(self)

    def abandon(self, message: Outgoing, now: float) -> None:
        """Abandon a message, every fragment of it and for good: §3.6.2.7."""
        message.abandoned = True
        # §3.6.2.7 [whole-message]
        for number in range(max(message.first, self._queue.first), message.last + 1):
            entry = self._queue.get(number)
            if entry is not None:
                self._abandon(entry)
        self._queue.due_again(message.first)
        self._side.ready(self)

    def close(self, now: float) -> None:
        """Accept no more messages; those queued are still sent: §3.6.2.11.  Idempotent."""
        self._on(SendEvent.CLOSE, now)

    def end(self, now: float) -> None:
        """Stop, because the session is open no longer: §3.5.5 [flows-end]."""
        self._on(SendEvent.SESSION_ENDS, now)

    def end_linger(self, now: float) -> None:
        """Forget the flow, whose identifier was kept for long enough: §3.6.2.11 [lingers-130]."""
        self._on(SendEvent.LINGER_ENDS, now)

    def excepted(self, code: int, now: float) -> None:
        """Take a Flow Exception Report: §3.6.2.10, §3.6.1.3 [exception-closes] [exception-told]."""
        if not self.exception:
            self._on(SendEvent.EXCEPTION, now, code)

    def acknowledge(self, ranges: Ranges, buffer_bytes: int, now: float) -> tuple[int, bool]:
        """Take an acknowledgement: §3.6.2.4.

        Returns how many bytes are outstanding no more, and whether `queued` is lower than before.
        Departs from RFC 7016 §3.6.2.4: a fragment that was taken for lost and has arrived after all
        is removed too, as to send it again would be useless; an abandoned one is removed only when
        nothing before it is missing (see `_trim`).
        """
        queue = self._queue
        before, queued = self.outstanding, self._reported
        # §3.6.1.3 [options-until-acknowledged], §2.3.11.1.1 [then-never-again],
        # §2.3.11.1.2 [then-never-again]
        self._startup_options = b""
        self.rx_buffer_size = buffer_bytes
        for first, last in ranges:
            if first >= queue.unsent:
                break
            for entry in queue.acknowledged(first, last):
                if entry.in_flight:
                    self.outstanding -= entry.transmit_size
                    self._side.flight.land(entry)
                # An abandoned entry stays while something is missing before it: there may be no
                # other chunk to carry the FSN.
                if not entry.abandoned or first == 0:
                    self._remove(entry)
        if self.final_sn is not None and not queue.entries:
            self._on(SendEvent.ALL_ACKNOWLEDGED, now)
        self._reported = self.queued
        return before - self.outstanding, self.queued < queued

    def lose(self, entry: Entry) -> None:
        """Take an entry for lost, so that it is sent again: §3.6.2.5."""
        self.outstanding -= entry.transmit_size
        self._queue.due_again(entry.sequence_number)

    def assemble(self, packet: bytearray, limit: int, now: float) -> bool:
        """Add chunks within `limit` bytes; False: nothing more to send now: §3.6.2.3."""
        if self._mortal:
            self._give_up_late(now)
        fsn = self._trim()
        previous = -1  # the number of the chunk before in this packet
        # §3.6.2.9 [window-obeyed]
        while self.exception or self.rx_buffer_size > self.outstanding:
            entry = self._queue.eligible(self.final_sn, self._side.limits.flight_span)
            if entry is None:
                return False
            number = entry.sequence_number
            if not entry.abandoned and entry.message.is_late(now):
                self.abandon(entry.message, now)
                if previous < 0:
                    fsn = self._trim()
                continue
            chunk = self._encode(entry, fsn, number == previous + 1 and previous >= 0, previous < 0)
            if packet and len(packet) + len(chunk) > limit:
                return True
            packet += chunk
            previous = number
            entry.sent_abandoned = entry.abandoned
            entry.message.begun = True
            self._queue.unsent = max(self._queue.unsent, number + 1)
            if fsn >= self._queue.told:
                self._queue.told, self._queue.teller = fsn, entry
            self.outstanding += len(chunk)
            self._side.flight.send(entry, len(chunk))
        return False

    def _on(self, event: SendEvent, now: float, code: int = 0) -> None:
        """Follow the arrow of `event` in Figure 19; `code` is that of an exception: §3.6.2."""
        self.state, todo = FIGURE_19[self.state].get(event, (self.state, ()))
        for order in todo:
            match order:
                case SendDo.MARK_FINAL:
                    self._mark_final()
                case SendDo.ABANDON:
                    self._abandon_all()
                case SendDo.LINGER:
                    self._side.linger(self, now)
                case SendDo.TELL_EXCEPTION:
                    self.sender.on_exception(self, code, now)
                case SendDo.TELL_COMPLETE:
                    self.sender.on_complete(self, now)

    def _mark_final(self) -> None:
        """Mark the last fragment, or an abandoned one after it, as final: §3.6.2.11."""
        tail = self._queue.tail
        if tail is None or tail.ever_sent:
            tail = self._append_abandoned()
        self.final_sn = tail.sequence_number
        self._queue.due_again(self.final_sn)
        self._side.ready(self)

    def _abandon_all(self) -> None:
        """Abandon everything, as the receiver has rejected the flow: §3.6.2.10."""
        self.exception = True
        self.refused = self.queued
        for number in range(self._queue.first, self._queue.end):
            entry = self._queue.get(number)
            if entry is not None:
                self._abandon(entry)
                entry.message.abandoned = True
        self._queue.due_again(self._queue.first)
        self._mortal.clear()
        self._side.ready(self)

    def _encode(self, entry: Entry, fsn: int, follows: bool, is_first: bool) -> bytes:
        """Encode one chunk: Next User Data if it `follows` its predecessor: §3.6.2.3.2."""
        number = entry.sequence_number
        flags = entry.fra | (number == self.final_sn)
        data = entry.data
        if entry.abandoned:
            flags |= _ABANDON  # §3.6.2.7.1 [fsn-update]; it has no data any more
        # §3.6.2.3.2 [next-user-data] [first-is-user-data], §2.3.12 [follows-user-data]
        if follows:
            length = 1 + len(data)
            return _HEAD.pack(0x11, length, flags) + data
        # §2.3.11.1.1 [until-acknowledged] [once-in-a-packet]
        # §2.3.11.1.2 [until-acknowledged] [once-in-a-packet]
        options = self._startup_options if is_first else b""
        if options:
            flags |= _OPTIONS
        numbers = encode_vlu(number) + encode_vlu(number - fsn)
        length = 1 + len(self._id) + len(numbers) + len(options) + len(data)
        head = _HEAD.pack(0x10, length, flags)
        return b"".join((head, self._id, numbers, options, data))

    def _trim(self) -> int:
        """Drop abandoned entries from the front; return the FSN: §3.6.2.3.

        The FSN may be an outstanding number only if that was abandoned when it was sent.
        Departs from RFC 7016 §3.6.2.3: the last abandoned entry at the front stays until it is
        acknowledged.  All later fragments may have been sent with a lower FSN; if no other chunk
        followed, the receiver would wait for the missing numbers for ever.
        """
        queue = self._queue
        head = queue.head
        while head is not None and head.abandoned and not head.in_flight:
            second = queue.second
            if second is None or not second.abandoned or second.in_flight:
                break
            self._remove(head)
            head = second
        if head is None:
            return queue.end - 1
        # §3.6.2.3 [fsn-below-outstanding] [fsn-not-outstanding]
        if not head.abandoned or (head.in_flight and not head.sent_abandoned):
            return head.sequence_number - 1
        return head.sequence_number

    def _give_up_late(self, now: float) -> None:
        """Abandon the messages whose time is over: §3.6.2.7."""
        while self._mortal:
            message = self._mortal[0]
            if message.last >= self._queue.first and not message.abandoned:
                if not message.is_late(now):
                    break
                self.abandon(message, now)
            self._mortal.popleft()

    def _fragment_bytes(self) -> int:
        """Return the bytes of data that fit beside the longest headers: §3.6.2.2."""
        overhead = _CHUNK + len(self._id) + _NUMBERS + len(self._startup_options) + _ACK_ROOM
        return max(64, self._side.room - overhead)  # §3.6.2.2 [fits-the-path]

    def _append_abandoned(self) -> Entry:
        """Queue an abandoned fragment, a number without data: §3.6.2.11, §3.6.2.1."""
        number = self._queue.end
        entry = Entry(self.flow_id, Outgoing(number, number, inf, inf), number, _WHOLE, b"")
        entry.abandoned = entry.message.abandoned = True
        self._append(entry)
        return entry

    def _append(self, entry: Entry) -> None:
        self._queue.append(entry)
        self.queued += len(entry.data)
        self._reported += len(entry.data)
        self._side.queued += len(entry.data) + ENTRY_BYTES

    def _abandon(self, entry: Entry) -> None:
        """Abandon one entry, for good, and free its data: §3.6.2.7 [never-un-abandoned]."""
        entry.abandoned = True
        self.queued -= len(entry.data)
        self._side.queued -= len(entry.data)
        entry.data = b""

    def _remove(self, entry: Entry) -> None:
        self._queue.remove(entry)
        self.queued -= len(entry.data)
        self._side.queued -= len(entry.data) + ENTRY_BYTES
