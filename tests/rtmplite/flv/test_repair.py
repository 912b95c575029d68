"""What is left of a file plays, seeks, and is a proper file again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.corpus_lines import readme_lines
from support.mutations import mutations, peak

from rtmplite.amf import amf0
from rtmplite.errors import RemoteError
from rtmplite.flv import file, metadata
from rtmplite.flv.index import load_index, scan
from rtmplite.flv.repair import repair
from rtmplite.flv.tag import Tag, TagType
from rtmplite.strategies import flv


def mended(raw):
    """A report, and the mended file."""
    out = []
    report = repair(file.MemoryFile(raw), out.append)
    return report, b"".join(out)


def media(raw):
    """All tags of a whole file but for its description."""
    return [tag for tag in file.tags(raw) if tag.tag_type != TagType.SCRIPT]


def check(raw):
    """Everything a whole file says is true; its media."""
    header, tags = file.read_flv(raw)
    assert file.write_flv(tags) == raw
    index, looked = load_index(file.MemoryFile(raw)), scan(file.MemoryFile(raw))
    assert (index.times, index.positions) == (looked.times, looked.positions)
    said = metadata.read(tags[0].data)
    assert said["filesize"] == len(raw) and said["duration"] == looked.duration / 1000
    assert (said["hasAudio"], said["hasVideo"]) == (header.has_audio, header.has_video)
    return media(raw)


@pytest.mark.parametrize("line", readme_lines("FLV"), ids=lambda line: line[0])
def test_real_files_lose_their_last_tag_at_most(corpus, line):
    """Covers FLV 10.1 §E.3 and FLV 10.1 §E.5: whole, cut within the last tag, and cut anywhere."""
    raw = (corpus / "flv" / line[0]).read_bytes()
    report, whole = mended(raw)
    assert check(whole) == media(raw) and (report.lost, report.wrong_sizes) == (0, 0)
    report, cut = mended(raw[:-6])
    assert check(cut) == media(raw)[:-1] and report.lost > 0
    _, half = mended(raw[: len(raw) // 2])
    assert check(half) == media(raw)[: len(media(half))]
    assert mended(whole)[1] == whole


def test_metadata_is_made_where_there_is_none(corpus):
    """Covers FLV 10.1 §E.5; what the old one said of the rest stays."""
    raw = (corpus / "flv" / "red5_h264_speex.flv").read_bytes()
    _, before = file.read_flv(raw)
    report, out = mended(file.write_flv(before[1:]))
    said = metadata.read(file.read_flv(out)[1][0].data)
    assert said["audiocodecid"] == 11.0 and said["videocodecid"] == 7.0
    assert said["duration"] == report.duration / 1000 == 30.319 and report.tags == len(before) - 1
    seed = (corpus / "flv" / "seed_320x240_12fps_h264_speex16k_10s.flv").read_bytes()
    kept = metadata.read(file.read_flv(mended(seed)[1])[1][0].data)
    assert (kept["width"], kept["height"], kept["duration"]) == (320.0, 240.0, 9.98)
    broken = file.write_flv([file.Tag(18, 0, before[0].data[:60]), *before[1:]])
    assert check(mended(broken)[1]) == media(raw)


@given(flv.damaged())
def test_what_is_whole_is_kept(damaged):
    """Covers FLV 10.1 §E.3."""
    kept, raw = damaged
    report, out = mended(raw)
    assert check(out) == kept and report.tags == len(kept)
    assert report.wrong_sizes <= len(kept)


@given(mutations(flv.files()) | st.binary(max_size=40))
def test_anything_is_mended_or_refused(raw):
    """Own design: what comes out is a proper file."""

    def run():
        try:
            out.append(mended(raw)[1])
        except RemoteError:
            refused.append(True)

    out, refused = [], []
    assert peak(run) <= 32 * len(raw) + 65536
    for made in out:
        check(made)
    assert out or refused


def test_a_description_in_amf3_is_replaced_too():
    """Covers E-RTMP v2 §"Enabling AMF3 in FLV" [tag-type-15]; what else is in AMF3 stays."""
    said = b"\0" + amf0.encode("onMetaData", {"width": 320}, avmplus=True)
    cue, odd = b"\0" + amf0.encode("onCuePoint", 1, avmplus=True), b"\1onMetaData"
    tags = [Tag(15, 0, said), Tag(15, 0, cue), Tag(15, 0, odd), Tag(8, 0, b"\xb2sound")]
    _, (first, *rest) = file.read_flv(mended(file.write_flv(tags))[1])
    assert first.tag_type == 18 and metadata.read(first.data)["width"] == 320 and rest == tags[1:]


def test_a_repaired_file_tells_where_its_headers_are():
    """Own design: so that a player who begins behind a new one gets it."""
    old, new, key = b"\x17\0\0\0\0old!", b"\x17\0\0\0\0new!", b"\x17\x01\0\0\0key"
    tags = [Tag(9, at, old if at < 500 else new) for at in (0, 500)]
    tags[1:1] = [Tag(9, 0, key)]
    tags += [Tag(9, 500, key), Tag(9, 1000, key)]
    _, whole = mended(file.write_flv(tags))
    index = load_index(file.MemoryFile(whole))
    assert [index.head_at(place)[-1].data for place in index.positions] == [old, new, new]
    assert len(index.members["headerpositions"]) == 2
