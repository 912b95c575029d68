"""The video codecs that pass: what makes a phone's packets tags, and what makes tags its packets.

Own design: one object for each codec and direction, all with the same face, so that the machines
around them know no codec.  RFC 6184 §5, RFC 7798 §4 and RFC 7741 §4.
"""

from siprtmp.media.lines.h264 import VideoPlan
from siprtmp.media.translate.flv_to_video import FlvToH264, FlvToH265, FlvToVideo, FlvToVp8
from siprtmp.media.translate.video_tag import H264, H265
from siprtmp.media.translate.video_to_flv import H264ToFlv, H265ToFlv, Vp8ToFlv

Depacketizer = H264ToFlv | Vp8ToFlv


def depacketizer_for(plan: VideoPlan, name: str) -> Depacketizer:
    """What makes tags of a phone's packets of a codec: RFC 3264 §6.1."""
    if name == H264:
        return H264ToFlv(plan.parameter_sets)
    if name == H265:
        agreed = plan.other(H265)
        return H265ToFlv(agreed.parameter_sets if agreed else ())
    return Vp8ToFlv()


def packetizer_for(
    plan: VideoPlan, name: str, profile: str, max_octets: int
) -> tuple[FlvToVideo, int]:
    """What packs frames of a codec for a phone, and the payload type: RFC 3264 §6.1.

    `profile` is that of H.264.
    """
    other = plan.other(name)
    if other is None:
        parameters, number = plan.for_profile(profile)
        return FlvToH264(parameters.packetization_mode, max_octets), number
    return (FlvToH265 if name == H265 else FlvToVp8)(max_octets), other.send_type
