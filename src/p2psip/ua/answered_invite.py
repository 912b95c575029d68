"""Our 2xx to an INVITE on its way to the ACK, the first one of a call and later ones.

Implements RFC 3261 §13.3.1.4.
"""

from typing import Self

from p2psip.dialog.acceptance import Acceptance, Todo
from p2psip.sip.message import Response
from p2psip.stack.stack import ServerHandle


class AnsweredInvite:
    """A 2xx that is repeated until its ACK comes (§13.3.1.4); the call does what it orders."""

    def __init__(self, server: ServerHandle, response: Response, acceptance: Acceptance) -> None:
        self._server, self._response, self._acceptance = server, response, acceptance

    @classmethod
    def start(
        cls, server: ServerHandle, response: Response, now: float, t1: float
    ) -> tuple[Self, Todo]:
        """Answer the INVITE for the first time (§13.3.1.4); `t1` is in seconds."""
        acceptance, todo = Acceptance.start(now, t1=t1)
        return cls(server, response, acceptance), todo

    @property
    def is_waiting(self) -> bool:
        """Whether the ACK has not come (§13.3.1.4)."""
        return not self._acceptance.finished

    @property
    def is_heard(self) -> bool:
        """Whether the caller has shown that it hears us (`ServerHandle`, §13.3.1.4)."""
        return self._server.is_heard

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (§13.3.1.4)."""
        return self._acceptance.deadline

    def send(self, now: float) -> None:
        """Send the 2xx, as `acceptance.Do.SEND_2XX` orders (§13.3.1.4)."""
        self._server.respond(self._response, now)

    def on_ack(self, number: int | None, now: float) -> Todo:
        """Take an ACK (§13.3.1.4); one that comes again, or for another INVITE, changes nothing.

        `number` is its CSeq number, None if the peer has shown in another way that it has our 2xx.
        """
        is_ours = number in (None, self._server.request.cseq.number)
        return self._acceptance.acknowledge(now) if is_ours else ()

    def tick(self, now: float) -> Todo:
        """Repeat the 2xx, or give up (§13.3.1.4)."""
        return self._acceptance.tick(now)
