"""From a phone's pictures of H.265 to FLV video tags.

Implements E-RTMP v2 §"Enhanced Video" with the FourCC `hvc1`, from the pictures of RFC 7798 §4.1.

Own design: all but the tags and the parameter sets is as `H264ToFlv` has it.
"""

from collections.abc import Iterable

from p2psip.rtp.payload.h265 import kind_of
from p2psip.rtp.payload.h265_pictures import SLICES
from rtmplite.errors import RemoteError
from rtmplite.flv import hevc_sps
from rtmplite.flv.avc import join_units
from rtmplite.flv.avc_sps import MAX_OCTETS
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.hevc import HevcConfig
from rtmplite.flv.hevc_sps import PPS, SPS, VPS, HevcParameters
from rtmplite.flv.video import FrameType
from siprtmp.media.translate.h264_to_flv import H264ToFlv


class HevcSets:
    """The parameter sets of one phone, the latest of each number: RFC 7798 §7."""

    def __init__(self) -> None:
        self.changed = False
        self.size: tuple[int, int] | None = None
        self.reorder = 0
        self._found: dict[tuple[int, int], bytes] = {}  # by type and number

    def learn(self, units: Iterable[bytes]) -> None:
        """Keep the sets among these NAL units; those that make no sense are none."""
        for unit in units:
            if not 2 < len(unit) < MAX_OCTETS:
                continue
            try:
                self._learn(unit)
            except RemoteError:
                continue

    def _learn(self, unit: bytes) -> None:
        kind, number = kind_of(unit), 0
        if kind == VPS:
            number = hevc_sps.vps_id(unit)
        elif kind == SPS:
            read = HevcParameters.parse(unit)
            number = read.set_id
            self._use(read)
        elif kind == PPS:
            number, _ = hevc_sps.pps_ids(unit)
        else:
            return
        self.changed |= self._found.get((kind, number)) != unit
        self._found[kind, number] = unit

    def config_for(self, unit: bytes) -> HevcConfig | None:
        """The record with the sets that a slice needs, None if one is missing: §"Enhanced Video".

        Own design: others of the same sequence are in it, sets of another sequence are not.
        """
        try:
            _, sequence = hevc_sps.pps_ids(self._found[PPS, hevc_sps.slice_pps_id(unit)])
            sps = self._found[SPS, sequence]
            vps = self._found[VPS, hevc_sps.sps_vps_id(sps)]
            self._use(HevcParameters.parse(sps))
            pps = [
                each
                for (kind, _), each in sorted(self._found.items())
                if kind == PPS and hevc_sps.pps_ids(each)[1] == sequence
            ]
            config = HevcConfig.of([vps], [sps], pps)
        except (KeyError, RemoteError):
            return None
        self.changed = False
        return config

    def _use(self, read: HevcParameters) -> None:
        self.size, self.reorder = (read.width, read.height), read.reorder


class H265ToFlv(H264ToFlv):
    """Turns one phone's pictures into tags: E-RTMP v2 §"Enhanced Video"."""

    _new_sets = HevcSets

    @staticmethod
    def _is_slice(unit: bytes) -> bool:
        return kind_of(unit) in SLICES

    @staticmethod
    def _header(config: object) -> bytes:
        assert isinstance(config, HevcConfig)
        return _tag(FrameType.KEY, VideoPacketType.SEQUENCE_START, bytes(config))

    @staticmethod
    def _tag(is_key: bool, composition: int, slices: list[bytes]) -> bytes:
        kind = FrameType.KEY if is_key else FrameType.INTER
        return _tag(kind, VideoPacketType.CODED_FRAMES, join_units(slices), composition)


def _tag(kind: FrameType, packet_type: VideoPacketType, data: bytes, composition: int = 0) -> bytes:
    track = VideoTrack(VideoFourCc.HEVC, data, composition_time=composition)
    return bytes(ExVideoTag(kind, packet_type, (track,)))
