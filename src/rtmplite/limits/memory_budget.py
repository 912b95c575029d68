"""Memory that all connections of a server share.

Own design: a limit for each peer does not limit all of them together.  Unfinished messages, codec
headers and whatever else a peer makes us keep is paid from one budget.  A peer that cannot pay is
cut off, and strangers may use no more than half, so that they cannot push out accepted clients.

    >>> budget = MemoryBudget(1000)
    >>> stranger, guest = Account(budget, is_trusted=False), Account(budget)
    >>> stranger.take(500), guest.take(500), budget.used
    (None, None, 1000)
    >>> stranger.close(), budget.used
    (None, 500)
"""

from typing import Final

from rtmplite.errors import RemoteError

TOTAL: Final = 512 * 1024 * 1024  # bytes


class MemoryBudget:
    """A budget of `total` bytes; `used` are taken, `by_strangers` of these by strangers."""

    def __init__(self, total: int = TOTAL) -> None:
        self.total, self.used, self.by_strangers = total, 0, 0


class Account:
    """One connection's part of a budget; closing it gives everything back."""

    def __init__(self, budget: MemoryBudget, *, is_trusted: bool = True) -> None:
        self._budget, self._taken, self._is_trusted = budget, 0, is_trusted

    def leaves_half(self, size: int) -> bool:
        """Whether half of the budget is left after `size` bytes more: for what can be missed."""
        return self._budget.used + size <= self._budget.total // 2

    def take(self, size: int) -> None:
        """Take `size` bytes more; RemoteError if the budget does not have them."""
        budget = self._budget
        strangers = 0 if self._is_trusted else budget.by_strangers + size
        if budget.used + size > budget.total or strangers > budget.total // 2:
            raise RemoteError(f"{size} bytes more than all connections may use")
        self._change(size)

    def give(self, size: int) -> None:
        """Give back `size` bytes, and never more than were taken."""
        self._change(-min(size, self._taken))

    def trust(self) -> None:
        """Count the connection as an accepted client from now on."""
        if not self._is_trusted:
            self._is_trusted = True
            self._budget.by_strangers -= self._taken

    def close(self) -> None:
        """Give back all."""
        self._change(-self._taken)

    def _change(self, size: int) -> None:
        self._budget.used += size
        self._taken += size
        if not self._is_trusted:
            self._budget.by_strangers += size
