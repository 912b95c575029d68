"""Readers of captures and FLV files, and agents on loopback, for the tests of the SIP family."""

import struct
from collections import namedtuple

import dpkt
import pytest
from support.sip.agents import agent_with

Datagram = namedtuple("Datagram", "time source_port port data")


def _udp(link, frame):
    """The UDP part of a captured frame, or None."""
    try:
        packet = {
            dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
            dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
            dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
            dpkt.pcap.DLT_RAW: dpkt.ip.IP,
            101: dpkt.ip.IP,
        }[link](frame)
    except dpkt.UnpackError:
        return None
    while packet is not None and not isinstance(packet, dpkt.udp.UDP):
        packet = getattr(packet, "data", None)
        packet = None if isinstance(packet, bytes) else packet
    return packet


@pytest.fixture(scope="session")
def capture(corpus):
    """A function that lists the UDP datagrams of a capture in the corpus."""

    def read(name):
        with open(corpus / "pcap" / name, "rb") as file:
            reader = dpkt.pcap.UniversalReader(file)
            return [
                Datagram(time, udp.sport, udp.dport, bytes(udp.data))
                for time, frame in reader
                if (udp := _udp(reader.datalink(), frame)) is not None
            ]

    return read


@pytest.fixture(scope="session")
def flv_audio(corpus):
    """A function that lists (tag byte, data) of the audio tags of an FLV file in the corpus."""

    def read(name):
        data, at, found = (corpus / "flv" / name).read_bytes(), 13, []
        while at + 11 <= len(data):
            kind, size = data[at], struct.unpack_from("!I", data, at)[0] & 0xFFFFFF
            if kind == 8:
                found.append((data[at + 11], data[at + 12 : at + 11 + size]))
            at += 11 + size + 4
        return found

    return read


@pytest.fixture
def make():
    """Agents that are closed at the end."""
    agents = []

    def run(user, **options):
        agents.append(agent_with(user=user, **options))
        return agents[-1]

    yield run
    for agent in agents:
        agent.close(timeout=0.5)


@pytest.fixture
def alice(make):
    return make("alice", display="Alice")


@pytest.fixture
def bob(make):
    return make("bob")
