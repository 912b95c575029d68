"""The states of a session from its opening on, and how long the last ones last.

Implements RFC 7016 §3.5, Figure 8, and §3.5.5.

    >>> closing = Closing()
    >>> closing.enter(State.NEARCLOSE, 0.0)
    >>> closing.is_to_ask(0.0), closing.is_to_ask(4.0), closing.is_to_ask(5.0)
    (True, False, True)
    >>> closing.is_over(89.0), closing.is_over(90.0)
    (False, True)
"""

from enum import StrEnum
from math import inf
from typing import Final

CLOSE_AGAIN_SECONDS: Final = 5.0
NEARCLOSE_SECONDS: Final = 90.0
FARCLOSE_LINGER_SECONDS: Final = 19.0


class State(StrEnum):
    """Where a session stands, from its opening on: §3.5, Figure 8."""

    OPEN = "S_OPEN"
    NEARCLOSE = "S_NEARCLOSE"
    FARCLOSE_LINGER = "S_FARCLOSE_LINGER"
    CLOSED = "S_CLOSED"


class Closing:
    """The alarms of the closing states: §3.5.5."""

    __slots__ = ("_ask_at", "_over_at")

    def __init__(self) -> None:
        self._ask_at = self._over_at = inf

    @property
    def deadline(self) -> float | None:
        """When to look again, None for never.  Own design: see `Session.deadline`."""
        deadline = min(self._ask_at, self._over_at)
        return None if deadline == inf else deadline

    def enter(self, state: State, now: float) -> None:
        """Begin a state; when the last one is reached nothing is left to wait for: §3.5.5."""
        self._ask_at = self._over_at = inf
        if state is State.NEARCLOSE:
            self._ask_at = now
            self._over_at = now + NEARCLOSE_SECONDS  # §3.5.5 [nearclose-90]
        elif state is State.FARCLOSE_LINGER:
            self._over_at = now + FARCLOSE_LINGER_SECONDS  # §3.5.5 [linger-19]

    def is_to_ask(self, now: float) -> bool:
        """Whether to send a Session Close Request now: §3.5.5 [close-repeats]."""
        if now < self._ask_at:
            return False
        self._ask_at = now + CLOSE_AGAIN_SECONDS  # §3.5.5 [close-repeats]
        return True

    def is_over(self, now: float) -> bool:
        """Whether the wait has been long enough: §3.5.5 [nearclose-90] [linger-19]."""
        return now >= self._over_at
