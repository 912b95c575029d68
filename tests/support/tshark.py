"""Ask Wireshark's dissectors about many datagrams at once: one program, a second for hundreds.

Own design: a second opinion on what our strategies draw and our codecs write, of a program that
shares no line with ours.
"""

import json
import subprocess

import dpkt
from support.peers.process import require

HERE, THERE = b"\xc0\x00\x02\x01", b"\xc0\x00\x02\x02"
COMPLAINT = "_ws.expert.message"


def dissect(path, frames, fields, *options):
    """The fields of each frame, as lists of text by their names; complaints are among them.

    `path` is where the capture is written; `options` are more arguments for tshark.
    """
    program = require("tshark", "tshark")
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for number, frame in enumerate(frames):
            writer.writepkt(frame, number)
    command = [program, "-n", "-r", path, "-T", "json"]
    command += [word for field in (*fields, COMPLAINT) for word in ("-e", field)]
    done = subprocess.run([*command, *options], capture_output=True, check=True, timeout=300)
    return [row["_source"].get("layers", {}) for row in json.loads(done.stdout)]


def datagram(data, port):
    """A frame with one UDP datagram, from and to this port."""
    udp = dpkt.udp.UDP(sport=port, dport=port, data=data)
    udp.ulen = len(udp)
    return _frame(dpkt.ip.IP_PROTO_UDP, udp)


def segments(data, port, source=40000, size=1400):
    """Frames with these bytes of a TCP connection, to this port, without its beginning."""
    for at in range(0, len(data), size):
        tcp = dpkt.tcp.TCP(
            sport=source, dport=port, seq=1 + at, ack=1, flags=dpkt.tcp.TH_ACK | dpkt.tcp.TH_PUSH
        )
        tcp.data = data[at : at + size]
        yield _frame(dpkt.ip.IP_PROTO_TCP, tcp)


def _frame(protocol, packet):
    ip = dpkt.ip.IP(src=HERE, dst=THERE, p=protocol, data=packet)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(data=ip))
