"""The pictures since the last key frame, for a receiver that comes later."""

from support.gateway.video_rig import HEADER, idr, inter, tag

from rtmplite.flv.enhanced import MultitrackType
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoTrack
from siprtmp.media.video.gop_cache import GopCache


def test_it_has_the_header_and_the_last_group():
    group = GopCache()
    group.put(0, tag(inter(0)))
    assert list(group) == []  # without a key frame nothing can be decoded
    pictures = [tag(idr(1), key=True), tag(inter(2)), tag(idr(3), key=True), tag(inter(4))]
    for at, body in enumerate([HEADER, *pictures]):
        group.put(at, body)
    assert list(group) == [(3, HEADER), (3, pictures[2]), (4, pictures[3])]
    other = tag(idr(9), key=True)[:1] + HEADER[1:] + b"more"
    group.put(5, other)
    assert list(group) == [(5, other)]
    group.clear()
    assert list(group) == []


def test_a_group_that_is_too_long_is_not_kept():
    group = GopCache(max_octets=3000)
    group.put(0, HEADER)
    for at in range(1, 20):
        group.put(at, tag(idr(at, 900), key=at == 1))
    assert list(group) == [(0, HEADER)]
    group.put(20, tag(idr(20), key=True))
    assert len(list(group)) == 2


def test_the_codec_is_known_also_of_a_group_that_is_too_long():
    """Covers FLV 10.1 §E.4.3.1: until the publisher has ended."""
    group = GopCache(10)
    assert group.codec == ""
    group.put(0, b"\x91vp08" + bytes(20))
    assert group.codec == "vp8" and not list(group)
    group.put(0, b"\x17\x01\0\0\0")
    assert group.codec == "h264"
    group.clear()
    assert group.codec == ""


def test_other_tracks_than_the_default_one_are_not_for_it():
    """Their headers and key frames come at the same times, and no decoder of it knows them."""
    group, key = GopCache(), tag(idr(1), key=True)
    for at, body in enumerate([HEADER, other(0), key, other(1)]):
        group.put(at, body)
    assert list(group) == [(2, HEADER), (2, key)] and group.codec == "h264"
    both = other(1, 0, 1)
    group.put(4, both)
    assert list(group) == [(4, HEADER), (4, both)] and group.codec == "h264"


def other(packet_type, *tracks):
    """A header or a key frame of H.264, of track 1 or of these."""
    each = tuple(VideoTrack(VideoFourCc.AVC, b"data", number) for number in tracks or (1,))
    layout = MultitrackType.MANY_TRACKS if tracks else MultitrackType.ONE_TRACK
    return bytes(ExVideoTag(1, packet_type, each, layout))
