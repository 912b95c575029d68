"""A subscription to events, at the side that asks and at the side that tells.

Implements RFC 6665 §4.1.2, §4.1.3 and §4.2.2.

    >>> watching = Subscriber(0.0)
    >>> _ = watching.heard(SubscriptionState.parse("active;expires=600"), now=0.1)
    >>> print(watching.state, watching.deadline, *watching.tick(480.1))
    active 480.1 refresh
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Self

from p2psip.errors import RemoteError
from p2psip.sip.grammar import is_token, split
from p2psip.sip.params import find, parse_params
from p2psip.sip.views import seconds
from p2psip.transaction.invite_client import T1
from p2psip.transaction.machine import Machine

REFRESH_AT: Final = 0.8  # of the time that is left.  Own design: RFC 6665 §4.1.2.2 gives no share


class EventName(NamedTuple):
    """An event package with the id that tells subscriptions of one dialog apart (RFC 6665 §4.1.3).

    >>> EventName.parse("refer;id=93809824") == ("refer", "93809824")
    True
    """

    package: str
    id: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value of an Event header (§4.1.3).  Raises RemoteError."""
        package, *parameters = split(text, ";")
        if not is_token(package):
            raise RemoteError("Bad Event", 489)
        return cls(package, find(parse_params(parameters), "id") or "")

    def __str__(self) -> str:
        return f"{self.package};id={self.id}" if self.id else self.package


class SubscriptionState(NamedTuple):
    """The value of Subscription-State (RFC 6665 §4.1.3); times in seconds."""

    value: str
    expires: int | None = None
    reason: str = ""
    retry_after: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value of the header (§4.1.3).  Raises RemoteError."""
        value, *rest = split(text, ";")
        if not is_token(value):
            raise RemoteError("Bad Subscription-State")
        parameters = parse_params(rest)
        expires, retry = find(parameters, "expires"), find(parameters, "retry-after")
        return cls(
            value.lower(),
            None if expires is None else seconds(expires),
            (find(parameters, "reason") or "").lower(),
            None if retry is None else seconds(retry),
        )

    def __str__(self) -> str:
        fields = ("expires", self.expires), ("reason", self.reason), ("retry-after", self[3])
        parameters = (f";{name}={value}" for name, value in fields if value not in (None, ""))
        return self.value + "".join(parameters)


class State(StrEnum):
    """The boxes of the figure in RFC 6665 §4.1.2, and of a notifier's text (§4.2.2)."""

    NOTIFY_WAIT = "notify_wait"
    PENDING = "pending"
    ACTIVE = "active"
    TERMINATED = "terminated"


class Event(StrEnum):
    """The arrows of the figure in RFC 6665 §4.1.2; of two due timers the later wins."""

    IS_ACTIVE = "NOTIFY, state=active"
    IS_PENDING = "NOTIFY, state=pending"
    IS_TERMINATED = "NOTIFY, state=terminated"
    REFUSED = "SUBSCRIBE failure response"
    REFRESH = "Timer: refresh is due"
    UNHEARD = "Timer: N fires or the time is over"


class Do(StrEnum):
    """Orders to the caller (RFC 6665 §4.1.2)."""

    REFRESH = "refresh"
    OVER = "over"


Todo = tuple[Do, ...]

_ENDS: Final[Mapping[Event, tuple[State, Todo]]] = {
    # RFC 6665 §4.1.3 [terminated-is-the-end], §4.1.2.2 [refusals-that-end]
    Event.IS_TERMINATED: (State.TERMINATED, (Do.OVER,)),
    Event.REFUSED: (State.TERMINATED, (Do.OVER,)),
    Event.UNHEARD: (State.TERMINATED, (Do.OVER,)),
}
FIGURE: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.NOTIFY_WAIT: {
        Event.IS_ACTIVE: (State.ACTIVE, ()),
        Event.IS_PENDING: (State.PENDING, ()),
        **_ENDS,
    },
    State.PENDING: {
        Event.IS_ACTIVE: (State.ACTIVE, ()),
        Event.IS_PENDING: (State.PENDING, ()),
        Event.REFRESH: (State.PENDING, (Do.REFRESH,)),
        **_ENDS,
    },
    State.ACTIVE: {
        Event.IS_ACTIVE: (State.ACTIVE, ()),
        Event.IS_PENDING: (State.PENDING, ()),
        Event.REFRESH: (State.ACTIVE, (Do.REFRESH,)),
        **_ENDS,
    },
    State.TERMINATED: {},
}


