"""SIP in a WebSocket: in memory against wsproto's client, and through the stream listener."""

import socket as plain
from contextlib import suppress

import gevent
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations
from support.sip.tcp_world import closed, hurry
from support.sockets import Echo, TcpClient, options_request, until
from support.wrong_frames import WRONG
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Message,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import RemoteProtocolError

from p2psip.net import tcp
from p2psip.net.tls import Tls, client_context
from p2psip.net.websocket import WebSocketFramer
from p2psip.sip.framing import KeepAlive, Malformed
from p2psip.stack.stack import Flow, Send


def sip(branch="1", body=b""):
    return options_request(branch, "WS", "df7jal23ls0d.invalid", body)


class Browser:
    """A client in memory: what it has sent is in `out`, what it has heard in `events`."""

    def __init__(self, protocols=("sip",)):
        self.ws, self.events = WSConnection(ConnectionType.CLIENT), []
        request = Request(host="127.0.0.1", target="/", subprotocols=list(protocols))
        self.out = self.ws.send(request)

    def say(self, *events):
        for each in events:
            self.out += self.ws.send(each)

    def hear(self, data):
        self.ws.receive_data(data)
        self.events += self.ws.events()

    @property
    def last(self):
        return self.events[-1]


def opened(protocols=("sip",)):
    browser, framer = Browser(protocols), WebSocketFramer()
    assert passed(browser, framer) == []
    return browser, framer


def passed(browser, framer, size=100_000):
    """Carry the browser's bytes over, and the answers back; the items that came."""
    data, browser.out = browser.out, b""
    items = []
    for start in range(0, len(data), size):
        items += framer.feed(data[start : start + size])
    browser.hear(framer.take_output())
    return items


# In memory


@pytest.mark.parametrize("protocols", [("sip",), ("xmpp", "sip")])
def test_the_subprotocol_is_agreed(protocols):
    """Covers RFC 7118 §4.1 [sip-is-agreed].

    Covers RFC 6455 §4.2.2 [handshake-is-answered] [one-of-the-clients].
    """
    browser, _ = opened(protocols)
    assert isinstance(browser.last, AcceptConnection) and browser.last.subprotocol == "sip"


@pytest.mark.parametrize("protocols", [(), ("xmpp",)])
def test_without_the_subprotocol_there_is_no_connection(protocols):
    """Covers RFC 7118 §4.1: a client that means another service learns it at once.

    Covers RFC 6455 §4.2.2 [refused-by-http] [one-of-the-clients].
    """
    browser, framer = opened(protocols)
    assert isinstance(browser.events[0], RejectConnection) and framer.broken
    assert framer.feed(b"x") == []


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("kind", [TextMessage, BytesMessage])
def test_text_and_binary_are_messages(kind, size):
    """Covers RFC 7118 §4.2 [text-and-binary], §5 [one-each]: whatever pieces they come in.

    Covers RFC 6455 §6.2 [frames-are-parsed] [type-is-noted] [masking-is-removed].
    """
    browser, framer = opened()
    data = sip().decode() if kind is TextMessage else sip()
    browser.say(kind(data=data), kind(data=data))
    assert [item.method for item in passed(browser, framer, size)] == ["OPTIONS"] * 2


def test_a_message_in_fragments_is_one():
    """Covers RFC 7118 §5 [one-each]; RFC 6455 §5.4 [fragments-are-joined].

    Covers RFC 6455 §6.2 [next-is-another].
    """
    browser, framer = opened()
    text = sip(body=b"hi").decode()
    pieces = [TextMessage(data=each, message_finished=False) for each in (text[:9], "", text[9:50])]
    browser.say(*pieces, TextMessage(data=text[50:]), *pieces, TextMessage(data=text[50:]))
    assert [bytes(whole) for whole in passed(browser, framer)] == [text.encode()] * 2


def test_a_ping_between_fragments_is_answered_and_the_message_goes_on():
    """Covers RFC 6455 §5.4 [control-among-fragments] [fragments-are-joined].

    Covers RFC 6455 §6.2 [control-by-its-kind].
    """
    browser, framer = opened()
    text = sip().decode()
    browser.say(TextMessage(data=text[:9], message_finished=False), Ping(b"x"))
    assert passed(browser, framer) == [KeepAlive.PONG]
    assert isinstance(browser.last, Pong) and bytes(browser.last.payload) == b"x"
    browser.say(TextMessage(data=text[9:]))
    [whole] = passed(browser, framer)
    assert bytes(whole) == text.encode()


