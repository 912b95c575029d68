"""VP8 and H.265 pass where both ends have them; what a phone lacks is judged by the codec sent."""

import pytest
from support.gateway import h265_world
from support.gateway.h265_world import SETS, idr, inter, read
from support.gateway.video_rig import HEADER, VideoRig, tag, video_plan
from support.gateway.video_rig import idr as h264_idr
from support.gateway.video_threads import Pretended

from p2psip.rtp import fast
from p2psip.rtp.feedback import Pli
from p2psip.rtp.payload.h265 import pack_h265, read_h265
from p2psip.rtp.payload.vp8 import Vp8Unpacker
from p2psip.rtp.rtcp import ReceiverReport
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import FrameType
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.video_lines import VideoFormat

KEY = bytes([0x10, 0, 0, 0x9D, 0x01, 0x2A, 64, 0, 48, 0]) + bytes(50)
INTER = bytes([0x11, 0, 0]) + bytes(50)
VP8 = VideoFormat("vp8", 98, 102, CodecLimits(rate=15))
H265 = VideoFormat("h265", 97, 104, CodecLimits())


def plan_of(*others, h264=True, **fields):
    """The plan of an answer with these codecs, and H.264."""
    plan = video_plan(**fields)
    sending, receiving = (plan.sending, plan.receiving) if h264 else ((), {})
    return type(plan)(plan.media, sending, receiving, others)


def vp8(data, key=False):
    track = VideoTrack(VideoFourCc.VP8, data)
    kind = FrameType.KEY if key else FrameType.INTER
    return bytes(ExVideoTag(kind, VideoPacketType.CODED_FRAMES, (track,)))


def types(rig):
    return [packet[1] for packet in rig.sent]


@pytest.mark.parametrize("threads", [None, Pretended()])
def test_each_picture_goes_by_the_payload_type_of_its_codec(threads):
    """Covers RFC 3264 §5.1: of all that were agreed on, without transcoding any."""
    rig = VideoRig(plan_of(H265, VP8), transcoding=threads)
    rig.publish(vp8(KEY, key=True), vp8(INTER), at=0)
    rig.publish(h265_world.HEADER, h265_world.tag(idr(), key=True), at=40)
    rig.publish(h265_world.tag(inter()), at=80)
    rig.publish(HEADER, tag(h264_idr(), key=True), at=120)
    assert types(rig) == [98, 98, 97, 97, 99] and not rig.unsuitable and not rig.made
    found, unpacker = [], Vp8Unpacker()
    for _, _, _, sequence, timestamp, *_, payload in rig.sent[:2]:
        found += unpacker.push(sequence, timestamp, True, payload)
    assert [frame.data for frame in found] == [KEY, INTER]
    units = [unit for packet in rig.sent[2:4] for unit in read_h265(packet[-1])]
    assert units == [*SETS, idr(), inter()]


def test_a_publisher_of_another_codec_is_told_what_to_send():
    """Covers E-RTMP v2 §"Enhanced Video": and its pictures are counted."""
    rig = VideoRig(plan_of(VP8, h264=False))
    rig.publish(HEADER, tag(h264_idr(), key=True), at=0)
    assert not rig.sent and rig.stream.figures.unsuitable == 2
    rig.publish(vp8(KEY, key=True), at=40)
    assert types(rig) == [98]


def test_a_phone_of_h265_alone_has_nothing_made():
    """Own design: no encoder of it is used."""
    rig = VideoRig(plan_of(H265, h264=False), transcoding=(threads := Pretended()))
    rig.publish(HEADER, tag(h264_idr(), key=True), at=0)
    assert not rig.sent and rig.unsuitable and not threads.asked
    rig.publish(h265_world.HEADER, h265_world.tag(idr(), key=True), at=40)
    assert types(rig) == [97]


@pytest.mark.parametrize("size", [(64, 48), (640, 480)])
def test_the_limits_of_an_operator_hold_for_all_codecs(size):
    """Covers RFC 7741 §6.2.2: a picture of VP8 says its size in each key frame."""
    threads = Pretended(CodecLimits(width=320))
    rig = VideoRig(plan_of(VP8), transcoding=threads)
    sides = size[0].to_bytes(2, "little") + size[1].to_bytes(2, "little")
    rig.publish(vp8(KEY[:6] + sides + KEY[10:], key=True), at=0)
    threads.work(rig.now)
    assert bool(threads.asked) == (size[0] > 320)
    assert types(rig)[:1] == [99 if threads.asked else 98]


@pytest.mark.parametrize(
    ("codec", "key", "other"),
    [(VP8, [vp8(KEY, key=True)], vp8(INTER)),
     (H265, [h265_world.HEADER, h265_world.tag(idr(), key=True)], h265_world.tag(inter()))],
)  # fmt: skip
def test_a_phone_that_has_lost_a_picture_gets_the_group_again(codec, key, other):
    """Covers RFC 5104 §3.5.1: before the next picture, as with H.264."""
    rig = VideoRig(plan_of(codec, h264=False, feedback=["nack pli"]))
    rig.publish(*key, at=0)
    for at in (40, 80):
        rig.publish(other, at=at)
    assert len(rig.sent) == 3
    rig.stream.on_rtcp(bytes(ReceiverReport(5)) + bytes(Pli(5, rig.sent[0][5])), rig.now)
    assert rig.wanted
    rig.publish(other, at=120)
    ticks = [packet[4] - rig.sent[0][4] & 0xFFFFFFFF for packet in rig.sent]
    assert ticks == [0, 3600, 7200, 7201, 7202, 7203, 10_800]


def test_h265_passes_with_the_sets_of_the_description():
    """Covers RFC 7798 §4.4.3 and §7: in packets of any size, and none after a loss."""
    agreed = VideoFormat("h265", 97, 104, CodecLimits(), SETS)
    plan = video_plan(feedback=["nack pli"])
    rig = VideoRig(type(plan)(plan.media, plan.sending, plan.receiving, (agreed,)))
    rig.taken = ("h265",)

    def send(timestamp, *units, lost=()):
        for place, (payload, marker) in enumerate(pack_h265(units, 30)):
            rig.sequence += 1
            second = 104 | (0x80 if marker else 0)
            header = fast.pack_fixed(0x80, second, rig.sequence, timestamp, 0xBEEF)
            if place not in lost:
                rig.stream.on_rtp(header + payload, rig.now)

    for at, unit in enumerate([idr(0, 90), inter(1), inter(2, 90), inter(3)]):
        send(3000 * at, unit)
        rig.wait(rig.now + 0.033)
    rig.wait(1.0)
    assert [kind for _, kind, _ in read((at, body) for _, at, body in rig.tags)] == [
        "sets", "key", "inter", "inter", "inter",
    ]  # fmt: skip
    assert rig.stream.figures.codec == "h265" and rig.stream.figures.size == (322, 244)
    reports = len(rig.reports)
    send(90_000, inter(4, 90), lost=[1])
    send(93_000, inter(5))
    rig.wait(3.0)
    assert len(rig.tags) == 5 and rig.stream.figures.freezes == 1 and len(rig.reports) > reports
    send(270_000, idr(6))
    send(273_000, inter(7))
    rig.wait(6.0)
    assert [kind for _, kind, _ in read((at, body) for _, at, body in rig.tags[5:])] == [
        "key", "inter",
    ]  # fmt: skip
