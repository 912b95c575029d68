"""RTMFP on real sockets: our client and our server, and RTMP beside them."""

import os
import socket

import gevent
import pytest
from gevent.event import Event
from support.sockets import until

from rtmplite.errors import RemoteError
from rtmplite.flv import file
from rtmplite.live.streams import Registry
from rtmplite.net.client import dialer
from rtmplite.net.client.rtmfp_client import BACKLOG, RtmfpClient, connect
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.server.rtmfp_listener import RtmfpListener
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.netconnection.media_flows import LIVE, RELIABLE
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.server import ServerConnection


class Echo(LiveApplication):
    """`live`, with a call that gives back its argument, and one that sends clients away."""

    def __init__(self):
        self.elsewhere = None

    def on_connect(self, connection, now):
        if connection.instance == "elsewhere":
            connection.redirect(self.elsewhere, now)
        else:
            connection.accept(now)

    def on_command(self, connection, command, now):
        if command.name == "echo":
            connection.result(command.transaction_id, *command.args)
        else:
            super().on_command(connection, command, now)


class Servers:
    """One registry behind a port of each kind."""

    def __init__(self, connection_limit=None):
        self.registry, self.application = Registry(), Echo()
        applications = {"live": self.application}.get
        self.lifetimes = LIVE

        def connection(peer):
            made = RtmfpServerConnection(applications, self.registry, os.urandom, now())
            made.transport.lifetimes = self.lifetimes
            return made

        self.flash = RtmfpListener("127.0.0.1", 0, connection, connection_limit=connection_limit)
        self.tcp = RtmpListener(
            "127.0.0.1",
            0,
            lambda peer: ServerConnection(applications, self.registry, os.urandom, now()),
        )
        for each in (self.flash, self.tcp):
            each.start()

    def url(self, scheme, path="live"):
        address = (self.flash if scheme == "rtmfp" else self.tcp).address
        return "{}://{}:{}/{}".format(scheme, *address, path)

    def stop(self):
        for each in (self.flash, self.tcp):
            each.stop()


@pytest.fixture
def servers():
    running = Servers()
    yield running
    running.stop()


CLIENTS = {"rtmp": RtmpClient, "rtmfp": RtmfpClient}


@pytest.mark.parametrize(("up", "down"), [("rtmp", "rtmfp"), ("rtmfp", "rtmp"), ("rtmfp", "rtmfp")])
def test_h264_and_aac_arrive_tag_for_tag(servers, corpus, up, down):
    """Covers RFC 7425 §5.1.1 [many-flows], §5.2 [eof-after-media], whichever way it goes."""
    source = (corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv").read_bytes()
    tags = [tag for tag in file.tags(source) if tag.timestamp < 5000]
    servers.lifetimes = RELIABLE  # a busy machine delays more than a live picture lives
    player = CLIENTS[down].connect(servers.url(down))
    playing = player.create_stream()
    playing.play("demo")
    options = {"lifetimes": RELIABLE} if up == "rtmfp" else {}
    publisher = CLIENTS[up].connect(servers.url(up), **options)
    publishing = publisher.create_stream()
    publishing.publish("demo")
    received = []

    def read():
        while (message := playing.read(timeout=20)) is not None:
            if b"|RtmpSampleAccess" not in message.payload:
                received.append(message)

    reading = gevent.spawn(read)
    for at, tag in enumerate(tags):
        publishing.write(tag.tag_type, tag.timestamp, tag.data)
        if at % 10 == 0:
            gevent.sleep(0.001)
    publishing.delete()
    reading.join(20)
    assert playing.ended
    for kind in (8, 9, 18):
        sent = [(tag.timestamp, tag.data) for tag in tags if tag.tag_type == kind]
        got = [(each.timestamp, each.payload) for each in received if each.type_id == kind]
        assert got == sent, kind
    publisher.close()
    player.close()


def test_calls(servers):
    """And both ends know each other's names for things."""
    client = RtmfpClient.connect(servers.url("rtmfp", "live/room"))
    assert client.call("echo", {"x": [1.0, None, "é"]}) == {"x": [1.0, None, "é"]}
    with pytest.raises(RemoteError, match="No such call"):
        client.call("nonsense")
    (connection,) = servers.flash.connections
    assert connection.app == "live/room" and connection.tc_url.startswith("rtmfp://127.0.0.1:")
    assert connection.peer_address[0] == "127.0.0.1" and len(client.peer_id) == 32
    assert client.information["code"] == "NetConnection.Connect.Success"
    client.close()
    client.close()
    assert client.closed and until(lambda: servers.flash.connections == [])


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("live/room", "live/room"),
        ("live/a%20b?key=1&x=[y]", "live/a%20b?key=1&x=[y]"),
        ("live/käse brot", "live/k%C3%A4se%20brot"),
    ],
)
def test_a_server_is_asked_for_by_its_uri(servers, monkeypatch, path, told):
    """Covers RFC 7425 §5.3.1 [epd-is-uri], §6.1 [path-encoding]."""
    asked, real = [], Endpoint.connect

    def listen(endpoint, epd, addresses, moment):
        asked.append((Epd.parse(epd), list(addresses)))
        return real(endpoint, epd, addresses, moment)

    monkeypatch.setattr(Endpoint, "connect", listen)
    RtmfpClient.connect(servers.url("rtmfp", path)).close()
    uri = servers.url("rtmfp", told).encode()
    assert asked == [(Epd(ancillary_data=uri), [servers.flash.address])]