def test_no_length_is_needed():
    """As RFC 7118 §5 says, the frame tells where the message ends."""
    browser, framer = opened()
    browser.say(TextMessage(data=sip(body=b"hi").decode().replace("Content-Length: 2\r\n", "")))
    assert passed(browser, framer)[0].body == b"hi"


@pytest.mark.parametrize(("symbol", "kind"), [(b"\xc3\xa4", str), (b"\xe4", bytes)])
def test_what_is_no_utf_8_goes_as_binary(symbol, kind):
    """Covers RFC 7118 §4.2 [binary-if-not-utf-8], §5 [one-each].

    Covers RFC 6455 §5.6 [text-is-utf-8], §6.1 [in-frames] [opcode-tells-the-kind].
    """
    browser, framer = opened()
    message = b"SIP/2.0 200 " + symbol + b"\r\n\r\n"
    browser.hear(framer.wrap(message) + framer.wrap(message))
    said = [each for each in browser.events if isinstance(each, Message)]
    assert [type(each.data) for each in said] == [kind, kind]
    assert all(each.message_finished and each.frame_finished for each in said)
    assert [e.data.encode() if kind is str else bytes(e.data) for e in said] == [message] * 2


def test_keep_alives():
    """Covers RFC 7118 §6, RFC 5626 §4.4.1."""
    browser, framer = opened()
    browser.say(Ping(b"x"), TextMessage(data="\r\n\r\n"), TextMessage(data="\r\n"))
    assert passed(browser, framer) == [KeepAlive.PONG, KeepAlive.PING, KeepAlive.PONG]
    assert isinstance(browser.last, Pong) and bytes(browser.last.payload) == b"x"


def test_only_the_last_ping_is_answered():
    """Covers RFC 6455 §5.5.3 [last-ping-alone] [unasked-pongs].

    Covers RFC 6455 §5.5.2 [ping-is-answered] [answered-soon].

    So a browser that never reads fills no memory.
    """
    browser, framer = opened()
    browser.say(*(Ping(b"%d" % number) for number in range(1000)), Pong(b""))
    assert passed(browser, framer) == [KeepAlive.PONG] * 1001
    said = [bytes(each.payload) for each in browser.events if isinstance(each, Pong)]
    assert said == [b"999"] and framer.take_output() == b""
    browser.say(Ping(b"last"), CloseConnection(code=1000))
    assert passed(browser, framer) == [KeepAlive.PONG]
    assert [type(each) for each in browser.events[-2:]] == [Pong, CloseConnection]


def test_what_is_malformed_leaves_the_connection_open():
    """Covers RFC 7118 §4.1 [nothing-but-sip]."""
    browser, framer = opened()
    browser.say(*(TextMessage(data=each) for each in ("nonsense", "x", sip().decode())))
    *bad, good = passed(browser, framer)
    assert [(type(each), each.fatal) for each in bad] == [(Malformed, False)] * 2
    assert good.method == "OPTIONS"
    assert not framer.broken


@pytest.mark.parametrize("kind", ["one frame", "fragments", "empty fragments"])
def test_a_message_without_end_is_cut_off(kind):
    """By size, of one frame or many, and by the number of fragments; memory is bounded.

    Covers RFC 6455 §5.5.1 [close-has-a-code], §10.4 [limits-protect] [sizes-are-limited].
    """
    browser, framer = opened()
    if kind == "one frame":
        browser.say(BytesMessage(data=bytes(300_000)))
    else:
        data = bytes(5000) if kind == "fragments" else b""
        browser.say(*[BytesMessage(data=data, message_finished=False)] * (50 if data else 1001))
    assert passed(browser, framer, 8192) == [] and framer.broken
    assert isinstance(browser.last, CloseConnection) and browser.last.code == 1009
    assert len(framer._message) == 0


def test_a_goodbye_is_answered():
    """Covers RFC 6455 §5.5.1 [close-is-answered] [answered-at-once] [no-data-after-close], §6.1
    [only-while-open], §7.1.2 [closed-after-both].
    """
    browser, framer = opened()
    browser.say(TextMessage(data=sip().decode()), CloseConnection(code=1000))
    assert len(passed(browser, framer)) == 1 and framer.broken
    assert isinstance(browser.last, CloseConnection)
    assert framer.wrap(b"an answer that is too late") == framer.take_output() == b""


