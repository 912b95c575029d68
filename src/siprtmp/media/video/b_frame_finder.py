"""Tells B-frames in a publisher's video: frames that are shown before ones that came earlier.

Own design: FLV 10.1 §E.4.3.1 gives a frame the time of decoding, and an offset to that of showing.
A sequence parameter set of H.264 may say before any frame that they are reordered.
"""

from contextlib import suppress
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.flv.avc import AvcConfig, SequenceParameters
from rtmplite.flv.enhanced_video import VideoFourCc
from rtmplite.flv.video import CodecId, FieldCodecId
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference
from siprtmp.media.translate.video_tag import VideoContent, read_video

_H264: Final = frozenset((int(CodecId.AVC), int(VideoFourCc.AVC)))
_CODECS: Final = _H264 | {int(FieldCodecId.HEVC), int(VideoFourCc.HEVC)}
_BASELINE: Final = 66  # the profile of H.264 that has no B-frames


class BFrameFinder:
    """Reads the video of one publication in the order of decoding; `found` says what it has."""

    def __init__(self) -> None:
        self.found = False
        self._last: tuple[int, int] | None = None  # of the frame shown last: its time, and offset

    def put(self, timestamp: int, body: bytes) -> None:
        """Take the body of a video message of RTMP time `timestamp` (ms)."""
        try:
            content = read_video(body, _CODECS)
        except (RemoteError, UnsuitableError):
            return
        if content is None:
            return
        if content.is_header:
            self._last, self.found = None, self.found or _is_reordered(content)
            return
        shown, last = timestamp + content.composition, self._last
        ahead = 1 if last is None else wrapped_difference(shown, last[0], RTMP_WRAP)
        if content.is_key or ahead > 0:
            self._last = shown, content.composition
        elif last is not None and ahead < 0 and content.composition < last[1]:
            self.found = True  # where offsets stay the same, it is the clock that was set back


def _is_reordered(header: VideoContent) -> bool:
    """Whether a sequence header says so, which that of H.264 may."""
    if header.codec in _H264:
        with suppress(RemoteError):
            sets = [SequenceParameters.parse(each) for each in AvcConfig.parse(header.data).sps]
            return any(each.reorder and each.profile != _BASELINE for each in sets)
    return False
