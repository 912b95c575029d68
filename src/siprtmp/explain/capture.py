"""Captures of a network: each packet, and the TCP streams that the packets make.

Own design: dpkt reads pcap, pcapng and the headers below the transport; what a datagram carries is
guessed, and a session description tells the formats of the RTP behind it.
"""

import io
import ipaddress
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import dpkt

from siprtmp.explain import guess
from siprtmp.explain.fields.context import Context
from siprtmp.explain.fields.field import Field, Span, counted
from siprtmp.explain.fields.source import Fault
from siprtmp.operation.arguments import ConfigError

_MAGICS: Final = frozenset(
    bytes.fromhex(each) for each in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")
)
_LINKS: Final = {
    dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
    dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
    dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
}
_MOST: Final = 64 << 20  # octets of a stream


class Segment(NamedTuple):
    """A part of a TCP stream by its sequence number."""

    sequence: int
    data: bytes


def is_capture(data: bytes) -> bool:
    """Whether a file is a capture, by its first octets."""
    return data[:4] in _MAGICS


def capture(data: bytes, context: Context, wanted: range | None = None) -> Field:
    """Describe a capture; of the packets only those with `wanted` numbers, counted from 1.

    Raises ConfigError if the capture is whole and has none of these.
    """
    children: list[Field] = []
    streams: dict[str, list[Segment]] = {}
    fault: Fault | None = None
    at, number = 0, 0
    try:
        link, frames = frames_of(data)
        for number, (time, frame) in enumerate(frames, 1):
            found = data.find(frame, at)
            if wanted is not None and number not in wanted:
                at = found + len(frame)
                continue
            span = Span(data, found, found + len(frame))
            inner = _packet(span, link, context, streams)
            at = span.end
            said = f"{time:.6f} s"
            children.append(Field(f"packet {number}", found, at, context.way, said, children=inner))
    except Exception as error:  # dpkt raises what its fields raise
        fault = Fault(f"the capture ends or breaks behind packet {number}: {error}")
    if fault is None and wanted is not None and number < wanted.start:
        raise ConfigError(f"the capture's last packet is number {number}")
    children += _streams(streams, len(data), context)
    return Field(
        "capture", 0, len(data), counted(number, "packet"), children=tuple(children), fault=fault
    )


def frames_of(data: bytes) -> tuple[Any, Iterator[tuple[float, bytes]]]:
    """Read the link layer of a capture, and its frames with their times in seconds."""
    reader = dpkt.pcap.UniversalReader(io.BytesIO(data))
    link = _LINKS.get(reader.datalink(), dpkt.ip.IP)
    return link, ((float(time), bytes(frame)) for time, frame in reader)


def _packet(
    span: Span, link: Any, context: Context, streams: dict[str, list[Segment]]
) -> tuple[Field, ...]:
    """Describe the headers of a frame, and what they carry."""
    context.way = ""
    fields: list[Field] = []
    at = span.start
    try:
        layer: Any = link(bytes(span))
        if link is dpkt.ip.IP and span.data[at : at + 1] and span.data[at] >> 4 == 6:
            layer = dpkt.ip6.IP6(bytes(span))
    except Exception as error:  # dpkt raises what its fields raise
        return (Field("frame", at, span.end, fault=Fault(f"not readable: {error}")),)
    while isinstance(layer, dpkt.Packet):
        size = _header_size(layer)
        if size is None or at + size > span.end:
            break
        fields.append(Field(type(layer).__name__, at, at + size, _ways(layer, context)))
        at += size
        if isinstance(layer, dpkt.udp.UDP):
            end = min(span.end, at + max(layer.ulen - 8, 0))
            fields.append(guess.datagram(Span(span.data, at, end), context))
            return tuple(fields)
        if isinstance(layer, dpkt.tcp.TCP):
            size = len(bytes(layer.data))
            if size:
                meaning = "a part of a stream, see below"
                fields.append(Field("segment", at, at + size, meaning=meaning))
                known = streams.setdefault(context.way, [])
                known.append(Segment(layer.seq, bytes(layer.data)))
            return tuple(fields)
        layer = layer.data
    if at < span.end:
        fields.append(Field("octets", at, span.end, meaning="not described"))
    return tuple(fields)


def _header_size(layer: Any) -> int | None:
    """How many octets the header of a layer has; None for one that is not described."""
    match layer:
        case dpkt.ethernet.Ethernet():
            return 14 + 4 * len(getattr(layer, "vlan_tags", ()))
        case dpkt.sll.SLL():
            return 16
        case dpkt.loopback.Loopback():
            return 4
        case dpkt.ip.IP():
            return int(layer.hl) << 2
        case dpkt.ip6.IP6():
            return 40 + sum(len(each) for each in layer.extension_hdrs.values())
        case dpkt.udp.UDP():
            return 8
        case dpkt.tcp.TCP():
            return int(layer.off) << 2
    return None


def _ways(layer: Any, context: Context) -> str:
    """The addresses or ports of a layer; the context keeps both together."""
    if isinstance(layer, dpkt.ip.IP | dpkt.ip6.IP6):
        hosts = [str(ipaddress.ip_address(each)) for each in (layer.src, layer.dst)]
        context.way = " > ".join(hosts)
        return context.way
    if isinstance(layer, dpkt.udp.UDP | dpkt.tcp.TCP):
        hosts = context.way.split(" > ")
        ports = [layer.sport, layer.dport]
        context.way = " > ".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port in zip(hosts, ports, strict=False)
        )
        return f"{layer.sport} > {layer.dport}"
    return ""


def _streams(streams: dict[str, list[Segment]], end: int, context: Context) -> Iterator[Field]:
    """Describe the streams behind the packets: they are no piece of the file, but made of it."""
    for way, segments in streams.items():
        data, missing = assembled(segments)
        context.way = way
        inner = guess.stream(Span.all(data), context)
        fault = Fault(f"{missing} octets are missing, and what follows them") if missing else None
        name = f"TCP stream {way}"
        said = f"{len(data)} octets"
        yield Field(
            name, end, end, said, "put together", children=(inner,), fault=fault, octets=data
        )


def assembled(segments: list[Segment]) -> tuple[bytes, int]:
    """Put a stream together up to its first gap; answer it, and how large the gap is.

    >>> assembled([Segment(7, b"lo"), Segment(4, b"hel"), Segment(4, b"hel"), Segment(12, b"!")])
    (b'hello', 3)
    """
    first = segments[0].sequence
    # numbers wrap; of what came first half of them lie ahead, and the others behind
    placed = sorted(
        ((each.sequence - first + (1 << 31)) % (1 << 32), each.data) for each in segments
    )
    data, start = bytearray(), placed[0][0]
    for at, piece in placed:
        have = start + len(data)
        if at > have:
            return bytes(data), at - have
        data += piece[have - at :]
        if len(data) > _MOST:
            break
    return bytes(data), 0
