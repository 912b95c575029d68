"""The 2xx of an INVITE and its ACK, and the wait after a 491: work of the user agents.

Implements RFC 3261 §13.3.1.4 and §14.1, the former as corrected by RFC 6026 §8.1: a 2xx is repeated
by the core that answered, end to end, on every transport, until the ACK comes.

    >>> accepted, todo = Acceptance.start(now=0.0)
    >>> times = []
    >>> while accepted.deadline is not None:
    ...     times.append(f"{accepted.deadline:g}")
    ...     todo = accepted.tick(accepted.deadline)
    >>> " ".join(times), *todo
    ('0.5 1.5 3.5 7.5 11.5 15.5 19.5 23.5 27.5 31.5 32', <Do.UNHEARD: 'no ACK'>)
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, Self

from p2psip.transaction.client import T2
from p2psip.transaction.invite_client import T1
from p2psip.transaction.machine import Machine


class State(StrEnum):
    """Own design: the text of RFC 3261 §13.3.1.4 as boxes."""

    WAITING = "Waiting"
    ACKNOWLEDGED = "Acknowledged"
    ABANDONED = "Abandoned"


class Event(StrEnum):
    """Own design: the text of RFC 3261 §13.3.1.4 as arrows; of two due timers the later wins."""

    ACK = "ACK"
    REPEAT = "Timer 1 fires"
    GIVE_UP = "Timer 2 fires"


class Do(StrEnum):
    """Orders to the caller (RFC 3261 §13.3.1.4)."""

    SEND_2XX = "2xx sent"
    CONFIRMED = "ACK"
    UNHEARD = "no ACK"  # end the session by a BYE


Todo = tuple[Do, ...]

TEXT: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.WAITING: {
        Event.REPEAT: (State.WAITING, (Do.SEND_2XX,)),  # RFC 6026 §8.1 [2xx-repeats]
        Event.GIVE_UP: (State.ABANDONED, (Do.UNHEARD,)),  # §13.3.1.4 [ends-without-an-ack]
        Event.ACK: (State.ACKNOWLEDGED, (Do.CONFIRMED,)),  # RFC 6026 §8.1 [ack-hushes]
    },
    State.ACKNOWLEDGED: {},
    State.ABANDONED: {},
}


class Acceptance(Machine[State, Event, Do]):
    """A 2xx to an INVITE on its way to its ACK (§13.3.1.4, RFC 6026 §8.1)."""

    figure = TEXT

    def __init__(self, now: float, t1: float) -> None:
        self._t1, self._gap = t1, t1
        super().__init__(State.WAITING, now)

    @classmethod
    def start(cls, now: float, *, t1: float = T1) -> tuple[Self, Todo]:
        """Send the 2xx for the first time (§13.3.1.4); `t1` is in seconds."""
        return cls(now, t1), (Do.SEND_2XX,)

    def acknowledge(self, now: float) -> Todo:
        """Take the ACK (§13.3.1.4); one that comes again changes nothing."""
        return self._on(Event.ACK, now)

    def _again(self, timer: Event) -> float:
        self._gap = min(2 * self._gap, T2)  # RFC 6026 §8.1 [gaps-double-to-t2]
        return self._gap

    def _delays(self) -> dict[Event, float]:
        if self.state is State.WAITING:  # RFC 6026 §8.1 [gaps-double-to-t2]
            return {Event.REPEAT: self._t1, Event.GIVE_UP: 64 * self._t1}
        return {}


def glare_delay(random: Callable[[int], bytes], owner: bool) -> float:
    """Draw how long to wait, in seconds, before a re-INVITE that met a 491 is sent again (§14.1).

    `owner` is true of the side that chose the Call-ID: it waits longer, so that one of the two
    comes first.
    """
    share = int.from_bytes(random(4), "big") / 2**32
    low, high = (210, 400) if owner else (0, 200)  # §14.1 [491-waits]
    return (low + int(share * (high - low + 1))) / 100
