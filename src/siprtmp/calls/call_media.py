"""The reactions of a call to events of its media leg.

Own design: the half of `AudioCall` that no SIP message drives.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Final

from p2psip.ua.call import UserAgentCall
from p2psip.ua.uas import IncomingCall
from rtmplite.flv.audio import SoundFormat
from siprtmp.calls.context import CallContext, CallUser
from siprtmp.media.leg import Leg

DEAD: Final = 'SIP;cause=408;text="Media Timeout"'  # Reason of the BYE: RFC 3326 §2


class CallMedia(ABC):
    """The listener of a call's leg; a phone that has vanished ends the call."""

    user: CallUser
    call: UserAgentCall | None
    leg: Leg | None
    _facilities: CallContext
    _ringing: IncomingCall | None

    @abstractmethod
    def drop(self, now: float, reason: str, cause: str | None = None) -> None:
        """Hang up for a reason of the gateway's: RFC 3261 §15."""

    def on_hold_back(self, hold: bool) -> None:
        """Tell the user to hold its publisher back, see `pacing`."""
        self.user.on_hold_back(hold)

    def on_unsuitable(self, sound_format: int) -> None:
        """Log that the phone does not hear the publisher: FLV 10.1 §E.4.2.1."""
        leg = self.leg
        agreed = [codec.name for codec, _ in leg.plan.sending] if leg and leg.plan else []
        name = next((each.name for each in SoundFormat if each == sound_format), str(sound_format))
        call_id = self.call.id if self.call is not None else "-"
        self._facilities.log.warning(
            "sound-unsuitable",
            call=call_id,
            rtmp=self.user.log_id,
            codec=name.lower(),
            agreed=",".join(agreed),
        )

    def on_quiet(self, now: float) -> None:
        """Ask a silent phone whether it is still there: RFC 3261 §11."""
        if self.call is not None:
            self.call.ask(now)

    def on_silence(self, now: float) -> None:
        """End the call of a phone that has vanished, which would last for ever."""
        self.drop(now, "media timeout", DEAD)

    def on_drained(self, now: float) -> None:
        """Tell the user that the last packet has been sent."""
        self.user.on_drained(now)

    def _hosts(self, now: float) -> Collection[str]:
        """The hosts that the signalling comes from: the peer, or phones behind our own proxy."""
        if self.call is None:
            return ()
        host, media = self.call.peer_host, self._facilities.media
        if host is not None:
            return (host,)
        return (media.media_host, *media.phone_hosts(self.call.remote.uri, now))
