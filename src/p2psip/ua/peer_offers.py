"""New offers of the peer within a call, by re-INVITE or UPDATE: which are refused, and how.

Implements RFC 3261 §14.2 and RFC 3311 §5.2.

Only one INVITE at a time may be under way in a dialog, and only one offer.
"""

from collections.abc import Callable
from typing import Final

from p2psip.dialog.negotiation import Negotiation
from p2psip.errors import RemoteError
from p2psip.ua.call_state import CallState
from p2psip.ua.requests.request_validation import RefusalError

RETRY_AFTER: Final = 11  # values of Retry-After, from 0 s.  Source: RFC 3311 §5.2
OVER: Final = (CallState.ENDING, CallState.ENDED)


class PeerOffers:
    """The rules for the offers of one call's peer (§14.2); `random(n)` gives n random bytes."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random

    def check_reinvite(self, state: CallState, is_waiting: bool, is_inviting: bool) -> None:
        """Refuse a re-INVITE that comes at the wrong time (§14.2).

        `is_waiting` says that a 2xx of ours waits for its ACK, `is_inviting` that an offer of ours
        waits for its response.
        """
        if state in (CallState.RINGING, CallState.ANSWERED) and not is_waiting:
            raise self._later()  # §14.2 [500-for-a-second]; our 200 may wait for a PRACK
        if state in OVER:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        if is_inviting or is_waiting or state is CallState.CALLING:
            raise RemoteError("Request Pending", 491)  # §14.2 [491-for-glare]

    def check_update(
        self, state: CallState, is_waiting: bool, is_inviting: bool, session: Negotiation
    ) -> None:
        """Refuse the offer of an UPDATE that comes at the wrong time (RFC 3311 §5.2)."""
        if is_waiting or (state is CallState.RINGING and not session.is_settled):
            raise self._later()
        if state in OVER or is_inviting:
            raise RemoteError("Request Pending", 491)

    def take(self, session: Negotiation, offer: bytes) -> None:
        """Take an offer, in whatever message it came (RFC 3264 §4).  Raises RemoteError."""
        try:
            session.they_offer(offer)
        except RemoteError as error:
            if error.status == 500:
                raise self._later() from None
            raise

    def _later(self) -> RefusalError:
        """The refusal of a second offer, or of an INVITE before the first is answered (§14.2)."""
        share = int.from_bytes(self._random(1), "big") % RETRY_AFTER
        # §14.2 [retry-after]
        return RefusalError(500, "Server Internal Error", [("Retry-After", share)])
