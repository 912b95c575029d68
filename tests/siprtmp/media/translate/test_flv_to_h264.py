"""A publisher's pictures become packets that any phone decodes."""

import pytest
from support.gateway.h264_world import (
    AUD,
    FILLER,
    HEADER,
    OTHER_PPS,
    PPS,
    SEI,
    SETS,
    SPS,
    frames_of,
    header_of,
    slice_of,
    tag_of,
)

from p2psip.sdp.h264_parameters import ProfileLevel
from rtmplite.flv.avc import AvcConfig, join_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import AvcPacketType, FrameType
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.flv_to_video import FlvToH264


def test_parameter_sets_go_before_each_key_frame():
    """Covers RFC 6184 §5.1 [clock-of-90-khz]: and nothing goes before the first one."""
    machine = FlvToH264(1)
    assert machine.profile_level is None
    with pytest.raises(UnsuitableError, match="without parameter sets"):
        machine.convert(tag_of(FrameType.KEY, [slice_of(5)]), 0)
    assert machine.convert(HEADER, 0) == []
    assert machine.profile_level == ProfileLevel(0x42, 0xC0, 0x0C)
    assert machine.convert(tag_of(FrameType.INTER, [slice_of(1)]), 20) == []
    key = machine.convert(tag_of(FrameType.KEY, [AUD, SEI, slice_of(5), FILLER], 80), 40)
    assert frames_of(key) == [((*SETS, slice_of(5)), 90 * 120)]
    inter = machine.convert(tag_of(FrameType.INTER, [AUD, slice_of(1)], -10), 80)
    assert frames_of(inter) == [((slice_of(1),), 90 * 70)]
    own = [SPS, OTHER_PPS, slice_of(5)]
    assert frames_of(machine.convert(tag_of(FrameType.KEY, own), 120)) == [(tuple(own), 90 * 120)]
    assert machine.convert(tag_of(FrameType.INTER, [AUD, SEI]), 160) == []
    end = tag_of(FrameType.KEY, [], packet_type=AvcPacketType.END_OF_SEQUENCE)
    assert machine.convert(end, 160) == []


def test_parameter_sets_are_repeated_with_every_key_frame():
    """Covers RFC 6184 §8.2.2 [sets-among-the-pictures], §8.1 [sets-for-those-who-ask], §8.4
    [sets-are-repeated], §6.1 [repeated-in-packets-of-their-own] and §5.7 [aggregate-time].
    """
    machine = FlvToH264(1)
    machine.convert(HEADER, 0)
    for at, units in ((0, [slice_of(5)]), (40, [slice_of(5)]), (80, [SPS, slice_of(5)])):
        packets = machine.convert(tag_of(FrameType.KEY, units), at)
        assert {packet.ticks for packet in packets} == {90 * at}
        assert frames_of(packets) == [((*SETS, slice_of(5)), 90 * at)]


