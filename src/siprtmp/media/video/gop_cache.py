"""A publisher's frames since its last key frame, for a receiver that comes later.

Own design: a decoder begins at a key frame, which may be seconds away.  With those frames sent at
once, each with its own time, it shows the present one at once.  A group that is too long to be
sent at once is not kept, and the receiver waits for the next key frame.
"""

from collections.abc import Iterator
from typing import Final

from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.translate.video_tag import SEVERAL, codec_of, is_of_default

MAX_OCTETS: Final = 512 * 1024  # four seconds of good video; it leaves at once, so no more

Message = tuple[int, bytes]  # RTMP time in ms, body


class GopCache:
    """Keeps the codec's header and the group; `codec` is the publisher's, "" before it is known."""

    def __init__(self, max_octets: int = MAX_OCTETS) -> None:
        self._limit, self._octets = max_octets, 0
        self._header: Message | None = None
        self._frames: list[Message] = []
        self.codec = ""

    def __iter__(self) -> Iterator[Message]:
        if self._header is not None:  # at the time of its key frame, which may be minutes later
            at, header = self._header
            yield (self._frames[0][0] if self._frames else at), header
        yield from self._frames

    @property
    def has_frames(self) -> bool:
        """Whether there is more than a header."""
        return bool(self._frames)

    def put(self, timestamp: int, payload: bytes) -> None:
        """Take the body of a video message of RTMP time `timestamp` (ms), of the default track."""
        if is_sequence_header(payload):
            if is_of_default(payload):
                self._header = timestamp, payload
                self._begin(codec_of(payload))
            return
        if is_key_frame(payload):
            if not is_of_default(payload):
                return
            self._begin(codec_of(payload))
        elif not (self._frames and payload) or (
            payload[0] & SEVERAL == SEVERAL and not is_of_default(payload)
        ):
            return
        self._octets += len(payload)
        if self._octets > self._limit:
            self._begin(self.codec)
        else:
            self._frames.append((timestamp, payload))

    def clear(self) -> None:
        """Forget all, when the publisher has ended."""
        self._header = None
        self._begin("")

    def _begin(self, codec: str) -> None:
        self.codec = codec
        self._frames.clear()
        self._octets = 0
