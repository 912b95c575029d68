"""A codec of pictures that both ends of a line have beside H.264, and how lines name it.

Implements RFC 3264 §6.1 by way of `p2psip.sdp`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.codec import Codec, codecs_of
from p2psip.sdp.session import SessionDescription
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
