"""SIP on a stream: where one message ends and the next begins.

Implements RFC 3261 §18.3 for TCP and TLS, with the keep-alives of RFC 5626 §3.5.1.

    >>> framer = StreamFramer()
    >>> framer.feed(b"\\r\\n\\r\\nOPTIONS sip:a@b SIP/2.0\\r\\nContent-Le")
    [<KeepAlive.PONG: 'CRLF'>, <KeepAlive.PING: 'CRLF CRLF'>]
    >>> [message.method for message in framer.feed(b"ngth: 2\\r\\n\\r\\nhi")]
    ['OPTIONS']

The same octets give the same items however TCP has cut them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.grammar import LWS
from p2psip.sip.headers import Headers
from p2psip.sip.message import Message, content_length, parse_message, unfold
from p2psip.sip.message_limits import MAX_HEAD, check_head

# octets: the longest head, and a body as large as any that fits a datagram
LIMIT: Final = MAX_HEAD + 65_536
SHORTEST: Final = 64  # octets; what is malformed and shorter is no SIP at all


class KeepAlive(StrEnum):
    """A line break between messages (RFC 5626 §3.5.1).

    The first is a PONG, or harmless (RFC 3261 §7.5); a second one right after it makes
    the pair a PING, which the server answers with one CRLF.
    """

    PONG = "CRLF"
    PING = "CRLF CRLF"


@dataclass(frozen=True, slots=True)
class Malformed:
    """Octets that are no message, the error, and whether it is fatal (RFC 3261 §18.3).

    `salvage(data)` may give what is needed to answer with `error.status`; after a `fatal`
    one the connection is to be closed.
    """

    error: RemoteError
    data: bytes
    fatal: bool


Item = Message | KeepAlive | Malformed


class StreamFramer:
    """The receiving half of one connection (RFC 3261 §18.3); bounded by `limit` octets.

    `broken` tells that an error was fatal; whatever comes later is ignored.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.broken = False
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0  # octets known to hold no end of the head
        self._size: int | None = None  # of the whole message, once its head is read
        self._after_crlf = False

    def feed(self, data: bytes | memoryview) -> list[Item]:
        """Take octets from the wire; return the messages that they complete (RFC 3261 §18.3)."""
        self.put(data)
        return [item for items in iter(self.take, None) for item in items]

    def put(self, data: bytes | memoryview) -> None:
        """Take octets from the wire, for `take` (RFC 3261 §18.3)."""
        self._buffer += data

    def take(self) -> list[Item] | None:
        """Return what comes next; None when more octets are needed for it (RFC 3261 §18.3)."""
        item = None if self.broken else self._next()
        if self.broken:
            self._buffer.clear()
        return None if item is None else [item]

    def _next(self) -> Item | None:
        if self._size is None:
            while self._buffer.startswith(b"\0"):  # Field §"Keep-alives of other kinds"
                del self._buffer[0]
            if self._buffer.startswith(b"\r\n"):  # RFC 3261 §7.5 [crlf-before-a-message]
                return self._line_break()
            try:
                self._size = self._read_head()
            except RemoteError as error:
                self.broken = True  # RFC 4475 §3.1.2.3 [stream-is-lost], §3.3.9 [stream-is-lost]
                head = self._buffer[: self._limit].partition(b"\r\n\r\n")
                return Malformed(error.with_traceback(None), bytes(head[0] + head[1]), fatal=True)
        if self._size is None or len(self._buffer) < self._size:
            return None
        data = bytes(self._buffer[: self._size])
        del self._buffer[: self._size]
        self._size, self._searched, self._after_crlf = None, 0, False
        try:
            return parse_message(data)
        except RemoteError as error:
            self.broken = len(data) < SHORTEST
            return Malformed(error.with_traceback(None), data, self.broken)

    def _line_break(self) -> KeepAlive:
        del self._buffer[:2]
        self._after_crlf = not self._after_crlf
        return KeepAlive.PONG if self._after_crlf else KeepAlive.PING

    def _read_head(self) -> int | None:
        """The size of the message that begins the buffer, None while its head is incomplete.

        Raises RemoteError where no size can be trusted, or where it is above the limit.
        """
        end = self._buffer.find(b"\r\n\r\n", max(0, self._searched - 3))
        self._searched = len(self._buffer)
        if end < 0:
            if self._searched > min(self._limit, MAX_HEAD):
                raise RemoteError("Message Too Large", 513)
            return None
        if end + 4 > self._limit:
            raise RemoteError("Message Too Large", 513)
        head = bytes(self._buffer[:end])
        check_head(head)
        lines = unfold(head)[1:]
        length = content_length(Headers(_sizes(lines)))
        if length is None:
            # RFC 3261 §18.3 [length-on-streams]
            raise RemoteError("Missing Content-Length")
        if (size := end + 4 + length) > self._limit:
            raise RemoteError("Message Too Large", 513)
        return size


def _sizes(lines: list[str]) -> list[tuple[str, str]]:
    """The Content-Length lines alone: others may be malformed without harm to the stream."""
    fields = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.rstrip(LWS).lower() in ("content-length", "l"):
            fields.append(("Content-Length", value.strip(LWS)))
    return fields
