"""What either side of a call asks for while it is up.

Implements RFC 3261 §14, RFC 3264 §8, RFC 3428 §4 and §7, RFC 3515 §2.4, and
RFC 6086 §4.2.2.

Own design: the half of `AudioCall` that is about requests within the dialog.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, cast

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.session import SessionDescription
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.ua.call import CallHandler, UserAgentCall
from p2psip.ua.messages import InstantMessage
from p2psip.ua.requests.request_validation import RefusalError
from p2psip.ua.transfers import Referral
from siprtmp.calls.call_keys import DTMF_RELAY, KEY_TYPES
from siprtmp.calls.call_media import CallMedia
from siprtmp.calls.call_video import MEDIA_CONTROL
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import MediaPlan

if TYPE_CHECKING:
    from siprtmp.calls.call import AudioCall

HOLD: Final = "hold"  # asks a leg to be silent
INFO_TYPES: Final = ", ".join((*KEY_TYPES, MEDIA_CONTROL))


class CallRequests(CallMedia, CallHandler):
    """New offers of either side, and the other requests of RFC 3261 §12.2."""

    holds: bool
    _held: bool
    _local: SessionDescription | None
    _plan: MediaPlan | None

    @abstractmethod
    def _start(self, plan: MediaPlan, now: float, *, early: bool = False) -> None: ...

    @abstractmethod
    def _unusable(self, error: RemoteError, now: float) -> None: ...

    # -- for the user -------------------------------------------------------------------

    def hold(self, on: bool, now: float) -> None:
        """Put the phone on hold, or take it off: RFC 3264 §8.4.

        Own design: the publisher's sound and pictures stop at once, whatever the phone answers,
        since a user on hold does not expect to be heard.
        """
        if self.call is None or not self.call.is_up or self.leg is None or on == self.holds:
            return
        self.holds = on  # RFC 6337 §5.3 [hold-is-our-own-wish]
        self.leg.mute(HOLD, on)
        self.call.reinvite(self.on_offer(self.call, None, now), now)

    def message(self, text: str, now: float) -> None:
        """Send an instant message within the call: RFC 3428 §4.

        Raises RemoteError without a call that is up, and LocalError for a text that is too long.
        """
        if self.call is None or not self.call.is_up:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        self.call.message(text, now)

    def transfer(self, target: Uri, now: float) -> None:
        """Ask the phone to call `target` instead: RFC 3515 §2.4.1.

        Raises RemoteError if it cannot be asked now.
        """
        if self.call is None or not self.call.is_up:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        try:
            self.call.refer(target, now)
        except LocalError:
            raise RemoteError("Request Pending", 491) from None

    # -- CallHandler --------------------------------------------------------------------

    def on_offer(self, call: UserAgentCall, sdp: bytes | None, now: float) -> bytes:
        """Answer a re-INVITE: hold, another address, another codec.  RFC 3264 §8.

        Raises RemoteError(488), which leaves the call as it was (RFC 3261 §14.2).
        """
        if self._endpoint is None or self._local is None:
            raise RemoteError("Not Acceptable Here", 488)
        if not sdp:
            theirs = self._read(call.remote_sdp, now) if call.remote_sdp else None
            self._local = sdp_map.offer_again(
                self.names, self._endpoint, self._local, theirs, holds=self.holds
            )
            return bytes(self._local)
        theirs = self._read(sdp, now)
        self._endpoint = self._answering(self._endpoint, theirs, now)
        self._local, plan = sdp_map.answer(
            theirs, self.names, self._endpoint, previous=self._local, holds=self.holds
        )
        self._change(plan, now, early=True)
        return bytes(self._local)

    def on_confirmed(self, call: UserAgentCall, now: float) -> None:
        """Our answer to a new offer is acknowledged (RFC 3261 §14.2): follow the peer's address."""
        if self._plan is not None:
            self._start(self._plan, now)

    def on_alive(self, call: UserAgentCall, now: float) -> None:
        """A SIP message is a sign of life, also of a phone without sound: RFC 3261 §12.2."""
        if self.leg is not None:
            self.leg.alive(now)

    def on_answer(self, call: UserAgentCall, sdp: bytes | None, now: float) -> None:
        """The answer in the ACK or 200 of a re-INVITE: RFC 3261 §14.2."""
        if sdp:
            ours = SessionDescription.parse(call.local_sdp)  # another offer may wait already
            try:
                self._change(sdp_map.conclude(ours, self._read(sdp, now)), now)
            except RemoteError as error:
                self._unusable(error, now)  # Field §"Refusals by port 0"

    def on_reoffer_failed(self, call: UserAgentCall, status: int, reason: str, now: float) -> None:
        """The session stays as it was: RFC 3261 §14.1."""
        self.user.on_call_request_failed("hold", f"{status} {reason}", now)

    def on_info(
        self, call: UserAgentCall, content_type: str, body: bytes, now: float, package: str | None
    ) -> None:
        """Take a key of the phone, or what it says about pictures: RFC 6086 §4.2.2, RFC 5168 §4.

        Any other body is refused, since the phone may know another way.
        """
        if not body:
            return
        if content_type in KEY_TYPES:
            self.keys.on_info(body, now)
        elif content_type == MEDIA_CONTROL:
            self.video.on_info(body, now)
        else:
            # RFC 3261 §8.2.3 [415-for-the-body] [415-says-accept]
            raise RefusalError(415, "Unsupported Media Type", [("Accept", INFO_TYPES)])

    def on_message(self, call: UserAgentCall, message: InstantMessage, now: float) -> None:
        """Take a message of the phone: RFC 3428 §7."""
        self.user.on_call_message(message, now)

    def on_transfer(self, call: UserAgentCall, status: int, reason: str, now: float) -> None:
        """Tell the user what became of its transfer: RFC 3515 §2.4.5."""
        self.user.on_call_transferred(status, reason, now)

    def on_refer(self, call: UserAgentCall, referral: Referral, now: float) -> None:
        """Ask the user whether it follows a transfer: RFC 3515 §2.4.2."""
        self.user.on_call_refer(cast("AudioCall", self), referral, now)

    def on_refused(
        self, call: UserAgentCall, request: Request, response: Response, now: float
    ) -> None:
        """Tell the user that its message or its keys were refused: RFC 3261 §12.2.1.2."""
        reason = f"{response.status} {response.reason}"
        if request.method == "MESSAGE":
            self.user.on_call_request_failed("sendMessage", reason, now)
        elif request.content_type == DTMF_RELAY:
            self.user.on_call_request_failed("sendDTMF", reason, now)

    # -- inside -------------------------------------------------------------------------

    def _change(self, plan: MediaPlan, now: float, *, early: bool = False) -> None:
        """Apply a later answer, and tell the user of hold and its end: RFC 3264 §8.4.

        Departs from RFC 6337 §5.3 [sendonly-is-no-command]: a phone that only sends counts as one
        that holds us, since the user is not heard there, whatever the reason.
        """
        self._start(plan, now, early=early)
        if plan.audio.media.held != self._held:
            self._held = plan.audio.media.held
            self.user.on_call_held(self._held, now)
