"""The WebSocket of a client of the tree, without I/O, from its opening to its end (extra `web`).

Implements Resources §9.

Own design: the clients on gevent and on asyncio share it, so that they differ in how they wait.
"""

from base64 import b64encode
from typing import Final
from urllib.parse import unquote, urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from p2psip.errors import LocalError, RemoteError
from siprtmp.web.resources.messages import PROTOCOL

TIMEOUT: Final = 10.0  # s for an answer, and for a connection
WAITS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)  # s between attempts to connect again
READ_SIZE: Final = 65_536


class ClientWire:
    """One connection after the other to `ws://[USER:PASSWORD@]HOST:PORT/tree`.

    Raises LocalError for another URL.  A `token` takes the place of user and password.
    """

    def __init__(self, url: str, token: str = "") -> None:
        self._url = urlsplit(url)
        if self._url.scheme != "ws" or not self._url.hostname:
            raise LocalError(
                "A tree is at ws://HOST:PORT/tree, with USER:PASSWORD@ before the host"
            )
        self.host, self.port = self._url.hostname, self._url.port or 80
        self._headers = [(b"Authorization", f"Bearer {token}".encode())] if token else []
        if self._url.username and not token:
            proof = f"{unquote(self._url.username)}:{unquote(self._url.password or '')}".encode()
            self._headers = [(b"Authorization", b"Basic " + b64encode(proof))]
        self._web = WSConnection(ConnectionType.CLIENT)
        self._text = ""

    def open(self) -> bytes:
        """Begin a new connection; what to send first."""
        self._web, self._text = WSConnection(ConnectionType.CLIENT), ""
        return self._web.send(
            Request(
                host=self._url.netloc.rpartition("@")[2],
                target=self._url.path or "/tree",
                subprotocols=[PROTOCOL],
                extra_headers=self._headers,
            )
        )

    def opened(self, data: bytes) -> bool:
        """Take bytes of the answer; whether it is whole.  Raises RemoteError if it is a refusal."""
        try:
            self._web.receive_data(data or None)
            event = next(self._web.events(), None)
        except RemoteProtocolError:
            raise RemoteError("That is no answer to a WebSocket", 502) from None
        if event is None and data:
            return False
        if not isinstance(event, AcceptConnection):
            status = event.status_code if isinstance(event, RejectConnection) else 502
            raise RemoteError("The WebSocket is refused", status)
        return True

    def frame(self, text: str) -> bytes:
        """A message, as bytes to send.  Raises ConnectionError if the connection has ended."""
        try:
            return self._web.send(TextMessage(data=text))
        except LocalProtocolError:
            raise ConnectionError("The connection to the tree has ended") from None

    def receive(self, data: bytes) -> tuple[list[str], bytes, bool]:
        """Take bytes: the messages in them, what to send, and whether the connection goes on."""
        texts, answer = [], b""
        try:
            self._web.receive_data(data or None)
            for event in self._web.events():
                if isinstance(event, TextMessage):
                    self._text += event.data
                    if event.message_finished:
                        texts.append(self._text)
                        self._text = ""
                elif isinstance(event, Ping):
                    answer += self._web.send(event.response())
                elif isinstance(event, CloseConnection):
                    return texts, answer, False
        except RemoteProtocolError:
            return texts, answer, False
        return texts, answer, bool(data)
