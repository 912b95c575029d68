"""SIP over TCP on real sockets, with limits that come soon, and clients of many hosts."""

import os
import socket as plain

from support.sockets import LOOPBACK, TcpClient, options_request

from p2psip.net import tcp

OTHER = "127.0.0.2"  # another host, as far as addresses tell


def hurry(monkeypatch, **seconds):
    """Let limits of the module come sooner; an element made afterwards keeps to them."""
    for name, value in {"SWEEP_SECONDS": 0.01, **seconds}.items():
        monkeypatch.setattr(tcp, name, value)


def clock(monkeypatch):
    """The time of the module, as a list of one number; an element made afterwards looks often."""
    hurry(monkeypatch)
    now = [1000.0]
    monkeypatch.setattr(tcp, "monotonic", lambda: now[0])
    return now


def request(branch=None):
    return options_request(branch or os.urandom(4).hex(), "TCP")


def works(echo):
    """Whether somebody with good manners is served."""
    return TcpClient(echo.address).ask(request()).startswith(b"SIP/2.0 200")


def closed(client):
    """Whether the other side closes in time."""
    try:
        return client.read() == b""
    except ConnectionError:
        return True


def server():
    bound = plain.socket()
    bound.bind((LOOPBACK, 0))
    bound.listen()
    bound.setblocking(False)
    return bound


def greeted(echo, source=LOOPBACK):
    """A client that has said something."""
    client = TcpClient(echo.address, source)
    assert client.ask(request()).startswith(b"SIP/2.0 200")
    return client
