"""Media ports over real sockets on loopback: whom they hear, and what cannot stop them."""

import logging
import socket
import struct

import gevent
import pytest
from support.limits import patience
from support.sockets import readable

from p2psip.errors import LocalError
from p2psip.net.media import rtp_ports
from p2psip.net.media.port_pool import PortPool
from p2psip.net.media.rtp_ports import MediaPort
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
    """Let the hub run until the condition holds."""
    with patience():
        while not condition():
            gevent.sleep(0.005)


def test_media_goes_both_ways(open_port, phone, heard):
    """Covers RFC 4961 §3, §4 [always-symmetric] [behind-nats-and-relays]: from where we listen.

    Covers RFC 3550 §11 [reports-to-the-told-port].
    """
    port = open_port()
    port.remote = phone.address
    assert port.remote == phone.address and port.remote_rtcp == phone.rtcp_address
    port.send_rtp(b"to you")
    port.send_rtcp(b"about you")
    assert readable(phone.rtp, phone.rtcp)
    assert phone.rtp.recvfrom(100) == (b"to you", (LOOPBACK, port.rtp_port))
    assert phone.rtcp.recvfrom(100) == (b"about you", (LOOPBACK, port.rtcp_port))
    phone.rtp.sendto(rtp(1), (LOOPBACK, port.rtp_port))
    phone.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: len(heard) == 2)
    assert sorted(heard) == [("rtcp", RTCP), ("rtp", rtp(1))]
    assert (port.received, port.strangers, port.unsent, port.failures) == (1, 0, 0, 0)


def test_a_port_that_is_watched_tells_each_datagram_until_it_is_not(open_port, phone, heard):
    """Own design: for the capture of one call, at no cost of the others."""
    port, told = open_port(), []
    near, far = (LOOPBACK, port.rtp_port), (LOOPBACK, port.rtcp_port)
    port.remote = phone.address
    for watch in (lambda *each: told.append(each), None):
        port.watch(watch)
        port.send_rtp(b"to you")
        port.send_rtcp(b"about you")
        port.send_run([b"one", b"two"])
        phone.rtp.sendto(rtp(1), near)
        phone.rtcp.sendto(RTCP, far)
        heard.clear()
        until(lambda: len(heard) == 2)
    assert sorted(told, key=str) == sorted(
        [
            (near, phone.address, b"to you"),
            (far, phone.rtcp_address, b"about you"),
            *((near, phone.address, each) for each in (b"one", b"two")),
            (phone.address, near, rtp(1)),
            (phone.rtcp_address, far, RTCP),
        ],
        key=str,
    )
    assert port.unsent == 0 and port.received == 2


def test_a_port_that_was_behind_reads_on_until_nothing_is_left(open_port, phone, monkeypatch):
    """Own design: while the loop is busy, and where pictures come in bursts, one is not enough."""
    monkeypatch.setattr(rtp_ports, "LOOK", 1000.0)
    port, turns, loop = open_port(), [], gevent.get_hub().loop
    port.remote, port.on_rtp = phone.address, lambda data, now: turns.append(loop.now())
    for count, expected in ((3, 1), (3, 1), (1, 1), (3, 3)):  # the third look finds nothing
        turns.clear()
        for number in range(count):
            phone.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
        until(lambda count=count: len(turns) == count)
        assert len(set(turns)) == expected


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
    assert readable(phone.rtp)
    assert phone.rtp.recv(100) == b"six" and port.remote == phone.address
    phone.close()


def test_a_phone_on_this_machine_may_signal_an_outer_address(open_port, phone, heard, monkeypatch):
    """Covers Field §"Media from another address"."""
    monkeypatch.setattr(rtp_ports, "is_own_address", lambda ip: ip == "192.0.2.2")
    port = open_port()
    port.remote = ("192.0.2.2", phone.address[1])
    phone.rtp.sendto(rtp(), (LOOPBACK, port.rtp_port))
    until(lambda: heard)


@pytest.mark.parametrize("octets", [3000, 9000, 65_507])
def test_datagrams_are_read_whole_however_long(open_port, phone, heard, octets):
    """Own design: jumbo frames, tunnels and the loopback carry more than Ethernet does."""
    port = open_port()
    port.remote = phone.address
    packet, report = rtp() + bytes(octets - len(rtp())), RTCP + bytes(octets - len(RTCP))
    phone.rtp.sendto(rtp(), (LOOPBACK, port.rtp_port))
    phone.rtp.sendto(packet, (LOOPBACK, port.rtp_port))
    phone.rtcp.sendto(report, (LOOPBACK, port.rtcp_port))
    until(lambda: len(heard) == 3)
    assert sorted(heard) == sorted([("rtcp", report), ("rtp", rtp()), ("rtp", packet)])


