"""Many registrations as one machine, with their keep-alives.

Own design: they have one deadline, and no event looks at all of them but one of a shared flow.
"""

from collections.abc import Callable

from p2psip.stack.stack import Stack
from p2psip.transaction.flow import Flow
from p2psip.transaction.table import TimerQueue
from p2psip.ua.registering.registration import Registration


class Registrations:
    """The registrations of one stack, which `ping` and `lose` flows: RFC 3261 §10.2."""

    def __init__(self) -> None:
        self.ping: Callable[[Flow, bytes], None] | None = None
        self.lose: Callable[[Flow], None] = lambda flow: None
        self._members: set[Registration] = set()
        self._timer_queue = TimerQueue[Registration]()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, registration: Registration) -> None:
        """Drive one more registration, which reports its deadlines."""
        self._members.add(registration)
        self._timer_queue.set(registration, registration.deadline)
        registration.on_deadline = self._timer_queue.set
        registration.ping, registration.lose = self.ping, self.lose

    def follow(self, stack: Stack) -> None:
        """Hear of the connections that a stack has lost: RFC 5626 §4.5."""
        before = stack.on_lost

        def on_lost(flow: Flow, now: float) -> None:
            before(flow, now)
            for registration in list(self._members):
                registration.on_flow_lost(flow, now)

        stack.on_lost = on_lost

    def heard(self, flow: Flow, data: bytes, now: float) -> bool:
        """Take what may answer keep-alives of all that share a flow: RFC 5626 §4.4."""
        return any([each.heard(flow, data, now) for each in list(self._members)])

    def discard(self, registration: Registration) -> None:
        """Remove a registration that has been closed, and so has no deadline."""
        self._members.discard(registration)

    def move(self, host: str, port: int, now: float) -> None:
        """Have all of them register this address of ours: RFC 3261 §10.2."""
        for registration in list(self._members):
            registration.move(host, port, now)

    @property
    def deadline(self) -> float | None:
        return self._timer_queue.deadline

    def tick(self, now: float) -> None:
        """Tick each that is due: RFC 3261 §10.2.4."""
        for registration in self._timer_queue.due(now):
            registration.tick(now)
