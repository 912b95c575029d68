"""A call that we receive.

Implements RFC 3261 §13.3 and §9.2.

    INVITE -> ring: 1xx -> accept: 200 until the ACK, on_accepted -> ... BYE
           |            -> reject: 3xx-6xx
           +-- CANCEL: 487, on_cancelled      silence: 480, on_rejected
"""

from typing import Final

from p2psip.dialog import prack
from p2psip.dialog.dialog import Dialog
from p2psip.errors import LocalError
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.causes import NO_ANSWER
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL
from p2psip.ua.call import CallHandler, UserAgentCall
from p2psip.ua.call_events import CallState, Timer
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.core import UserAgentCore, invite_key
from p2psip.ua.dialog_response import dialog_response
from p2psip.ua.reliable_responses import ReliableResponses
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.requests.request_validation import offer_of, warnings

NO_PRACK: Final = "No PRACK"  # the cause of a 504: RFC 3262 §3
PROGRESS_EVERY: Final = 60.0  # s between provisional responses: §13.3.1.1


class IncomingCall(UserAgentCall):
    """A call from the INVITE we received on (§13.3).

    `replaced` is the call whose place it takes once it is accepted (RFC 3891 §3).

    Raises RemoteError when the INVITE has no Contact or a body other than a session description.
    """

    direction = "in"

    def __init__(
        self,
        core: UserAgentCore,
        handler: CallHandler,
        contact: Uri,
        server: ServerHandle,
        digest_client: DigestClient | None,
        now: float,
        replaced: UserAgentCall | None = None,
    ) -> None:
        super().__init__(core, handler, contact, CallState.RINGING, now, digest_client)
        self.invite, self.remote = server.request, server.request.from_
        self.refresher.check(self.invite)
        offer = offer_of(server.request)
        self._server = server
        self._peer_addresses.heard(server.request, server.flow)
        self.leg = self._new_leg(Dialog.of_server(server.request, server.to_tag))
        self.leg.learn(server.request)
        if offer is not None:
            self.leg.session.they_offer(offer)
        self._reliable = ReliableResponses(core, server, self.leg, contact)
        self._on["PRACK"] = self._on_prack
        self.replaced = replaced
        self._pending: bytes | None = None  # the description of a 200 that waits for a PRACK
        self._progress: tuple[int, bytes] = (180, b"")
        server.user = self

    @property
    def peer_host(self) -> str | None:
        """The host that the INVITE came from, even if it passed our own proxy (§18.2.1)."""
        flow, vias = self._server.flow, self.invite.vias
        if flow.transport != LOCAL:
            return flow.remote[0]
        return (vias[1].received or vias[1].host.strip("[]")) if len(vias) > 1 else None

    def start(self, now: float) -> None:
        """Begin to ring, for as long as the caller and the agent allow (§13.3.1)."""
        self._core.invites.add(invite_key(self.invite))
        timeout = self._core.answer_timeout
        expires = self.invite.expires
        if expires is not None and expires < timeout:
            self._timers[Timer.EXPIRES] = now + expires
        else:
            self._timers[Timer.ANSWER] = now + timeout
        self._core.calls[self] = None
        self.reschedule()

    def ring(self, now: float, status: int = 180, sdp: bytes | None = None) -> None:
        """Send progress, reliably if asked (RFC 3262 §3), with early media `sdp`: §13.3.1.1."""
        if self.state is not CallState.RINGING:
            return
        self._progress = status, sdp or b""
        if self._reliable.wanted(sdp or b""):
            self._perform_reliable(self._reliable.send(status, sdp or b"", now), now)
        else:
            extensions = self._core.extensions
            response = dialog_response(self._server, self.contact, extensions, *self._progress)
            self._server.respond(response, now)
        self._timers[Timer.PROGRESS] = now + PROGRESS_EVERY  # §13.3.1.1 [every-minute]
        self.reschedule()

    @property
    def _is_unanswered(self) -> bool:
        """Whether the INVITE has no final response: the call rings, or its 200 waits."""
        waits = self.state is CallState.ANSWERED and self._pending is not None
        return self.state is CallState.RINGING or waits

    def accept(self, sdp: bytes, now: float) -> None:
        """Answer with 200 (§13.3.1.4): `sdp` answers the offer, or is one if there was none.

        After early media that was acknowledged the session stands, and `sdp` is not sent; while it
        is not acknowledged the 200 waits (RFC 3262 §5).  Raises LocalError unless the call is
        ringing.
        """
        if self.state is not CallState.RINGING or self.leg is None:
            raise LocalError(f"the call is {self.state}")
        self._timers.clear()
        self._set_state(CallState.ANSWERED)
        self._pending = sdp
        self._answer_if_settled(now)

    def _answer_if_settled(self, now: float) -> None:
        """Send the 200 that waits, unless a session is still under way."""
        if self._pending is None or self.state is not CallState.ANSWERED:
            return
        # RFC 3262 §5 [2xx-waits], §3 [2xx-waits]; likewise for an UPDATE of ours
        if not self._reliable.holds_session and not self._offers.exchange:
            self._answer(now)

    def _answer(self, now: float) -> None:
        assert self.leg is not None and self._pending is not None
        sdp, self._pending, session = self._pending, None, self.leg.session
        self._reliable.finish(now)
        self.leg.dialog.confirmed = True
        if session.is_settled:
            sdp = b""  # §13.2.1 [no-offer-after-the-answer]
        elif session.remote is None:
            # §13.2.1 [offer-comes-first] [takes-both-exchanges]; §13.3.1 [offers-if-asked]
            session.we_offer(sdp)  # §13.3.1.4 [offer-in-the-2xx]
        else:
            # §13.2.1 [answer-is-reliable] [takes-both-exchanges]
            session.we_answer(sdp)  # §13.3.1.4 [answer-in-the-2xx]
        self._accept_invite(self._server, sdp, now)
        if self.replaced is not None:
            self.replaced.bye(now)  # RFC 3891 §3

    def _on_prack(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a PRACK (RFC 3262 §3), with the answer to our offer or a new offer (§5)."""
        number, session = self._reliable.matched(request), leg.session
        offer, answer = offer_of(request), b""
        if offer is not None and (session.is_stable or session.was_settled):
            answer = self._take_offer(leg, offer, now)  # RFC 3262 §5 [answers-in-the-2xx]
        todo = self._reliable.acknowledge(number, now)
        server.respond(self._response_to(server, answer), now)  # RFC 3262 §3 [2xx-for-a-match]
        if offer is not None and not answer:
            session.they_answer(offer)
            self.handler.on_answer(self, offer, now)
        elif not session.is_stable and not session.was_settled:
            # Own design: an answer that is missing, which RFC 3262 §5 demands, is treated as it is
            # in an ACK: the peer's side stays, and the call can still be answered.
            session.they_answer(None)
        self._perform_reliable(todo, now)

    def _perform_reliable(self, todo: prack.Todo, now: float) -> None:
        """Do what `ReliableResponses` orders (RFC 3262 §3)."""
        for do in todo:
            match do:
                case prack.Do.SEND_1XX:
                    self._server.respond(self._reliable.response, now)
                case prack.Do.CONFIRMED:  # the 200 waits no longer: RFC 3262 §5
                    self._answer_if_settled(now)
                    self.offer_if_possible(now)
                    self._perform_reliable(self._reliable.send_next(now), now)
                case prack.Do.UNHEARD:
                    self._give_up(NO_PRACK, now)

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response; after that to an UPDATE the 200 waits no longer (RFC 3311 §5.1)."""
        super().on_response(exchange, response, now)
        self._answer_if_settled(now)

    def _lost(self, reason: str, now: float) -> None:
        """Give up a caller who has forgotten us, also before the answer (§12.2.1.2)."""
        if self._is_unanswered:
            self._give_up(reason, now)
        else:
            super()._lost(reason, now)

    def _give_up(self, reason: str, now: float) -> None:
        was_answered = self.state is CallState.ANSWERED
        self._refuse(504, reason, now)  # RFC 3262 §3 [5xx-without-prack]
        if was_answered:
            self.handler.on_ended(self, reason, now)
        else:
            self.handler.on_rejected(self, 504, reason, now)

    def offer_if_possible(self, now: float) -> None:
        """Send the wanted offer, once the caller has seen our description (RFC 3311 §5.1)."""
        if not self._reliable.holds_session:
            super().offer_if_possible(now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: the earliest timer of all."""
        times = (super().deadline, self._reliable.deadline)
        return min((at for at in times if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Do what is due (RFC 3262 §3)."""
        self._perform_reliable(self._reliable.tick(now), now)
        super().tick(now)

    def reject(self, status: int, reason: str, now: float) -> None:
        """Refuse the call (§13.3.1.3); does nothing if it was answered."""
        if self._is_unanswered:
            self._refuse(status, reason, now)  # §21.4.18 [480-by-the-user]

    def bye(self, now: float, reason: str | None = None) -> None:
        """Hang up: reject a call that is not answered yet; else send a BYE (§15)."""
        self.reject(603, "Decline", now)  # §15 [no-bye-of-an-early-callee]
        super().bye(now, reason)

    def on_cancel(self, handle: ServerHandle, now: float) -> None:
        if self._is_unanswered:
            self._refuse(487, "Request Terminated", now)  # §9.2 [487-for-the-invite]
            self.handler.on_cancelled(self, now)

    def on_transaction_end(self, handle: ServerHandle, now: float) -> None:
        """Do nothing.  Own design: an answered INVITE has its own timer for the ACK (§13.3.1.4)."""

    def _refuse(self, status: int, reason: str, now: float) -> None:
        self._reliable.finish(now)
        self._server.reply(status, now, reason, warnings(status, reason))
        self._set_state(CallState.ENDED)

    def _on_bye(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a BYE; the caller may send one before we have answered (§15)."""
        if self._is_unanswered:
            leg.shared.reply(server, 200, now)  # §15.1.2 [2xx-for-the-bye]
            # §15.1.2 [pending-are-answered] [487-for-pending]
            self._refuse(487, "Request Terminated", now)
            self.handler.on_cancelled(self, now)
        else:
            super()._on_bye(server, request, leg, now)

    def _on_timer(self, timer: Timer, now: float) -> None:
        if timer is Timer.PROGRESS:
            self.ring(now, *self._progress)
        elif timer is Timer.EXPIRES:  # the caller's own limit is reached
            self._refuse(487, "Request Terminated", now)  # §13.3.1 [487-when-expired]
            self.handler.on_cancelled(self, now)
        else:  # it has rung too long
            self._refuse(480, NO_ANSWER, now)  # §21.4.18 [480-tells-why]
            self.handler.on_rejected(self, 480, NO_ANSWER, now)
