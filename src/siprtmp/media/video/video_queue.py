"""The tags of one source of pictures that wait for a thread.

Own design: what would be watched too late, or need too much memory, is dropped up to the next key
frame, since later pictures depend on it.
"""

from collections.abc import Callable, Iterable
from typing import Final

from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.translate.transcoded import QueuedTag

MAX_SECONDS: Final = 1.0  # that a tag waits for its turn
MAX_OCTETS: Final = 2 << 20  # of the tags that wait


class VideoQueue:
    """Keeps tags in order until `take`; `wants` (now) is called when a key frame is needed.

    `dropped` counts the tags that were.
    """

    def __init__(self, wants: Callable[[float], None]) -> None:
        self.wants, self.dropped = wants, 0
        self._waiting: list[QueuedTag] = []
        self._octets, self._starves = 0, False
        self._header: QueuedTag | None = None

    def __len__(self) -> int:
        """The number of tags that wait."""
        return len(self._waiting)

    def fill(self, group: Iterable[QueuedTag]) -> None:
        """Have these instead of what waits."""
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
