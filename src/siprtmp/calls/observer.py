"""What a call tells its user: a rich client's line, a name, a room's phone, a file that is played.

Implements RFC 3261 §13 and §15 from the user's side.

Own design: every event has a default, so that a user writes those that it needs.
"""

from enum import Enum

from p2psip.errors import RemoteError
from p2psip.ua.messages import InstantMessage
from p2psip.ua.transfers import Referral
from siprtmp.media.sdp_map import MediaPlan


class CallEvent(Enum):
    """What happens to a call, for those who follow all calls; the text with it in brackets."""

    BEGUN = "begun"
    RINGING = "ringing"
    ANSWERED = "answered"
    HELD = "held"  # by the phone
    RESUMED = "resumed"
    DIGIT = "digit"  # (the key)
    MESSAGE = "message"  # (its text)
    TRANSFERRED = "transferred"  # (status and reason)
    ENDED = "ended"  # (the reason)


class CallObserver:
    """Hears of the progress of a call.

    `log_id` names it in the log; `host` is that of its client, and `payer` the key that its calls
    are counted under (see `toll_guard`), both empty without a client; `source` is for the log.
    """

    log_id: str

    @property
    def host(self) -> str:
        """The host of its client, empty without one."""
        return ""

    @property
    def source(self) -> str:
        """Where its calls come from, for the operator, see `Origin`."""
        return f"RTMP:{self.host}"

    @property
    def payer(self) -> str | None:
        """The key that its calls are counted under, None if they are counted already."""
        return ""

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        """A provisional response other than 100: RFC 3261 §13.2.2.1."""

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """The 200 was received, or sent and acknowledged: RFC 3261 §13.2.2.4, §13.3.1.4."""

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """The call failed before it came up: RFC 3261 §13.2.2.3."""

    def on_call_cancelled(self, now: float) -> None:
        """The caller gave up before an answer: RFC 3261 §9.2."""

    def on_call_over(self, reason: str, now: float) -> None:
        """It was up, and is over: RFC 3261 §15."""

    def on_call_held(self, held: bool, now: float) -> None:
        """The phone put the call on hold, or took it off: RFC 3264 §8.4."""

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        """The phone has sent an instant message within the call (RFC 3428 §7); here it is refused.

        Nobody would read it.
        """
        raise RemoteError("Method Not Allowed", 405)

    def on_call_refer(self, referral: Referral, now: float) -> None:
        """The phone asks us to call somebody else (RFC 3515 §2.4.2); a RemoteError declines."""
        raise RemoteError("Decline", 603)

    def on_call_transferred(self, status: int, reason: str, now: float) -> None:
        """The phone says what became of the call that we asked for: RFC 3515 §2.4.5."""

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """The phone, or the way to it, has refused what the user asked for: RFC 3261 §21."""
