"""New offers within a call, of either side: by re-INVITE and by UPDATE.

Implements RFC 3261 §14, and RFC 3311 §5.1 and §5.2.

Only one INVITE at a time may be under way in a dialog, in either direction; when both sides
begin one, both are refused with 491 and try again after different random times.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from p2psip.dialog.acceptance import glare_delay
from p2psip.dialog.negotiation import Negotiation
from p2psip.errors import RemoteError
from p2psip.sip.message import Response
from p2psip.ua.call_events import CallState
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.request_validation import RefusalError, session

RETRY_AFTER: Final = 11  # values of Retry-After, from 0 s.  Source: RFC 3311 §5.2
OVER: Final = (CallState.ENDING, CallState.ENDED)
GONE: Final = frozenset({408, 481})  # answers that end a dialog: §12.2.1.2


class Do(StrEnum):
    """Orders to the call (§14.1)."""

    WRITE = "our user writes the offer anew"
    SEND = "offer sent"
    TRY = "try to offer again"
    CANCEL = "CANCEL sent"
    ANSWERED = "answer to our user"
    REFUSED = "refusal to our user"
    LOST = "the dialog ends"


class Offers:
    """The offer that a call wants to make, and the rules for those of its peer (§14).

    `wanted` is the offer to make next, None if there is none; `exchange` the request of the one
    before, None once that has its final response, and `leg` the leg of that request; another may
    have been answered meanwhile.  `is_caller` is true of the side that chose the Call-ID.
    """

    def __init__(self, random: Callable[[int], bytes], *, is_caller: bool) -> None:
        self._random, self._is_caller = random, is_caller
        self.wanted: bytes | None = None
        self.exchange: AuthenticatedRequest | None = None
        self.leg: CallLeg | None = None
        self._outdated = False  # the session changed since the offer was written
        self._retry_at: float | None = None
        self._give_up_at: float | None = None

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: two waits, both rare."""
        times = (self._retry_at, self._give_up_at)
        return min((at for at in times if at is not None), default=None)

    def want(self, sdp: bytes) -> None:
        """Set the offer to make next; a newer one takes its place (§14.1)."""
        self.wanted, self._outdated = sdp, False

    def overtaken(self) -> None:
        """Note that the peer's offer came first: ours has to be written again (RFC 3264 §8)."""
        self._outdated = True

    def proceed(self, leg: CallLeg | None, *, is_up: bool) -> Do | None:
        """Make the offer within `leg`, unless one is under way or has to wait (§14.1)."""
        # §14.1 [one-invite-at-a-time] [waits-for-our-own] [491-waits]
        if self.wanted is None or self.exchange or self._retry_at is not None:
            return None
        if leg is None or not _may_offer(leg, is_up=is_up):
            self._outdated = True  # by the session that comes first
            return None
        return Do.WRITE if self._outdated else Do.SEND

    def sent(self, exchange: AuthenticatedRequest, leg: CallLeg, give_up_at: float) -> None:
        """Note that the wanted offer was sent; a re-INVITE is given up after a time (§14.1)."""
        self.wanted, self.exchange, self.leg = None, exchange, leg
        self._give_up_at = give_up_at if exchange.request.method == "INVITE" else None

    def tick(self, now: float) -> Do | None:
        """Act on a deadline that has passed (§14.1)."""
        if self._give_up_at is not None and self._give_up_at <= now:
            self._give_up_at = None
            return Do.CANCEL if self.exchange is not None else None
        if self._retry_at is not None and self._retry_at <= now:
            self._retry_at = None
            return Do.TRY  # §14.1 [491-tries-again]
        return None

    def abandon(self) -> Do | None:
        """Cancel an open re-INVITE, since the call ends (§9.1)."""
        self.wanted = None
        is_invite = self.exchange is not None and self.exchange.request.method == "INVITE"
        return Do.CANCEL if is_invite else None

    def on_response(
        self, response: Response, current: CallLeg | None, now: float, *, again: bool
    ) -> Do | None:
        """Take the final response to our offer (§14.1).

        The offer is made once more if another leg is the `current` one by now, or with `again`.
        """
        assert self.exchange is not None and self.leg is not None
        offer, self.exchange, self._give_up_at = self.exchange.request.body, None, None
        if response.status >= 300:
            self.leg.session.refused()  # §14.1 [refusal-changes-nothing], RFC 3311 §5.3
        else:
            self.leg.session.they_answer(session(response))
        if self.leg is not current:  # another phone has answered, which has not seen it
            self.wanted, self._outdated = self.wanted or offer, True
        elif again:
            self.wanted = self.wanted or offer
        elif response.status == 491:
            # RFC 3311 §5.3 [491-waits] [491-tries-again]; RFC 3261 §14.1 [491-waits]
            self._retry_at = now + glare_delay(self._random, self._is_caller)
            self.wanted = self.wanted or offer
        elif response.status in GONE:
            return Do.LOST  # §12.2.1.2 [gone-ends-the-dialog] [silence-ends-the-dialog]
        else:
            return Do.REFUSED if response.status >= 300 else Do.ANSWERED
        return None

    # The peer's offers

    def check_reinvite(self, state: CallState, *, is_waiting: bool) -> None:
        """Refuse a re-INVITE of the peer at the wrong time (§14.2); `is_waiting`: for an ACK."""
        if state in (CallState.RINGING, CallState.ANSWERED) and not is_waiting:
            raise self._later()  # §14.2 [500-for-a-second]; our 200 may wait for a PRACK
        if state in OVER:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        if self.exchange or is_waiting or state is CallState.CALLING:
            raise RemoteError("Request Pending", 491)  # §14.2 [491-for-glare]

    def check_update(self, state: CallState, session: Negotiation, *, is_waiting: bool) -> None:
        """Refuse the offer of an UPDATE that comes at the wrong time (RFC 3311 §5.2)."""
        if is_waiting or (state is CallState.RINGING and not session.is_settled):
            raise self._later()
        if state in OVER or self.exchange:
            raise RemoteError("Request Pending", 491)

    def they_offer(self, session: Negotiation, offer: bytes, answer: Callable[[], bytes]) -> bytes:
        """Take an offer of the peer, in whatever message it came, and give it the `answer`.

        RFC 3264 §4.  After a RemoteError nothing has changed.
        """
        try:
            session.they_offer(offer)
        except RemoteError as error:
            if error.status == 500:
                raise self._later() from None
            raise
        try:
            ours = answer()
        except RemoteError:
            session.refused()
            raise
        session.we_answer(ours)  # RFC 3311 §5.2 [answers-in-the-2xx]
        self.overtaken()
        return ours

    def _later(self) -> RefusalError:
        """The refusal of a second offer, or of an INVITE before the first is answered (§14.2)."""
        share = int.from_bytes(self._random(1), "big") % RETRY_AFTER
        # §14.2 [retry-after]
        return RefusalError(500, "Server Internal Error", [("Retry-After", share)])


def _may_offer(leg: CallLeg, *, is_up: bool) -> bool:
    """Whether no offer waits; before the answer of the call, whether UPDATE may have one."""
    if is_up:
        return leg.session.is_stable
    return leg.session.is_settled and leg.allows("UPDATE")  # RFC 3311 §5.1 [settled-before-update]
