"""Media ports over real sockets on loopback: whom they hear, and what cannot stop them."""

import logging
import socket

import gevent
import pytest

from p2psip.errors import LocalError
from p2psip.net.media import MediaPort, NoPortsError, PortPool
from p2psip.rtp.rtcp import ReceiverReport
from p2psip.rtp.session import RtpSession

LOOPBACK = "127.0.0.1"
RTCP = bytes(ReceiverReport(1))


def rtp(number=0):
    return RtpSession(1, 8000, "", lambda n: bytes(n), 0.0).send(0, bytes([number]), 0, False, 0.0)


class Phone:
    """A pair of plain sockets."""

    def __init__(self, ip=LOOPBACK):
        self.family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        self.rtp, self.rtcp = PortPool().bind(ip)
        self.address = self.rtp.getsockname()[:2]
        self.rtcp_address = self.rtcp.getsockname()[:2]

    def close(self):
        self.rtp.close()
        self.rtcp.close()


@pytest.fixture
def phone():
    phone = Phone()
    yield phone
    phone.close()


@pytest.fixture
def heard():
    return []


@pytest.fixture
def open_port(heard):
    ports = []

    def make(ip=LOOPBACK, pool=None, **options):
        port = MediaPort(
            ip,
            pool or PortPool(),
            lambda data, now: heard.append(("rtp", data)),
            lambda data, now: heard.append(("rtcp", data)),
            **options,
        )
        ports.append(port)
        return port

    yield make
    for port in ports:
        port.close()


def until(condition):
    """Let the hub run until the condition holds, for two seconds at most."""
    for _ in range(400):
        if condition():
            return
        gevent.sleep(0.005)
    raise AssertionError("nothing happened")


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


def test_rtp_is_even_and_rtcp_is_next():
    """Covers RFC 3550 §11, for ports of the kernel's choice."""
    pool, opened = PortPool(), []
    for _ in range(20):
        pair = pool.bind(LOOPBACK)
        opened += pair
        first, second = (each.getsockname()[1] for each in pair)
        assert first % 2 == 0 and second == first + 1
    assert pool.free is None
    for each in opened:
        each.close()


def test_a_range_runs_out_and_is_used_again(open_port):
    """Covers RFC 3550 §11: and a port just given back is taken last."""
    low, high = free_range(3)
    pool = PortPool(low, high)
    ports = [open_port(pool=pool) for _ in range(3)]
    assert [port.rtp_port for port in ports] == [low, low + 2, low + 4] and pool.free == 0
    with pytest.raises(NoPortsError):
        open_port(pool=pool)
    for port in (ports[1], ports[0], ports[0]):
        port.close()
    assert pool.free == 2
    assert [open_port(pool=pool).rtp_port for _ in range(2)] == [low + 2, low]


def test_occupied_ports_are_passed_over(open_port):
    """Covers RFC 3550 §11: even if only the RTCP port is another's."""
    low, high = free_range(3)
    pool = PortPool(low, high)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((LOOPBACK, low + 1))
        port = open_port(pool=pool)
        assert port.rtp_port == low + 2 and pool.free == 2
        assert open_port(pool=pool).rtp_port == low + 4
        with pytest.raises(NoPortsError):
            open_port(pool=pool)
    assert open_port(pool=pool).rtp_port == low


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


def test_media_goes_both_ways(open_port, phone, heard):
    """Covers RFC 4961 §3: from the port that we listen on."""
    port = open_port()
    port.remote = phone.address
    assert port.remote == phone.address and port.remote_rtcp == phone.rtcp_address
    port.send_rtp(b"to you")
    port.send_rtcp(b"about you")
    gevent.sleep(0.01)
    assert phone.rtp.recvfrom(100) == (b"to you", (LOOPBACK, port.rtp_port))
    assert phone.rtcp.recvfrom(100) == (b"about you", (LOOPBACK, port.rtcp_port))
    phone.rtp.sendto(rtp(1), (LOOPBACK, port.rtp_port))
    phone.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: len(heard) == 2)
    assert sorted(heard) == [("rtcp", RTCP), ("rtp", rtp(1))]
    assert (port.received, port.strangers, port.unsent, port.failures) == (1, 0, 0, 0)


