"""The non-INVITE client transaction: repeat a request until it is answered.

Implements RFC 3261 §17.1.2.2, with Figure 6.

Unlike an INVITE, a request of this kind is expected to be answered at once.  So it is repeated even
after a provisional response, and the server needs no acknowledgement:

    >>> question, todo = NonInviteClient.start(now=0.0)
    >>> print(" 0.0 s ", *todo)
     0.0 s  request sent
    >>> print(" 0.2 s ", *question.receive(100, now=0.2))
     0.2 s  resp. to TU
    >>> while question.state is State.PROCEEDING:
    ...     now = question.deadline
    ...     print(f"{now:4} s ", *question.tick(now))
     0.5 s  request sent
     4.5 s  request sent
     8.5 s  request sent
    12.5 s  request sent
    16.5 s  request sent
    20.5 s  request sent
    24.5 s  request sent
    28.5 s  request sent
    32.0 s  timeout to TU
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from p2psip.errors import LocalError
from p2psip.transaction.invite_client import T1
from p2psip.transaction.machine import Machine

T2: Final = 4.0  # s, the longest gap between repetitions: §17.1.2.2 [t2-default]
T4: Final = 5.0  # s, how long a message may linger in the network: §17.1.2.2 [t4-default]


class State(StrEnum):
    """The boxes of Figure 6 (§17.1.2.2)."""

    TRYING = "Trying"
    PROCEEDING = "Proceeding"
    COMPLETED = "Completed"
    TERMINATED = "Terminated"


class Event(StrEnum):
    """The events of Figure 6, above the lines beside its arrows (§17.1.2.2)."""

    PROVISIONAL = "1xx"
    FINAL = "200-699"
    TIMER_E = "Timer E fires"
    TIMER_F = "Timer F fires"
    TIMER_K = "Timer K fires"
    TRANSPORT = "Transport Err."


class Do(StrEnum):
    """The actions of Figure 6, below those lines: orders to the caller (§17.1.2.2)."""

    SEND_REQUEST = "request sent"
    PASS_UP = "resp. to TU"
    TIMED_OUT = "timeout to TU"  # the TU treats it as a 408: §8.1.3.1
    UNREACHABLE = "transport error to TU"  # the TU treats it as a 503: §8.1.3.1


Todo = tuple[Do, ...]

# Figure 6 as data: §17.1.4 [figure-6], for that is where the RFC's pages put it.
FIGURE_6: Final[Mapping[State, Mapping[Event, tuple[State, Todo]]]] = {
    State.TRYING: {
        Event.TIMER_E: (State.TRYING, (Do.SEND_REQUEST,)),  # §17.1.2.2 [timer-e-doubles-to-t2]
        Event.TIMER_F: (State.TERMINATED, (Do.TIMED_OUT,)),  # §17.1.2.2 [timer-f-in-trying]
        Event.TRANSPORT: (State.TERMINATED, (Do.UNREACHABLE,)),  # §17.1.4 [failure-ends]
        Event.PROVISIONAL: (State.PROCEEDING, (Do.PASS_UP,)),  # §17.1.2.2 [1xx-proceeds]
        Event.FINAL: (State.COMPLETED, (Do.PASS_UP,)),  # §17.1.2.2 [final-completes]
    },
    State.PROCEEDING: {  # timers E and F run on
        Event.TIMER_E: (State.PROCEEDING, (Do.SEND_REQUEST,)),  # §17.1.2.2 [timer-e-in-proceeding]
        Event.TIMER_F: (State.TERMINATED, (Do.TIMED_OUT,)),  # §17.1.2.2 [timer-f-in-proceeding]
        Event.TRANSPORT: (State.TERMINATED, (Do.UNREACHABLE,)),  # §17.1.4 [failure-ends]
        Event.PROVISIONAL: (State.PROCEEDING, (Do.PASS_UP,)),
        Event.FINAL: (State.COMPLETED, (Do.PASS_UP,)),  # §17.1.2.2 [final-completes]
    },
    State.COMPLETED: {  # no arrow for a response: §17.1.2.2 [buffers-repeats]
        Event.TIMER_K: (State.TERMINATED, ()),  # §17.1.2.2 [timer-k-ends]
    },
    State.TERMINATED: {},  # nothing leaves; the owner forgets it: §17.1.2.2 [destroyed-at-once]
}


class NonInviteClient(Machine[State, Event, Do]):
    """One request on its way to one answer; `state` is its current box of `FIGURE_6` (§17.1.4)."""

    figure = FIGURE_6

    def __init__(self, now: float, *, reliable: bool, t1: float) -> None:
        self._reliable, self._t1, self._gap = reliable, t1, t1
        super().__init__(State.TRYING, now)  # §17.1.2.2 [starts-trying]

    @classmethod
    def start(cls, now: float, *, reliable: bool = False, t1: float = T1) -> tuple[Self, Todo]:
        """Take the figure's initial arrow (§17.1.2.2).

        `reliable` is true of TCP, TLS and WebSocket; `t1` is in seconds.
        """
        return cls(now, reliable=reliable, t1=t1), (Do.SEND_REQUEST,)  # §17.1.2.2 [sends-request]

    def receive(self, status: int, now: float) -> Todo:
        """Take a response matched to this transaction by §17.1.3.

        Raises LocalError unless 100 <= `status` <= 699: a bug in the caller.
        """
        if not 100 <= status <= 699:
            raise LocalError(f"{status} is not a SIP status code")
        return self._on(Event.PROVISIONAL if status < 200 else Event.FINAL, now)

    def transport_failed(self, now: float) -> Todo:
        """Take the news that a request could not be sent (§17.1.4)."""
        return self._on(Event.TRANSPORT, now)

    def _again(self, timer: Event) -> float:
        """Wind up timer E, the only one that fires in place."""
        if self.state is State.PROCEEDING:
            return T2  # §17.1.2.2 [timer-e-at-t2]
        self._gap = min(2 * self._gap, T2)  # §17.1.2.2 [timer-e-doubles-to-t2]
        return self._gap

    def _delays(self) -> dict[Event, float]:
        match self.state:
            case State.TRYING if self._reliable:
                return {Event.TIMER_F: 64 * self._t1}
            case State.TRYING:  # §17.1.2.2 [timer-e-starts] [timer-f-starts]
                return {Event.TIMER_E: self._t1, Event.TIMER_F: 64 * self._t1}
            case State.COMPLETED:  # §17.1.2.2 [timer-k]
                return {Event.TIMER_K: 0.0 if self._reliable else T4}
            case _:
                return {}
