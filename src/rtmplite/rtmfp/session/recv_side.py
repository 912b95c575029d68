"""The receiving half of a session: its flows, and when they send acknowledgements.

Implements RFC 7016 §3.6.3.
"""

from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.session.budget import SessionBudget
from rtmplite.rtmfp.session.flow_states import RecvState, SendState
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.recv_flow import LINGER_SECONDS, FlowReceiver, RecvFlow
from rtmplite.rtmfp.session.send_flow import SendFlow
from rtmplite.rtmfp.wire.acks import range_ack
from rtmplite.rtmfp.wire.chunks import HEADER_LENGTH, encode_chunk
from rtmplite.rtmfp.wire.flow_chunks import FlowException, has_unknown_option, read_flow_options
from rtmplite.rtmfp.wire.option import Option
from rtmplite.rtmfp.wire.vlu import encode_vlu

DELACK_SECONDS: Final = 0.2  # §3.6.3.4.1 [acknowledge-soon]
RX_DATA_PACKETS: Final = 2
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

    def end_packet(self) -> None:
        """Count a packet with user data, after its chunks: §3.6.3.2."""
        self.rx_data_packets += 1
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
