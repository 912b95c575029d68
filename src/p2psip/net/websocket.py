"""SIP in a WebSocket: the server's end and a client's, cut into messages.

Implements RFC 7118 §4 and §5, with wsproto (extra `web`), which does no I/O.

Own design: any Origin is welcome.  No cookie and no address is taken for a proof here: each request
proves its user by Digest, so a page of another site can do no more than any other client.
Departs from RFC 7118 §7 [reads-cookies]: for the same reason, and since no page of ours gives any.
Not done: RFC 7118 §7 [401-to-the-handshake]: passwords are asked for by SIP alone.
Not done: RFC 6455 §9.1 [malformed-list-fails]: no extension is accepted, so their list is not read.
Not done: RFC 6455 §7.1.1 [clean-close]: TCP is closed without the alert that ends TLS, since the
Close before it has told the end.
Not done: RFC 6455 §7.1.7 [failure-is-logged]: the log would fill with what strangers send.
"""

from typing import Any, Final

from p2psip.errors import RemoteError
from p2psip.sip.framing import LIMIT, Item, KeepAlive, Malformed
from p2psip.sip.message import parse_message

try:
    import h11
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import (
        AcceptConnection,
        BytesMessage,
        CloseConnection,
        Event,
        Message,
        Ping,
        Pong,
        RejectConnection,
        Request,
        TextMessage,
    )
    from wsproto.utilities import LocalProtocolError, RemoteProtocolError

    AVAILABLE = True
except ImportError:  # without the extra there is no WebSocket, and everything else
    AVAILABLE = False

PROTOCOL: Final = "sip"  # RFC 7118 §4.1
TOO_LARGE: Final = 1009  # RFC 6455 §7.4.1
MAX_HANDSHAKE: Final = 16_384  # octets of HTTP before the WebSocket begins
MAX_FRAGMENTS: Final = 1000  # frames of one message; browsers send one, or some for a large body
MAX_EARLY: Final = 1 << 20  # octets that wait for the end of the handshake
WRONG_PROTOCOL: Final = 1002  # RFC 6455 §7.4.1


