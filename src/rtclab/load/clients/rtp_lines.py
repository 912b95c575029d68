"""One medium received by RTP: its loss, its jitter, its frames, and its first key frame.

Implements RFC 3550 §6.4.1 by `p2psip.rtp.reception`.

Own design: a frame of video is counted by its marker, since all else of it is encrypted.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from p2psip.errors import RemoteError
from p2psip.rtp.fast import unpack
from p2psip.rtp.payload.h264 import H264Fragment, read_h264
from p2psip.rtp.payload.h264_access_units import IDR
from p2psip.rtp.payload.vp8 import Vp8Descriptor
from p2psip.rtp.reception import Reception
from p2psip.sdp.attributes import payload_types, rtpmaps
from p2psip.sdp.session import MediaDescription
from p2psip.srtp.stream import SrtpStream
from rtclab.load.clients.line_count import LineCount

_KIND: Final = 0x1F  # of a NAL unit
_INTERFRAME: Final = 0x01  # of the payload header of VP8
_CYCLE, _HALF = 1 << 32, 1 << 31  # of timestamps


class HeardLine:
    """A line of an answer: `types` are its payload types, `first` when its first packet came."""

    def __init__(self, media: MediaDescription) -> None:
        maps = rtpmaps(media)
        self.types = payload_types(media)
        self.is_video = media.kind == "video"
        self._codecs = {each.payload_type: each.encoding.upper() for each in maps}
        self._rate = maps[0].clock_rate if maps else 90_000 if self.is_video else 8_000
        self.reception = Reception(self._rate, self.types)
        self.count = LineCount(self._rate)
        self.first: float | None = None
        self._lost_before = 0
        self._key_at: int | None = None  # timestamp of the first key frame

    def heard(self, second: int, sequence: int, timestamp: int, ssrc: int, at: float) -> None:
        """Count a packet by its header, whose second octet has the marker and the payload type.

        `count` counts a usual packet in place of `reception`; `settle` tells `reception` of it.
        """
        if not self.count.heard(second, sequence, timestamp, ssrc, at):
            self._heard_unusual(second, sequence, timestamp, ssrc, at)

    def _heard_unusual(
        self, second: int, sequence: int, timestamp: int, ssrc: int, at: float
    ) -> None:
        """Count the first packet, and one that is late, early or of another source."""
        self._pass_on()
        reception = self.reception
        before, lost = reception.ssrc, reception.source.lost
        header = (second & 0x7F, second > 127, sequence, timestamp, ssrc, 0, 0)
        if reception.heard(header, at) is None:
            return
        if reception.ssrc != before and before is not None:
            self._lost_before += lost
        source, count = reception.source, self.count
        count.markers += second > 127
        if before is not None:
            count.ticks += (timestamp - count.timestamp + _HALF) % _CYCLE - _HALF
        count.ssrc, count.next = ssrc, source.highest + 1 & 0xFFFF
        if source.arrival is not None:
            count.jitter, count.timestamp, count.last = source.arrival

    def settle(self) -> int:
        """Tell `reception` of the usual packets since the last time; return the frames of video."""
        self._pass_on()
        frames, self.count.markers = self.count.markers, 0
        return frames if self.is_video else 0

    def _pass_on(self) -> None:
        count = self.count
        if count.run:
            arrival = count.jitter, count.timestamp, count.last
            self.reception.went_on(count.run, count.run, 0, arrival)
            count.run = 0

    @property
    def last(self) -> float:
        """When the last packet came."""
        return self.count.last

    @property
    def lost(self) -> int:
        """Packets that are missing so far, of all sources, as settled."""
        return max(0, self._lost_before + self.reception.source.lost)

    @property
    def jitter_ms(self) -> float:
        """The interarrival jitter."""
        return 1000 * self.count.jitter / self._rate

    @property
    def media_ms(self) -> int:
        """How far the timestamps have come since the first packet."""
        return 1000 * self.count.ticks // self._rate

    def shows(self, data: bytes, srtp: SrtpStream) -> bool:
        """Whether the first key frame is there with this packet, which is decrypted for that."""
        packet = srtp.open_rtp(data)
        header = unpack(packet) if packet is not None else None
        if packet is None or header is None:
            return False
        number, marker, _, timestamp, _, start, end = header
        if self._key_at is None and self._begins_key(number, packet[start:end]):
            self._key_at = timestamp
        return marker and timestamp == self._key_at

    def _begins_key(self, number: int, payload: bytes) -> bool:
        codec = self._codecs.get(number, "")
        with suppress(RemoteError, IndexError):
            if codec == "H264":
                units = read_h264(payload)
                if isinstance(units, H264Fragment):
                    return units.header & _KIND == IDR
                return any(unit[0] & _KIND == IDR for unit in units)
            if codec == "VP8":
                descriptor, start = Vp8Descriptor.parse(payload)
                opens = descriptor.start and not descriptor.partition
                return opens and not payload[start] & _INTERFRAME
        return codec not in ("H264", "VP8")  # what cannot be told


def heard_lines(lines: Iterable[MediaDescription]) -> list[HeardLine]:
    """A count for each line of an answer."""
    return [HeardLine(each) for each in lines]
