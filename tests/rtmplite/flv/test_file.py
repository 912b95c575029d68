"""FLV files read and write back to the same bytes, those of the corpus included."""

import re
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.corpus_lines import readme_lines
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.flv import audio, file, metadata, video
from rtmplite.flv.tag import TagType
from rtmplite.strategies import flv


@given(st.lists(flv.tags(), max_size=5))
def test_what_is_written_reads_back(tags):
    """Covers FLV 10.1 §E.2, FLV 10.1 §E.3."""
    raw = file.write_flv(tags)
    header, back = file.read_flv(raw)
    assert back == tags and file.read_flv(memoryview(raw)) == (header, back)
    assert header.has_audio == any(tag.tag_type == TagType.AUDIO for tag in tags)
    assert header.has_video == any(tag.tag_type == TagType.VIDEO for tag in tags)
    assert file.FlvHeader.parse(bytes(header)) == header


@pytest.mark.parametrize(
    ("kinds", "flags"), [([], "00"), ([8], "04"), ([9], "01"), ([8, 9, 18], "05"), ([18], "00")]
)
def test_every_field_has_its_place(kinds, flags):
    """Covers FLV 10.1 §E.2 [signature] [version] [type-flags] [reserved-zero] [header-first].

    And FLV 10.1 §E.2 [data-offset], FLV 10.1 §E.1 [big-endian], FLV 10.1 §E.3 [first-size-zero]
    [previous-tag-size] [alternating].
    """
    content = [file.Tag(kind, 0, bytes(kind << 8)) for kind in kinds]
    raw = file.write_flv(content)
    assert raw[:13] == bytes.fromhex(f"464c56 01 {flags} 00000009 00000000")
    rest = b"".join(bytes(tag) + (11 + len(tag.data)).to_bytes(4, "big") for tag in content)
    assert raw[13:] == rest and file.read_flv(raw)[1] == content
    assert file.FlvHeader.parse(raw[:9]) == file.FlvHeader(8 in kinds, 9 in kinds)


def test_a_longer_header_is_skipped():
    """Covers FLV 10.1 §E.2 [data-offset]."""
    raw = file.write_flv([])
    assert file.read_flv(raw[:5] + b"\x00\x00\x00\x0c???" + raw[9:])[1] == []


@pytest.mark.parametrize("raw", ["", "464c56 01 00 000000", "464c58 01 00 00000009 00000000"])
def test_what_is_no_file_is_refused(raw):
    """Covers FLV 10.1 §E.2 [signature] [header-first]."""
    with pytest.raises(RemoteError):
        file.read_flv(bytes.fromhex(raw))


@given(mutations(flv.files()) | st.binary(max_size=40))
def test_other_bytes_are_refused(raw):
    """Covers FLV 10.1 §E.3."""

    def read():
        with suppress(RemoteError):
            for _ in file.tags(raw):
                read_some.append(True)

    read_some = []
    assert peak(read) <= 32 * len(raw) + 65536
    event(f"read a tag or more: {bool(read_some)}")


def test_an_offset_into_the_header_is_refused():
    """Covers FLV 10.1 §E.2."""
    with pytest.raises(RemoteError):
        file.read_flv(b"FLV\x01\x05\x00\x00\x00\x08" + bytes(4))


def content(tags):
    """The tags by kind, as the corpus describes them."""
    return Counter(TagType(tag.tag_type).name.lower() for tag in tags)


@pytest.mark.parametrize("line", readme_lines("FLV"), ids=lambda line: line[0])
def test_real_files(corpus, line):
    """Covers FLV 10.1 §E.3, FLV 10.1 §E.4.1, FLV 10.1 §E.5."""
    name, size, _, said, *_ = line
    raw = (corpus / "flv" / name).read_bytes()
    header, tags = file.read_flv(raw)
    assert len(raw) == int(size) and file.write_flv(tags) == raw
    wanted = {
        kind: int(n) for kind, n in re.findall(r"(audio|video|script) [^,]*?(\d+)(?=,)", said)
    }
    assert content(tags) == wanted and header.has_video == ("video" in wanted)
    assert max(tag.timestamp for tag in tags) == int(re.search(r"last ts (\d+)", said)[1])
    assert metadata.read(tags[0].data)
    bodies = {TagType.AUDIO: audio.AudioTag, TagType.VIDEO: video.VideoTag}
    shifted = 0
    for tag in tags:
        if tag.tag_type == TagType.SCRIPT or not tag.data:
            continue
        if " ext " in said:
            with pytest.raises(RemoteError):
                bodies[tag.tag_type].parse(tag.data)
            continue
        body = bodies[tag.tag_type].parse(tag.data)
        assert bytes(body) == tag.data
        shifted += tag.tag_type == TagType.VIDEO and body.composition_time != 0
    offsets = re.search(r"(\d+) with composition offset", said)
    assert shifted == (int(offsets[1]) if offsets else 0)


@given(st.lists(flv.tags(), max_size=5), st.lists(st.integers(1, 40), min_size=1))
def test_pieces_of_any_size_give_the_same_tags(tags, sizes):
    """Covers FLV 10.1 §E.2, FLV 10.1 §E.3: nothing depends on where a read ends."""
    raw, reader, back, at = file.write_flv(tags), file.FlvReader(), [], 0
    while at < len(raw):
        size = sizes[at % len(sizes)]
        back += reader.feed(raw[at : at + size])
        at += size
        assert reader.position + reader.held == min(at, len(raw))
    assert back == tags and reader.position == len(raw)
    assert reader.header == file.read_flv(raw)[0]


@given(mutations(flv.files()) | st.binary(max_size=40), st.integers(1, 50))
def test_pieces_of_other_bytes_are_refused_or_kept(raw, size):
    """Covers FLV 10.1 §E.3."""

    def read():
        reader = file.FlvReader()
        with suppress(RemoteError):
            for at in range(0, len(raw), size):
                reader.feed(raw[at : at + size])

    assert peak(read) <= 32 * len(raw) + 65536


def test_reading_may_begin_at_any_tag():
    """Covers FLV 10.1 §E.3."""
    tags = [file.Tag(8, at, bytes(at)) for at in range(3)]
    raw = file.write_flv(tags)
    reader = file.FlvReader(inside=True)
    assert reader.feed(raw[13 + 15 :] + bytes(5)) == tags[1:]
    assert reader.position == len(raw) - 28 and reader.held == 5
    source = file.MemoryFile(raw)
    assert source.size == len(raw) and source.read(9, 4) == bytes(4)
