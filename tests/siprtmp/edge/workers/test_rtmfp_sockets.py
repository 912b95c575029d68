"""Datagrams of RTMFP reach the worker that has their session, wherever they come from."""

import socket
from contextlib import ExitStack
from random import Random

import pytest

from rtmplite.rtmfp.wire.packet import scramble
from siprtmp.edge.workers import rtmfp_sockets as tested
from siprtmp.edge.workers.rtmfp_sockets import rtmfp_sockets
from siprtmp.operation.arguments import ConfigError

WORKERS = 3
HERE = ("127.0.0.1", 0)


@pytest.fixture
def opened():
    with ExitStack() as stack:
        yield [stack.enter_context(each) for each in rtmfp_sockets(HERE, WORKERS)]


def heard(opened):
    """What each socket has got: datagrams of loopback are there when `sendto` returns."""
    found = []
    for each in opened:
        got = []
        while True:
            try:
                got.append(each.recv(2048))
            except BlockingIOError:
                break
        found.append(got)
    return found


def test_a_session_is_in_the_worker_of_its_number_from_any_address(opened):
    """Covers RFC 7016 §2.2.2 [scrambled]: whatever else is in the datagram."""
    random = Random(1)
    sent = [list[bytes]() for _ in opened]
    for _ in range(60):
        session_id = random.randrange(1, 1 << 32)
        datagram = scramble(session_id, random.randbytes(random.randrange(16, 1000)))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(datagram, opened[0].getsockname())
        sent[session_id % WORKERS].append(datagram)
    assert heard(opened) == sent


def test_all_of_one_startup_reaches_one_worker(opened):
    """A hello and what follows come from one address; those of many clients are divided.

    Covers RFC 7016 §3.3 [zero-is-startup].
    """
    hellos = [scramble(0, Random(number).randbytes(100)) for number in range(5)]
    used = set()
    for _ in range(40):  # all at one worker once in 10^18 times
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            for each in hellos:
                client.sendto(each, opened[0].getsockname())
        got = heard(opened)
        assert sorted(got) == [[], [], hellos]
        used.add(got.index(hellos))
    assert len(used) > 1


def test_what_is_too_short_for_a_session_does_no_harm(opened):
    """RFC 7016 §2: some worker drops it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for size in range(12):
            client.sendto(bytes(size), opened[0].getsockname())
    assert sum(map(len, heard(opened))) == 12


def test_a_port_of_another_program_is_not_shared(opened):
    """Although Linux would let two programs of one user have it."""
    with pytest.raises(ConfigError, match=r"^--rtmfp 127\.0\.0\.1:\d+: "):
        rtmfp_sockets(opened[0].getsockname(), WORKERS)


def test_a_system_that_cannot_steer_leaves_all_to_one_worker(monkeypatch):
    """Nothing is left open: the first worker opens its own."""
    monkeypatch.setattr(tested, "ATTACH", -1)
    assert rtmfp_sockets(HERE, WORKERS) == []
