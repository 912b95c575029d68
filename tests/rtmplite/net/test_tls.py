"""TLS under RTMP: the bytes alone, then the listener and both kinds of client with real sockets."""

import os
import socket as plain
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import gevent
import pytest
from gevent import socket
from support.certificates import certificate
from support.limits import patience

from rtmplite.errors import LocalError, RemoteError
from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.net.tcp_connections import MAX_SEALED, TcpConnections
from rtmplite.net.tls import (
    ON_PLAIN_PORT,
    TO_PLAIN_CLIENT,
    Tls,
    client_context,
    explain,
    mistaken,
    server_context,
)
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.server import ServerConnection

KEY = b"\x17\x01\0\0\0key"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A certificate."""
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(made):
    """`serve(**options)`: a running RTMPS server, `url` being its application."""
    servers = []

    def run(policy=None, **options):
        registry, application = Registry(policy or SlowConsumerPolicy()), LiveApplication()

        def connection(address):
            return ServerConnection({"live": application}.get, registry, os.urandom, now())

        context = server_context(made.file, made.key)
        server = RtmpListener("127.0.0.1", 0, connection, tls=context, **options)
        server.registry = registry
        server.start()
        servers.append(server)
        server.url = "rtmps://{}:{}/live".format(*server.address)
        return server

    yield run
    for server in servers:
        server.stop()


def until(condition, seconds=20.0):
    """Wait for something that happens in other greenlets."""
    with patience(seconds):
        while not condition():
            gevent.sleep(0.005)


def carry(left, right):
    """Move bytes between two ends until neither has any; what each got."""
    got = {left: b"", right: b""}
    while moved := [(end, other) for end, other in ((left, right), (right, left)) if end.pending]:
        for end, other in moved:
            data, end.pending = end.pending, b""
            got[other] += other.tls.receive(data)
            other.pending += other.tls.take_output()
    return got[left], got[right]


class End:
    """One end of TLS and what it has to send."""

    def __init__(self, context, name=None):
        self.tls, self.pending = Tls(context, name), b""
        self.flush()

    def flush(self):
        self.pending += self.tls.take_output()


def test_bytes_in_bytes_out(made):
    """What is sent before the handshake is over comes after it; the end is told."""
    client = End(client_context(made.file), "127.0.0.1")
    server = End(server_context(made.file, made.key))
    client.tls.send(b"early")
    assert carry(client, server) == (b"", b"early")
    server.tls.send(b"x" * 100_000)
    server.flush()
    assert carry(client, server) == (b"x" * 100_000, b"")
    server.tls.close()
    server.flush()
    carry(client, server)
    assert client.tls.ended and not server.tls.ended
    client.tls.close()
    client.flush()
    carry(client, server)
    assert server.tls.ended


@pytest.mark.parametrize(
    ("ca", "name", "words"),
    [(None, "127.0.0.1", "self-signed"), ("own", "other.example", "not valid for")],
)
def test_who_it_is_is_checked(made, ca, name, words):
    """By whom it is signed, and for whom."""
    client = End(client_context(made.file if ca else None), name)
    server = End(server_context(made.file, made.key))
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        carry(client, server)
    assert words in explain(caught.value) and "not trusted" in explain(caught.value)


def test_files_that_are_none(tmp_path, made):
    """Named in one line."""
    (tmp_path / "x.pem").write_text("nothing")
    for call in (
        lambda: server_context(tmp_path / "absent.pem"),
        lambda: server_context(tmp_path / "x.pem"),
        lambda: server_context(made.file),  # without its key
        lambda: client_context(tmp_path / "absent.pem"),
        lambda: client_context(tmp_path / "x.pem"),
    ):
        with pytest.raises(LocalError, match="pem"):
            call()


def test_what_is_wrong_with_a_certificate_or_its_key_is_named(tmp_path, made, monkeypatch):
    """The file, and what it lacks; nobody is asked for a passphrase."""
    other = certificate(tmp_path / "other")
    empty, locked, torn = (tmp_path / name for name in ("empty.pem", "locked.pem", "torn.pem"))
    empty.write_text("nothing")
    words = ["openssl", "pkcs8", "-topk8", "-in", str(made.key), "-out", str(locked)]
    subprocess.run([*words, "-passout", "pass:secret"], check=True, capture_output=True)
    torn.write_bytes(made.key.read_bytes()[:-60])
    for file, key, said in (
        (made.file, tmp_path / "absent.pem", "absent.pem: no such file"),
        (made.file, tmp_path, f"{tmp_path}: Is a directory"),
        (empty, made.key, "empty.pem: no usable certificate: nothing in it begins with BEGIN CERT"),
        (made.file, empty, "empty.pem: no usable key: what begins with BEGIN PRIVATE KEY is not"),
        (made.file, None, f"{made.file}: no usable key: what begins with BEGIN PRIVATE KEY is in"),
        (made.file, locked, "locked.pem: no usable key: a passphrase protects it"),
        (made.file, other.key, f"{other.key}: no usable key: it is not that of the certificate"),
        (made.file, torn, "torn.pem: no usable certificate and key, cut short or damaged"),
    ):
        with pytest.raises(LocalError) as refused:
            server_context(file, key)
        assert said in str(refused.value) and "PEM lib" not in str(refused.value).partition(":")[0]

    def refuse(path):
        if path == made.key:  # as the system does that runs tests for another user than root
            raise PermissionError(13, "Permission denied")
        return content(path)

    content = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(LocalError, match=f"{made.key}: Permission denied"):
        server_context(made.file, made.key)


@pytest.mark.parametrize("merge_ms", [0, 20])
def test_what_is_published_is_played(serve, made, merge_ms):
    """In order and complete; large messages are more than one record."""
    server = serve(merge_ms=merge_ms)
    trust = client_context(made.file)
    source, viewer = (RtmpClient.connect(server.url, tls=trust).create_stream() for _ in range(2))
    source.publish("demo")
    viewer.play("demo")
    assert b"|RtmpSampleAccess" in viewer.read().payload
    sent = [(9, time, KEY + bytes(time * 3000)) for time in range(40)]
    for message in sent:
        source.write(*message)
    got = [viewer.read() for _ in sent]
    assert [(m.type_id, m.timestamp, m.payload) for m in got] == sent


def test_one_turn_is_one_system_call(serve, made, monkeypatch):
    """All that a connection has to send is sealed together."""
    server = serve()
    trust = client_context(made.file)
    source, viewer = (RtmpClient.connect(server.url, tls=trust).create_stream() for _ in range(2))
    viewer.play("demo")
    source.publish("demo")
    viewer.read()
    peer = list(server._peers)[1]
    calls, send = [], peer._send
    monkeypatch.setattr(peer, "_send", lambda output: (calls.append(len(output)), send(output)))
    for time in range(10):
        source._machine.send_media(8, time, source.id, b"\xb2sound")
    source._client.flush()
    assert [viewer.read().timestamp for _ in range(10)] == list(range(10))
    assert [count for count in calls if count] == [1]


def test_a_certificate_is_renewed_while_it_serves(serve, made, tmp_path):
    """Who comes from now on sees the new one, who is here stays."""
    server, new = serve(), certificate(tmp_path)
    old = RtmpClient.connect(server.url, tls=client_context(made.file))
    server.renew(server_context(new.file, new.key))
    with pytest.raises(RemoteError, match="not trusted"):
        RtmpClient.connect(server.url, tls=client_context(made.file))
    RtmpClient.connect(server.url, tls=client_context(new.file)).close()
    assert old.create_stream().id == 1
    old.close()


def test_old_versions_are_not_spoken(made):
    """Whatever the system's settings allow."""
    for context in (server_context(made.file, made.key), client_context(made.file)):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_client_that_does_not_trust(serve, caplog):
    """It says so; the server's log says what it heard; --insecure is no question of trust."""
    server = serve()
    with pytest.raises(RemoteError, match="certificate is not trusted: self-signed"):
        RtmpClient.connect(server.url)
    until(lambda: not server.connections)
    client = RtmpClient.connect(server.url, tls=client_context(insecure=True))
    assert client.call("_checkbw") is None
    client.close()


