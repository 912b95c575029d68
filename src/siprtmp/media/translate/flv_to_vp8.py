"""From FLV video tags to RTP payloads of VP8.

Implements RFC 7741 §4, from tags as E-RTMP v2 §"Enhanced Video" lays them out.

Pure: tags in, packets out.  A frame of VP8 has all that a decoder needs, so there are no headers;
the VPCodecConfigurationRecord of a sequence start says nothing that a phone needs.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, Self

from p2psip.rtp.payload.vp8 import pack_vp8
from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced_video import VideoFourCc
from siprtmp.media.translate.flv_to_rtp import Packet, UnsuitableError
from siprtmp.media.translate.flv_to_units import TICKS_PER_MS, coded, refused, track_of
from siprtmp.media.translate.timebase import RTMP_WRAP, wrapped_difference

VP8: Final = "vp8"
_PICTURE_IDS: Final = 1 << 15  # Source: RFC 7741 §4.2
_SIZE_AT: Final = 6  # octets before width and height, which have 14 bits of 16
_SIDE: Final = 0x3FFF
_SIDES: Final = Struct("<HH")


class FlvToVp8:
    """Packs the frames of one publisher for one phone: RFC 7741 §4.4.

    No payload is longer than `max_octets`; `numbers` gives the next frame's number.
    """

    name: Final = VP8

    def __init__(self, max_octets: int, numbers: Iterator[int] | None = None) -> None:
        self._max_octets = max_octets
        self._waiting = True  # for a key frame
        self._numbers = numbers or _picture_ids()
        self._time: int | None = None  # ms, unbounded
        self.size = 0, 0  # of the last key frame, 0 if it is not known

    def anew(self) -> Self:
        """Another one that goes on with the numbers, and has seen nothing yet: RFC 7741 §4.2."""
        return type(self)(self._max_octets, self._numbers)

    def convert(self, body: bytes, timestamp_ms: int) -> list[Packet]:
        """The packets of a tag body of RTMP time `timestamp_ms`: E-RTMP v2 §"Enhanced Video".

        UnsuitableError for another codec, and for what is broken.
        """
        if self._time is None:
            self._time = timestamp_ms
        self._time += wrapped_difference(timestamp_ms, self._time, RTMP_WRAP)
        try:
            read = _frame(body)
        except RemoteError as error:
            self._waiting = True
            raise UnsuitableError(error.description) from None
        if read is None or (self._waiting and not read[0]):
            return []
        self._waiting = False
        if read[0]:
            self.size = size_of(read[1]) or self.size
        ticks = TICKS_PER_MS * self._time
        payloads = pack_vp8(read[1], self._max_octets, next(self._numbers))
        return [Packet(ticks, payload, marker) for payload, marker in payloads]


def _picture_ids() -> Iterator[int]:
    number = 0
    while True:
        number = (number + 1) % _PICTURE_IDS
        yield number


def _frame(body: bytes) -> tuple[bool, bytes] | None:
    """Whether a tag has a key frame, and its octets; None for a tag without a frame."""
    if body[:1] < b"\x80":
        raise refused(body)
    found = track_of(body, VideoFourCc.VP8)
    frame = coded(*found) if found is not None else None
    return (frame[0], frame[2]) if frame is not None and frame[2] else None


def size_of(key_frame: bytes) -> tuple[int, int] | None:
    """Width and height of a key frame, None if it is cut short.

    Own design: the format is RFC 6386, which is not in the catalogue.
    """
    if len(key_frame) < _SIZE_AT + _SIDES.size:
        return None
    width, height = _SIDES.unpack_from(key_frame, _SIZE_AT)
    return width & _SIDE, height & _SIDE
