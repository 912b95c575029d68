"""The server's end of a WebSocket, by wsproto (extra `web`), which does no I/O.

RFC 6455 §4.2.2 is how it opens, RFC 6455 §5.2 the frames.
"""

from collections.abc import Iterable
from typing import Any, Final

try:
    import h11
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import (
        AcceptConnection,
        BytesMessage,
        CloseConnection,
        Ping,
        Request,
        TextMessage,
    )
    from wsproto.frame_protocol import FrameProtocol
    from wsproto.utilities import LocalProtocolError, RemoteProtocolError

    AVAILABLE = True
except ImportError:  # without the extra there is no WebSocket, and everything else
    AVAILABLE = False

NORMAL: Final = 1000  # RFC 6455 §7.4.1
UNWELCOME: Final = 1008  # RFC 6455 §7.4.1
WRONG_DATA: Final = 1003  # RFC 6455 §7.4.1
TOO_BIG: Final = 1009  # RFC 6455 §7.4.1
# A viewer that says more than that is closed.
MAX_FRAMES: Final = 120  # in `FRAMES_SECONDS`; players send none, browsers some pongs
FRAMES_SECONDS: Final = 60.0


def is_upgrade(environ: dict[str, Any]) -> bool:
    """Whether a request wants to become a WebSocket: RFC 6455 §4.1."""
    # RFC 6455 §4.1 [upgrade-names-websocket]
    return "websocket" in environ.get("HTTP_UPGRADE", "").lower()


class WebSocket:
    """One connection; `head` is the response that opens it."""

    # Frames of a server are not masked, so all connections can share them.
    # RFC 6455 §5.1 [server-does-not-mask], §5.2 [reserved-bits-are-zero] [shortest-length]
    _shared: Any = FrameProtocol(client=False, extensions=[]) if AVAILABLE else None

    def __init__(self, connection: "WSConnection", head: bytes) -> None:
        self._connection, self.head = connection, head
        self._frames, self._counted_from = 0, 0.0
        self._partial = bytearray()

    @classmethod
    def accept(
        cls, headers: Iterable[tuple[str, str]], path: str, subprotocol: str | None = None
    ) -> "WebSocket | None":
        """Answer a request; None if it is not proper, or the library is missing.

        It has to ask for the `subprotocol`, if there is one.
        """
        if not AVAILABLE:
            return None
        connection = WSConnection(ConnectionType.SERVER)
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        try:
            connection.initiate_upgrade_connection(raw, path.encode("latin-1"))
            request = next(iter(connection.events()), None)
            if not isinstance(request, Request):
                return None
            if subprotocol is not None and subprotocol not in request.subprotocols:
                return None
            # RFC 6455 §4.2.2 [handshake-is-answered] [none-unasked] [no-extensions]
            # RFC 6455 §9 [only-requested]
            answer = AcceptConnection(subprotocol=subprotocol)
            return cls(connection, connection.send(answer))
        except (RemoteProtocolError, LocalProtocolError, h11.ProtocolError):  # no Host, say
            return None

    @classmethod
    def frame(cls, data: bytes) -> bytes:
        """One binary message: RFC 6455 §5.6."""
        # RFC 6455 §6.1 [in-frames] [last-has-fin]
        return bytes(cls._shared.send_data(data, fin=True))

    @classmethod
    def text_frame(cls, text: str) -> bytes:
        """One text message: RFC 6455 §5.6."""
        return bytes(cls._shared.send_data(text, fin=True))

    def receive(self, data: bytes, now: float) -> tuple[bytes, bool]:
        """Take bytes; give the answer, one pong for all pings, and whether it ends."""
        pong = last = b""
        closed = False
        try:
            # RFC 6455 §5.1 [unmasked-is-refused], §5.2 [reserved-bits-end-it]
            # RFC 6455 §5.2 [unknown-opcode-ends-it] [length-of-63-bits] [shortest-length]
            # RFC 6455 §5.6 [text-is-utf-8], §8.1 [no-utf-8-fails]
            self._connection.receive_data(data)
            for event in self._connection.events():
                if isinstance(event, CloseConnection):
                    # RFC 6455 §5.5.1 [close-is-answered] [answered-at-once]
                    # RFC 6455 §7.4.1 [reserved-codes-stay]
                    last, closed = self._connection.send(event.response()), True
                elif self._are_too_many(now):
                    last, closed = self._connection.send(CloseConnection(code=UNWELCOME)), True
                    break
                elif isinstance(event, Ping):
                    # RFC 6455 §5.4 [control-among-fragments], §5.5.3 [last-ping-alone]
                    # RFC 6455 §5.5.2 [ping-is-answered] [answered-soon]
                    pong = self._connection.send(event.response())
        except (RemoteProtocolError, LocalProtocolError):
            closed = True
        return pong + last, closed

    def messages(
        self, data: bytes, most: int, *, texts: bool = False
    ) -> tuple[list[bytes], bytes, bool]:
        """Take bytes; give the binary messages, what to answer, and whether it ends.

        With `texts` these are the texts, in UTF-8.  It ends with a message of the other type, and
        with one of more than `most` bytes.
        """
        found: list[bytes] = []
        wanted = TextMessage if texts else BytesMessage
        pong = last = b""
        try:
            self._connection.receive_data(data)
            for event in self._connection.events():
                if isinstance(event, wanted):
                    piece = event.data
                    self._partial += piece.encode() if isinstance(piece, str) else piece
                    if len(self._partial) > most:
                        return found, self._connection.send(CloseConnection(code=TOO_BIG)), True
                    if event.message_finished:
                        found.append(bytes(self._partial))
                        self._partial.clear()
                elif isinstance(event, TextMessage | BytesMessage):
                    return found, self._connection.send(CloseConnection(code=WRONG_DATA)), True
                elif isinstance(event, CloseConnection):
                    last = self._connection.send(event.response())
                    return found, pong + last, True
                elif isinstance(event, Ping):
                    pong = self._connection.send(event.response())
        except (RemoteProtocolError, LocalProtocolError):
            return found, b"", True
        return found, pong, False

    def _are_too_many(self, now: float) -> bool:
        """Count a frame; whether there are far more than any player sends."""
        if now - self._counted_from > FRAMES_SECONDS:
            self._frames, self._counted_from = 0, now
        self._frames += 1
        return self._frames > MAX_FRAMES

    def ping(self) -> bytes:
        """Give the frame that asks whether the far end is there: RFC 6455 §5.5.2."""
        return bytes(self._connection.send(Ping()))

    def close(self) -> bytes:
        """Give the frame that closes it: RFC 6455 §5.5.1."""
        try:
            # RFC 6455 §5.5.1 [close-has-a-code], §7.1.2 [close-frame-comes-first]
            return self._connection.send(CloseConnection(code=NORMAL))
        except LocalProtocolError:
            return b""
