"""Conversations as captures have them, packet by packet, for the rules of `rtclab lint`."""

import io

from rtclab.lint.findings.packet import SeenPacket, TcpSegment
from rtclab.lint.judge import Judge
from siprtmp.edge.pcap_file import CapturedConnection, PcapFile

A, B = "192.0.2.1:5060", "192.0.2.2:5060"


class Scene:
    """Packets in order; `at` is the time of the next one, in seconds."""

    def __init__(self):
        self.packets, self.at = [], 0.0
        self._sent = {}

    def wait(self, seconds):
        self.at += seconds
        return self

    def udp(self, source, target, *datagrams, step=0.0):
        """Datagrams, `step` seconds apart."""
        for data in datagrams:
            self._add(source, target, data, None)
            self.at += step
        return self

    def tcp(self, source, target, *pieces, skip=0):
        """Pieces of a connection, which begins with its first one; `skip` octets are lost."""
        if (source, target) not in self._sent:
            for one, other in ((source, target), (target, source)):
                self._add(one, other, b"", TcpSegment(0, True, False))
                self._sent[one, other] = 1
        for data in pieces:
            self._sent[source, target] += skip
            at = self._sent[source, target]
            self._add(source, target, data, TcpSegment(at, False, False))
            self._sent[source, target] = at + len(data)
        return self

    def end(self, seconds=40.0):
        """Something that has nothing to do with it, later: the capture was still running."""
        self.at += seconds
        return self.udp("192.0.2.8:9", "192.0.2.9:9", b"nothing")

    def _add(self, source, target, data, segment):
        self.packets.append(
            SeenPacket(len(self.packets) + 1, self.at, source, target, data, segment)
        )

    def judged(self, keys=()):
        """The judge that has heard all."""
        judge = Judge(keys)
        for packet in self.packets:
            judge.hear(packet)
        judge.finish()
        return judge


def found(scene, keys=()):
    """The rules that a scene breaks, with the number of the packet."""
    return [(each.rule, each.packet) for each in scene.judged(keys).findings]


def streamed(scene):
    """The connections of a scene as a file."""
    file, tales = io.BytesIO(), {}
    pcap = PcapFile(file)
    for each in scene.packets:
        source, target = (_place(address) for address in (each.source, each.target))
        if each.data:
            tale = tales.setdefault(frozenset((source, target)), CapturedConnection(source, target))
            pcap.piece(tale, source, each.data, 1e9 + each.time)
    return file.getvalue()


def datagrams(scene):
    """A scene of datagrams as a file."""
    file = io.BytesIO()
    pcap = PcapFile(file)
    for each in scene.packets:
        pcap.datagram(_place(each.source), _place(each.target), each.data, 1e9 + each.time)
    return file.getvalue()


def _place(text):
    host, _, port = text.rpartition(":")
    return host, int(port)
