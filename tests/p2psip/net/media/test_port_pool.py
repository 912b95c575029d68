"""Pairs of ports: even and odd, of a range, at places that nobody can foretell."""

import socket
from itertools import pairwise

import pytest

from p2psip.errors import LocalError
from p2psip.net.media.port_pool import ANYWHERE, NoPortsError, PortPool

LOOPBACK = "127.0.0.1"


@pytest.fixture
def take():
    """Bind a pair of a pool, and answer its RTP port and both sockets."""
    opened = []

    def bind(pool):
        pair = pool.bind(LOOPBACK)
        opened.extend(pair)
        return pair[0].getsockname()[1], pair

    yield bind
    for each in opened:
        each.close()


def free_range(pairs):
    """A range of ports that holds as many pairs and that nobody uses."""
    for low in range(20000, 60000, 50):
        pool, taken = PortPool(low, low + 2 * pairs - 1), []
        try:
            for _ in range(pairs):
                taken += pool.bind(LOOPBACK)
            return low, low + 2 * pairs - 1
        except NoPortsError:
            continue
        finally:
            for each in taken:
                each.close()
    raise AssertionError("no free ports")


def test_rtp_is_even_and_rtcp_is_next(take):
    """Covers RFC 3550 §11, for ports of no range.

    Covers RFC 3551 §8 [even-port] [odd-port-above].
    Covers RFC 3550 §6 [two-ports] and §11 [ports-differ].
    """
    low, high = free_range(10)
    for pool in (PortPool(), PortPool(low + 1, high)):
        for _ in range(4):
            port, (_, reports) = take(pool)
            assert port % 2 == 0 and reports.getsockname()[1] == port + 1
            assert port >= (low if pool.free is not None else ANYWHERE[0])
    assert PortPool().free is None and list(PortPool(3003, 3008)._free) == [3004, 3006]


def test_ports_are_no_sequence(take):
    """Own design: none tells where the next one is, in a range or without one."""
    low, high = free_range(40)
    for pool in (PortPool(low, high), PortPool()):
        ports = [take(pool)[0] for _ in range(10)]
        gaps = {b - a for a, b in pairwise(ports)}
        assert len(gaps) > 4 and ports != sorted(ports)


def test_a_range_runs_out_and_is_used_again(take):
    """Covers RFC 3550 §11: and a pair just given back is not the next one."""
    low, high = free_range(4)
    pool = PortPool(low, high)
    pairs = dict(take(pool) for _ in range(4))
    assert sorted(pairs) == [low, low + 2, low + 4, low + 6] and pool.free == 0
    with pytest.raises(NoPortsError):
        pool.bind(LOOPBACK)
    for port in (low + 4, low, low + 6):
        for each in pairs[port]:
            each.close()
        pool.release(port)
    assert pool.free == 3 and take(pool)[0] in (low + 4, low)


def test_occupied_ports_are_passed_over(take):
    """Covers RFC 3550 §11: even if only the RTCP port is another's."""
    low, high = free_range(3)
    pool = PortPool(low, high)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((LOOPBACK, low + 1))
        assert sorted(take(pool)[0] for _ in range(2)) == [low + 2, low + 4] and pool.free == 1
        with pytest.raises(NoPortsError):
            pool.bind(LOOPBACK)
    assert take(pool)[0] == low


def test_a_range_may_begin_odd_and_must_make_sense():
    """Covers RFC 3550 §11."""
    assert PortPool(10001, 10005).free == 2 and PortPool(10000, 10000).free == 0
    for low, high in ((0, 5), (5000, 4000), (80, 90), (65000, 70000)):
        with pytest.raises(LocalError):
            PortPool(low, high)
    pool = PortPool(10000, 10003)
    with pytest.raises(OSError):
        pool.bind("192.0.2.1")
    assert pool.free == 2
