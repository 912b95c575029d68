"""Pictures once more, for a phone that has lost one and cannot wait for the next key frame.

Own design: RFC 5104 §3.5.1 has the encoder make a key frame, but stock tools cannot be told, and
ffmpeg makes one in ten seconds.  With the pictures since the last one, in the order of decoding, a
decoder is where it would be without a loss.  They must not take the stream back in time, so their
RTP times are squeezed between those of the last picture and the next, where they pass unseen.
"""

from collections.abc import Iterable
from typing import Final

from siprtmp.media.translate.flv_to_rtp import Packet, UnsuitableError
from siprtmp.media.video.gop_cache import Message
from siprtmp.media.video.packetization import VideoPacketizer

MAX_OCTETS: Final = 128 * 1024  # at once, on a path that has just lost something
SECONDS: Final = 2.0  # between two repetitions, for the same reason


def again(frames: Iterable[Message], packetizer: VideoPacketizer, ticks: range) -> list[Packet]:
    """Pack pictures of a publisher for the times of `ticks`, one each: RFC 6184 §5.1.

    `packer` is that of the stream.  Nothing comes out if the pictures are too many or too large, or
    if they are shown in another order than they are decoded (B-frames), which no other times could
    keep.

    Departs from RFC 6184 §6.1 [no-duplicates]: whole pictures go out twice, each time as pictures
    of another time, for without them the phone would show a broken one until the next key frame.
    """
    convert = packetizer.anew().convert
    out: list[Packet] = []
    shown, count, size = -1, 0, 0
    for timestamp, payload in frames:
        try:
            packets = convert(payload, timestamp)
        except UnsuitableError:
            return []
        if not packets:
            continue
        size += len(payload)
        if packets[0].ticks <= shown or count == len(ticks) or size > MAX_OCTETS:
            return []
        shown = packets[0].ticks
        out += [each._replace(ticks=ticks[count]) for each in packets]
        count += 1
    return out
