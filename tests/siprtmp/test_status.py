"""The status page, to the impatient and the rude."""

import gevent
import pytest
from gevent import socket

from rtmplite.net import flv_http
from rtmplite.net.flv_http import FlvHttp
from rtmplite.streams import Registry
from siprtmp.status import FRESH, Seldom, StatusServer


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(flv_http, "REQUEST_TIMEOUT", 0.3)
    monkeypatch.setattr(flv_http, "MAX_CLIENTS", 8)
    server = StatusServer(("127.0.0.1", 0), lambda: {"calls": 0}, FlvHttp(Registry()))
    yield server
    server.stop()


def talk(server, data):
    """All that is answered to `data`, until the server hangs up."""
    with socket.create_connection(server.address, 2) as client:
        client.sendall(data)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer


@pytest.mark.parametrize(
    ("line", "status_line"),
    [
        (b"GET /status", b"200 OK"),
        (b"HEAD /status", b"200 OK"),
        (b"GET /", b"404 Not Found"),
        (b"POST /status", b"405 Method Not Allowed"),
    ],
)
def test_there_is_one_page(server, line, status_line):
    answer = talk(server, line + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status_line)
    assert (b'{\n "calls": 0\n}' in answer) == (line == b"GET /status")


def test_who_is_slow_is_hung_up_on_and_a_crowd_of_them_blocks_nobody(server):
    """More slow clients than are served at a time, and one who only wants to know."""
    crowd = [socket.create_connection(server.address, 2) for _ in range(flv_http.MAX_CLIENTS + 9)]
    for client in crowd:
        client.sendall(b"GET /status HTTP/1.1\r\nHo")
    assert talk(server, b"GET /status HTTP/1.1\r\nHost: a\r\n\r\n")
    gevent.sleep(0.4)
    for client in crowd:
        assert client.recv(1) == b""
        client.close()


def test_who_never_reads_is_hung_up_on_too(server, capfd):
    with socket.create_connection(server.address, 2) as client, pytest.raises(OSError):
        for _ in range(100):
            client.sendall(b"GET /status HTTP/1.1\r\nHost: a\r\n\r\n" * 10_000)
    assert "Traceback" not in capfd.readouterr().err


def test_figures_asked_for_too_often_are_those_of_a_moment_ago():
    """Own design: a flood of questions costs no more than `FRESH` of them a second."""
    times, made = [0.0], []

    def figures():
        made.append(times[0])
        return {"made": len(made)}

    seldom = Seldom(figures, lambda: times[0])
    for _ in range(1000):
        times[0] += 0.001
        assert seldom()["made"] == len(made)
    assert FRESH <= len(made) <= 2 * FRESH
    times[0] += 1.0
    assert seldom()["made"] == len(made) and made[-1] == times[0]
