"""What is remembered of a stream for those who come late."""

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.amf import amf0
from rtmplite.flv.enhanced import MultitrackType
from rtmplite.flv.enhanced_audio import AudioTrack, ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag, VideoTrack
from rtmplite.live.tracks import KEEPING, MAX_KEPT, VIDEO_SILENCE, Tracks, Weight
from rtmplite.strategies import enhanced

META = amf0.encode("onMetaData", {"width": 320.0})


@pytest.mark.parametrize(
    ("type_id", "payload", "weight"),
    [
        (8, b"\xaf\x00\x12\x10", Weight.ESSENTIAL),
        (8, b"\xaf\x00", Weight.PLAIN),  # a header without a configuration is none
        (8, b"\x90mp4a", Weight.PLAIN),
        (8, b"\x90mp4a\x12\x10", Weight.ESSENTIAL),
        (8, b"\x90ac-3", Weight.ESSENTIAL),
        (8, b"\xaf\x01...", Weight.PLAIN),
        (8, b"\xb2speex", Weight.PLAIN),
        (8, b"", Weight.PLAIN),
        (9, b"\x17\x00\0\0\0avcC", Weight.ESSENTIAL),
        (9, b"\x17\x01\0\0\0idr", Weight.START),
        (9, b"\x27\x01\0\0\0p", Weight.PLAIN),
        (9, b"\x1c\x00\0\0\0hvcC", Weight.ESSENTIAL),  # Field §"HEVC and AV1 by number"
        (9, b"\x1c\x01\0\0\0idr", Weight.START),
        (9, b"\x2c\x01\0\0\0p", Weight.PLAIN),
        (9, b"\x1d\x00\0\0\0av1C", Weight.ESSENTIAL),
        (9, b"\x1d\x01\0\0\0obu", Weight.START),
        (9, b"\x22h263", Weight.PLAIN),
        (9, b"\x12h263", Weight.START),
        (9, b"", Weight.PLAIN),
        (18, META, Weight.ESSENTIAL),
        (18, amf0.encode("@setDataFrame") + META, Weight.ESSENTIAL),
        (18, amf0.encode("@clearDataFrame", "onMetaData"), Weight.NOTHING),
        (18, amf0.encode("onTextData", "hello"), Weight.PLAIN),
        (18, b"\xff garbage", Weight.PLAIN),
    ],
)
def test_every_message_has_its_weight(type_id, payload, weight):
    """FLV 10.1 §E.4.2.1 and §E.4.3.1 tell headers and key frames from the rest."""
    assert Tracks().note(type_id, 0, payload, 0.0)[0] is weight


def test_the_opening_is_the_newest_of_each():
    """Covers Field §"Beginnings of streams" [metadata-first] [headers-first]."""
    tracks = Tracks()
    for payload in (b"\x17\x00\0\0\0old", b"\x17\x01\0\0\0idr", b"\x17\x00\0\0\0new"):
        tracks.note(9, 40, payload, 0.0)
    tracks.note(18, 60, amf0.encode("@setDataFrame") + META, 0.0)
    tracks.note(8, 80, b"\xaf\x00\x12\x10", 0.0)
    assert tracks.opening() == [(18, META), (8, b"\xaf\x00\x12\x10"), (9, b"\x17\x00\0\0\0new")]
    assert tracks.timestamp == 80


def test_video_that_stopped_is_not_waited_for():
    """A camera switched off: sound goes on without it."""
    tracks = Tracks()
    assert not tracks.has_video(0.0)
    tracks.note(9, 0, b"\x27\x01\0\0\0p", 5.0)
    assert tracks.has_video(5.0 + VIDEO_SILENCE - 0.1)
    assert not tracks.has_video(5.0 + VIDEO_SILENCE)


AV1_START, AV1_KEY, AV1_INTER = b"\x90av01cfg", b"\x91av01idr", b"\xa1av01p"
COLORS = b"\xd4av01" + amf0.encode("colorInfo", {"colorConfig": {"bitDepth": 10.0}})
OPUS_START, SPEAKERS = b"\x90OpusOpusHead", b"\x94Opus\x01\x01\0\0\0\4"


