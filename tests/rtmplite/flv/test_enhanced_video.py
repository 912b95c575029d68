"""Video tags whose codecs have FourCCs."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.enhanced import ModEx, four_cc, four_cc_text
from rtmplite.flv.enhanced_video import (
    ExVideoTag,
    VideoCommand,
    VideoFourCc,
    VideoPacketType,
    VideoTrack,
    has_composition_time,
)
from rtmplite.flv.video import FrameType
from rtmplite.strategies.enhanced import video_tags

AV1 = VideoFourCc.AV1


@given(video_tags())
def test_written_tags_read_the_same(tag):
    """Covers E-RTMP v2 §"Enhanced Video" [process-completely]."""
    event("command" if tag.command is not None else f"layout {tag.multitrack}")
    assert ExVideoTag.parse(bytes(tag)) == tag
    assert ExVideoTag.parse(memoryview(bytes(tag))) == tag


@pytest.mark.parametrize(
    ("raw", "tag"),
    [
        ("90 61763031 8100", ExVideoTag(1, 0, (VideoTrack(AV1, b"\x81\0"),))),
        ("91 61763031 1200", ExVideoTag(1, 1, (VideoTrack(AV1, b"\x12\0"),))),
        ("a1 68766331 ffffd8 00", ExVideoTag(2, 1, (VideoTrack(VideoFourCc.HEVC, b"\0", 0, -40),))),
        ("a3 68766331 00", ExVideoTag(2, 3, (VideoTrack(VideoFourCc.HEVC, b"\0"),))),
        ("92 76703039", ExVideoTag(1, 2, (VideoTrack(VideoFourCc.VP9, b""),))),
        ("95 61763031 80", ExVideoTag(1, 5, (VideoTrack(AV1, b"\x80"),))),
        ("d4 61763031 02", ExVideoTag(5, 4, (VideoTrack(AV1, b"\x02"),))),
        ("d1 00", ExVideoTag(5, 1, command=VideoCommand.START_SEEK)),
        ("d0 01", ExVideoTag(5, 0, command=VideoCommand.END_SEEK)),
        ("96 01 61763031 01 aa", ExVideoTag(1, 1, (VideoTrack(AV1, b"\xaa", 1),), 0)),
        ("d6 04 61763031 01 02", ExVideoTag(5, 4, (VideoTrack(AV1, b"\x02", 1),), 0)),
        ("d6 04", ExVideoTag(5, 6, command=4)),
        ("99 78787878 aa", ExVideoTag(1, 9, (VideoTrack(four_cc("xxxx"), b"\xaa"),))),
    ],
)
def test_bytes_and_their_meaning(raw, tag):
    """Covers E-RTMP v2 §"Enhanced Video" [is-ex-header] [video-packet-types] [video-commands]
    [command-has-no-body] [metadata-ignores-frame-type] [composition-time].

    Covers E-RTMP v1 §"Defining Additional Video Codecs" [is-ex-header] [packet-types]
    [composition-time].
    """
    assert ExVideoTag.parse(bytes.fromhex(raw)) == tag
    assert bytes(tag) == bytes.fromhex(raw)


def test_the_codecs_have_these_names():
    """Covers E-RTMP v2 §"Enhanced Video" [video-fourccs].

    Covers E-RTMP v1 §"Defining Additional Video Codecs" [fourccs].
    """
    names = ["vp08", "vp09", "av01", "avc1", "hvc1", "vvc1"]
    assert [four_cc_text(each) for each in VideoFourCc] == names
    assert [has_composition_time(1, each) for each in VideoFourCc] == [False] * 3 + [True] * 3
    assert not has_composition_time(VideoPacketType.CODED_FRAMES_X, VideoFourCc.HEVC)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "17 01 000000",
        "10 61763031 8100",
        "11 61763031 1200",
        "90",
        "90 617630",
        "91 68766331 0000",
        "d1",
        "d1 00 00",
        "96",
        "96 31",
        "96 16 61763031 00 000000",
        "96 17 61763031 00 000000",
        "96 11 61763031 00 000001",
    ],
)
def test_what_cannot_be_understood_is_refused(raw):
    """Covers E-RTMP v2 §"Enhanced Video" [fails-controlled] [multitrack-not-nested].

    Covers E-RTMP v1 §"Defining Additional Video Codecs" [fails-gracefully].
    """
    with pytest.raises(RemoteError):
        ExVideoTag.parse(bytes.fromhex(raw))


@pytest.mark.parametrize(
    "tag",
    [
        ExVideoTag(5, 1),
        ExVideoTag(5, 1, (VideoTrack(AV1, b""),)),
        ExVideoTag(1, 1, command=0),
        ExVideoTag(1, 6, (VideoTrack(AV1, b""),)),
        ExVideoTag(1, 7, (VideoTrack(AV1, b""),)),
        ExVideoTag(1, 1, ()),
        ExVideoTag(1, 1, (VideoTrack(AV1, b"", 0, 1),)),
        ExVideoTag(1, 3, (VideoTrack(VideoFourCc.HEVC, b"", 0, 1),)),
        ExVideoTag(1, 1, (VideoTrack(VideoFourCc.HEVC, b"", 0, 1 << 23),)),
    ],
)
def test_what_has_no_bytes(tag):
    """Our own mistakes."""
    with pytest.raises(LocalError):
        bytes(tag)


def test_a_picture_between_two_milliseconds():
    """Covers E-RTMP v2 §"Enhanced Video" [nano-offset]."""
    frame = VideoTrack(AV1, b"...")
    tag = ExVideoTag(FrameType.KEY, 1, (frame,), mod_ex=(ModEx.offset(250_000),))
    assert bytes(tag) == bytes.fromhex("97 02 03d090 01 61763031 2e2e2e")
    assert ExVideoTag.parse(bytes(tag)).nanosecond_offset == 250_000


@given(mutations(video_tags().map(bytes)) | st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(raw):
    """Covers E-RTMP v2 §"Enhanced Video" [fails-controlled]: nothing but RemoteError."""
    try:
        tag = ExVideoTag.parse(raw)
    except RemoteError:
        event("refused")
        return
    ids = [track.track_id for track in tag.tracks]
    event("read" if len(set(ids)) == len(ids) else "read, with an id twice")
    if len(set(ids)) == len(ids):
        assert ExVideoTag.parse(bytes(tag)) == tag


@pytest.mark.parametrize(
    "raw",
    [
        b"\x96\x10av01" + b"\0\0\0\0" * 100_000,
        b"\x97" + b"\x00\x00\x57" * 100_000,
        b"\x96\x20" + b"av01\0\0\0\0" * 255 + b"av01\0" + (1_000_000).to_bytes(3, "big"),
    ],
)
def test_memory_is_bounded(raw):
    """However a message is made, reading it takes no more than its share."""

    def read():
        with pytest.raises(RemoteError):
            ExVideoTag.parse(raw)

    assert peak(read) <= 32 * len(raw) + 64 * 1024


def test_packet_types_have_their_numbers():
    """Covers E-RTMP v2 §"Enhanced Video" [video-packet-types].

    Covers E-RTMP v1 §"Defining Additional Video Codecs" [packet-types].
    """
    assert {each.name: each.value for each in VideoPacketType} == {
        "SEQUENCE_START": 0,
        "CODED_FRAMES": 1,
        "SEQUENCE_END": 2,
        "CODED_FRAMES_X": 3,
        "METADATA": 4,
        "MPEG2TS_SEQUENCE_START": 5,
        "MULTITRACK": 6,
        "MOD_EX": 7,
    }
