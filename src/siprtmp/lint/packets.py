"""Reads captures: the packets of UDP and TCP, with the fragments of IP put together.

Own design: dpkt reads the file formats and the headers.  A capture that is cut off at its end, as
one of a program that was killed, is read up to there.
"""

import ipaddress
import math
import struct
from dataclasses import dataclass, field
from typing import Any, Final

import dpkt

from siprtmp.explain.capture import frames_of, is_capture
from siprtmp.lint.findings.packet import SeenPacket, TcpSegment
from siprtmp.operation.arguments import ConfigError
from siprtmp.unwrap.address import written

_CLASSIC: Final = {
    bytes.fromhex("a1b2c3d4"): ">I",
    bytes.fromhex("a1b23c4d"): ">I",
    bytes.fromhex("d4c3b2a1"): "<I",
    bytes.fromhex("4d3cb2a1"): "<I",
}
_FILE_HEADER, _RECORD_HEADER = 24, 16
_UDP_HEADER: Final = 8
_MOST_FRAGMENTS: Final = 1000


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
    capture, reader, first = Capture(), _Reader(), None
    whole = _whole_records(data)
    try:
        link, found = frames_of(data)
        for number, (time, frame) in enumerate(found, 1):
            if number > whole:
                raise dpkt.NeedData("cut within a packet")
            capture.frames = number
            first = time if first is None else first
            packet = reader.packet(number, time - first, link, frame)
            if packet is None:
                capture.skipped += 1
            else:
                capture.packets.append(packet)
    except Exception as error:  # dpkt raises what its fields raise
        if not capture.frames:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ConfigError(f"the capture cannot be read: {reason}") from None
        capture.fault = f"the capture ends or breaks behind packet {capture.frames}"
    return capture


def _whole_records(data: bytes) -> float:
    """How many records of a classic pcap are whole; dpkt gives the beginning of a cut one too."""
    layout = _CLASSIC.get(data[:4])
    if layout is None:
        return math.inf  # the blocks of pcapng have their lengths twice, and dpkt looks
    at, count = _FILE_HEADER, 0
    while at + _RECORD_HEADER <= len(data):
        at += _RECORD_HEADER + int(struct.unpack_from(layout, data, at + 8)[0])
        count += at <= len(data)
    return count


class _Reader:
    """Takes frames apart, and keeps the fragments of datagrams."""

    def __init__(self) -> None:
        self._parts: dict[object, dict[int, tuple[bytes, bool]]] = {}

    def packet(self, number: int, time: float, link: Any, frame: bytes) -> SeenPacket | None:
        """Give the UDP or TCP packet of a frame, None for anything else."""
        try:
            if link is dpkt.ip.IP and frame[:1] and frame[0] >> 4 == 6:
                link = dpkt.ip6.IP6
            layer = link(frame)
        except Exception:  # dpkt raises what its fields raise
            return None
        return self._within(number, time, layer)

    def _within(self, number: int, time: float, layer: Any) -> SeenPacket | None:
        around: Any = None
        while isinstance(layer, dpkt.Packet):
            if isinstance(layer, dpkt.ip.IP | dpkt.ip6.IP6):
                around = layer
                if isinstance(layer, dpkt.ip.IP) and (layer.mf or layer.offset):
                    layer = self._joined(layer)
                    continue
            elif isinstance(layer, dpkt.udp.UDP | dpkt.tcp.TCP) and around is not None:
                return _transported(number, time, around, layer)
            layer = layer.data
        return None

    def _joined(self, part: Any) -> Any:
        """The UDP datagram that a fragment completes, None while it is not whole."""
        key = part.src, part.dst, part.id, part.p
        if len(self._parts) > _MOST_FRAGMENTS:
            self._parts.clear()
        parts = self._parts.setdefault(key, {})
        parts[part.offset] = bytes(part.data), bool(part.mf)
        data = b""
        while len(data) in parts:
            piece, has_more = parts[len(data)]
            data += piece
            if not has_more:
                del self._parts[key]
                is_whole = part.p == dpkt.ip.IP_PROTO_UDP and len(data) >= _UDP_HEADER
                return dpkt.udp.UDP(data) if is_whole else None
            if not piece:
                return None
        return None


def _transported(number: int, time: float, around: Any, layer: Any) -> SeenPacket | None:
    hosts = [str(ipaddress.ip_address(each)) for each in (around.src, around.dst)]
    source, target = written(hosts[0], layer.sport), written(hosts[1], layer.dport)
    data = bytes(layer.data)
    if isinstance(layer, dpkt.udp.UDP):
        size = max(layer.ulen - 8, 0)
        if len(data) < size:
            return None  # the capture has a part of it only
        return SeenPacket(number, time, source, target, data[:size])
    flags = int(layer.flags)
    is_end = bool(flags & (dpkt.tcp.TH_FIN | dpkt.tcp.TH_RST))
    segment = TcpSegment(int(layer.seq), bool(flags & dpkt.tcp.TH_SYN), is_end)
    return SeenPacket(number, time, source, target, data, segment)
