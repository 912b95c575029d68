"""What a file says about itself is true, and as long as the room there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import LocalError
from rtmplite.flv import metadata
from rtmplite.flv.describe import Facts, describe, fit
from rtmplite.flv.enhanced import ModEx, MultitrackType
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoTrack
from rtmplite.flv.video import FrameType


def test_what_is_known_replaces_what_was_said():
    """Covers FLV 10.1 §E.5."""
    facts = Facts({8, 9}, {8: b"\xb2sound", 9: b"\x17\x01\0\0\0key"}, 1500, 4000)
    said = {"duration": 0.0, "width": 320.0, "videocodecid": 2.0, "filler": "   "}
    assert metadata.read(describe(said, facts)) == {
        "duration": 1.5,
        "width": 320.0,
        "videocodecid": 7.0,
        "filesize": 4000.0,
        "lasttimestamp": 1.5,
        "hasAudio": True,
        "hasVideo": True,
        "audiocodecid": 11.0,
        "audiosamplerate": 16000.0,
        "stereo": False,
    }


@pytest.mark.parametrize(
    ("first", "known"),
    [
        (b"\xaf\x00\x12\x10", {"audiocodecid": 10.0}),
        (b"\x2f", {"audiocodecid": 2.0, "audiosamplerate": 44100.0, "stereo": True}),
        (b"\x72", {"audiocodecid": 7.0, "audiosamplerate": 8000.0, "stereo": False}),
        (b"\x82", {"audiocodecid": 8.0, "audiosamplerate": 8000.0, "stereo": False}),
        (b"\xb2", {"audiocodecid": 11.0, "audiosamplerate": 16000.0, "stereo": False}),
        (b"\x42", {"audiocodecid": 4.0, "audiosamplerate": 16000.0, "stereo": False}),
        (b"\x52", {"audiocodecid": 5.0, "audiosamplerate": 8000.0, "stereo": False}),
        (b"\x66", {"audiocodecid": 6.0, "audiosamplerate": 11025.0, "stereo": False}),
        (b"\xee", {"audiocodecid": 14.0, "audiosamplerate": 8000.0, "stereo": False}),
        (b"\x90Opus", {}),
        (b"", {}),
    ],
)
def test_what_a_codec_byte_tells(first, known):
    """Covers FLV 10.1 §E.4.2.1 [own-rates]; a FourCC is no codec byte."""
    members = Facts({8}, {8: first}).members()
    names = ("audiocodecid", "audiosamplerate", "stereo")
    assert {name: members[name] for name in names if name in members} == known
    assert "videocodecid" not in Facts({9}, {9: b"\x90av01"}).members()
    facts = Facts()
    facts.note(8, first)
    assert facts.first == {8: first} and "audiosamplerate" not in Facts({8}).members()


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_room_is_filled_to_the_byte(count, more):
    """Covers Field §"Keyframes in metadata": fewer key frames where there is less room."""
    times = range(0, 2000 * count, 2000)
    facts = Facts({9}, {}, 2000 * count, 0, times, range(100, 100 + count))
    smallest = len(describe({}, Facts())) + len("filler") + 7
    body = fit({}, facts, smallest + 18 + more)
    assert len(body) == smallest + 18 + more
    kept = metadata.read(body).get("keyframes", {"times": [], "filepositions": []})
    assert len(kept["times"]) == len(kept["filepositions"])
    assert len(kept["times"]) >= min(count, (more - 60) // 18) // 2 or count < 4
    assert set(kept["times"]) <= {time / 1000 for time in times}


def test_too_little_room():
    """Own design: our own mistake."""
    for facts in (Facts(), None):
        with pytest.raises(LocalError):
            fit({"x": "y" * 100}, facts, 100)


def test_what_is_not_known_yet_is_not_said():
    """Own design: no kinds, and neither length nor size but as places to write them to."""
    body = fit({"width": 1.0, "filler": "of somebody else's"}, None, 500)
    assert len(body) == 500
    said = {k: v for k, v in metadata.read(body).items() if not k.startswith("filler")}
    assert said == {"duration": 0.0, "filesize": 0.0, "width": 1.0}


def test_codecs_by_four_characters_and_tracks():
    """Covers E-RTMP v2 §"Enhancing onMetaData" [four-cc-codec-ids] [default-track-on-top].

    Covers E-RTMP v2 §"Enhancing onMetaData" [track-maps], and E-RTMP v2 §"Multitrack Media Message
    Guidelines" [every-track-described]: what was said of a track stays.
    """
    facts = Facts({8, 9})
    facts.note(8, b"\x90Opus")
    facts.note(8, b"\x95\x00mp4a\x07...")
    facts.note(9, b"\x90hvc1...")
    facts.note(9, b"\x91vp09... no other codec without a header of its own")
    tracks = VideoTrack(VideoFourCc.AV1, b"one", 1), VideoTrack(VideoFourCc.VP9, b"two", 12)
    layout = MultitrackType.MANY_TRACKS_MANY_CODECS
    modifiers = (ModEx.offset(400),)
    facts.note(9, bytes(ExVideoTag(FrameType.KEY, 0, tracks, layout, None, modifiers)))
    said = {"width": 640.0, "videoTrackIdInfoMap": {"1": {"width": 320.0}, "5": {"width": 1.0}}}
    members = metadata.read(describe(said, facts))
    assert (members["audiocodecid"], members["videocodecid"]) == (0x4F707573, 0x68766331)
    assert metadata.tracks(members, metadata.AUDIO_TRACKS) == {7: {"audiocodecid": 0x6D703461}}
    assert metadata.tracks(members, metadata.VIDEO_TRACKS) == {
        1: {"width": 320.0, "videocodecid": 0x61763031},
        5: {"width": 1.0},
        12: {"videocodecid": 0x76703039},
    }


def test_a_codec_of_old_beside_tracks_with_new_ones():
    """Covers E-RTMP v2 §"Enhancing onMetaData": it is the one of the default track."""
    facts = Facts({9})
    facts.note(9, b"\x17\x00\0\0\0avcC")
    facts.note(9, b"\x96\x00av01\x01...")
    facts.note(18, b"\x90Opus")
    facts.note(8, b"")
    members = metadata.read(describe({"videoTrackIdInfoMap": "nonsense"}, facts))
    assert members["videocodecid"] == 7.0 and "audiocodecid" not in members
    assert members["videoTrackIdInfoMap"] == {"1": {"videocodecid": 0x61763031}}