def test_long_datagrams_before_the_answer_take_no_more_memory(open_port, phone, heard):
    """Own design: anybody may send some; the latest are kept."""
    port, packets = open_port(), [rtp(number) + bytes(50_000) for number in range(9)]
    for number, packet in enumerate(packets, 1):
        phone.rtp.sendto(packet, (LOOPBACK, port.rtp_port))
        until(lambda number=number: port.strangers == number)
    assert sum(len(data) for data, _, _ in port._waiting) <= rtp_ports.WAITING_OCTETS
    port.remote = phone.address
    assert heard == [("rtp", packet) for packet in packets[-2:]]


def test_strangers_are_not_heard(open_port, phone, heard):
    """Own design: who sends from another host is nobody, before and after the answer."""
    port, stranger = open_port(), Phone("127.0.0.2")
    stranger.rtp.sendto(rtp(0), (LOOPBACK, port.rtp_port))
    until(lambda: port.strangers == 1)
    port.remote = phone.address
    stranger.rtp.sendto(rtp(1), (LOOPBACK, port.rtp_port))
    stranger.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: port.strangers == 3)
    phone.rtp.sendto(rtp(2), (LOOPBACK, port.rtp_port))
    until(lambda: heard)
    assert heard == [("rtp", rtp(2))]
    stranger.close()


def test_another_port_of_the_signalled_host_is_heard(open_port, phone, heard):
    """Own design: some send from elsewhere than they listen, and are answered where they do.

    The port that was signalled has the better claim: while it sends, no other one is heard.

    Covers RFC 3550 §11 [source-is-no-destination].
    """
    port, other = open_port(), Phone()
    port.remote = phone.address
    other.rtp.sendto(rtp(0), (LOOPBACK, port.rtp_port))
    other.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: len(heard) == 2)
    assert (port.remote, port.remote_rtcp) == (phone.address, phone.rtcp_address)
    phone.rtp.sendto(rtp(1), (LOOPBACK, port.rtp_port))
    until(lambda: len(heard) == 3)
    other.rtp.sendto(rtp(2), (LOOPBACK, port.rtp_port))
    other.rtp.sendto(b"garbage", (LOOPBACK, port.rtp_port))
    until(lambda: port.strangers == 2)
    assert sorted(heard) == [("rtcp", RTCP), ("rtp", rtp(0)), ("rtp", rtp(1))]
    other.close()


def test_rtp_that_precedes_the_answer_is_heard(open_port, phone, heard, monkeypatch):
    """Covers RFC 3264 §5.1: if the answer names its host, and within a second, in order.

    Covers RFC 3264 §5.1 [hears-before-the-answer] [ready-both-ways].
    """
    port, stranger = open_port(), Phone("127.0.0.2")
    clock = [100.0]
    monkeypatch.setattr(rtp_ports, "monotonic", lambda: clock[0])
    phone.rtp.sendto(rtp(255), (LOOPBACK, port.rtp_port))
    until(lambda: port.strangers == 1)
    clock[0] = 100.5
    for number in range(100):
        phone.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
        if number % 2:
            stranger.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
    until(lambda: port.strangers == 151)
    clock[0] = 101.2
    assert not heard
    port.remote = phone.address
    played = [data[-1] for _, data in heard]
    assert played == list(range(100 - len(played), 100)) and 40 <= len(played) <= rtp_ports.WAITING
    del heard[:]
    port.remote = ("127.0.0.2", stranger.address[1])  # what was played is gone, and the rest too
    assert not heard
    stranger.close()


def test_what_came_while_the_loop_was_busy_is_heard_in_one_turn(open_port, phone, heard):
    """Own design: or every packet after a stall would be late, for good.

    What strangers send is read away in the same turn, lest it hides what the peer says.
    """
    port, stranger = open_port(), Phone("127.0.0.2")
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


def stream(sender, port, first=0, count=4, ssrc=1):
    """Consecutive packets of one source, without sound."""
    for number in range(first, first + count):
        head = struct.pack("!BBHII", 0x80, 0, number & 0xFFFF, number, ssrc)
        sender.rtp.sendto(head, (LOOPBACK, port.rtp_port))


def numbers(heard):
    """The sequence numbers of the RTP that was heard."""
    return [int.from_bytes(data[2:4], "big") for kind, data in heard if kind == "rtp"]


