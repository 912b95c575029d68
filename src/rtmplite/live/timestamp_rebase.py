"""One publisher after another under the same name, without an end between.

Own design: a cable that is pulled leaves a connection of which nothing tells that it is dead.
Whoever publishes and is silent is therefore pinged soon (`QUIET`), and who does not answer either
(`ANSWER`) has to make room for a newcomer; without one he keeps his name, for he may come back.
Those who watch see one publication: the times of the next publisher follow those of the last.

    >>> times = TimestampRebase(last=5000)
    >>> times.next(0, is_media=False)
    5000
    >>> times.next(700, is_media=True), times.next(720, is_media=True)
    (5040, 5060)
"""

from typing import Final, Protocol

from rtmplite.flv.tag import TIMESTAMP_MASK

QUIET: Final = 2.0  # s without a byte from a publisher, after which it is pinged ...
ANSWER: Final = 3.0  # ... and without an answer, after which a newcomer may have its name
STEP: Final = 40  # ms from the last message of one to the first of the other, about a frame


class Publisher(Protocol):
    """Who publishes a stream, as far as the next one must know; `ServerStream` is one."""

    def is_silent(self, now: float) -> bool:
        """Own design: whether it sends nothing and answers nothing, see `QUIET`."""

    def replaced(self, now: float) -> None:
        """Another one has its name now.  Own design: it must neither write nor end any more."""


class TimestampRebase:
    """Times in ms that go on after `last`, whatever the new publisher counts from.

    Own design: players and pages stop at a gap, or at a time that was before.  Only sound and
    pictures tell what it counts from; metadata and codec headers often have no time of their own.
    """

    def __init__(self, last: int) -> None:
        self._last = last
        self._shift: int | None = None

    def next(self, timestamp: int, *, is_media: bool) -> int:
        """Give the time to pass on for one message.  Own design."""
        if self._shift is None:
            if not is_media:
                return self._last
            self._shift = self._last + STEP - timestamp
        return (timestamp + self._shift) & TIMESTAMP_MASK
