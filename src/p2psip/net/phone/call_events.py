"""The events of a call's signalling, for the call of a script.

Implements RFC 3261 §13, §14 and §15, and RFC 3515 §2.4, from the user's side.
"""

import logging
from typing import TYPE_CHECKING, Final

from p2psip.errors import RemoteError
from p2psip.ua.owner import CallHandler
from p2psip.ua.transfers import Referral
from p2psip.ua.ua import UserAgentCall as Signalling

if TYPE_CHECKING:
    from p2psip.net.phone.call import Call

log: Final = logging.getLogger(__name__)


class CallEvents(CallHandler):
    """Passes the events of the signalling to a `Call` (§13 to §15)."""

    def __init__(self, call: "Call") -> None:
        self._call = call

    def on_ringing(
        self, call: Signalling, status: int, reason: str, sdp: bytes | None, now: float
    ) -> None:
        if sdp is not None:
            try:
                self._call._audio.conclude(sdp)  # early media: §13.2.1
            except RemoteError as error:
                log.info("early media of %s: %s", call.id, error)
        self._call._progress(status, reason)
        self._call.on_ringing(status, reason)

    def on_refer(self, call: Signalling, referral: Referral, now: float) -> None:
        self._call._refer(referral)

    def on_transfer(self, call: Signalling, status: int, reason: str, now: float) -> None:
        if status >= 300:
            self._call._transfer.set_exception(RemoteError(reason, status))
        elif status >= 200:
            self._call._transfer.set(None)

    def on_accepted(self, call: Signalling, sdp: bytes, now: float) -> None:
        self._call._accepted(sdp)

    def on_rejected(self, call: Signalling, status: int, reason: str, now: float) -> None:
        self._call._progress(status, reason)
        self._call._end(f"{status} {reason}", RemoteError(reason, status))

    def on_cancelled(self, call: Signalling, now: float) -> None:
        self._call._end("CANCEL", RemoteError("Request Terminated", 487))

    def on_ended(self, call: Signalling, reason: str, now: float) -> None:
        self._call._end(reason, RemoteError(reason, 487))

    def on_offer(self, call: Signalling, sdp: bytes | None, now: float) -> bytes:
        return self._call._audio.offer() if sdp is None else self._call._audio.answer(sdp)

    def on_answer(self, call: Signalling, sdp: bytes, now: float) -> None:
        try:
            self._call._audio.conclude(sdp)
        except RemoteError as error:
            call.bye(now)
            self._call._end(str(error), error)
        else:
            self._call._reoffered.set(None)

    def on_confirmed(self, call: Signalling, now: float) -> None:
        """Do nothing: the new session is in force already: §14.2."""

    def on_alive(self, call: Signalling, now: float) -> None:
        """Do nothing: a script has time limits of its own."""

    def on_reoffer_failed(self, call: Signalling, status: int, reason: str, now: float) -> None:
        """Take the refusal of `Call.hold`: the session stays as it was: §14.1."""
        self._call._reoffered.set_exception(RemoteError(reason, status))

    def on_info(
        self, call: Signalling, content_type: str, body: bytes, now: float, package: str | None
    ) -> None:
        """Pass it on: RFC 6086 §4.2.2."""
        self._call.on_info(package, content_type, body)
