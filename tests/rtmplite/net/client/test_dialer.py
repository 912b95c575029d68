"""Relays with real sockets: from one server of ours to another, in one process."""

import os
import socket as plain
from functools import partial

import gevent
import pytest
from gevent.event import Event
from support.certificates import certificate
from support.limits import patience

from rtmplite.amf import amf0
from rtmplite.live.streams import Registry
from rtmplite.net import tcp_connections
from rtmplite.net.client import dialer
from rtmplite.net.client.dialer import Dialer
from rtmplite.net.client.rtmfp_client import connect
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.server.rtmfp_listener import RtmfpListener
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.net.tls import client_context, server_context
from rtmplite.relay.link import ReconnectBackoff
from rtmplite.relay.rules import Relays, Rule
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.netconnection import State
from rtmplite.rtmp.server import ServerConnection


class Sink:
    """Writes down what a stream gets."""

    def __init__(self, heard):
        self.heard = heard

    def write(self, type_id, timestamp, payload, now):
        self.heard.append((type_id, timestamp, payload))

    def end(self, now):
        self.heard.append("end")


KEY = b"\x17\x01\0\0\0key"
BACKOFF = ReconnectBackoff(first=0.05, most=0.1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A certificate."""
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(monkeypatch):
    """`serve(port=0, tls=None)`: a running server."""
    monkeypatch.setattr(tcp_connections, "TICK", 0.02)
    stops = []

    def run(port=0, tls=None, flows=False):
        registry, application = Registry(), LiveApplication()
        kind = RtmfpServerConnection if flows else ServerConnection

        def connection(address):
            return kind({"live": application}.get, registry, os.urandom, now())

        if flows:
            server = RtmfpListener("127.0.0.1", port, connection)
        else:
            server = RtmpListener("127.0.0.1", port, connection, tls=tls)
        server.registry = registry
        server.start()
        scheme = "rtmfp" if flows else "rtmps" if tls else "rtmp"
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


def until(condition, seconds=20.0):
    """Wait for something that happens in other greenlets."""
    with patience(seconds):
        while not condition():
            gevent.sleep(0.005)


def states(server):
    """How the links are."""
    return [str(link.state) for link in server.relays.links]


@pytest.mark.parametrize("scheme", ["rtmp", "rtmps", "rtmfp"])
def test_a_push_arrives(serve, made, scheme):
    """Message for message, with and without TLS, and by RTMFP."""
    tls = server_context(made.file, made.key) if scheme == "rtmps" else None
    far, near = serve(tls=tls, flows=scheme == "rtmfp"), serve()
    trust = client_context(made.file)
    serve.relay(near, tls=trust, push=f"live/*={far.url}/{{name}}")
    source = RtmpClient.connect(near.url).create_stream()
    source.publish("demo")
    target = Target.parse(far.url, stream=False)
    viewer = connect(target, timeout=20, tls=trust).create_stream()
    viewer.play("demo")
    assert b"|RtmpSampleAccess" in viewer.read().payload
    until(lambda: states(near) == ["running"])
    size = 20 if scheme == "rtmfp" else 2000  # there key frames make older ones useless
    sent = [(9, time, KEY + bytes(time * size)) for time in range(50)]
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


def test_by_rtmfp_the_end_comes_after_the_last_message(serve):
    """And what publishers wrap metadata in is put around them again."""
    far, near = serve(flows=True), serve()
    serve.relay(near, push=f"live/*={far.url}/{{name}}")
    heard = []
    far.registry.on_begin.append(lambda live, moment: live.tap(Sink(heard)))
    source = RtmpClient.connect(near.url).create_stream()
    source.publish("demo")
    until(lambda: states(near) == ["running"])
    metadata = amf0.encode("onMetaData", {"width": 320.0})
    source.write(18, 0, amf0.encode("@setDataFrame") + metadata)
    source.write(9, 0, KEY + bytes(100_000))
    source.write(8, 5, b"\xb2sound")
    source.delete()
    until(lambda: heard and heard[-1] == "end")
    assert sorted(heard[:-1]) == [
        (8, 5, b"\xb2sound"),
        (9, 0, KEY + bytes(100_000)),
        (18, 0, metadata),
    ]


def test_nothing_is_left_of_who_goes_by_rtmfp(serve, monkeypatch):
    """Neither of one who played, nor of one who never had an answer, nor of a bad name."""
    monkeypatch.setattr(dialer, "FAREWELL", 0.1)
    far, near = serve(flows=True), serve()
    with plain.socket(plain.AF_INET, plain.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        silent = f"rtmfp://127.0.0.1:{deaf.getsockname()[1]}/live"
        places = [far.url, silent, "rtmfp://no.such.host.invalid/live"]
        made = Dialer()
        rules = [Rule.parse(f"live/*={url}/{{name}}") for url in places]
        near.relays = Relays(near.registry, made.dial, os.urandom, push=rules, backoff=BACKOFF)
        made.start()
        source = RtmpClient.connect(near.url).create_stream()
        source.publish("demo")
        until(lambda: states(near) == ["running", "connecting", "waiting"])
        assert len(made._ports) == 2
        assert far.connections[0].state is State.CONNECTED
        link = near.relays.links[0]  # it has told where it is, for it was told how often to look
        until(lambda: link._session.transport.peer_keepalive is not None)
        source.delete()
        until(lambda: not made._ports)
        until(lambda: not far.connections)
        made.stop()


def test_a_url_too_long_for_a_hello(serve):
    """Is a failure at once, and leaves no port open."""
    near = serve()
    serve.relay(near, push=f"live/*=rtmfp://127.0.0.1:9/live?{'x' * 8000}/{{name}}")
    before = len(os.listdir("/proc/self/fd"))
    source = RtmpClient.connect(near.url).create_stream()
    source.publish("demo")
    until(lambda: near.relays.links and near.relays.links[0].reason)
    assert "discriminator" in near.relays.links[0].reason
    near.relays.stop(now())
    source._client.close()
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_what_a_client_has_named_is_connected_to_at_an_admitted_address_alone(serve):
    """And never by RTMFP, whose datagrams go wherever a name leads."""
    far, near, asked = serve(), serve(), []
    made = serve.relay(near)
    live = near.registry.open("live", "demo")
    live.begin(0.0)

    def admits(host, address, port):
        asked.append((host, address, port))
        return is_listed

    def push(url):
        dial = partial(made.dial_admitted, admits)
        return near.relays.push(live, Target.parse(url), dial, now(), lambda link, now: None)

    is_listed, port = False, far.address[1]
    refused = push(f"{far.url}/one")
    until(lambda: "no address of this host is admitted" in refused.reason)
    assert asked == [("127.0.0.1", "127.0.0.1", port)]
    by_flows = push(f"rtmfp://127.0.0.1:{port}/live/two")
    until(lambda: "RTMPS alone" in by_flows.reason)
    assert len(asked) == 1 and not far.connections
    is_listed = True
    until(lambda: str(refused.state) == "running")
    assert len(far.connections) == 1


def test_a_certificate_that_is_not_trusted(serve, made):
    """Is the reason of the failure."""
    far = serve(tls=server_context(made.file, made.key))
    near = serve()
    serve.relay(near, push=f"live/*={far.url}/x{{name}}")
    source = RtmpClient.connect(near.url).create_stream()
    source.publish("demo")
    until(lambda: near.relays.links and near.relays.links[0].reason)
    assert "certificate is not trusted" in near.relays.links[0].reason


@pytest.mark.parametrize("flows", [False, True])
def test_a_pull_on_demand(serve, flows):
    """From the first player to the last."""
    far, near = serve(flows=flows), serve()
    serve.relay(near, pull=f"live/*={far.url}")
    source = connect(Target.parse(far.url, stream=False), timeout=20).create_stream()
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
    connect, begun, stopped, made = dialer.socket.create_connection, Event(), Event(), []

    def slow(*args):
        begun.set()
        stopped.wait()
        made.append(connect(*args))
        return made[0]

    monkeypatch.setattr(dialer.socket, "create_connection", slow)
    connector = serve.relay(near, push=f"live/*={far.url}/x{{name}}")
    live = near.registry.open("live", "demo")
    live.begin(now())
    begun.wait()
    live.end(now())
    stopped.set()
    until(lambda: made and made[0].closed)
    assert not near.relays.links and not connector.connections
    until(lambda: not far.connections)
