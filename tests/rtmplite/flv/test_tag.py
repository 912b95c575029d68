"""FLV tags hold what they say, and nothing can be mistaken for one."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.tag import Tag, TagType, as_script, data_size
from rtmplite.strategies import flv


@given(flv.tags())
def test_what_is_written_reads_back(tag):
    """Covers FLV 10.1 §E.4.1."""
    raw = bytes(tag)
    assert Tag.parse(raw) == Tag.parse(memoryview(raw)) == tag
    assert data_size(b"??" + raw, 2) == len(tag.data)


def test_every_field_has_its_place():
    """Covers FLV 10.1 §E.4.1 [tag-types] [filter] [timestamp-extended] [data-size].

    And FLV 10.1 §E.4.1 [reserved-bits] [filter-when-encrypted] [stream-id-zero],
    FLV 10.1 §E.1 [big-endian].
    """
    raw = bytes.fromhex("09 000002 345678 12 0a0b0c 2700")
    assert Tag.parse(raw) == Tag(TagType.VIDEO, 0x12345678, b"\x27\x00", 0x0A0B0C)
    assert bytes(Tag(TagType.VIDEO, 0x12345678, b"\x27\x00", 0x0A0B0C)) == raw
    assert [TagType.AUDIO, TagType.VIDEO, TagType.SCRIPT] == [8, 9, 18]
    encrypted = bytes.fromhex("32 000000 ffffff ff 000000")
    assert Tag.parse(encrypted) == Tag(18, -1, b"", 0, True)
    assert bytes(Tag(TagType.SCRIPT, -1, b"", filtered=True)) == encrypted
    assert bytes(Tag(0x48, 1 << 31, b"")) == bytes.fromhex("08 000000 000000 80 000000")
    assert Tag.parse(bytes.fromhex("c8 000000 000000 80 000000")) == Tag(8, -(1 << 31), b"")


@given(mutations(flv.tags().map(bytes)) | st.binary(max_size=40))
def test_other_bytes_are_refused(raw):
    """Covers FLV 10.1 §E.4.1."""
    try:
        tag = Tag.parse(raw)
    except RemoteError:
        event("refused")
    else:
        event("read")
        assert len(bytes(tag)) == len(raw)


def test_a_long_tag_is_measured_right():
    """Covers FLV 10.1 §E.4.1 [data-size], FLV 10.1 §E.1 [big-endian]."""
    tag = Tag(TagType.VIDEO, 0, bytes(0x030201))
    assert bytes(tag)[1:4] == b"\3\2\1" and Tag.parse(bytes(tag)) == tag
    assert data_size(bytes(tag)[:11]) == 0x030201
    with pytest.raises(RemoteError):
        data_size(bytes(tag)[:10])


def test_a_tag_too_long_is_our_bug():
    """Covers FLV 10.1 §E.4.1 [data-size]."""
    assert len(bytes(Tag(TagType.AUDIO, 0, bytes((1 << 24) - 1)))) == 11 + (1 << 24) - 1
    with pytest.raises(LocalError):
        bytes(Tag(TagType.AUDIO, 0, bytes(1 << 24)))


def test_script_data_in_amf3_is_script_data():
    """Covers E-RTMP v2 §"Enabling AMF3 in FLV" [tag-type-15]: less the byte for its format."""
    assert as_script(Tag(15, 40, b"\x00values")) == Tag(TagType.SCRIPT, 40, b"values")
    for other in (
        Tag(15, 0, b"\x01values"),
        Tag(15, 0, b""),
        Tag(18, 0, b"\x00"),
        Tag(8, 0, b"\x00"),
    ):
        assert as_script(other) is other
