"""The listener with real sockets: batching, slow peers, garbage, limits and a proper end."""

import os
import socket as plain
import struct

import gevent
import pytest
from gevent import socket
from support.limits import patience
from support.pump.built import built

from rtmplite.errors import RemoteError
from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.live.streams import Registry
from rtmplite.net import pipe, tcp_connections
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.connection import ConnectionLimits
from rtmplite.rtmp.server import ServerConnection

KEY = b"\x17\x01\0\0\0key"
SOUND = b"\xb2sound"


class Live(LiveApplication):
    """`live` that can be asked to break, or to read no further."""

    def on_command(self, connection, command, now):
        if command.name == "crash":
            raise ZeroDivisionError("on demand")
        if command.name == "pause":
            connection.pause_reading()
            return
        connection.result(command.transaction_id, command.name)


@pytest.fixture(params=["python", pytest.param("compiled", marks=pytest.mark.needs("gcc"))])
def serve(request, monkeypatch):
    """`serve(**options)`: a running server, its output in Python or C; `url` is its application."""
    servers = []
    module = pipe if request.param == "python" else built("_pipe", "rtmplite.net")
    monkeypatch.setattr(tcp_connections, "Pipe", module.Pipe)
    monkeypatch.setattr(tcp_connections, "flush", module.flush)

    def run(policy=None, limits=None, **options):
        registry, application = Registry(policy or SlowConsumerPolicy()), Live()

        def connection(address):
            return ServerConnection(
                lambda name: application,
                registry,
                os.urandom,
                now(),
                limits=limits or ConnectionLimits(),
            )

        server = RtmpListener("127.0.0.1", 0, connection, **options)
        server.registry = registry
        server.start()
        servers.append(server)
        server.url = "rtmp://{}:{}/live".format(*server.address)
        return server

    yield run
    for server in servers:
        server.stop()


def until(condition, seconds=20.0):
    """Wait for something that happens in other greenlets."""
    with patience(seconds):
        while not condition():
            gevent.sleep(0.005)


def publisher(server, name="demo"):
    """A stream that is published."""
    stream = RtmpClient.connect(server.url).create_stream()
    stream.publish(name)
    return stream


def player(server, name="demo"):
    """A stream that is played."""
    stream = RtmpClient.connect(server.url).create_stream()
    stream.play(name)
    assert b"|RtmpSampleAccess" in stream.read().payload
    return stream


def raw(server):
    """A socket, and nothing more."""
    return socket.create_connection(server.address, timeout=20)


@pytest.mark.parametrize("merge_ms", [0, 20])
def test_what_is_published_is_played_by_all(serve, merge_ms):
    """In order and complete, with and without a merge window."""
    server = serve(merge_ms=merge_ms)
    players, source = [player(server) for _ in range(5)], publisher(server)
    sent = [(8 + i % 2, 10 * i, KEY + bytes(i * 100)) for i in range(100)]
    for message in sent:
        source.write(*message)
    for each in players:
        got = [each.read() for _ in sent]
        assert [(m.type_id, m.timestamp, m.payload) for m in got] == sent


def test_one_turn_is_one_system_call_per_player(serve, monkeypatch):
    """Everything for one peer leaves together."""
    server = serve()
    listener, source = player(server), publisher(server)
    peer = next(iter(server._peers))
    calls = []
    send = peer._send
    monkeypatch.setattr(peer, "_send", lambda output: (calls.append(len(output)), send(output)))
    for time in range(10):
        source._machine.send_media(8, time, source.id, SOUND)
    source._client.flush()  # ten messages in one segment
    assert [listener.read().timestamp for _ in range(10)] == list(range(10))
    assert sum(calls) == 10 and len(calls) <= 2


def test_a_merge_window_makes_fewer_and_larger_ones(serve, monkeypatch):
    """Every window, not only the first; and nothing waits much longer than that."""
    server = serve(merge_ms=50)
    listener, source = player(server), publisher(server)
    peer = next(iter(server._peers))
    calls, began = [], now()
    send = peer._send
    monkeypatch.setattr(peer, "_send", lambda output: (calls.append(len(output)), send(output)))
    for time in range(40):
        source.write(8, time, SOUND)
        gevent.sleep(0.005)
    taken = now() - began
    assert [listener.read().timestamp for _ in range(40)] == list(range(40))
    assert sum(calls) >= 38 and len(calls) <= taken / 0.05 + 2


