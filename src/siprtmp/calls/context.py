"""The surroundings of calls: ports and timers, and what RTMP clients may ask for.

Own design: the protocols between the gateway's machines and its edge.
"""

from collections.abc import Callable, Collection
from typing import Final, Protocol

from p2psip.server.port_shares import PortShare
from p2psip.sip.uri import Uri
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from siprtmp.media.session import MediaSession
from siprtmp.media.transcode.transcoding import VideoTranscoders
from siprtmp.media.transport import Timed, Waker

KEY_FRAME_WANTED: Final = "NetStream.Publish.KeyFrameWanted"  # Own design: RTMP has no such code
UNSUITABLE: Final = "NetStream.Publish.Unsuitable"  # Own design: what cannot be carried

# What the user agents of RTMP clients take beyond calls.
EXTENSIONS: Final = Extensions(methods=(*CALL_METHODS, "MESSAGE", "REFER", "NOTIFY"))


class MediaEdge(Protocol):
    """Opens sessions; `MediaSide` is the real one."""

    @property
    def media_host(self) -> str:
        """The address that peers outside know us by: RFC 8866 §5.7."""

    @property
    def video_transcoding(self) -> VideoTranscoders | None:
        """How video is decoded and encoded, None if it is not."""

    def host_for(self, peers: Collection[str]) -> str:
        """The address of ours that peers at these hosts can reach: RFC 8866 §5.7."""

    def open(
        self,
        session: MediaSession,
        lost: Callable[[float], None],
        peers: Collection[str],
        now: float,
        share: PortShare | None = None,
    ) -> None:
        """Open a session with peers at these hosts; `lost(now)` is called if its way breaks.

        Raises LocalError when no port is left, or none for `share`, whose ports these are.
        """

    def phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """Where the phones of a user of ours registered from: RFC 3261 §10.2."""

    def waker(self, machine: Timed) -> Waker:
        """A timer for a machine."""