class WebSocketFramer:
    """The server's half of a connection, until `broken`; a message has `limit` octets at most.

    With `host`, for the HTTP header of that name, it is the client's half.
    """

    def __init__(self, limit: int = LIMIT, host: str = "") -> None:
        self.broken = False
        kind = ConnectionType.CLIENT if host else ConnectionType.SERVER
        # RFC 6455 §5.1 [server-does-not-mask], §5.2 [reserved-bits-are-zero]
        self._limit, self._connection = limit, WSConnection(kind)
        self._input, self._output, self._pong = b"", bytearray(), b""
        self._early: list[bytes] | None = [] if host else None
        self._early_octets = 0
        if host:
            asked = Request(host=host, target="/", subprotocols=[PROTOCOL])
            self._output += self._connection.send(asked)  # RFC 7118 §4.1 [sip-is-asked-for]
        self._message = bytearray()
        self._fragments = self._heard = 0
        self._is_open = False

    def feed(self, data: bytes) -> list[Item]:
        """Take octets from the wire; return the messages that they complete (RFC 7118 §5)."""
        self.put(data)
        return [item for items in iter(self.take, None) for item in items]

    def put(self, data: bytes) -> None:
        """Take octets from the wire, for `take`."""
        self._heard += len(data)
        self._input += data
        if not self._is_open and self._heard > MAX_HANDSHAKE:
            self.broken = True

    def take(self) -> list[Item] | None:
        """Return the items that the next frame completes; None when more octets are needed."""
        if self.broken:  # RFC 6455 §7.1.7 [nothing-after-failure]
            return None
        data, self._input = self._input, b""
        try:
            if data:
                # RFC 6455 §5.1 [unmasked-is-refused], §5.2 [reserved-bits-end-it]
                # RFC 6455 §5.2 [unknown-opcode-ends-it] [length-of-63-bits] [shortest-length]
                # RFC 6455 §5.6 [text-is-utf-8], §8.1 [no-utf-8-fails]
                # RFC 6455 §6.2 [frames-are-parsed] [masking-is-removed]
                self._connection.receive_data(data)
            event = next(self._connection.events(), None)
            return None if event is None else self._take(event)
        except RemoteProtocolError as error:
            # RFC 6455 §4.2.2 [other-versions] [refused-by-http], §4.4 [versions-are-told]
            # RFC 6455 §4.2.1 [400-for-a-wrong-handshake]
            self._end(error.event_hint or RejectConnection())
        except (h11.ProtocolError, ValueError):  # in a header that the library then cannot read
            self._end(RejectConnection())
        return []

    def wrap(self, message: bytes) -> bytes:
        """One message in one frame: text if it is UTF-8 (RFC 7118 §4.2); nothing once broken.

        What a client says before the answer to its handshake follows in `take_output`.
        """
        if self.broken:  # RFC 6455 §5.5.1 [no-data-after-close], §6.1 [only-while-open]
            return b""
        if self._early is not None:
            self._early_octets += len(message)
            if self._early_octets <= MAX_EARLY:
                self._early.append(message)
            return b""
        try:
            text = message.decode()  # RFC 6455 §5.6 [text-is-utf-8]
        except UnicodeDecodeError:
            # RFC 7118 §4.2 [binary-if-not-utf-8], RFC 6455 §6.1 [opcode-tells-the-kind]
            return bytes(self._connection.send(BytesMessage(data=message)))
        # RFC 7118 §5 [one-each], RFC 6455 §6.1 [in-frames] [opcode-tells-the-kind]
        return bytes(self._connection.send(TextMessage(data=text)))

    def take_output(self) -> bytes:
        """Return what handshake, pong to the last ping, and close have to say, once."""
        output = bytes(self._output) + self._pong
        self._output.clear()
        self._pong = b""
        return output

    def _take(self, event: "Event") -> list[Item]:
        match event:
            case Request():
                self._open(event)
            case AcceptConnection():
                self._opened(event)
            case RejectConnection():  # RFC 7118 §4.1: no 101
                self.broken = True
            case Message():  # RFC 7118 §4.2 [text-and-binary], RFC 6455 §6.2 [type-is-noted]
                return self._take_piece(event)
            case Ping():  # RFC 6455 §5.4 [control-among-fragments], §5.5.3 [last-ping-alone]
                # RFC 6455 §5.5.2 [ping-is-answered] [answered-soon], §6.2 [control-by-its-kind]
                self._pong = bytes(self._connection.send(event.response()))
                return [KeepAlive.PONG]  # RFC 7118 §6
            case Pong():  # RFC 6455 §5.5.3 [unasked-pongs]
                return [KeepAlive.PONG]
            case CloseConnection():
                # RFC 6455 §5.5.1 [close-is-answered] [answered-at-once]
                # RFC 6455 §7.4.1 [reserved-codes-stay]
                self._end(event.response())
        return []

    def _open(self, request: "Request") -> None:
        """Answer the handshake: without the sub-protocol there is nothing to talk about."""
        if PROTOCOL not in request.subprotocols:  # RFC 6455 §4.2.2 [one-of-the-clients]
            self._end(RejectConnection())  # RFC 6455 §4.2.2 [refused-by-http]
            return
        # RFC 6455 §4.2.2 [handshake-is-answered] [no-extensions], §9 [only-requested]
        # RFC 7118 §4.1 [sip-is-agreed]
        self._output += self._connection.send(AcceptConnection(subprotocol=PROTOCOL))
        self._is_open = True

    def _opened(self, answer: "AcceptConnection") -> None:
        """Send the messages that wait; give up a server that speaks no SIP."""
        early, self._early = self._early or [], None
        if answer.subprotocol != PROTOCOL:
            self._end(CloseConnection(code=WRONG_PROTOCOL))
            return
        self._is_open = True
        for each in early:
            self._output += self.wrap(each)

    def _take_piece(self, event: "Message[Any]") -> list[Item]:
        # RFC 6455 §5.4 [fragments-are-joined]
        self._message += event.data.encode() if isinstance(event.data, str) else event.data
        self._fragments += 1
        if len(self._message) > self._limit or self._fragments > MAX_FRAGMENTS:
            # RFC 6455 §5.5.1 [close-has-a-code], §10.4 [limits-protect] [sizes-are-limited]
            self._end(CloseConnection(code=TOO_LARGE))
            return []
        if not event.message_finished:  # RFC 7118 §5 [one-each]
            return []
        whole = bytes(self._message)
        self._message.clear()  # RFC 6455 §6.2 [next-is-another]
        self._fragments = 0
        return [_item(whole)]

    def _end(self, last: "Event") -> None:
        """Say the last words, if they still can be said."""
        self.broken = True  # RFC 6455 §7.1.7 [failed-is-closed], §7.1.2 [closed-after-both]
        self._message.clear()
        self._output += self._pong
        self._pong = b""
        try:
            self._output += self._connection.send(last)  # RFC 6455 §7.1.7 [failure-has-a-code]
        except (LocalProtocolError, h11.ProtocolError):
            return


def _item(whole: bytes) -> Item:
    """A message, a keep-alive (RFC 7118 §6), or what is neither."""
    # RFC 7118 §4.1 [nothing-but-sip]
    if not whole.strip(b"\r\n"):
        return KeepAlive.PING if whole.startswith(b"\r\n\r\n") else KeepAlive.PONG
    try:
        return parse_message(whole)
    except RemoteError as error:
        return Malformed(error.with_traceback(None), whole, fatal=False)
