"""Where a file can be begun, by its own account or by looking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.corpus_lines import readme_lines
from support.mutations import mutations
from support.rtmp.vod_world import described

from rtmplite.amf import amf0
from rtmplite.errors import RemoteError
from rtmplite.flv import file, video
from rtmplite.flv.describe import Facts, describe
from rtmplite.flv.index import BEFORE_KEY, IndexPlace, load_index, scan
from rtmplite.flv.tag import Tag, TagType
from rtmplite.strategies import flv

KEY, INTER, AVC = b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0inter", b"\x17\x00\0\0\0avcC"
AAC, SOUND = b"\xaf\x00\x12\x10", b"\xaf\x01sound"


class Counted(file.MemoryFile):
    """Counts how often it is read."""

    reads = 0

    def read(self, at, size):
        self.reads += 1
        return super().read(at, size)


def film(count=100, metadata=None):
    """Half a second between key frames, sound between them, headers first."""
    tags = [Tag(18, 0, metadata)] if metadata else []
    tags += [Tag(9, 0, AVC), Tag(8, 0, AAC)]
    for at in range(0, count * 500, 500):
        tags += [Tag(9, at, KEY), Tag(8, at + 20, SOUND), Tag(9, at + 40, INTER)]
    return tags


def test_key_frames_are_found_by_looking():
    """Own design: at or before, at or after, and nothing after the last."""
    raw = file.write_flv(film(3))
    index = scan(file.MemoryFile(raw))
    assert list(index.times) == [0, 500, 1000] and index.duration == 1040
    assert index.kinds == {8, 9} and index.head == (Tag(8, 0, AAC), Tag(9, 0, AVC))
    assert index.before(499).timestamp == 0 and index.before(500).timestamp == 500
    assert index.after(501).timestamp == 1000 and index.after(1001) is None
    for time, position in zip(index.times, index.positions, strict=True):
        assert next(file.tags(file.start(True, True) + raw[position:])) == Tag(9, time, KEY)
    assert index.start == IndexPlace(0, 13) and index.end == len(raw) and index.members == {}


def test_sound_alone_has_a_place_every_second():
    """Own design: every sound can be begun with, but not each needs an entry."""
    tags = [Tag(8, at, SOUND) for at in range(0, 3001, 100)]
    index = scan(file.MemoryFile(file.write_flv([Tag(8, 0, AAC), *tags])))
    assert list(index.times) == [0, 1000, 2000, 3000]
    assert scan(file.MemoryFile(file.write_flv([]))).before(5.0) == IndexPlace(0, 13)


def test_what_a_file_says_is_believed_if_true():
    """Covers Field §"Keyframes in metadata": a few reads, and two for each key frame, not all."""
    source = Counted(file.write_flv(described(film(1000))))
    index = load_index(source)
    assert source.reads < 40 + 2 * len(index.times)
    looked = scan(source)
    assert (index.times, index.positions) == (looked.times, looked.positions)
    assert (index.head, index.kinds) == (looked.head, looked.kinds)
    assert index.duration == looked.duration == 499540
    assert index.members["duration"] == 499.54


@pytest.mark.parametrize("change", ["moved", "cut", "retimed", "uneven", "falling", "words"])
def test_what_a_file_says_is_not_believed_if_false(change):
    """Covers Field §"Keyframes in metadata"."""
    tags = described(film(20))
    index = scan(file.MemoryFile(file.write_flv(tags)))
    times, positions = list(index.times), list(index.positions)
    match change:
        case "moved":
            positions[10] += 1
        case "retimed":
            times[-1] += 100
        case "uneven":
            times.pop()
        case "falling":
            positions[3] = positions[2]
    facts = Facts({8, 9}, {}, index.duration, 0, times, positions)
    body = describe({}, facts)
    if change == "words":
        body = body.replace(b"filepositions", b"filepositionz")
    raw = file.write_flv([Tag(18, 0, body), *tags[1:]])
    if change == "cut":
        raw = raw[:-3]
    found, looked = load_index(file.MemoryFile(raw)), scan(file.MemoryFile(raw))
    assert (found.times, found.positions, found.end) == (
        looked.times,
        looked.positions,
        looked.end,
    )
    assert len(found.times) == 20


@pytest.mark.parametrize("line", readme_lines("FLV"), ids=lambda line: line[0])
def test_real_files(corpus, line):
    """Own design: every place is a key frame, or a sound where there is no video."""
    raw = (corpus / "flv" / line[0]).read_bytes()
    index = load_index(file.MemoryFile(raw))
    assert index.end == len(raw) and len(index.times) > 0
    for time, position in zip(index.times, index.positions, strict=True):
        tag = next(file.tags(file.start(True, True) + raw[position:]))
        assert abs(tag.timestamp - time) <= 50
        assert tag.tag_type == TagType.AUDIO or video.is_key_frame(tag.data)
    assert abs(index.duration - max(tag.timestamp for tag in file.tags(raw))) <= 200


@given(mutations(flv.files()) | st.binary(max_size=40))
def test_any_file_has_an_index_or_is_none(raw):
    """Own design: no more places than tags, all within the file."""
    try:
        index = load_index(file.MemoryFile(raw))
    except RemoteError:
        return
    assert all(0 < at < len(raw) for at in index.positions) and index.end <= len(raw)


def changing(count=20):
    """A film of other pictures from 3 s on, and of other sound from 5 s on."""
    new = {3000: Tag(9, 3000, AVC + b"2"), 5000: Tag(8, 5000, AAC + b"2")}
    return [each for tag in film(count) for each in _behind(tag, new)]


def _behind(tag, new):
    return [new.pop(tag.timestamp), tag] if tag.timestamp in new else [tag]


def heads(index):
    """The headers in force at each key frame, by the last octet of sound and pictures."""
    return [tuple(tag.data[-1:] for tag in index.head_at(place) if tag.tag_type != TagType.SCRIPT)
            for place in index.positions]  # fmt: skip


EXPECTED = [(b"\x10", b"C")] * 6 + [(b"\x10", b"2")] * 4 + [(b"2", b"2")] * 10


def test_the_headers_in_force_are_those_before_a_place():
    """Covers FLV 10.1 §E.4.3.1 and §E.4.2.1: of several tracks each has its own."""
    index = scan(file.MemoryFile(file.write_flv(changing())))
    assert heads(index) == EXPECTED
    assert [tag.data for tag in index.head] == [AAC, AVC]
    both = [b"\x96\x00avc1" + bytes((track,)) + b"head" for track in (1, 2)]
    tags = [Tag(9, 0, AVC), *(Tag(9, 0, each) for each in both), Tag(9, 40, KEY), Tag(9, 80, KEY)]
    index = scan(file.MemoryFile(file.write_flv(tags)))
    assert [tag.data for tag in index.head_at(index.positions[0])] == [AVC, *both]


def test_a_header_that_comes_late_is_in_force_from_there_on():
    """Own design: a call may have its first picture minutes after its first sound."""
    sounds = [Tag(8, at, SOUND) for at in range(0, 2000, 20)]
    tags = [*sounds, Tag(9, 2000, AVC), Tag(9, 2000, KEY), Tag(9, 2500, KEY)]
    index = scan(file.MemoryFile(file.write_flv(tags)))
    assert [index.head_at(place) for place in index.positions] == [(Tag(9, 2000, AVC),)] * 2


def told(tags, positions):
    """The same with key frames and positions of headers in front, these as given."""
    raw = file.write_flv(tags)
    found = scan(file.MemoryFile(raw))
    facts = Facts(set(found.kinds), {}, found.duration, 0, found.times, found.positions)
    facts.headers = positions or [at for at, _ in found.headers]
    shift = len(file.framed(Tag(18, 0, describe({}, facts))))
    facts.positions = [position + shift for position in found.positions]
    facts.headers = [position + shift for position in facts.headers]
    return file.write_flv([Tag(18, 0, describe({}, facts)), *tags])


def test_a_file_that_tells_its_headers_need_not_be_searched():
    """Own design: a few reads for each, and all if one proves false."""
    source = Counted(told(changing(), None))
    assert heads(load_index(source)) == EXPECTED and source.reads < 60
    for wrong in ([14], [13, 99999], [0]):
        source = Counted(told(changing(), wrong))
        assert heads(load_index(source)) == EXPECTED


def test_files_of_others_are_searched_in_front_of_key_frames():
    """Own design: a header is found there, also behind some sound and metadata, by few reads."""
    assert heads(load_index(file.MemoryFile(file.write_flv(described(changing()))))) == EXPECTED
    tags = [each for tag in film(1000) for each in _between(tag)]
    source = Counted(file.write_flv(described(tags)))
    index = load_index(source)
    found = [tuple(tag.data for tag in index.head_at(place)[1:]) for place in index.positions]
    assert found == [(AAC, AVC)] * 500 + [(AAC + b"2", AVC + b"2")] * 500
    count, source.reads = source.reads, 0
    scan(source)
    assert count < 5 * source.reads and len(index.headers) == 4


def _between(tag):
    """Begin anew at 250 s, as a recorder does that goes on with another publication."""
    if tag != Tag(9, 250_000, KEY):
        return [tag]
    new = [Tag(18, 250_000, b"\2\0\3onX"), Tag(9, 249_990, AVC + b"2"), Tag(8, 249_990, AAC + b"2")]
    return [*new, Tag(8, 249_992, SOUND), Tag(8, 249_998, SOUND), tag]


def test_only_some_tags_in_front_of_a_key_frame_are_looked_at():
    """Own design: with few pictures among much sound, not the whole file."""
    tags = [Tag(9, 0, AVC), Tag(8, 0, AAC)]
    for at in range(0, 50_000, 5000):
        sounds = [Tag(8, at + each, SOUND) for each in range(20, 5000, 20)]
        tags += [Tag(9, at, KEY), *sounds]
    source = Counted(file.write_flv(described(tags)))
    load_index(source)
    assert source.reads < 10 * 4 * BEFORE_KEY


def test_older_files_of_ours_are_searched():
    """Own design: they have room for key frames, and do not tell where headers are."""
    raw = told(changing(), None)
    raw = raw.replace(b"headerpositions", b"filler_________")
    assert heads(load_index(file.MemoryFile(raw))) == EXPECTED


def test_too_many_headers_are_not_told():
    """Own design: then the key frames are not told either, so that a player searches."""
    many = [tag for at in range(0, 300 * 40, 40) for tag in (Tag(9, at, AVC + b"%d" % at),
                                                             Tag(9, at, KEY))]  # fmt: skip
    raw = told(many, None)
    assert "keyframes" not in load_index(file.MemoryFile(raw)).members
    index = load_index(file.MemoryFile(raw))
    assert index.head_at(index.positions[250])[-1].data == AVC + b"10000"


def test_a_description_in_amf3_is_one():
    """Covers E-RTMP v2 §"Enabling AMF3 in FLV" [tag-type-15]: with integers among its numbers."""
    every_second = [place for place in scan(file.MemoryFile(file.write_flv(film(200)))).positions][
        ::2
    ]

    def described_by(shift):
        columns = {
            "times": list(range(100)),
            "filepositions": [float(place + shift) for place in every_second],
        }
        return Tag(15, 0, b"\0" + amf0.encode("onMetaData", {"keyframes": columns}, avmplus=True))

    first = described_by(len(file.framed(described_by(0))))
    source = Counted(file.write_flv([first, *film(200)]))
    index = load_index(source)
    assert source.reads < 40 + 2 * 100 and index.times.tolist() == list(range(0, 100_000, 1000))
    assert index.head[0] == Tag(18, 0, first.data[1:]) and "keyframes" in index.members
    assert scan(source).duration == index.duration == 99_540
