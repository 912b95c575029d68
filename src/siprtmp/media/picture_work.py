"""Pictures of one call that are decoded and encoded, in a thread, one piece of work at a time.

Own design: the loop hands over what has come since the last piece and goes on; the result comes
back by a callback.  What is late is decoded and not encoded, and if even that takes too long,
pictures are dropped up to the next key frame: a call is better with fewer pictures than with old
ones.
"""

from collections.abc import Callable, Iterable
from typing import Final

from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.leg_interfaces import PictureTranscoding
from siprtmp.media.translate.made_pictures import Made, PictureTag
from siprtmp.media.translate.picture_limits import PictureLimits
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

ENCODED: Final = 2  # tags of one piece of work, the latest ones
MAX_SECONDS: Final = 1.0  # that a tag waits for its turn
MAX_OCTETS: Final = 2 << 20  # of the tags that wait

Give = Callable[[int, bytes, float, float], None]


class PictureWork:
    """Makes pictures of one end into those of another.

    `give` is called with each tag that is made: its RTMP time (ms), its body, when it would have
    come by the time of its source (s), and now.  `changed` is called when `making` or `error` is
    another one, and `wants` (now) when a key frame of the source is needed.
    """

    def __init__(
        self,
        transcoding: PictureTranscoding,
        codec: str,
        limits: PictureLimits,
        slice_octets: int = 0,
        *,
        give: Give,
        changed: Callable[[], None],
        wants: Callable[[float], None],
    ) -> None:
        self._transcoder = transcoding.transcoder(codec, limits, slice_octets)
        self._run, self._give, self._changed, self._wants = transcoding.run, give, changed, wants
        self._waiting: list[PictureTag] = []
        self._octets = 0
        self._header: PictureTag | None = None
        self._is_busy = self._is_closed = self._starves = self._wants_key = False
        self.making = self.error = ""
        self.dropped = 0

    def begin(self, group: Iterable[tuple[int, bytes]], latest: int, now: float) -> None:
        """Take all since the last key frame, and make the `latest` ones alone."""
        self._waiting = [PictureTag(time, body, now) for time, body in group]
        self._header = next((each for each in self._waiting if is_sequence_header(each.body)), None)
        self._start(latest)

    def put(self, time: int, body: bytes, now: float) -> None:
        """Take a tag of RTMP time `time` (ms), which has come, or was due, at `now`."""
        source = PictureTag(time, body, now)
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
        self._start()

    def want_key_frame(self) -> None:
        """Make the next picture a key frame."""
        self._wants_key = True

    def close(self) -> None:
        """Give nothing more; the piece that is under way ends by itself."""
        self._is_closed = True
        self._waiting = []

    def _starve(self, now: float) -> None:
        """Drop what waits, and all that depends on it."""
        self.dropped += len(self._waiting)
        self._waiting, self._octets, self._starves = [], 0, True
        self._wants(now)

    def _start(self, latest: int = ENCODED) -> None:
        if self._is_busy or not self._waiting:
            return
        sources, self._waiting, self._octets = self._waiting, [], 0
        is_key, self._wants_key = self._wants_key, False
        transcoder, last = self._transcoder, sources[-1]
        self._is_busy = True
        self._run(
            lambda: transcoder.convert(sources, len(sources) - latest, is_key),
            lambda made, now: self._done(made, last, is_key, now),
        )

    def _done(self, made: Made, last: PictureTag, wanted_key: bool, now: float) -> None:
        self._is_busy = False
        if self._is_closed:
            return
        self._wants_key |= wanted_key and not made.tags
        for time, body in made.tags:
            behind = wrapped_difference(last.time, time, RTMP_WRAP) / 1000
            self._give(time, body, min(now, last.came - behind), now)
        if (made.making, made.error) != (self.making, self.error):
            self.making, self.error = made.making, made.error
            self._changed()
            if made.error:
                self._wants(now)
        self._start()
