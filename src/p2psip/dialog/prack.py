"""Provisional responses that must arrive: the sender's repetitions, the receiver's order.

Implements RFC 3262 §3 and §4.

    >>> ringing, todo = ReliableProvisional.start(now=0.0)
    >>> while ringing.deadline is not None:
    ...     now = ringing.deadline
    ...     print(f"{now:4} s ", *ringing.tick(now))
     0.5 s  1xx sent
     1.5 s  1xx sent
     3.5 s  1xx sent
     7.5 s  1xx sent
    15.5 s  1xx sent
    31.5 s  1xx sent
    32.0 s  no PRACK
"""

from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Final, NamedTuple, Self

from p2psip.errors import RemoteError
from p2psip.sip.grammar import LWS, first_word, number
from p2psip.sip.message import Response
from p2psip.transaction.invite_client import T1
from p2psip.transaction.machine import Machine

OPTION: Final = "100rel"  # Source: RFC 3262 §3
MAX_FIRST: Final = 2**31 - 1  # Source: RFC 3262 §3, of the first RSeq of an INVITE
MAX_NUMBER: Final = 2**32 - 1  # Source: RFC 3262 §7.1


class State(StrEnum):
    """Own design: the text of RFC 3262 §3 as boxes."""

    WAITING = "Waiting"
    ACKNOWLEDGED = "Acknowledged"
    ABANDONED = "Abandoned"


class Event(StrEnum):
    """Own design: the text of RFC 3262 §3 as arrows; of two due timers the later wins."""

    PRACK = "PRACK"
    FINAL = "final response"
    REPEAT = "Timer 1 fires"
    GIVE_UP = "Timer 2 fires"


class Do(StrEnum):
    """Orders to the caller (RFC 3262 §3)."""

    SEND_1XX = "1xx sent"
    CONFIRMED = "PRACK"
    UNHEARD = "no PRACK"  # reject the INVITE


Todo = tuple[Do, ...]

TEXT: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.WAITING: {
        Event.REPEAT: (State.WAITING, (Do.SEND_1XX,)),
        Event.GIVE_UP: (State.ABANDONED, (Do.UNHEARD,)),  # RFC 3262 §3 [5xx-without-prack]
        Event.PRACK: (State.ACKNOWLEDGED, (Do.CONFIRMED,)),  # RFC 3262 §3 [prack-ends-repeats]
        Event.FINAL: (State.ABANDONED, ()),  # RFC 3262 §3 [final-ends-repeats]
    },
    State.ACKNOWLEDGED: {},
    # RFC 3262 §3 [final-ends-repeats] [none-after-the-final]
    State.ABANDONED: {Event.PRACK: (State.ACKNOWLEDGED, ())},
}


class ReliableProvisional(Machine[State, Event, Do]):
    """One reliable provisional response on its way to its PRACK (RFC 3262 §3)."""

    figure = TEXT

    def __init__(self, now: float, t1: float) -> None:
        self._t1, self._gap = t1, t1
        super().__init__(State.WAITING, now)

    @classmethod
    def start(cls, now: float, *, t1: float = T1) -> tuple[Self, Todo]:
        """Send the response for the first time (§3); `t1` is in seconds."""
        return cls(now, t1), (Do.SEND_1XX,)

    def acknowledge(self, now: float) -> Todo:
        """Take the PRACK (§3)."""
        return self._on(Event.PRACK, now)

    def finish(self, now: float) -> Todo:
        """Stop repeating, since the INVITE has its final response (§3)."""
        return self._on(Event.FINAL, now)

    def _again(self, timer: Event) -> float:
        self._gap *= 2
        return self._gap

    def _delays(self) -> dict[Event, float]:
        if self.state is State.WAITING:
            return {Event.REPEAT: self._t1, Event.GIVE_UP: 64 * self._t1}
        return {}


class ProvisionalOrder:
    """The reliable provisional responses of one early dialog, in order (RFC 3262 §4)."""

    def __init__(self) -> None:
        self._last: int | None = None

    def take(self, rseq: int) -> bool:
        """Whether a response is to be processed: the first one, or the next in order (§4)."""
        # RFC 3262 §4 [keeps-the-number] [begins-with-the-first] [repeats-discarded]
        # RFC 3262 §4 [gaps-ignored]
        if self._last is not None and rseq != self._last + 1:
            return False
        self._last = rseq
        return True


def rseq_of(response: Response) -> int | None:
    """The number of a provisional response that wants a PRACK, None for any other (RFC 3262 §4).

    Own design: one whose number cannot be read is progress like any other.
    """
    required = (tag.lower() for tag in response.headers.all("Require", lenient=True))
    if OPTION in required and "RSeq" in response.headers:
        with suppress(RemoteError):
            return number(response.headers["RSeq"], MAX_NUMBER)
    return None


class RAck(NamedTuple):
    """What a PRACK acknowledges (RFC 3262 §7.2).

    >>> print(RAck.parse("776656 1 INVITE"))
    776656 1 INVITE
    """

    rseq: int
    cseq: int
    method: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value of the header (§7.2).  Raises RemoteError."""
        rseq, rest = first_word(text)
        cseq, method = first_word(rest.strip(LWS))
        if not method.strip(LWS):
            raise RemoteError("Bad RAck")
        return cls(number(rseq, MAX_NUMBER), number(cseq, MAX_NUMBER), method.strip(LWS))

    def __str__(self) -> str:
        return f"{self.rseq} {self.cseq} {self.method}"
