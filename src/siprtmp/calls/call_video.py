"""The pictures of a call, as long as both ends have any.

Implements RFC 3264 §5.1 for the line beside the sound's, and RFC 5168 §4 for phones that take no
RTCP feedback: Field §"Key frames by INFO".

Own design: pictures never decide about a call.  Without a port for them, or a phone that takes
them, the call has sound alone.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.session import SessionDescription
from rtmplite.live.streams import LiveStream
from siprtmp.calls.call_media import or_
from siprtmp.calls.metadata import describe
from siprtmp.media.lines.h264 import NAMES, VideoPlan, are_offered, picture_names
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.translate.flv_to_h264 import H264, TOO_LONG
from siprtmp.media.translate.flv_to_vp8 import VP8
from siprtmp.media.video_stream import VideoStream

TRANSCODE_VIDEO: Final = "--transcode-video"

if TYPE_CHECKING:
    from siprtmp.calls.call import AudioCall

SHOWN: Final = {"h264": "H.264", "h265": "H.265", "vp8": "VP8"}
MEDIA_CONTROL: Final = "application/media_control+xml"  # Source: RFC 5168 §7.1
FAST_UPDATE: Final = (
    b'<?xml version="1.0" encoding="utf-8"?><media_control><vc_primitive><to_encoder>'
    b"<picture_fast_update/></to_encoder></vc_primitive></media_control>"
)


class CallVideo:
    """Opens, starts and closes the video leg of a call, and speaks for it.

    `leg` is None for a call without pictures, `described` is the stream of what the phone sends.
    """

    def __init__(self, call: "AudioCall") -> None:
        self._call = call
        self.leg: VideoStream | None = None
        self.described: LiveStream | None = None
        self._is_refused = False  # the request of RFC 5168

    def offered_at(self, endpoint: Endpoint, peers: Collection[str], now: float) -> Endpoint:
        """Our endpoint with a port for pictures, if the user has them and a port is left."""
        call = self._call
        if set(NAMES).isdisjoint(call.names) or endpoint.video is not None or call.leg is None:
            return endpoint
        try:
            # RFC 3550 §6.5.1: one name for all streams that are heard and seen together
            leg, at = call.facilities.media.open_video(self, peers, now, call.leg)
        except LocalError:
            call.facilities.unsuitable += 1
            call.log_warning("video-without-port", cure="a wider --rtp-ports")
            return endpoint
        self.leg, _ = leg, leg.give_to(call.user.on_tag)
        leg.on_late = partial(call.on_late, "pictures")
        video = LocalTransport(at.port, rtcp_port=at.rtcp_port)
        return replace(endpoint, video=video, vp8=call.facilities.media.pictures is not None)

    def answering(
        self, endpoint: Endpoint, theirs: SessionDescription, peers: Collection[str], now: float
    ) -> Endpoint:
        """Our endpoint for the answer to an offer, which has pictures or not: RFC 3264 §6."""
        call = self._call
        makes = H264 in call.names and call.facilities.media.pictures is not None
        if not are_offered(theirs, (*call.names, *([VP8] if makes else ()))):
            return endpoint
        return self.offered_at(endpoint, peers, now)

    def start(
        self, plan: VideoPlan | None, now: float, hosts: Collection[str], early: bool, proven: bool
    ) -> None:
        """Send and receive as an answer settled, or stop if it has no pictures: RFC 3264 §7."""
        if plan is not None and self.leg is not None:
            self.leg.start(plan, now, hosts=hosts, early=early, proven=proven)
        elif not early:
            self.close(now)

    def close(self, now: float) -> None:
        """Close the ports: RFC 3264 §8.2."""
        if self.leg is not None:
            self.leg.close(now)
            self._call.facilities.media.close_leg(self.leg)
            self.leg = None

    def watched(self, remote: LiveStream, now: float) -> None:
        """Ask the phone for a key frame if those who watch it have none to begin with.

        RFC 5104 §3.5.1; a player that joins gets the pictures since the last one, if they are kept.
        """
        if remote.players and remote.starts_at is None and self.leg is not None:
            self.leg.ask_key_frame(now)

    def on_info(self, body: bytes, now: float) -> None:
        """Take the phone's wish for a key frame, or its word that ours were none: RFC 5168 §4."""
        if self.leg is None:
            return
        if b"general_error" in body:
            self._is_refused = True
        elif b"picture_fast_update" in body:
            self.leg.want_key_frame(now)  # RFC 5168 §4 [fast-update-asks-the-encoder]

    # -- VideoListener ------------------------------------------------------------------

    def on_hold_back(self, asker: object, hold: bool) -> None:
        """Hold the publisher back for its pictures: see `pacing`."""
        self._call.hold_back(asker, hold)

    def on_video_unsuitable(self, reason: str) -> None:
        """Log that the phone does not see the publisher, and the cure: FLV 10.1 §E.4.3.1."""
        call, plan = self._call, self.leg.plan if self.leg is not None else None
        other = or_([SHOWN[name] for name in (plan.names if plan is not None else [H264])])
        cure = f"publish {other}"
        if reason == TOO_LONG and self.leg is not None:
            cure = f"publish slices of {self.leg.max_octets} octets at most"
        if call.facilities.media.pictures is None:
            cure += f", or start the gateway with {TRANSCODE_VIDEO}"
        call.facilities.unsuitable += 1
        call.log_warning("video-unsuitable", reason=reason, cure=cure)
        call.user.on_unsuitable(f"The phone cannot see this: {reason}; {cure}.")

    def note_lack(
        self, ours: SessionDescription | None, theirs: bytes | None, *, is_offer: bool
    ) -> None:
        """Log that a call has no pictures though one side has offered some: RFC 3264 §6.

        `is_offer` tells that `ours` was the offer.
        """
        call = self._call
        try:
            said = SessionDescription.parse(theirs or b"")
        except RemoteError:
            return
        offer = ours if is_offer else said
        names = picture_names(offer) if offer is not None else []
        if not names:
            return
        reason, cure = "no codec in common", "let the phone offer H264"
        if is_offer and not picture_names(said):
            reason, cure = "the phone refuses the line", "turn video on at the phone"
        elif not is_offer and set(NAMES).isdisjoint(call.names):
            reason, cure = "the client takes no pictures", "let the client name h264"
        elif not is_offer and VP8 in names and call.facilities.media.pictures is None:
            cure += f", or start the gateway with {TRANSCODE_VIDEO}"
        call.log_event("video-refused", offered=",".join(names), reason=reason, cure=cure)

    def on_video_transcoding(self, making: str, reason: str) -> None:
        """Log that pictures are decoded and encoded: RFC 6184 §8.2.2."""
        codec, _, to = making.partition(" > ")
        self._call.note_made(making)
        self._call.log_event("transcoding", codec=codec, to=to, reason=reason)

    def on_key_frame_needed(self, now: float) -> None:
        """Ask the phone by INFO: RFC 5168 §4."""
        # RFC 5168 §6 [no-more-after-an-error]
        if self._call.call is not None and not self._is_refused:
            self._call.call.info(MEDIA_CONTROL, FAST_UPDATE, now)

    def on_key_frame_wanted(self) -> None:
        """Ask the publisher: RFC 5104 §3.5.1."""
        self._call.user.on_key_frame_wanted()

    def on_picture_size(self, now: float) -> None:
        """Tell the players, if their stream has begun without it: FLV 10.1 §E.5."""
        if self.described is not None and self.described.publishing:
            describe(self.described, self._call, now)

    def takes(self, codec: str) -> bool:
        """Whether players take this codec beside H.264.

        E-RTMP v2 §"Enhancing NetConnection connect Command".
        """
        return self._call.user.takes(codec)
