"""Viewers by HTTP and WebSocket: whole files that never end, and nobody waits for the slow."""

import gevent
import pytest
from gevent import socket
from support.limits import patience
from support.rtmp.flv_world import (
    AVC,
    INTER,
    KEY,
    SOUND,
    Studio,
    admits_all_but,
    all_of,
    status,
    studios,
    web_messages,
    web_socket,
)
from support.sockets import until
from wsproto import ConnectionType, WSConnection
from wsproto import events as ws

from rtmplite.amf import amf0
from rtmplite.flv import file
from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.net import read_budget
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.http import flv_http, flv_viewer, websocket


@pytest.fixture
def studio():
    with studios() as make:
        yield make


def test_a_late_viewer_gets_all_it_needs(studio):
    """Header, metadata, codec header, and then from a key frame on, to the end.

    Covers RFC 9112 §4 [status-line-has-its-space].
    """
    room = studio()
    room.begin()
    client, head = room.watch()
    assert head.startswith("HTTP/1.1 200 OK") and "Content-Type: video/x-flv" in head
    assert "Access-Control-Allow-Origin: *" in head and "Connection: close" in head
    assert room.http.viewers == room.live.players == 1
    for at, data in ((40, INTER), (80, KEY), (120, INTER)):
        room.live.write(9, at, data, now())
    room.live.end(now())
    header, tags = file.read_flv(all_of(client))
    assert [(tag.timestamp, tag.data[:2]) for tag in tags[1:]] == [
        *((0, AVC[:2]), (80, KEY[:2]), (120, INTER[:2]))
    ]
    assert tags[0].tag_type == 18 and (header.has_audio, header.has_video) == (False, True)
    assert room.http.viewers == room.live.players == 0


def test_the_header_promises_what_there_is(studio):
    """Or some players wait for it for ever; both, as long as nothing is known."""
    room = studio()
    room.live.begin(now())
    client, _ = room.watch()
    assert file.FlvHeader.parse(client.recv(13)) == file.FlvHeader(True, True)
    room.live.write(8, 0, SOUND, now())
    client, _ = room.watch()
    assert file.FlvHeader.parse(client.recv(13)) == file.FlvHeader(True, False)
    metadata = amf0.encode("onMetaData", {"audiocodecid": 10.0, "videocodecid": 7.0})
    room.live.write(18, 0, metadata, now())
    client, _ = room.watch()
    assert file.FlvHeader.parse(client.recv(13)) == file.FlvHeader(True, True)
    room.live.write(18, 0, amf0.encode("onMetaData"), now())  # replaces none
    client, _ = room.watch()
    assert file.FlvHeader.parse(client.recv(13)) == file.FlvHeader(True, True)
    room.live.begin(now())
    room.live.write(18, 0, amf0.encode("onMetaData"), now())
    room.live.write(8, 0, SOUND, now())
    client, _ = room.watch()
    assert file.FlvHeader.parse(client.recv(13)) == file.FlvHeader(True, False)


def test_a_web_socket_carries_the_same(studio):
    """A message a tag, a ping answered, a good-bye at the end.

    Covers RFC 6455 §4.1 [upgrade-names-websocket], §5.5.1 [close-has-a-code].
    """
    room = studio()
    room.begin()
    client, connected = web_socket(room)
    assert isinstance(web_messages(client, connected, ws.AcceptConnection)[0], ws.AcceptConnection)
    connected.sendall(client.send(ws.Ping(payload=b"hello")))
    events = web_messages(client, connected, ws.Pong)
    room.live.write(9, 80, KEY, now())
    room.live.end(now())
    events += web_messages(client, connected)
    assert any(isinstance(event, ws.Pong) and event.payload == b"hello" for event in events)
    data = [bytes(event.data) for event in events if isinstance(event, ws.BytesMessage)]
    tags = file.read_flv(b"".join(data))[1]
    assert [tag.timestamp for tag in tags] == [0, 0, 80] and len(data) >= 1
    assert events[-1].code == 1000 and room.http.viewers == 0


