"""An open session: two endpoints, a pair of keys, and flows in both directions.

Implements RFC 7016 §3.5.  The room `endpoint` opens sessions; here they begin in S_OPEN.

The way of a received packet: the cipher opens it, its timestamps are read, each chunk goes to the
half of the session that it concerns (`ChunkDispatch`; `send_side`, `recv_flow`), and after the
last one the session does what follows from all of them: acknowledgements, losses, the congestion
window, a new address.  Packets to send are made when the endpoint asks for them (`take`;
`packet_assembler`), so that everything that is due by then shares them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto.profile import PacketCipher
from rtmplite.rtmfp.session.closing import Closing, Do, Event, State, Todo
from rtmplite.rtmfp.session.congestion import CongestionControl, TimeCritical
from rtmplite.rtmfp.session.heirs import open_to_heirs
from rtmplite.rtmfp.session.keepalive import Keepalive
from rtmplite.rtmfp.session.limits import SessionBudget, SessionLimits
from rtmplite.rtmfp.session.mobility import SECRET_BYTES, Mobility
from rtmplite.rtmfp.session.packet_assembler import (
    TIME_CRITICAL,
    PacketAssembler,
    PacketProtection,
)
from rtmplite.rtmfp.session.path_mtu import PathMtu
from rtmplite.rtmfp.session.recv_flow import FlowReceiver, RecvFlow, RecvSide
from rtmplite.rtmfp.session.rtt import RoundTrip
from rtmplite.rtmfp.session.send_flow import FlowSender, Priority, SendFlow
from rtmplite.rtmfp.session.send_side import SendSide
from rtmplite.rtmfp.wire.acks import DataAckBitmap, DataAckRanges
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.chunks import HEADER_LENGTH, PARSERS, Chunk
from rtmplite.rtmfp.wire.control_chunks import (
    ForwardedInitiatorHello,
    Ping,
    PingReply,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.rtmfp.wire.fast_path import read_next_user_data, read_range_ack, read_user_data
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FlowException, NextUserData, UserData
from rtmplite.rtmfp.wire.vlu import MAX

_UNBOUNDED: Final = 1 << 62
FLOW_BYTES: Final = 2000  # approximate memory of an empty flow
GAP_BYTES: Final = 100  # and of a range of numbers that have come out of order
DEFAULT_LIMITS: Final = SessionLimits()
SILENT: Final = "the far end is silent"

__all__ = ["Session", "SessionListener", "State"]

_FRAGMENTS: Final = (UserData.type_id, NextUserData.type_id)
_Before = tuple[int, int, int] | None  # flow, number and FSN of the fragment before


class ChunkDispatch:
    """Takes packets apart: user data for `recv`, usual acknowledgements for `send`.

    §2.2.4, §3.6.3.2.  Any other chunk is an object for `on_chunk`.
    """

    def __init__(
        self,
        recv: RecvSide,
        send: SendSide,
        on_chunk: Callable[[Chunk, Address, float], None],
    ) -> None:
        self._recv, self._send, self._on_chunk = recv, send, on_chunk

    def read(self, packet: bytes, at: int, source: Address, now: float) -> bool:
        """Take the chunks from `at` on; return whether there was user data: §3.6.3.2."""
        has_data = False
        before: _Before = None
        while len(packet) - at >= HEADER_LENGTH:
            type_id, start = packet[at], at + HEADER_LENGTH
            at = start + (packet[at + 1] << 8 | packet[at + 2])
            if at > len(packet):  # padding: §2.2.4
                break
            try:
                if type_id in _FRAGMENTS:
                    before = self._take_fragment(type_id, packet, start, at, before, now)
                    has_data = has_data or before is not None
                elif type_id == DataAckRanges.type_id:
                    self._send.on_ack(*read_range_ack(packet[start:at]), now)
                elif (parse := PARSERS.get(type_id)) is not None:
                    self._on_chunk(parse(packet[start:at]), source, now)
            except RemoteError:  # §2.3: a damaged chunk is skipped, and what numbers itself by it
                before = None if type_id in _FRAGMENTS else before
        return has_data

    def _take_fragment(
        self, type_id: int, packet: bytes, start: int, end: int, before: _Before, now: float
    ) -> _Before:
        """Take (Next) User Data; return its flow, number and FSN, None if it was not taken."""
        if type_id == UserData.type_id:
            flow_id, number, fsn, flags, data, options = read_user_data(packet, start, end)
        elif before is None:
            return None
        else:
            flow_id, number, fsn = before[0], before[1] + 1, before[2]
            if number > MAX:  # no acknowledgement could contain it
                raise RemoteError("a sequence number of more than 64 bits")
            flags, data, options = read_next_user_data(packet, start, end)
        if self._recv.is_over:
            return None
        self._recv.take(flow_id, number, fsn, flags, data, options, now)
        return flow_id, number, fsn


@open_to_heirs
class SessionListener:
    """The user of a session; a subclass overrides the events that it needs: §3.5, §3.6."""

    def on_flow(self, session: "Session", flow: RecvFlow, now: float) -> FlowReceiver | None:
        """The far end opens a flow: return its receiver, or None to reject it (§3.6.3.1).

        `flow.metadata` says what it is for, `flow.associated` which of our flows it answers.
        For an exception code other than 0, call `flow.reject(code, now)` and return None.
        """
        return None

    def on_closed(self, session: "Session", now: float) -> None:
        """The session is open no longer, for `session.reason`; packets may follow: §3.5.5."""

    def on_forwarded_hello(
        self, session: "Session", hello: ForwardedInitiatorHello, now: float
    ) -> None:
        """The far end forwards the hello of an endpoint that asks for this one: §3.5.1.5."""

    def on_address_change(self, session: "Session", former: Address, now: float) -> None:
        """The far end has proved that it is at `session.address` now: §3.5.4.2."""


class Session:
    """One end of a session, from S_OPEN on: §3.5.

    `near_id` is the session ID of the packets that come, `far_id` of those that leave; `address` is
    DESTADDR.  `reason` says why the session is open no longer, `invalid` counts packets that were
    forged or damaged.  All sessions of an endpoint share `notices` and `budget`; `counted` is the
    part of `memory` that the budget has counted.

    `on_work` is called, once before each `take`, when `take` may have something to give; also when
    the session becomes CLOSED, since the last packets may still have to leave.
    """

    def __init__(
        self,
        *,
        initiator: bool,
        cipher: PacketCipher,
        near_id: int,
        far_id: int,
        address: Address,
        far_certificate: bytes,
        near_nonce: bytes,
        far_nonce: bytes,
        random: Callable[[int], bytes],
        now: float,
        listener: SessionListener,
        limits: SessionLimits = DEFAULT_LIMITS,
        notices: TimeCritical | None = None,
        budget: SessionBudget | None = None,
        on_work: "Callable[[Session], None] | None" = None,
    ) -> None:
        self.near_id, self.far_id, self.address = near_id, far_id, address
        self.far_certificate, self.listener = far_certificate, listener
        self.near_nonce, self.far_nonce = near_nonce, far_nonce
        self.state = State.OPEN
        self.reason, self.invalid, self.counted = "", 0, 0
        self.round_trip = RoundTrip()
        self._notices = notices or TimeCritical()
        self._protection = PacketProtection(
            cipher, initiator, far_id, self.round_trip, self._notices
        )
        self.congestion = CongestionControl(self._notices, self.round_trip)
        self.keepalive = Keepalive(self.round_trip, limits.keepalive, limits.silence_timeout, now)
        self._mobility = Mobility(random(SECRET_BYTES))
        self._mtu = PathMtu(limits.datagram_bytes, limits.mtu_probes, random, now)
        self._send = SendSide(self.round_trip, self.congestion, limits, self._wake)
        budget = budget or SessionBudget(_UNBOUNDED)
        self._recv = RecvSide(self._send.flows, limits, self._ask, self._wake, budget)
        self._dispatch = ChunkDispatch(self._recv, self._send, self._take_chunk)
        self._assembler = PacketAssembler(self._protection, self._mtu, self._send, self._recv)
        self._on_work = on_work
        self._is_awake = self._is_behind = False  # the second: a packet came since `take`
        self._closing = Closing()

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never: §3.5."""
        if self.state is State.OPEN:
            send, recv = self._send.deadline, self._recv.deadline
            return min(send, recv, self.keepalive.deadline, self._mtu.deadline)
        return self._closing.deadline

    @property
    def send_flows(self) -> Mapping[int, SendFlow]:
        """The sending flows by identifier, lingering ones included: §3.5."""
        return self._send.flows

    @property
    def recv_flows(self) -> Mapping[int, RecvFlow]:
        """The receiving flows by identifier, lingering ones included: §3.5."""
        return self._recv.flows

    @property
    def outstanding(self) -> int:
        """S_OUTSTANDING_BYTES: §3.5."""
        return self._send.flight.outstanding

    @property
    def queued(self) -> int:
        """Bytes of memory that all sending flows hold: `SessionLimits.queued_bytes`, §5."""
        return self._send.queued

    @property
    def buffered(self) -> int:
        """Bytes of memory that receiving flows hold: `SessionLimits.session_buffer_bytes`, §5."""
        return self._recv.buffered

    @property
    def memory(self) -> int:
        """Bytes of memory that all flows take, which `SessionBudget` limits: §5."""
        send, recv = self._send, self._recv
        flows = len(send.flows) + len(recv.flows)
        return send.queued + recv.buffered + recv.gaps * GAP_BYTES + flows * FLOW_BYTES

    def open_flow(
        self,
        metadata: bytes,
        now: float,
        *,
        associated: RecvFlow | None = None,
        sender: FlowSender | None = None,
        priority: Priority = Priority.NORMAL,
        time_critical: bool = False,
    ) -> SendFlow:
        """Open a sending flow: §3.6.2.1.  The far end sees it with its first message.

        `metadata` says what it is for, `associated` which flow of the far end it answers; `sender`
        is its user.  LocalError unless the session is open, and as `SendSide.open` says.
        """
        if self.state is not State.OPEN:
            raise LocalError(f"a flow in a session that is {self.state}")
        return self._send.open(
            metadata,
            associated=associated,
            sender=sender,
            priority=priority,
            time_critical=time_critical,
        )

    def receive(self, encrypted: bytes, source: Address, now: float) -> None:
        """Take a datagram without its session ID; `invalid` counts forged or damaged ones: §3.5."""
        if self.state is State.CLOSED:
            return
        try:
            packet, flags, timestamp, echo, at = self._protection.open(encrypted)
        except RemoteError:
            self.invalid += 1
            return
        if self.state is State.OPEN:
            self.keepalive.hear(now)
            if self._protection.heard(flags, now):
                self.congestion.tcr_received = now
            was_measured = self.round_trip.srtt is not None
            self.round_trip.heard(timestamp, echo, now)
            if not was_measured and self.round_trip.srtt is not None:
                self._send.measured(now)
            self._send.begin_packet()
        has_data = self._dispatch.read(packet, at, source, now)
        if has_data:
            self.keepalive.expects = True
        if self.state is State.OPEN:
            if has_data:
                self._recv.end_packet(critical=flags & TIME_CRITICAL != 0)
            self._end_packet(source, now)

    def take(self, now: float) -> list[tuple[bytes, Address]]:
        """Return the datagrams to send now, each with its destination.

        As many as the window and burst avoidance allow: §3.5.2.3.  A session that has passed its
        `limits` is aborted here: §5.
        """
        self._is_awake = True
        if self._send.overflowed:
            self.abort(now, "the far end takes no data")
        elif self._recv.overflowed:
            self.abort(now, "the far end opens too many flows")
        self._assembler.fill(self.address, now)
        self._is_awake = self._is_behind = False
        return self._assembler.take()

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed: §3.5.  Call `take` after it."""
        if self.state is State.OPEN:
            self._recv.tick(now)
            for probe in self._send.tick(now):
                self.queue_chunk(probe)
            if self.keepalive.is_lost(now):
                self.abort(now, SILENT)
            elif self.keepalive.tick(now):
                self.queue_chunk(Ping())  # §3.5.4.1 [empty-message]
            self._probe_path(now)
        else:
            self._obey(self._closing.tick(now), now)
        self._wake()

    def queue_chunk(self, chunk: Chunk) -> None:
        """Send a control chunk soon, or drop it if it fits no packet: §3.5.1.5."""
        if self.state is not State.CLOSED and self._assembler.queue(chunk):
            self._wake()

    def close(self, now: float, reason: str = "closed here") -> None:
        """Close reliably: ask until the far end acknowledges, or for 90 seconds: §3.5.5."""
        self._on(Event.ORDERLY_CLOSE, now, reason)

    def abort(self, now: float, reason: str = "aborted here") -> None:
        """Close at once, with one Session Close Ack to the far end: §3.5.5 [abrupt-close]."""
        self._assembler.drop()
        self._on(Event.ABRUPT_CLOSE, now, reason)

    def drop(self, now: float, reason: str) -> None:
        """Close without a packet, as when another session replaces this one: §3.5, Figure 8."""
        self._on(Event.OVERRIDE, now, reason)

    def _ask(self, flow: RecvFlow, now: float) -> FlowReceiver | None:
        return self.listener.on_flow(self, flow, now)

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            if self._on_work is not None:
                self._on_work(self)

    def _take_chunk(self, chunk: Chunk, source: Address, now: float) -> None:
        """Take a control chunk; most count only in an open session."""
        match chunk:
            case SessionClose():
                self._on(Event.CLOSE_REQUEST, now, "closed there")  # §3.5.5 [close-acknowledged]
            case SessionCloseAck():
                self._on(Event.CLOSE_ACK, now, "closed there")  # §3.5.5 [close-ack-closes]
            case _ if self.state is not State.OPEN:
                return
            case DataAckBitmap():
                blocks = chunk.buffer_blocks_available
                self._send.on_ack(chunk.flow_id, blocks, list(chunk.ranges()), now)
            case Ping():
                # §3.5.4 [ping-reply] [only-in-response], §2.3.9 [answered-at-once],
                # §2.3.10 [echo-unaltered]
                self.queue_chunk(PingReply(chunk.message))
            case PingReply():
                self._on_ping_reply(chunk.message_echo, source, now)
            case FlowException():
                self._send.on_exception(chunk, now)
            case BufferProbe():
                self._recv.on_probe(chunk.flow_id)
            case ForwardedInitiatorHello():  # §2.3.3 [fihello-only-in]
                self.listener.on_forwarded_hello(self, chunk, now)

    def _end_packet(self, source: Address, now: float) -> None:
        """Act on all chunks of a packet together: §3.6.2.5, §3.5.4.2."""
        self._send.end_packet(now)
        # §3.5.4.2 [check-new-address]
        if source != self.address and (message := self._mobility.question(source, now)):
            self._assembler.ask(Ping(message), source, now)
        if self._recv.ack_now or self._recv.overflowed or self._send.has_work:
            # Packets that were read together are answered one by one; else all would bring a
            # single acknowledgement, and a far end that counts packets would send a single burst:
            # §3.6.3.4.1 [acknowledge-soon], §3.5.2.3.
            if self._is_behind:
                self._assembler.fill(self.address, now)
            self._is_behind = True
            self._wake()

    def _on_ping_reply(self, message: bytes, source: Address, now: float) -> None:
        """Take the reply to a Ping of ours: §3.5.4.2, §3.5.4.3."""
        if self._mobility.is_answer(message, source, now):
            former, self.address = self.address, source
            if former != source:
                self._send.moved()
                self._wake()
                self.listener.on_address_change(self, former, now)
        self._mtu.on_reply(message, now)

    def _probe_path(self, now: float) -> None:
        """Try a larger datagram, if any is left to try: §3.5.4.3."""
        size = self._mtu.tick(now, self.round_trip.erto)
        if size:
            self._assembler.probe(size, self.address, now)
        self._assembler.measure()

    def _on(self, event: Event, now: float, reason: str) -> None:
        """Follow the arrow of `event` in Figure 8: §3.5."""
        self._obey(self._closing.on(event, now), now, reason)

    def _obey(self, todo: Todo, now: float, reason: str = "") -> None:
        """Send the chunks of an arrow of Figure 8, and enter its state: §3.5.5."""
        former, state = self.state, self._closing.state
        for order in todo:
            self.queue_chunk(SessionClose() if order is Do.ASK else SessionCloseAck())
        if state is former:
            return
        if state is State.CLOSED and todo:  # §3.5.5 [abrupt-close]: there will be no other packet
            self._assembler.fill(self.address, now)
        self.state = state
        if former is State.OPEN:
            self._leave_open(reason, now)
        if self.state is State.CLOSED:
            self._assembler.drop()
            self._wake()

    def _leave_open(self, reason: str, now: float) -> None:
        """End the flows, and tell the listener: §3.5.5."""
        self.reason = reason
        self._send.end(now)  # §3.5.5 [flows-end]
        self._recv.end(now)  # §3.5.5 [flows-end]
        self._notices.forget(self._protection)
        self.listener.on_closed(self, now)
