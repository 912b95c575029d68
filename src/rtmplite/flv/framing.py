"""Writes the messages of a live stream as the tags of a file that never ends.

FLV 10.1 §E.4.1 has a signed time of 32 bits, 24.8 days, where RTMP 1.0 §4 counts twice as far and
then from 0 again; and what has a negative time plays nowhere.  So whoever joins a stream that is
old gets times counted from an hour that all share who join in the same week: their bytes are the
same.  Where a signed time ends after that, so does the file, and who asks again gets another one.

    >>> framing = framing_at(0x90000000)
    >>> framing is framing_at(0x90000000 + 3_600_000), framing is framing_at(0)
    (True, False)
    >>> Tag.parse(framing(8, 0x90000000, b"sound")[:-4]).timestamp
    805306368
"""

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from rtmplite.flv.file import framed
from rtmplite.flv.tag import TIMESTAMP_MASK, Tag, TagType

WEEK: Final = 1 << 29  # ms, 6.2 days: an eighth of what RTMP counts, a quarter of what a tag can
LAST: Final = (1 << 31) - 1  # ms, the latest time a tag can have: FLV 10.1 §E.4.1

Wrap: TypeAlias = Callable[[bytes], bytes]  # what a tag travels in


class Framing:
    """Writes type, time in ms and payload of a message as a tag, and its size: FLV 10.1 §E.4.1.

    Own design: gives no bytes at all for a time that no tag can have; that is the end.
    """

    def __init__(self, base: int, wrap: Wrap) -> None:
        self._base, self._wrap = base, wrap

    def __call__(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """Write one message.  Own design: a time slightly before the beginning becomes 0."""
        since = (timestamp - self._base) & TIMESTAMP_MASK
        has_none = type_id == TagType.SCRIPT and not timestamp  # much data has no time
        if has_none or since > TIMESTAMP_MASK - WEEK:
            since = 0
        elif since > LAST:
            return b""
        return self._wrap(framed(Tag(type_id, since, payload)))


class FirstFraming:
    """Own design: a framing for a stream without a time yet; `settled` is then shared."""

    def __init__(self, wrap: Wrap = bytes) -> None:
        self.settled: Framing | None = None
        self._wrap = wrap

    def __call__(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """Write one message; the first with media sets the time.  Own design: data has none."""
        framing = self.settled or framing_at(timestamp, self._wrap)
        if type_id != TagType.SCRIPT:
            self.settled = framing
        return framing(type_id, timestamp, payload)


def framing_at(timestamp: int, wrap: Wrap = bytes) -> Framing:
    """Give the framing of a player that joins at `timestamp`: FLV 10.1 §E.4.1."""
    return _framing(max(timestamp // WEEK - 1, 0) * WEEK, wrap)


_framing = cache(Framing)  # of eight hours, for each way to travel