class Subscriber(Machine[State, Event, Do]):
    """One subscription at the side that asked for it (RFC 6665 §4.1.2)."""

    figure = FIGURE

    def __init__(self, now: float, *, t1: float = T1) -> None:
        self._t1, self._lifetime = t1, 0.0
        super().__init__(State.NOTIFY_WAIT, now)

    @property
    def is_up(self) -> bool:
        """Whether a NOTIFY has begun it and none has ended it (RFC 6665 §4.1.2)."""
        return self.state in (State.PENDING, State.ACTIVE)

    def heard(self, told: SubscriptionState, now: float) -> Todo:
        """Take the state that a NOTIFY tells (RFC 6665 §4.1.3)."""
        if told.expires is not None:
            self._lifetime = float(told.expires)  # RFC 6665 §4.1.3 [expires-counts]
        event = {
            "active": Event.IS_ACTIVE,
            "terminated": Event.IS_TERMINATED,
        }.get(told.value, Event.IS_PENDING)
        todo = self._on(event, now)
        if self.is_up:
            self._enter(self.state, now)
        return todo

    def refused(self, now: float) -> Todo:
        """Take that a SUBSCRIBE was refused for good (RFC 6665 §4.1.2.2)."""
        return self._on(Event.REFUSED, now)

    def asked(self, now: float) -> None:
        """Wait for the NOTIFY that follows a new SUBSCRIBE (RFC 6665 §4.1.2.2)."""
        self._timers.clear()
        self.deadline = None
        if not self.finished:
            self._run(Event.UNHEARD, now + 64 * self._t1)

    def _delays(self) -> dict[Event, float]:
        if self.state is State.NOTIFY_WAIT:
            return {Event.UNHEARD: 64 * self._t1}  # Timer N: RFC 6665 §4.1.2.4
        if self.is_up and self._lifetime:
            return {Event.REFRESH: self._lifetime * REFRESH_AT, Event.UNHEARD: self._lifetime}
        return {}


class Notifier:
    """One subscription at the side that tells (RFC 6665 §4.2.2): its state and its time."""

    def __init__(self, expires: int, now: float) -> None:
        self.state = State.PENDING
        self.reason = ""
        self._until = now + expires

    @property
    def deadline(self) -> float | None:
        """When the time is over (RFC 6665 §4.2.1.4)."""
        return None if self.state is State.TERMINATED else self._until

    def refresh(self, expires: int, now: float) -> None:
        """Begin the time anew, by a new SUBSCRIBE (RFC 6665 §4.2.1.4); 0 ends it."""
        self._until = now + expires
        if expires == 0:
            self.end("timeout")

    def accept(self) -> None:
        """Accept the subscription: from now on its notifications are sent (RFC 6665 §4.2.2)."""
        if self.state is State.PENDING:
            self.state = State.ACTIVE

    def end(self, reason: str) -> None:
        """End it, for a reason of RFC 6665 §4.1.3."""
        if self.state is not State.TERMINATED:
            self.state, self.reason = State.TERMINATED, reason

    def tick(self, now: float) -> bool:
        """Whether the time is over now (RFC 6665 §4.2.1.4)."""
        if self.deadline is None or now < self._until:
            return False
        self.end("timeout")  # RFC 6665 §4.2.1.4 [reason-timeout]
        return True

    def header(self, now: float) -> SubscriptionState:
        """The value of Subscription-State for a NOTIFY (RFC 6665 §4.2.2)."""
        if self.state is State.TERMINATED:
            # RFC 6665 §4.2.2 [ends-with-a-reason], §4.1.3 [no-expires-at-the-end]
            return SubscriptionState("terminated", reason=self.reason)
        # RFC 6665 §4.2.2 [one-of-three] [says-what-is-left]
        return SubscriptionState(self.state.value, max(int(self._until - now), 0))
