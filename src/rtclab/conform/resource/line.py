"""One WebSocket of a client of resources, by wsproto (extra `web`), which does no I/O.

Implements Resources §9.

Own design: a notification that comes before an answer is kept, so that a case asks for either.
"""

import json
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import SplitResult

from gevent import socket

from rtclab.conform.case import Unmet, Unreachable

try:
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import (
        AcceptConnection,
        CloseConnection,
        Ping,
        RejectConnection,
        Request,
        TextMessage,
    )
    from wsproto.utilities import RemoteProtocolError

    AVAILABLE = True
except ImportError:  # the cases can be listed without it
    AVAILABLE = False

PROTOCOL: Final = "resource.v1"
Message = dict[str, Any]


class ResourceLine:
    """A connection with this `proof`; `refused` is the status of HTTP if there is none.

    `headers` are sent beside; a `small` one has a buffer of few octets, which fills soon.
    """

    def __init__(
        self,
        url: SplitResult,
        proof: str,
        *,
        protocols: Sequence[str] = (PROTOCOL,),
        headers: Sequence[tuple[str, str]] = (),
        small: bool = False,
    ) -> None:
        self._web = WSConnection(ConnectionType.CLIENT)
        self._text = ""
        self._answers: deque[Message] = deque()
        self._heard: deque[Message] = deque()
        said = [*headers, *([("Authorization", proof)] if proof else [])]
        self._socket: Any = socket.socket()
        if small:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            self._socket.connect((url.hostname, url.port or 80))
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        request = Request(
            host=url.netloc,
            target=url.path,
            subprotocols=list(protocols),
            extra_headers=[(name.encode(), text.encode()) for name, text in said],
        )
        self._put(self._web.send(request))
        event = self._next()
        self.refused = event.status_code if isinstance(event, RejectConnection) else 0
        self.protocol = event.subprotocol if isinstance(event, AcceptConnection) else None
        if not isinstance(event, AcceptConnection | RejectConnection):
            raise Unmet("an answer to the handshake", type(event).__name__)

    def send(self, *messages: Message | str) -> None:
        """Send messages, all at once."""
        texts = [each if isinstance(each, str) else json.dumps(each) for each in messages]
        self._put(b"".join(self._web.send(TextMessage(data=text)) for text in texts))

    def answer(self) -> Message:
        """The next answer."""
        while not self._answers:
            self._read()
        return self._answers.popleft()

    def hear(self) -> Message:
        """The next notification."""
        while not self._heard:
            self._read()
        return self._heard.popleft()

    def close(self) -> None:
        """End it by the end of the stream."""
        self._socket.close()

    def reset(self) -> None:
        """End it by a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def leave(self) -> None:
        """End it by a message that closes, and leave the stream open."""
        self._put(self._web.send(CloseConnection(code=1000)))

    def _put(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Unmet("an open connection", error.strerror or str(error)) from None

    def _read(self) -> None:
        event = self._next()
        if isinstance(event, Ping):
            self._put(self._web.send(event.response()))
        elif isinstance(event, TextMessage):
            self._text += event.data
            if event.message_finished:
                text, self._text = self._text, ""
                self._sort(text)
        elif event is None or isinstance(event, CloseConnection):
            raise Unmet("an open connection", "its end")

    def _sort(self, text: str) -> None:
        try:
            said = json.loads(text)
        except ValueError:
            raise Unmet("a message of JSON", repr(text[:80])) from None
        if not isinstance(said, dict) or ("notify" in said) == ("status" in said):
            raise Unmet("an answer or a notification", repr(text[:80]))
        (self._heard if "notify" in said else self._answers).append(said)

    def _next(self) -> Any:
        """The next event of the WebSocket, None at its end."""
        try:
            while True:
                event = next(self._web.events(), None)
                if event is not None:
                    return event
                data = self._socket.recv(65_536)
                self._web.receive_data(data or None)
                if not data:
                    return next(self._web.events(), None)
        except OSError as error:
            raise Unmet("an open connection", error.strerror or str(error)) from None
        except RemoteProtocolError as error:
            raise Unmet("a WebSocket", str(error)) from None
