"""Runs of datagrams leave by one call, arrive as they were, and are read by one call."""

import socket

import pytest
from support.pump.built import built

from rtmplite.net import datagram_runs
from rtmplite.net.datagram_runs import DATAGRAM, MAX_RUN, MAX_SEGMENTS, DatagramRuns, run_end
from rtmplite.net.tcp_connections import Socket

HERE, THERE = ("192.0.2.1", 5000), ("192.0.2.2", 5000)
RUNS = (
    [1200],
    [1200] * 8 + [700],
    [40, 1200, 1200, 30, 20, 20, 20, 21, 1],
    [20_000] * 7,
    [10] * 65,
    [5, 0, 5, 5],
)


@pytest.fixture
def plain():
    """Two sockets of the system, one of which sends."""
    pair = [Socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab"]
    for each in pair:
        each.bind(("127.0.0.1", 0))
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    pair[1].settimeout(10)
    yield pair
    for each in pair:
        each.close()


class Noting:
    """In place of a socket: notes the calls, and may refuse to cut."""

    family = socket.AF_INET

    def __init__(self, refuses=None):
        self.calls, self.sent, self._refuses = [], [], refuses

    def sendmsg(self, run, cut, flags, to):
        if self._refuses:
            raise self._refuses
        self.calls.append((len(run), to))
        self.sent += run

    def sendto(self, data, to):
        self.calls.append((1, to))
        self.sent.append(data)


def cutting(opened):
    runs = DatagramRuns(opened)
    runs._cuts = True
    return runs


@pytest.mark.parametrize("sizes", RUNS, ids=str)
@pytest.mark.parametrize("cuts", [True, False])
def test_a_run_comes_as_it_was(plain, sizes, cuts):
    """Own design: each datagram by itself and in order, whatever their lengths."""
    near, far = plain
    runs = DatagramRuns(near)
    runs._cuts &= cuts
    run = [bytes([at % 256]) * size for at, size in enumerate(sizes)]
    runs.send([(each, far.getsockname()) for each in run])
    assert [far.recv(65_535) for _ in run] == run


def test_both_families(plain):
    """Own design: a socket for both writes an address of IPv4 as one of IPv6."""
    far = plain[1]
    with Socket(socket.AF_INET6, socket.SOCK_DGRAM) as near:
        near.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, False)
        near.bind(("::", 0))
        DatagramRuns(near).send([(b"one", far.getsockname())] * 2 + [(b"x", far.getsockname())])
    assert [far.recv(100) for _ in "123"] == [b"one", b"one", b"x"]


def test_one_destination_and_one_length_leave_by_one_call():
    """Own design: that is what it is for."""
    socket_ = Noting()
    queue = [(bytes(100), HERE)] * 5 + [(bytes(50), HERE), (bytes(100), HERE)]
    queue += [(bytes(100), THERE)] * 2 + [(bytes(120), THERE)]
    cutting(socket_).send(queue)
    assert socket_.calls == [(6, HERE), (1, HERE), (2, THERE), (1, THERE)]


@pytest.mark.parametrize(
    ("size", "most"), [(10, MAX_SEGMENTS), (3000, MAX_RUN // 3000), (65_500, 1)]
)
def test_no_run_is_longer_than_the_system_takes(size, most):
    assert run_end([(bytes(size), HERE)] * 100, 0) == most


def test_what_cannot_be_cut_is_sent_one_by_one():
    """Own design: for this run only, as the next one may go another way."""
    socket_ = Noting(OSError("too narrow"))
    runs = cutting(socket_)
    runs.send([(b"one", HERE), (b"two", HERE)])
    assert socket_.sent == [b"one", b"two"]
    socket_._refuses = None
    runs.send([(b"one", HERE), (b"two", HERE)])
    assert socket_.calls[-1] == (2, HERE)


def test_what_the_system_does_not_take_is_lost(plain):
    """Own design: and what follows is sent all the same."""
    near, far = plain
    near.setblocking(False)
    to = far.getsockname()
    DatagramRuns(near).send([(bytes(65_530), to), (bytes(65_530), to), (b"fits", to)])
    assert far.recv(100) == b"fits"


def test_a_socket_of_a_capture_is_given_each_by_itself():
    """Own design: it would not see what a run is made of."""
    socket_ = Noting()
    DatagramRuns(socket_).send([(b"one", HERE), (b"two", HERE)])
    assert socket_.calls == [(1, HERE), (1, HERE)]


@pytest.fixture(params=["in Python", pytest.param("in C", marks=pytest.mark.needs("gcc"))])
def read(request):
    """Reads what waits at a socket, as runs or not: `read(opened, joins, most)`."""
    receive = None
    if request.param == "in C":
        receive = built("_datagrams", "rtmplite.net").receive

    def reader(opened, *, joins=False):
        opened.setblocking(False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(datagram_runs, "receive", receive)
            return DatagramRuns(opened, joins=joins).receive

    return reader


@pytest.mark.parametrize("sizes", RUNS, ids=str)
@pytest.mark.parametrize("joins", [True, False])
def test_what_waits_is_read_as_it_was_sent(plain, read, sizes, joins):
    """Own design: each datagram by itself, with its source, also where a run came together."""
    near, far = plain
    receive = read(far, joins=joins)
    run = [bytes([at % 256]) * size for at, size in enumerate(sizes)]
    DatagramRuns(near).send([(each, far.getsockname()) for each in run])
    found = []
    while len(found) < len(run):
        found += receive(1000)
    cut = [each[:DATAGRAM] for each in run]
    assert found == [(each, near.getsockname()) for each in cut]
    assert receive(1000) == []


def test_no_more_is_read_than_was_asked_for(plain, read):
    """Own design: so that a flood is looked at in parts."""
    near, far = plain
    receive = read(far)
    for number in range(5):
        near.sendto(bytes([number]), far.getsockname())
    counts = [len(receive(2)) for _ in range(4)]
    assert counts == [2, 2, 1, 0]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_sources_of_both_families(read, host):
    """Own design: one of IPv4 is written as such, whatever the socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with Socket(socket.AF_INET6, socket.SOCK_DGRAM) as far, Socket(family, socket.SOCK_DGRAM) as to:
        far.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, False)
        far.bind(("::", 0))
        to.bind((host, 0))
        receive = read(far)
        to.sendto(b"one", (host, far.getsockname()[1]))
        to.sendto(b"", (host, far.getsockname()[1]))
        assert receive(10) == [(b"one", to.getsockname()[:2]), (b"", to.getsockname()[:2])]


def test_two_senders_are_told_apart(plain, read):
    near, far = plain
    receive = read(far, joins=True)
    with Socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        for each in (near, other, near):
            each.sendto(b"packet", far.getsockname())
        sources = [near.getsockname(), other.getsockname(), near.getsockname()]
    assert receive(10) == [(b"packet", source) for source in sources]


def test_a_socket_that_cannot_be_read_gives_nothing(plain, read):
    """Own design: as after an ICMP error, the watcher calls again."""
    receive = read(plain[1])
    plain[1].close()
    assert receive(10) == []


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("given_", [(), (1,), ("a", 1), (1, None), (1 << 80, 1)])
def test_what_is_no_descriptor(given_):
    """Own design: a mistake of ours is an error, not a fault."""
    with pytest.raises((TypeError, OverflowError)):
        built("_datagrams", "rtmplite.net").receive(*given_)