@pytest.mark.parametrize(("frame", "code"), WRONG)
def test_a_frame_that_is_wrong_ends_the_connection(frame, code):
    """Covers RFC 6455 §5.1 [unmasked-is-refused] [server-does-not-mask], §5.2
    [reserved-bits-end-it] [unknown-opcode-ends-it] [length-of-63-bits] [shortest-length]
    [reserved-bits-are-zero], §5.6 [text-is-utf-8] and §7.4.1 [reserved-codes-stay].

    Covers RFC 6455 §8.1 [no-utf-8-fails], §7.1.7 [failed-is-closed] [failure-has-a-code]
    [nothing-after-failure].
    """
    browser, framer = opened()
    assert framer.feed(frame) == [] and framer.broken
    browser.say(TextMessage(data=sip().decode()))
    assert framer.feed(browser.out) == []
    said = framer.take_output()
    assert said[0] == 0x88 and said[1] == len(said) - 2
    assert said[2:4] == (b"" if code is None else code.to_bytes(2, "big"))


def handshake(**fields):
    """A handshake with these fields in place of those that a browser sends, None for without."""
    proper = {
        "Host": "a",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "sip",
    }
    lines = [f"{name}: {value}" for name, value in (proper | fields).items() if value is not None]
    return "\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode()


@pytest.mark.parametrize("field", ["Host", "Upgrade", "Connection", "Sec-WebSocket-Key"])
def test_a_handshake_without_one_of_its_fields_is_refused(field):
    """Covers RFC 6455 §4.2.2 [refused-by-http] [handshake-is-answered], §4.2.1
    [400-for-a-wrong-handshake].
    """
    framer = WebSocketFramer()
    framer.feed(handshake())
    assert framer.take_output().startswith(b"HTTP/1.1 101 ")
    framer = WebSocketFramer()
    framer.feed(handshake(**{field: None}))
    assert framer.take_output().startswith(b"HTTP/1.1 400 ") and framer.broken


def test_a_mistake_that_the_library_has_no_answer_for_is_refused(monkeypatch):
    """Covers RFC 6455 §4.2.2 [refused-by-http]: wsproto's errors need not bring an answer."""

    def refuse(connection, data):
        raise RemoteProtocolError("without a hint")

    monkeypatch.setattr(WSConnection, "receive_data", refuse)
    framer = WebSocketFramer()
    assert framer.feed(handshake()) == [] and framer.broken
    assert framer.take_output().startswith(b"HTTP/1.1 400 ")


def test_another_version_and_extensions():
    """Covers RFC 6455 §4.2.2 [other-versions] [no-extensions].

    Covers RFC 6455 §4.4 [versions-are-told], §9 [only-requested].
    """
    framer = WebSocketFramer()
    framer.feed(handshake(**{"Sec-WebSocket-Version": "8"}))
    said = framer.take_output()
    assert said.startswith(b"HTTP/1.1 426 ") and b"Sec-WebSocket-Version: 13\r\n" in said
    framer = WebSocketFramer()
    framer.feed(handshake(**{"Sec-WebSocket-Extensions": "permessage-deflate"}))
    said = framer.take_output()
    assert said.startswith(b"HTTP/1.1 101 ") and b"extensions" not in said.lower()


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 4"),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 4"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", b"HTTP/1.1 4"),
        (sip(), b"HTTP/1.1 4"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 30_000, b""),
    ],
)
def test_what_is_no_handshake_is_refused(data, answer):
    framer = WebSocketFramer()
    assert framer.feed(data) == [] and framer.broken
    assert framer.take_output().startswith(answer)


def conversation():
    browser = Browser()
    head, browser.out = browser.out, b""
    browser.hear(_accept(head))
    browser.say(TextMessage(data=sip().decode()), Ping(b"1"), BytesMessage(data=sip()))
    return head + browser.out


def _accept(head):
    framer = WebSocketFramer()
    framer.feed(head)
    return framer.take_output()


@given(mutations(st.builds(conversation)))
def test_spoiled_streams_raise_nothing(data):
    framer = WebSocketFramer()
    items = framer.feed(data)
    event(f"messages: {sum(not isinstance(item, KeepAlive) for item in items)}")
    framer.take_output()


# Through the listener


class Page(Browser):
    """A browser with a socket, by wss:// if `secure`."""

    def __init__(self, address, *, secure=False):
        super().__init__()
        self.socket = plain.create_connection(address)
        self.socket.setblocking(False)
        self.tls = Tls(client_context(insecure=True), "localhost") if secure else None

    def turn(self):
        """Carry what is there both ways; the messages that came so far."""
        data, self.out = self.out, b""
        if self.tls is not None:
            self.tls.send(data)
            data = self.tls.take_output()
        self.socket.sendall(data)
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            data = b""
        data = self.tls.receive(data) if self.tls is not None and data else data
        if data:
            self.hear(data)
        return [each.data for each in self.events if isinstance(each, Message)]

    def open(self):
        assert until(lambda: self.turn() == [] and bool(self.events), 20)
        assert isinstance(self.last, AcceptConnection)
        return self


