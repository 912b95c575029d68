"""The offers and answers of one session, and the plan that the last of them makes.

Implements RFC 3264 §5 to §8 by way of `sdp_map`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint, MediaPlan
from siprtmp.media.transport import MediaAddress
from siprtmp.media.video_lines import NAMES

TUNNEL: Final = "flv"  # the name of x-flv in the client's API


class Negotiation:
    """What both ends have said so far.

    `names` are the codecs of the client's API that may be agreed on, `holds` says that the peer is
    on hold (§8.4), and `endpoint` has our addresses; they count from the next description.  `first`
    is our offer if that began the session, and `plan` what was agreed on last.
    """

    def __init__(self) -> None:
        self.endpoint = Endpoint("", 0, 0)
        self.names: Sequence[str] = ()
        self.holds = False
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

    def have_video(self, at: MediaAddress | None, *, vp8: bool = False) -> None:
        """Note the address of video, None if it is closed; `vp8` as in `Endpoint`: §5.1, §8.2."""
        self.endpoint = replace(self.endpoint, video=_local(at), vp8=vp8)

    def have_tunnel(self, at: MediaAddress | None) -> None:
        """Note the address of x-flv, None if it is closed: §5.1, §8.2."""
        self.endpoint = replace(self.endpoint, x_flv=_local(at))

    def offer(self, names: Sequence[str], unnamed: bool) -> bytes:
        """The first offer (§5), for `sdp_map.offer`.  Raises RemoteError(488) if it is empty."""
        self.first = self._local = sdp_map.offer(names, self.endpoint, unnamed=unnamed)
        return bytes(self._local)

    def answer(self, theirs: SessionDescription, again: bool) -> bytes:
        """Answer the first offer, or (`again`) a later one: §6, §8.

        Raises RemoteError, 488 without a codec in common, which leaves all as it was.
        """
        previous = self._local if again else None
        self._local, self.plan = sdp_map.answer(
            theirs, self.names, self.endpoint, previous=previous, holds=self.holds
        )
        return bytes(self._local)

    def conclude(self, theirs: SessionDescription, ours: bytes) -> None:
        """Take the answer to our first offer, or to `ours`: §7.  Raises RemoteError."""
        offered = SessionDescription.parse(ours) if ours else self.first
        if offered is None:
            raise RemoteError("Not Acceptable Here", 488)
        self.plan = sdp_map.conclude(offered, theirs)

    def offer_again(self, theirs: SessionDescription | None) -> bytes:
        """A later offer; `theirs` is the description in force: §8.  Raises RemoteError(488)."""
        if self._local is None:
            raise RemoteError("Not Acceptable Here", 488)
        self._local = sdp_map.offer_again(
            self.names, self.endpoint, self._local, theirs, holds=self.holds
        )
        return bytes(self._local)


def _local(at: MediaAddress | None) -> LocalTransport | None:
    return LocalTransport(at.port, rtcp_port=at.rtcp_port) if at is not None else None
