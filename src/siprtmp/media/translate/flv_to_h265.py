"""From FLV video tags to RTP payloads of H.265.

Implements RFC 7798 §4 and §5, from tags as E-RTMP v2 §"Enhanced Video" lays them out with the
FourCC `hvc1`, or with the number 12 of Field §"HEVC and AV1 by number".  See `flv_to_units` for
what it has in common with H.264.
"""

from typing import Final, Self

from p2psip.rtp.payload.h265 import kind_of, pack_h265
from p2psip.rtp.payload.h265_access_units import INTRA, SLICES
from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced_video import VideoFourCc, VideoPacketType
from rtmplite.flv.hevc import HevcConfig
from rtmplite.flv.hevc_sps import PPS, SPS, VPS, HevcParameters
from rtmplite.flv.video import FieldCodecId, VideoTag
from siprtmp.media.translate.flv_to_units import Coded, FlvToUnits, coded, numbered, track_of

H265: Final = "h265"


class FlvToH265(FlvToUnits[HevcConfig]):
    """Packs the frames of one publisher for one phone: RFC 7798 §5."""

    name, slices, sets, intra = H265, SLICES, frozenset((VPS, SPS, PPS)), INTRA
    first_at = 2

    def anew(self) -> Self:
        """Another one that packs in the same way, and has seen nothing yet: RFC 6184 §5."""
        return type(self)(self.max_octets)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the publisher's frames, 0 if they are not known: FLV 10.1 §E.5."""
        try:
            read = HevcParameters.parse(self._config.units(SPS)[0] if self._config else b"")
        except (IndexError, RemoteError):
            return 0, 0
        return read.width, read.height

    def _read(self, body: bytes) -> HevcConfig | Coded | None:
        if body[:1] < b"\x80":
            content = numbered(body, FieldCodecId.HEVC)
            return HevcConfig.parse(content.data) if isinstance(content, VideoTag) else content
        found = track_of(body, VideoFourCc.HEVC)
        if found is None:
            return None
        if found[0].packet_type == VideoPacketType.SEQUENCE_START:
            return HevcConfig.parse(found[1].data)
        return coded(*found)

    @staticmethod
    def _kind(unit: bytes) -> int:
        return kind_of(unit) if len(unit) > 1 else -1

    def _sets_of(self, config: HevcConfig) -> tuple[bytes, ...]:
        found = [config.units(kind) for kind in (VPS, SPS, PPS)]
        return sum(found, ()) if all(found) else ()

    def _payloads(self, units: list[bytes]) -> list[tuple[bytes, bool]]:
        return pack_h265(units, self.max_octets)