@pytest.mark.parametrize("secure", [False, True])
def test_a_browser_is_answered_and_asked_on_its_connection(echo, secure):
    """Covers RFC 7118 §5.1 and §5 [reliable-timers]: WS, and WSS at the same port."""
    page = Page(echo.web, secure=secure).open()
    page.say(TextMessage(data=sip().decode()))
    assert until(lambda: bool(page.turn()), 20)
    assert page.turn()[0].startswith("SIP/2.0 200")
    [flow] = echo.flows
    assert flow.transport == ("WSS" if secure else "WS") and flow.secure == secure
    assert flow.reliable
    assert echo.driver.connections == 1 and not page.turn()[1:]
    via = echo.stack._hops.via(flow, "z9hG4bK1")
    assert (via.transport, via.port) == (flow.transport, echo.web[1])
    echo.driver._carry_out(_order(flow))
    assert until(lambda: len(page.turn()) == 2, 20)
    page.socket.close()
    assert until(lambda: echo.driver.connections == 0, 20)


def _order(flow):
    return Send(sip("2"), flow)


@pytest.mark.parametrize("secure", [False, True])
def test_a_goodbye_right_behind_a_request_closes_the_connection(echo, secure, caplog):
    """Covers RFC 6455 §4.2.2 [through-the-tunnel], §5.5.1 [no-data-after-close] [tcp-is-closed]
    [server-closes-first].

    The request is answered first, as it came first; nothing follows the goodbye.
    """
    page = Page(echo.web, secure=secure).open()
    page.say(TextMessage(data=sip().decode()), CloseConnection(code=1000))

    def gone():
        page.turn()
        return isinstance(page.last, CloseConnection)

    assert until(gone, 20)
    assert until(lambda: echo.driver.connections == 0, 20)
    kinds = [type(each) for each in page.events]
    assert kinds == [AcceptConnection, TextMessage, CloseConnection]
    assert "fault" not in caplog.text


def test_nobody_opens_a_connection_to_a_browser(echo):
    """Covers RFC 7118 §5: there is no other way than the connection it has opened."""
    lost = []
    echo.stack.on_lost = lambda flow, now: lost.append(flow)
    echo.driver._carry_out(_order(flow := Flow("WS", ("127.0.0.1", 9))))
    assert lost == [flow] and echo.driver.connections == 0


def test_a_ping_is_no_message_and_its_silence_is_not_heard(echo, monkeypatch):
    """A browser that never says anything in SIP has a place for some seconds, as by TCP."""
    hurry(monkeypatch, GREETING_SECONDS=2.0)  # in which the page opens
    fast = Echo(ws=True)
    page = Page(fast.web).open()
    page.say(Ping(b""))
    page.turn()
    assert until(lambda: fast.driver.connections == 0, 20)
    fast.driver.close()


def test_pings_that_nobody_reads_the_answers_of_wait_as_one(echo, monkeypatch):
    """Own design: what a peer can make us hold is bounded, whatever writes it."""
    monkeypatch.setattr(tcp, "MAX_KEEP_ALIVES", 10**9)
    page = Page(echo.web).open()
    page.socket.settimeout(20)
    [connection] = _streams(echo)[0].connections.values()
    connection._socket.setsockopt(plain.SOL_SOCKET, plain.SO_SNDBUF, 4096)
    page.say(*[Ping(bytes(125))] * 500)
    for _ in range(200):  # far more than the buffers of both ends hold
        with suppress(BlockingIOError):
            page.socket.setblocking(False)
            page.socket.sendall(page.out)
        gevent.sleep(0)
    assert until(lambda: len(connection._queued) > 0) and len(connection._queued) < 4 * 127
    assert echo.driver.connections == 1
    page.socket.close()


def _streams(echo):
    return [each for each in echo.driver._streams if each.transport == "WS"]


def test_a_browser_of_nothing_but_pings_is_closed(echo, monkeypatch):
    """RFC 6455 §5.5.2 says how often nowhere; a few hundred times what RFC 5626 §4.4 has is it."""
    monkeypatch.setattr(tcp, "MAX_KEEP_ALIVES", 20)
    page = Page(echo.web).open()
    page.say(*[Ping(b""), Pong(b""), TextMessage(data="\r\n")] * 7)
    page.turn()
    assert until(lambda: echo.driver.connections == 0)


def test_a_client_without_http_disturbs_nobody(echo):
    client = TcpClient(echo.web)
    client.socket.sendall(sip())
    assert client.read(20).startswith(b"HTTP/1.1 400") and closed(client)
    page = Page(echo.web).open()
    page.say(TextMessage(data=sip().decode()))
    assert until(lambda: bool(page.turn()), 20)
    page.socket.close()
