"""Pictures of one call that are decoded and encoded, in a thread, one piece of work at a time.

Own design: the loop hands over what has come since the last piece and goes on; the result comes
back by a callback.  What is late is decoded and not encoded, and if even that takes too long,
pictures are dropped (see `video_queue`): a call is better with fewer pictures than with old ones.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final, Protocol

from siprtmp.media.translate.conversion import VideoConverter
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference
from siprtmp.media.translate.transcoded import QueuedTag, Transcoded
from siprtmp.media.video.video_queue import VideoQueue

ENCODED: Final = 2  # tags of one piece of work, the latest ones of each source

Give = Callable[[int, bytes, float, float], None]


class Run(Protocol):
    """Calls a job in a thread, and then a function in the loop: see `VideoTranscoders`."""

    def __call__(
        self, job: Callable[[], Transcoded], then: Callable[[Transcoded, float], None], /
    ) -> None:
        """Begin, and return at once."""


class VideoWorker:
    """Makes pictures of one end, or of several, into those of another by a `maker`.

    `give` is called with each tag that is made: its RTMP time (ms), its body, when it would have
    come by the time of its source (s), and now.  `changed` is called when `making` or `error` is
    another one, and of `wants` that of a source (now) when a key frame of it is needed.
    """

    def __init__(
        self,
        converter: VideoConverter,
        run: Run,
        *wants: Callable[[float], None],
        give: Give,
        changed: Callable[[], None],
    ) -> None:
        self._converter: VideoConverter | None = converter  # None once it is closed
        self._run, self._give, self._changed = run, give, changed
        self._queues = [VideoQueue(each) for each in wants]
        self._is_busy = self._wants_key = False
        self.transcodes = self.error = ""

    @property
    def dropped(self) -> int:
        """The tags that came to nothing, as they were too many."""
        return sum(queue.dropped for queue in self._queues)

    def begin(self, group: Iterable[tuple[int, bytes]], latest: int, now: float) -> None:
        """Take all since the last key frame, and make the `latest` ones alone."""
        self._queues[0].fill(QueuedTag(time, body, now) for time, body in group)
        self._start(latest)

    def put(self, time: int, body: bytes, now: float, source: int = 0) -> None:
        """Take a tag of RTMP time `time` (ms), which has come, or was due, at `now`."""
        self._queues[source].put(QueuedTag(time, body, now, source))
        self._start()

    def want_key_frame(self) -> None:
        """Make the next picture a key frame."""
        self._wants_key = True

    def close(self) -> None:
        """Give nothing more, and let the codecs go; the piece under way ends by itself."""
        self._converter = None
        for queue in self._queues:
            queue.take()

    def _start(self, latest: int | None = None) -> None:
        converter = self._converter
        if self._is_busy or converter is None or not any(self._queues):
            return
        sources = sorted((tag for queue in self._queues for tag in queue.take()), key=_CAME)
        is_key, self._wants_key = self._wants_key, False
        last = sources[-1]
        late = len(sources) - (ENCODED * len(self._queues) if latest is None else latest)
        self._is_busy = True
        self._run(
            lambda: converter.convert(sources, late, is_key),
            lambda made, now: self._done(made, last, is_key, now),
        )

    def _done(self, made: Transcoded, last: QueuedTag, wanted_key: bool, now: float) -> None:
        self._is_busy = False
        if self._converter is None:
            return
        self._wants_key |= wanted_key and not made.tags
        for time, body in made.tags:
            behind = wrapped_difference(last.time, time, RTMP_WRAP) / 1000
            self._give(time, body, min(now, last.came - behind), now)
        if (made.transcodes, made.error) != (self.transcodes, self.error):
            self.transcodes, self.error = made.transcodes, made.error
            self._changed()
            if made.error:
                for queue in self._queues:
                    queue.wants(now)
        self._start()


_CAME: Final = attrgetter("came")
