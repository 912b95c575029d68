"""SIP by TCP: messages are framed by their length.

Implements RFC 3261 §18.2 and §18.3, from the client's side.
"""

from functools import partial

import gevent
from gevent import socket

from p2psip.sip.framing import Malformed, StreamFramer
from p2psip.sip.message import Request, Response
from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.checks import at_most, expect_equal
from rtclab.conform.sip.peer import SipPeer, expect

cases: Cases[SipPeer] = Cases()
must = partial(cases.case, role="uas")
should = partial(cases.case, role="uas", level="SHOULD")
GOOD = (200, 480, 486)


@must("RFC 3261 §18", "udp-and-tcp")
def tcp_is_there(peer: SipPeer) -> None:
    """Every element has TCP beside UDP (§18)."""
    try:
        socket.create_connection(peer.place).close()
    except OSError as error:
        raise Unmet("a TCP listener", error.strerror or str(error)) from None


@must("RFC 3261 §18.2.2", "same-connection")
def reply_takes_the_connection(peer: SipPeer) -> None:
    """The response comes by the connection of the request (§18.2.2)."""
    expect(_replies(peer, _by_tcp(peer))[0], *GOOD)


@must("RFC 4475 §3.1.1.11", "framed-by-its-length")
def two_messages_in_one_piece(peer: SipPeer) -> None:
    """Two requests that arrive together are two (§18.3)."""
    both = [_by_tcp(peer), _by_tcp(peer)]
    found = {each.call_id for each in _replies(peer, *both, together=True)}
    expect_equal("answers to both", {each.call_id for each in both}, found)


@must("RFC 4475 §3.1.1.11", "framed-by-its-length")
def message_in_two_pieces(peer: SipPeer) -> None:
    """A request that arrives in two pieces is one (§18.3)."""
    octets = bytes(_by_tcp(peer))
    expect(_exchange(peer, [octets[:100], octets[100:]], 1)[0], *GOOD)


@must("RFC 4475 §3.1.1.11", "framed-by-its-length")
def body_is_framed_by_its_length(peer: SipPeer) -> None:
    """A body that looks like a request is none (§18.3)."""
    inner, after = _by_tcp(peer), _by_tcp(peer)
    outer = _by_tcp(peer).replace(body=bytes(inner))
    outer = outer.replace(
        headers=outer.headers.append("Content-Disposition", "x;handling=optional").append(
            "Content-Type", "text/plain"
        )
    )
    found = {each.call_id for each in _replies(peer, outer, after)}
    expect_equal("answers", {outer.call_id, after.call_id}, found)


@must("RFC 3261 §7.5", "crlf-before-a-message")
def line_breaks_between_messages(peer: SipPeer) -> None:
    """Line breaks before a start line are passed over (§7.5)."""
    expect(_exchange(peer, [b"\r\n\r\n\r\n" + bytes(_by_tcp(peer))], 1)[0], *GOOD)


@should("RFC 5626 §5.4", "one-crlf-for-two")
def ping_has_a_pong(peer: SipPeer) -> None:
    """Two line breaks on a connection are answered by one (RFC 5626 §3.5.1)."""
    with _connected(peer) as stream, at_most(1):
        stream.sendall(b"\r\n\r\n")
        expect_equal("pong", b"\r\n", stream.recv(100))
        return
    raise Unmet("a line break", "nothing within 1 s")


def _by_tcp(peer: SipPeer) -> Request:
    request = peer.request("OPTIONS")
    return request.replace(
        headers=request.headers.with_("Via", request.via.replace(transport="TCP"))
    )


def _connected(peer: SipPeer) -> socket.socket:
    try:
        return socket.create_connection(peer.place)
    except OSError as error:
        raise NotApplicable(f"no TCP: {error.strerror}") from None


def _replies(peer: SipPeer, *requests: Request, together: bool = False) -> list[Response]:
    octets = [bytes(each) for each in requests]
    return _exchange(peer, [b"".join(octets)] if together else octets, len(requests))


def _exchange(peer: SipPeer, pieces: list[bytes], count: int) -> list[Response]:
    """Send octets in pieces; returns as many final responses as are to come."""
    framer = StreamFramer()
    found: list[Response] = []
    with _connected(peer) as stream:
        for piece in pieces:
            stream.sendall(piece)
            gevent.sleep(0.05)
        while len(found) < count:
            if not (data := stream.recv(65535)):
                raise Unmet(f"{count} responses", f"{len(found)}, and the connection's end")
            for item in framer.feed(data):
                if isinstance(item, Malformed):
                    raise Unmet("a SIP message", str(item.error))
                if isinstance(item, Response) and item.status >= 200:
                    found.append(item)
    return found
