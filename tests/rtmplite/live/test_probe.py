"""What a probe finds out, from messages made by hand and from every file of the corpus."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.amf import amf0
from rtmplite.flv import file
from rtmplite.flv.enhanced_video import ExVideoTag, VideoTrack
from rtmplite.live.probe import MAX_TRACKS, Probe
from rtmplite.rtmp.wire.message import MessageType

AUDIO, VIDEO, DATA = MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA
KEY, FRAME = b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0more"


def watched(messages, asked=0.0):
    """A probe that saw (type, time, payload, arrival)."""
    probe = Probe(asked)
    for message in messages:
        probe.note(*message)
    return probe


def tracks(probe):
    """The report's tracks by kind."""
    return {track["kind"]: track for track in probe.report(10.0)["tracks"]}


def test_rates_and_key_frames():
    """25 pictures a second, a key frame each second but one of two."""
    times = range(0, 5001, 40)
    keys = (0, 1000, 3000, 4000)
    probe = watched((VIDEO, t, KEY if t in keys else FRAME, t / 1000) for t in times)
    video = tracks(probe)["video"]
    assert video["rate"] == 25.0 and video["key_frames"] == 4
    assert video["key_frame_interval"] == pytest.approx(1.333, abs=0.001)
    assert video["longest_key_frame_interval"] == 2.0
    assert video["kbit_s"] == pytest.approx(25 * 9 * 8 / 1000, abs=0.2)
    assert video["jitter_ms"] == 0.0


def test_jitter_is_what_rtp_calls_it():
    """Every other message 10 ms late.  RFC 3550 §6.4.1."""
    late = (0.0, 0.010)
    probe = watched((AUDIO, t * 20, b"\xb2", t / 50 + late[t % 2]) for t in range(500))
    assert tracks(probe)["audio"]["jitter_ms"] == pytest.approx(10.0, abs=0.1)


def test_a_backlog_is_how_far_a_player_lags():
    """Two seconds at once, then live."""
    burst = [(VIDEO, t, KEY if t == 0 else FRAME, 0.5) for t in range(0, 2001, 40)]
    live = [(VIDEO, 2000 + t, FRAME, 0.5 + t / 1000) for t in range(40, 1000, 40)]
    report = watched(burst + live).report(2.0)
    assert report["backlog_ms"] == 2000.0
    assert report["first_message_ms"] == report["first_key_frame_ms"] == 500.0


def test_times_may_wrap():
    """Covers RTMP 1.0 §4 [serial-numbers]: after 49 days."""
    base = (1 << 32) - 1000
    probe = watched((VIDEO, (base + t) % (1 << 32), KEY, t / 1000) for t in range(0, 2001, 500))
    assert tracks(probe)["video"]["rate"] == 2.0
    assert tracks(probe)["video"]["key_frame_interval"] == 0.5
    half, probe = 1 << 31, Probe(0.0)  # of two times the nearer
    times = [probe._unwrap(time % (1 << 32)) for time in (5, half + 4, 2 * half + 3, 2 * half - 1)]
    assert times == [5, half + 4, 2 * half + 3, 2 * half - 1]


@pytest.mark.parametrize(
    ("payload", "codec", "hz", "channels"),
    [
        (b"\xb2x", "SPEEX", 16000, 1),
        (b"\x82x", "G711_MU_LAW", 8000, 1),
        (b"\x2fx", "MP3", 44100, 2),
        (b"\x2ex", "MP3", 44100, 1),
        (b"\xaf\x00\x12\x10", "AAC", 44100, 2),
        (b"\xaf\x00\x11\x88", "AAC", 48000, 1),
        (b"\xaf\x01raw", "AAC", None, None),
        (b"\xd2x", "codec 13", 5512, 1),
    ],
)
def test_what_sound_says_of_itself(payload, codec, hz, channels):
    """By its first byte, or AAC's configuration.  FLV 10.1 §E.4.2.1."""
    audio = tracks(watched([(AUDIO, 0, payload, 0.0)]))["audio"]
    assert (audio["codec"], audio.get("hz"), audio.get("channels")) == (codec, hz, channels)


def test_a_header_is_no_frame():
    """The track is there, with nothing counted."""
    probe = watched([(VIDEO, 0, b"\x17\x00\0\0\0avcC", 0.0)])
    assert tracks(probe)["video"]["messages"] == 0
    assert probe.report(1.0)["first_message_ms"] is None


def test_enhanced_video_by_its_four_letters():
    """And every track of several.  E-RTMP v2 §"Enhanced Video"."""
    hevc = int.from_bytes(b"hvc1", "big")
    single = ExVideoTag(1, 3, (VideoTrack(hevc, b"x"),))
    both = ExVideoTag(1, 3, (VideoTrack(hevc, b"x"), VideoTrack(hevc, b"yy", 1)), multitrack=1)
    probe = watched([(VIDEO, 0, bytes(single), 0.0), (VIDEO, 40, bytes(both), 0.04)])
    found = probe.report(1.0)["tracks"]
    assert [(track["codec"], track.get("track_id")) for track in found] == [
        ("hvc1", None),
        ("hvc1", 1),
    ]


def test_metadata_is_kept():
    """The newest; what is none is not."""
    probe = watched(
        [
            (DATA, 0, amf0.encode("onMetaData", {"width": 320.0}), 0.0),
            (DATA, 0, amf0.encode("onCuePoint", {"width": 1.0}), 0.0),
            (DATA, 0, b"\xff", 0.0),
        ]
    )
    assert probe.metadata == {"width": 320.0} and not probe.tracks


def test_every_flv_of_the_corpus(corpus):
    """Nothing raises, and there are tracks where there is media."""
    for path in sorted((corpus / "flv").glob("*.flv")):
        found = file.read_flv(path.read_bytes())[1]
        probe = watched((tag.tag_type, tag.timestamp, tag.data, 0.0) for tag in found)
        kinds = {8: "audio", 9: "video"}
        expected = {kinds[tag.tag_type] for tag in found if tag.tag_type != 18 and tag.data}
        assert set(tracks(probe)) <= expected, path.name
        assert probe.report(1.0)["seconds"] == 1.0


GOOD = st.sampled_from([KEY, FRAME, b"\xaf\x00\x12\x10", b"\xb2x", b"\x93hvc1x", b"\x91Opusx"])
MESSAGES = st.tuples(
    st.sampled_from([AUDIO, VIDEO, DATA]),
    st.integers(0, 0xFFFFFFFF),
    mutations(GOOD) | st.binary(max_size=40),
    st.floats(0, 1e6),
)


@given(st.lists(MESSAGES, max_size=30))
def test_no_message_raises_anything(messages):
    """Whatever a server plays; the tracks are bounded."""
    report = watched(messages).report(1.0)
    event(f"{len(report['tracks'])} tracks")
    assert len(report["tracks"]) <= MAX_TRACKS


def test_tracks_are_bounded():
    """One that names a new codec in every message is not believed."""

    def hostile():
        for number in range(5000):
            yield AUDIO, 0, b"\x91" + number.to_bytes(4, "big") + b"x", 0.0

    assert peak(lambda: watched(hostile())) < 1 << 20
