"""The other end of a session: what is published to its peer, and what the peer sends.

Own design: a stream's players, a room and a mix are sinks; a session tells them all in the same
words, and they need not know what it is made of.
"""

from collections.abc import Callable
from typing import Final

from siprtmp.media.offload import Players
from siprtmp.media.pacing import HOLD_SECONDS, MAX_GAP, RESUME_SECONDS
from siprtmp.media.translate.conversion import AudioHeader
from siprtmp.media.transport import Timed, Waker
from siprtmp.media.video.gop_cache import GopCache

AUDIO: Final = 8  # message types: RTMP 1.0 §7.1
VIDEO: Final = 9
DATA: Final = 18


class Published:
    """What a publisher has sent so far: the header of its audio, the video since a key frame."""

    def __init__(self) -> None:
        self.header, self.gop = AudioHeader(), GopCache()

    def put(self, type_id: int, timestamp: int, payload: bytes) -> None:
        """Keep a published message, if a later session needs it: FLV 10.1 §E.4.2.1, §E.4.3.1."""
        if type_id == VIDEO:
            self.gop.put(timestamp, payload)
        elif type_id == AUDIO:
            self.header.put(payload)

    def clear(self) -> None:
        """Forget all, when the publisher has ended."""
        self.header.clear()
        self.gop.clear()


class DiscardPacer:
    """Drops published media at the pace at which it would be heard.

    A publisher that waits for a call must not be read at full speed, or a file would end before
    the phone rings.  Live sources cost a subtraction a message.
    `hold_back(True)` asks to read no more from the publisher, `waker` makes the timer.
    """

    def __init__(self, hold_back: Callable[[bool], None], waker: Callable[[Timed], Waker]) -> None:
        self.deadline: float | None = None
        self._hold_back, self._make_waker = hold_back, waker
        self._waker: Waker | None = None
        self._start: float | None = None  # when media time 0 would have come

    def put(self, at: float, now: float) -> None:
        """Take the media time `at` (s) of a message."""
        if self._start is None:
            self._start = now - at
        ahead = self._start + at - now
        if 0.0 <= ahead <= HOLD_SECONDS:
            return
        if ahead < 0.0 or ahead > MAX_GAP:  # late, or another clock
            self._start = now - at
        elif self.deadline is None:
            self.deadline = now + ahead - RESUME_SECONDS
            self._hold_back(True)
            if self._waker is None:
                self._waker = self._make_waker(self)
            self._waker.set()

    def tick(self, now: float) -> None:
        """Let the publisher go on when it is due."""
        if self.deadline is not None and self.deadline <= now:
            self.deadline = None
            self._hold_back(False)

    def stop(self) -> None:
        """Stop: a call has begun, or the publisher has ended."""
        self._start = None
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None
        if self.deadline is not None:
            self.deadline = None
            self._hold_back(False)


class MediaSink:
    """Takes what the peer of a session sends, and what concerns the publisher.

    `published` is what was published before, and `takes_opus` says that players take Opus by
    Enhanced RTMP.  Every event has a default, which does nothing.
    """

    takes_opus = False

    def __init__(self) -> None:
        self.published = Published()

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take audio or video of the peer as an RTMP message: RTMP 1.0 §7.1.4."""

    def offload(self, recall: Callable[[], None]) -> Players | None:
        """The players, if a pump may write to them instead of `on_tag`, until it calls `recall`."""
        return None

    def on_format(self, now: float) -> None:
        """The size or the codec of the peer's video is known, or another: FLV 10.1 §E.5."""

    def on_digit(self, digit: str, now: float) -> None:
        """The peer has pressed a key: RFC 4733 §2.5.2.2."""

    def takes(self, codec: str) -> bool:
        """Whether players take video of this codec, which is not H.264, by Enhanced RTMP."""
        return False

    def on_unsuitable(self, text: str) -> None:
        """Tell the publisher what cannot be carried, and what to do."""

    def on_key_frame_wanted(self) -> None:
        """Ask the publisher for a key frame, since the peer lacks a frame: RFC 5104 §3.5.1."""

    def on_hold_back(self, hold: bool) -> None:
        """Hold the publisher back if `hold`, else let it go on."""

    def on_drained(self, now: float) -> None:
        """All that was published has been sent, after `publish_ended`."""
