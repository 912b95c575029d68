"""Connections share the time of the loop, whatever they say."""

import socket
from typing import ClassVar

import gevent
import pytest
from gevent import get_hub
from gevent.event import Event
from support.limits import patience

from rtmplite.live.streams import Registry
from rtmplite.net import read_budget, tcp_connections
from rtmplite.net.clock import now
from rtmplite.net.read_budget import ReadBudget
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.connection import AT_ONCE
from rtmplite.rtmp.server import ServerConnection

TALKERS = 10


class Machine(ServerConnection):
    """One that notes in which turn of the loop it was given what."""

    log: list[tuple[float, int]]
    read: ClassVar[list[ServerConnection]] = []
    hook = None

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.transport.receive = self.receive

    def receive(self, data, now):
        """Note it, and nothing else."""
        if data:
            self.log.append((get_hub().loop.now(), len(data)))
            Machine.read.append(self)
            if Machine.hook is not None:
                Machine.hook(self)


@pytest.fixture
def listening(monkeypatch):
    """A server whose every read takes longer than a turn has time for, and what it reads."""
    monkeypatch.setattr(tcp_connections, "SLICE", 0.0)
    monkeypatch.setattr(read_budget, "SLICE", 0.0)
    log = []

    def machine(address):
        made = Machine(lambda app: None, Registry(), bytes, now())
        made.log = log
        return made

    server = RtmpListener("127.0.0.1", 0, machine)
    server.start()
    yield server, log
    server.stop()


def read_all(log, size):
    """Wait until so many bytes have been read."""
    with patience(20):
        while sum(length for _, length in log) < size:
            gevent.sleep(0.001)


def test_a_turn_is_short_and_everybody_is_read(listening):
    """Own design: no more than one who has waited and one who has not are read in a turn."""
    server, log = listening
    talkers = [socket.create_connection(server.address) for _ in range(TALKERS)]
    while len(server.connections) < TALKERS:
        gevent.sleep(0.001)
    for talker in talkers:
        talker.sendall(b"x" * 100)
    read_all(log, 100 * TALKERS)
    reads = [turn for turn, _ in log]
    assert len(reads) == TALKERS
    assert max(map(reads.count, reads)) <= 2
    for talker in talkers:
        talker.close()


def test_who_waits_and_goes_is_forgotten(listening):
    """Own design: a connection may end, or be paused, before its turn comes."""
    server, log = listening
    talkers = [socket.create_connection(server.address) for _ in range(TALKERS)]
    while len(server.connections) < TALKERS:
        gevent.sleep(0.001)

    def disturb(machine):
        if len(log) == 2:  # all the others wait
            others = [each for each in server.connections if each not in Machine.read]
            for other in others[: len(others) // 2]:
                other.pause_reading()
            for other in others[len(others) // 2 :]:
                other.abort("enough", 0.0)

    Machine.read, Machine.hook = [], staticmethod(disturb)
    for talker in talkers:
        talker.sendall(b"x")
    with patience(20):
        while len(server.connections) > TALKERS // 2 + 1:
            gevent.sleep(0.001)
    assert len(log) == 2
    Machine.hook = None
    for machine in server.connections:
        machine.resume_reading()
    read_all(log, TALKERS // 2 + 1)
    for talker in talkers:
        talker.close()


def talk(server, host, data, count):
    """So many connections of a host, which say it."""
    made = []
    for _ in range(count):
        made.append(socket.create_connection(server.address, source_address=(host, 0)))
        made[-1].sendall(data)
    return made


def test_a_host_with_one_connection_waits_for_one_of_each_other_host(listening):
    """Own design: many connections are no way to a larger share."""
    server, log = listening
    talkers = talk(server, "127.0.0.2", b"", 20) + talk(server, "127.0.0.3", b"", 1)
    with patience(20):
        while len(server.connections) < 21:
            gevent.sleep(0.001)
    Machine.read.clear()
    for talker in talkers:
        talker.sendall(b"x" * 10)
    read_all(log, 210)
    hosts = [machine.peer_address[0] for machine in Machine.read]
    assert hosts.index("127.0.0.3") <= 3  # two are read as the first of a turn
    for talker in talkers:
        talker.close()


def test_the_loop_does_not_sleep_while_somebody_waits(monkeypatch):
    """Own design: what was read already wakes no loop."""
    monkeypatch.setattr(read_budget, "SLICE", 0.0)
    turns, last, left = ReadBudget(get_hub().loop), Event(), [50]

    class Reader:
        host, is_reading = "a", True

        def read(self):
            left[0] -= 1
            if left[0]:
                turns.wait(self)
            else:
                last.set()

    turns.wait(Reader())
    assert last.wait(20)


def test_one_read_is_used_in_several_turns(monkeypatch):
    """Own design: a few messages at once; what is left is used although nothing more comes."""
    monkeypatch.setattr(tcp_connections, "SLICE", 0.0)
    monkeypatch.setattr(read_budget, "SLICE", 0.0)
    turns, loop = [], get_hub().loop

    class Noting(ServerConnection):
        def on_media(self, message, now):
            turns.append(loop.now())

    server = RtmpListener(
        "127.0.0.1", 0, lambda address: Noting(lambda app: None, Registry(), bytes, now())
    )
    server.start()
    talker = socket.create_connection(server.address)
    sound = bytes.fromhex("04 000000 000001 08 01000000 af")
    talker.sendall(b"\x03" + bytes(1536) + bytes(1536) + sound * 100)
    with patience(20):
        while len(turns) < 100:
            gevent.sleep(0.001)
    assert max(map(turns.count, turns)) <= 2 * AT_ONCE  # a read, and what waits from before
    talker.close()
    server.stop()


def test_laborious_bulk_is_read_in_small_pieces(listening, monkeypatch):
    """Own design: tiny messages by the thousand may not fill a turn by one read."""
    server, log = listening
    monkeypatch.setattr(tcp_connections, "LABOUR", 0.0)  # whatever it is, it takes longer
    talker = socket.create_connection(server.address)
    talker.sendall(bytes(200_000))
    read_all(log, 200_000)
    assert max(length for _, length in log) == tcp_connections.SMALL_READ
    talker.close()
