"""What a referee says about one moment of a trace.

Own design: one line, with the time on the trace's clock and the clause.

    >>> print(Ruling(1.5, "INVITE should have been repeated (timer A)", "RFC 3261 §17.1.1.2"))
    t=1.500 INVITE should have been repeated (timer A): RFC 3261 §17.1.1.2
"""

from dataclasses import dataclass
from typing import Final

SLACK: Final = 0.2  # s, by which a timer may be early or late on a real network
ANSWER: Final = 1.0  # s, in which an element reacts to a message that needs no human


@dataclass(frozen=True, slots=True, order=True)
class Ruling:
    """A rule that the trace breaks; `time` is in seconds from its first message."""

    time: float
    text: str
    clause: str

    def __str__(self) -> str:
        return f"t={self.time:.3f} {self.text}: {self.clause}"
