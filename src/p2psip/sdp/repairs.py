"""The formats by which packets are sent again: which number of RTX belongs to which codec.

Implements RFC 4588 §8.1, for two streams in one session.

    >>> rtx = Attribute("rtpmap", "97 rtx/90000"), Attribute("fmtp", "97 apt=96")
    >>> vp8 = Attribute("rtpmap", "96 VP8/90000")
    >>> line = MediaDescription("video", 9, "RTP/AVPF", ("96", "97"), attributes=(vp8, *rtx))
    >>> repairs_of(line)
    {97: 96}
"""

from collections.abc import Collection, Sequence
from typing import Final

from p2psip.sdp.attributes import parameters
from p2psip.sdp.codec import Codec, codecs_of
from p2psip.sdp.line import Attribute as Attribute
from p2psip.sdp.session import MediaDescription

RTX: Final = "rtx"  # Source: RFC 4588 §8.1


def repairs_of(line: MediaDescription) -> dict[int, int]:
    """Map each number of RTX in a line to that of the codec it repeats: RFC 4588 §8.1."""
    return _repairs_among(codecs_of(line))


def _repairs_among(codecs: Sequence[Codec]) -> dict[int, int]:
    clocks = {each.payload_type: each.clock_rate for each in codecs}
    found: dict[int, int] = {}
    for codec in codecs:
        # RFC 4588 §8.1 [apt-maps-types]
        original = parameters(codec.fmtp).get("apt", "")
        number = int(original) if original.isascii() and original.isdigit() else -1
        # RFC 4588 §4 [clock-of-the-original]
        if codec.name.lower() == RTX and clocks.get(number) == codec.clock_rate:
            found[codec.payload_type] = number
    return found


def repairs_to_answer(offered: MediaDescription, numbers: Collection[int]) -> tuple[Codec, ...]:
    """Give the formats of RTX that belong to codecs which an answer has: RFC 4588 §8.1."""
    codecs = codecs_of(offered)
    clocks = {each.payload_type: each.clock_rate for each in codecs}
    taken: dict[int, int] = {}
    for number, original in _repairs_among(codecs).items():
        if original in numbers:
            taken.setdefault(original, number)  # one for each is enough
    return tuple(
        # RFC 4588 §4 [one-type-for-each]
        Codec(RTX, clocks[original], 1, number, f"apt={original}")
        for original, number in taken.items()
    )
