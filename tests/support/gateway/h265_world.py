"""Pictures of H.265 by number, and the tags that hold them."""

from p2psip.rtp.payload.h265_access_units import H265AccessUnit
from rtmplite.flv.avc import join_units, split_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.hevc import HevcConfig
from rtmplite.flv.video import FrameType

# by x265: 322 by 244, B-frames
VPS = bytes.fromhex("40010c01ffff01600000030090000003000003003c959009")
SPS = bytes.fromhex(
    "42010101600000030090000003000003003ca00a880407113e595912930b9a020000030002000003001e10"
)
PPS = bytes.fromhex("4401c073c189")
SETS = (VPS, SPS, PPS)
SEI, DELIMITER = b"\x4e\x01\x05\x80", b"\x46\x01\x50"


def idr(number=0, octets=20, first=True):
    """A slice of a key frame, by the parameter set 0."""
    return b"\x26\x01" + bytes((0xA0 if first else 0x20, number)) + bytes(octets)


def inter(number=0, octets=20):
    """A slice of a picture that depends on others."""
    return b"\x02\x01\xd0" + bytes((number,)) + bytes(octets)


def picture(timestamp, *units, damaged=False):
    return H265AccessUnit(units, timestamp, damaged)


def tag(*units, key=False, composition=0, kind=VideoPacketType.CODED_FRAMES):
    """The body of a video message with one picture."""
    track = VideoTrack(VideoFourCc.HEVC, join_units(units), composition_time=composition)
    return bytes(ExVideoTag(FrameType.KEY if key else FrameType.INTER, kind, (track,)))


def header(*arrays):
    track = VideoTrack(VideoFourCc.HEVC, bytes(HevcConfig.of(*(arrays or ([VPS], [SPS], [PPS])))))
    return bytes(ExVideoTag(FrameType.KEY, VideoPacketType.SEQUENCE_START, (track,)))


HEADER = header()


def read(tags):
    """Each tag in short: its time, then the sets of a header, or its kind and what it holds."""
    out = []
    for at, body in tags:
        read = ExVideoTag.parse(body)
        [track] = read.tracks
        assert track.four_cc == VideoFourCc.HEVC
        if read.packet_type == VideoPacketType.SEQUENCE_START:
            config = HevcConfig.parse(track.data)
            out.append((at, "sets", sum((config.units(kind) for kind in (32, 33, 34)), ())))
        else:
            kind = {FrameType.KEY: "key", FrameType.INTER: "inter"}[read.frame_type]
            out.append((at, kind, tuple(split_units(track.data))))
    return out
