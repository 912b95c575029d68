"""The status page, to the impatient and the rude."""

from base64 import b64encode

import pytest
from gevent import socket
from hypothesis import given
from hypothesis import strategies as st

from p2psip.server.guess_limit import BURST
from rtmplite.auth.credentials import Users, user_lines
from rtmplite.live.streams import Registry
from rtmplite.net.http import flv_http
from rtmplite.net.http.flv_http import FlvHttp
from siprtmp.calls.access.admission import Admission, Admitted
from siprtmp.edge import status
from siprtmp.edge.status import FRESH, CachedFigures, StatusServer
from siprtmp.edge.web.status_access import StatusAccess
from siprtmp.operation.logs import Log

USERS = Users.parse("\n".join(user_lines("ann", "example.org", "se:cret")))


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(flv_http, "REQUEST_TIMEOUT", 3.0)  # in which all others are answered
    monkeypatch.setattr(flv_http, "MAX_CLIENTS", 8)
    names, admission = ["gw.example", "Status.Example."], Admission(False, None, None)
    door = StatusAccess(names, is_open=True, admission=admission)
    live = FlvHttp(Registry())
    figures, log = lambda: {"calls": 0}, Log("siprtmp")
    server = StatusServer(("127.0.0.1", 0), figures, live, door, log, lambda: "siprtmp_calls 0\n")
    yield server
    server.stop()


@pytest.fixture
def door(server, monkeypatch):
    """The door of a listener that others can reach, with one user."""
    monkeypatch.setattr(status, "WRONG_SECONDS", 0.01)
    door = server._access
    door.is_open, door.admission = False, Admission(False, None, USERS)
    return door


def talk(server, data):
    """All that is answered to `data`, until the server hangs up."""
    with socket.create_connection(server.address, 20) as client:
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
        (b"GET /metrics", b"200 OK"),
        (b"HEAD /metrics", b"200 OK"),
        (b"POST /metrics", b"405 Method Not Allowed"),
    ],
)
def test_there_is_one_page(server, line, status_line):
    answer = talk(server, line + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status_line)
    assert (b'{\n "calls": 0\n}' in answer) == (line == b"GET /status")
    assert (b"\r\n\r\nsiprtmp_calls 0\n" in answer) == (line == b"GET /metrics")
    assert (b"version=0.0.4" in answer) == (line.endswith(b"/metrics") and b"POST" not in line)


