"""Makes the video of a live stream into what browsers show, once for all that need it.

Own design: a codec that a browser lacks, and B-frames, cost a decoder and an encoder each.  So they
work for a stream and not for a viewer, in threads, and only while a browser plays what they make.
Audio is not touched: viewers have it from the stream itself.
"""

from collections.abc import Callable
from typing import Final, Protocol

from rtmplite.flv.video import is_key_frame
from rtmplite.live.streams import LiveStream
from siprtmp.media.session_log import MediaLog, SessionLog
from siprtmp.media.sink import VIDEO
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.translate.video_tag import is_of_default
from siprtmp.media.video.gop_cache import GopCache
from siprtmp.media.video.video_worker import VideoWorker

KEY_SECONDS: Final = 1.0  # between key frames, whoever asks for them: they are for all viewers
_LATEST: Final = 1  # of the frames from before the first viewer, what is made


class VideoViewer(Protocol):
    """A browser that plays made video."""

    def keep_video(self, timestamp: int, payload: bytes) -> None:
        """Take a frame from before, which is shown at once with the next one."""

    def show_video(self, timestamp: int, payload: bytes, at: float) -> None:
        """Take a frame that would have come at `at` if it had not been made first."""


class MadeVideo:
    """One publication's video in one codec, "h264" or "vp8"; a tap of its `LiveStream`.

    `on_end` is called at the end of the publication.  A viewer begins with all since the last key
    frame.
    """

    def __init__(
        self,
        live: LiveStream,
        codec: str,
        transcoders: VideoTranscoders,
        log: MediaLog,
        on_end: Callable[[], object],
    ) -> None:
        self.live, self.codec = live, codec
        self._transcoders, self._log = transcoders, SessionLog(log)
        self._on_end = on_end
        self._viewers: dict[VideoViewer, bool] = {}  # and whether it waits for a key frame
        self._work: VideoWorker | None = None  # while there are viewers
        self._gop = GopCache()
        self._newest = b""  # of the frames that were there when the work began
        self._wants_key, self._key_after = False, float("-inf")
        self._has_failed = False
        live.tap(self)

    def join(self, viewer: VideoViewer, now: float, *, is_new: bool) -> None:
        """Show the video to a viewer; one that is not new has other frames, and waits for a key."""
        self._viewers[viewer] = waits = not (is_new and self._gop.has_frames)
        if self._work is None:
            self._begin(now)  # with a key frame
        elif waits:
            self.want_key_frame()
        else:
            for timestamp, payload in self._gop:
                viewer.keep_video(timestamp, payload)

    def leave(self, viewer: VideoViewer) -> None:
        """Have one viewer less; with the last one nothing is made any more."""
        self._viewers.pop(viewer, None)
        if not self._viewers:
            self._stop()

    def want_key_frame(self) -> None:
        """Make a key frame soon, for a viewer that lacks a frame: RFC 5104 §3.5.1."""
        self._wants_key = True

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take a published message."""
        work = self._work
        if (
            work is None
            or not payload
            or payload is self._newest
            or not _is_shown(type_id, payload)
        ):
            return
        if self._wants_key and now >= self._key_after:
            self._wants_key, self._key_after = False, now + KEY_SECONDS
            work.want_key_frame()
        work.put(timestamp, payload, now)
        if work.dropped:
            self._log.late("pictures")

    def end(self, now: float) -> None:
        """The publication has ended."""
        self._viewers.clear()
        self._stop()
        self._on_end()

    def _begin(self, now: float) -> None:
        """Decode all since the last key frame, and make the present one."""
        kept = [(at, body) for kind, at, body in self.live.kept if _is_shown(kind, body)]
        begun = kept[0][0] if kept else self.live.timestamp
        headers = [(begun, body) for kind, body in self.live.opening() if _is_shown(kind, body)]
        self._newest = kept[-1][1] if kept else b""
        transcoders = self._transcoders
        self._work = VideoWorker(
            transcoders.transcoder(self.codec, transcoders.limits),
            transcoders.run,
            self._ask_publisher,
            give=self._give,
            changed=self._changed,
        )
        self._work.begin([*headers, *kept], _LATEST, now)

    def _ask_publisher(self, now: float) -> None:
        """Have a key frame, where one can be had: too much has come, or something broken."""
        if self.live.publishing and self.live.ask_key_frame is not None:
            self.live.ask_key_frame(now)

    def _stop(self) -> None:
        if self._work is not None:
            self._work.close()
            self._work = None
        self._gop = GopCache()

    def _give(self, timestamp: int, payload: bytes, at: float, now: float) -> None:
        """Show a frame that has been made to all, the first time from a key frame on."""
        self._gop.put(timestamp, payload)
        for viewer, waits in list(self._viewers.items()):
            if not waits:
                viewer.show_video(timestamp, payload, at)
            elif is_key_frame(payload):
                self._viewers[viewer] = False
                for each in self._gop:
                    viewer.show_video(*each, at)

    def _changed(self) -> None:
        work = self._work
        if work is not None and work.error:
            if not self._has_failed:
                self._has_failed = True
                self._log.unsuitable_video(work.error, None, 0)
        elif work is not None and work.transcodes:
            self._log.makes(work.transcodes)


def _is_shown(type_id: int, body: bytes) -> bool:
    return type_id == VIDEO and bool(body) and is_of_default(body)
