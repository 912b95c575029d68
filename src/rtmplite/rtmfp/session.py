"""An open session: two endpoints, a pair of keys, and flows in both directions.

Implements RFC 7016 §3.5.  How a session comes to be open is told in `startup`; here it begins.

A packet goes through here like this: opened by the cipher, its times taken, its chunks handed to
the half that they concern (`send_side`, `recv_side`), and what follows from all of them together
drawn at its end: acknowledgements, losses, the window, a new address.  Packets are made when the
endpoint asks for them (`take`), so that everything that is due by then shares them.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.acks import DataAckBitmap, DataAckRanges
from rtmplite.rtmfp.chunks import PARSERS, Chunk, encode_chunk
from rtmplite.rtmfp.closing import Closing, State
from rtmplite.rtmfp.congestion import CongestionControl, TimeCritical
from rtmplite.rtmfp.control_chunks import (
    ForwardedInitiatorHello,
    Ping,
    PingReply,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.rtmfp.fast_path import read_next_user_data, read_user_data
from rtmplite.rtmfp.flow_chunks import BufferProbe, FlowException, NextUserData, UserData
from rtmplite.rtmfp.keepalive import Keepalive
from rtmplite.rtmfp.limits import SessionLimits
from rtmplite.rtmfp.listener import Address, FlowReceiver, FlowSender, Priority, SessionListener
from rtmplite.rtmfp.mobility import SECRET_BYTES, Mobility
from rtmplite.rtmfp.path_mtu import PathMtu
from rtmplite.rtmfp.recv_side import RecvSide
from rtmplite.rtmfp.rtt import RoundTrip
from rtmplite.rtmfp.send_side import SendSide
from rtmplite.rtmfp.wire import Wire

if TYPE_CHECKING:
    from rtmplite.rtmfp.profile import PacketCipher
    from rtmplite.rtmfp.recv_flow import RecvFlow
    from rtmplite.rtmfp.send_flow import SendFlow

_COUNTER_GROWTH: Final = 4  # bytes that a cipher's count of packets may still take
_CONTROL_MOST: Final = 64  # chunks that wait; more Pings than that are not answered
_FRAGMENTS: Final = (UserData.type_id, NextUserData.type_id)
DEFAULT_LIMITS: Final = SessionLimits()

__all__ = ["Session", "State"]


class Session:
    """One end of a session, from S_OPEN on: §3.5.

    `near_id` is what the far end puts on its packets, `far_id` what we put on ours; `address` is
    DESTADDR.  `reason` says why the session is open no longer, `invalid` counts packets that were
    forged or broken.  All sessions of an endpoint share `notices`.

    `on_work` is called when `take` may have something to give and has not been called since the
    last time; also when the session becomes CLOSED, which the last packets may still have to tell.
    """

    def __init__(
        self,
        *,
        initiator: bool,
        cipher: "PacketCipher",
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
        on_work: "Callable[[Session], None] | None" = None,
    ) -> None:
        self.near_id, self.far_id, self.address = near_id, far_id, address
        self.far_certificate, self.listener = far_certificate, listener
        self.near_nonce, self.far_nonce = near_nonce, far_nonce
        self.state = State.OPEN
        self.reason, self.invalid = "", 0
        self.round_trip = RoundTrip()
        self._notices = notices or TimeCritical()
        self._wire = Wire(cipher, initiator, far_id, self.round_trip, self._notices)
        self.congestion = CongestionControl(self._notices)
        self.keepalive = Keepalive(self.round_trip, limits.keepalive, limits.patience, now)
        self._mobility = Mobility(random(SECRET_BYTES))
        self._mtu = PathMtu(limits.datagram_bytes, limits.mtu_probes, random, now)
        self._send = SendSide(self.round_trip, self.congestion, limits, self._wake)
        self._recv = RecvSide(self._send.flows, limits, self._ask, self._wake)
        self._send.room = self._wire.room(self._mtu.size) - _COUNTER_GROWTH
        self._control: list[bytes] = []  # chunks to send
        self._outbox: list[tuple[bytes, Address]] = []
        self._on_work = on_work
        self._is_awake = self._is_behind = False  # the second: a packet came since `take`
        self._closing = Closing()

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never.  Own design: the house's way with alarms."""
        if self.state is State.OPEN:
            send, recv = self._send.deadline, self._recv.deadline
            return min(send, recv, self.keepalive.deadline, self._mtu.deadline)
        return self._closing.deadline

    @property
    def send_flows(self) -> "Mapping[int, SendFlow]":
        """The sending flows by identifier, those that linger too: §3.5."""
        return self._send.flows

    @property
    def recv_flows(self) -> "Mapping[int, RecvFlow]":
        """The receiving flows by identifier, those that linger too: §3.5."""
        return self._recv.flows

    @property
    def outstanding(self) -> int:
        """S_OUTSTANDING_BYTES: §3.5."""
        return self._send.flight.outstanding

    @property
    def queued(self) -> int:
        """Bytes of memory that all sending flows hold.  Own design: what `limits` bound."""
        return self._send.queued

    @property
    def buffered(self) -> int:
        """Bytes of memory that all receiving flows hold.  Own design: what `limits` bound."""
        return self._recv.buffered

    def open_flow(
        self,
        metadata: bytes,
        now: float,
        *,
        associated: "RecvFlow | None" = None,
        sender: FlowSender | None = None,
        priority: Priority = Priority.NORMAL,
        time_critical: bool = False,
    ) -> "SendFlow":
        """Open a sending flow: §3.6.2.1.  The far end hears of it with its first message.

        `metadata` says what it is, `associated` which of its flows it answers; `sender` hears what
        becomes of it.  LocalError unless the session is open, and as `SendSide.open` says.
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
        """Take a datagram without its session ID; one that is forged or broken is counted.

        §3.5 says what it does in which state.
        """
        if self.state is State.CLOSED:
            return
        try:
            packet, flags, timestamp, echo, at = self._wire.open(encrypted)
        except RemoteError:
            self.invalid += 1
            return
        if self.state is State.OPEN:
            self.keepalive.heard = now
            if self._wire.heard(flags, now):
                self.congestion.tcr_received = now
            self.round_trip.heard(timestamp, echo, now)
            self._send.begin_packet()
        has_data = self._take_chunks(packet, at, source, now)
        if self.state is State.OPEN:
            self._end_packet(has_data, source, now)

    def take(self, now: float) -> list[tuple[bytes, Address]]:
        """Datagrams to send now, each with its destination.

        As many as the window and the avoidance of bursts allow: §3.5.2.3.  Own design: a session
        that would cost more than `limits` allow ends here.
        """
        self._is_awake = True
        if self._send.overflowed:
            self.abort(now, "the far end takes no data")
        elif self._recv.overflowed:
            self.abort(now, "the far end opens too many flows")
        self._fill(now)
        self._is_awake = self._is_behind = False
        outbox, self._outbox = self._outbox, []
        return outbox

    def tick(self, now: float) -> None:
        """Do what is due by `now`; then call `take`."""
        if self.state is State.OPEN:
            self._recv.tick(now)
            for probe in self._send.tick(now):
                self.queue_chunk(probe)
            if self.keepalive.is_lost(now):
                self.abort(now, "the far end is silent")
            elif self.keepalive.tick(now):
                self.queue_chunk(Ping())  # §3.5.4.1 [empty-message]
            self._probe_path(now)
        else:
            self._tick_closing(now)
        self._wake()

    def queue_chunk(self, chunk: Chunk) -> None:
        """Send a chunk that is of no flow, as soon as possible.

        Own design: the endpoint forwards hellos so (§3.5.1.5).  One that fits no packet, or
        for which too many wait, is dropped.
        """
        if len(self._control) >= _CONTROL_MOST or self.state is State.CLOSED:
            return
        data = encode_chunk(chunk)
        if len(data) <= self._send.room:
            self._control.append(data)
            self._wake()

    def close(self, now: float, reason: str = "closed here") -> None:
        """Close reliably: ask until the far end agrees, or for 90 seconds: §3.5.5."""
        if self.state is not State.OPEN:
            return
        self._leave_open(State.NEARCLOSE, reason, now)
        self._tick_closing(now)

    def abort(self, now: float, reason: str = "aborted here") -> None:
        """Close at once, with a single word to the far end: §3.5.5 [abrupt-close]."""
        if self.state is State.CLOSED:
            return
        self._control.clear()
        self.queue_chunk(SessionCloseAck())
        self._fill(now)
        self.drop(now, reason)

    def drop(self, now: float, reason: str) -> None:
        """Close without a word, as when another session takes this one's place: §3.5, Figure 8."""
        if self.state is State.OPEN:
            self._leave_open(State.CLOSED, reason, now)
        self.state = State.CLOSED
        self._closing.enter(State.CLOSED, now)
        self._control.clear()
        self._wake()

    def _ask(self, flow: "RecvFlow", now: float) -> FlowReceiver | None:
        return self.listener.on_flow(self, flow, now)

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            if self._on_work is not None:
                self._on_work(self)

    def _fill(self, now: float) -> None:
        """Make packets of all that is due and allowed: §3.6.2.3, §3.6.3.4.5."""
        send, recv = self._send, self._recv
        room = self._wire.room(self._mtu.size)
        while self._control or recv.ack_now or send.has_work:
            chunks = bytearray()
            critical = False
            while self._control and len(chunks) + len(self._control[0]) <= room:
                chunks += self._control.pop(0)
            if recv.ack_now:
                recv.assemble(chunks, room)
            if send.has_work:
                size = len(chunks)
                critical = send.assemble(chunks, room, now)
                if len(chunks) > size and recv.should_ack:  # §3.6.3.4.1 [acknowledge-soon]
                    recv.assemble(chunks, room)
            if not chunks:  # §2.2.4 [one-chunk]: no flow was ready after all
                break
            self._post(bytes(chunks), self.address, now, critical=critical)

    def _post(self, chunks: bytes, to: Address, now: float, *, critical: bool = False) -> None:
        self._outbox.append((self._wire.seal(chunks, now, critical=critical), to))

    def _take_chunks(self, packet: bytes, at: int, source: Address, now: float) -> bool:
        """Take the chunks from `at` on; answer whether there was user data: §3.6.3.2."""
        has_data = False
        before: tuple[int, int, int] | None = None  # flow, number and FSN of the chunk before
        while len(packet) - at >= 3:
            type_id, start = packet[at], at + 3
            at = start + (packet[at + 1] << 8 | packet[at + 2])
            if at > len(packet):  # padding: §2.2.4
                break
            try:
                if type_id in _FRAGMENTS:
                    before = self._take_fragment(type_id, packet, start, at, before, now)
                    has_data = has_data or before is not None
                elif (parse := PARSERS.get(type_id)) is not None:
                    self._take_chunk(parse(packet[start:at]), source, now)
            except RemoteError:  # §2.3: a damaged chunk is no chunk
                continue
        return has_data

    def _take_fragment(
        self,
        type_id: int,
        packet: bytes,
        start: int,
        end: int,
        before: tuple[int, int, int] | None,
        now: float,
    ) -> tuple[int, int, int] | None:
        """Take User Data, or the Next: its flow, number and FSN, if the session is open."""
        if type_id == UserData.type_id:
            flow_id, number, fsn, flags, data, options = read_user_data(packet, start, end)
        elif before is None:
            return None
        else:
            flow_id, number, fsn = before[0], before[1] + 1, before[2]
            flags, data, options = read_next_user_data(packet, start, end)
        if self.state is not State.OPEN:
            return None
        self._recv.take(flow_id, number, fsn, flags, data, options, now)
        return flow_id, number, fsn

    def _take_chunk(self, chunk: Chunk, source: Address, now: float) -> None:
        """Take a chunk that is no user data, if the state of the session knows of it."""
        match chunk:
            case SessionClose():
                self._on_close(now)
            case SessionCloseAck():
                self.drop(now, "closed there")  # §3.5.5 [close-ack-closes]
            case _ if self.state is not State.OPEN:
                return
            case DataAckRanges() | DataAckBitmap():
                self._send.on_ack(chunk, now)
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

    def _end_packet(self, has_data: bool, source: Address, now: float) -> None:
        """Draw what follows from a packet as a whole: §3.6.2.5, §3.6.3.2, §3.5.4.2."""
        if has_data:
            self._recv.end_packet()
        self._send.end_packet(now)
        # §3.5.4.2 [check-new-address]
        if source != self.address and (message := self._mobility.question(source, now)):
            self._post(encode_chunk(Ping(message)), source, now)
        if self._recv.ack_now or self._recv.overflowed or self._send.has_work:
            # Packets read together count one by one, or all would bring one acknowledgement, and
            # that one burst: §3.6.3.4.1 [acknowledge-soon], §3.5.2.3 [six-packets].
            if self._is_behind:
                self._fill(now)
            self._is_behind = True
            self._wake()

    def _on_ping_reply(self, message: bytes, source: Address, now: float) -> None:
        """Take what an own Ping brought back: §3.5.4.2, §3.5.4.3."""
        if self._mobility.is_answer(message, source, now):
            former, self.address = self.address, source
            if former != source:
                self.listener.on_address_change(self, former, now)
        self._mtu.on_reply(message, now)

    def _probe_path(self, now: float) -> None:
        """Try a larger datagram, if any is left to try: §3.5.4.3."""
        size = self._mtu.tick(now, self.round_trip.erto)
        if size:
            datagram = self._wire.seal(self._mtu.probe(self._wire.room(size)), now)
            self._mtu.sent(len(datagram))
            self._outbox.append((datagram, self.address))
        self._send.room = self._wire.room(self._mtu.size) - _COUNTER_GROWTH

    def _on_close(self, now: float) -> None:
        """Agree to the far end's Close: §3.5.5 [close-acknowledged]."""
        self.queue_chunk(SessionCloseAck())
        if self.state is State.OPEN:
            self._leave_open(State.FARCLOSE_LINGER, "closed there", now)

    def _tick_closing(self, now: float) -> None:
        """Ask again, or wait no longer: §3.5.5 [close-repeats] [nearclose-90] [linger-19]."""
        if self._closing.is_over(now):
            self.drop(now, self.reason)
        elif self._closing.is_to_ask(now):
            self.queue_chunk(SessionClose())

    def _leave_open(self, state: State, reason: str, now: float) -> None:
        """Be open no longer: §3.5.5 [flows-end]."""
        self.state, self.reason = state, reason
        self._closing.enter(state, now)
        self._send.end()
        self._recv.end()
        self._notices.forget(self._wire)
        self.listener.on_closed(self, now)
