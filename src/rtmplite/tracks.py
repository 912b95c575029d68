"""What a live stream must remember for those who come late: metadata, codec headers, no media.

Own design: a decoder needs the newest sequence headers (FLV 10.1 §E.4.2.1, FLV 10.1 §E.4.3.1), a
player the newest onMetaData, and then a frame that stands alone.
"""

from enum import Enum
from typing import Final

from rtmplite.amf import amf0
from rtmplite.flv.audio import is_sequence_header as is_audio_header
from rtmplite.flv.video import is_key_frame
from rtmplite.flv.video import is_sequence_header as is_video_header
from rtmplite.rtmp.message import MessageType

VIDEO_SILENCE: Final = 2.0  # s without a frame after which sound need not wait for pictures

# What publishers wrap onMetaData in.  FMLE, OBS, ffmpeg and librtmp all do; players of all kinds
# want it unwrapped, as Flash Media Server passed it on: Field §"@setDataFrame".
_SET_DATA_FRAME: Final = amf0.encode("@setDataFrame")
_CLEAR_DATA_FRAME: Final = amf0.encode("@clearDataFrame")
_ON_META_DATA: Final = amf0.encode("onMetaData")

_OPENING: Final = (int(MessageType.DATA), int(MessageType.AUDIO), int(MessageType.VIDEO))


class Weight(Enum):
    """Own design: what a message means to a player who has not seen those before it."""

    NOTHING = 0  # meant for the server alone
    ESSENTIAL = 1  # nothing plays without it: sent to those who wait as well
    START = 2  # a good place to begin
    PLAIN = 3  # of no use without the ones before, where there is video


class Tracks:
    """The media of one publication.  Own design: kept apart from who watches.

    `timestamp` is the newest, in ms; `begun` is whether there was anything but what `opening` has;
    `kinds` are the message types seen.
    """

    def __init__(self) -> None:
        self.timestamp, self.begun = 0, False
        self.kinds: set[int] = set()
        self._newest: dict[int, bytes] = {}  # of what is essential, by type
        self._video_at: float | None = None

    def note(
        self, type_id: int, timestamp: int, payload: bytes, now: float
    ) -> tuple[Weight, bytes]:
        """Judge one message, remember it if that helps, and give what players should get.

        `type_id` is 8, 9 or 18; `payload` is an FLV tag body (FLV 10.1 §E.4.1).
        """
        self.timestamp = timestamp
        self.kinds.add(type_id)
        if type_id == MessageType.AUDIO:
            weight = Weight.ESSENTIAL if is_audio_header(payload) else Weight.PLAIN
        elif type_id == MessageType.VIDEO:
            self._video_at = now
            weight = _weigh_video(payload)
        else:
            weight, payload = self._unwrap(payload)
        if weight is Weight.ESSENTIAL:
            self._newest[type_id] = payload
        elif weight is not Weight.NOTHING:
            self.begun = True
        return weight, payload

    def has_video(self, now: float) -> bool:
        """Whether pictures are coming, as opposed to a camera that was switched off.

        Own design: `now` is in seconds.
        """
        return self._video_at is not None and now - self._video_at < VIDEO_SILENCE

    def opening(self) -> list[tuple[int, bytes]]:
        """Type and payload of what comes before all else.  Own design: metadata first."""
        return [(each, self._newest[each]) for each in _OPENING if each in self._newest]

    def _unwrap(self, payload: bytes) -> tuple[Weight, bytes]:
        if payload.startswith(_CLEAR_DATA_FRAME):
            self._newest.pop(MessageType.DATA, None)
            return Weight.NOTHING, payload
        if payload.startswith(_SET_DATA_FRAME):
            payload = payload[len(_SET_DATA_FRAME) :]
        is_metadata = payload.startswith(_ON_META_DATA)
        return (Weight.ESSENTIAL if is_metadata else Weight.PLAIN), payload


def _weigh_video(payload: bytes) -> Weight:
    if is_video_header(payload):
        return Weight.ESSENTIAL
    return Weight.START if is_key_frame(payload) else Weight.PLAIN