@pytest.mark.parametrize("garbage", [b"\x03" + bytes(1536), b"GET / HTTP/1.1\r\n\r\n"])
def test_no_tls_is_refused_and_logged(serve, caplog, garbage):
    """Plain RTMP, plain HTTP."""
    server = serve()
    with socket.create_connection(server.address, timeout=20) as client:
        client.sendall(garbage)
        answer = b""
        while data := client.recv(100):
            answer += data
    assert answer[:1] in (b"\x15", b"")  # a TLS alert
    until(lambda: "is cut off: TLS fails" in caplog.text)


def test_tls_where_none_is_spoken():
    """The server waits for something else; the client does not for ever."""
    with plain.create_server(("127.0.0.1", 0)) as server:
        url = "rtmps://{}:{}/live".format(*server.getsockname())
        with pytest.raises(TimeoutError):
            RtmpClient.connect(url, timeout=0.5)


def nobody(address):
    """A machine for a server without applications."""
    return ServerConnection({}.get, Registry(), os.urandom, now())


def test_a_slow_player_is_cut_off_and_the_others_miss_nothing(serve, made):
    """Sealed bytes that the socket does not take are counted as any."""
    server = serve(SlowConsumerPolicy(skip=200_000, limit=1_000_000, seconds=0.3))
    trust = client_context(made.file)
    streams = [RtmpClient.connect(server.url, tls=trust).create_stream() for _ in range(3)]
    source, fast, slow = streams
    source.publish("demo")
    for each in (fast, slow):
        each.play("demo")
    fast.read()
    slow._client._greenlet.kill()  # reads no more
    sent, frame = 0, KEY + bytes(100_000)
    with patience(20):
        while len(server.connections) == 3:
            source.write(9, sent, frame)
            assert fast.read().timestamp == sent
            sent += 1
    source.write(9, sent, frame)
    assert fast.read().timestamp == sent


