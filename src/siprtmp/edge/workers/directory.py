"""Which worker has the publisher of which stream, as the bus tells.

Own design: for a moment two workers may have one name, if clients publish at both before either
has heard of the other.  The worker with the lower number keeps it then, and all know that without
asking.
"""

from typing import TypeAlias

Key: TypeAlias = tuple[str, str]  # application and name


class Directory:
    """The streams of the other workers."""

    def __init__(self) -> None:
        self._owners: dict[Key, set[int]] = {}

    def owner(self, key: Key) -> int | None:
        """The worker that has the publisher, if another one does."""
        return min(self._owners.get(key, ()), default=None)

    def add(self, worker: int, key: Key) -> None:
        """Note that a worker has a publisher."""
        self._owners.setdefault(key, set()).add(worker)

    def remove(self, worker: int, key: Key) -> None:
        """Note that it has no more."""
        owners = self._owners.get(key, set())
        owners.discard(worker)
        if not owners:
            self._owners.pop(key, None)

    def lost(self, worker: int) -> list[Key]:
        """Forget a worker that has ended; the streams it had."""
        had = [key for key, owners in self._owners.items() if worker in owners]
        for key in had:
            self.remove(worker, key)
        return had
