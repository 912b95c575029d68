"""A media port whose packets go through a TURN server on a socket of its own."""

import socket
from functools import partial

import pytest
from support.sip.phones import wait_for
from support.sip.turn_servers import RELAYED, TurnServer, indication

from p2psip.errors import LocalError
from p2psip.nat.turn import TurnMethod, channel_data
from p2psip.net.clock import monotonic
from p2psip.net.local_network import LocalNetwork
from p2psip.net.media import prepared_ports, relayed_ports
from p2psip.net.media.port_pool import PortPool
from p2psip.net.media.prepared_ports import PreparedPorts
from p2psip.net.media.relayed_ports import RelayedSocket, Relays, turn_server
from p2psip.net.media.rtp_ports import MediaPort
from p2psip.net.phone.audio import AudioStream
from p2psip.net.phone.audio_codecs import audio_codec
from p2psip.rtp import fast

LOOPBACK, PEER = "127.0.0.1", ("192.0.2.9", 4000)
LOGIN = ("ann", "secret")
RTP = bytes.fromhex("80000001000000000000cafe") + bytes(160)


class Site:
    """A socket with a `TurnServer` for each client, and what the clients have last sent."""

    def __init__(self):
        self.clients, self.refusals, self.is_up, self.nonce = {}, {}, True, b"n1"
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((LOOPBACK, 0))
        self.socket.setblocking(False)
        self.address = self.socket.getsockname()

    def serve(self):
        """Answer all that has come; truthy once there is a client."""
        try:
            while True:
                data, source = self.socket.recvfrom(65_535)
                one = self.clients.setdefault(source, TurnServer(nonce=self.nonce))
                one.refusals = {method: list(each) for method, each in self.refusals.items()}
                answer = one.answer(data) if self.is_up else None
                if answer is not None:
                    self.socket.sendto(answer, source)
        except BlockingIOError:
            return self.clients


@pytest.fixture
def site():
    running = Site()
    yield running
    running.socket.close()


@pytest.fixture
def ports(site):
    prepared = PreparedPorts(PortPool(), LOOPBACK, spare=1)
    prepared.use(partial(RelayedSocket, server=site.address, login=LOGIN))
    yield prepared
    prepared.close()


def ignore(*_):
    """Take what is heard."""


def soon(site, condition):
    wait_for(lambda: (site.serve(), condition())[1])


@pytest.fixture
def call(site, ports):
    """A media port, what it has heard, and the server's side of its RTP."""
    soon(site, ports.ready.is_set)
    heard = []
    port = MediaPort(LOOPBACK, ports, lambda data, now: heard.append(data), lambda *_: None)
    yield port, heard, site.clients[(LOOPBACK, port.rtp_port)]
    port.close()


def test_a_call_sends_and_hears_through_channels(site, call):
    port, heard, server = call
    assert port.public == (RELAYED[0], RELAYED[1], RELAYED[1])
    port.send_rtp(RTP)
    assert port.unsent == 1  # nobody to send to yet
    port.remote = PEER
    soon(site, lambda: PEER[0] in server.permitted)

    def bound():
        port.send_rtp(RTP)
        return server.channels

    soon(site, bound)
    port.send_rtp(RTP)
    soon(site, lambda: len(server.sent) > 1)
    assert set(server.sent) == {(RTP, PEER)}
    site.socket.sendto(server.data_from(PEER, RTP), (LOOPBACK, port.rtp_port))
    soon(site, lambda: heard == [RTP])
    assert fast.unpack(heard[0]) and port.received == 1 and port.failures == 0


def test_answers_and_packets_are_read_whole(site, ports):
    """Covers RFC 8656 §12.6: a nonce may take 128 characters, and a picture most of a datagram."""
    site.nonce, heard, picture = b"n" * 128, [], RTP + bytes(9000)
    soon(site, ports.ready.is_set)
    port = MediaPort(LOOPBACK, ports, lambda data, now: heard.append(data), lambda *_: None)
    server = site.clients[(LOOPBACK, port.rtp_port)]
    port.remote = PEER
    soon(site, lambda: PEER[0] in server.permitted)
    site.socket.sendto(server.data_from(PEER, picture), (LOOPBACK, port.rtp_port))
    soon(site, lambda: heard)
    assert heard == [picture]
    port.close()


