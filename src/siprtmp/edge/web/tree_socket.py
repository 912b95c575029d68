"""One WebSocket of a client of the tree.

Implements RFC 6455 §5, by wsproto (extra `web`), which does no I/O.

Own design: a connection has no greenlet.  A notification costs one system call for each subscriber,
since its frame is written once for all.  Only if requests wait for other gateways, a greenlet
answers the requests that have come, and no more are read meanwhile.
"""

import socket
from collections import deque
from typing import Any, Final, Protocol

import gevent

from p2psip.net.clock import monotonic
from rtmplite.net.http.websocket import WebSocket
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.session import MAX_MESSAGE, ResourceSession
from siprtmp.web.resources.tree import Tree

PING_SECONDS: Final = 20.0  # of silence, and the client is asked whether it is there ...
GONE_SECONDS: Final = 60.0  # ... and so many, and it is not
READ_SIZE: Final = 65_536
_READ: Final = 1  # of the event loop
_WRITE: Final = 2


class SocketOwner(Protocol):
    """Holds the sockets."""

    def schedule(self, connected: "TreeSocket") -> None:
        """Have a socket flushed when this turn of the loop ends."""

    def forget(self, connected: "TreeSocket") -> None:
        """A socket is closed."""

    def frame(self, text: str) -> bytes:
        """A message as a frame."""


class TreeSocket:
    """From the handshake `web` to the end; `host` is what its place is counted by."""

    def __init__(
        self,
        owner: SocketOwner,
        tree: Tree,
        asker: Asker,
        host: str,
        web: WebSocket,
        connected: socket.socket,
    ) -> None:
        self._owner, self.host = owner, host
        self._web, self._socket = web, connected
        self._output = bytearray(web.head)
        self._is_open, self._is_ending, self._scheduled = True, False, False
        self._is_blocked = self._is_paused = False  # until the socket takes more
        self._is_answering = False  # by a greenlet
        self.heard = monotonic()
        self._waits = tree.shared is not None
        self._requests: deque[str] = deque()  # of a tree that waits
        self._session = ResourceSession(tree, asker, self.heard, self._wake)
        loop = gevent.get_hub().loop
        self._reader: Any = loop.io(self._socket.fileno(), _READ)
        self._writer: Any = loop.io(self._socket.fileno(), _WRITE)
        self._reader.start(self._readable)
        self._wake()

    def look(self, now: float) -> None:
        """Ask a silent client whether it is there, and close the connection of one that is not."""
        if now - self.heard > GONE_SECONDS:
            self.shut()
        elif now - self.heard > PING_SECONDS:
            self._put(self._web.ping())

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._owner.schedule(self)

    def _put(self, data: bytes) -> None:
        self._output += data
        self._wake()

    def flush(self) -> None:
        """Send as much as the socket takes; new messages are only taken once the last are sent."""
        self._scheduled = False
        while self._is_open:
            was_left = bool(self._output)
            data = self._output or self._taken()
            if not data:
                break
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.shut()
                return
            if sent < len(data):
                self._output = bytearray(memoryview(data)[sent:])
                self._writer.start(self.flush)
                self._is_blocked = True
                return
            self._output.clear()
            if not was_left:
                break
        if self._is_open:
            self._go_on()

    def _taken(self) -> bytes:
        """All new messages, as one piece; what is usual, one that many are sent, is not copied."""
        frames = [self._owner.frame(text) for text in self._session.take()]
        return frames[0] if len(frames) == 1 else b"".join(frames)

    def _go_on(self) -> None:
        """All is sent: read again, or end."""
        if self._is_blocked:
            self._is_blocked = False
            self._writer.stop()
        if self._is_ending and not self._is_answering:
            self.shut()
        elif self._is_paused and self._may_read:
            self._is_paused = False
            self._reader.start(self._readable)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.shut()
            return
        if self._is_ending:
            return
        self.heard = monotonic()
        messages, answer, self._is_ending = self._web.messages(data, MAX_MESSAGE, texts=True)
        if self._waits and messages:
            self._requests.extend(each.decode() for each in messages)
            gevent.spawn(self._work)
            self._is_answering = True
        else:
            for each in messages:
                self._session.receive(each.decode(), self.heard)
        self._put(answer)
        if self._is_open and (self._is_ending or not self._may_read):
            self._is_paused = True
            self._reader.stop()

    @property
    def _may_read(self) -> bool:
        return self._session.is_reading and not self._is_answering

    def _work(self) -> None:
        """Answer the requests that have come, which may wait."""
        try:
            while self._is_open and self._requests:
                self._session.receive(self._requests.popleft(), monotonic())
        finally:
            self._is_answering = False
            self._wake()

    def shut(self) -> None:
        """Close the socket, now."""
        if not self._is_open:
            return
        self._is_open = False
        for watcher in (self._reader, self._writer):
            watcher.stop()
            watcher.close()
        self._socket.close()
        self._owner.forget(self)
        self._session.end()
