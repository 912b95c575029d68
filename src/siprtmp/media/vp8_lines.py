"""VP8 in descriptions, for phones that have no H.264.

Implements RFC 7741 §6.2 by way of `p2psip.sdp`.

Own design: VP8 is offered and answered behind H.264, and only where pictures may be made, since
few publishers send it and few players take it.
"""

from dataclasses import dataclass
from typing import Final

from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.attributes import parameters
from p2psip.sdp.codec import Codec, codecs_of
from p2psip.sdp.session import SessionDescription
from siprtmp.media.translate.picture_limits import PictureLimits

# §6.2.1 [media-is-video] [name-is-vp8] [clock-is-90000]
NAME, CLOCK_RATE = "VP8", 90_000
# What is decoded here is bounded by its size alone: 1920 by 1088.
# §6.2.1 [limits-are-declared], §6.1 [both-limits] [limits-for-nothing-else]
FORMAT: Final = Codec(NAME, CLOCK_RATE, 1, 102, "max-fr=30;max-fs=8160")


@dataclass(frozen=True, slots=True)
class Vp8Format:
    """The agreement of both ends on VP8: the types of packets each way, and the phone's limits."""

    send_type: int
    receive_type: int
    limits: PictureLimits


def is_offered(theirs: SessionDescription) -> bool:
    """Whether a line with a port has VP8: §6.2.1."""
    lines = [media for media in theirs.media if media.kind == "video" and media.port]
    return any(_is_vp8(codec) for media in lines for codec in codecs_of(media))


def agreed(media: AgreedMedia) -> Vp8Format | None:
    """The VP8 of an accepted line, None without: §6.2.2."""
    for codec, send, receive in zip(
        media.codecs, media.send_payload_types, media.receive_payload_types, strict=True
    ):
        if _is_vp8(codec):
            said = parameters(codec.fmtp)  # §6.2 [unknown-parameters-ignored]
            rate, blocks = _number(said.get("max-fr", "")), _number(said.get("max-fs", ""))
            # §6.2.2 [limits-are-kept]
            limits = PictureLimits(rate=rate, blocks=blocks, bits=media.bits)
            return Vp8Format(send, receive, limits)
    return None


def _is_vp8(codec: Codec) -> bool:
    # §6.2.1 [name-is-vp8] [clock-is-90000]
    return codec.name.upper() == NAME and codec.clock_rate == CLOCK_RATE


def _number(text: str) -> int:
    return int(text[:6]) if text.isascii() and text.isdigit() else 0
