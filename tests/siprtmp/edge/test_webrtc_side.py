"""The port of all browsers, with real sockets at its other side."""

import os
import socket
from types import SimpleNamespace

import gevent
import pytest
from support.limits import patience

import siprtmp.edge.webrtc_side as side
import siprtmp.edge.webrtc_tcp as tcp
from p2psip.nat.ice_credentials import IceType
from p2psip.nat.ice_lite import MAX_SOURCES
from p2psip.nat.stream_framing import framed
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType
from rtmplite.live.streams import Registry
from siprtmp.edge.webrtc_side import WebRtcSide
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.table import MediaSettings


def made(host="127.0.0.1", external=None):
    log = SimpleNamespace(event=lambda what, **values: None)
    return WebRtcSide((host, 0), external, MediaSettings(), Registry(), log)


@pytest.fixture
def port():
    port = made()
    yield port
    port.stop()


class TcpBrowser:
    """A connection that sends checks for a transport, and packets behind their lengths."""

    def __init__(self, port):
        self.socket = gevent.socket.create_connection(port.address)
        self.address = self.socket.getsockname()

    def send(self, *packets):
        self.socket.sendall(b"".join(map(framed, packets)))

    def check(self, transport):
        ice = transport.ice
        request = StunMessage.write(
            StunClass.REQUEST, BINDING, os.urandom(12),
            [(StunType.USERNAME, f"{ice.ufrag}:x".encode()), (IceType.USE_CANDIDATE, b"")],
            key=ice.password.encode(), fingerprint=True,
        )  # fmt: skip
        self.send(request.data)
        return StunMessage.parse(self.hear())

    def hear(self):
        """The next packet, None at the end."""
        with patience(30):
            head = self._exactly(2)
            return None if head is None else self._exactly(int.from_bytes(head, "big"))

    def _exactly(self, octets):
        data = b""
        while len(data) < octets:
            try:
                more = self.socket.recv(octets - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            data += more
        return data


def test_a_browser_may_come_by_tcp(port):
    """Covers RFC 6544 §3 [framed-by-4571]: checks are answered, and packets go both ways."""
    heard, (transport, end) = [], port.attach(0.0)
    assert end.has_tcp
    transport.received = lambda kind, data, now: heard.append(data)
    browser = TcpBrowser(port)
    answer = browser.check(transport)
    assert answer.kind is StunClass.SUCCESS
    assert tuple(answer.mapped_address()) == transport.ice.remote == browser.address
    browser.send(b"\x16dtls", b"\x80media")
    with patience(30):
        while len(heard) < 2:
            gevent.sleep(0.001)
    assert heard == [b"\x16dtls", b"\x80media"]
    port._send(b"one", browser.address)
    port._send(b"two", browser.address)
    assert [browser.hear(), browser.hear()] == [b"one", b"two"]


def test_a_browser_whose_connection_ends_may_come_back(port):
    """Own design: nothing is sent to its port by UDP meanwhile."""
    transport, _ = port.attach(0.0)
    first = TcpBrowser(port)
    first.check(transport)
    transport.ice.settle()
    first.socket.close()
    with patience(30):
        while transport.ice.remote is not None:
            gevent.sleep(0.001)
    assert port._by_source == {} and transport.ice.sources == []
    second = TcpBrowser(port)
    second.check(transport)
    assert transport.ice.remote == second.address


def test_the_end_of_a_session_is_that_of_its_connections(port):
    transport, _ = port.attach(0.0)
    browser = TcpBrowser(port)
    browser.check(transport)
    transport.close()
    port.detach(transport)
    assert browser.hear() is None
    assert port._by_source == port._tcp.connections == {}


def test_an_address_is_that_of_one_connection_or_of_datagrams(port):
    """Own design: what is known by UDP cannot be had by TCP."""
    transport, _ = port.attach(0.0)
    udp = Browser(port)
    assert udp.check(transport)
    again = gevent.socket.socket()
    again.bind(udp.socket.getsockname())
    again.connect(port.address)
    assert again.recv(1) == b""


def test_strangers_are_closed_when_they_have_said_nothing_of_use(port, monkeypatch):
    """Slow octets, none, noise in frames, and frames longer than any of a browser.

    Covers RFC 4571 §2 [predictable-fields-are-watched]: what is no STUN opens nothing.
    """
    monkeypatch.setattr(tcp, "GREETING_SECONDS", 1e9)  # a frame that is too long ends at once
    transport, _ = port.attach(0.0)
    known = TcpBrowser(port)
    known.check(transport)
    slow, silent, noisy, long = (TcpBrowser(port) for _ in range(4))
    slow.socket.sendall(b"\0")
    noisy.send(*[b"\x80noise"] * 50)
    long.socket.sendall(b"\x08\x01")
    assert long.hear() is None
    monkeypatch.setattr(tcp, "GREETING_SECONDS", -1.0)
    assert [each.hear() for each in (slow, silent, noisy)] == [None] * 3
    port._send(b"still", known.address)
    assert known.hear() == b"still" and list(port._tcp.connections) == [known.address]


def test_a_host_has_few_places_for_strangers(port):
    """The oldest gives way, and never one whose session is known."""
    transport, _ = port.attach(0.0)
    known = TcpBrowser(port)
    known.check(transport)
    strangers = [TcpBrowser(port) for _ in range(tcp.STRANGERS_OF_HOST + 3)]
    assert [each.hear() for each in strangers[:3]] == [None] * 3
    assert len(port._tcp.connections) == tcp.STRANGERS_OF_HOST + 1
    assert known.check(transport).kind is StunClass.SUCCESS


def test_what_a_browser_does_not_read_is_lost_beyond_a_limit(port):
    """Own design: whole packets, so that what comes later can be read."""
    transport, _ = port.attach(0.0)
    browser = TcpBrowser(port)
    browser.check(transport)
    connection = port._tcp.connections[browser.address]
    packets, sent = 0, bytes(2000)
    while connection.waiting <= tcp.MAX_QUEUED and packets < 50_000:
        port._send(sent, browser.address)
        packets += 1
    kept = connection.waiting
    port._send(b"lost", browser.address)
    assert connection.waiting == kept < tcp.MAX_QUEUED + 2100
    assert all(browser.hear() == sent for _ in range(packets))
    port._send(b"last", browser.address)
    assert browser.hear() == b"last"


class Browser:
    """A socket that sends checks for a transport."""

    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.connect(port.address)
        self.port = port

    def check(self, transport):
        """Whether the check is answered."""
        ice = transport.ice
        request = StunMessage.write(
            StunClass.REQUEST, BINDING, os.urandom(12),
            [(StunType.USERNAME, f"{ice.ufrag}:x".encode()), (IceType.USE_CANDIDATE, b"")],
            key=ice.password.encode(), fingerprint=True,
        )  # fmt: skip
        self.port.take(request.data, self.socket.getsockname(), 1.0)
        self.socket.setblocking(False)
        try:
            return StunMessage.parse(self.socket.recv(2048)).kind is StunClass.SUCCESS
        except BlockingIOError:
            return False

    def send(self, data):
        self.port.take(data, self.socket.getsockname(), 1.0)


def test_a_datagram_finds_its_session_by_the_address_of_a_check(port):
    heard = []
    transports = [port.attach(0.0)[0] for _ in range(2)]
    browsers = [Browser(port) for _ in range(2)]
    for number, (transport, browser) in enumerate(zip(transports, browsers, strict=True)):
        transport.received = lambda kind, data, now, number=number: heard.append((number, data))
        browser.send(b"\x80too soon")
        assert browser.check(transport)
    browsers[1].send(b"\x80media")
    browsers[0].send(b"\x16dtls")
    browsers[0].send(b"GET / nothing")
    assert heard == [(1, b"\x80media"), (0, b"\x16dtls")]


def test_an_address_belongs_to_the_first_session_that_has_checked_from_it(port):
    """Own design: a peer that forges the address of another would cut it off."""
    honest, evil = (port.attach(0.0)[0] for _ in range(2))
    browser = Browser(port)
    assert browser.check(honest)
    assert not browser.check(evil) and evil.ice.remote is None
    honest.close()
    port.detach(honest)
    assert browser.check(evil)


def test_an_answer_counts_from_where_a_check_came_alone(port):
    """Own design: it names no session."""
    heard, (transport, _) = [], port.attach(0.0)
    browser, stranger = Browser(port), Browser(port)
    assert browser.check(transport)
    transport.check = lambda message, source, now: heard.append((message.kind, source))
    answer = StunMessage.write(StunClass.SUCCESS, BINDING, bytes(12)).data
    stranger.send(answer)
    browser.send(answer)
    assert heard == [(StunClass.SUCCESS, browser.socket.getsockname())]


def test_a_session_that_has_ended_leaves_nothing(port):
    transport, _ = port.attach(0.0)
    browsers = [Browser(port) for _ in range(MAX_SOURCES + 2)]
    assert all(browser.check(transport) for browser in browsers)
    assert len(port._by_source) == MAX_SOURCES
    transport.close()
    port.detach(transport)
    assert port._by_source == port._by_name == {}
    assert not browsers[0].check(transport)


def test_its_socket_is_read(port):
    transport, _ = port.attach(0.0)
    browser = Browser(port)
    name = f"{transport.ice.ufrag}:x".encode()
    request = StunMessage.write(
        StunClass.REQUEST, BINDING, bytes(12), [(StunType.USERNAME, name)],
        key=transport.ice.password.encode(), fingerprint=True,
    )  # fmt: skip
    for data in (b"", b"\0" * 30, request.data):
        browser.socket.send(data)
    with patience(30):
        while not transport.ice.sources:
            gevent.sleep(0.001)
    assert transport.ice.remote == browser.socket.getsockname()


def test_browsers_are_told_the_address_outside_first():
    port = made(external="192.0.2.1")
    at = port.address[1]
    assert port.attach(0.0)[1].addresses == (("192.0.2.1", at), ("127.0.0.1", at))
    port.stop()
    port = made("0.0.0.0", "192.0.2.1")
    assert port.attach(0.0)[1].addresses == (("192.0.2.1", port.address[1]),)
    port.stop()


def test_without_the_extra_the_operator_is_told_which_it_is(monkeypatch):
    monkeypatch.setattr(side, "dtls", None)
    with pytest.raises(ConfigError, match="webrtc"):
        made()


def test_a_port_in_use_is_an_error(port):
    with pytest.raises(OSError, match="in use"):
        WebRtcSide(port.address, None, MediaSettings(), Registry(), SimpleNamespace())
