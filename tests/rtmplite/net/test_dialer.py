"""Relays with real sockets: from one server of ours to another, in one process."""

import os
import socket as plain

import gevent
import pytest
from certificates import certificate

from rtmplite.net import dialer, peers
from rtmplite.net.clock import now
from rtmplite.net.dialer import Dialer
from rtmplite.net.rtmp_client import RtmpClient
from rtmplite.net.rtmp_server import RtmpServer
from rtmplite.net.tls import client_context, server_context
from rtmplite.relay import Backoff
from rtmplite.relays import Relays, Rule
from rtmplite.rtmp.live import LiveApplication
from rtmplite.rtmp.server import ServerConnection
from rtmplite.streams import Registry

KEY = b"\x17\x01\0\0\0key"
BACKOFF = Backoff(first=0.05, most=0.1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A certificate."""
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(monkeypatch):
    """`serve(port=0, tls=None)`: a running server."""
    monkeypatch.setattr(peers, "TICK", 0.02)
    stops = []

    def run(port=0, tls=None):
        registry, application = Registry(), LiveApplication()

        def connection(address):
            return ServerConnection({"live": application}.get, registry, os.urandom, now())

        server = RtmpServer("127.0.0.1", port, connection, tls=tls)
        server.registry = registry
        server.start()
        scheme = "rtmps" if tls else "rtmp"
        server.url = "{}://{}:{}/live".format(scheme, *server.address)
        stops.append(server.stop)
        return server

    def relay(server, tls=None, **rules):
        made = Dialer(tls=tls)
        parsed = {kind: [Rule.parse(rule)] for kind, rule in rules.items()}
        server.relays = Relays(server.registry, made.dial, os.urandom, backoff=BACKOFF, **parsed)
        made.tick = server.relays.tick
        made.start()
        stops.insert(0, made.stop)
        stops.insert(0, lambda: server.relays.stop(now()))
        return made

    run.relay = relay
    yield run
    for stop in stops:
        stop()


def until(condition, seconds=5.0):
    """Wait for something that happens in other greenlets."""
    with gevent.Timeout(seconds):
        while not condition():
            gevent.sleep(0.005)


def states(server):
    """How the links are."""
    return [str(link.state) for link in server.relays.links]


@pytest.mark.parametrize("secure", [False, True])
def test_a_push_arrives(serve, made, secure):
    """Message for message, with and without TLS."""
    far = serve(tls=server_context(made.file, made.key) if secure else None)
    near = serve()
    trust = client_context(made.file)
    serve.relay(near, tls=trust, push=f"live/*={far.url}/{{name}}")
    source = RtmpClient.connect(near.url).create_stream()
    source.publish("demo")
    viewer = RtmpClient.connect(far.url, tls=trust).create_stream()
    viewer.play("demo")
    assert b"|RtmpSampleAccess" in viewer.read().payload
    until(lambda: states(near) == ["running"])
    sent = [(9, time, KEY + bytes(time * 2000)) for time in range(50)]
    for message in sent:
        source.write(*message)
    got = [viewer.read() for _ in sent]
    assert [(m.type_id, m.timestamp, m.payload) for m in got] == sent
    source.delete()
    until(lambda: not near.relays.links)
    assert viewer.status()["code"]


def test_a_server_that_is_not_there_and_then_is(serve, made):
    """Refused, tried again, pushed to; and again after it was restarted."""
    with plain.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    near = serve()
    serve.relay(near, push=f"live/*=rtmp://127.0.0.1:{port}/live")
    source = RtmpClient.connect(near.url).create_stream()
    source.publish("demo")
    until(lambda: states(near) == ["waiting"])
    assert "refused" in near.relays.links[0].reason.lower()
    far = serve(port=port)
    until(lambda: states(near) == ["running"])
    far.stop()
    until(lambda: states(near) != ["running"])
    serve(port=port)
    until(lambda: states(near) == ["running"])


def test_a_certificate_that_is_not_trusted(serve, made):
    """Is the reason of the failure."""
    far = serve(tls=server_context(made.file, made.key))
    near = serve()
    serve.relay(near, push=f"live/*={far.url}/x{{name}}")
    source = RtmpClient.connect(near.url).create_stream()
    source.publish("demo")
    until(lambda: near.relays.links and near.relays.links[0].reason)
    assert "certificate is not trusted" in near.relays.links[0].reason


def test_a_pull_on_demand(serve):
    """From the first player to the last."""
    far, near = serve(), serve()
    serve.relay(near, pull=f"live/*={far.url}")
    source = RtmpClient.connect(far.url).create_stream()
    source.publish("demo")
    assert far.registry.get("live", "demo").players == 0
    viewer = RtmpClient.connect(near.url).create_stream()
    viewer.play("demo")
    assert b"|RtmpSampleAccess" in viewer.read().payload
    until(lambda: far.registry.get("live", "demo").players == 1)
    for time in range(20):
        source.write(9, time, KEY)
    assert [viewer.read().timestamp for _ in range(20)] == list(range(20))
    viewer.delete()
    until(lambda: far.registry.get("live", "demo").players == 0)
    assert not near.relays.links


def test_stopped_while_it_connects(serve, monkeypatch):
    """A socket that comes too late is closed."""
    far, near = serve(), serve()
    slow = dialer.socket.create_connection
    monkeypatch.setattr(
        dialer.socket, "create_connection", lambda *args: (gevent.sleep(0.1), slow(*args))[1]
    )
    connector = serve.relay(near, push=f"live/*={far.url}/x{{name}}")
    live = near.registry.open("live", "demo")
    live.begin(now())
    live.end(now())
    gevent.sleep(0.2)
    assert not near.relays.links and not connector.connections
    until(lambda: not far.connections)