def video(kind, *ids, body=b"...", frame_type=1):
    """A video message for these tracks."""
    tracks = tuple(VideoTrack(0x61763031, body, number) for number in ids)
    layout = MultitrackType.MANY_TRACKS if len(ids) > 1 else MultitrackType.ONE_TRACK
    return bytes(ExVideoTag(frame_type, kind, tracks, layout))


def audio(kind, *ids, body=b"..."):
    """An audio message for these tracks."""
    tracks = tuple(AudioTrack(0x4F707573, body, number) for number in ids)
    layout = MultitrackType.MANY_TRACKS if len(ids) > 1 else MultitrackType.ONE_TRACK
    return bytes(ExAudioTag(kind, tracks, layout))


@pytest.mark.parametrize(
    ("type_id", "payload", "weight"),
    [
        (9, AV1_START, Weight.ESSENTIAL),
        (9, b"\x95av01descriptor", Weight.ESSENTIAL),
        (9, COLORS, Weight.ESSENTIAL),
        (9, AV1_KEY, Weight.START),
        (9, b"\x93hvc1idr", Weight.START),
        (9, AV1_INTER, Weight.PLAIN),
        (9, b"\x92av01", Weight.PLAIN),
        (9, b"\xd0\x00", Weight.PLAIN),
        (9, b"\x97\x02\x00\x00\x01\x01av01idr", Weight.START),
        (9, b"\x97\x02\x00\x00\x01\x00av01cfg", Weight.ESSENTIAL),
        (9, b"\x97\x02", Weight.PLAIN),
        (9, b"\x99????", Weight.PLAIN),
        (9, b"\x90????cfg", Weight.ESSENTIAL),
        (9, b"\x91????idr", Weight.START),
        (9, video(0, 1), Weight.ESSENTIAL),
        (9, video(4, 1), Weight.ESSENTIAL),
        (9, video(1, 0, 1), Weight.START),
        (9, video(1, 0, 1, frame_type=2), Weight.PLAIN),
        (8, OPUS_START, Weight.ESSENTIAL),
        (8, SPEAKERS, Weight.ESSENTIAL),
        (8, audio(0, 3), Weight.ESSENTIAL),
        (8, audio(4, 3, 4), Weight.ESSENTIAL),
        (8, b"\x91Opus...", Weight.PLAIN),
        (8, b"\x90????", Weight.ESSENTIAL),
        (8, b"\x95", Weight.PLAIN),
        (8, audio(1, 0, 1), Weight.PLAIN),
    ],
)
def test_every_enhanced_message_has_its_weight(type_id, payload, weight):
    """E-RTMP v2 §"Enhanced Audio", E-RTMP v2 §"Enhanced Video": whatever the FourCC says."""
    assert Tracks().note(type_id, 0, payload, 0.0) == (weight, payload)


def test_the_opening_has_every_track():
    """Covers E-RTMP v2 §"Metadata Frame" [metadata-first] [in-time] [replaces].

    Covers E-RTMP v1 §"Metadata Frame" [metadata-first] [replaces].  Newest of each, in the order
    in which they came.
    """
    tracks = Tracks()
    first = video(0, 1, body=b"old"), video(4, 1), COLORS[:-10]
    second = AV1_START, video(0, 1, body=b"new"), video(0, 2), COLORS
    for payload in (*first, AV1_KEY, *second, AV1_INTER):
        tracks.note(9, 0, payload, 0.0)
    sounds = OPUS_START, SPEAKERS, audio(0, 1), audio(4, 1)
    for payload in (*sounds, b"\x91Opus..."):
        tracks.note(8, 0, payload, 0.0)
    expected = [(8, each) for each in sounds] + [(9, each) for each in (video(4, 1), *second)]
    assert tracks.opening() == expected


def test_a_header_of_many_tracks_replaces_those_of_each():
    """And one of a few is needed besides: which came last counts."""
    tracks, both = Tracks(), video(0, 0, 1)
    for payload in (AV1_START, video(0, 1), both):
        tracks.note(9, 0, payload, 0.0)
    assert tracks.opening() == [(9, both)]
    tracks.note(9, 0, AV1_START, 0.0)
    assert tracks.opening() == [(9, both), (9, AV1_START)]


