"""New offers of ours within a call: by re-INVITE, and by UPDATE before the call is answered.

Implements RFC 3261 §14.1 and RFC 3311 §5.1.

Only one INVITE at a time may be under way in a dialog, in either direction; when both sides
begin one, both are refused with 491 and try again after different random times.
"""

from typing import TYPE_CHECKING, Final

from p2psip.dialog.acceptance import glare_delay
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.call_state import CallState
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.request_validation import SDP, session

if TYPE_CHECKING:
    from p2psip.ua.call import UserAgentCall

GONE: Final = frozenset({408, 481})  # answers that end a dialog: §12.2.1.2


class Reoffer:
    """The offer a call wants to make, and the request that makes it (§14.1)."""

    def __init__(self, call: "UserAgentCall") -> None:
        self._call = call
        self._exchange: AuthenticatedRequest | None = None
        self._leg: CallLeg | None = None  # of the exchange; a fork may be answered meanwhile
        self._wanted: bytes | None = None
        self._outdated = False  # the session changed since the offer was written
        self._ack: tuple[int, Request] | None = None  # the last one, by its number
        self._retry_at: float | None = None
        self._give_up_at: float | None = None

    @property
    def under_way(self) -> bool:
        """Is an offer of ours without its final response (§14.1)?"""
        return self._exchange is not None

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: two waits, both rare."""
        times = (self._retry_at, self._give_up_at)
        return min((at for at in times if at is not None), default=None)

    def is_for(self, exchange: AuthenticatedRequest, response: Response) -> bool:
        """Whether a response is about an offer of ours, or repeats one that was (§14.1)."""
        return exchange is self._exchange or response.cseq.method == "INVITE"

    def want(self, sdp: bytes) -> None:
        """Set the offer to make next; a newer one takes its place (§14.1)."""
        self._wanted, self._outdated = sdp, False

    def overtaken(self) -> None:
        """Note that the peer's offer came first: ours has to be written again (RFC 3264 §8)."""
        self._outdated = True

    def proceed(self, now: float) -> None:
        """Make the offer, unless one is under way or has to wait (§14.1)."""
        call = self._call
        # §14.1 [one-invite-at-a-time] [waits-for-our-own] [491-waits]
        if self._wanted is None or self._exchange or self._retry_at is not None:
            return
        leg = call.leg
        if leg is None or not self._may_offer(leg):
            self._outdated = True  # by the session that comes first
            return
        try:
            if self._outdated:
                self.want(call.owner.on_offer(call, None, now))
        except RemoteError as error:
            self._wanted = None
            call.owner.on_reoffer_failed(call, error.status, error.reason, now)
            return
        # RFC 3311 §5.1 [reinvite-once-up] [by-either-side]
        request = call.new_request("INVITE" if call.is_up else "UPDATE", self._wanted, SDP)
        # §12.2.1.1 [refresh-has-a-contact] [same-contact] [sips-stays-sips]
        # RFC 5630 §5.1.1.2 [refresh-stays-sips], §5.1.2 [refresh-stays-sips]
        request = request.replace(headers=request.headers.append("Contact", Address(call.contact)))
        leg.session.we_offer(self._wanted)
        self._wanted, self._leg = None, leg
        if call.is_up:
            request = call.refresher.ask(request)
            self._give_up_at = now + call.agent.answer_timeout
        self._exchange = call.exchange(request, now)

    def _may_offer(self, leg: CallLeg) -> bool:
        """Whether no offer waits; before the answer of the call, whether UPDATE may have one."""
        if self._call.is_up:
            return leg.session.is_stable
        # RFC 3311 §5.1 [settled-before-update]
        return leg.session.is_settled and leg.allows("UPDATE")

    def tick(self, now: float) -> bool:
        """Act on the deadlines that have passed; true when it is time to `proceed` (§14.1)."""
        if self._give_up_at is not None and self._give_up_at <= now:
            self._give_up_at = None
            if self._exchange is not None:
                self._exchange.cancel(now)
        if self._retry_at is not None and self._retry_at <= now:
            self._retry_at = None
            return True  # §14.1 [491-tries-again]
        return False

    def abandon(self, now: float) -> None:
        """Cancel an open re-INVITE, since the call ends (§9.1)."""
        self._wanted = None
        if self._exchange is not None and self._exchange.request.method == "INVITE":
            self._exchange.cancel(now)

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response to our offer (§14.1)."""
        is_update = exchange.request.method == "UPDATE"
        if 200 <= response.status < 300 and not is_update:
            self._acknowledge(exchange.request, response, now)
        if exchange is not self._exchange or response.status < 200:
            return
        self._exchange = self._give_up_at = None
        call, leg = self._call, self._leg
        assert leg is not None
        if response.status >= 300:
            leg.session.refused()  # RFC 3261 §14.1 [refusal-changes-nothing], RFC 3311 §5.3
        else:
            leg.session.they_answer(session(response))
            if is_update:
                leg.dialog.refresh(response)  # §12.2.1.2 [2xx-moves-the-target]
                leg.learn(response)
            else:
                call.refresher.accepted(response, now)
        self._tell(exchange, response, now)

    def _tell(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Tell the owner what has become of the offer, or make it again (§14.1)."""
        call = self._call
        if call.state in (CallState.ENDING, CallState.ENDED):
            return
        if self._leg is not call.leg:  # another phone has answered, which has not seen it
            self._wanted, self._outdated = self._wanted or exchange.request.body, True
        elif call.is_up and call.refresher.may_ask_longer(response):
            self._wanted = self._wanted or exchange.request.body
        elif response.status == 491:
            # RFC 3311 §5.3 [491-waits] [491-tries-again]; RFC 3261 §14.1 [491-waits]
            self._retry_at = now + glare_delay(call.agent.random, call.direction == "out")
            self._wanted = self._wanted or exchange.request.body
        elif response.status in GONE:
            # §12.2.1.2 [gone-ends-the-dialog] [silence-ends-the-dialog]
            call.lost(f"{response.status} {response.reason}", now)
        elif response.status >= 300:
            call.owner.on_reoffer_failed(call, response.status, response.reason, now)
        else:
            call.owner.on_answer(call, session(response) or b"", now)

    def _acknowledge(self, invite: Request, response: Response, now: float) -> None:
        """Send the ACK of a 2xx, and the same ACK again for each repetition (§13.2.2.4).

        It goes to the Contact of the 2xx, which is the peer's new target (§12.2.1.2).
        """
        call, number = self._call, response.cseq.number
        assert call.leg is not None
        if self._ack is not None and self._ack[0] == number:
            call.leg.shared.send_ack(self._ack[1], now)  # §13.2.2.4 [ack-again]
            return
        call.leg.dialog.refresh(response)  # §12.2.1.2 [2xx-moves-the-target]
        call.leg.learn(response)
        self._ack = number, call.acknowledge(invite, number, now)
