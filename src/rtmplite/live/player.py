"""A player's place in the audience of a live stream, and its two sides.

Own design: RTMP 1.0 §7.2.2.1 says what play is; a stream needs of a player its connection, an end
that hears of publishers, and whether it may have the next message.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.flv.tag import TagType
from rtmplite.live.sink import Framing
from rtmplite.live.slow_consumer import SlowConsumerPolicy

if TYPE_CHECKING:
    from rtmplite.live.streams import LiveStream

AUDIO: Final = TagType.AUDIO
VIDEO: Final = TagType.VIDEO


class Outlet(Protocol):
    """The connection of a player, as far as a stream needs it.

    Own design: `output_size` is 0 as long as the socket takes all it is given, so that one
    comparison finds a slow player.
    """

    output_size: int

    def put(self, data: bytes) -> None:
        """Queue whole messages, already cut into chunks: RTMP 1.0 §5.3."""

    def abort(self, reason: str, now: float) -> None:
        """Close without sending the queue, which would never be read."""


class Viewer(Protocol):
    """A player's end that hears of publishers; `ServerStream` tells its client."""

    def published(self, now: float) -> None:
        """A publisher has come: NetStream.Play.PublishNotify (RTMP 1.0 §7.2.2)."""

    def unpublished(self, now: float) -> None:
        """The publisher has gone: NetStream.Play.UnpublishNotify (RTMP 1.0 §7.2.2)."""


class LivePlayer:
    """One place in the audience of a stream, from `LiveStream.join` to `leave`.

    Own design: `waiting` is the whole state.  It is true if the player joined late or fell behind,
    until there is a good place to start; `on_begun` is called when it gets the message there.
    `grace` is how many bytes it was given at once when it joined, which do not make it slow.
    """

    __slots__ = ("_live", "audio", "behind_since", "framing", "grace", "on_begun", "outlet",
                 "paused", "video", "viewer", "waiting")  # fmt: skip

    def __init__(
        self, live: "LiveStream", outlet: Outlet, framing: Framing, viewer: Viewer | None
    ) -> None:
        self._live, self.outlet, self.framing, self.viewer = live, outlet, framing, viewer
        self.audio = self.video = True
        self.waiting = live.has_begun
        self.paused, self.grace = False, 0
        self.behind_since: float | None = None
        self.on_begun: Callable[[float], None] | None = None

    def wants(self, type_id: int) -> bool:
        """Whether its client has not switched this medium off: RTMP 1.0 §7.2.2.4, §7.2.2.5."""
        return self.video if type_id == VIDEO else self.audio if type_id == AUDIO else True

    def select(
        self, *, audio: bool | None = None, video: bool | None = None, paused: bool | None = None
    ) -> None:
        """Switch a medium, or all, off and on: RTMP 1.0 §7.2.2.4, §7.2.2.5, §7.2.2.8.

        A medium that is switched on again begins at a key frame, as for a player that has joined.
        """
        self.audio = self.audio if audio is None else audio
        self.waiting = self.waiting or bool(video and not self.video) or bool(paused is False)
        self.video = self.video if video is None else video
        self.paused = self.paused if paused is None else paused
        self._live.rearrange()

    def leave(self, now: float) -> None:
        """Give up the place.  Own design: a second call does nothing."""
        self._live.left(self, now)

    def keeps_up(self, patience: SlowConsumerPolicy, now: float) -> bool:
        """Whether a player whose socket is full gets the message; abort it if it is too slow."""
        size = self.outlet.output_size
        if size < patience.skip // 2:
            self.grace = 0
        if self.behind_since is None and size > patience.skip + self.grace:
            self.behind_since, self.waiting = now, True
            self._live.rearrange()
        late = self.behind_since is not None and now - self.behind_since > patience.seconds
        if size > patience.limit or late:
            self.outlet.abort(f"too slow: {size} bytes behind", now)
            return False
        if self.behind_since is not None and size < patience.skip // 2:
            self.behind_since = None
        return self.behind_since is None