def test_a_port_is_ready_when_the_server_lets_packets_through(site, call):
    """Covers RFC 8656 §11.1: agreed is not ready, and a peer elsewhere is agreed on anew."""
    port, *_ = call
    advertised = []
    port.on_ready = lambda: advertised.append(port.remote)
    for peer in (PEER, ("192.0.2.77", 4000)):
        assert not port.is_ready
        port.remote = peer
        assert not port.is_ready and peer not in advertised
        soon(site, lambda peer=peer: peer in advertised)
        assert port.is_ready and advertised.count(peer) == 1
        port.remote = None
    port.remote = PEER
    assert port.is_ready and len(advertised) == 2  # by the answer from before


def test_a_phone_waits_for_its_relay(site, ports):
    """Covers RFC 8656 §11.1: keys wait until they get through, and sound begins a spurt then."""
    soon(site, ports.ready.is_set)
    wakes = []
    sound = [audio_codec("PCMU")]
    here = AudioStream(LOOPBACK, sound, ports, ignore, ignore, lambda: wakes.append(1))
    peer = AudioStream(LOOPBACK, sound, PortPool(), ignore, ignore, ignore, advertised=PEER[0])
    server = site.clients[(LOOPBACK, here._transport._port.rtp_port)]
    here.conclude(peer.answer(here.offer()))
    assert here.press("5", 0.04) and here.send(bytes(160))
    here.tick(monotonic() + 1)
    assert not (here.is_ready or server.sent)
    assert here.deadline > monotonic()  # nothing is due until then
    wakes.clear()
    soon(site, lambda: here.is_ready)
    assert wakes
    soon(site, lambda: (here.tick(monotonic()), server.sent)[1])
    first = fast.unpack(server.sent[0][0])
    assert first[0] == here._media.telephone_event and first[1]
    peer.close()
    here.close()


def test_only_the_server_and_permitted_peers_are_heard(site, call):
    """Covers RFC 8656 §11.4 [only-permitted-peers] and §12.6."""
    port, heard, server = call
    port.remote = PEER
    soon(site, lambda: PEER[0] in server.permitted)
    here = (LOOPBACK, port.rtp_port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(RTP, here)
        stranger.sendto(channel_data(0x4000, RTP), here)
        stranger.sendto(indication(PEER, RTP), here)
    site.socket.sendto(RTP, here)
    site.socket.sendto(indication(("192.0.2.66", 4000), RTP), here)
    site.socket.sendto(indication(PEER, RTP[:-1]), here)
    soon(site, lambda: heard)
    assert heard == [RTP[:-1]] and port.failures == 0


def test_peers_of_another_family_are_not_asked_for(site, call):
    """Covers RFC 8656 §10.1 [peers-of-our-family]."""
    port, _, server = call
    relay = port._relays[0]
    relay.permit(["2001:db8::1", PEER[0]])
    soon(site, lambda: PEER[0] in server.permitted)
    assert server.permitted == {PEER[0]}


def test_a_call_is_told_that_its_address_is_lost(site, call):
    """Covers RFC 8656 §5 [437-means-gone]."""
    port, _, server = call
    lost = []
    port.when_lost(lambda error: (lost.append(error), port.close()))
    server.is_up = False
    port.remote = PEER  # which needs a permission
    soon(site, lambda: lost)
    assert "437" in lost[0] and port.failures == 0


@pytest.mark.parametrize("code", [486, 508])
def test_a_server_without_room_is_asked_again_after_a_minute(site, monkeypatch, code):
    """Covers RFC 8656 §7.4 [waits-a-minute]."""
    assert prepared_ports.RETRY == 60.0
    later = []
    monkeypatch.setattr(prepared_ports.gevent, "spawn_later", lambda *what: later.append(what))
    site.refusals[TurnMethod.ALLOCATE] = [code]
    advertised, ports = [], PreparedPorts(PortPool(), LOOPBACK, spare=1)
    ports.on_failed = lambda spare: advertised.append(spare.error)
    ports.use(partial(RelayedSocket, server=site.address, login=LOGIN))
    try:
        soon(site, lambda: advertised)
        assert str(code) in advertised[0] and later[0][0] == 60.0
    finally:
        ports.close()


def test_a_wrong_password_is_told_once_and_nothing_more_is_asked(site, monkeypatch):
    advertised, ports = [], PreparedPorts(PortPool(), LOOPBACK, spare=2)
    network = LocalNetwork("192.168.1.10")
    uri = f"turn:ann@127.0.0.1:{site.address[1]}"
    relays = Relays(uri, "wrong", network, ports, advertised.append)
    try:
        soon(site, lambda: advertised)
        assert advertised == ["the TURN server refuses user and password (401)"]
        assert ports._pairs == [] and ports.open(LOOPBACK).public is None
        assert (
            network.own_address("192.168.1.20") is None
        )  # a relay of the local network is for all
    finally:
        relays.close()
        ports.close()


def test_a_server_that_cannot_be_found_is_looked_for_again(monkeypatch):
    places = [None, (LOOPBACK, 9)]
    monkeypatch.setattr(relayed_ports, "locate", lambda server, local: places.pop(0))
    monkeypatch.setattr(relayed_ports, "INTERVAL", 0.001)
    advertised, ports = [], PreparedPorts(PortPool(), LOOPBACK, spare=0)
    relays = Relays(
        "turn:ann@turn.example", "secret", LocalNetwork(LOOPBACK), ports, advertised.append
    )
    wait_for(lambda: not places)
    assert advertised == ["the TURN server turn.example cannot be found"]
    relays.close()


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("turn:ann@a:1", ("ann", "a", 1)),
        ("turn:ann@a", ("ann", "a", 3478)),
        ("TURN:ann@b@[::1]:2?transport=udp", ("ann@b", "::1", 2)),
        ("turn:ann@[::1]", ("ann", "::1", 3478)),
    ],
)
def test_a_server_is_named_by_a_uri(text, server):
    assert turn_server(text) == server