def test_where_we_are():
    """Covers RFC 7425 §5.3.3 [all-interfaces]: as the way to the server shows, if there is one."""
    servers = [("127.0.0.1", 9), ("::1", 9), ("192.0.2.1", 0)]
    assert ("127.0.0.1", 7) in dialer._own_addresses(servers, 7)


def test_every_connection_has_an_identity_of_its_own(servers):
    """Covers RFC 7425 §5.3 [certificate-once], §7 [new-certificate] [static-clients]."""
    clients = [RtmfpClient.connect(servers.url("rtmfp")) for _ in range(2)]
    assert clients[0].peer_id != clients[1].peer_id
    sessions = [connection.transport.session for connection in servers.flash.connections]
    assert len({session.far_certificate for session in sessions}) == 2
    for client in clients:
        client.close()


def test_a_server_has_keys_for_one_session_each():
    """Covers RFC 7425 §7 [ephemeral-servers]."""
    servers = Servers()
    client = RtmfpClient.connect(servers.url("rtmfp"))
    (session,) = client._port.endpoint.sessions
    certificate = Certificate.parse(session.far_certificate)
    assert certificate.ephemeral_groups and not certificate.static_keys
    client.close()
    servers.stop()


def test_who_is_refused_hears_why(servers):
    """As over RTMP."""
    with pytest.raises(RemoteError) as refused:
        RtmfpClient.connect(servers.url("rtmfp", "nothing"))
    assert refused.value.code == "NetConnection.Connect.InvalidApp"


def test_a_redirect_may_lead_to_another_protocol(servers):
    """`connect` follows it, and `RtmfpClient` from one RTMFP server to another."""
    servers.application.elsewhere = servers.url("rtmp")
    client = connect(Target.parse(servers.url("rtmfp", "live/elsewhere"), stream=False), timeout=20)
    assert isinstance(client, RtmpClient)
    client.close()
    servers.application.elsewhere = servers.url("rtmfp")
    client = RtmfpClient.connect(servers.url("rtmfp", "live/elsewhere"))
    assert client.call("echo", 1.0) == 1.0
    client.close()


def test_nobody_is_there():
    """A time-out; UDP tells nothing."""
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    with pytest.raises(TimeoutError):
        RtmfpClient.connect(f"rtmfp://127.0.0.1:{silent.getsockname()[1]}/live", timeout=0.3)
    silent.close()
    with pytest.raises(OSError):
        RtmfpClient.connect("rtmfp://does.not.exist.invalid/live")


def test_a_server_that_stops_says_so(servers):
    """NetConnection.Connect.Closed, and nobody waits for what will not come."""
    heard, ended = [], Event()

    def on_call(name, args):
        heard.append((name, args[0]["code"]))
        ended.set()

    client = RtmfpClient.connect(servers.url("rtmfp"), on_call=on_call)
    stream = client.create_stream()
    stream.play("demo")
    servers.flash.stop()
    assert ended.wait(30) and heard == [("onStatus", "NetConnection.Connect.Closed")]
    assert stream.read(30) is not None  # |RtmpSampleAccess
    assert stream.read(30) is None and stream.ended and until(lambda: client.closed)
    with pytest.raises(RemoteError):
        client.call("echo")
    client.close()


def test_a_crowd_is_a_crowd():
    """Who finds no room is hung up on."""
    servers = Servers(connection_limit=ConnectionLimit(1, 1))
    first = RtmfpClient.connect(servers.url("rtmfp"))
    with pytest.raises((RemoteError, TimeoutError)):
        RtmfpClient.connect(servers.url("rtmfp"), timeout=1.0)
    first.close()
    assert until(lambda: servers.flash.connections == [])
    RtmfpClient.connect(servers.url("rtmfp")).close()
    servers.stop()


def test_a_name_with_addresses_of_both_families(servers, monkeypatch):
    """Covers RFC 7425 §6.1 [all-addresses]: all are asked, one answers."""
    port = servers.flash.address[1]
    found = [
        (socket.AF_INET6, 2, 17, "", ("::1", port, 0, 0)),
        (socket.AF_INET, 2, 17, "", ("127.0.0.1", port)),
    ]
    real = socket.getaddrinfo

    def resolve(host, *args, **options):
        return found if host == "both.invalid" else real(host, *args, **options)

    monkeypatch.setattr("gevent.socket.getaddrinfo", resolve)
    client = RtmfpClient.connect(f"rtmfp://both.invalid:{port}/live")
    assert client.call("echo", "there") == "there"
    client.close()


def test_a_write_waits_for_a_slow_server(servers):
    """So that a fast publisher's memory is bounded."""
    client = RtmfpClient.connect(servers.url("rtmfp"), lifetimes=RELIABLE)
    stream = client.create_stream()
    stream.publish("demo")
    (connection,) = servers.flash.connections
    connection.pause_reading()
    writing = gevent.spawn(lambda: [stream.write(18, 0, bytes(50_000)) for _ in range(60)])
    until(lambda: client._machine.queued > BACKLOG)
    assert not writing.ready() and client._machine.queued < 1 << 20
    connection.resume_reading()
    writing.join(60)
    assert writing.ready()
    client.close()
