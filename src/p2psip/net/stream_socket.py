"""The socket of one connection of TCP, read and written without waiting.

Own design: each wake-up reads once.  Octets that the system does not take are kept, up to a limit.
An item beyond the limit is lost whole, like a packet of UDP.
"""

import socket
from collections.abc import Callable
from typing import Any, Final

from gevent import get_hub

from p2psip.net.udp import READ

WRITE: Final = 2  # libev's number for an io watcher that waits for room
CHUNK: Final = 16_384  # octets read at once


class StreamSocket:
    """One connection, from `accept` or the beginning of `connect` until `close`.

    `on_octets(data)` is called in the hub with received octets, and `on_end()` when the connection
    is over, or could not be opened; both may close it.  With `on_open` the connection is still
    being opened, and `on_open` is called once it is open.  At most `limit` octets wait to be sent,
    and one item more.
    """

    def __init__(
        self,
        opened: socket.socket,
        limit: int,
        on_octets: Callable[[bytes], object],
        on_end: Callable[[], object],
        on_open: Callable[[], object] | None = None,
    ) -> None:
        self._socket, self._limit, self._is_closed = opened, limit, False
        self._on_octets, self._on_end = on_octets, on_end
        self._queue = bytearray()
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = get_hub().loop
        self._reads: Any = loop.io(opened.fileno(), READ)
        self._writes: Any = loop.io(opened.fileno(), WRITE)
        if on_open is None:
            self._reads.start(self._hear)
        else:
            self._writes.start(self._opened, on_open)

    @property
    def waiting(self) -> int:
        """How many octets the system has not taken yet."""
        return len(self._queue)

    def send(self, data: bytes) -> None:
        """Send octets, or drop them if too many wait."""
        if len(self._queue) > self._limit:
            return
        self._queue += data
        if len(self._queue) == len(data):
            self._flush()

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        for watcher in (self._reads, self._writes):
            watcher.stop()
            watcher.close()
        self._socket.close()

    def _opened(self, on_open: Callable[[], object]) -> None:
        self._writes.stop()
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._on_end()
            return
        self._reads.start(self._hear)
        on_open()

    def _hear(self) -> None:
        data = read(self._socket, CHUNK)
        if data:
            self._on_octets(data)
        elif data is not None:
            self._on_end()

    def _flush(self) -> None:
        try:
            sent = self._socket.send(self._queue)
        except BlockingIOError:
            sent = 0
        except OSError:  # nobody reads: the end is heard as well
            sent = len(self._queue)
        del self._queue[:sent]
        if self._queue:
            self._writes.start(self._flush)
        else:
            self._writes.stop()


def read(opened: socket.socket, size: int) -> bytes | None:
    """Read once: None if nothing has come, no octets at the end of the connection."""
    try:
        return opened.recv(size)
    except BlockingIOError:
        return None
    except OSError:
        return b""