@pytest.mark.parametrize(
    "text",
    [
        "",
        "turn:a:1",
        "turn:@a:1",
        "stun:ann@a:1",
        "turns:ann@a:1",
        "turn:ann:pw@a:1",
        "turn:ann@a:x",
        "turn:ann@a?transport=tcp",
    ],
)
def test_a_wrong_uri_is_refused_without_showing_a_password(text):
    """Covers RFC 8656 §4.1 [turn-without-tls]."""
    with pytest.raises(LocalError) as refused:
        turn_server(text)
    assert "pw" not in str(refused.value)
    assert turn_server("turn:ann@a:1").host == "a"


def test_a_port_that_the_server_knows_already_makes_room_for_another(site, monkeypatch):
    """Covers RFC 8656 §7.4 [another-port] [three-ports] [waits-two-minutes]."""
    waits = []

    def later(seconds, act):
        waits.append(seconds)
        return prepared_ports.gevent.Greenlet(act)

    monkeypatch.setattr(prepared_ports.gevent, "spawn_later", later)
    site.refusals = {TurnMethod.ALLOCATE: [437]}
    failed, prepared = [], PreparedPorts(PortPool(), LOOPBACK, spare=1)
    prepared.on_failed = failed.append
    prepared.use(partial(RelayedSocket, server=site.address, login=LOGIN))
    soon(site, lambda: failed)
    rtp = {port for _, port in site.clients if port % 2 == 0}
    assert len(rtp) == 3 and waits == [120.0] and "437" in failed[0].error
    prepared.close()


def test_after_one_such_port_calls_have_a_relay_as_before(site):
    """Covers RFC 8656 §7.4 [another-port]: there are three tries again, too."""
    site.refusals = {TurnMethod.ALLOCATE: [437]}
    prepared = PreparedPorts(PortPool(), LOOPBACK, spare=1)
    prepared.use(partial(RelayedSocket, server=site.address, login=LOGIN))
    soon(site, lambda: len(site.clients) > 2)
    site.refusals = {}
    soon(site, prepared.ready.is_set)
    assert prepared._taken == 0
    prepared.close()
