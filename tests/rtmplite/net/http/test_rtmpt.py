"""The RTMPT listener with real sockets: what HTTP adds to the tunnel."""

import os

import gevent
import pytest
from gevent import socket
from support.limits import patience
from support.rtmp.tunnels import tunnel_server
from support.sockets import until

from rtmplite.net.clock import now
from rtmplite.net.http import rtmpt
from rtmplite.rtmp import tunnel
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import ClientConnection, Target
from rtmplite.rtmp.server import ServerChunkTransport


class Live(LiveApplication):
    """`live` that can be asked to break, or to read no further."""

    def on_command(self, connection, command, now):
        if command.name == "crash":
            raise ZeroDivisionError("on demand")
        if command.name == "pause":
            connection.pause_reading()


@pytest.fixture
def server():
    with tunnel_server(Live()) as made:
        yield made


class Http:
    """One HTTP connection, kept."""

    def __init__(self, server):
        self.socket = socket.create_connection(server.address, timeout=20)
        self.file = self.socket.makefile("rb")

    def send(self, path, body=b"\0", method="POST", length=None):
        """A request."""
        size = len(body) if length is None else length
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
        self.socket.sendall(head.encode() + body)

    def answer(self):
        """Status and body."""
        status = int(self.file.readline().split()[1])
        headers = {}
        while (line := self.file.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        return status, self.file.read(int(headers[b"content-length"]))

    def ask(self, path, body=b"\0", **options):
        """A request and its answer."""
        self.send(path, body, **options)
        return self.answer()


class Client:
    """A client's machine and the tunnel it uses."""

    def __init__(self, server):
        self.http, self.number = Http(server), 0
        self.name = self.http.ask("/open/1")[1].decode().strip()
        target = Target.parse("rtmp://127.0.0.1/live", stream=False)
        self.machine = ClientConnection(target, os.urandom, now())
        self.events = []
        for _ in range(6):
            assert self.turn() == 200

    def path(self, command):
        """That of the next request."""
        self.number += 1
        return f"/{command}/{self.name}/{self.number - 1}"

    def turn(self):
        """Send what there is, take what comes; the status."""
        up = b"".join(self.machine.transport.take_output())
        status, body = self.http.ask(self.path("send" if up else "idle"), up or b"\0")
        if status == 200:
            self.machine.transport.receive(body[1:], now())
            self.events += self.machine.events()
        return status


def test_a_tunnel_over_one_connection(server):
    """Open, send, idle, close.  Covers Field §"HTTP tunnel"."""
    client = Client(server)
    assert len(server.connections) == 1 and client.events
    assert server.connections[0].peer_address[0] == "127.0.0.1"
    assert client.http.ask(client.path("close")) == (200, b"\0")
    assert not server.connections
    assert client.turn() == 404


def test_requests_may_overtake_each_other(server):
    """Over two connections: the second waits for the first."""
    client = Client(server)
    other = Http(server)
    first, second = client.path("idle"), client.path("idle")
    other.send(second)
    assert until(server._answered.linkcount)
    assert client.http.ask(first)[0] == 200
    assert other.answer()[0] == 200


def test_one_that_never_comes(server, monkeypatch):
    """The tunnel is given up."""
    monkeypatch.setattr(rtmpt, "TURN_LIMIT", 0.05)
    client = Client(server)
    client.path("idle")
    assert client.http.ask(client.path("idle"))[0] == 400
    assert not server.connections


def test_an_application_that_does_not_read(server):
    """Its client's request is answered when it does."""
    client = Client(server)
    client.machine.send("pause")
    client.turn()
    client.machine.send("more")
    waiting = gevent.spawn(client.turn)
    assert until(server._answered.linkcount)
    assert not waiting.ready()
    server.connections[0].resume_reading()
    server._tick()
    assert waiting.get(timeout=20) == 200


def test_a_bug_costs_one_tunnel(server, caplog):
    """And is in the log."""
    client, other = Client(server), Client(server)
    client.machine.send("crash")
    assert client.turn() == 404
    assert "ZeroDivisionError" in caplog.text
    assert other.turn() == 200 and len(server.connections) == 1


def test_encrypted_rtmp_is_logged(server, caplog):
    """RTMPTE.  Covers Field §"RTMPE version byte"."""
    http = Http(server)
    name = http.ask("/open/1")[1].decode().strip()
    assert http.ask(f"/send/{name}/0", b"\x06" + bytes(1536))[0] == 404
    assert "RTMPE is not spoken here" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "length", "status"),
    [
        ("GET", "/open/1", None, 405),
        ("POST", "/fcs/ident2", None, 404),
        ("POST", "/", None, 404),
        ("POST", "/open/1", rtmpt.MAX_BODY + 1, 413),
    ],
)
def test_what_is_not_served(server, method, path, length, status):
    """By its status."""
    assert Http(server).ask(path, method=method, length=length)[0] == status


