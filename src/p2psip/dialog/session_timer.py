"""The session timer: one side refreshes the session, so that both notice when the other is gone.

Implements RFC 4028 §4, §7.2, §9 and §10.

    >>> timer = SessionTimer(0.0)
    >>> timer.agree(SessionExpires(1800, "uac"), refreshes=True, now=0.0)
    >>> print(timer.state, timer.deadline, *timer.tick(900.0))
    we refresh 900.0 refresh
    >>> print(timer.deadline, *timer.tick(1768.0))
    1768.0 expired
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Self

from p2psip.errors import RemoteError
from p2psip.sip.grammar import number, split
from p2psip.sip.params import find, parse_params
from p2psip.transaction.machine import Machine

INTERVAL: Final = 1800  # s.  Source: RFC 4028 §4
# Field §"Short session timers"
LEAST: Final = 90  # s.  Source: RFC 4028 §9, of our Min-SE and when there is none
MARGIN: Final = 32.0  # s before the expiration, or a third of it: RFC 4028 §10
MAX_SECONDS: Final = 2**31 - 1


class SessionExpires(NamedTuple):
    """The value of Session-Expires (RFC 4028 §4); `refresher` is "uac", "uas", or "".

    >>> print(SessionExpires.parse("4000;Refresher=UAC"))
    4000;refresher=uac
    """

    interval: int
    refresher: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value (RFC 4028 §4).  Raises RemoteError."""
        seconds, *parameters = split(text, ";")
        refresher = (find(parse_params(parameters), "refresher") or "").lower()
        if refresher not in ("", "uac", "uas"):
            raise RemoteError("Bad Session-Expires")
        return cls(number(seconds, MAX_SECONDS), refresher)

    def __str__(self) -> str:
        return f"{self.interval};refresher={self.refresher}" if self.refresher else f"{self[0]}"


class State(StrEnum):
    """Own design: RFC 4028 §7.2 and §9 as boxes."""

    OFF = "off"
    WE_REFRESH = "we refresh"
    THEY_REFRESH = "they refresh"
    EXPIRED = "expired"


class Event(StrEnum):
    """Own design: the timers of RFC 4028 §10; of two that are due the later wins."""

    HALF = "half of the interval"
    LATE = "shortly before the expiration"


class Do(StrEnum):
    """Orders to the caller (RFC 4028 §10)."""

    REFRESH = "refresh"
    EXPIRED = "expired"  # send a BYE


Todo = tuple[Do, ...]

TEXT: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.OFF: {},
    State.WE_REFRESH: {
        # RFC 4028 §7.2 [refreshes-in-time] [at-half-the-interval]
        # RFC 4028 §9 [refreshes-in-time] [at-half-the-interval]
        Event.HALF: (State.WE_REFRESH, (Do.REFRESH,)),
        Event.LATE: (State.EXPIRED, (Do.EXPIRED,)),
    },
    State.THEY_REFRESH: {
        # RFC 4028 §10 [bye-without-a-refresh] [a-third-or-32-s]
        Event.LATE: (State.EXPIRED, (Do.EXPIRED,)),
    },
    State.EXPIRED: {},
}


class SessionTimer(Machine[State, Event, Do]):
    """The session timer of one dialog at one side (RFC 4028 §7.2)."""

    figure = TEXT

    def __init__(self, now: float) -> None:
        self.interval = 0
        self._expires_at = now
        super().__init__(State.OFF, now)

    @property
    def is_on(self) -> bool:
        """Whether the session has to be refreshed, by whichever side (RFC 4028 §7.2)."""
        return self.state in (State.WE_REFRESH, State.THEY_REFRESH)

    def agree(self, terms: SessionExpires | None, *, refreshes: bool, now: float) -> None:
        """Begin anew by a 2xx, with its terms; None turns the timer off (RFC 4028 §7.2)."""
        if terms is None:
            self._enter(State.OFF, now)
            return
        self.interval = terms.interval
        self._expires_at = now + terms.interval
        self._enter(State.WE_REFRESH if refreshes else State.THEY_REFRESH, now)

    def failed(self, now: float) -> None:
        """Refresh again when half of the rest has passed, since a refresh failed (RFC 4028 §10)."""
        if self.state is State.WE_REFRESH:
            # RFC 4028 §10 [not-continuously]
            self._run(Event.HALF, now + (self._expires_at - now) / 2)

    def _delays(self) -> dict[Event, float]:
        if not self.is_on:
            return {}
        late = self.interval - min(MARGIN, self.interval / 3)
        half = {Event.HALF: self.interval / 2} if self.state is State.WE_REFRESH else {}
        return {**half, Event.LATE: late}


def answer(
    wanted: SessionExpires | None, least: int, ours: int, *, supported: bool
) -> SessionExpires | None:
    """Choose the terms of a 2xx: RFC 4028 §9, Table 2.

    `wanted` and `least` are Session-Expires and Min-SE of the request, `ours` our wish; None if no
    timer is to run.
    """
    if wanted is None:
        # RFC 4028 §9 [unasked-above-min-se]
        return SessionExpires(max(ours, least), "uas") if supported else None
    if not supported:
        return SessionExpires(wanted.interval, "uas")
    # RFC 4028 §9 [no-lower-than-min-se] [not-increased] [names-the-refresher]
    return SessionExpires(wanted.interval, wanted.refresher or "uac")
