"""A call that we make.

Implements RFC 3261 §13.2 and §9.1.

    owner.invite -> INVITE -> 1xx: on_ringing -> 2xx: ACK, on_accepted -> ... BYE
                           |                  -> 3xx-6xx, silence: on_rejected
                           +-- bye: CANCEL    -> a 2xx that crossed it: ACK and BYE

An INVITE without an offer has the callee make it, in its first reliable response; the answer is in
the PRACK or ACK of that (RFC 3262 §5).
"""

from collections.abc import Callable
from typing import Final

from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.dialog.prack import RAck, rseq_of
from p2psip.errors import RemoteError
from p2psip.sdp.line import Origin
from p2psip.sdp.offer_answer import make_answer
from p2psip.sdp.session import SessionDescription
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.causes import NO_ANSWER
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL
from p2psip.ua.call import CallHandler, UserAgentCall
from p2psip.ua.call_events import CallState, Timer
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.core import UserAgentCore
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import ANSWERS, DigestClient, copy_credentials
from p2psip.ua.requests.redirection import Redirection
from p2psip.ua.requests.request_validation import SDP, session

MAX_EARLY: Final = 16  # early dialogs of one INVITE that are kept
MAX_FORKS: Final = 64  # dialogs of one INVITE in all; a 2xx beyond them is not even acknowledged


