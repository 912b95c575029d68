"""Our 2xx to an INVITE on its way to the ACK, the first one of a call and later ones.

Implements RFC 3261 §13.3.1.4.
"""

from typing import TYPE_CHECKING

from p2psip.dialog import acceptance
from p2psip.dialog.acceptance import Acceptance
from p2psip.sip.message import Request, Response
from p2psip.stack.stack import ServerHandle
from p2psip.ua.requests.request_validation import session

if TYPE_CHECKING:
    from p2psip.ua.call import UserAgentCall


class AnsweredInvite:
    """The 2xx that a call repeats until its ACK comes (§13.3.1.4).

    The call is told by `on_confirmed`, with the description in the ACK, or by `on_unheard`.
    """

    def __init__(self, call: "UserAgentCall") -> None:
        self._call = call
        self._acceptance: Acceptance | None = None
        self._sent: tuple[ServerHandle, Response] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the ACK has not come (§13.3.1.4)."""
        return self._acceptance is not None

    @property
    def is_heard(self) -> bool:
        """Whether the caller has shown that it hears us (`ServerHandle`, §13.3.1.4)."""
        return self._sent is not None and self._sent[0].is_heard

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (§13.3.1.4)."""
        return self._acceptance.deadline if self._acceptance is not None else None

    def send(self, server: ServerHandle, response: Response, now: float) -> None:
        """Answer an INVITE with a 2xx (§13.3.1.4)."""
        self._sent = server, response
        self._acceptance, todo = Acceptance.start(now, t1=self._call.agent.stack.t1)
        self._perform(todo, now)

    def on_ack(self, ack: Request, now: float) -> None:
        """Take an ACK (§13.3.1.4); one that comes again, or for another INVITE, changes nothing."""
        if self._sent is None or self._acceptance is None:
            return
        if ack.cseq.number == self._sent[0].request.cseq.number:
            self._perform(self._acceptance.acknowledge(now), now, session(ack))

    def presume(self, now: float) -> None:
        """Go on without the ACK, since the peer has shown that it has our 2xx (§14.2)."""
        if self._acceptance is not None:
            self._perform(self._acceptance.acknowledge(now), now)

    def tick(self, now: float) -> None:
        """Repeat the 2xx, or give up (§13.3.1.4)."""
        if self._acceptance is not None:
            self._perform(self._acceptance.tick(now), now)

    def forget(self) -> None:
        """Wait no longer, since the call has ended (§15)."""
        self._acceptance = None

    def _perform(self, todo: acceptance.Todo, now: float, sdp: bytes | None = None) -> None:
        assert self._sent is not None
        server, response = self._sent
        for do in todo:
            match do:
                case acceptance.Do.SEND_2XX:
                    server.respond(response, now)
                case acceptance.Do.CONFIRMED:
                    self._acceptance = None
                    self._call.on_confirmed(sdp, now)
                case acceptance.Do.UNHEARD:
                    self._acceptance = None
                    self._call.on_unheard(now)
        self._call.reschedule()
