"""The quick look against the codecs that read everything."""

from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import RemoteError
from rtmplite.flv import audio, video
from rtmplite.flv.enhanced_audio import ExAudioTag
from rtmplite.flv.enhanced_raw import (
    AUDIO_MULTITRACK,
    VIDEO_MULTITRACK,
    audio_packet_type,
    codecs,
    track_ids,
    video_packet_type,
)
from rtmplite.flv.enhanced_video import ExVideoTag
from rtmplite.flv.video import FrameType
from rtmplite.strategies.enhanced import audio_tags, video_tags


@given(video_tags())
def test_video_as_the_codec_sees_it(tag):
    """Covers E-RTMP v2 §"Enhanced Video" [track-id] [video-fourccs].

    And packet type, tracks, header, key frame.
    """
    raw, picture = bytes(tag), tag.command is None
    assert video_packet_type(raw) == (tag.packet_type if picture else None)
    if picture:
        found = {track.track_id: track.four_cc for track in tag.tracks}
        assert track_ids(raw, VIDEO_MULTITRACK) == set(found)
        assert codecs(raw, VIDEO_MULTITRACK) == found
    elif tag.packet_type != VIDEO_MULTITRACK:
        assert track_ids(raw, VIDEO_MULTITRACK) == {0}
    assert video.is_sequence_header(raw) == (picture and tag.packet_type in (0, 5))
    is_key = tag.frame_type == FrameType.KEY and tag.packet_type in (1, 3)
    assert video.is_key_frame(raw) == is_key


@given(audio_tags())
def test_audio_as_the_codec_sees_it(tag):
    """Covers E-RTMP v2 §"Enhanced Audio" [audio-fourccs]: packet type, tracks, header."""
    raw = bytes(tag)
    assert audio_packet_type(raw) == tag.packet_type
    found = {track.track_id: track.four_cc for track in tag.tracks}
    assert track_ids(raw, AUDIO_MULTITRACK) == set(found)
    assert codecs(raw, AUDIO_MULTITRACK) == found
    assert audio.is_sequence_header(raw) == (tag.packet_type == 0)


@given(mutations(video_tags().map(bytes) | audio_tags().map(bytes)) | st.binary())
def test_what_is_broken_is_of_no_importance(raw):
    """Covers E-RTMP v2 §"Enhanced Video" [fails-controlled]: nothing is raised, ever.

    What the codec reads, both see alike.
    """
    video.is_key_frame(raw), video.is_sequence_header(raw), audio.is_sequence_header(raw)
    if not raw:
        return
    for known, ids, codec in (
        (video_packet_type, VIDEO_MULTITRACK, ExVideoTag),
        (audio_packet_type, AUDIO_MULTITRACK, ExAudioTag),
    ):
        kind, tracks = known(raw), track_ids(raw, ids)
        assert len(tracks) <= 256
        try:
            tag = codec.parse(raw)
        except RemoteError:
            event("broken")
            continue
        event("whole")
        if tag.tracks:
            assert (kind, tracks) == (tag.packet_type, {each.track_id for each in tag.tracks})


def test_no_end_of_tracks_or_modifiers():
    """Bounded: it stops where the codec refuses."""
    endless = b"\x96\x11av01" + b"\x05\0\0\0" * 100_000
    assert track_ids(endless, VIDEO_MULTITRACK) == {5} and video_packet_type(endless) == 1
    assert video_packet_type(b"\x97" + b"\x00\x00\x57" * 100_000) is None
