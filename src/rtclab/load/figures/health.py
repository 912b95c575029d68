"""The generator's own state: whether it was itself the limit.

Own design: a generator that wakes late reads late, and blames the server for it.  So its timers,
its processor time and what waited unread are measured beside, and no server is blamed for delay or
loss that was measured while one of them was past its limit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from rtclab.load.figures.delays import Delays

BUSY: Final = 90.0  # percent of a core: the rest is for what else the machine does
LATE: Final = 50.0  # ms, of one timer in a hundred
UNREAD: Final = 1 << 20  # bytes that may wait in the receive queues of one process,
BEHIND: Final = 0.5  # or what comes in so many seconds: they count with the system's own overhead


@dataclass(slots=True)
class Health:
    """One process, over one interval; several add up to the worst of them."""

    late: Delays = field(default_factory=Delays)  # how late timers were
    cpu: float = 0.0  # percent of a core
    unread: int = 0  # bytes in receive queues
    room: int = UNREAD  # of which so many may be there
    dropped: int = 0  # datagrams for which a receive queue had no room

    def worse(self, other: "Health") -> "Health":
        """The worse of two in each figure."""
        late = max(self.late, other.late, key=lambda each: each.percentile(99))
        fuller = max(self, other, key=lambda each: each.unread - each.room)
        return Health(
            late,
            max(self.cpu, other.cpu),
            fuller.unread,
            fuller.room,
            max(self.dropped, other.dropped),
        )

    @classmethod
    def worst(cls, each: Iterable["Health"]) -> "Health":
        """The worst figure of all."""
        found = cls()
        for one in each:
            found = found.worse(one)
        return found

    def complaints(self, late: float = LATE, cpu: float = BUSY) -> list[str]:
        """Why the generator itself may be the limit; empty if it is not."""
        found, timers = [], self.late.percentile(99)
        if timers > late:
            found.append(f"its timers were {timers:.0f} ms late (p99)")
        if self.cpu > cpu:
            found.append(f"it used {self.cpu:.0f}% of a core")
        if self.unread > self.room:
            found.append(f"{self.unread} bytes waited to be read")
        if self.dropped:
            found.append(f"its machine dropped {self.dropped} datagrams unread")
        return found

    def as_json(self) -> dict[str, Any]:
        """A JSON object; `parse` reads it."""
        return asdict(self) | {"late": self.late.as_json()}

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> "Health":
        """Read what `as_json` gave."""
        return cls(**{**found, "late": Delays.parse(found["late"])})
