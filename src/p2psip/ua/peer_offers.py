"""New offers of the peer within a call, by re-INVITE or UPDATE.

Implements RFC 3261 §14.2 and RFC 3311 §5.2.
"""

from typing import TYPE_CHECKING, Final

from p2psip.errors import RemoteError
from p2psip.sip.message import Request
from p2psip.stack.stack import ServerHandle
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.call_state import CallState
from p2psip.ua.dialog_response import dialog_response
from p2psip.ua.requests.request_validation import RefusalError, offer_of

if TYPE_CHECKING:
    from p2psip.ua.call import UserAgentCall

RETRY_AFTER: Final = 11  # values of Retry-After, from 0 s.  Source: RFC 3311 §5.2


class PeerOffers:
    """The peer's side of the offers of one call (§14.2).

    Only one INVITE at a time may be under way in a dialog, and only one offer.
    """

    def __init__(self, call: "UserAgentCall") -> None:
        self._call = call

    def on_reinvite(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a re-INVITE of the peer (§14.2)."""
        call = self._call
        call.refresher.check(request)
        is_unanswered = call.state in (CallState.RINGING, CallState.ANSWERED)
        if is_unanswered and not call.answered.is_waiting:  # our 200 may wait for a PRACK
            raise self._later()  # §14.2 [500-for-a-second]
        if call.answered.is_waiting and leg.session.is_stable:
            # A peer that sends a re-INVITE has seen our 2xx; its ACK was lost or comes late.
            call.answered.presume(now)
        if call.state in (CallState.ENDING, CallState.ENDED):
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        if call.is_inviting or call.answered.is_waiting or call.state is CallState.CALLING:
            raise RemoteError("Request Pending", 491)  # §14.2 [491-for-glare]
        sdp = self._settle(request, leg, offer_of(request), now)
        call.accept_invite(server, sdp, now)

    def on_update(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take an UPDATE, whose offer needs no ACK (RFC 3311 §5.2)."""
        call, offer, answer = self._call, offer_of(request), b""
        call.refresher.check(request)
        if offer is not None:
            is_early = call.state is CallState.RINGING and not leg.session.is_settled
            if call.answered.is_waiting or is_early:
                raise self._later()
            if call.state in (CallState.ENDING, CallState.ENDED) or call.is_inviting:
                raise RemoteError("Request Pending", 491)
            answer = self._settle(request, leg, offer, now)
        else:
            self._follow(request, leg)
        extensions = call.agent.extensions
        terms = call.refresher.answer(request, now) if call.is_up else ()
        response = dialog_response(server, call.contact, extensions, 200, answer, terms)
        server.respond(response, now)
        call.reschedule()
        if answer:
            call.owner.on_confirmed(call, now)

    def take(self, leg: CallLeg, offer: bytes, now: float) -> bytes:
        """Have the owner answer an offer, in whatever message it came (RFC 3264 §4).

        Raises RemoteError, and then nothing has changed.
        """
        call = self._call
        try:
            leg.session.they_offer(offer)
        except RemoteError as error:
            if error.status == 500:
                raise self._later() from None
            raise
        try:
            answer = call.owner.on_offer(call, offer, now)  # §14.2 [follows-the-change]
        except RemoteError:
            leg.session.refused()
            raise
        leg.session.we_answer(answer)  # RFC 3311 §5.2 [answers-in-the-2xx]
        call.overtaken()
        return answer

    def _settle(self, request: Request, leg: CallLeg, offer: bytes | None, now: float) -> bytes:
        """Answer the offer of a request, or make one if it has none (§14.2)."""
        call = self._call
        if offer is not None:
            sdp = self.take(leg, offer, now)
        else:
            sdp = call.owner.on_offer(call, None, now)
            leg.session.we_offer(sdp)
            call.overtaken()
        self._follow(request, leg)
        return sdp

    def _follow(self, request: Request, leg: CallLeg) -> None:
        leg.dialog.refresh(request)  # §12.2.2 [contact-moves-the-target]
        leg.learn(request)  # RFC 6086 §5.2.4 [refusal-keeps-the-list]

    def _later(self) -> RefusalError:
        """The refusal of a second offer, or of an INVITE before the first is answered (§14.2)."""
        share = int.from_bytes(self._call.agent.random(1), "big") % RETRY_AFTER
        # §14.2 [retry-after]
        return RefusalError(500, "Server Internal Error", [("Retry-After", share)])