def test_answers_do_not_wait_for_the_merge_window(serve):
    """A window of an hour holds back what is published, and no handshake, result or status."""
    server = serve(merge_ms=3_600_000)
    listener, source = player(server), publisher(server)
    source.write(8, 0, SOUND)
    source.write(8, 20, SOUND)
    waits = next(iter(server._peers)).transport.output
    until(lambda: b"".join(waits).count(SOUND) == 2)
    assert listener._client.call("any") == "any"
    assert [listener.read().timestamp for _ in range(2)] == [0, 20]  # in order, before the answer


def test_every_socket_sends_at_once(serve):
    """Nagle's algorithm would hold small messages back."""
    server = serve()
    player(server)
    for peer in server._peers:
        assert peer._socket.getsockopt(plain.IPPROTO_TCP, plain.TCP_NODELAY)


@pytest.mark.parametrize(
    "garbage",
    [
        os.urandom(4000),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x03" + bytes(700),
        b"\x03" + bytes(2 * 1536) + os.urandom(300),
        b"\x03" + bytes(2 * 1536) + bytes.fromhex("03000000ffffff1400000000") + b"half a chunk",
        b"",
    ],
)
def test_garbage_disturbs_nobody(serve, garbage):
    """Random bytes, another protocol, truncated handshakes, half a chunk."""
    server = serve()
    listener, source = player(server), publisher(server)
    intruders = [raw(server) for _ in range(3)]
    for time, intruder in enumerate(intruders):
        intruder.sendall(garbage)
        source.write(8, time, SOUND)
        assert listener.read().timestamp == time
    intruders[0].setsockopt(plain.SOL_SOCKET, plain.SO_LINGER, struct.pack("ii", 1, 0))  # RST
    for intruder in intruders:
        intruder.close()
    until(lambda: len(server.connections) == 2)
    source.write(8, 99, SOUND)
    assert listener.read().timestamp == 99


def test_a_player_that_stops_reading_is_closed_and_the_others_miss_nothing(serve):
    """Skipped first, closed in the end; the publisher does not notice either."""
    server = serve(SlowConsumerPolicy(skip=200_000, limit=1_000_000, seconds=0.3))
    fast, source, slow = player(server), publisher(server), player(server)
    slow._client._greenlet.kill()  # reads no more
    sent, frame = 0, KEY + bytes(100_000)
    with patience(20):
        while len(server.connections) == 3:
            source.write(9, sent, frame)
            assert fast.read().timestamp == sent
            sent += 1
    assert server.registry.get("live", "demo").players == 1
    source.write(9, sent, frame)
    assert fast.read().timestamp == sent


def test_a_slow_player_that_catches_up_goes_on_at_a_key_frame(serve):
    """Whole messages only, in order, however the socket cut them."""
    server = serve(SlowConsumerPolicy(skip=100_000, limit=50_000_000, seconds=60.0))
    source, slow = publisher(server), player(server)
    connection = slow._client._socket
    slow._client._greenlet.kill()
    for time in range(300):
        source.write(9, time, (KEY if time % 10 == 0 else b"\x27\x01\0\0\0") + bytes(50_000))
    until(lambda: any(peer.transport.output_size for peer in server._peers))
    slow._client._greenlet = gevent.spawn(slow._client._run)
    until(lambda: not any(peer.transport.output_size for peer in server._peers))
    source.write(9, 300, KEY)
    times = []
    while (message := slow.read(20.0)) and message.timestamp != 300:
        times.append(message.timestamp)
        assert len(message.payload) > 50_000
    assert times == sorted(set(times)) and len(times) < 300
    assert connection.fileno() >= 0


def test_a_bug_costs_one_connection(serve, caplog):
    """And is in the log."""
    server = serve()
    other, victim = RtmpClient.connect(server.url), RtmpClient.connect(server.url)
    with pytest.raises(RemoteError):
        victim.call("crash")
    assert "ZeroDivisionError" in caplog.text
    assert other.call("still here") == "still here"
    assert len(server.connections) == 1


