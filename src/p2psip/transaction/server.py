"""The non-INVITE server transaction: answer once, and repeat the answer when asked again.

Implements RFC 3261 §17.2.2, with Figure 8.

It repeats nothing by itself; only a repeated request draws the answer once more:

    >>> question, todo = NonInviteServer.start(now=0.0)
    >>> print(*todo, *question.receive(now=0.1), *question.respond(200, now=0.2))
    pass to TU response sent
    >>> print(*question.receive(now=0.5), *question.respond(500, now=0.6))
    response sent
    >>> question.deadline
    32.2
    >>> question.tick(32.2), question.state.value
    ((), 'Terminated')
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from p2psip.errors import LocalError
from p2psip.transaction.invite_client import T1
from p2psip.transaction.machine import Machine


class State(StrEnum):
    """The boxes of Figure 8 (§17.2.3)."""

    TRYING = "Trying"
    PROCEEDING = "Proceeding"
    COMPLETED = "Completed"
    TERMINATED = "Terminated"


class Event(StrEnum):
    """The events of Figure 8, above the lines beside its arrows (§17.2.3)."""

    REQUEST = "Request"
    PROVISIONAL = "1xx from TU"
    FINAL = "200-699 from TU"
    TIMER_J = "Timer J fires"
    TRANSPORT = "Trnsprt Err"


class Do(StrEnum):
    """The actions of Figure 8, below those lines: orders to the caller (§17.2.3)."""

    PASS_UP = "pass to TU"
    SEND_RESPONSE = "response sent"  # the latest one
    FAILED = "failure to TU"


Todo = tuple[Do, ...]

# Figure 8 as data: §17.2.3 [figure-8].  The arrows for a transport error end where they began,
# by RFC 6026 §8.8 [failure-told], which does not redraw this figure.
FIGURE_8: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.TRYING: {  # no arrow for a request: §17.2.2 [trying-drops-repeats]
        Event.PROVISIONAL: (State.PROCEEDING, (Do.SEND_RESPONSE,)),  # §17.2.2 [1xx-proceeds]
        Event.FINAL: (State.COMPLETED, (Do.SEND_RESPONSE,)),  # §17.2.2 [final-completes]
    },
    State.PROCEEDING: {
        # §17.2.2 [repeat-gets-latest-1xx]
        Event.REQUEST: (State.PROCEEDING, (Do.SEND_RESPONSE,)),
        Event.PROVISIONAL: (State.PROCEEDING, (Do.SEND_RESPONSE,)),  # §17.2.2 [more-1xx-sent]
        Event.FINAL: (State.COMPLETED, (Do.SEND_RESPONSE,)),  # §17.2.2 [final-completes]
        Event.TRANSPORT: (State.PROCEEDING, (Do.FAILED,)),  # RFC 6026 §8.8 [failure-told]
    },
    State.COMPLETED: {  # no arrow for another answer: §17.2.2 [first-final-stands]
        Event.REQUEST: (State.COMPLETED, (Do.SEND_RESPONSE,)),  # §17.2.2 [repeat-gets-final]
        Event.TIMER_J: (State.TERMINATED, ()),  # §17.2.2 [timer-j-ends]
        Event.TRANSPORT: (State.COMPLETED, (Do.FAILED,)),  # RFC 6026 §8.8 [failure-told]
    },
    State.TERMINATED: {},  # nothing leaves; the owner forgets it: §17.2.2 [destroyed-at-once]
}


class NonInviteServer(Machine[State, Event, Do]):
    """One request being answered; `state` is its current box of `FIGURE_8` (§17.2.3)."""

    figure = FIGURE_8

    def __init__(self, now: float, *, reliable: bool, t1: float) -> None:
        self._reliable, self._t1 = reliable, t1
        super().__init__(State.TRYING, now)  # §17.2.2 [starts-trying]

    @classmethod
    def start(cls, now: float, *, reliable: bool = False, t1: float = T1) -> tuple[Self, Todo]:
        """Take the figure's initial arrow (§17.2.2).

        `reliable` is true of TCP, TLS and WebSocket; `t1` is in seconds.
        """
        return cls(now, reliable=reliable, t1=t1), (Do.PASS_UP,)  # §17.2.2 [request-up]

    def receive(self, now: float) -> Todo:
        """Take a repetition of the request, matched to this transaction by §17.2.3."""
        return self._on(Event.REQUEST, now)

    def respond(self, status: int, now: float) -> Todo:
        """Take a response of the TU; orders to send it, or none when it comes too late (§17.2.2).

        Raises LocalError unless 100 <= `status` <= 699.
        """
        if not 100 <= status <= 699:
            raise LocalError(f"{status} is not a SIP status code")
        return self._on(Event.PROVISIONAL if status < 200 else Event.FINAL, now)

    def transport_failed(self, now: float) -> Todo:
        """Take the news that a response could not be sent (RFC 6026 §8.8)."""
        return self._on(Event.TRANSPORT, now)

    def _delays(self) -> dict[Event, float]:
        if self.state is State.COMPLETED:  # §17.2.2 [timer-j]
            return {Event.TIMER_J: 0.0 if self._reliable else 64 * self._t1}
        return {}
