"""A socket for media that tells of each datagram, while one call is captured.

Own design: a port has this in place of its socket for that time, so that other calls pay nothing.
"""

import socket
from collections.abc import Callable
from typing import Any, TypeAlias

# Takes source, target and octets of a datagram; a host of ours may be a wildcard.
Watch: TypeAlias = Callable[[tuple[str, int], tuple[str, int], bytes], object]


class WatchedSocket:
    """Wraps the socket `inner`, and tells `watch` of each datagram that comes and leaves."""

    def __init__(self, inner: socket.socket, watch: Watch) -> None:
        self._inner, self._watch = inner, watch
        self._near: tuple[str, int] = inner.getsockname()[:2]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def recvfrom(self, size: int) -> tuple[bytes, Any]:
        """Receive one: RFC 3550 §11."""
        data, source = self._inner.recvfrom(size)
        self._watch(source[:2], self._near, data)
        return data, source

    def sendto(self, data: bytes, target: Any) -> int:
        """Send one: RFC 3550 §11."""
        size = self._inner.sendto(data, target)
        self._watch(self._near, target[:2], bytes(data))
        return size
