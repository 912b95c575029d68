"""From FLV video tags to RTP payloads of H.265.

Implements RFC 7798 §4 and §5, from tags as E-RTMP v2 §"Enhanced Video" lays them out with the
FourCC `hvc1`, or with the number 12 of Field §"HEVC and AV1 by number".  See `flv_to_units` for
what it has in common with H.264.
"""

from typing import Final, Self

from p2psip.rtp.payload.h265 import kind_of, pack_h265
from p2psip.rtp.payload.h265_access_units import INTRA, SLICES
from rtmplite.flv.enhanced_video import VideoFourCc
from rtmplite.flv.hevc import HevcConfig
from rtmplite.flv.hevc_sps import PPS, SPS, VPS, HevcParameters
from rtmplite.flv.video import FieldCodecId
from siprtmp.media.translate.flv_to_units import FlvToUnits

H265: Final = "h265"


class FlvToH265(FlvToUnits[HevcConfig]):
    """Packs the frames of one publisher for one phone: RFC 7798 §5."""

    name, slices, sets, intra = H265, SLICES, frozenset((VPS, SPS, PPS)), INTRA
    first_at = 2
    codec_id, four_cc = FieldCodecId.HEVC, VideoFourCc.HEVC

    def anew(self) -> Self:
        """Another one that packs in the same way, and has seen nothing yet: RFC 6184 §5."""
        return type(self)(self.max_octets)

    @staticmethod
    def _config_of(data: bytes) -> HevcConfig:
        return HevcConfig.parse(data)

    @staticmethod
    def _size_of(config: HevcConfig) -> tuple[int, int]:
        read = HevcParameters.parse(config.units(SPS)[0])
        return read.width, read.height

    @staticmethod
    def _kind(unit: bytes) -> int:
        return kind_of(unit) if len(unit) > 1 else -1

    def _sets_of(self, config: HevcConfig) -> tuple[bytes, ...]:
        found = [config.units(kind) for kind in (VPS, SPS, PPS)]
        return sum(found, ()) if all(found) else ()

    def _payloads(self, units: list[bytes]) -> list[tuple[bytes, bool]]:
        return pack_h265(units, self.max_octets)