def test_behind_a_nat_a_stream_from_the_signallings_host_is_followed(open_port, phone, heard):
    """Covers RFC 7362 §4: what it takes to be believed is then heard as well.

    Covers RFC 3550 §8.2 [moved-peers-are-heard].
    """
    port, wrong = open_port(latch=True), ("192.0.2.1", 9)
    port.hosts, port.remote = {LOOPBACK}, wrong
    phone.rtp.sendto(b"garbage", (LOOPBACK, port.rtp_port))
    phone.rtp.sendto(RTCP, (LOOPBACK, port.rtp_port))
    stream(phone, port, 5, 3)
    until(lambda: port.strangers == 5)
    assert port.remote == wrong and not heard
    stream(phone, port, 8, 2)
    until(lambda: numbers(heard) == [5, 6, 7, 8, 9])
    assert port.remote == phone.address
    phone.rtcp.sendto(b"garbage", (LOOPBACK, port.rtcp_port))
    phone.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    until(lambda: heard[-1] == ("rtcp", RTCP))
    assert port.remote_rtcp == phone.rtcp_address


@pytest.mark.parametrize("nat", [True, False])
def test_a_spray_takes_no_call(open_port, phone, heard, nat):
    """Covers RFC 7362 §5: however much a third host sends, before the phone or after it.

    Covers RFC 3550 §8.2 [no-flip-flop].
    """
    port, attacker = open_port(latch=nat), Phone("127.0.0.2")
    port.hosts, port.remote = {LOOPBACK}, ("192.0.2.1", 9) if nat else phone.address
    stream(attacker, port, 0, 50)
    until(lambda: port.strangers == 50)
    stream(phone, port, 0, 5)
    until(lambda: numbers(heard) == [0, 1, 2, 3, 4])
    stream(attacker, port, 50, 50)
    until(lambda: port.strangers >= 100)
    assert port.remote == phone.address and numbers(heard) == [0, 1, 2, 3, 4]
    attacker.close()


def test_single_packets_of_many_sources_are_no_stream(open_port, phone, heard):
    """Own design: of one SSRC, in a row, of one socket; and no table of them grows."""
    port = open_port(latch=True)
    port.hosts, port.remote = {LOOPBACK}, ("192.0.2.1", 9)
    others = [Phone() for _ in range(10)]
    for number in range(3):
        for other in others:
            stream(other, port, number, 1)
    for number in range(5):
        stream(phone, port, 2 * number, 1)
        stream(phone, port, number, 1, ssrc=number)
    until(lambda: port.strangers == 40)
    assert (
        not heard and len(port._latch._candidates) <= 8 and len(port._waiting) <= rtp_ports.WAITING
    )
    for other in others:
        other.close()


def test_an_offer_that_repeats_the_address_opens_no_race(open_port, phone, heard, monkeypatch):
    """Covers RFC 7362 §4: the source is kept while the address is; a new one is another search."""
    port, late, wrong = open_port(latch=True), Phone(), ("192.0.2.1", 9)
    clock = [100.0]
    monkeypatch.setattr(rtp_ports, "monotonic", lambda: clock[0])
    port.hosts, port.remote = {LOOPBACK}, wrong
    stream(phone, port)
    until(lambda: len(heard) == 4)
    port.remote = wrong
    assert port.remote == phone.address
    stream(late, port, 0, 10)
    until(lambda: port.strangers == 13)
    assert port.remote == phone.address and len(heard) == 4
    clock[0] += 2.0  # what waited is stale
    port.remote = ("192.0.2.1", 11)
    stream(late, port, 10, 4)
    until(lambda: len(heard) == 8)
    assert port.remote == late.address
    late.close()


def test_a_nat_that_rebinds_is_found_again(open_port, phone, heard, monkeypatch):
    """Covers RFC 7362 §4: after silence of the source that was latched to, and not before."""
    port, rebound = open_port(latch=True), Phone()
    clock = [100.0]
    monkeypatch.setattr(rtp_ports, "monotonic", lambda: clock[0])
    port.hosts, port.remote = {LOOPBACK}, ("192.0.2.1", 9)
    stream(phone, port)
    until(lambda: len(heard) == 4)
    stream(rebound, port, 4, 6)
    until(lambda: port.strangers == 9)
    assert port.remote == phone.address
    clock[0] += 1.5
    stream(rebound, port, 10, 4)
    until(lambda: port.remote == rebound.address)
    assert numbers(heard) == [0, 1, 2, 3, 10, 11, 12, 13]
    port.send_rtp(b"there you are")
    assert readable(rebound.rtp)
    assert rebound.rtp.recv(100) == b"there you are"
    rebound.close()


