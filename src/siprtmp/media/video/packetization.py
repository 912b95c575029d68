"""The video codecs that pass: how packets of each become tags, and tags packets.

Own design: one object for each codec and direction, all with the same face, so that the machines
around them know no codec.  RFC 6184 §5, RFC 7798 §4 and RFC 7741 §4.
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from p2psip.rtp.payload.h264_access_units import AccessUnit, AccessUnitAssembler
from p2psip.rtp.payload.h264_unpacker import H264Unpacker
from p2psip.rtp.payload.h265_access_units import H265AccessUnitAssembler, H265Unpacker
from p2psip.rtp.payload.vp8 import Vp8Unpacked, Vp8Unpacker
from p2psip.rtp.video_receiver import VideoPacket
from siprtmp.media.lines.h264 import VideoPlan
from siprtmp.media.translate.flv_to_h264 import H264, FlvToH264
from siprtmp.media.translate.flv_to_h265 import H265, FlvToH265
from siprtmp.media.translate.flv_to_vp8 import VP8, FlvToVp8
from siprtmp.media.translate.h264_to_flv import H264ToFlv
from siprtmp.media.translate.h265_to_flv import H265ToFlv
from siprtmp.media.translate.rtp_to_flv import Tag
from siprtmp.media.translate.vp8_to_flv import Vp8ToFlv

VideoPacketizer = FlvToH264 | FlvToH265 | FlvToVp8


class ReceivedFrame(Protocol):
    """A frame of a phone, or word of one that is missing."""

    @property
    def timestamp(self) -> int:
        """Its RTP timestamp: RFC 3550 §5.1."""

    @property
    def is_key(self) -> bool:
        """Whether a decoder can begin with it."""


FrameT = TypeVar("FrameT", bound=ReceivedFrame)
FrameT_contra = TypeVar("FrameT_contra", bound=ReceivedFrame, contravariant=True)


class VideoToFlv(Protocol[FrameT_contra]):
    """A translation of a phone's frames into tags: FLV 10.1 §E.4.3.1.

    `wants_key_frame` is true while frames are held back that only a key frame can follow.
    """

    wants_key_frame: bool
    freezes: int

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height in pixels, None before they are known: FLV 10.1 §E.5."""

    def restart(self) -> None:
        """Begin anew with a new SSRC: RFC 3550 §5.1.  RTMP time goes on."""

    def convert(
        self, frame: FrameT_contra, arrival_ms: int, shown_ms: float | None = None
    ) -> list[Tag]:
        """Tags of one frame, as `H264ToFlv` has it."""


class VideoDepacketizer(Generic[FrameT]):
    """Packets of one codec to tags: RFC 6184 §5.

    `begin` gives what puts frames together, each time from the beginning.
    """

    def __init__(
        self, name: str, begin: Callable[[], Callable[[VideoPacket], list[FrameT]]],
        to_flv: VideoToFlv[FrameT],
    ) -> None:  # fmt: skip
        self.name, self._begin, self.to_flv = name, begin, to_flv
        self._put = begin()

    def restart(self) -> None:
        """Begin anew with a new SSRC: RFC 3550 §5.1."""
        self._put = self._begin()
        self.to_flv.restart()

    def convert(
        self, packet: VideoPacket, moments: Callable[[int], tuple[int, float | None]]
    ) -> list[tuple[bool, list[Tag]]]:
        """Whether each frame that is complete is a key frame, and its tags.

        `moments` gives RTMP times (ms) of an RTP timestamp: by its arrival, and as reports say.
        """
        return [
            (frame.is_key, self.to_flv.convert(frame, *moments(frame.timestamp)))
            for frame in self._put(packet)
        ]


def _units(
    unpacker: H264Unpacker, assembler: AccessUnitAssembler
) -> Callable[[VideoPacket], list[AccessUnit]]:
    def put(packet: VideoPacket) -> list[AccessUnit]:
        sequence, _, timestamp, marker, payload = packet
        items = unpacker.push(sequence, timestamp, marker, payload)
        return [frame for item in items for frame in assembler.push(item)]

    return put


def _h264(plan: VideoPlan) -> VideoDepacketizer[AccessUnit]:
    to_flv = H264ToFlv(plan.parameter_sets)
    return VideoDepacketizer(H264, lambda: _units(H264Unpacker(), AccessUnitAssembler()), to_flv)


def _h265(plan: VideoPlan) -> VideoDepacketizer[AccessUnit]:
    agreed = plan.other(H265)
    to_flv = H265ToFlv(agreed.parameter_sets if agreed else ())
    return VideoDepacketizer(
        H265, lambda: _units(H265Unpacker(), H265AccessUnitAssembler()), to_flv
    )


def _vp8(plan: VideoPlan) -> VideoDepacketizer[Vp8Unpacked]:
    def begin() -> Callable[[VideoPacket], list[Vp8Unpacked]]:
        unpacker = Vp8Unpacker()
        return lambda packet: unpacker.push(
            packet.sequence, packet.timestamp, packet.marker, packet.payload
        )

    return VideoDepacketizer(VP8, begin, Vp8ToFlv())


AnyDepacketizer = VideoDepacketizer[AccessUnit] | VideoDepacketizer[Vp8Unpacked]
DEPACKETIZERS: Final[Mapping[str, Callable[[VideoPlan], AnyDepacketizer]]] = {
    H264: _h264, H265: _h265, VP8: _vp8,
}  # fmt: skip


def packetizer_for(
    plan: VideoPlan, name: str, profile: str, max_octets: int
) -> tuple[VideoPacketizer, int]:
    """What packs frames of a codec for a phone, and the payload type: RFC 3264 §6.1.

    `profile` is that of H.264.
    """
    other = plan.other(name)
    if other is None:
        parameters, number = plan.for_profile(profile)
        return FlvToH264(parameters.packetization_mode, max_octets), number
    return (FlvToH265 if name == H265 else FlvToVp8)(max_octets), other.send_type
