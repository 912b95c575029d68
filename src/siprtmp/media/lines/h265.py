"""H.265 in descriptions.

Implements RFC 7798 §7 by way of `p2psip.sdp`.

Own design: pictures pass as they are, so the gateway names no profile: it answers with that of the
phone, and takes each one that a phone answers with.  Of the phone's limits only the bits of its
line count, since nothing here makes H.265 that could keep to a level.
"""

from typing import Final

from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.codec import Codec
from p2psip.sdp.h265_parameters import parameter_sets
from siprtmp.media.lines.video_format import CLOCK_RATE, VideoCodec
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.translate.flv_to_h265 import H265 as NAME

FORMAT: Final = Codec("H265", CLOCK_RATE, 1, 104)  # §7.2.1 [named-h265] [clock-of-90000]


def limits(fmtp: str, media: AgreedMedia) -> CodecLimits:
    """The most that a phone takes: RFC 8866 §5.8."""
    return CodecLimits(bits=media.bits)


H265: Final = VideoCodec(NAME, FORMAT, limits, parameter_sets)
