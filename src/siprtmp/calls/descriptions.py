"""The offers, early and late, and answers of one call, between SIP messages and media session.

Implements RFC 3264 §5 to §8 as RFC 3261 §13 and §14 carry them, by way of `MediaSession`.

Own design: the session knows no SIP.  What it asks for is said here: which hosts have sent a
description, and whether somebody may have forged that; a datagram can be, until the ACK.
"""

from collections.abc import Callable, Collection, Sequence

from p2psip.errors import RemoteError
from p2psip.ua.call import UserAgentCall
from siprtmp.calls import codec_names
from siprtmp.calls.call_log import CallLog
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.session import MediaSession
from siprtmp.media.stream import Signalled

HostsOf = Callable[[UserAgentCall, float], Collection[str]]


class Descriptions:
    """Leads a session by the descriptions of a call.

    `hosts_of` tells where the peer's come from; `are_proven` says that they cannot be forged.
    """

    def __init__(self, media: MediaSession, log: CallLog, hosts_of: HostsOf) -> None:
        self._media, self._log, self._hosts_of = media, log, hosts_of
        self.are_proven = self._was_held = False

    def check(self, call: UserAgentCall, host: str, now: float) -> None:
        """Raise RemoteError(488) for an offer of which nothing could be answered from `host`."""
        if call.remote_sdp:
            terms = self._media.terms
            theirs = terms.read(call.remote_sdp, self._hosts_of(call, now), host)
            names, srtp = codec_names.everything(), terms.allowed_srtp
            if not sdp_map.is_acceptable(theirs, names, host=host, srtp=srtp):
                self._log.lack(theirs)
                raise sdp_map.refusal(theirs, srtp)

    def first(self, call: UserAgentCall, names: Sequence[str], now: float) -> bytes:
        """Answer the INVITE's offer with the codecs named; without one (late offer) make ours.

        RFC 3264 §5, §6.

        Raises RemoteError(488) without a codec in common.
        """
        self._media.terms.names = names
        if not call.remote_sdp:
            return self._media.offer(now, codec_names.brief(names))
        try:
            return self._media.answer(call.remote_sdp, now, self._signalled(call, now))
        except RemoteError:
            self._log.lack(self._media.terms.read(call.remote_sdp, self._hosts_of(call, now)))
            raise

    def early(self, call: UserAgentCall, sdp: bytes | None, now: float) -> None:
        """Start early media by the answer in a provisional response: RFC 3960 §3."""
        if sdp and self._media.is_open and self._media.terms.first is not None:
            try:
                self._media.conclude(sdp, now, self._signalled(call, now), early=True)
            except RemoteError:
                self._log.event("early-media-unusable")

    def settle(self, call: UserAgentCall, sdp: bytes | None, now: float) -> MediaPlan:
        """Begin for good, as the call is answered.  Raises RemoteError.

        RFC 3261 §13.2.2.4, §13.3.1.4: nobody else could answer, or acknowledge.
        """
        self.are_proven = True
        plan = self._media.settle(sdp or b"", now, self._signalled(call, now))
        self._log.answer(plan)
        self._media.log_no_video(plan, sdp or call.remote_sdp)
        return plan

    def again(self, call: UserAgentCall, sdp: bytes | None, now: float) -> bytes:
        """Answer a later offer, or make one without `sdp`: RFC 3264 §8.  Raises RemoteError."""
        by = self._signalled(call, now)
        if not sdp:
            return self._media.offer_again(call.remote_sdp, by)
        return self._media.answer(sdp, now, by, again=True)

    def concluded(self, call: UserAgentCall, sdp: bytes, now: float) -> None:
        """Take the answer to a later offer (RFC 3261 §14.2), if none waits behind it."""
        ours = call.local_sdp
        self._media.conclude(sdp, now, self._signalled(call, now), ours=ours)

    def confirmed(self, call: UserAgentCall, now: float) -> None:
        """Follow our answer, as it is acknowledged: RFC 3261 §14.2."""
        self._media.confirm(now, self._signalled(call, now))

    def news_of_hold(self) -> bool | None:
        """Whether the phone holds us, None if nothing is new: RFC 3264 §8.4.

        Departs from RFC 6337 §5.3 [sendonly-is-no-command]: a phone that only sends counts as one
        that holds us, since the user is not heard there, whatever the reason.
        """
        if self._media.is_held == self._was_held:
            return None
        self._was_held = self._media.is_held
        return self._was_held

    def _signalled(self, call: UserAgentCall, now: float) -> Signalled:
        return Signalled(self._hosts_of(call, now), self.are_proven)
