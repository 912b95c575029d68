"""Pictures of H.264 by number, the tags that hold them, and the packets."""

from p2psip.rtp.payload.h264_access_units import AccessUnit, AccessUnitAssembler
from p2psip.rtp.payload.h264_unpacker import H264Unpacker, NalUnit
from rtmplite.flv.avc import AvcConfig, join_units, split_units
from rtmplite.flv.video import AvcPacketType, CodecId, FrameType, VideoTag
from rtmplite.strategies.avc import BitWriter

SPS = bytes.fromhex("6742c00cda0507ec0440000003004000000603c50aa8")  # 320x240, no reordering
PPS = bytes.fromhex("68ce3c80")
OTHER_PPS = bytes.fromhex("68ce3880")
SETS = (SPS, PPS)
AUD, SEI, FILLER, END = b"\x09\xf0", b"\x06\x05\x01\xff\x80", b"\x0c\xff\x80", b"\x0a"


def main_sps(reorder):
    """A set of Main profile that says how far pictures are reordered, or does not."""
    bits = BitWriter()
    bits.put(24, 0x4D001E)
    bits.exp_golomb(0, 4, 0, 4, 4)
    bits.put(1, 0)
    bits.exp_golomb(19, 14)
    bits.put(3, 0b110)
    bits.put(1, reorder is not None)
    if reorder is not None:
        bits.put(9, 0b000000001)
        bits.put(1, 1)
        bits.exp_golomb(0, 0, 9, 9, reorder, 4)
    return bits.unit(0x67)


def slice_of(kind, number=0, first=0, pps=0, filling=b""):
    """A slice that begins with macroblock `first`, with a number to know it by."""
    bits = BitWriter()
    bits.exp_golomb(first, 7 if kind == 5 else 5, pps)
    bits.put(16, number)
    return bits.unit(0x60 | kind) + filling


def picture(kind, timestamp, *others, number=0, damaged=False, pps=0):
    return AccessUnit((*others, slice_of(kind, number, pps=pps)), timestamp, damaged)


def tag_of(frame_type, units, composition=0, packet_type=AvcPacketType.NALU):
    tag = VideoTag(frame_type, CodecId.AVC, packet_type, composition, join_units(units))
    return bytes(tag)


def header_of(sps=SPS, pps=(PPS,)):
    config = bytes(AvcConfig.of([sps], list(pps)))
    return bytes(VideoTag(FrameType.KEY, CodecId.AVC, AvcPacketType.SEQUENCE_HEADER, 0, config))


HEADER = header_of()


def read(tags):
    """Each tag in short: its time, then the sets of a header, or its kind and what it holds."""
    out = []
    for at, body in tags:
        tag = VideoTag.parse(body)
        assert tag.codec_id == CodecId.AVC
        if tag.avc_packet_type == AvcPacketType.SEQUENCE_HEADER:
            config = AvcConfig.parse(tag.data)
            out.append((at, "sets", config.sps + config.pps))
        else:
            kind = {FrameType.KEY: "key", FrameType.INTER: "inter"}[tag.frame_type]
            out.append((at, kind, tuple(split_units(tag.data))))
    return out


def pass_on(machine, pictures, arrival=0):
    return [tag for each in pictures for tag in machine.convert(each, arrival)]


def frames_of(packets):
    """(units, ticks) of each picture, as a phone unpacks them."""
    unpacker, assembler, out = H264Unpacker(), AccessUnitAssembler(), []
    for at, packet in enumerate(packets):
        assert packet.marker == (at == len(packets) - 1)
        for item in unpacker.push(at, packet.ticks, packet.marker, packet.payload):
            out += assembler.push(item)
    out += assembler.push(NalUnit(AUD, -1, False))  # of the next picture
    return [(each.units, each.timestamp) for each in out]
