"""What is remembered of a stream for those who come late."""

import pytest

from rtmplite.amf import amf0
from rtmplite.tracks import VIDEO_SILENCE, Tracks, Weight

META = amf0.encode("onMetaData", {"width": 320.0})


@pytest.mark.parametrize(
    ("type_id", "payload", "weight"),
    [
        (8, b"\xaf\x00\x12\x10", Weight.ESSENTIAL),
        (8, b"\xaf\x01...", Weight.PLAIN),
        (8, b"\xb2speex", Weight.PLAIN),
        (8, b"", Weight.PLAIN),
        (9, b"\x17\x00\0\0\0avcC", Weight.ESSENTIAL),
        (9, b"\x17\x01\0\0\0idr", Weight.START),
        (9, b"\x27\x01\0\0\0p", Weight.PLAIN),
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
    """Metadata first, then the headers; nothing that can be played."""
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