def test_paused_input_comes_later(serve):
    """Back-pressure: the socket is not read, and nothing is lost."""
    server = serve()
    client = RtmpClient.connect(server.url)
    client.send("pause")
    [peer] = server._peers
    until(lambda: not peer.transport.reading)
    waiting = gevent.spawn(client.call, "later")
    socket.wait_read(peer._socket.fileno(), 20)  # where it stays
    assert not waiting.ready()
    server.connections[0].resume_reading()
    assert waiting.get(timeout=20) == "later"


def test_last_words_arrive_even_if_nobody_listened(serve):
    """A refusal is read before the connection ends, not lost in a reset."""
    server = serve()
    client = raw(server)
    client.sendall(b"\x03" + bytes(2 * 1536))
    client.recv(5000)
    connection = server.connections[0]
    client.sendall(bytes(100_000))  # it will be refused with much of this unread
    connection.transport.output.append(b"last words")
    connection.close(now())
    words = b""
    while data := client.recv(5000):
        words += data
    assert words.endswith(b"last words")
    client.close()
    until(lambda: not server.connections)


def test_idle_sockets_go(serve, monkeypatch):
    """Those that never get to the point, and those that never close their side."""
    monkeypatch.setattr(tcp_connections, "TICK", 0.02)
    monkeypatch.setattr(tcp_connections, "LINGER", 0.05)
    server = serve(limits=ConnectionLimits(setup=0.05))
    with raw(server) as client:
        assert client.recv(10) == b""
    until(lambda: not server.connections)
    server = serve()
    stubborn = RtmpClient.connect(server.url)
    server.connections[0].close(now())
    stubborn._greenlet.kill()
    until(lambda: not server.connections)


def test_who_is_ended_and_takes_nothing_more_goes(serve, monkeypatch):
    """A dead peer has no room for what is queued, and the system would wait for it for long."""
    monkeypatch.setattr(tcp_connections, "TICK", 0.02)
    monkeypatch.setattr(tcp_connections, "DRAIN", 0.1)
    server = serve(SlowConsumerPolicy(skip=1 << 30, limit=1 << 30))
    dead = player(server)
    dead._client._greenlet.kill()  # reads no more
    live, (connection,) = server.registry.get("live", "demo"), server.connections
    live.begin(now())
    while not connection.output_size:
        live.write(9, 0, KEY + bytes(100_000), now())
        gevent.sleep(0)
    connection.close(now())
    until(lambda: not server.connections)


def test_too_many_are_hung_up_on(serve):
    """The limit protects those who are in."""
    server = serve(connection_limit=ConnectionLimit(most=1))
    first = RtmpClient.connect(server.url)
    second = raw(server)
    assert second.recv(10) == b""
    assert first.call("still here") == "still here"


def test_one_address_has_its_share(serve):
    """And gets another place when it gives one back."""
    server = serve(connection_limit=ConnectionLimit(most_of_one=2))
    first, _second, third = RtmpClient.connect(server.url), raw(server), raw(server)
    assert third.recv(10) == b""
    first.close()
    until(lambda: len(server.connections) == 1)
    assert RtmpClient.connect(server.url).call("in") == "in"


def test_out_of_descriptors_is_not_the_end(serve, monkeypatch):
    """Accepting stops for a tick instead of spinning."""
    monkeypatch.setattr(tcp_connections, "TICK", 0.02)
    server = serve()

    class Full:
        def accept(self):
            raise OSError(24, "Too many open files")

    listener, server._listener = server._listener, Full()
    client = raw_later(listener)
    until(lambda: not server._accepting)
    server._listener = listener
    until(lambda: server.connections)
    client.close()


def raw_later(listener):
    """A socket connected to a listener that does not accept yet."""
    return socket.create_connection(listener.getsockname(), timeout=20)


def test_stopping_tells_everybody(serve):
    """NetConnection.Connect.Closed, then the end; a second time is harmless."""
    server = serve()
    heard = []
    client = RtmpClient.connect(server.url, on_call=lambda name, args: heard.append(args))
    server.stop()
    server.stop()
    until(lambda: client.closed)
    assert heard[0][0]["code"] == "NetConnection.Connect.Closed"
    with pytest.raises(OSError):
        RtmpClient.connect(server.url)


def test_a_busy_port_is_an_error(serve):
    """And not a second listener."""
    port = serve().address[1]
    with pytest.raises(OSError):
        RtmpListener("127.0.0.1", port, lambda address: None).start()