def test_the_end_is_told_in_tls_too(serve, made):
    """A peer of GnuTLS takes anything else for an attack."""
    server = serve()
    context = client_context(made.file)
    with plain.create_connection(server.address, timeout=20) as raw:
        raw.setblocking(False)
        done = gevent.spawn(_until_end, raw, context)
        until(lambda: [peer for peer in server._peers if peer._tls._is_ready])
        server.connections[0].close(now())
        assert done.get(timeout=20)


def _until_end(raw, context):
    """Read until the end; whether TLS said that it is one."""
    tls = Tls(context, "127.0.0.1")
    while True:
        raw.send(tls.take_output())
        socket.wait_read(raw.fileno(), 5.0)
        data = raw.recv(10_000)
        if not data:
            return tls.ended
        tls.receive(data)


def test_peers_close_what_they_have():
    """`stop` is an end for sockets that we opened, too."""
    listener = plain.create_server(("127.0.0.1", 0))
    connected = plain.create_connection(listener.getsockname())
    connected.setblocking(False)
    other = listener.accept()[0]
    peers = TcpConnections()
    peers.start()
    peers.adopt(connected, nobody(None))
    assert len(peers.connections) == 1
    peers.stop()
    assert not peers.connections and other.recv(1) == b""
    for each in (listener, other):
        each.close()


def plain_server():
    """A running server for RTMP without TLS."""

    def connection(address):
        return ServerConnection(lambda name: LiveApplication(), Registry(), os.urandom, now())

    server = RtmpListener("127.0.0.1", 0, connection)
    server.start()
    return server


def test_tls_on_a_plain_port_is_told_at_once(caplog):
    """Own design: a line with the address, and the connection is closed; no time-out passes."""
    server = plain_server()
    try:
        client = socket.create_connection(server.address, timeout=20)
        port = client.getsockname()[1]
        client.sendall(Tls(client_context(insecure=True), "localhost").take_output())
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
        assert f"127.0.0.1:{port}: {ON_PLAIN_PORT}" in caplog.messages
        assert server.connections == []
        with pytest.raises(RemoteError, match="may not speak TLS here"):
            RtmpClient.connect("rtmps://{}:{}/live".format(*server.address))
    finally:
        server.stop()


def test_a_plain_client_of_a_tls_port_is_told_what_it_speaks(serve):
    """Own design: OpenSSL closes without an answer."""
    url = serve().url.replace("rtmps:", "rtmp:")
    with pytest.raises(RemoteError, match="perhaps it wants rtmps://"):
        RtmpClient.connect(url)


@pytest.mark.parametrize(
    ("first", "said"),
    [(b"\x16\x03\x01", ON_PLAIN_PORT), (b"\x15\x03", TO_PLAIN_CLIENT), (b"\x03\x03", "")],
)
def test_what_first_bytes_tell(first, said):
    """Own design: TLS begins with a record, RTMP with its version: RTMP 1.0 §5.2.2."""
    assert mistaken(first) == said
    assert mistaken(first[:1]) == mistaken(b"") == ""


def test_what_tls_says_to_a_peer_that_does_not_read_has_an_end(serve, made, monkeypatch):
    """Own design: whatever fills the queue of a connection, it is bounded."""
    server = serve()
    client = RtmpClient.connect(server.url, tls=client_context(made.file))
    [peer] = server._peers
    peer._unsent, peer.is_special = [b"x"], True  # the socket takes nothing

    class Talkative:
        pending, ended = MAX_SEALED, False
        receive = staticmethod(lambda data: b"")
        close = staticmethod(lambda: None)

        def take_output(self):
            raise AssertionError("there is no room for it")

    peer._tls = Talkative()
    peer._open_sealed(peer._tls, b"y")
    assert not peer.machine.closed
    Talkative.pending += 1
    peer._open_sealed(peer._tls, b"y")
    assert peer.machine.closed and "TLS" in peer.machine.reason
    client.close()
