"""Continues the times of a stream when another publisher replaces the first one.

Own design: a cable that is pulled leaves a connection that looks alive.  A publisher that is silent
is therefore pinged soon (`QUIET`); one that does not answer either (`ANSWER`) can be replaced by
another client that publishes under the same name, and keeps the name until then.  The players see
one publication: the times of the next publisher follow those of the last.

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


class ReplaceablePublisher(Protocol):
    """The publisher of a stream, as far as the next one must know it; `ServerStream` is one.

    `is_copy` is whether it takes the stream from another process of this server.
    """

    is_copy: bool

    def is_silent(self, now: float) -> bool:
        """Whether it sends nothing and answers no ping: see `QUIET`."""

    def replaced(self, now: float) -> None:
        """Note that another publisher has the name: it must neither write nor end any more."""


class TimestampRebase:
    """Shifts a new publisher's times so that they go on after `last`; times in ms.

    Players and web pages stop at a gap, or at a time that goes backwards.  Only audio and video
    show where the new times begin; metadata and codec headers often have the time 0.
    """

    def __init__(self, last: int) -> None:
        self._last = last
        self._shift: int | None = None

    def next(self, timestamp: int, *, is_media: bool) -> int:
        """Give the time to pass on for one message."""
        if self._shift is None:
            if not is_media:
                return self._last
            self._shift = self._last + STEP - timestamp
        return (timestamp + self._shift) & TIMESTAMP_MASK
