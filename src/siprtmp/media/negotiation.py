"""The offers and answers of one session, and the plan that the last of them makes.

Implements RFC 3264 §5 to §8 by way of `sdp_map`.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sdp.jsep import BrowserOffer
from p2psip.sdp.local_media import RepairSources
from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.sdes_transport import SrtpTerms
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import PLAIN, Endpoint, MediaPlan
from siprtmp.media.transport import MediaAddress
from siprtmp.media.video_lines import NAMES

TUNNEL: Final = "flv"  # the name of x-flv in the client's API


class Negotiation:
    """What both ends have said so far.

    `names` are the codecs of the client's API that may be agreed on, `holds` says that the peer is
    on hold (§8.4), `endpoint` has our addresses, and `srtp` says what we want of SRTP (RFC 4568
    §5.1); they count from the next description.  `is_browser` says that the peer is a browser,
    whose descriptions have an envelope.  `first` is our offer if that began the session,
    and `plan` what was agreed on last.
    """

    def __init__(self) -> None:
        self.endpoint = Endpoint("", 0, 0)
        self.names: Sequence[str] = ()
        self.holds = self.is_browser = False
        self.srtp = PLAIN
        self.first: SessionDescription | None = None
        self.plan: MediaPlan | None = None
        self._local: SessionDescription | None = None

    @property
    def wants_video(self) -> bool:
        """Whether video is named, and has no address yet: §5.1."""
        return self.endpoint.video is None and not set(NAMES).isdisjoint(self.names)

    @property
    def wants_tunnel(self) -> bool:
        """Whether x-flv is named, and has no address yet: §5.1."""
        return self.endpoint.x_flv is None and TUNNEL in self.names

    @property
    def allowed_srtp(self) -> SrtpTerms:
        """What we want of keys in descriptions: those of a browser come by DTLS, RFC 5763 §3."""
        return PLAIN if self.is_browser else self.srtp

    @property
    def _ours(self) -> Endpoint:
        """Our side, with its terms of SRTP and the keys of each line until now: RFC 4568 §7.1.4."""
        return replace(self.endpoint, srtp=self.allowed_srtp, keys=sdp_map.keys_of(self.plan))

    def have_video(
        self, at: MediaAddress | None, *, vp8: bool = False, repairs: RepairSources | None = None
    ) -> None:
        """Note the address of video, None if it is closed, and more of `Endpoint`: §5.1, §8.2."""
        self.endpoint = replace(self.endpoint, video=_local(at), vp8=vp8, repairs=repairs)

    def have_tunnel(self, at: MediaAddress | None) -> None:
        """Note the address of x-flv, None if it is closed: §5.1, §8.2."""
        self.endpoint = replace(self.endpoint, x_flv=_local(at))

    def read(self, sdp: bytes, hosts: Collection[str], host: str = "") -> SessionDescription:
        """Read a description that comes from these hosts, as `sdp_map.read` does.

        That of a browser counts as one of plain RTP at our own address, or at `host` before there
        is one: ICE tells where the browser is.  Raises RemoteError.
        """
        if self.is_browser:
            return BrowserOffer.read(sdp, self.endpoint.host or host).plain
        return sdp_map.read(sdp, hosts)

    def offer(self, names: Sequence[str], unnamed: bool) -> bytes:
        """The first offer (§5), for `sdp_map.offer`.  Raises RemoteError(488) if it is empty."""
        self.first = self._local = sdp_map.offer(names, self._ours, unnamed=unnamed)
        return bytes(self._local)

    def answer(self, theirs: SessionDescription, again: bool) -> bytes:
        """Answer the first offer, or (`again`) a later one: §6, §8.

        Raises RemoteError, 488 without a codec in common, which leaves all as it was.
        """
        previous = self._local if again else None
        self._local, self.plan = sdp_map.answer(
            theirs, self.names, self._ours, previous=previous, holds=self.holds
        )
        return bytes(self._local)

    def conclude(self, theirs: SessionDescription, ours: bytes) -> None:
        """Take the answer to our first offer, or to `ours`: §7.  Raises RemoteError."""
        offered = SessionDescription.parse(ours) if ours else self.first
        if offered is None:
            raise RemoteError("Not Acceptable Here", 488)
        self.plan = sdp_map.conclude(offered, theirs, self._ours)

    def offer_again(self, theirs: SessionDescription | None) -> bytes:
        """A later offer; `theirs` is the description in force: §8.  Raises RemoteError(488)."""
        if self._local is None:
            raise RemoteError("Not Acceptable Here", 488)
        self._local = sdp_map.offer_again(
            self.names, self._ours, self._local, theirs, holds=self.holds
        )
        return bytes(self._local)


def _local(at: MediaAddress | None) -> LocalTransport | None:
    return LocalTransport(at.port, rtcp_port=at.rtcp_port) if at is not None else None