@pytest.mark.parametrize("nat", [True, False])
def test_packets_that_are_not_authentic_move_nothing(open_port, phone, nat):
    """Covers RFC 7362 §5: a receiver with keys says whose they are, and only then is one followed.

    The phone is heard where it was signalled to be, whatever came from its host before.
    """
    port, forger = open_port(latch=nat), Phone()
    taken = []

    def authentic(data, now):
        is_theirs = data[8:12] == b"\0\0\0\7"
        taken.extend([data] * is_theirs)
        return is_theirs

    port.on_rtp = port.on_rtcp = authentic
    port.hosts, port.remote = {LOOPBACK}, ("192.0.2.1", 9) if nat else phone.address
    before = port.remote, port.remote_rtcp
    stream(forger, port, 0, 12)
    until(lambda: port.strangers == 12)
    forger.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    stream(phone, port, 0, 4, ssrc=7)
    until(lambda: len(taken) == 4)
    assert port.remote == phone.address and port.received == 4
    forger.rtcp.sendto(RTCP, (LOOPBACK, port.rtcp_port))
    phone.rtcp.sendto(RTCP[:4] + b"    \0\0\0\7", (LOOPBACK, port.rtcp_port))
    until(lambda: len(taken) == 5)
    assert port.remote_rtcp == (phone.rtcp_address if nat else before[1])
    forger.close()


def test_rtcp_behind_a_nat_comes_from_the_host_of_rtp(open_port, phone, heard):
    """Covers RFC 4961 §3."""
    port, other = open_port(latch=True), Phone("127.0.0.2")
    port.hosts, port.remote = {LOOPBACK}, phone.address
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


def test_a_callback_may_close_the_port(phone, open_port, heard):
    """Covers RFC 3550 §11: a BYE may be processed in the very callback."""
    ports = []
    port = MediaPort(LOOPBACK, PortPool(), lambda *_: ports[0].close(), lambda *_: None)
    ports.append(port)
    port.remote = phone.address
    for number in range(3):
        phone.rtp.sendto(rtp(number), (LOOPBACK, port.rtp_port))
    until(lambda: port.received)
    other = open_port()
    other.remote = phone.address
    phone.rtp.sendto(rtp(3), (LOOPBACK, other.rtp_port))
    until(lambda: heard == [("rtp", rtp(3))])
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


class TestRuns:
    """The packets of a frame, which may leave by one call."""

    RUNS = (
        [],
        [1200],
        [1200] * 8 + [700],
        [40, 1200, 1200, 30, 20, 20, 20, 21, 1],
        [1200] * 200,
        [20_000] * 7,
        [10] * 65,
        [5, 0, 5, 5],
    )

    @pytest.fixture
    def aimed(self, open_port, phone):
        port = open_port()
        port.remote = phone.address
        phone.rtp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        phone.rtp.settimeout(10)
        return port

    @pytest.mark.parametrize("sizes", RUNS, ids=str)
    @pytest.mark.parametrize("by_one_call", [True, False])
    def test_a_run_comes_as_it_was(self, aimed, phone, sizes, by_one_call):
        """Own design: each datagram by itself and in order, whatever their lengths."""
        aimed._segments &= by_one_call
        run = [bytes([at % 256]) * size for at, size in enumerate(sizes)]
        heard = []
        for at in range(0, len(run), 50):  # what the socket of a test has room for
            aimed.send_run(run[at : at + 50])
            heard += [phone.rtp.recv(65_535) for _ in run[at : at + 50]]
        assert heard == run and aimed.unsent == 0
        assert aimed._segments == by_one_call

    def test_equal_lengths_leave_by_one_call(self, aimed, phone):
        """Own design: that is what it is for."""
        calls = []

        class Counting:
            def sendmsg(self, run, cut, flags, remote):
                calls.append(len(run))

            def sendto(self, data, remote):
                calls.append(1)

        real, aimed._rtp = aimed._rtp, Counting()
        aimed.send_run([bytes(100)] * 5 + [bytes(50), bytes(70), bytes(100)])
        aimed._rtp = real
        assert calls == [6, 1, 1]

    @pytest.mark.parametrize("error", [BlockingIOError, OSError])
    def test_where_the_system_does_not_cut_each_is_sent(self, aimed, error):
        """Own design: once for a full socket, for good where it cannot at all."""
        sent = []

        class Refusing:
            def sendmsg(self, *of):
                raise error

            def sendto(self, data, remote):
                sent.append(data)

        real, aimed._rtp = aimed._rtp, Refusing()
        aimed.send_run([b"one", b"two"])
        aimed._rtp = real
        assert sent == [b"one", b"two"] and aimed._segments == (error is BlockingIOError)

    def test_without_an_address_each_is_counted(self, open_port):
        """Own design: as `send_rtp` does."""
        port = open_port()
        port.send_run([b"one", b"two"])
        assert port.unsent == 2 and port._segments
