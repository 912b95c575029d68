"""Pictures on their way into another codec, size or rate, and out of it again.

Own design: both ends of a translation that decodes and encodes are tags of FLV, so that what passes
and what is made take the same way before and behind it.
"""

from typing import Final, NamedTuple

SIDE_BY_SIDE: Final = 1280, 360  # pixels of the pictures of two sources as one


class QueuedTag(NamedTuple):
    """The body of a video tag (FLV 10.1 §E.4.3.1), its RTMP time in ms, and when it came in s.

    `source` is its number where there are several.
    """

    time: int
    body: bytes
    came: float
    source: int = 0


class Transcoded(NamedTuple):
    """What became of some tags: others, with their RTMP times in ms.

    `making` says from what and into what, as "h264 1280x720 > h264 640x360", "" before the first
    picture; `error` why pictures could not be made, "" if all could.
    """

    tags: list[tuple[int, bytes]]
    transcodes: str = ""
    error: str = ""