class OutgoingCall(UserAgentCall):
    """A call from its INVITE on (§13.2)."""

    direction = "out"

    def __init__(
        self,
        core: UserAgentCore,
        handler: CallHandler,
        contact: Uri,
        invite: Request,
        digest_client: DigestClient | None,
        now: float,
    ) -> None:
        super().__init__(core, handler, contact, CallState.CALLING, now, digest_client)
        self.invite, self.remote = self.refresher.ask(invite), invite.to
        self._cseq = invite.cseq.number
        self._others = Redirection(invite.uri, core.max_redirects)  # §21.3.3 [not-remembered]
        self._fork_acks: dict[DialogId, Request] = {}
        self._refusal: RemoteError | None = None  # of the callee's offer, by our owner
        self._answering: AuthenticatedRequest | None = None  # the last PRACK with an answer
        self._exchange_of_invite = AuthenticatedRequest(
            core.stack, self, self._next_cseq, digest_client
        )

    @property
    def peer_host(self) -> str | None:
        """The host that the INVITE was sent to, whose answer made the call (§18.1.1)."""
        flow = self._exchange_of_invite.sent_to
        return None if flow is None or flow.transport == LOCAL else flow.remote[0]

    def start(self, now: float) -> None:
        """Send the INVITE (§13.2.1)."""
        self._timers[Timer.ANSWER] = now + self._core.answer_timeout
        self._exchange_of_invite.send(self.invite, now)
        self._core.calls[self] = None
        self.reschedule()

    def bye(self, now: float, reason: str | None = None) -> None:
        """Hang up: by CANCEL before the answer (§9.1), else by BYE (§15)."""
        super().bye(now, reason)
        if self.state is CallState.CALLING:
            self._give_up(now)

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response to the INVITE (§13.2.2) or to a later request (§12.2.1.2)."""
        self._peer_addresses.answered(exchange.answered_by)
        if exchange is not self._exchange_of_invite:
            super().on_response(exchange, response, now)
            self.offer_if_possible(now)
        elif response.status < 200:
            self._on_provisional(response, now)
        elif response.status < 300:  # §8.1.3.2 [unknown-is-x00] [knows-x00]
            self._on_success(response, now)
        elif self.state is CallState.CALLING and self.refresher.may_ask_longer(response):
            self._invite_again(self.refresher.ask(exchange.request), now)
        elif self.state is CallState.CALLING and (target := self._others.next(response)):
            # RFC 3261 §8.1.3.4 [recurses] [same-call] [same-in-all-else]
            self._invite_again(exchange.request.replace(uri=target), now)
        else:
            self._on_failure(response, now)

    def _invite_again(self, invite: Request, now: float) -> None:
        """Send the INVITE anew, as its refusal asked for it (§8.1.3.5)."""
        self._drop_legs(None)
        self._legs.clear()
        self.leg = None
        headers = invite.headers.without(*ANSWERS.values())  # RFC 4028 §7.3 [same-call-next-number]
        headers = headers.with_("CSeq", f"{self._next_cseq()} INVITE")
        self.invite = invite.replace(headers=headers)
        self._exchange_of_invite = AuthenticatedRequest(
            self._core.stack, self, self._next_cseq, self._digest_client
        )
        self._exchange_of_invite.send(self.invite, now)

    def _next_cseq(self) -> int:
        self._cseq += 1
        return self._cseq

    def _lost(self, reason: str, now: float) -> None:
        """Give up a call whose peer has forgotten us, also before the answer (§12.2.1.2)."""
        if self.state is not CallState.CALLING:
            super()._lost(reason, now)
            return
        self._give_up(now)
        self.handler.on_rejected(self, 480, reason, now)

    def _give_up(self, now: float) -> None:
        self._timers.clear()
        self._set_state(CallState.ENDING)
        self._exchange_of_invite.cancel(now)

    def _leg_of(self, response: Response) -> CallLeg | None:
        """The leg of a response, a new one if its tag is new (§12.1.2)."""
        key = DialogId.at_client(response)
        limit = MAX_EARLY if response.status < 200 else MAX_FORKS
        if key not in self._legs and len(self._legs) < limit:
            # §13.2.2.4 [new-dialog-of-a-2xx]
            dialog = Dialog.of_client(self._exchange_of_invite.request, response)
            leg = self._new_leg(dialog)
            if self.invite.body:
                leg.session.we_offer(self.invite.body)  # §13.2.1 [offer-comes-first]
        if key in self._legs:
            self._legs[key].learn(response)
        return self._legs.get(key)

    def _on_provisional(self, response: Response, now: float) -> None:
        """Take progress, which may begin an early dialog (§13.2.2.1)."""
        # §8.1.3.2 [knows-100-and-183]
        if response.status == 100 or self.state is not CallState.CALLING:
            return
        if response.to.tag is not None:
            leg = self._leg_of(response)
            if leg is None:
                return
            rseq = rseq_of(response)
            if rseq is not None and not self._acknowledge(leg, response, rseq, now):
                return
            self.leg = leg
        sdp = session(response)
        # §8.1.3.2 [unknown-is-183] [knows-100-and-183]
        self.handler.on_ringing(self, response.status, response.reason, sdp, now)
        self.offer_if_possible(now)

    def _acknowledge(self, leg: CallLeg, response: Response, rseq: int, now: float) -> bool:
        """Send the PRACK of a reliable 1xx (RFC 3262 §4); False unless that is progress."""
        if not leg.order.take(rseq):
            return False
        answer = self._take_description(leg, response, now)
        # RFC 3262 §4 [prack-follows] [only-in-invite], §5 [answers-in-the-prack]
        request = leg.shared.new_request("PRACK", answer, SDP)
        rack = RAck(rseq, *response.cseq)
        exchange = leg.shared.exchange(
            self, request.replace(headers=request.headers.append("RAck", rack)), now
        )
        if answer:
            self._answering = exchange
        self._leave_if_refused(now)
        return self.state is CallState.CALLING

    def offer_if_possible(self, now: float) -> None:
        """Send the wanted offer, once the callee has our answer to its own (RFC 3311 §5.1).

        Own design: an UPDATE that overtakes the PRACK with that answer would be refused.
        """
        if self._answering is None or self._answering.done:
            super().offer_if_possible(now)

    def _take_description(self, leg: CallLeg, response: Response, now: float) -> bytes:
        """Take the description of a reliable response: returns our answer if it is an offer.

        Departs from RFC 3261 §13.2.1 [first-is-the-answer] [later-are-ignored]: an earlier one
        counts only if its response was acknowledged (RFC 3262 §5).  Others are early media, which
        often comes from another machine than the phone that answers: Field §"Early media of another
        callee".
        """
        sdp = session(response)
        if leg.session.was_settled:
            return b""
        if not self.invite.body:
            return b"" if sdp is None else self._answer(leg, sdp, now)
        if sdp is not None or response.status >= 200:
            leg.session.they_answer(sdp)  # RFC 3262 §5 [early-session]
        return b""

    def _answer(self, leg: CallLeg, offer: bytes, now: float) -> bytes:
        """Answer the callee's offer; our owner is asked while the call is wanted (§13.2.1)."""
        if self.state is CallState.CALLING:
            try:
                # §13.2.1 [answer-is-acknowledgement] [takes-both-exchanges]
                # RFC 6337 §5.2.4 [answers-as-if-called]
                return self._take_offer(leg, offer, now)
            except RemoteError as error:
                self._refusal = error
        leg.session.they_offer(offer)
        # §13.2.2.4 [answers-the-unwanted], RFC 6337 §5.2.4 [refuses-all-by-zeros]
        answer = _declined(offer, self.contact.host, self._core.random)
        leg.session.we_answer(answer)
        return answer

    def _leave_if_refused(self, now: float) -> None:
        """Give up a callee whose offer our owner has refused: by CANCEL, or BYE (§13.2.2.4)."""
        if self._refusal is not None and self.state is CallState.CALLING:
            self._give_up(now)
            self.handler.on_rejected(self, self._refusal.status, self._refusal.reason, now)

    def _on_success(self, response: Response, now: float) -> None:
        """Acknowledge a 2xx; the first one makes the call, others are hung up (§13.2.2.4).

        Departs from RFC 3261 §13.2.2.4: no ACK beyond `MAX_FORKS` dialogs of one INVITE, which are
        an attack and no phones.
        """
        key = DialogId.at_client(response)
        if key in self._fork_acks:
            self._legs[key].shared.send_ack(self._fork_acks[key], now)  # §13.2.2.4 [ack-again]
            return
        leg = self._leg_of(response)
        if leg is None:
            return
        dialog = leg.dialog
        dialog.confirm(response)
        sdp = None if leg.session.was_settled else session(response)  # else a 1xx has brought it
        answer = self._take_description(leg, response, now)
        request = self._exchange_of_invite.request
        # RFC 3261 §17.1.1.3 [2xx-ack-by-core], §13.2.2.4 [same-credentials] [answers-in-the-ack]
        ack = dialog.ack(request.cseq.number, answer, SDP)
        self._fork_acks[key] = ack = copy_credentials(request, ack, self._digest_client)
        leg.shared.send_ack(ack, now)  # §13.2.2.4 [ack-for-each]
        self._leave_if_refused(now)
        if self.state is CallState.CALLING:
            self._establish(leg, response, sdp or b"", now)
        elif self.state is CallState.ENDING and self._bye is None:
            self.leg = leg  # the answer crossed our CANCEL
            self._drop_legs(leg)
            self._hang_up(now)  # §13.2.2.4 [bye-if-unwanted]
        else:
            self._hang_up_fork(leg, now)

    def _establish(self, leg: CallLeg, response: Response, sdp: bytes, now: float) -> None:
        """Begin the session (§13.2.2.4); `sdp` is what the 2xx has brought."""
        self._timers.clear()
        self.leg, self.remote = leg, leg.dialog.remote
        self._drop_legs(leg)
        self._set_state(CallState.UP)
        self.refresher.accepted(response, now)
        self.handler.on_accepted(self, sdp, now)
        self.offer_if_possible(now)

    def _hang_up_fork(self, leg: CallLeg, now: float) -> None:
        """End the dialog of a second phone that was picked up (§13.2.2.4)."""
        leg.shared.detach(self)
        # §13.2.2.4 [bye-if-unwanted]
        leg.shared.exchange(_Nobody(), leg.shared.new_request("BYE"), now)

    def _on_failure(self, response: Response, now: float) -> None:
        """Take the refusal, which ends all early dialogs (§13.2.2.3, §12.3)."""
        before = self.state
        self._drop_legs(None)
        self._set_state(CallState.ENDED)
        if before is CallState.CALLING:
            # §21.5.1 [500-is-shown]
            self.handler.on_rejected(self, response.status, response.reason, now)

    def _drop_legs(self, kept: CallLeg | None) -> None:
        for leg in self._legs.values():
            if leg is not kept:
                leg.shared.detach(self)

    def _on_bye(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a BYE; before the answer it is refused (§15).

        Departs from RFC 3261 §15.1.2: no 2xx to that one, since a callee ends an early dialog by
        its answer to the INVITE, which is still to come.
        """
        if self.state is CallState.CALLING:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        super()._on_bye(server, request, leg, now)

    def _on_timer(self, timer: Timer, now: float) -> None:
        """Give up after `answer_timeout`, the only timer before the answer."""
        self._give_up(now)
        self.handler.on_rejected(self, 480, NO_ANSWER, now)


class _Nobody:
    """The user of a fork's BYE, whose result is of no interest."""

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Do nothing.  Own design: any answer ends the fork."""


def _declined(offer: bytes, host: str, random: Callable[[int], bytes]) -> bytes:
    """The answer of `host` that accepts no line (RFC 3264 §6), b"" to an unreadable offer.

    No message refuses the offer of a response, so that the answer has to (RFC 3261 §13.2.2.4).
    """
    try:
        session = SessionDescription.parse(offer)
    except RemoteError:
        return b""
    origin = Origin.at(host, int.from_bytes(random(4), "big"))
    return bytes(make_answer(session, (), origin, host)[0])
