"""HTTP/1.1 as it carries others: each message with its body, and the upgrade to a WebSocket.

Own design: one direction of a connection alone, as captures have it.  Bodies are those that a
Content-Length announces: tunnels and upgrades have no others.

    >>> way = HttpWay()
    >>> [request] = way.feed(b"POST /idle/7/1 HTTP/1.1\\r\\nContent-Length: 1\\r\\n\\r\\n\\0")
    >>> request.words[1], request.body
    ('/idle/7/1', b'\\x00')
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from rtclab.unwrap.breach import Breach
from rtclab.unwrap.websocket import FrameReader, WebSocketMessage

STARTS: Final = b"GET ", b"POST", b"HTTP"
SWITCHING: Final = "101"
_END: Final = b"\r\n\r\n"
_MOST_HEAD: Final = 64 << 10  # octets
_MOST_BODY: Final = 64 << 20


class HttpMessage(NamedTuple):
    """A request or an answer; the names of `headers` are in lower case.  Own design."""

    start: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def words(self) -> tuple[str, str]:
        """The first two words: method and path, or the version and the status."""
        one, _, rest = self.start.partition(" ")
        return one, rest.partition(" ")[0]

    @property
    def length(self) -> int | None:
        """The octets of the body, None where it cannot be read."""
        said = self.headers.get("content-length", "0")
        size = int(said) if said.isdecimal() and len(said) < 10 else _MOST_BODY + 1
        is_read = "transfer-encoding" not in self.headers and size <= _MOST_BODY
        return size if is_read else None

    @property
    def is_request(self) -> bool:
        """Whether a client sent it."""
        return not self.start.startswith("HTTP/")

    @property
    def is_upgrade(self) -> bool:
        """Whether WebSocket frames follow, if both ends agree: RFC 6455 §4.1, §4.2.2."""
        switches = self.words[0] == "GET" if self.is_request else self.words[1] == SWITCHING
        return switches and self.headers.get("upgrade", "").lower() == "websocket"


class HttpWay:
    """One direction of a connection; `is_lost` when nothing more can be read.

    `frames` reads what comes after an upgrade; set it to None when the other end refuses.
    """

    def __init__(self) -> None:
        self.is_lost = False
        self.frames: FrameReader | None = None
        self._buffer = bytearray()
        self._head: HttpMessage | None = None

    def feed(self, data: bytes) -> Iterator[HttpMessage | WebSocketMessage | Breach]:
        """Take octets; yield what they complete."""
        self._buffer += data
        while not self.is_lost:
            if self.frames is not None:
                rest = bytes(self._buffer)
                self._buffer.clear()
                yield from self.frames.feed(rest)
                return
            message = self._message()
            if message is None:
                return
            if message.is_upgrade:
                self.frames = FrameReader(is_client=message.is_request)
            yield message

    def _message(self) -> HttpMessage | None:
        """Take the next message off, None while it is not whole."""
        head = self._head or self._next_head()
        if head is None:
            return None
        size = head.length
        if size is None:
            self._lose()
            return None
        self._head = head
        if len(self._buffer) < size:
            return None
        body, self._head = bytes(self._buffer[:size]), None
        del self._buffer[:size]
        return head._replace(body=body)

    def _next_head(self) -> HttpMessage | None:
        begins, end = bytes(self._buffer[:4]), self._buffer.find(_END, 0, _MOST_HEAD)
        is_start = any(each.startswith(begins) for each in STARTS)
        if not is_start or (end < 0 and len(self._buffer) >= _MOST_HEAD):
            self._lose()
        if end < 0 or self.is_lost:
            return None
        head = bytes(self._buffer[:end])
        del self._buffer[: end + len(_END)]
        return read_head(head)

    def _lose(self) -> None:
        self.is_lost = True
        self._buffer.clear()


def read_head(head: bytes) -> HttpMessage:
    """Read a message without its body; fields that come again are one, with commas."""
    start, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        key, value = name.strip().lower(), value.strip()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return HttpMessage(start, headers, b"")
