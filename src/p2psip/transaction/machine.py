"""The base of the transaction machines: a figure as a table, and its timers.

Own design: RFC 3261 §17 draws each transaction as boxes and arrows.  A subclass holds its
drawing as a table and says which timers start on entering a box; nothing here stops a timer,
because a timer dies when the machine reaches a box that has no arrow for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S", bound=StrEnum)  # the boxes
E = TypeVar("E", bound=StrEnum)  # what stands above the line beside an arrow
D = TypeVar("D", bound=StrEnum)  # what stands below it: orders to the caller


class Machine(ABC, Generic[S, E, D]):
    """One transaction; `state` is its current box.  Times are in seconds.

    `deadline` is when to call `tick`, None while there is nothing to wait for.
    It never sees a message, a socket or a clock.
    """

    figure: Mapping[S, Mapping[E, tuple[S, tuple[D, ...]]]]

    def __init__(self, state: S, now: float) -> None:
        self._timers: dict[E, float] = {}
        self.deadline: float | None = None
        self._enter(state, now)

    @property
    def finished(self) -> bool:
        """Whether no arrow leaves this box, so that the owner may forget the machine."""
        return not self.figure[self.state]

    def tick(self, now: float) -> tuple[D, ...]:
        """Fire one timer that is due; do nothing if none is.

        A loop that wakes late gets one retransmission, not a burst to catch up,
        and none at all once the timer that gives up is due too.  The later letter wins: `max` finds
        it, since events compare by their names (Timer A < Timer B, E < F, G < H).
        """
        due = [timer for timer, at in self._timers.items() if at <= now]
        return self._on(max(due), now) if due else ()

    def _on(self, event: E, now: float) -> tuple[D, ...]:
        """Follow the arrow of `event`; one that is not drawn is an event to ignore."""
        target, todo = self.figure[self.state].get(event, (self.state, ()))
        if target is not self.state:
            self._enter(target, now)
        elif event in self._timers:  # it fired in place: start it again, or not
            self._stop(event)
            if (gap := self._again(event)) is not None:
                self._run(event, now + gap)
        return todo

    def _run(self, timer: E, at: float) -> None:
        """Have a timer fire at `at`."""
        self._timers[timer] = at
        self.deadline = min(self._timers.values())

    def _stop(self, timer: E) -> None:
        """Stop a timer that may run."""
        if self._timers.pop(timer, None) is not None:
            self.deadline = min(self._timers.values(), default=None)

    def _enter(self, state: S, now: float) -> None:
        """Start the timers of `state`; those it has no arrow for die."""
        self.state = state
        arrows = self.figure[state]
        timers = {timer: now + delay for timer, delay in self._delays().items()}
        for timer, at in self._timers.items():
            if timer in arrows and timer not in timers:
                timers[timer] = at
        self._timers = timers
        self.deadline = min(self._timers.values(), default=None)

    @abstractmethod
    def _delays(self) -> dict[E, float]:
        """Return the timers that start on entering the present box, and how long they run."""

    def _again(self, timer: E) -> float | None:
        """Return how long `timer` runs after firing in place; None if it fires once."""
        return None
