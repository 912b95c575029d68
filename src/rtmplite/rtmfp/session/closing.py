"""The states of a session from S_OPEN on, as a table, and how long the last ones last.

Implements RFC 7016 §3.5.5 and the lower half of Figure 8 in §3.5.  What precedes S_OPEN is the
initiator's: see `endpoint`.

    >>> closing = Closing()
    >>> print(*closing.on(Event.ORDERLY_CLOSE, 0.0), closing.state, closing.deadline)
    send Close Request S_NEARCLOSE 5.0
    >>> print(*closing.tick(5.0), closing.state, closing.deadline)
    send Close Request S_NEARCLOSE 10.0
    >>> print(*closing.tick(90.0), closing.state, closing.deadline)
    S_CLOSED None
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The boxes of Figure 8 from the open session on: §3.5."""

    OPEN = "S_OPEN"
    NEARCLOSE = "S_NEARCLOSE"
    FARCLOSE_LINGER = "S_FARCLOSE_LINGER"
    CLOSED = "S_CLOSED"


class Event(StrEnum):
    """The labels of Figure 8's arrows, and the alarm that repeats a Close Request: §3.5.5."""

    ORDERLY_CLOSE = "ORDERLY CLOSE"
    ABRUPT_CLOSE = "ABRUPT CLOSE"
    CLOSE_REQUEST = "rcv Close Request"
    CLOSE_ACK = "rcv Close Ack"
    OVERRIDE = "session override"  # another session takes the place of this one
    ASK_AGAIN = "5 seconds"
    NEARCLOSE_ENDS = "90 seconds"
    LINGER_ENDS = "19 seconds"


class Do(StrEnum):
    """The chunk that an arrow sends: §3.5.5."""

    ASK = "send Close Request"
    ACKNOWLEDGE = "send Close Ack"


Todo = tuple[Do, ...]

# An arrow that is not drawn is an event to ignore.
FIGURE_8: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.OPEN: {
        Event.ORDERLY_CLOSE: (State.NEARCLOSE, (Do.ASK,)),
        # §3.5.5 [close-acknowledged]
        Event.CLOSE_REQUEST: (State.FARCLOSE_LINGER, (Do.ACKNOWLEDGE,)),
        Event.CLOSE_ACK: (State.CLOSED, ()),  # §3.5.5 [close-ack-closes]
        Event.ABRUPT_CLOSE: (State.CLOSED, (Do.ACKNOWLEDGE,)),  # §3.5.5 [abrupt-close]
        Event.OVERRIDE: (State.CLOSED, ()),
    },
    State.NEARCLOSE: {
        Event.ASK_AGAIN: (State.NEARCLOSE, (Do.ASK,)),  # §3.5.5 [close-repeats]
        Event.CLOSE_REQUEST: (State.NEARCLOSE, (Do.ACKNOWLEDGE,)),  # §3.5.5 [close-acknowledged]
        Event.CLOSE_ACK: (State.CLOSED, ()),  # §3.5.5 [close-ack-closes]
        Event.NEARCLOSE_ENDS: (State.CLOSED, ()),  # §3.5.5 [nearclose-90]
        Event.ABRUPT_CLOSE: (State.CLOSED, (Do.ACKNOWLEDGE,)),  # §3.5.5 [abrupt-close]
        Event.OVERRIDE: (State.CLOSED, ()),
    },
    State.FARCLOSE_LINGER: {
        # §3.5.5 [close-acknowledged]
        Event.CLOSE_REQUEST: (State.FARCLOSE_LINGER, (Do.ACKNOWLEDGE,)),
        Event.CLOSE_ACK: (State.CLOSED, ()),  # §3.5.5 [close-ack-closes]
        Event.LINGER_ENDS: (State.CLOSED, ()),  # §3.5.5 [linger-19]
        Event.ABRUPT_CLOSE: (State.CLOSED, (Do.ACKNOWLEDGE,)),  # §3.5.5 [abrupt-close]
        Event.OVERRIDE: (State.CLOSED, ()),
    },
    State.CLOSED: {},
}

# Seconds after a state was entered, or its alarm has rung without leaving it: §3.5.5.
ALARMS: Final[Mapping[State, Mapping[Event, float]]] = {
    State.OPEN: {},
    # §3.5.5 [nearclose-90] [close-repeats]; of two that are due the first one rings.
    State.NEARCLOSE: {Event.NEARCLOSE_ENDS: 90.0, Event.ASK_AGAIN: 5.0},
    State.FARCLOSE_LINGER: {Event.LINGER_ENDS: 19.0},  # §3.5.5 [linger-19]
    State.CLOSED: {},
}


class Closing:
    """The state of one session in Figure 8, and its alarms there: §3.5.5."""

    __slots__ = ("_alarms", "state")

    def __init__(self) -> None:
        self.state = State.OPEN
        self._alarms: dict[Event, float] = {}

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, None for never: §3.5.5."""
        return min(self._alarms.values(), default=None)

    def on(self, event: Event, now: float) -> Todo:
        """Follow the arrow of `event`, and return the chunks to send: §3.5.5."""
        former = self.state
        self.state, todo = FIGURE_8[former].get(event, (former, ()))
        if self.state is not former:
            self._alarms = {alarm: now + wait for alarm, wait in ALARMS[self.state].items()}
        return todo

    def tick(self, now: float) -> Todo:
        """Ring the alarm that is due, if any: §3.5.5 [nearclose-90] [linger-19]."""
        due = next((alarm for alarm, at in self._alarms.items() if at <= now), None)
        if due is None:
            return ()
        self._alarms[due] = now + ALARMS[self.state][due]  # §3.5.5 [close-repeats]
        return self.on(due, now)
