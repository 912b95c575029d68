"""From FLV video tags to RTP payloads of H.264.

Implements RFC 6184 §5 and §6, from tags as FLV 10.1 §E.4.3.1 lays them out, or E-RTMP v2
§"Enhanced Video" with the FourCC `avc1`.  See `flv_to_units` for what it has in common with others.
"""

from typing import Final, Self

from p2psip.rtp.payload.h264 import SINGLE_NAL_MODE, pack_h264
from p2psip.rtp.payload.h264_access_units import IDR, SLICES
from p2psip.sdp.h264_parameters import ProfileLevel
from rtmplite.flv.avc import AvcConfig
from rtmplite.flv.avc_sps import PPS, SPS, SequenceParameters
from rtmplite.flv.enhanced_video import VideoFourCc
from rtmplite.flv.video import CodecId
from siprtmp.media.translate.flv_to_rtp import UnsuitableError
from siprtmp.media.translate.flv_to_units import (
    MAX_OCTETS,
    FlvToUnits,
)

H264: Final = "h264"
TOO_LONG: Final = "NAL units longer than a packet, which packetization mode 0 cannot carry"


class FlvToH264(FlvToUnits[AvcConfig]):
    """Packs the frames of one publisher for one phone: RFC 6184 §6.

    `mode` is the packetization mode, 0 or 1; no payload is longer than `max_octets`.

    Departs from RFC 6184 §8.1 [mtu-discovery]: the length is a constant that any link carries, for
    frames do not wait while a path is tried.
    Not done: RFC 6184 §8.1 [no-redundant-slices]: a publisher's redundant slices pass, for no
    encoder in use makes them, and only a look into each slice could tell.
    Not done: RFC 6184 §10 [congestion-control] [loss-is-watched]: frames leave as the publisher
    makes them; lost ones are sent again, but nothing here could make them smaller.
    Not done: RFC 4585 §7 [fair-to-tcp]: for the same reason, whatever feedback tells.
    """

    name, slices, sets, intra = H264, frozenset(SLICES), frozenset((SPS, PPS)), (IDR,)
    first_at = 1
    codec_id, four_cc = CodecId.AVC, VideoFourCc.AVC

    def __init__(self, mode: int, max_octets: int = MAX_OCTETS) -> None:
        super().__init__(max_octets)
        self.mode = mode

    def anew(self) -> Self:
        """Another one that packs in the same way, and has seen nothing yet: RFC 6184 §5."""
        return type(self)(self.mode, self.max_octets)

    @property
    def profile_level(self) -> ProfileLevel | None:
        """Profile and level of the publisher's frames, None before the sequence header.

        As the parameter set has them, for the negotiation of RFC 6184 §8.2.2: the octets of the
        FLV record are not always the same (Flash Player 11).
        """
        config = self._config
        if config is None or not config.sps or len(config.sps[0]) < 4:
            return None
        return ProfileLevel(*config.sps[0][1:4])

    @staticmethod
    def _config_of(data: bytes) -> AvcConfig:
        return AvcConfig.parse(data)

    @staticmethod
    def _size_of(config: AvcConfig) -> tuple[int, int]:
        read = SequenceParameters.parse(config.sps[0])
        return read.width, read.height

    @staticmethod
    def _kind(unit: bytes) -> int:
        return unit[0] & 0x1F

    def _sets_of(self, config: AvcConfig) -> tuple[bytes, ...]:
        return (*config.sps, *config.pps) if config.sps and config.pps else ()

    def _payloads(self, units: list[bytes]) -> list[tuple[bytes, bool]]:
        if self.mode == SINGLE_NAL_MODE and any(len(each) > self.max_octets for each in units):
            raise UnsuitableError(TOO_LONG)  # RFC 6184 §5.6
        return pack_h264(units, self.max_octets, self.mode)  # RFC 6184 §8.1 [mode-1]