@pytest.mark.parametrize("last", [b"close", b"nonsense", b""])
def test_a_web_socket_may_leave(studio, last):
    """Politely, rudely, or by hanging up.

    Covers RFC 6455 §5.5.1 [tcp-is-closed] [server-closes-first].
    """
    room = studio()
    room.begin()
    client, connected = web_socket(room)
    web_messages(client, connected, ws.AcceptConnection)
    words = {b"close": client.send(ws.CloseConnection(code=1000)), b"nonsense": b"\xff" * 10}
    if last:
        connected.sendall(words[last])
        all_of(connected)
    else:
        connected.close()
    assert until(lambda: room.http.viewers == room.live.players == 0)


def test_who_is_no_viewer_is_answered(studio, monkeypatch):
    """404, 405, 503, 400, and what a page asks before it asks.

    Covers RFC 6455 §4.2.2 [no-such-service] [other-versions] [refused-by-http].
    """
    room = studio(max_viewers=1, admits=admits_all_but("token=bad"))
    room.begin()
    assert status(room.get("/live/other.flv")) == 404
    assert status(room.get("/other/demo.flv")) == 200
    assert status(room.get("/live/demo.flv?token=bad")) == 404
    assert status(room.get("/live/demo.flv", "POST", "Content-Length: 0")) == 405
    assert status(room.get("/live/demo.flv", "HEAD")) == 200
    assert status(room.get("/live/demo.flv", "OPTIONS")) == 204
    assert status(room.get("/live/other.flv", "GET", "Upgrade: websocket")) == 404
    upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: " + "A" * 22 + "=="]
    upgrade += ["Sec-WebSocket-Version: 8", "Connection: close"]
    answer = all_of(room.get("/live/demo.flv", "GET", *upgrade))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nSec-WebSocket-Version: 13\r\n" in answer
    assert answer.endswith(b"no proper WebSocket handshake: RFC 6455, version 13.\n")
    assert status(room.get("/live/demo.flv", "GET", "Upgrade: websocket")) == 400
    monkeypatch.setattr(websocket, "AVAILABLE", False)
    answer = all_of(room.get("/live/demo.flv", "GET", *upgrade))
    assert answer.endswith(b"WebSocket needs the extra web here: pip install 'siprtmp[web]'\n")
    assert room.http.viewers == 0
    room.watch()
    assert status(room.get()) == 503
    room.live.end(now())
    assert status(room.get()) == 404


def test_names_may_have_slashes_and_letters(studio):
    """As published, in UTF-8."""
    room = studio()
    live = room.registry.open("live", "räume/eins")
    live.write(8, 0, SOUND, now())
    _, head = room.watch("/live/r%C3%A4ume/eins.flv")
    assert head.startswith("HTTP/1.1 200")


def test_who_does_not_read_is_gone_and_the_others_miss_nothing(studio):
    """By the same limits as a player by RTMP."""
    room = studio(SlowConsumerPolicy(skip=50_000, limit=500_000, seconds=0.2))
    room.begin()
    slow, _ = room.watch()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    fast, _ = room.watch()
    data = []
    reader = gevent.spawn(lambda: data.append(all_of(fast)))
    sent = 0
    while room.http.viewers == 2 and sent < 2000:
        room.live.write(9, sent, KEY + bytes(20_000), now())
        sent += 1
        gevent.sleep(0.001)
    assert room.http.viewers == 1 and sent < 2000
    room.live.end(now())
    reader.join(20)
    assert len(file.read_flv(data[0])[1]) == sent + 2


def test_who_reads_nothing_does_not_stay_for_ever(studio, monkeypatch):
    """When a stream has ended, who does not read what is left is gone after a while."""
    monkeypatch.setattr(flv_viewer, "LINGER", 0.01)
    room = studio(SlowConsumerPolicy(skip=1 << 30, limit=1 << 30, seconds=1000.0))
    room.begin()
    room.watch()
    (viewer,) = room.http._viewers
    while not viewer.output_size:
        room.live.write(9, 40, KEY + bytes(1 << 20), now())
        gevent.sleep(0)
    room.live.end(now())
    assert room.http.viewers == 1
    with patience(20):
        while room.http.viewers:
            gevent.sleep(0.01)


