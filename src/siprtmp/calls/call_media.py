"""What a call hears of its media, and where it lets media go.

Own design: the half of `AudioCall` that SIP knows nothing of.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Final

from p2psip.ua.call import UserAgentCall
from p2psip.ua.uas import IncomingCall
from siprtmp.calls.context import CallContext, CallUser

DEAD: Final = 'SIP;cause=408;text="Media Timeout"'  # to say in the BYE: RFC 3326 §2


class CallMedia(ABC):
    """The listener of a call's leg.  Own design: what comes from there ends in SIP."""

    user: CallUser
    call: UserAgentCall | None
    _facilities: CallContext
    _ringing: IncomingCall | None

    @abstractmethod
    def drop(self, now: float, reason: str, cause: str | None = None) -> None:
        """Hang up where nobody asked for it: RFC 3261 §15."""

    def on_hold_back(self, hold: bool) -> None:
        """Pass the brake on.  Own design: see `pacing`."""
        self.user.on_hold_back(hold)

    def on_quiet(self, now: float) -> None:
        """Ask a silent phone whether it is still there: RFC 3261 §11."""
        if self.call is not None:
            self.call.ask(now)

    def on_silence(self, now: float) -> None:
        """End the call of a phone that has vanished.  Own design: it would last for ever."""
        self.drop(now, "media timeout", DEAD)

    def on_drained(self, now: float) -> None:
        """Tell that the last packet has left.  Own design: a file is heard out first."""
        self.user.on_drained(now)

    def _hosts(self, now: float) -> Collection[str]:
        """Where the signalling comes from: through ourselves, that is from a phone of ours."""
        if self.call is None:
            return ()
        host, media = self.call.peer_host, self._facilities.media
        if host is not None:
            return (host,)
        return (media.media_host, *media.phone_hosts(self.call.remote.uri, now))
