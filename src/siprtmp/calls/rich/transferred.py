"""A call that a phone has asked for, to take the place of its own: a transfer.

Implements RFC 3515 §2.4.2 for the side that is transferred, and RFC 3891 §4 where the REFER has a
Replaces.

Own design: the old call goes on until the new one is answered, unless its phone hangs up first, as
many do after their REFER was accepted; the client then hears of the new call as of one that it has
placed itself.  The new call is paid and limited as all calls of the client are.
"""

from collections.abc import Callable

from p2psip.errors import RemoteError
from p2psip.ua.messages import InstantMessage
from p2psip.ua.transfers import Referral
from siprtmp.calls.call import Call
from siprtmp.calls.observer import CallObserver
from siprtmp.calls.stream_user import StreamUser
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.sink import MediaSink


class TransferredCall(CallObserver, MediaSink):
    """The user of the new call until it is answered: RFC 3515 §2.4.2.

    `user` is that of the old call, and takes the new one by `on_up(call, plan, now)`; it hears of a
    failure by `on_failed(self, status, reason, now)`.  `alone` says that the old call has ended.
    """

    def __init__(
        self,
        user: StreamUser,
        referral: Referral,
        on_up: Callable[[Call, MediaPlan, float], None],
        on_failed: Callable[["TransferredCall", int, str, float], None],
    ) -> None:
        super().__init__()
        self._user, self._referral = user, referral
        self._on_up, self._on_failed = on_up, on_failed
        self.log_id, self.published, self.takes_opus = user.log_id, user.published, user.takes_opus
        self.call = Call(self, self, user.context)
        self.alone = False

    def give_up(self, now: float) -> None:
        """End the new call together with the old one, and tell the phone: RFC 3515 §2.4.5."""
        self.call.hang_up(now, "old call over")
        self._referral.progress(487, "Request Terminated", now)

    @property
    def host(self) -> str:
        return self._user.host

    @property
    def payer(self) -> str | None:
        return self._user.payer

    def takes(self, codec: str) -> bool:
        return codec in self.call.names

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        """Tell the phone (RFC 3515 §2.4.5), and the client if it hears nothing else."""
        self._referral.progress(status, reason, now)
        if self.alone:
            self._user.on_call_ringing(status, reason, now)

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """Give the call to the line: RFC 3515 §2.4.5."""
        self._referral.progress(200, "OK", now)
        self.call.give_to(self._user, self._user)
        self._on_up(self.call, plan, now)

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """Tell the phone, whose call goes on if it has not hung up: RFC 3515 §2.4.5."""
        self._referral.progress(status, reason, now)
        self._on_failed(self, status, reason, now)

    def on_call_over(self, reason: str, now: float) -> None:
        """Take the end of a call that the gateway drops: RFC 3261 §15."""
        self.on_call_failed(487, "Request Terminated", now)

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        """Refuse a message before the answer.  RFC 3428 §7."""
        raise RemoteError("Temporarily Unavailable", 480)