def test_pings_of_who_reads_nothing_are_not_kept(studio):
    """Own design: answers that nobody reads would pile up, for as long as nothing is published."""
    room = studio(SlowConsumerPolicy(skip=1 << 30, limit=1 << 30, seconds=1000.0))
    room.begin()
    web = WSConnection(ConnectionType.CLIENT)
    client = room.connect(web.send(ws.Request(host="x", target="/live/demo.flv")).decode())
    client.recv(100)
    (viewer,) = room.http._viewers
    while not viewer.output_size:
        room.live.write(9, 40, KEY + bytes(1 << 20), now())
        gevent.sleep(0)
    size = viewer.output_size
    ping = bytes.fromhex("898400000000") + b"ping"
    for _ in range(10):
        client.sendall(ping * 10)
        viewer._on_readable()
    assert viewer.output_size <= size


def test_viewers_share_the_time_of_a_turn(studio, monkeypatch):
    """Own design: pings are free, and sound on other sockets waits while they are answered."""
    for module in (flv_viewer, read_budget):
        monkeypatch.setattr(module, "SLICE", 0.0)  # every read takes longer
    room = studio()
    room.begin()
    viewers = [web_socket(room) for _ in range(5)]
    for viewer in viewers:
        web_messages(*viewer, until=ws.BytesMessage)
    reads, read = [], flv_viewer.FlvViewer._read

    def noted(viewer):
        reads.append(gevent.get_hub().loop.now())
        read(viewer)

    monkeypatch.setattr(flv_viewer.FlvViewer, "_read", noted)
    for client, connected in viewers:
        connected.sendall(client.send(ws.Ping()))
    for client, connected in viewers:
        web_messages(client, connected, until=ws.Pong)
    assert max(map(reads.count, reads)) <= 2


def test_viewers_are_counted_with_all_others(studio):
    """One address has no more of them than it may have connections; who leaves makes room."""
    connection_limit = ConnectionLimit(10, 2)
    room = studio(connection_limit=connection_limit)
    room.begin()
    assert connection_limit.admits("127.0.0.1")  # by RTMP
    client, _ = room.watch()
    assert status(room.get()) == 503 and room.http.viewers == 1
    client.close()
    with patience(20):
        while len(connection_limit) > 1:
            gevent.sleep(0.001)
    assert status(room.get()) == 200


def test_one_request_is_one_question(studio):
    """A web service that decides is asked once, also if it denies."""
    asked = []
    room = studio(admits=lambda *question: asked.append(question))
    room.begin()
    assert status(room.get("/live/demo.flv?key=k")) == 404
    assert asked == [("live", "demo", "key=k", "127.0.0.1")]


def test_a_stream_may_end_while_somebody_decides(studio):
    """Then there is nothing to watch, and nobody waits for the next one."""

    def admits(*question):
        room.live.end(now())
        return print

    room = studio(admits=admits)
    room.begin()
    assert status(room.get()) == 404 and room.http.viewers == 0


def test_bytes_are_made_once(studio, monkeypatch):
    """However many watch."""
    room = studio()
    room.begin()
    viewers = [room.watch()[0] for _ in range(5)]
    made = []
    inner = file.framed
    monkeypatch.setattr("rtmplite.flv.framing.framed", lambda tag: made.append(tag) or inner(tag))
    room.live.write(9, 80, KEY, now())
    room.live.end(now())
    assert len({all_of(viewer) for viewer in viewers}) == 1 and len(made) == 1


@pytest.mark.parametrize("is_read", [True, False])
def test_who_never_sends_the_rest_of_a_request_does_not_stay(studio, monkeypatch, capfd, is_read):
    """Own design: neither a place nor the log is anybody's to fill."""
    monkeypatch.setattr(flv_http, "REQUEST_TIMEOUT", 0.1)

    def other(environ, begin):
        begin("200 OK", [("Content-Length", "2")])
        return [environ["wsgi.input"].read(5) if is_read else b"ok"]

    monkeypatch.setattr(Studio, "other", staticmethod(other))
    slow = studio().get("/other", "POST", "Content-Length: 5")
    assert all_of(slow).endswith(b"" if is_read else b"ok")
    assert "Traceback" not in capfd.readouterr().err
