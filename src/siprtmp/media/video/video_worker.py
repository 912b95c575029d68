"""Frames of one call that are decoded and encoded, in a thread, one piece of work at a time.

Own design: the loop hands over what has come since the last piece and goes on; the result comes
back by a callback.  What is late is decoded and not encoded.  If even that takes too long, frames
are dropped up to the next key frame, since later frames depend on them: a call is better with fewer
frames than with old ones.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.translate.conversion import QueuedTag, Run, Transcoded, VideoConverter
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

ENCODED: Final = 2  # tags of one piece of work, the latest ones of each source
MAX_SECONDS: Final = 1.0  # that a tag waits for its turn
MAX_OCTETS: Final = 2 << 20  # of the tags that wait

Give = Callable[[int, bytes, float, float], None]


class VideoQueue:
    """Keeps tags until `take`, or drops them; `wants` (now) is called for a key frame."""

    def __init__(self, wants: Callable[[float], None]) -> None:
        self.wants, self.dropped = wants, 0
        self._waiting: list[QueuedTag] = []
        self._octets, self._starves = 0, False
        self._header: QueuedTag | None = None

    def __len__(self) -> int:
        """The number of tags that wait."""
        return len(self._waiting)

    def fill(self, group: Iterable[QueuedTag]) -> None:
        """Replace the tags that wait by this group."""
        self._waiting = list(group)
        self._header = next((each for each in self._waiting if is_sequence_header(each.body)), None)

    def put(self, source: QueuedTag) -> None:
        """Take a tag, or drop it: FLV 10.1 §E.4.3.1."""
        body, now = source.body, source.came
        if is_sequence_header(body):
            self._header = source
        elif self._starves and not is_key_frame(body):
            self.dropped += 1
            return
        elif self._starves:
            self._starves = False
            if self._header is not None:
                self._waiting.append(self._header._replace(came=now))
        self._waiting.append(source)
        self._octets += len(body)
        if self._octets > MAX_OCTETS or now - self._waiting[0].came > MAX_SECONDS:
            self._starve(now)

    def take(self) -> list[QueuedTag]:
        """All that waits, which waits no longer."""
        taken, self._waiting, self._octets = self._waiting, [], 0
        return taken

    def _starve(self, now: float) -> None:
        """Drop what waits, and all that depends on it."""
        self.dropped += len(self.take())
        self._starves = True
        self.wants(now)


class VideoWorker:
    """Makes frames of one end, or of several, into those of another by a `converter`.

    `give` is called with each tag that is made: its RTMP time (ms), its body, when it would have
    come by the time of its source (s), and now.  `changed` is called when `transcodes` or `error`
    is another one, and of `wants` that of a source (now) when a key frame of it is needed.
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
        """The number of tags dropped because too many were waiting."""
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
