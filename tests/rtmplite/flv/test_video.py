"""Video bodies: what a frame depends on, which codec, and when AVC wants it shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.video import (
    AvcPacketType,
    CodecId,
    FieldCodecId,
    FrameType,
    VideoTag,
    is_key_frame,
    is_sequence_header,
)
from rtmplite.strategies import flv


@given(flv.video_tags())
def test_what_is_written_reads_back(tag):
    """Covers FLV 10.1 §E.4.3.1."""
    assert VideoTag.parse(bytes(tag)) == VideoTag.parse(memoryview(bytes(tag))) == tag


@pytest.mark.parametrize(
    ("raw", "tag"),
    [
        ("17 00 000000 01", VideoTag(FrameType.KEY, CodecId.AVC, 0, 0, b"\x01")),
        ("27 01 000053 aa", VideoTag(FrameType.INTER, CodecId.AVC, 1, 83, b"\xaa")),
        ("27 01 012345 aa", VideoTag(FrameType.INTER, CodecId.AVC, 1, 0x012345, b"\xaa")),
        ("27 01 ffffff aa", VideoTag(FrameType.INTER, CodecId.AVC, 1, -1, b"\xaa")),
        ("17 02 000000", VideoTag(1, 7, AvcPacketType.END_OF_SEQUENCE, 0, b"")),
        ("43 ff", VideoTag(FrameType.GENERATED_KEY, CodecId.SCREEN_VIDEO, None, 0, b"\xff")),
        ("14 00", VideoTag(FrameType.KEY, CodecId.ON2_VP6, None, 0, b"\x00")),
        ("25 00", VideoTag(FrameType.INTER, CodecId.ON2_VP6_ALPHA, None, 0, b"\x00")),
        ("16 00", VideoTag(FrameType.KEY, CodecId.SCREEN_VIDEO_2, None, 0, b"\x00")),
        ("32 84", VideoTag(FrameType.DISPOSABLE_INTER, CodecId.SORENSON_H263, None, 0, b"\x84")),
        ("57 00", VideoTag(FrameType.INFO_OR_COMMAND, CodecId.AVC, None, 0, b"\x00")),
    ],
)
def test_every_field_has_its_place(raw, tag):
    """Covers FLV 10.1 §E.4.3.1 [header-bits] [frame-types] [codec-ids] [avc-packet-type].

    And FLV 10.1 §E.4.3.1 [composition-time] [info-frame], FLV 10.1 §E.4.3.2.
    """
    assert VideoTag.parse(bytes.fromhex(raw)) == tag
    assert bytes(tag) == bytes.fromhex(raw)


@pytest.mark.parametrize("codec", FieldCodecId)
def test_codecs_that_encoders_number_have_the_bytes_of_avc(codec):
    """Covers Field §"HEVC and AV1 by number"."""
    assert [each.value for each in FieldCodecId] == [12, 13]
    header, key, inter = (bytes((kind << 4 | codec, packet)) + b"\xff\xff\xd8data"
                          for kind, packet in ((1, 0), (1, 1), (2, 1)))  # fmt: skip
    assert (is_sequence_header(header), is_key_frame(header)) == (True, False)
    assert (is_sequence_header(key), is_key_frame(key)) == (False, True)
    assert (is_sequence_header(inter), is_key_frame(inter)) == (False, False)
    tag = VideoTag(FrameType.KEY, codec, AvcPacketType.NALU, -40, b"data")
    assert VideoTag.parse(key) == tag and bytes(tag) == key
    with pytest.raises(LocalError):
        bytes(VideoTag(FrameType.KEY, codec, None, 0, b""))
    with pytest.raises(RemoteError, match=codec.name):
        VideoTag.parse(key[:4])


@pytest.mark.parametrize("raw", ["", "17 01 0000", "90 61763031"])
def test_what_has_no_header_is_refused(raw):
    """Covers FLV 10.1 §E.4.3.1."""
    with pytest.raises(RemoteError):
        VideoTag.parse(bytes.fromhex(raw))


@pytest.mark.parametrize(
    "tag",
    [
        VideoTag(1, CodecId.AVC, None, 0, b""),
        VideoTag(1, CodecId.ON2_VP6, 1, 0, b""),
        VideoTag(FrameType.INFO_OR_COMMAND, CodecId.AVC, 0, 0, b""),
        VideoTag(1, CodecId.AVC, 1, 1 << 23, b""),
    ],
)
def test_what_cannot_be_said_is_our_bug(tag):
    """Covers FLV 10.1 §E.4.3.1."""
    with pytest.raises(LocalError):
        bytes(tag)


@given(flv.video_tags())
def test_the_quick_look_agrees(tag):
    """Covers FLV 10.1 §E.4.3.1."""
    raw = bytes(tag)
    assert is_sequence_header(raw) == (tag.avc_packet_type == AvcPacketType.SEQUENCE_HEADER)
    picture = tag.avc_packet_type in (None, AvcPacketType.NALU) and len(raw) > 1
    assert is_key_frame(raw) == (tag.frame_type == FrameType.KEY and picture)


@pytest.mark.parametrize(
    ("raw", "key", "header"),
    [
        (b"\x90av01", False, True),
        (b"\x57\x00", False, False),
        (b"\x91av01", True, False),
        (b"\x93hvc1", True, False),
        (b"\xa1av01", False, False),
        (b"\x94av01", False, False),
        (b"\xd0av01", False, False),
        (b"", False, False),
    ],
)
def test_the_quick_look_knows_fourcc(raw, key, header):
    """Covers E-RTMP v1 §"Defining Additional Video Codecs"."""
    assert (is_key_frame(raw), is_sequence_header(raw)) == (key, header)


@given(mutations(flv.video_tags().map(bytes)) | st.binary(max_size=8))
def test_any_bytes_are_read_or_refused(raw):
    """Covers FLV 10.1 §E.4.3.1."""
    assert not (is_key_frame(raw) and is_sequence_header(raw))
    try:
        tag = VideoTag.parse(raw)
    except RemoteError:
        return
    assert bytes(tag) == raw


def test_packets_of_avc_have_their_numbers():
    """Covers FLV 10.1 §E.4.3.1 [avc-packet-type]."""
    names = ["SEQUENCE_HEADER", "NALU", "END_OF_SEQUENCE"]
    assert [each.name for each in AvcPacketType] == names
    assert [*map(int, AvcPacketType)] == [0, 1, 2]
