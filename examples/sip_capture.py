"""Read a capture: every SIP message in it, and how many RTP packets each source sent.

tcpdump -w calls.pcap udp    and then: python sip_capture.py calls.pcap
"""

import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dpkt

from p2psip import RemoteError, Request, RtpPacket, parse_message


def datagrams(path: Path) -> Iterator[tuple[float, str, bytes]]:
    """Yield time, way and content of each UDP datagram over IPv4."""
    with path.open("rb") as file:
        for time, frame in dpkt.pcap.UniversalReader(file):
            ip = dpkt.ethernet.Ethernet(frame).data
            if isinstance(ip, dpkt.ip.IP) and isinstance(udp := ip.data, dpkt.udp.UDP):
                source, target = map(socket.inet_ntoa, (ip.src, ip.dst))
                yield float(time), f"{source}:{udp.sport} > {target}:{udp.dport}", bytes(udp.data)


sources: Counter[str] = Counter()
for time, way, data in datagrams(Path(sys.argv[1])):
    try:
        if data[:1].isalpha():
            message = parse_message(data)
            if isinstance(message, Request):
                what = f"{message.method} {message.uri}"
            else:
                what = f"{message.status} {message.reason}"
            print(f"{time:.3f} {way} {what} ({message.call_id})")
        else:
            packet = RtpPacket.parse(data)
            sources[f"{way} {packet.ssrc:08x} type {packet.payload_type}"] += 1
    except RemoteError as error:
        print(f"{time:.3f} {way} neither SIP nor RTP: {error.reason}")
for source, count in sources.items():
    print(f"{count} packets {source}")
