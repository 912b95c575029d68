"""VP8 between tags and packets: whole frames pass in time, broken ones never."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.payload.vp8 import Vp8Damage, Vp8Descriptor, Vp8Frame, Vp8Unpacker
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import FrameType, is_key_frame
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.flv_to_video import FlvToVp8
from siprtmp.media.translate.video_to_flv import Vp8ToFlv

KEY = bytes([0x10, 0, 0, 0x9D, 0x01, 0x2A, 64, 0x40, 48, 0x80]) + bytes(30)  # 64x48, scaled
INTER = bytes([0x11, 0, 0]) + bytes(30)
NALU = VideoPacketType.CODED_FRAMES


def tag(data, key=False, kind=NALU, codec=VideoFourCc.VP8):
    track = VideoTrack(codec, data)
    return bytes(ExVideoTag(FrameType.KEY if key else FrameType.INTER, kind, (track,)))


def frame(data, at, **fields):
    return Vp8Frame(data, at, Vp8Descriptor(True, **fields))


@given(st.lists(st.binary(min_size=1, max_size=900), min_size=1), st.integers(10, 300))
def test_a_phone_unpacks_what_is_packed(bodies, octets):
    """Covers RFC 7741 §4.4: no payload is longer than the packets are."""
    packer, unpacker, number, found = FlvToVp8(octets), Vp8Unpacker(), 0, []
    for at, data in enumerate(bodies):
        for packet in packer.convert(tag(data, key=not at), 40 * at):
            assert len(packet.payload) <= octets
            number += 1
            found += unpacker.push(number, packet.ticks, packet.marker, packet.payload)
    assert [each.data for each in found] == bodies
    assert [each.timestamp for each in found] == [3600 * at for at in range(len(bodies))]
    numbers = [each.descriptor.picture_id for each in found]
    assert numbers == list(range(1, len(bodies) + 1))


def test_frames_begin_with_a_key_frame():
    packer = FlvToVp8(1200)
    assert not packer.convert(tag(INTER), 0)
    assert packer.convert(tag(KEY, key=True), 40) and packer.convert(tag(INTER), 80)


def test_time_goes_on_when_that_of_rtmp_wraps():
    """Covers RTMP 1.0 §5.4.1: the extended timestamp has 32 bits."""
    packer, wrap = FlvToVp8(1200), 1 << 32
    [first] = packer.convert(tag(KEY, key=True), wrap - 20)
    [second] = packer.convert(tag(INTER), 20)
    assert second.ticks - first.ticks == 3600


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x17\x01\0\0\0" + bytes(9), "AVC"),
        (b"\x1d" + bytes(9), "AV1"),
        (tag(KEY, key=True, codec=VideoFourCc.VP9), "vp09"),
        (b"\x91vp", "cut short|FourCC|of"),
    ],
)
def test_other_codecs_and_rubbish_are_unsuitable(body, reason):
    packer = FlvToVp8(1200)
    packer.convert(tag(KEY, key=True), 0)
    with pytest.raises(UnsuitableError, match=reason):
        packer.convert(body, 40)


@given(st.one_of(st.binary(), st.binary().map(b"\x91vp08".__add__)))
def test_any_octets_are_packed_or_unsuitable(body):
    """Covers RFC 7741 §4.4: never another error."""
    try:
        packets = FlvToVp8(100).convert(body, 0)
    except UnsuitableError:
        return
    assert all(len(packet.payload) <= 100 for packet in packets)


def test_tags_without_a_frame_are_no_packets():
    packer = FlvToVp8(1200)
    for kind in (VideoPacketType.SEQUENCE_START, VideoPacketType.METADATA):
        assert packer.convert(tag(b"x", key=True, kind=kind), 0) == []
    assert packer.convert(tag(b"", key=True), 0) == []


def test_frames_of_a_phone_become_tags():
    """Covers E-RTMP v2 §"Enhanced Video": a tag for each, with the time that reports say."""
    to_flv = Vp8ToFlv()
    assert to_flv.size is None
    [(first, key)] = to_flv.convert(frame(KEY, 9000), 100)
    [(second, inter)] = to_flv.convert(frame(INTER, 18_000), 210)
    assert (first, second) == (100, 200) and to_flv.size == (64, 48)
    assert is_key_frame(key) and not is_key_frame(inter)
    assert ExVideoTag.parse(key).tracks[0].data == KEY
    assert ExVideoTag.parse(inter).tracks[0].four_cc == VideoFourCc.VP8
    assert Vp8ToFlv().convert(frame(KEY, 9000), 100, 50.0)[0][0] == 50


def test_a_loss_freezes_the_picture_until_a_key_frame():
    """Covers RFC 7741 §4.5.1: nothing that depends on what is lost is passed on."""
    to_flv = Vp8ToFlv()
    assert not to_flv.convert(frame(INTER, 0), 0) and to_flv.wants_key_frame
    assert to_flv.convert(frame(KEY, 3000), 33) and not to_flv.wants_key_frame
    for _ in range(2):
        assert not to_flv.convert(Vp8Damage(3000, 6000, 1), 66)
    assert to_flv.wants_key_frame and to_flv.freezes == 1
    assert not to_flv.convert(frame(INTER, 9000), 100)
    assert to_flv.convert(frame(KEY[:7], 12_000), 133) and to_flv.size == (64, 48)
    to_flv.restart()
    assert not to_flv.convert(frame(INTER, 5), 166)
    [(at, _)] = to_flv.convert(frame(KEY, 10), 200)
    assert at >= 133
