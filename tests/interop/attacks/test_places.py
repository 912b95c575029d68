"""Places for all: who takes many, from one address, leaves the others theirs.

127.0.0.2 plays the attacker's host; whoever is honest comes from 127.0.0.1.
"""

import sys
import time
from contextlib import ExitStack

import pytest
from gevent import socket
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import Gateway
from support.peers.hook_service import EndlessService
from support.peers.process import PATIENCE
from support.sockets import TcpClient, options_request

from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient

THEIRS = "127.0.0.2"


def place(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def crowd(stack, address, count, data=b"", source=THEIRS):
    """Connections of the attacker, as far as they come about."""
    made = []
    for _ in range(count):
        try:
            one = socket.create_connection(address, 2, source_address=(source, 0))
            stack.enter_context(one)
            one.sendall(data)
        except OSError:
            continue
        made.append(one)
    return made


def still_open(connections):
    """How many the gateway has not closed."""
    count = 0
    for each in connections:
        each.settimeout(0.001)
        try:
            count += each.recv(1, socket.MSG_PEEK) != b""
        except TimeoutError:
            count += 1
        except OSError:
            continue
    return count


def http(address, text, source="127.0.0.1"):
    """All that is answered to one request."""
    with socket.create_connection(address, PATIENCE, source_address=(source, 0)) as asking:
        asking.sendall(text)
        return b"".join(iter(lambda: asking.recv(65536), b""))


def phone(address):
    """Whether somebody honest is served by SIP over TCP."""
    return TcpClient(address, "127.0.0.1").ask(options_request("1", "TCP")).startswith(b"SIP/2.0")


def test_sip_over_tcp_from_one_host(gateway):
    """Silent connections, then some that talk: a share of the places, and no more."""
    server = gateway()
    sip = place(server.sip)
    with ExitStack() as stack:
        silent = crowd(stack, sip, 300)
        server.wait_until(lambda: still_open(silent) <= 70, what="the silent to give way")
        assert phone(sip)
        talking = [options_request(str(number), "TCP") for number in range(300)]
        opened = [crowd(stack, sip, 1, each) for each in talking]
        few = lambda: sum(map(still_open, opened)) <= 250  # noqa: E731
        server.wait_until(few, what="the share to be kept to")
        assert phone(sip) and server.status()["sip_connections"] <= 252
    server.wait_status({"sip_connections": 0})


def test_heads_without_end_from_one_host(gateway):
    """`/status` answers meanwhile, to that host as well."""
    server = gateway()
    web = place(server.listeners["http"])
    with ExitStack() as stack:
        slow = crowd(stack, web, 300, b"GET /status HTTP/1.1\r\nHo")
        for source in ("127.0.0.1", THEIRS):
            answer = http(web, b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n", source)
            assert answer.startswith(b"HTTP/1.1 200")
        assert still_open(slow) <= 64
    assert "Traceback" not in server.output


def test_tunnels_opened_by_one_host(gateway):
    """RTMPT: a hundred openings leave a few tunnels, and another host has room."""
    server = gateway("--rtmpt", "127.0.0.1:0")
    web = place(server.listeners["rtmpt"])
    asked = b"POST /open/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n\0"
    with socket.create_connection(web, PATIENCE, source_address=(THEIRS, 0)) as opening:
        answers = opening.makefile("rb")
        for _ in range(100):
            opening.sendall(asked)
            assert answers.readline().startswith(b"HTTP/1.1 200")
            while answers.readline().strip():
                pass
            answers.readline()
        assert server.status()["rtmp_connections"] <= 16
        answer = http(web, asked.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert answer.startswith(b"HTTP/1.1 200")


def test_a_service_whose_answer_has_no_end(gateway):
    """It denies, in time, and what it says is not read to the end."""
    with EndlessService() as service:
        server = gateway("--on-play", service.url)
        player = RtmpClient.connect(server.url("live"))
        with pytest.raises(RemoteError):
            player.create_stream().play("demo", timeout=PATIENCE)
        assert service.sent and server.status()["players"] == 0
        player.close()
    assert "an answer without end" in server.output and "Traceback" not in server.output


class Poor(Gateway):
    """A gateway that may have few descriptors."""

    def __init__(self, folder, *options):
        limited = ("prlimit", "--nofile=160:160", sys.executable, "-m", "siprtmp")
        super().__init__(folder, *options, program=limited)


def test_without_descriptors_the_last_are_for_the_operator(start):
    """Each listener refuses in a line, and `/status` answers; then all is as before."""
    server, began = start(Poor, "--rtmpt", "127.0.0.1:0"), time.monotonic()
    listeners = [place(server.listeners[name]) for name in ("rtmp", "sip", "rtmpt")]

    def is_full():
        """With all that the attackers can open; the silent have ten seconds, and come again."""
        with ExitStack() as stack:
            for number in range(5, 9):
                for address in listeners:
                    crowd(stack, address, 40, source=f"127.0.0.{number}")
            crowd(stack, place(server.listeners["http"]), 100, b"GET ", source="127.0.0.9")
            return server.status()["rtmp_connections"] > 10

    server.wait_until(is_full, what="more than a few connections")
    assert "Traceback" not in server.output
    minutes = 1 + (time.monotonic() - began) // 60  # each has a line
    assert 1 <= server.output.count("cannot accept: ") <= 5 * minutes
    server.wait_status({"rtmp_connections": 0, "sip_connections": 0})
    assert phone(place(server.sip))


def test_status_is_for_users_and_for_names_of_ours(gateway, tmp_path):
    """DNS rebinding leads nowhere; off loopback a password is asked for, of a proxy too."""
    server = gateway()
    web = place(server.listeners["http"])
    evil = http(web, b"GET /status HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n")
    assert evil.startswith(b"HTTP/1.1 421") and b"calls" not in evil
    options = ("--http", "0.0.0.0:0", "--users", users_file(tmp_path, "alice"))
    open_to_all = place(gateway(*options).listeners["http"])
    web = "127.0.0.1", open_to_all[1]
    asked = "GET /status{} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert http(web, asked.format("").encode()).startswith(b"HTTP/1.1 401")
    known = http(web, asked.format(f"?user=alice&pass={PASSWORD}").encode())
    assert known.startswith(b"HTTP/1.1 200") and b"calls" in known
