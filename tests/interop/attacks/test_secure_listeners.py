"""The listeners for TLS and WebSocket among clients that never finish what they begin.

127.0.0.2 plays the attacker's host, as in `test_places`.
"""

from contextlib import ExitStack

import pytest
from gevent import socket
from support.certificates import certificate
from support.sockets import LOOPBACK, TcpClient, options_request
from wsproto.connection import ConnectionType
from wsproto.frame_protocol import FrameProtocol, Opcode

from p2psip.net.tls import Tls, client_context

THEIRS = "127.0.0.2"
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: sip\r\n\r\n"
)
KINDS = ("a giant frame", "fragments", "empty fragments")
HELLO = Tls(client_context(insecure=True), "localhost").take_output()
HALVES = {
    "sips": {"nothing": b"", "half a hello": HELLO[:90], "a hello": HELLO, "no TLS": b"x" * 9000},
    "ws": {
        "half a request": HANDSHAKE[:90],
        "a request": HANDSHAKE,
        "a hello": HELLO,
        "a header without end": b"GET / HTTP/1.1\r\nX: " + b"y" * 20_000,
    },
}


@pytest.fixture
def server(gateway, tmp_path):
    made = certificate(tmp_path / "certificate")
    files = ("--tls-cert", str(made.file), "--tls-key", str(made.key))
    return gateway("--sips", "127.0.0.1:0", "--ws", "127.0.0.1:0", *files)


def place(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def is_served(server):
    """Whether an honest client is answered, by TLS and by TCP."""
    plain = TcpClient(place(server.sip)).ask(options_request(transport="TCP"), 20)
    with socket.create_connection(place(server.sips), 20) as secure:
        tls, heard = Tls(client_context(insecure=True), "localhost"), b""
        tls.send(options_request("2", "TLS"))
        while not heard:
            secure.sendall(tls.take_output())
            heard = tls.receive(secure.recv(65536))
    return plain.startswith(b"SIP/2.0") and heard.startswith(b"SIP/2.0")


@pytest.mark.parametrize("listener", HALVES)
@pytest.mark.needs("openssl")
def test_half_a_handshake_many_times(server, listener):
    """Hundreds from one host leave it a share of the places, and go after five seconds."""
    address = place(server.listeners[listener])
    with ExitStack() as stack:
        for number in range(400):
            kinds = list(HALVES[listener].values())
            try:
                one = socket.create_connection(address, 20, source_address=(THEIRS, 0))
                stack.enter_context(one)
                one.sendall(kinds[number % len(kinds)])
            except OSError:
                continue
        assert is_served(server)
        few = lambda: server.status()["sip_connections"] <= 70  # noqa: E731
        server.wait_until(few, what="the silent to give way", timeout=20)
        server.wait_status({"sip_connections": 0}, timeout=20)
    assert "Traceback" not in server.output


def frames(kind):
    """The octets of a message that has no end, masked as a client's are."""
    maker = FrameProtocol(ConnectionType.CLIENT, [])
    if kind == "a giant frame":
        return b"\x82\xff" + (1 << 62).to_bytes(8, "big") + b"mask" + bytes(300_000)
    body = b"" if kind == "empty fragments" else bytes(1000)
    first = maker._serialize_frame(Opcode.BINARY, body, fin=False)
    return bytes(first) + bytes(maker._serialize_frame(Opcode.CONTINUATION, body, fin=False)) * 2000


@pytest.mark.needs("openssl")
def test_a_message_without_end(server):
    """It is cut off by size and by number, and pings alone keep no place."""
    for data in (*map(frames, KINDS), b"\x89\x80mask" * 3000):
        with socket.create_connection(place(server.ws), 20) as client:
            client.sendall(HANDSHAKE)
            assert client.recv(4096).startswith(b"HTTP/1.1 101")
            try:
                client.sendall(data)
                while client.recv(65536):
                    pass
            except ConnectionError:
                pass
    server.wait_status({"sip_connections": 0}, timeout=20)
    assert is_served(server) and "Traceback" not in server.output


@pytest.mark.needs("openssl")
def test_a_web_page_is_no_program_of_this_machine(server):
    """A browser here may show the page of a stranger: from loopback it reaches no other domain."""
    asked = options_request("3", "WS", LOOPBACK).replace(b"OPTIONS sip:x@", b"OPTIONS sip:x@evil.")
    asked = asked.replace(b"<sip:a@b>", b"<sip:a@127.0.0.1>")
    maker = FrameProtocol(ConnectionType.CLIENT, [])
    with socket.create_connection(place(server.ws), 20) as client:
        client.sendall(HANDSHAKE)
        assert client.recv(4096).startswith(b"HTTP/1.1 101")
        client.sendall(maker.send_data(asked, fin=True))
        assert b"SIP/2.0 403" in client.recv(65536)
