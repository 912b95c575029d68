"""The tracks of video tags, and the codecs of the default one."""

import pytest
from hypothesis import given

from rtmplite.errors import RemoteError
from rtmplite.flv.enhanced import ModEx, MultitrackType
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.strategies.enhanced import video_tags
from siprtmp.media.translate.video_tag import codec_of, is_of_default, tracks_of

FRAMES, METADATA = VideoPacketType.CODED_FRAMES, VideoPacketType.METADATA
AVC, VP9 = VideoTrack(VideoFourCc.AVC, b"one", 1, 40), VideoTrack(VideoFourCc.VP9, b"nine", 9)


def test_a_tag_of_one_track_is_left_as_it_is():
    for body in (b"\x17\x01\0\0\0frame", b"\x91hvc1\0\0\0frame", b"\x12h263", b"\x52"):
        assert tracks_of(body) == [(0, body)] and is_of_default(body)


def test_each_track_gets_a_tag_of_its_own():
    """With its codec and its composition time; what modified the message is left out."""
    layout = MultitrackType.MANY_TRACKS_MANY_CODECS
    body = bytes(ExVideoTag(1, FRAMES, (AVC, VP9), layout, mod_ex=(ModEx.offset(5),)))
    assert not is_of_default(body) and codec_of(body) == ""
    (first, one), (second, nine) = tracks_of(body)
    assert (first, second) == (1, 9)
    assert ExVideoTag.parse(one) == ExVideoTag(
        1, FRAMES, (VideoTrack(VideoFourCc.AVC, b"one", 0, 40),)
    )
    assert nine == b"\x91vp09nine" and is_of_default(one) and codec_of(one) == "h264"


def test_what_is_no_header_and_no_frame_is_of_no_track():
    track = VideoTrack(VideoFourCc.AVC, b"colors", 1)
    assert tracks_of(bytes(ExVideoTag(1, METADATA, (track,), MultitrackType.ONE_TRACK))) == []
    with pytest.raises(RemoteError):
        tracks_of(b"\x96\x01avc1")


@given(video_tags())
def test_the_tracks_of_any_tag_are_whole(tag):
    found = tracks_of(bytes(tag))
    if tag.multitrack is not None and tag.packet_type in (0, 1, 3, 5):
        assert [number for number, _ in found] == [each.track_id for each in tag.tracks]
        for (_, body), track in zip(found, tag.tracks, strict=True):
            (alone,) = ExVideoTag.parse(body).tracks
            assert (alone.four_cc, alone.data) == (track.four_cc, track.data)
            assert alone.composition_time == track.composition_time
