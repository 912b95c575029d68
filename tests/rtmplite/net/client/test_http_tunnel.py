"""Clients of RTMPT with real sockets, against our own listener and against odd ones."""

import gevent
import pytest
from gevent import socket
from gevent.pywsgi import WSGIServer
from support.rtmp.tunnels import tunnel_server
from support.sockets import until

from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.rtmp.application import LiveApplication

SOUND = b"\xb2sound"


@pytest.fixture
def server():
    with tunnel_server(LiveApplication()) as made:
        yield made


def url(server):
    return "rtmpt://{}:{}/live".format(*server.address)


def test_one_plays_what_another_publishes_and_both_say_goodbye(server):
    """More than one request carries is cut.  Covers Field §"HTTP tunnel"."""
    large = b"\x17\1\0\0\0" + bytes(300_000)
    with RtmpClient.connect(url(server)) as player, RtmpClient.connect(url(server)) as source:
        shown = player.create_stream()
        shown.play("demo")
        stream = source.create_stream()
        stream.publish("demo")
        stream.write(8, 0, SOUND)
        stream.write(9, 40, large)
        found = []
        while len(found) < 2:
            message = shown.read()
            found += [(message.type_id, message.payload)] if message.type_id in (8, 9) else []
        assert found == [(8, SOUND), (9, large)]
        assert len(server.connections) == 2
    assert not server.connections


def test_a_server_that_closes_each_connection_is_asked_by_new_ones(server):
    """As one without keep-alive, or behind a proxy."""
    asked = []

    def once(environ, start):
        asked.append(environ["REMOTE_PORT"])
        found = []

        def begin(status, headers):
            found.extend([status, [*headers, ("Connection", "close")]])

        body = server.answer(environ, begin)
        start(*found)
        return body

    front = WSGIServer(("127.0.0.1", 0), once, log=None)
    front.start()
    try:
        with RtmpClient.connect(f"rtmpt://127.0.0.1:{front.server_port}/live") as client:
            assert client.create_stream().id
    finally:
        front.stop()
    assert len(set(asked)) == len(asked) > 3


@pytest.mark.parametrize("status", ["404 Not Found", "503 Service Unavailable"])
def test_a_server_without_tunnels_refuses_by_its_status(status):
    def answer(environ, start):
        start(status, [])
        return [b"no"]

    front = WSGIServer(("127.0.0.1", 0), answer, log=None)
    front.start()
    try:
        with pytest.raises(RemoteError, match=f"HTTP {status[:3]} instead of a tunnel"):
            RtmpClient.connect(f"rtmpt://127.0.0.1:{front.server_port}/live")
    finally:
        front.stop()


def test_what_speaks_no_http_is_no_server():
    def talk(listening):
        accepted, _ = listening.accept()
        accepted.recv(100)
        accepted.sendall(b"SSH-2.0-OpenSSH\r\n")
        accepted.close()

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        talking = gevent.spawn(talk, listening)
        with pytest.raises(RemoteError, match="no answer by HTTP"):
            RtmpClient.connect(f"rtmpt://127.0.0.1:{listening.getsockname()[1]}/live")
        talking.join()


def test_a_tunnel_that_the_server_forgets_is_the_end_of_the_connection(server):
    with RtmpClient.connect(url(server)) as client:
        server.stop()
        assert until(lambda: client.closed)
        assert client.reason == "closed by the peer"