def test_a_new_sequence_header_is_followed_at_once():
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration], RFC 6184 §8.4 [sets-before-their-use] and
    §6.1 [repeated-sets-are-the-same]: a repeated one changes nothing.
    """
    machine = FlvToH264(1)
    machine.convert(HEADER, 0)
    machine.convert(tag_of(FrameType.KEY, [slice_of(5)]), 0)
    machine.convert(HEADER, 40)
    assert frames_of(machine.convert(tag_of(FrameType.INTER, [slice_of(1)]), 40)) == [
        ((slice_of(1),), 3600)
    ]
    machine.convert(header_of(pps=[OTHER_PPS]), 80)
    for sets in ((SPS, OTHER_PPS), ()):
        packets = machine.convert(tag_of(FrameType.INTER, [slice_of(1)]), 80)
        assert frames_of(packets) == [((*sets, slice_of(1)), 7200)]


def test_parameter_sets_do_not_come_in_mid_picture():
    """Covers RFC 6184 §5.1 and §8.4 [sets-are-repeated]: more slices of one time are no picture."""
    machine = FlvToH264(1)
    low = slice_of(5, 2, first=8)
    for body in (HEADER, tag_of(FrameType.KEY, [slice_of(5, 1)])):
        machine.convert(body, 0)
    for kind in (FrameType.INTER, FrameType.KEY):
        packets = machine.convert(tag_of(kind, [PPS, low]), 0)
        assert [packet.payload for packet in packets] == [low]
    again = machine.convert(tag_of(FrameType.KEY, [slice_of(5, 3), low]), 40)
    assert frames_of(again) == [((*SETS, slice_of(5, 3), low), 3600)]
    break_off(machine, 40)  # the beginning of the picture does not come again
    assert machine.convert(tag_of(FrameType.KEY, [low]), 40) == []


def break_off(machine, at):
    """Publish a tag that is cut short."""
    with pytest.raises(UnsuitableError):
        machine.convert(b"\x17\1\0\0\0\0\0\0\5a", at)


def test_after_a_broken_tag_a_key_frame_comes_first():
    """Covers RFC 6184 §5: pictures that the phone could not decode are not sent."""
    machine = FlvToH264(1)
    for body in (HEADER, tag_of(FrameType.KEY, [slice_of(5)])):
        machine.convert(body, 0)
    break_off(machine, 0)
    assert machine.convert(tag_of(FrameType.INTER, [slice_of(1)]), 40) == []
    assert machine.convert(tag_of(FrameType.KEY, [slice_of(5)]), 80)


def test_time_goes_on_where_rtmp_time_wraps():
    """Covers RTMP 1.0 §5.3.1.3."""
    machine = FlvToH264(0)
    machine.convert(HEADER, 0xFFFFFFF0)
    packets = machine.convert(tag_of(FrameType.KEY, [slice_of(5)]), 0xFFFFFFF0)
    packets += machine.convert(tag_of(FrameType.INTER, [slice_of(1)]), 0x10)
    assert packets[-1].ticks - packets[0].ticks == 32 * 90


def test_mode_0_says_so_where_a_slice_is_too_long():
    """Covers RFC 6184 §6.2 [single-only] and §8.1 [mode-1]: it then waits for a key frame."""
    machine = FlvToH264(0, 100)
    machine.convert(HEADER, 0)
    long = tag_of(FrameType.KEY, [slice_of(5, filling=bytes(100))])
    with pytest.raises(UnsuitableError, match="mode 0"):
        machine.convert(long, 0)
    assert machine.convert(tag_of(FrameType.INTER, [slice_of(1)]), 40) == []
    packets = machine.convert(tag_of(FrameType.KEY, [slice_of(5)]), 80)
    assert [each.payload for each in packets] == [SPS, PPS, slice_of(5)]
    assert (
        len(FlvToH264(1, 100)._pack(join_units([*SETS, slice_of(5, filling=bytes(100))]), True, 0))
        == 3
    )


@pytest.mark.parametrize(
    ("body", "codec"),
    [
        (b"\x22\0", "SORENSON_H263"),
        (b"\x2f\0", "15"),
        (b"\x91hvc1\0\0\0\0", "hvc1"),
        (b"\x17\0\0\0\0\1", "AVC record"),
        (b"\x17\1\0\0\0\0\0\0\5a", "cut short"),
        (b"\x97", "cut short"),
        (b"", "empty"),
    ],
)
def test_what_cannot_be_sent_is_named(body, codec):
    """Covers FLV 10.1 §E.4.3.1 and E-RTMP v2 §"Enhanced Video"."""
    with pytest.raises(UnsuitableError, match=codec):
        FlvToH264(1).convert(body, 0)


@pytest.mark.parametrize("kind", [VideoPacketType.CODED_FRAMES, VideoPacketType.CODED_FRAMES_X])
def test_avc1_of_enhanced_rtmp(kind):
    """Covers E-RTMP v2 §"Enhanced Video" [composition-time]."""

    def tag(packet_type, data, composition=0):
        track = VideoTrack(VideoFourCc.AVC, data, composition_time=composition)
        return bytes(ExVideoTag(FrameType.KEY, packet_type, (track,)))

    machine = FlvToH264(1)
    config = bytes(AvcConfig.of([SPS], [PPS]))
    composition = 40 if kind == VideoPacketType.CODED_FRAMES else 0
    assert machine.convert(tag(VideoPacketType.SEQUENCE_START, config), 0) == []
    packets = machine.convert(tag(kind, join_units([slice_of(5)]), composition), 1000)
    assert frames_of(packets) == [((*SETS, slice_of(5)), 90 * (1000 + composition))]
    assert machine.convert(tag(VideoPacketType.SEQUENCE_END, b""), 0) == []
    assert machine.convert(tag(VideoPacketType.METADATA, b""), 0) == []