@pytest.mark.parametrize("other", [b"\x17\x00\0\0\0avcC", b"\x95av01descriptor"])
def test_one_header_takes_the_place_of_another_kind(other):
    """Covers E-RTMP v2 §"Enhanced Video" [one-sequence-start]: what a decoder begins with."""
    tracks = Tracks()
    for payload in (AV1_START, other):
        tracks.note(9, 0, payload, 0.0)
    assert tracks.opening() == [(9, other)]


def test_one_begins_at_a_key_frame_of_the_lowest_track():
    """Covers E-RTMP v2 §"Multitrack Media Message Guidelines" [track-0-is-default].

    And nothing else, E-RTMP v2 §"Multitrack Media Message Guidelines" [no-guess-by-id].
    Unless that has fallen silent, or there is none.
    """
    tracks = Tracks()
    assert tracks.note(9, 0, video(1, 2), 0.0)[0] is Weight.START
    assert tracks.note(9, 0, video(1, 1), 0.1)[0] is Weight.START
    assert tracks.note(9, 0, video(1, 2), 0.2)[0] is Weight.PLAIN
    assert tracks.note(9, 0, AV1_KEY, 0.3)[0] is Weight.START
    assert tracks.note(9, 0, video(1, 1, 2), 0.4)[0] is Weight.PLAIN
    assert tracks.note(9, 0, video(1, 0, 2), 0.5)[0] is Weight.START
    assert tracks.note(9, 0, video(1, 1), 0.5 + VIDEO_SILENCE)[0] is Weight.START
    assert tracks.has_video(0.5 + VIDEO_SILENCE)
    assert tracks.note(9, 0, video(1, 0, 2), 0.6 + VIDEO_SILENCE)[0] is Weight.START


def test_what_is_kept_is_bounded():
    """The oldest goes first; a header larger than all we keep is passed on and forgotten."""
    tracks = Tracks()
    for number in range(256):
        for kind in (0, 4):
            tracks.note(9, 0, video(kind, number, body=bytes(500)), 0.0)
            tracks.note(8, 0, audio(kind, number, body=bytes(500)), 0.0)
    assert len(tracks.opening()) == 1024
    for number in range(250):
        large = video(0, number, number + 1, number + 2, body=bytes(10_000))
        assert tracks.note(9, 0, large, 0.0) == (Weight.ESSENTIAL, large)
    assert sum(len(payload) + KEEPING for _, payload in tracks.opening()) <= MAX_KEPT
    assert tracks.opening()[-1] == (9, large)
    tracks.note(9, 0, AV1_START + bytes(MAX_KEPT), 0.0)
    assert tracks.opening() == []
    tracks.note(9, 0, AV1_START, 0.0)
    assert tracks.opening() == [(9, AV1_START)]


@given(st.lists(enhanced.payloads(), max_size=20))
@example([(8, b"\x90mp4a")])
def test_the_first_look_and_the_second_agree(messages):
    """Weights by the table of first bytes are those that the codecs give."""
    tracks = Tracks()
    for type_id, payload in messages:
        weight = tracks.note(type_id, 0, payload, 0.0)[0]
        tag = (ExAudioTag if type_id == 8 else ExVideoTag).parse(payload)
        header = bool(tag.tracks) and tag.packet_type in ((0, 4) if type_id == 8 else (0, 4, 5))
        says_nothing = payload == b"\x90mp4a"  # of AAC, before the one that counts
        assert (weight is Weight.ESSENTIAL) == (header and not says_nothing)
        if weight is Weight.START:
            assert type_id == 9 and tag.frame_type == 1 and tag.packet_type in (1, 3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([8, 9]),
            mutations(enhanced.payloads().map(lambda each: each[1])) | st.binary(max_size=8),
        ),
        max_size=20,
    )
)
def test_whatever_is_published_is_passed_on(messages):
    """E-RTMP v2 §"Enhanced Video": broken or unknown, it goes through as it came, with no error."""
    tracks = Tracks()
    for type_id, payload in messages:
        weight, passed_on = tracks.note(type_id, 0, payload, 0.0)
        event(weight.name)
        assert passed_on == payload
    assert len(tracks.opening()) <= len(messages)


