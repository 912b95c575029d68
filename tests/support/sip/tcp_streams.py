"""Both directions of every TCP connection in a capture, put together from its segments."""

import dpkt


def tcp_streams(path, port):
    """Give {(client port, True or False for from the client): bytes} of all talk with `port`."""
    segments = {}
    with path.open("rb") as capture:
        kind = dpkt.pcapng if capture.read(4) == b"\x0a\x0d\x0d\x0a" else dpkt.pcap
        capture.seek(0)
        for _, frame in kind.Reader(capture):
            packet = dpkt.ethernet.Ethernet(frame).data
            tcp = getattr(packet, "data", None)
            if not isinstance(tcp, dpkt.tcp.TCP) or port not in (tcp.sport, tcp.dport):
                continue
            upward = tcp.dport == port
            key = (tcp.sport if upward else tcp.dport, upward)
            segments.setdefault(key, []).append(tcp)
    return {key: _assemble(tcps) for key, tcps in segments.items()}


def _assemble(tcps):
    start = next(tcp.seq + 1 for tcp in tcps if tcp.flags & dpkt.tcp.TH_SYN)
    data = bytearray()
    placed = [((tcp.seq - start) & 0xFFFFFFFF, tcp.data) for tcp in tcps if tcp.data]
    for offset, piece in sorted(placed, key=lambda pair: pair[0]):
        assert offset <= len(data), "the capture lacks a segment"
        data[offset : offset + len(piece)] = piece
    return bytes(data)
