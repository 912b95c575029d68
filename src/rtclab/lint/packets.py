"""Reads captures: the packets of UDP and TCP, with the fragments of IP put together.

Own design: a capture that is cut off at its end, as one of a program that was killed, is read up to
there.
"""

from dataclasses import dataclass, field

from rtclab.command_line.arguments import ConfigError
from rtclab.lint.findings.packet import SeenPacket, TcpSegment
from rtclab.unwrap.address import written
from rtclab.unwrap.capture_file import CaptureError, frames_of, is_capture
from rtclab.unwrap.headers import IpFragments, Kind, NetworkHeader, link_of, walk


@dataclass(slots=True)
class Capture:
    """A capture that is read; `fault` says where it ends too soon, "" if it does not.

    `skipped` counts packets that are no UDP or TCP, or cut short by the program that wrote them.
    """

    packets: list[SeenPacket] = field(default_factory=list)
    fault: str = ""
    frames: int = 0
    skipped: int = 0


def read_capture(data: bytes) -> Capture:
    """Read a file; raises ConfigError, with the reason, if it is no capture at all."""
    if not is_capture(data):
        raise ConfigError("this is no capture: neither pcap nor pcapng")
    capture, reader = Capture(), _Reader(data)
    first, now = None, 0.0
    try:
        for frame in frames_of(data):
            capture.frames += 1
            if frame.time is not None:
                first = frame.time if first is None else first
                now = frame.time - first
            span = frame.start, frame.end
            packet = reader.packet(capture.frames, now, link_of(frame.link), *span)
            if packet is not None:
                capture.packets.append(packet)
    except CaptureError as error:
        if not capture.frames:
            raise ConfigError(f"the capture cannot be read: {error}") from None
        capture.fault = f"the capture ends or breaks behind packet {capture.frames}"
    capture.skipped = reader.skipped
    return capture


class _Reader:
    """Takes frames apart, and keeps the fragments of datagrams."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fragments = IpFragments()
        self._useless = 0

    @property
    def skipped(self) -> int:
        """How many packets were of no use so far."""
        return self._useless + self._fragments.waiting

    def packet(
        self, number: int, time: float, kind: Kind, start: int, end: int
    ) -> SeenPacket | None:
        """Give the UDP or TCP packet of a frame, None for anything else."""
        headers = list(walk(self._data, kind, start, end))
        data, hosts = self._data, headers[-1].hosts if headers else None
        while headers and headers[-1].part is not None:
            last = headers[-1]
            if any(each.lacks for each in headers):
                break
            whole = self._fragments.joined(last, data[last.end : last.limit], time)
            if whole is None:
                return None
            data, headers = whole, list(walk(whole, last.next))
        seen = _transported(number, time, headers[-1], hosts, data) if headers and hosts else None
        self._useless += seen is None
        return seen


def _transported(
    number: int, time: float, last: NetworkHeader, hosts: tuple[str, str], data: bytes
) -> SeenPacket | None:
    """The packet of UDP or TCP; a datagram that the capture has a part of is none."""
    if last.ports is None or (last.sequence is None and last.lacks):
        return None
    source, target = map(written, last.hosts or hosts, last.ports)
    carried = data[last.end : last.limit]
    if last.sequence is None:
        return SeenPacket(number, time, source, target, carried)
    segment = TcpSegment(last.sequence, last.is_syn, last.is_end)
    return SeenPacket(number, time, source, target, carried, segment)