def test_media_over_ipv6(open_port, heard):
    """Covers RFC 3550 §11: however the address is written."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        phone = Phone("::1")
    except OSError:
        pytest.skip("no IPv6 loopback here")
    port = open_port("::1")
    port.remote = ("0:0:0:0:0:0:0:1", phone.address[1])
    phone.rtp.sendto(rtp(), ("::1", port.rtp_port))
    until(lambda: heard)
    port.send_rtp(b"six")
    gevent.sleep(0.01)
    assert phone.rtp.recv(100) == b"six" and port.remote == phone.address
    phone.close()


def test_strangers_are_not_heard(open_port, phone, heard):
    """Covers RFC 3550 §11: neither from another port nor before there is a remote address."""
    port, stranger = open_port(), Phone()
    phone.rtp.sendto(rtp(0), (LOOPBACK, port.rtp_port))
    until(lambda: port.strangers == 1)
    port.remote = phone.address
    stranger.rtp.sendto(rtp(1), (LOOPBACK, port.rtp_port))
    stranger.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: port.strangers == 3)
    phone.rtp.sendto(rtp(2), (LOOPBACK, port.rtp_port))
    until(lambda: heard)
    assert heard == [("rtp", rtp(2))]
    stranger.close()


def test_what_came_while_the_loop_was_busy_is_heard_in_one_turn(open_port, phone, heard):
    """Own design: or every packet after a stall would be late, for good.

    What strangers send is read away in the same turn, lest it hides what the peer says.
    """
    port, stranger = open_port(), Phone()
    port.remote = phone.address
    turns = []
    loop = gevent.get_hub().loop
    port.on_rtp = lambda data, now: turns.append(loop.now())
    for number in range(10):
        phone.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
    until(lambda: len(turns) == 10)
    assert len(set(turns)) == 1
    del turns[:]
    for number in range(20):
        stranger.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
    phone.rtp.sendto(rtp(10), (LOOPBACK, port.rtp_port))
    passed = []
    watcher = loop.check()
    watcher.start(lambda: passed.append(port.strangers))
    until(lambda: turns and port.strangers == 20)
    watcher.stop()
    watcher.close()
    assert set(passed) <= {0, 20}
    stranger.close()


def test_behind_a_nat_the_first_to_speak_rtp_wins(open_port, phone, heard):
    """Covers RFC 4961 §3: garbage and RTCP do not win; later comers do not either."""
    port, wrong, late = open_port(latch=True), ("192.0.2.1", 9), Phone()
    port.remote = wrong
    late.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    phone.rtp.sendto(b"garbage", (LOOPBACK, port.rtp_port))
    phone.rtp.sendto(RTCP, (LOOPBACK, port.rtp_port))
    until(lambda: port.strangers == 3)
    assert port.remote == wrong
    phone.rtp.sendto(rtp(1), (LOOPBACK, port.rtp_port))
    until(lambda: heard)
    late.rtp.sendto(rtp(2), (LOOPBACK, port.rtp_port))
    phone.rtcp.sendto(b"garbage", (LOOPBACK, port.rtcp_port))
    until(lambda: port.strangers == 5)
    phone.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: len(heard) == 2)
    assert port.remote == phone.address and port.remote_rtcp == phone.rtcp_address
    port.remote = wrong  # a new offer: the search begins again
    late.rtp.sendto(rtp(3), (LOOPBACK, port.rtp_port))
    until(lambda: len(heard) == 3)
    assert port.remote == late.address
    late.close()


def test_rtcp_behind_a_nat_comes_from_the_host_of_rtp(open_port, phone, heard):
    """Covers RFC 4961 §3."""
    port, other = open_port(latch=True), Phone("127.0.0.2")
    port.remote = phone.address
    phone.rtp.sendto(rtp(), (LOOPBACK, port.rtp_port))
    until(lambda: heard)
    other.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: port.strangers == 1)
    assert port.remote_rtcp == phone.rtcp_address
    other.close()


def test_a_failing_callback_stops_nothing(phone, caplog):
    """Covers RFC 3550 §A.1: the watcher lives on, and the log is not flooded."""

    def fail(data, now):
        raise RuntimeError("bug")

    port = MediaPort(LOOPBACK, PortPool(), fail, fail)
    port.remote = phone.address
    with caplog.at_level(logging.ERROR):
        for number in range(10):
            phone.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
        phone.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
        until(lambda: port.failures == 11)
    assert port.received == 10
    assert sum("RuntimeError" in record.message for record in caplog.records) == 4  # 1, 2, 4, 8
    port.close()


def test_a_callback_may_close_the_port(phone):
    """Covers RFC 3550 §11: a BYE may be processed in the very callback."""
    ports = []
    port = MediaPort(LOOPBACK, PortPool(), lambda *_: ports[0].close(), lambda *_: None)
    ports.append(port)
    port.remote = phone.address
    for number in range(3):
        phone.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
    until(lambda: port.received)
    gevent.sleep(0.02)
    assert port.received == 1 and port.failures == 0
    port.send_rtp(b"too late")
    port.send_rtcp(b"too late")
    assert port.unsent == 2


def test_what_cannot_be_sent_is_counted(open_port, phone):
    """Covers RFC 3550 §11: no remote yet, or a datagram too long for UDP."""
    port = open_port()
    port.send_rtp(b"nobody there")
    port.send_rtcp(b"nobody there")
    port.remote = phone.address
    port.send_rtp(bytes(70000))
    port.send_rtcp(bytes(70000))
    assert port.unsent == 4 and port.remote == phone.address
    port.remote = None
    assert port.remote is None and port.remote_rtcp is None


def test_names_are_for_the_resolver(open_port):
    """Covers RFC 3605 §2.1: only numeric addresses are taken; media never waits for DNS."""
    port = open_port()
    for name in ("localhost", "::1", ""):
        with pytest.raises(LocalError):
            port.remote = (name, 4000)
    port.remote = (LOOPBACK, 4000)
    port.remote_rtcp = (LOOPBACK, 5000)
    assert port.remote_rtcp == (LOOPBACK, 5000)
