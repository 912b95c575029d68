"""RTMPT on the client's side: the next request of a tunnel, and the bytes of its answer.

Implements Field §"HTTP tunnel", of which `tunnel` is the server's side.

Own design: one request is under way at a time, so the server never has to wait for an earlier one.
The first byte of an answer counts 64ths of a second, so its highest step is half a second.

    >>> tunnel = TunnelClient()
    >>> tunnel.request(0.0)
    TunnelRequest(path='/open/1', body=b'\\x00')
    >>> tunnel.take(200, b"B5Q\\n", 0.1)
    b''
    >>> tunnel.write(b"hello")
    >>> tunnel.request(0.1)
    TunnelRequest(path='/send/B5Q/0', body=b'hello')
    >>> tunnel.take(200, b"\\x01world", 0.2)
    b'world'
"""

import string
from dataclasses import dataclass
from typing import Final

from rtmplite.errors import LocalError, RemoteError

MOST: Final = 64 * 1024  # bytes of one request
MAX_NAME: Final = 128  # characters of a tunnel's name
LETTERS: Final = frozenset(string.ascii_letters + string.digits + "-._~")  # of a path: RFC 3986
STEP: Final = 1 / 64  # s
NOTHING: Final = bytes(1)  # the body of a request without one


@dataclass(frozen=True, slots=True)
class TunnelRequest:
    """A POST: Field §"HTTP tunnel"."""

    path: str
    body: bytes


class TunnelClient:
    """One tunnel.  RemoteError is its end, and so is the answer to a close.

    Own design: `is_over` says that no request will follow; without an answer, the same request may
    be sent again, since a server knows it by its number.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._name = ""
        self._number = 0
        self._waiting = bytearray()
        self._due: float | None = 0.0  # None while a request is under way
        self._is_closing = False

    def write(self, data: bytes) -> None:
        """Have bytes sent to the server by the next request: Field §"HTTP tunnel"."""
        self._waiting += data

    def close(self) -> None:
        """Send what waits, then end the tunnel: Field §"HTTP tunnel"."""
        self._is_closing = True

    @property
    def is_full(self) -> bool:
        """Own design: whether to `write` later."""
        return len(self._waiting) >= MOST

    @property
    def deadline(self) -> float | None:
        """Own design: when to call `request`; None until `take`, and at the end."""
        if self.is_over or self._due is None:
            return None
        return 0.0 if self._waiting or self._is_closing or not self._name else self._due

    def request(self, now: float) -> TunnelRequest | None:
        """Give the request that is due, if one is: Field §"HTTP tunnel"."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return None
        self._due = None
        if not self._name:
            return TunnelRequest("/open/1", NOTHING)
        body = bytes(self._waiting[:MOST])
        del self._waiting[:MOST]
        command = "send" if body else "close" if self._is_closing else "idle"
        self.is_over = command == "close"
        number, self._number = self._number, self._number + 1
        return TunnelRequest(f"/{command}/{self._name}/{number}", body or NOTHING)

    def take(self, status: int, body: bytes, now: float) -> bytes:
        """Take the answer; give the bytes of the server.  RemoteError for a refusal.

        Implements Field §"HTTP tunnel".
        """
        if self._due is not None:
            raise LocalError("nothing has been asked")
        if self.is_over:
            return b""
        if status != 200:
            self.is_over = True
            asked = "the tunnel" if self._name else "a tunnel"
            raise RemoteError(f"HTTP {status} instead of {asked}")
        self._due = now
        if not self._name:
            self._name = _name(body)
            return b""
        if not body:
            self.is_over = True
            raise RemoteError("an answer without the first byte of RTMPT")
        self._due += body[0] * STEP
        return body[1:]


def _name(body: bytes) -> str:
    """Read the name of a tunnel; raises RemoteError if a path cannot hold it."""
    text = body[: MAX_NAME + 2].decode("latin-1").strip()
    if not text or len(text) > MAX_NAME or not LETTERS.issuperset(text):
        raise RemoteError("no name of a tunnel in the answer to /open")
    return text
