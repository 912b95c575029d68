"""What a file says about itself is true, and as long as the room there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import LocalError
from rtmplite.flv import metadata
from rtmplite.flv.describe import Facts, describe, fit


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
        (b"\x90Opus", {}),
        (b"", {}),
    ],
)
def test_what_a_codec_byte_tells(first, known):
    """Covers FLV 10.1 §E.4.2.1; a FourCC says nothing here (E-RTMP v2 §"Enhanced Audio")."""
    members = Facts({8}, {8: first}).members()
    names = ("audiocodecid", "audiosamplerate", "stereo")
    assert {name: members[name] for name in names if name in members} == known
    assert "videocodecid" not in Facts({9}, {9: b"\x90av01"}).members()


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
    """Own design: no end, no kinds."""
    body = fit({"width": 1.0, "filler": "of somebody else's"}, None, 500)
    assert len(body) == 500
    assert {name for name in metadata.read(body) if not name.startswith("filler")} == {"width"}
