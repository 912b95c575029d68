"""What waits for its turn, in one queue for each host that has sent it.

Own design: hosts have their turns (`scheduler`).  Where there is too much, the host with most loses
its oldest.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from p2psip.net.host_scheduler import HostScheduler
from p2psip.transaction.flow import rate_limit_key

MAX_WAITING: Final = 1 << 20  # octets that wait for their turn ...
OVERHEAD: Final = 256  # ... each message with those that it takes beside its content

W = TypeVar("W")


class HostQueues(Generic[W]):
    """Calls `serve(data, way)` for each message that was kept, when its host has its turn."""

    def __init__(self, scheduler: HostScheduler, serve: Callable[[bytes, W], None]) -> None:
        self._scheduler, self._serve_one = scheduler, serve
        self._of_host: dict[str, _Waiting[W]] = {}
        self._waiting = 0  # octets, of all hosts
        self._closed = False

    def keep(self, data: bytes, way: W, sender: str) -> None:
        """Have a message of the host `sender` wait for its turn."""
        if self._closed:
            return
        host = rate_limit_key(sender)
        if (waiting := self._of_host.get(host)) is None:
            waiting = self._of_host[host] = _Waiting()
            self._scheduler.add(host, partial(self._serve, host))
        self._waiting += waiting.add(data, way)
        while self._waiting > MAX_WAITING:
            fullest = max(self._of_host.values(), key=lambda each: each.size)
            self._waiting -= fullest.take()[2]

    def close(self) -> None:
        """Forget what waits."""
        self._of_host.clear()
        self._closed = True

    def _serve(self, host: str) -> bool:
        """Serve one message of a host; whether there are more."""
        if not (waiting := self._of_host.pop(host, _Waiting())).messages:
            return False
        self._waiting -= waiting.size
        data, way, _ = waiting.take()
        self._serve_one(data, way)
        if not waiting.messages or self._closed:
            return False
        self._waiting += waiting.size
        self._of_host[host] = waiting
        return True


class _Waiting(Generic[W]):
    """The messages of one host, and the octets that they take."""

    def __init__(self) -> None:
        self.messages: deque[tuple[bytes, W, int]] = deque()
        self.size = 0

    def add(self, data: bytes, way: W) -> int:
        size = len(data) + OVERHEAD
        self.messages.append((data, way, size))
        self.size += size
        return size

    def take(self) -> tuple[bytes, W, int]:
        taken = self.messages.popleft()
        self.size -= taken[2]
        return taken
