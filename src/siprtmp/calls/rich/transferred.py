"""A call that a phone has asked for, to take the place of its own: a transfer.

Implements RFC 3515 §2.4.2 for the side that is transferred, and RFC 3891 §4 where the REFER has a
Replaces.

Own design: the old call goes on until the new one is answered, unless its phone hangs up first, as
many do after their REFER was accepted; the client then hears of the new call as of one that it has
placed itself.  The new call is paid and limited as all calls of the client are.
"""

from typing import TYPE_CHECKING

from p2psip.errors import RemoteError
from p2psip.ua.messages import InstantMessage
from p2psip.ua.transfers import Referral
from siprtmp.calls.call import AudioCall
from siprtmp.calls.context import CallUser
from siprtmp.media.sdp_map import MediaPlan

if TYPE_CHECKING:
    from siprtmp.calls.rich.line import Line


class TransferredCall(CallUser):
    """The user of the new call until it is answered: RFC 3515 §2.4.2.

    `alone` says that the old call has ended.
    """

    def __init__(self, line: "Line", referral: Referral) -> None:
        self._line, self._referral = line, referral
        self.log_id = line.log_id
        self.call = AudioCall(self, line.facilities)
        self.alone = False
        self.sound_header, self.takes_opus = line.sound_header, line.takes_opus

    def give_up(self, now: float) -> None:
        """End it with the old call, and tell the phone: RFC 3515 §2.4.5."""
        self.call.hang_up(now, "old call over")
        self._referral.progress(487, "Request Terminated", now)

    @property
    def host(self) -> str:
        """The host of the client."""
        return self._line.host

    @property
    def payer(self) -> str:
        """The key that the client's calls are counted under."""
        return self._line.payer

    def takes(self, codec: str) -> bool:
        """Whether the client has named this codec of pictures."""
        return codec in self.call.names

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        """Tell the phone (RFC 3515 §2.4.5), and the client if it hears nothing else."""
        self._referral.progress(status, reason, now)
        if self.alone:
            self._line.on_call_ringing(status, reason, now)

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """Give the call to the line: RFC 3515 §2.4.5."""
        self._referral.progress(200, "OK", now)
        self.call.give_to(self._line)
        self._line.take_over(self.call, plan, now)

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """Tell the phone, whose call goes on if it has not hung up: RFC 3515 §2.4.5."""
        self._referral.progress(status, reason, now)
        self._line.on_transfer_failed(self, status, reason, now)

    def on_call_cancelled(self, now: float) -> None:
        """Do nothing, since only a caller cancels.  RFC 3261 §9.2."""

    def on_call_over(self, reason: str, now: float) -> None:
        """Take the end of a call that the gateway drops: RFC 3261 §15."""
        self.on_call_failed(487, "Request Terminated", now)

    def on_call_held(self, held: bool, now: float) -> None:
        """Do nothing before the answer.  RFC 3264 §8.4."""

    def on_call_digit(self, digit: str, now: float) -> None:
        """Do nothing before the answer.  RFC 4733 §2.5.2.2."""

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        """Refuse a message before the answer.  RFC 3428 §7."""
        raise RemoteError("Temporarily Unavailable", 480)

    def on_call_refer(self, call: AudioCall, referral: Referral, now: float) -> None:
        """Refuse a transfer before the answer.  RFC 3515 §2.4.2."""
        raise RemoteError("Decline", 603)

    def on_call_transferred(self, status: int, reason: str, now: float) -> None:
        """Do nothing before the answer.  RFC 3515 §2.4.5."""

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """Do nothing before the answer.  RFC 3261 §12.2."""

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Drop early media, since the client still hears the old call.  RFC 3960 §3."""

    def on_unsuitable(self, text: str) -> None:
        """Do nothing before the answer.  RTMP 1.0 §7.2.2."""

    def on_key_frame_wanted(self) -> None:
        """Do nothing before the answer.  RFC 5104 §3.5.1."""

    def on_hold_back(self, hold: bool) -> None:
        """Do nothing, since nothing is published to it yet."""

    def on_drained(self, now: float) -> None:
        """Do nothing, since nothing is published to it yet."""
