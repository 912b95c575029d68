"""RTWebSocket on a real listener: who comes in, who is refused, and what ends a connection."""

import gevent
import pytest
from support.rtmp.flv_world import INTER, KEY, Studio, all_of
from support.rtws import PythonPage
from support.sockets import until
from wsproto import events as ws

from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.http import rtws_port, websocket
from rtmplite.net.http.rtws_port import RtwsPort
from rtmplite.rtmfp.netconnection.messages import FlowSynchronization, encode_message
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtws.frames import Data, FlowOpen
from rtmplite.rtws.server import RtwsServerConnection

SOUND = b"\xb6sound"


def barrier(count):
    return encode_message(4, 0, FlowSynchronization(1, count).message().payload)


class Application(LiveApplication):
    """Fails when a client asks for it."""

    def on_command(self, connection, command, now):
        if command.name == "fail":
            raise ValueError("as asked")
        super().on_command(connection, command, now)


class Hall(Studio):
    """An HTTP server with a port for RTWebSocket."""

    def __init__(self, connection_limit=None, **options):
        self.port = RtwsPort(
            lambda: RtwsServerConnection(
                lambda name: Application(), self.registry, bytes, now(), limits=ConnectionLimits()
            ),
            connection_limit=connection_limit,
            **options,
        )
        super().__init__(neighbours=(self.port,))
        self.pages = []

    def page(self, *headers):
        page = PythonPage(self, headers)
        self.pages.append(page)
        return page

    def close(self):
        for page in self.pages:
            page.socket.close()
        self.port.stop()
        super().close()


@pytest.fixture
def hall():
    made = []

    def make(*args, **options):
        made.append(Hall(*args, **options))
        return made[0]

    yield make
    for each in made:
        each.close()


def test_pages_publish_and_play(hall):
    """One publishes, another plays; a frame that fits no buffer arrives whole."""
    room = hall()
    publisher, player = room.page().connected(), room.page().connected()
    assert [each.tc_url for each in room.port.connections] == ["rtmp://host/live"] * 2
    player.play("demo")
    player.until(lambda: "NetStream.Play.Start" in player.codes())
    stream = publisher.publish("demo")
    publisher.until(lambda: publisher.codes())
    sent = [(9, 0, KEY + bytes(300_000)), (8, 20, SOUND), (9, 40, INTER)]
    for type_id, time, payload in sent:
        publisher.write(type_id, time, stream, payload)
    publisher.run()
    assert player.until(lambda: len(player.media()) == 3)
    assert sorted(player.media()) == sorted(sent)
    publisher.socket.close()
    assert player.until(lambda: "NetStream.Play.UnpublishNotify" in player.codes())
    until(lambda: len(room.port.connections) == 1)


def test_a_request_that_opens_no_socket(hall, monkeypatch):
    room, close = hall(), "Connection: close"
    assert all_of(room.get("/rtws", "GET", close)).startswith(b"HTTP/1.1 400")
    assert all_of(room.get("/rtws", "POST", close)).startswith(b"HTTP/1.1 405")
    assert b"RFC 6455" in all_of(room.get("/rtws", "GET", "Upgrade: websocket", close))
    assert b'"/rtws/"' in all_of(room.get("/rtws/", "GET", close))
    monkeypatch.setattr(websocket, "AVAILABLE", False)
    assert b"siprtmp[web]" in all_of(room.get("/rtws", "GET", close))


def test_the_library_is_served(hall):
    room, close = hall(), "Connection: close"
    head, _, body = all_of(room.get("/rtws.js", "GET", close)).partition(b"\r\n\r\n")
    assert b"text/javascript" in head and b"Access-Control-Allow-Origin: *" in head
    assert b"export class NetConnection" in body and len(body) < 20_480
    head, _, body = all_of(room.get("/rtws.js", "HEAD", close)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and body == b""


def test_who_finds_no_room_is_told(hall):
    limit = ConnectionLimit(1)
    room = hall(limit)
    page = room.page().connected()
    other = room.page()
    assert other.until(lambda: other.refused)
    assert other.refused == 503 and len(limit) == 1
    page.socket.close()
    until(lambda: len(limit) == 0)
    assert room.page().connected().reply(1.0)


def test_where_a_page_counts_as_being(hall):
    """What the edge says of the request, and not the address of the socket."""
    room = hall(host_of=lambda environ: environ["HTTP_ORIGIN"].removeprefix("https://"))
    room.page((b"Origin", b"https://example.com")).connected()
    assert room.port.connections[0].peer_address[0] == "example.com"


def test_who_breaks_the_rules_is_closed(hall):
    """Frames of no flow, texts, and messages beyond the limit; others notice nothing."""
    room = hall()
    calm = room.page().connected()
    for say, code in (
        (ws.BytesMessage(bytes(Data(77, b"x"))), 1000),
        (ws.TextMessage("hello"), 1003),
        (ws.BytesMessage(bytes(rtws_port.MAX_FRAME + 1)), 1009),
    ):
        page = room.page().connected()
        page.socket.sendall(page.web.send(say))
        page.until(lambda page=page: page.code is not None)
        assert page.code == code
    until(lambda: len(room.port.connections) == 1)
    assert calm.call("createStream")


def test_a_failing_application_costs_one_connection(hall, caplog):
    room = hall()
    calm, page = room.page().connected(), room.page().connected()
    page.client.send("fail")
    page.until(lambda: page.code is not None)
    assert "a connection fails" in caplog.text
    until(lambda: len(room.port.connections) == 1)
    assert calm.call("createStream")


def test_memory_is_shared_by_all(hall):
    """A page that has many messages kept at a barrier is closed before it takes too much."""
    room = hall(budget=100_000)
    page = room.page().connected()
    begin = [FlowOpen(9, b"TC\x04\x00", 0), Data(9, barrier(2)), FlowOpen(8, b"TC\x04\x00", 0)]
    for frame in [*begin, *[Data(9, bytes(1300))] * 100]:
        page.say(frame)
    page.until(lambda: page.code is not None)
    until(lambda: not room.port.connections)
    assert room.port.budget.used == 0


def test_everybody_hears_that_it_stops(hall):
    room = hall()
    page = room.page().connected()
    stopping = gevent.spawn(room.port.stop)
    page.until(lambda: page.code is not None)
    assert page.code == 1000 and "NetConnection.Connect.Closed" in page.codes()
    page.socket.close()
    stopping.join()
    assert room.port.connections == []
    late = room.page()
    assert late.until(lambda: late.refused) and late.refused == 400


def test_one_that_reads_nothing_is_given_up(hall):
    """It holds no more than a slow player may, and the others get everything."""
    room = hall()
    idle, publisher, eager = (room.page().connected() for _ in range(3))
    for page in (idle, eager):
        page.play("demo")
        page.until(lambda page=page: "NetStream.Play.Start" in page.codes())
    stream, slow = publisher.publish("demo"), room.port.connections[0]
    held = 0
    for number in range(60):
        publisher.write(9, 40 * number, stream, KEY + bytes(200_000))
        publisher.run()
        assert eager.until(lambda number=number: len(eager.media()) > number)
        held = max(held, slow.transport.queued)
    assert 100_000 < held < 2_000_000