def test_a_body_is_worth_no_more_than_who_sends_it(server):
    """Own design: nobody keeps our memory by what belongs to nothing, or is a stranger's."""
    http = Http(server)
    assert http.ask("/send/unknown/0", bytes(tunnel.SMALL_BODY))[0] == 404
    assert http.ask("/send/unknown/0", bytes(tunnel.SMALL_BODY + 1))[0] == 413
    name = http.ask("/open/1")[1].decode().strip()
    assert http.ask(f"/idle/{name}/0", bytes(tunnel.SMALL_BODY + 1))[0] == 413
    assert http.ask(f"/send/{name}/0", bytes(200_000))[0] == 413
    client = Client(server)
    assert http.ask(f"/send/{client.name}/999", bytes(200_000))[0] == 400  # it was read
    assert server.budget.used < 200_000


def test_bodies_are_paid_for_while_they_arrive(server):
    """Own design: from the memory that all connections share."""
    http, client = Http(server), Client(server)
    before = server.budget.used
    http.send(f"/send/{client.name}/{client.number}", b"", length=100_000)
    with patience(20):
        while server.budget.used == before:
            gevent.sleep(0.001)
    assert server.budget.used == before + 100_000
    other = Http(server)
    server.budget.total = server.budget.used
    assert other.ask(f"/send/{client.name}/{client.number}", bytes(1000))[0] == 503
    http.socket.close()
    http.file.close()
    with patience(20):
        while server.budget.used != before:
            gevent.sleep(0.001)


def test_a_long_body_leaves_others_their_turn(server, monkeypatch):
    """Own design: nor does the next request overtake what is still being given to a connection."""
    client, heard = Client(server), []
    loop = gevent.get_hub().loop
    monkeypatch.setattr(rtmpt, "SLICE", 0.0)  # every piece takes longer
    monkeypatch.setattr(
        ServerChunkTransport, "receive", lambda self, data, now: heard.append((loop.now(), data))
    )
    bodies = bytes(100_000), b"\1" * 50_000
    https = [client.http, Http(server)]
    for number, (http, body) in enumerate(zip(https, bodies, strict=True)):
        http.send(f"/send/{client.name}/{client.number + number}", body)
    assert [http.answer()[0] for http in https] == [200, 200]
    assert b"".join(data for _, data in heard) == b"".join(bodies)
    assert max(len(data) for _, data in heard) <= rtmpt.PIECE
    seen = [turn for turn, _ in heard]
    assert len(set(seen)) == len(seen)


def test_a_long_body_waits_for_who_reads_no_further(server):
    """Own design: and then goes on, whatever may be kept for one who does not."""
    client = Client(server)
    (machine,) = server.connections
    client.machine.send("pause")
    pinged = bytes.fromhex("020000000000060400000000") + bytes.fromhex("000600000001")
    body = b"".join(client.machine.transport.take_output()) + pinged * 20_000
    waiting = gevent.spawn(client.http.ask, f"/send/{client.name}/{client.number}", body)
    with patience(20):
        while machine.transport.reading:
            gevent.sleep(0.001)
    machine.resume_reading()
    status, answer = waiting.get(timeout=20)
    assert status == 200 and answer.count(bytes.fromhex("000700000001")) == 20_000


def test_a_head_that_is_too_long_leaves_no_trace(server, capfd, caplog):
    """Own design: or anybody could fill the log."""
    http = Http(server)
    http.socket.sendall(b"POST /open/1 HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n")
    assert http.file.readline().split()[1] == b"400"
    assert capfd.readouterr().err == "" and caplog.text == ""


def test_silent_http_connections_go(server, monkeypatch):
    """They would keep a place each."""
    monkeypatch.setattr(rtmpt, "REQUEST_LIMIT", 0.05)
    with socket.create_connection(server.address, timeout=20) as silent:
        silent.sendall(b"POST /open/1 HTTP/1.1\r\n")
        assert silent.recv(100) == b""


def test_silent_tunnels_go(server, monkeypatch):
    """The clock ticks for them."""
    Client(server)
    monkeypatch.setattr(tunnel, "IDLE_LIMIT", 0.05)
    assert until(lambda: server._tick() or not server.connections)
