"""How many pictures a second a publisher sends, and how many bits.

Own design: counted from one key frame to a later one, at least a second apart, so that the key
frames themselves, which are many times longer than other pictures, count as they should.
"""

from typing import Final

from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

LEAST: Final = 1000  # ms
MOST: Final = 10_000  # ms, where key frames are rare


class VideoMeter:
    """Counts the pictures of one publisher; `rate` and `bits` are a second's, 0 if not known."""

    def __init__(self) -> None:
        self.rate = self.bits = 0.0
        self._since: int | None = None
        self._count = self._octets = 0

    def put(self, time: int, body: bytes) -> None:
        """Take the body of a video message of RTMP time `time` (ms)."""
        if is_sequence_header(body):
            return
        elapsed = wrapped_difference(time, self._since or 0, RTMP_WRAP)
        is_long = elapsed >= (LEAST if is_key_frame(body) else MOST)
        if self._since is None or elapsed < 0 or is_long:
            if self._since is not None and is_long:
                self.rate = 1000 * self._count / elapsed
                self.bits = 8000 * self._octets / elapsed
            self._since, self._count, self._octets = time, 0, 0
        self._count += 1
        self._octets += len(body)
