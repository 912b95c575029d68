"""The flows of RTMFP sessions in a capture: sequence numbers, and what was acknowledged.

Implements RFC 7016 §3.6 as a rule book.
"""

from dataclasses import dataclass, field

from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.packet import SeenPacket
from rtmplite.rtmfp.wire.acks import DataAckBitmap, DataAckRanges
from rtmplite.rtmfp.wire.flow_chunks import UserData


@dataclass(slots=True)
class _Flow:
    """What was sent on a flow, by one end; `forward` is where what is older was given up."""

    last: SeenPacket
    sent: set[int] = field(default_factory=set)
    highest: int = 0
    forward: int = 0
    final: int | None = None


class RtmfpFlows:
    """All flows of a capture: §3.6."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._all: dict[tuple[str, str, int, int], _Flow] = {}

    def data(self, packet: SeenPacket, way: tuple[str, str, int], chunk: UserData) -> None:
        """Take User Data: §3.6.2.3, §3.6.2.11."""
        flow = self._all.setdefault((*way, chunk.flow_id), _Flow(packet))
        number = chunk.sequence_number
        flow.last = packet
        flow.sent.add(number)
        flow.highest = max(flow.highest, number)
        flow.forward = max(flow.forward, number - chunk.fsn_offset)
        if flow.final is not None and number > flow.final:
            what = f"flow {chunk.flow_id} has {number} behind its end, {flow.final}"
            self._findings.add("rtmfp-after-final", packet, what)
        elif chunk.final:
            flow.final = number

    def acknowledged(self, packet: SeenPacket, chunk: DataAckBitmap | DataAckRanges) -> None:
        """Take an acknowledgement, of a flow in the other direction: §3.6.3.4."""
        flows = [
            flow
            for (source, target, _, number), flow in self._all.items()
            if (source, target, number) == (packet.target, packet.source, chunk.flow_id)
        ]
        if not flows:
            return  # the flow began before the capture, or the far end has moved
        sent = max(flow.highest for flow in flows)
        if chunk.cumulative_ack > sent:
            what = f"flow {chunk.flow_id}: {chunk.cumulative_ack} is acknowledged, {sent} was sent"
            self._findings.add("rtmfp-acknowledged", packet, what)

    def finish(self) -> None:
        """Report numbers that never came, and were not given up: §3.6.2.5, §3.6.2.7."""
        for (_, target, _, flow_id), flow in self._all.items():
            wanted = range(max(flow.forward + 1, min(flow.sent)), flow.highest)
            missing = sum(number not in flow.sent for number in wanted)
            if missing:
                what = f"{missing} sequence numbers of flow {flow_id} to {target} never came"
                self._findings.add("rtmfp-lost", flow.last, what)
