"""SIP in a WebSocket that we open: in memory, and a phone against our server."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations
from support.sockets import options_request, until
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, RejectConnection, Request

from p2psip.agent import Account, Agent, NetworkSettings
from p2psip.errors import RemoteError
from p2psip.net.tls import TlsContexts, client_context
from p2psip.net.websocket import MAX_EARLY, WebSocketFramer
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow


def sip(branch="1", body=b""):
    return options_request(branch, "WS", "192.0.2.7:4711", body)


class Server:
    """A server in memory, which answers the handshake by `answer`."""

    def __init__(self, answer):
        self.ws, self.events, self.answer = WSConnection(ConnectionType.SERVER), [], answer

    def hear(self, data):
        """Take the client's bytes; give ours."""
        self.ws.receive_data(data)
        found = list(self.ws.events())
        self.events += found
        asked = any(isinstance(each, Request) for each in found)
        return self.ws.send(self.answer) if asked else b""


def agreed():
    """Both halves, after the handshake."""
    ours, theirs = WebSocketFramer(host="192.0.2.1:80"), WebSocketFramer()
    theirs.feed(ours.take_output())
    assert ours.feed(theirs.take_output()) == []
    return ours, theirs


def test_sip_is_asked_for_at_the_host_and_messages_go_both_ways():
    """Covers RFC 7118 §4.1 [sip-is-asked-for]."""
    server = Server(AcceptConnection(subprotocol="sip"))
    ours = WebSocketFramer(host="192.0.2.1:8080")
    assert ours.feed(server.hear(ours.take_output())) == [] and not ours.broken
    [asked] = server.events
    assert asked.subprotocols == ["sip"] and asked.host == "192.0.2.1:8080"
    ours, theirs = agreed()
    assert [bytes(each) for each in theirs.feed(ours.wrap(sip()))] == [sip()]
    binary = sip(body=b"\xff\xfe")
    assert [bytes(each) for each in ours.feed(theirs.wrap(binary))] == [binary]


def test_what_is_said_before_the_answer_follows_it_in_order():
    ours, theirs = WebSocketFramer(host="192.0.2.1"), WebSocketFramer()
    assert ours.wrap(sip("1")) == ours.wrap(sip("2")) == b""
    theirs.feed(ours.take_output())
    assert ours.take_output() == b""
    ours.feed(theirs.take_output())
    assert [bytes(each) for each in theirs.feed(ours.take_output())] == [sip("1"), sip("2")]


def test_what_waits_for_the_answer_has_an_end():
    ours = WebSocketFramer(host="192.0.2.1")
    large = sip(body=bytes(60_000))
    for _ in range(2 * MAX_EARLY // len(large)):
        ours.wrap(large)
    server = Server(AcceptConnection(subprotocol="sip"))
    ours.feed(server.hear(ours.take_output()))
    assert MAX_EARLY - 2 * len(large) < len(ours.take_output()) < MAX_EARLY + len(large)


@pytest.mark.parametrize(
    "answer",
    [
        AcceptConnection(),
        RejectConnection(status_code=403),
        RejectConnection(status_code=404, has_body=True),
    ],
)
def test_a_server_of_something_else_is_left(answer):
    server, ours = Server(answer), WebSocketFramer(host="192.0.2.1")
    ours.feed(server.hear(ours.take_output()))
    assert ours.broken and ours.wrap(sip()) == b""
    if isinstance(answer, AcceptConnection):
        server.hear(ours.take_output())
        assert isinstance(server.events[-1], CloseConnection)


ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x02hi"


@given(mutations(st.just(ANSWER)))
def test_damaged_answers_end_the_connection_or_are_waited_for(data):
    framer = WebSocketFramer(host="192.0.2.1")
    framer.wrap(sip())
    framer.take_output()
    framer.feed(data)
    framer.take_output()
    event(f"broken: {framer.broken}")


# -- a phone -------------------------------------------------------------------------------


def phone(**settings):
    return Agent(Account("bob"), NetworkSettings(websocket=True, **settings))


def place(echo, transport):
    return f"sip:127.0.0.1:{echo.web[1]};transport={transport}"


def test_a_phone_asks_by_a_websocket_and_is_asked_there(echo):
    """The server cannot open one itself, and finds the phone by its Contact."""
    with phone() as agent:
        assert agent.options(place(echo, "ws"), 20).status == 200
        [flow] = echo.flows
        assert flow.transport == "WS"
        contact = agent.contact
        assert (contact.param("transport"), contact.port) == ("ws", flow.remote[1])
        heard = []
        agent._stack.watch = lambda data, flow, sent: heard.append((data, flow))
        echo.driver.send(sip("9"), flow)
        assert until(lambda: len(heard) == 2, 20)
        assert heard[0][0] == sip("9") and heard[0][1].remote == tuple(echo.web)
        assert echo.driver.connections == 1


def test_a_phone_asks_by_tls_and_a_route_that_says_ws_goes_there_too(echo, of_websockets):
    with phone(tls=TlsContexts(client_context(of_websockets.file))) as agent:
        assert agent.options(place(echo, "wss"), 20).status == 200
        assert agent.options(place(echo, "ws"), 20).status == 200
        assert [each.transport for each in echo.flows] == ["WSS", "WSS"]
        assert echo.driver.connections == 1


def test_a_server_without_a_good_certificate_is_not_asked(echo):
    with phone(tls=TlsContexts(client_context())) as agent, pytest.raises(RemoteError) as refusal:
        agent.options(place(echo, "wss"), 20)
    assert refusal.value.status == 503 and not echo.flows


def test_a_server_of_websockets_opens_none(echo):
    """Covers RFC 7118 §5: a browser that has gone cannot be called."""
    listener = next(each for each in echo.driver._streams if each.transport == "WS")
    assert not listener.send(sip(), Flow("WS", tuple(echo.web)))
    there = Uri.parse("sip:bob@192.0.2.7;transport=ws")
    assert echo.stack._hops.direct(there) == []
