"""A socket is asked about from itself, and media ports are asked about before a call needs them."""

import socket
from functools import partial

import pytest
from support.sip.phones import wait_for
from support.sip.stun_servers import OUTSIDE, StunServer, outside

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, write_address
from p2psip.net import public_address
from p2psip.net.clock import monotonic
from p2psip.net.media.port_pool import MediaPair, NoPortsError, PortPool
from p2psip.net.media.prepared_ports import MappedSocket, PreparedPorts
from p2psip.net.public_address import PublicAddress, StunProbe
from p2psip.net.udp import UdpListener, plain_socket

LOOPBACK = "127.0.0.1"


@pytest.fixture
def server():
    running = StunServer()
    yield running
    running.close()


@pytest.fixture
def listener():
    bound = plain_socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.setblocking(False)
    bound.bind((LOOPBACK, 0))
    heard = UdpListener(bound, lambda data, flow: None)
    yield heard
    heard.close()


class Owner:
    def __init__(self):
        self.found, self.silent, self.symmetric = [], [], []

    def on_address(self, address, server):
        self.found.append((tuple(address), server))

    def on_silence(self, server):
        self.silent.append(server)

    def on_symmetric(self, addresses):
        self.symmetric.append([tuple(each) for each in addresses])


def test_the_first_server_that_answers_is_believed_and_others_are_compared(listener, server):
    other, handler = StunServer("203.0.113.8"), Owner()
    asking = PublicAddress(listener, [server.address, other.address], handler)
    try:
        wait_for(lambda: handler.found and handler.symmetric)
        port = outside(listener.address[1])
        assert handler.found[0][1] in (server.address, other.address)
        assert handler.symmetric == [[(OUTSIDE, port), ("203.0.113.8", port)]]
        assert server.asked[0] == listener.address and not handler.silent
    finally:
        asking.close()
        other.close()


def test_a_server_that_cannot_be_found_is_told_of_once_and_looked_for_again(
    listener, server, monkeypatch
):
    places, handler = [None, None, server.address], Owner()
    monkeypatch.setattr(public_address, "locate", lambda server, local: places.pop(0))
    monkeypatch.setattr(public_address, "INTERVAL", 0.001)
    asking = PublicAddress(listener, [("stun.example", 3478)], handler)
    try:
        wait_for(lambda: handler.found)
        assert handler.silent == [("stun.example", 3478)]
    finally:
        asking.close()


def test_silence_is_told_once_and_datagrams_of_others_are_no_answers():
    """Covers RFC 8489 §6.3: only the server that was asked is believed."""
    sent, told, server = [], [], ("192.0.2.1", 3478)
    probe = StunProbe(lambda data, to: sent.append(data), server, told.append)
    probe.tick(monotonic())
    identifier = StunMessage.parse(sent[0]).transaction_id
    value = write_address((OUTSIDE, 9), identifier)
    answer = StunMessage.write(
        StunClass.SUCCESS, BINDING, identifier, [(StunType.XOR_MAPPED_ADDRESS, value)]
    ).data
    probe.receive(answer, ("192.0.2.1", 3479))
    probe.receive(answer, ("192.0.2.2", 3478))
    assert probe.mapped is None and not told
    for _ in range(7):
        probe.tick(probe.deadline)
    assert told == [probe] and probe.is_silent and len(sent) == 7
    probe.tick(probe.deadline)
    probe.receive(StunMessage.write(StunClass.INDICATION, BINDING, identifier).data, server)
    assert probe.mapped is None and len(sent) == 8
    probe.close()


def test_a_call_takes_ports_whose_addresses_are_known(server):
    pool = PortPool()
    ports = PreparedPorts(pool, LOOPBACK, spare=1)
    ports.use(partial(MappedSocket, server=server.address))
    try:
        assert ports.ready.wait(20)
        rtp, rtcp, public, _ = ports.open(LOOPBACK)
        assert public == (OUTSIDE, *(outside(each.getsockname()[1]) for each in (rtp, rtcp)))
        plain, other, unknown, _ = ports.open(LOOPBACK)  # the next pair is not ready yet
        assert unknown is None and plain.getsockname()[1] + 1 == other.getsockname()[1]
        assert ports.ready.wait(20)
        for each in (rtp, rtcp, plain, other):
            each.close()
    finally:
        ports.close()
    assert not ports.ready.is_set()


class OnePair:
    """A pool that has one pair at a time."""

    def __init__(self):
        self._pool, self._is_free = PortPool(), True

    def bind(self, ip):
        if not self._is_free:
            raise NoPortsError("taken")
        self._is_free = False
        return self._pool.bind(ip)

    def open(self, ip):
        return MediaPair(*self.bind(ip))

    def release(self, port):
        self._is_free = True


def test_the_last_ports_of_a_range_do_not_wait_for_an_answer(server):
    server.host = None
    ports = PreparedPorts(OnePair(), LOOPBACK)
    ports.use(partial(MappedSocket, server=server.address))
    try:
        rtp, rtcp, public, _ = ports.open(LOOPBACK)
        assert public is None
        with pytest.raises(NoPortsError):
            ports.open(LOOPBACK)
        rtp.close()
        rtcp.close()
        ports.release(0)
        for each in ports.open(LOOPBACK)[:2]:
            each.close()
    finally:
        ports.close()
