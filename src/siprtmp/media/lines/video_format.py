"""The video codecs that both ends of a line may have beside H.264: H.265 and VP8.

Implements RFC 3264 §6.1, RFC 7798 §7 and RFC 7741 §6.2 by way of `p2psip.sdp`.

Own design: frames pass unchanged, so the gateway names no profile of H.265: it answers with that of
the phone, and takes each one that a phone answers with.  Of the phone's limits for H.265 only the
bits of its line count, since nothing here makes H.265 that could keep to a level.  VP8 is offered
and answered behind H.264, and only where the publisher or a player has it, or it may be made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.attributes import parameters
from p2psip.sdp.codec import Codec, codecs_of
from p2psip.sdp.h265_parameters import parameter_sets
from p2psip.sdp.session import SessionDescription
from siprtmp.media.translate import video_tag
from siprtmp.media.translate.codec_limits import CodecLimits

CLOCK_RATE: Final = 90_000  # Source: RFC 7741 §6.2.1, RFC 7798 §7


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """The agreement of both ends on a codec: RFC 3264 §6.1.

    It has the types of packets each way, and the phone's limits.
    `parameter_sets` are those that the phone's description has.
    """

    name: str  # in the client's API
    send_type: int
    receive_type: int
    limits: CodecLimits
    parameter_sets: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class VideoCodec:
    """A codec as lines have it: RFC 3264 §5.1.

    `name` is that of the client's API, `format` that of an offer.
    `limits` and `parameter_sets` read the parameters of a phone.
    """

    name: str
    format: Codec
    limits: Callable[[str, AgreedMedia], CodecLimits]
    parameter_sets: Callable[[str], tuple[bytes, ...]] = lambda fmtp: ()

    def is_offered(self, theirs: SessionDescription) -> bool:
        """Whether a line with a port has the codec: RFC 3264 §5.1."""
        # RFC 7741 §6.2.1 [media-is-video]
        lines = [media for media in theirs.media if media.kind == "video" and media.port]
        return any(self._is(codec) for media in lines for codec in codecs_of(media))

    def agreed(self, media: AgreedMedia) -> VideoFormat | None:
        """The codec's format of an accepted line, None without: RFC 3264 §6.1."""
        for codec, send, receive in zip(
            media.codecs, media.send_payload_types, media.receive_payload_types, strict=True
        ):
            if self._is(codec):
                limits, sets = self.limits(codec.fmtp, media), self.parameter_sets(codec.fmtp)
                return VideoFormat(self.name, send, receive, limits, sets)
        return None

    def _is(self, codec: Codec) -> bool:
        # RFC 7741 §6.2.1 [name-is-vp8] [clock-is-90000]
        same = codec.name.upper() == self.format.name
        return same and codec.clock_rate == self.format.clock_rate


# RFC 7798 §7.2.1 [named-h265] [clock-of-90000]
_H265_FORMAT: Final = Codec("H265", CLOCK_RATE, 1, 104)


def _h265_limits(fmtp: str, media: AgreedMedia) -> CodecLimits:
    """The most that a phone takes: RFC 8866 §5.8."""
    return CodecLimits(bits=media.bits)


H265: Final = VideoCodec(video_tag.H265, _H265_FORMAT, _h265_limits, parameter_sets)

# What is decoded here is bounded by its size alone: 1920 by 1088.
_VP8_FORMAT: Final = Codec("VP8", CLOCK_RATE, 1, 102, "max-fr=30;max-fs=8160")


def _vp8_limits(fmtp: str, media: AgreedMedia) -> CodecLimits:
    """The most that a phone takes: RFC 7741 §6.2.2, and RFC 8866 §5.8."""
    said = parameters(fmtp)  # RFC 7741 §6.2 [unknown-parameters-ignored]
    rate, blocks = _number(said.get("max-fr", "")), _number(said.get("max-fs", ""))
    # RFC 7741 §6.2.2 [limits-are-kept]
    return CodecLimits(rate=rate, blocks=blocks, bits=media.bits)


def _number(text: str) -> int:
    return int(text[:6]) if text.isascii() and text.isdigit() else 0


VP8: Final = VideoCodec(video_tag.VP8, _VP8_FORMAT, _vp8_limits)
