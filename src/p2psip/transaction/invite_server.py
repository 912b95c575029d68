"""The INVITE server transaction: keep the caller waiting until there is a final response.

Implements RFC 3261 §17.2.1, with Figure 7 as redrawn by RFC 6026 §8.6.

A call that is refused to somebody who has gone away; every line is one wake-up:

    >>> call, todo = InviteServer.start(now=0.0)
    >>> print(" 0.0 s ", *todo)
     0.0 s  pass INV to TU
    >>> print(" 0.2 s ", *call.tick(now=0.2))
     0.2 s  100 sent
    >>> print(" 1.0 s ", *call.respond(486, now=1.0))
     1.0 s  response sent
    >>> while call.deadline is not None:
    ...     now = call.deadline
    ...     print(f"{now:4} s ", *call.tick(now))
     1.5 s  response sent
     2.5 s  response sent
     4.5 s  response sent
     8.5 s  response sent
    12.5 s  response sent
    16.5 s  response sent
    20.5 s  response sent
    24.5 s  response sent
    28.5 s  response sent
    32.5 s  response sent
    33.0 s  failure to TU
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from p2psip.errors import LocalError
from p2psip.transaction.client import T2, T4
from p2psip.transaction.invite_client import T1
from p2psip.transaction.machine import Machine

PATIENCE: Final = 0.2  # s, how long the TU may think before a 100 goes out: §17.2.1 [sends-100]


class State(StrEnum):
    """The boxes of Figure 7 (RFC 6026 §8.6)."""

    PROCEEDING = "Proceeding"
    COMPLETED = "Completed"
    CONFIRMED = "Confirmed"
    ACCEPTED = "Accepted"
    TERMINATED = "Terminated"


class Event(StrEnum):
    """The events of Figure 7, above the lines beside its arrows (RFC 6026 §8.6)."""

    INVITE = "INVITE"
    ACK = "ACK"
    SILENCE = "TU won't in 200 ms"
    PROVISIONAL = "1xx from TU"
    SUCCESS = "2xx from TU"
    FAILURE = "300-699 from TU"
    TIMER_G = "Timer G fires"
    TIMER_H = "Timer H fires"
    TIMER_I = "Timer I fires"
    TIMER_L = "Timer L fires"
    TRANSPORT = "Transport Err."


class Do(StrEnum):
    """The actions of Figure 7, below those lines: orders to the caller (RFC 6026 §8.6)."""

    PASS_UP = "pass INV to TU"
    SEND_100 = "100 sent"
    SEND_RESPONSE = "response sent"  # the latest one; a 100 when there is none yet
    ACK_UP = "ACK to TU"
    FAILED = "failure to TU"


Todo = tuple[Do, ...]

# Figure 7 as data: RFC 6026 §8.6 [figure-7].  An arrow that is not drawn is an event to ignore.
FIGURE_7: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.PROCEEDING: {
        Event.SILENCE: (State.PROCEEDING, (Do.SEND_100,)),  # §17.2.1 [sends-100]
        # §17.2.1 [repeat-gets-latest-1xx]
        Event.INVITE: (State.PROCEEDING, (Do.SEND_RESPONSE,)),
        Event.PROVISIONAL: (State.PROCEEDING, (Do.SEND_RESPONSE,)),  # §17.2.1 [1xx-sent]
        # RFC 6026 §6 [failure-keeps-state], §7.1 [failure-keeps-state] [failure-changes-nothing]
        Event.TRANSPORT: (State.PROCEEDING, (Do.FAILED,)),  # RFC 6026 §8.8 [failure-told]
        # RFC 6026 §6 [2xx-keeps-state], §7.1 [2xx-accepts], §8.5 [2xx-sent]
        # RFC 6026 §8.5 [2xx-accepts]
        Event.SUCCESS: (State.ACCEPTED, (Do.SEND_RESPONSE,)),
        Event.FAILURE: (State.COMPLETED, (Do.SEND_RESPONSE,)),  # §17.2.1 [failure-completes]
    },
    State.COMPLETED: {
        Event.INVITE: (State.COMPLETED, (Do.SEND_RESPONSE,)),  # §17.2.1 [repeat-in-completed]
        Event.TIMER_G: (State.COMPLETED, (Do.SEND_RESPONSE,)),  # §17.2.1 [timer-g-resends]
        Event.TIMER_H: (State.TERMINATED, (Do.FAILED,)),  # §17.2.1 [timer-h-gives-up]
        # RFC 6026 §6 [failure-keeps-state], §7.1 [failure-keeps-state] [failure-changes-nothing]
        Event.TRANSPORT: (State.COMPLETED, (Do.FAILED,)),  # RFC 6026 §8.8 [failure-told]
        Event.ACK: (State.CONFIRMED, ()),  # §17.2.1 [ack-confirms]
    },
    State.CONFIRMED: {  # no arrow for an ACK: §17.2.1 [absorbs-acks]
        Event.TIMER_I: (State.TERMINATED, ()),  # §17.2.1 [timer-i-ends]
    },
    State.ACCEPTED: {  # no timer repeats anything: RFC 6026 §7.1 [no-2xx-of-its-own]
        Event.INVITE: (State.ACCEPTED, ()),  # RFC 6026 §8.7 [absorbs-invites]
        # RFC 6026 §7.1 [more-2xx-sent], §8.7 [more-2xx-sent]
        Event.SUCCESS: (State.ACCEPTED, (Do.SEND_RESPONSE,)),
        Event.ACK: (State.ACCEPTED, (Do.ACK_UP,)),  # RFC 6026 §7.1 [ack-up], §8.7 [ack-up]
        # RFC 6026 §6 [failure-keeps-state], §7.1 [failure-keeps-state] [failure-changes-nothing]
        Event.TRANSPORT: (State.ACCEPTED, (Do.FAILED,)),  # RFC 6026 §8.8 [failure-told]
        # RFC 6026 §7.1 [timer-l-ends], §8.7 [timer-l-ends]
        Event.TIMER_L: (State.TERMINATED, ()),
    },
    State.TERMINATED: {},  # nothing leaves; the owner forgets it: RFC 6026 §8.7 [destroyed-at-once]
}


class InviteServer(Machine[State, Event, Do]):
    """One INVITE being answered; `state` is its current box of `FIGURE_7` (RFC 6026 §8.6)."""

    figure = FIGURE_7

    def __init__(self, now: float, *, reliable: bool, t1: float) -> None:
        self._reliable, self._t1, self._gap = reliable, t1, t1
        super().__init__(State.PROCEEDING, now)  # §17.2.1 [starts-proceeding]

    @classmethod
    def start(cls, now: float, *, reliable: bool = False, t1: float = T1) -> tuple[Self, Todo]:
        """Take the figure's initial arrow (§17.2.1).

        `reliable` is true of TCP, TLS and WebSocket; `t1` is in seconds.
        """
        return cls(now, reliable=reliable, t1=t1), (Do.PASS_UP,)  # §17.2.1 [request-up]

    def receive(self, method: str, now: float) -> Todo:
        """Take a repeated INVITE, or an ACK, matched to this transaction by §17.2.3.

        Raises LocalError for another method.
        """
        if method not in ("INVITE", "ACK"):
            raise LocalError(f"{method} is for another transaction")
        event = Event.ACK if method == "ACK" else Event.INVITE
        if event is Event.INVITE:
            self._stop(Event.SILENCE)  # any response does what the 100 was for
        return self._on(event, now)

    def respond(self, status: int, now: float) -> Todo:
        """Take a response of the TU; orders to send it, or none when it comes too late (§17.2.1).

        Raises LocalError unless 100 <= `status` <= 699.
        """
        if not 100 <= status <= 699:
            raise LocalError(f"{status} is not a SIP status code")
        if status >= 200:
            return self._on(Event.SUCCESS if status < 300 else Event.FAILURE, now)
        self._stop(Event.SILENCE)  # the TU spoke in time
        return self._on(Event.PROVISIONAL, now)

    def transport_failed(self, now: float) -> Todo:
        """Take the news that a response could not be sent (RFC 6026 §8.8)."""
        return self._on(Event.TRANSPORT, now)

    def _again(self, timer: Event) -> float | None:
        """Wind up timer G again; one 100 is enough."""
        if timer is Event.SILENCE:
            return super()._again(timer)
        self._gap = min(2 * self._gap, T2)  # §17.2.1 [timer-g-doubles-to-t2]
        return self._gap

    def _delays(self) -> dict[Event, float]:
        match self.state:
            case State.PROCEEDING:  # §17.2.1 [sends-100]
                return {Event.SILENCE: PATIENCE}
            case State.COMPLETED if self._reliable:
                return {Event.TIMER_H: 64 * self._t1}  # §17.2.1 [timer-h-starts]
            case State.COMPLETED:  # §17.2.1 [timer-g-starts] [timer-h-starts]
                return {Event.TIMER_G: self._t1, Event.TIMER_H: 64 * self._t1}
            case State.CONFIRMED:  # §17.2.1 [timer-i]
                return {Event.TIMER_I: 0.0 if self._reliable else T4}
            case State.ACCEPTED:  # RFC 6026 §7.1 [2xx-accepts], §8.7 [timer-l]
                return {Event.TIMER_L: 64 * self._t1}
            case _:
                return {}
