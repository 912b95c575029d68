"""VP8 in descriptions.

Implements RFC 7741 §6.2 by way of `p2psip.sdp`.

Own design: VP8 is offered and answered behind H.264, and only where the publisher or a player has
it, or pictures may be made.
"""

from typing import Final

from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.attributes import parameters
from p2psip.sdp.codec import Codec
from siprtmp.media.lines.video_format import CLOCK_RATE, VideoCodec
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.translate.flv_to_vp8 import VP8 as NAME

# What is decoded here is bounded by its size alone: 1920 by 1088.
FORMAT: Final = Codec("VP8", CLOCK_RATE, 1, 102, "max-fr=30;max-fs=8160")


def limits(fmtp: str, media: AgreedMedia) -> CodecLimits:
    """The most that a phone takes: §6.2.2, and RFC 8866 §5.8."""
    said = parameters(fmtp)  # §6.2 [unknown-parameters-ignored]
    rate, blocks = _number(said.get("max-fr", "")), _number(said.get("max-fs", ""))
    # §6.2.2 [limits-are-kept]
    return CodecLimits(rate=rate, blocks=blocks, bits=media.bits)


def _number(text: str) -> int:
    return int(text[:6]) if text.isascii() and text.isdigit() else 0


VP8: Final = VideoCodec(NAME, FORMAT, limits)