def test_a_message_of_too_many_tracks_is_soon_read():
    """Bounded: however large it is, no more than 256 tracks of it are looked at."""
    huge = b"\x96\x10av01" + b"\0\0\0\0" * 1_000_000
    tracks = Tracks()
    assert peak(lambda: tracks.note(9, 0, huge, 0.0)) < 64 * 1024
    assert tracks.opening() == []


def test_metadata_can_be_taken_back():
    """Field §"@setDataFrame": by @clearDataFrame, and the headers stay."""
    tracks = Tracks()
    tracks.note(18, 0, META, 0.0)
    tracks.note(9, 0, AV1_START, 0.0)
    cleared = amf0.encode("@clearDataFrame", "onMetaData")
    assert tracks.note(18, 0, cleared, 0.0) == (Weight.NOTHING, cleared)
    assert tracks.opening() == [(9, AV1_START)]


def test_what_has_been_seen_is_told():
    """The kinds of messages, the newest time, and whether anything could be played yet."""
    tracks = Tracks()
    assert (tracks.timestamp, tracks.begun, tracks.kinds) == (0, False, set())
    tracks.note(18, 5, META, 0.0)
    tracks.note(9, 6, AV1_START, 0.0)
    assert (tracks.timestamp, tracks.begun, tracks.kinds) == (6, False, {9, 18})
    tracks.note(8, 7, b"\xb2speex", 0.0)
    assert (tracks.timestamp, tracks.begun, tracks.kinds) == (7, True, {8, 9, 18})


def test_as_much_is_kept_as_may_be():
    """Own design: to the byte, each header with its cost."""
    tracks = Tracks()
    full = AV1_START.ljust(MAX_KEPT - KEEPING, b"\0")
    tracks.note(9, 0, full, 0.0)
    assert tracks.opening() == [(9, full)]
    tracks.note(9, 0, full + b"\0", 0.0)
    assert tracks.opening() == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((8, b"\xaf\x00\x12\x10"), (8, b"\xae\x00\x12\x10")),
        ((9, AV1_START), (9, b"\x17\x00\0\0\0avcC")),
        ((9, b"\x17\x00\0\0\0avcC"), (9, AV1_START)),
    ],
)
def test_a_header_in_the_other_spelling_takes_the_place(old, new):
    """Covers E-RTMP v2 §"Enhanced Video" [one-sequence-start]: one decoder, one header."""
    tracks, other = Tracks(), (9, video(0, 2))
    for type_id, payload in (other, old, new):
        tracks.note(type_id, 0, payload, 0.0)
    assert tracks.opening() == sorted([other, new], key=lambda each: each[0])


@pytest.mark.parametrize("payload", [b"\x16\x00screen\x05...", b"\x17\x01\0\0\6\1av01\5idr"])
def test_an_old_video_packet_has_no_tracks(payload):
    """FLV 10.1 §E.4.3.1: codecs 6 and 7 look like packet types with track ids, and are none."""
    tracks = Tracks()
    tracks.note(9, 0, AV1_KEY, 0.0)
    assert tracks.note(9, 0, payload, 0.1)[0] is Weight.START


def test_a_player_can_begin_at_a_key_frame_or_where_there_are_no_pictures():
    """Covers Field §"Beginnings of streams" [key-frame-first]."""
    tracks = Tracks()
    assert tracks.can_begin(Weight.START, 0.0) and tracks.can_begin(Weight.PLAIN, 0.0)
    tracks.note(9, 0, b"\x17\1", 0.0)
    assert tracks.can_begin(Weight.START, 0.0) and not tracks.can_begin(Weight.PLAIN, 0.0)
    assert tracks.can_begin(Weight.PLAIN, VIDEO_SILENCE)
    for weight in (Weight.NOTHING, Weight.ESSENTIAL):
        assert not tracks.can_begin(weight, VIDEO_SILENCE)
