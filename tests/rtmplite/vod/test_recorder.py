"""A recording is a whole file at every moment, and tells all about itself in the end."""

from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.corpus_lines import readme_lines

from rtmplite.amf import amf0
from rtmplite.flv import file, metadata
from rtmplite.flv.index import load_index, scan
from rtmplite.flv.tag import Tag, TagType
from rtmplite.strategies import flv
from rtmplite.vod.recorder import LAST, MAX_NAME, ROOM, Recorder, can_continue, file_name

LITTLE = 8 * 1024  # bytes of room, so that filler is no more than what is said
KEY, SOUND = b"\x17\x01\0\0\0key", b"\xb2sound"


@contextmanager
def little_room():
    """Recordings begin with a quarter of the room: 3,000 numbers less to read at each look."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtmplite.vod.recorder.ROOM", LITTLE)
        yield


def finished(recorder, raw):
    """The file as it is in the end."""
    for at, data in recorder.patches():
        raw = raw[:at] + data + raw[at + len(data) :]
    return raw


def recorded(messages, before=b""):
    """A file of messages, or one that continues another."""
    index = load_index(file.MemoryFile(before)) if before else None
    recorder = Recorder(index)
    return finished(recorder, before + b"".join(recorder.write(*each) for each in messages))


@pytest.mark.parametrize("line", readme_lines("FLV"), ids=lambda line: line[0])
def test_real_streams(corpus, line):
    """Covers FLV 10.1 §E.3 and FLV 10.1 §E.5: the media as published, the description true."""
    tags = list(file.tags((corpus / "flv" / line[0]).read_bytes()))
    messages = [(tag.tag_type, tag.timestamp & 0xFFFFFFFF, tag.data) for tag in tags]
    raw = recorded(messages)
    header, back = file.read_flv(raw)
    zero = next(tag.timestamp for tag in tags if tag.tag_type != 18)
    media = [(tag.tag_type, max(tag.timestamp - zero, 0), tag.data) for tag in tags[1:]]
    assert [(tag.tag_type, tag.timestamp, tag.data) for tag in back[1:]] == media
    said, published = metadata.read(back[0].data), metadata.read(tags[0].data)
    looked = scan(file.MemoryFile(raw))
    assert (said["duration"], said["filesize"]) == (looked.duration / 1000, len(raw))
    assert (header.has_audio, header.has_video) == (said["hasAudio"], said["hasVideo"])
    assert said.get("width") == published.get("width")
    index = load_index(file.MemoryFile(raw))
    assert set(index.times) <= set(looked.times) and len(index.times) > 0


@given(st.lists(flv.tags(), min_size=1, max_size=8))
@little_room()
def test_it_is_whole_after_every_message(tags):
    """Covers FLV 10.1 §E.3: for who dies before the end."""
    recorder, raw = Recorder(), b""
    for kept, tag in enumerate(tags, 1):
        raw += recorder.write(tag.tag_type, tag.timestamp & 0xFFFFFFFF, tag.data)
        assert len(file.read_flv(raw)[1]) in (kept, kept + 1)
    done = finished(recorder, raw)
    assert len(done) == len(raw) and file.read_flv(done)[1][1:] == file.read_flv(raw)[1][1:]


@given(st.lists(flv.tags(), min_size=1, max_size=8))
@little_room()
def test_its_length_is_true_after_every_message(tags):
    """Own design: for who dies before the end; what the publisher says of it counts for nothing."""
    recorder, raw = Recorder(), b""
    said = {"duration": 99.0, "a": "\0\x08duration\0" + "x" * 8, "filesize": 5.0}
    for kind, time, data in [(18, 0, metadata.build(extra=said))] + [
        (tag.tag_type, tag.timestamp & 0xFFFFFFFF, tag.data) for tag in tags
    ]:
        raw += recorder.write(kind, time, data)
        for at, patch in recorder.growth():
            assert len(patch) == 8
            raw = raw[:at] + patch + raw[at + 8 :]
        told = metadata.read(next(file.tags(raw)).data)
        assert told["duration"] == scan(file.MemoryFile(raw)).duration / 1000
        assert told["filesize"] == len(raw) and told["a"] == said["a"]


def test_what_another_program_began_is_not_touched_while_it_grows():
    """Own design: nobody knows there where length and size stand."""
    begun = file.write_flv([Tag(18, 0, metadata.build(extra={"x": 1.0})), Tag(9, 0, KEY)])
    recorder = Recorder(load_index(file.MemoryFile(begun)))
    recorder.write(9, 40, KEY)
    assert recorder.growth() == [] == Recorder().growth()


def test_the_description_is_script_data_that_all_can_read():
    """Covers E-RTMP v2 §"Enhancing onMetaData" [in-script-data] [never-encrypted].

    It comes first, in a file that may have both media until more is known.
    """
    header, (first, *_) = file.read_flv(Recorder().write(9, 0, KEY))
    assert header.has_audio and header.has_video and first.timestamp == 0
    assert first.tag_type == TagType.SCRIPT and not first.filtered
    assert metadata.read(first.data) is not None


def test_nothing_makes_no_file():
    """Own design: not even a header."""
    assert recorded([]) == b""


def test_times_begin_at_nought_and_survive_the_wrap():
    """Covers RTMP 1.0 §4 [serial-numbers]: past 32 bits, and a little back.

    Covers FLV 10.1 §E.4.1 [begins-at-0].
    """
    start = 0xFFFFFFFF - 100
    times = [start, start + 90, 20, 10, 5000]
    raw = recorded([(8, time, SOUND) for time in times])
    assert [tag.timestamp for tag in file.tags(raw)][1:] == [0, 90, 121, 111, 5101]
    recorder = Recorder()
    recorder.write(8, 0, SOUND)
    assert not recorder.is_full
    for hour in range(1, 597):
        recorder.write(8, hour * 3_600_000 & 0xFFFFFFFF, SOUND)
    assert not recorder.is_full
    recorder.write(8, LAST - 59_000, SOUND)
    assert recorder.is_full
    late = next(file.tags(file.start(True, True) + recorder.write(8, 2**31 + 5, SOUND)))
    assert late.timestamp == LAST


def test_data_has_the_time_of_the_media_around_it():
    """Own design: publishers often give it none."""
    cue = amf0.encode("onCuePoint", {})
    raw = recorded([(8, 700, SOUND), (8, 900, SOUND), (18, 0, cue)])
    assert [(tag.tag_type, tag.timestamp) for tag in file.tags(raw)][1:] == [
        *((8, 0), (8, 200), (18, 200))
    ]


def test_a_later_description_is_kept_where_it_came():
    """Own design: only the first is replaced by ours, and only if it is of a sane size."""
    first = metadata.build(width=320.0)
    second, huge = metadata.build(width=640.0), metadata.build(extra={"x": "y" * 5000})
    tags = list(file.tags(recorded([(18, 0, first), (8, 0, SOUND), (18, 0, second)])))
    assert metadata.read(tags[0].data)["width"] == 320.0 and tags[2].data == second
    tags = list(file.tags(recorded([(18, 0, huge), (8, 0, SOUND)])))
    assert "x" not in metadata.read(tags[0].data) and tags[1].data == huge
    broken = amf0.encode("onMetaData") + b"\x08"
    assert [tag.data for tag in file.tags(recorded([(18, 0, broken)]))][1:] == [broken]


def test_a_file_can_be_continued():
    """Covers RTMP 1.0 §7.2.2.6, type append: after the last whole tag, later than all before."""
    one = recorded([(18, 0, metadata.build(width=320.0)), (9, 500, KEY), (9, 1500, KEY)])
    index = load_index(file.MemoryFile(one))
    assert can_continue(index)
    two = recorded([(9, 70, KEY), (8, 100, SOUND)], one)
    tags = list(file.tags(two))
    assert [tag.timestamp for tag in tags] == [0, 0, 1000, 1001, 1031]
    said = metadata.read(tags[0].data)
    assert said["width"] == 320.0 and said["duration"] == 1.031 and said["hasAudio"]
    assert load_index(file.MemoryFile(two)).times.tolist() == [0, 1000, 1001]
    assert file.read_flv(two)[0].has_audio and not file.read_flv(one)[0].has_audio


def test_files_of_others_are_not_continued():
    """Own design: there is no room in them."""
    for tags in ([], [Tag(9, 0, KEY)], [Tag(18, 0, metadata.build(width=1.0)), Tag(9, 0, KEY)]):
        assert not can_continue(scan(file.MemoryFile(file.write_flv(tags))))


def test_a_long_recording_keeps_some_key_frames():
    """Own design: the room at the start is enough for any length."""
    raw = recorded([(9, at * 1000, KEY) for at in range(8000)])
    index = load_index(file.MemoryFile(raw))
    assert 800 < len(index.times) < 2000 and index.duration == 7_999_000
    assert len(next(file.tags(raw)).data) == ROOM


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..", ".", "", "a\0b", "a\\b", "C:x", "-rf", ".x"]
)
def test_no_name_leads_anywhere(name):
    """Own design: a name is a name, no path."""
    safe = file_name(name)
    assert safe and not safe.startswith(".") and not {"/", "\\", "\0", ":"} & set(safe)


@given(st.text(), st.text())
def test_different_names_are_different_files(one, two):
    """Own design: up to a length."""
    for name in (one, two):
        assert len(file_name(name)) <= MAX_NAME and file_name(name).isascii()
    if max(len(one), len(two)) * 12 <= MAX_NAME:
        assert (file_name(one) == file_name(two)) == (one == two)
    assert file_name("cam-1_x.y") == "cam-1_x.y" and TagType.SCRIPT == 18


def test_a_recording_tells_where_its_headers_are():
    """Own design: also where it is continued, and those of pictures that come late."""
    old, new = b"\x17\0\0\0\0old!", b"\x17\0\0\0\0new!"
    sounds = [(8, at, SOUND) for at in range(0, 2000, 20)]
    raw = recorded([*sounds, (9, 2000, old), (9, 2000, KEY), (9, 3000, KEY)])
    raw = recorded([(9, 0, old), (9, 0, KEY), (9, 900, new), (9, 900, KEY), (9, 1800, KEY)], raw)
    for index in (load_index(file.MemoryFile(raw)), scan(file.MemoryFile(raw))):
        found = [index.head_at(place)[-1].data for place in index.positions]
        assert found == [old, old, old, new, new]
    assert len(metadata.read(next(file.tags(raw)).data)["headerpositions"]) == 2
