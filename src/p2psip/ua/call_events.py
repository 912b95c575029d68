"""The states of a call, and its events for the layer above.

Implements RFC 3261 §13, §14 and §15 from the user's side.
"""

from enum import StrEnum
from typing import Protocol, TypeVar

from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.ua.messages import InstantMessage
from p2psip.ua.transfers import Referral

CallT = TypeVar("CallT", contravariant=True)


class CallState(StrEnum):
    """The state of a call.  Own design: one for dialog and session together (§13, §15)."""

    CALLING = "calling"  # we call; no final answer yet
    RINGING = "ringing"  # we are called, and have not answered
    ANSWERED = "answered"  # we have answered, and wait for the ACK
    UP = "up"
    ENDING = "ending"  # over for the user; the network still has to be told
    ENDED = "ended"


class Timer(StrEnum):
    """The timers of a call.  Own design: the names; the sections are where each is used."""

    ANSWER = "answer"  # the end of ringing, by our own settings
    EXPIRES = "expires"  # the end of ringing, by the caller: §13.3.1
    PROGRESS = "progress"  # the next 1xx: §13.3.1.1


class CallEvents(Protocol[CallT]):
    """Receives the events of a call (§13), until it calls `bye` or `reject` of it."""

    def on_ringing(
        self, call: CallT, status: int, reason: str, sdp: bytes | None, now: float
    ) -> None:
        """Take progress of a call we make, perhaps with early media (§13.2.2.1)."""

    def on_accepted(self, call: CallT, sdp: bytes, now: float) -> None:
        """Take the beginning: a 2xx was acknowledged, by us (§13.2.2.4) or to us (§13.3.1.4).

        `sdp` is the peer's: of the 2xx, of the INVITE we answered, or the answer in the ACK.
        """

    def on_rejected(self, call: CallT, status: int, reason: str, now: float) -> None:
        """Take the refusal of a call we make (§13.2.2.3), or the end of a call nobody answered.

        `reason` tells the cause: see `stack.causes`.
        """

    def on_cancelled(self, call: CallT, now: float) -> None:
        """Note that the caller gave up before we answered (§9.2)."""

    def on_ended(self, call: CallT, reason: str, now: float) -> None:
        """Take the end of a call that was answered: a BYE, or a lost peer (§15)."""

    def on_offer(self, call: CallT, sdp: bytes | None, now: float) -> bytes:
        """Answer a new offer of the peer, or make an offer when `sdp` is None (§14.2).

        Also the first offer, if the INVITE that we sent has none (§13.2.1).  Raises RemoteError,
        488 as a rule, to leave the session as it was; at the first offer that ends the call.
        """

    def on_answer(self, call: CallT, sdp: bytes, now: float) -> None:
        """Take the peer's answer to our new offer (§14.1)."""

    def on_confirmed(self, call: CallT, now: float) -> None:
        """Note that the answer of `on_offer` was acknowledged, or needs no ACK (§14.2)."""

    def on_alive(self, call: CallT, now: float) -> None:
        """Note that the peer has sent any message within the dialog (§12.2)."""

    def on_reoffer_failed(self, call: CallT, status: int, reason: str, now: float) -> None:
        """Note that our new offer was refused, and the session stays as it was (§14.1)."""

    def on_refer(self, call: CallT, referral: Referral, now: float) -> None:
        """Take the peer's wish that we call somebody (RFC 3515 §2.4.2); RemoteError refuses it."""
        raise RemoteError("Decline", 603)

    def on_transfer(self, call: CallT, status: int, reason: str, now: float) -> None:
        """Take what became of our wish that the peer calls somebody (RFC 3515 §2.4.5)."""
        return

    def on_refused(self, call: CallT, request: Request, response: Response, now: float) -> None:
        """Note that the peer refused an INFO or a MESSAGE of ours; the call goes on (§12.2.1.2)."""
        return

    def on_message(self, call: CallT, message: InstantMessage, now: float) -> None:
        """Take a MESSAGE within the call (RFC 3428 §7); a RemoteError refuses it, as here."""
        raise RemoteError("Method Not Allowed", 405)

    def on_info(
        self,
        call: CallT,
        content_type: str,
        body: bytes,
        now: float,
        package: str | None,
    ) -> None:
        """Take an INFO of the peer (RFC 6086 §4.2.2); a RemoteError refuses it.

        `package` is one of our Info Packages, None for an INFO of the old kind.

        Not done: RFC 6086 §4.3.1 [multipart-bodies]: the owner hears a body of several parts whole,
        and takes it apart by `parse_multipart` or refuses it with 415.
        """
        return  # a call without a use for it needs no method of its own
