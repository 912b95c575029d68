"""One stranger with one connection, which says more than anybody listens to."""

import pytest
from gevent import socket
from support.attacks.doors import by
from support.attacks.hostile_sip import SipAttacker
from support.peers.process import PATIENCE
from support.sockets import options_request

STRANGER = "127.0.0.2"
WEB = (  # the handshake of a WebSocket: RFC 6455 §1.3
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: sip\r\n\r\n"
)
ASK = options_request("1", "WS")
SAID = b"\x82\xfe" + len(ASK).to_bytes(2) + bytes(4) + ASK  # a message, masked by zeros
# Of each transport: what a phone begins with, and what keeps a connection, as nobody needs it.
KEEPS = {
    "TCP": ([options_request("1", "TCP")], b"\r\n\r\n"),
    "WS pings": ([WEB, SAID], b"\x89\x80\0\0\0\0"),
    "WS pongs": ([WEB, SAID], b"\x8a\x80\0\0\0\0"),
}


def sent_until_closed(place, begin, piece, most):
    """How many pieces the gateway takes before it hangs up; no answer to them is read."""
    with socket.create_connection(place, PATIENCE, source_address=(STRANGER, 0)) as stranger:
        for each in begin:
            stranger.sendall(each)
            assert (b" 101 " if each == WEB else b"SIP/2.0 ") in stranger.recv(4096)
        for count in range(most):
            try:
                stranger.sendall(piece * 100)
            except ConnectionError:
                return 100 * count
    return None


@pytest.mark.parametrize("kind", KEEPS)
def test_keep_alives_without_end_end_the_connection(gateway, kind):
    """RFC 5626 §4.4.1: one in two minutes is enough; and whoever is honest is served."""
    server = gateway("--ws", "127.0.0.1:0")
    begin, piece = KEEPS[kind]
    transport = kind.partition(" ")[0]
    assert sent_until_closed(server.place(transport), begin, piece, 10_000) is not None
    assert by(transport, SipAttacker)(server).ask("OPTIONS", f"sip:{server.sip}") == 200
    assert "Traceback" not in server.output


def test_requests_by_the_hundred_on_one_connection_are_all_answered(gateway):
    """The rest of what was read waits for its turn, and another host is answered meanwhile."""
    server = gateway()
    talker, other = by("TCP", SipAttacker)(server, STRANGER), SipAttacker(server)
    ask = [talker.request("OPTIONS", f"sip:{server.sip}") for _ in range(300)]
    talker.send(b"".join(ask))
    assert other.ask("OPTIONS", f"sip:{server.sip}") == 200
    for _ in ask:
        assert talker.heard().startswith(b"SIP/2.0 200")


def test_many_messages_of_one_read_are_all_used(gateway):
    """RTMP 1.0 §7.1.7: five hundred pings in one piece get five hundred answers."""
    server = gateway()
    ping = bytes.fromhex("02 000000 000006 04 00000000 0006 0000002a")
    host, _, port = server.rtmp.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as stranger:
        stranger.sendall(b"\x03" + bytes(1536) + bytes(1536) + ping * 500)
        stranger.settimeout(PATIENCE)
        answers = stranger.makefile("rb")
        answers.read(1 + 1536 + 1536)
        said = answers.read(500 * len(ping))
    assert said.count(bytes.fromhex("0007 0000002a")) == 500
