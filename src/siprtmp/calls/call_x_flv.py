"""The tunnel of a call between two gateways: see `media.x_flv_leg`.

Implements RFC 3264 §5.1 for the line of x-flv.

Own design: without a port for it, or another side that takes it, the call has sound alone.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from p2psip.errors import LocalError
from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint, XFlvPlan
from siprtmp.media.tunnel_stream import TunnelStream

if TYPE_CHECKING:
    from siprtmp.calls.call import AudioCall

NAME: Final = "flv"


class CallXFlv:
    """Opens, starts and closes the tunnel of a call, and speaks for it.

    `leg` is the tunnel once both sides have agreed on one, else None.
    """

    def __init__(self, call: "AudioCall") -> None:
        self._call = call
        self.leg: TunnelStream | None = None
        self._opened: TunnelStream | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a port for it.  RFC 3264 §5.1."""
        return self._opened is not None

    def offered_at(self, endpoint: Endpoint, peers: Collection[str], now: float) -> Endpoint:
        """Our endpoint with a port for x-flv, if the user names it and a port is left."""
        call = self._call
        if NAME not in call.names or endpoint.x_flv is not None or call.leg is None:
            return endpoint
        try:
            leg, at = call.facilities.media.open_x_flv(self, peers, now, call.leg)
        except LocalError:
            call.log_event("video-without-port")
            return endpoint
        self._opened, _ = leg, leg.give_to(call.user.on_tag)
        return replace(endpoint, x_flv=LocalTransport(at.port, rtcp_port=at.rtcp_port))

    def answering(
        self, endpoint: Endpoint, theirs: SessionDescription, peers: Collection[str], now: float
    ) -> Endpoint:
        """Our endpoint for the answer to an offer, which has x-flv or not: RFC 3264 §6."""
        if not sdp_map.offers_x_flv(theirs):
            return endpoint
        return self.offered_at(endpoint, peers, now)

    def start(
        self, plan: XFlvPlan | None, now: float, hosts: Collection[str], early: bool, proven: bool
    ) -> None:
        """Send and receive as an answer settled, or stop if it has no x-flv: RFC 3264 §7."""
        if plan is not None and self._opened is not None:
            self.leg = self._opened
            self.leg.start(plan, now, hosts=hosts, early=early, proven=proven)
        elif not early:
            self.close(now)

    def close(self, now: float) -> None:
        """Close the ports: RFC 3264 §8.2."""
        opened, self._opened, self.leg = self._opened, None, None
        if opened is not None:
            opened.close(now)
            self._call.facilities.media.close_leg(opened)

    # -- VideoListener ------------------------------------------------------------------

    def on_hold_back(self, asker: object, hold: bool) -> None:
        """Hold the publisher back for its messages: see `pacing`."""
        self._call.hold_back(asker, hold)

    def on_video_unsuitable(self, reason: str) -> None:
        """Log that the other side does not get a message."""
        self._call.facilities.unsuitable += 1
        self._call.log_warning("video-unsuitable", reason=reason)
        self._call.user.on_unsuitable(f"The other side cannot get this: {reason}.")

    def on_video_transcoding(self, making: str, reason: str) -> None:
        """Do nothing, since all pictures pass through a tunnel.  RFC 6184 §8.2.2."""

    def on_key_frame_needed(self, now: float) -> None:
        """Do nothing, since a tunnel asks for no key frame.  RFC 5168 §4."""

    def on_key_frame_wanted(self) -> None:
        """Do nothing, since a tunnel asks for no key frame.  RFC 5104 §3.5.1."""

    def takes(self, codec: str) -> bool:
        """Whatever it is, since all pictures pass through a tunnel.  RFC 3264 §5.1."""
        return True

    def on_picture_size(self, now: float) -> None:
        """Do nothing, since the metadata of the publisher come through.  FLV 10.1 §E.5."""