def test_another_page_is_answered_with_those_there_are(server):
    answer = talk(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"/status" in answer and b"/live/NAME.flv" in answer


def test_who_is_slow_is_hung_up_on_and_a_crowd_of_them_blocks_nobody(server):
    """More slow clients than are served at a time, and one who only wants to know."""
    crowd = [socket.create_connection(server.address, 20) for _ in range(flv_http.MAX_CLIENTS + 9)]
    for client in crowd:
        client.sendall(b"GET /status HTTP/1.1\r\nHo")
    assert talk(server, b"GET /status HTTP/1.1\r\nHost: a\r\n\r\n")
    for client in crowd:
        assert client.recv(1) == b""
        client.close()


def test_who_never_reads_is_hung_up_on_too(server, capfd):
    with socket.create_connection(server.address, 20) as client, pytest.raises(OSError):
        for _ in range(100):
            client.sendall(b"GET /status HTTP/1.1\r\nHost: a\r\n\r\n" * 10_000)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1:8080", True),
        ("192.0.2.1", True),
        ("[::1]:8080", True),
        ("[::1]", True),
        ("localhost:1", True),
        ("LocalHost", True),
        ("GW.example:8080", True),
        ("status.example", True),
        ("gw.example.evil.example", False),
        ("evil.example:8080", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("a", False),
        ("[::1", False),
        (":80", False),
        ("127.0.0.1, evil.example", False),
    ],
)
def test_only_a_name_of_ours_is_answered(server, host, is_ours):
    """Own design: a page of a stranger's names its own host, wherever that name leads to."""
    answer = talk(server, f"GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    wanted = b"HTTP/1.1 200 OK" if is_ours else b"HTTP/1.1 421 Misdirected Request"
    wanted = b"HTTP/1.1 400 Bad Request" if "," in host else wanted  # two names are none
    assert answer.startswith(wanted) and (b"calls" in answer) == is_ours


def test_who_says_no_name_is_no_browser(server):
    assert talk(server, b"GET /status HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


def basic(text):
    return f"Authorization: Basic {b64encode(text.encode()).decode()}\r\n"


@pytest.mark.parametrize(
    ("query", "header", "status_line"),
    [
        ("", "", "401 Unauthorized"),
        ("", basic("ann:se:cret"), "200 OK"),
        ("", basic("ann:secret"), "401 Unauthorized"),
        ("", basic("bob:se:cret"), "401 Unauthorized"),
        ("", basic("ann:"), "401 Unauthorized"),
        ("", "Authorization: Basic !!!\r\n", "401 Unauthorized"),
        ("", "Authorization: Basic " + "A" * 5000 + "\r\n", "401 Unauthorized"),
        ("", "Authorization: Digest x\r\n", "401 Unauthorized"),
        ("?user=ann&pass=se:cret", "", "200 OK"),
        ("?user=ann&pass=secret", "", "401 Unauthorized"),
    ],
)
def test_off_loopback_it_is_for_users(server, door, query, header, status_line, caplog):
    """Own design: and who asks from this machine may be a proxy."""
    caplog.set_level("INFO")
    lines = f"GET /status{query} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"
    answer = talk(server, lines.encode()).decode()
    assert answer.startswith(f"HTTP/1.1 {status_line}") and ("calls" in answer) == (
        "200" in status_line
    )
    assert ("WWW-Authenticate: Basic" in answer) == status_line.startswith("401")
    tried = status_line.startswith("401") and bool(query or header)
    assert ("Wrong user or password." in answer) == tried
    assert ("User and password, please." in answer) == (status_line[:3] == "401" and not tried)
    assert ("login-refused" in caplog.messages) == tried
    assert "se:cret" not in caplog.text


def test_who_guesses_has_to_wait(server, door, caplog):
    """Own design: then even the right password is not looked at, and no line is written."""
    caplog.set_level("INFO")

    def ask(password):
        lines = f"GET /status HTTP/1.1\r\nHost: localhost\r\n{basic(f'ann:{password}')}\r\n"
        return talk(server, lines.encode()).decode().split("\r\n")[0][9:12]

    assert [ask(number) for number in range(BURST)] == ["401"] * BURST
    assert ask("se:cret") == ask("guess") == "503"
    refused = [record for record in caplog.records if record.message == "login-refused"]
    assert len(refused) == BURST
    assert all(next(iter(record.values)) == "source" for record in refused)  # for fail2ban


def test_without_users_it_is_for_nobody_off_loopback(server, door):
    door.admission.renew(None, None)
    answer = talk(server, b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403") and b"users only" in answer


@given(st.text(), st.text())
def test_whatever_is_said_is_judged(host, proof):
    """Own design: nothing but yes or no."""
    door = StatusAccess([], is_open=False, admission=Admission(False, None, USERS))
    said = {"HTTP_HOST": host, "HTTP_AUTHORIZATION": f"Basic {proof}", "QUERY_STRING": proof}
    said["REMOTE_ADDR"] = "192.0.2.1"
    assert door.is_ours(said) in (True, False) and door.judge(said, 0.0) is not Admitted.YES


def test_figures_asked_for_too_often_are_those_of_a_moment_ago():
    """Own design: a flood of questions costs no more than `FRESH` of them a second."""
    times, made = [0.0], []

    def figures():
        made.append(times[0])
        return {"made": len(made)}

    seldom = CachedFigures(figures, lambda: times[0])
    for _ in range(1000):
        times[0] += 0.001
        assert seldom()["made"] == len(made)
    assert FRESH <= len(made) <= 2 * FRESH
    times[0] += 1.0
    assert seldom()["made"] == len(made) and made[-1] == times[0]
