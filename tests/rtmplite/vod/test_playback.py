"""Files are played at the pace of the clock, from where and as long as the client wants."""

import pytest
from support.corpus_lines import readme_lines
from support.gateway import h264_world
from support.rtmp.vod_world import AAC, AVC, INTER, KEY, SOUND, VodWorld, as_played, described, film

from rtmplite.flv import file
from rtmplite.flv.tag import Tag
from rtmplite.rtmp.netstream import MAX_NAME
from rtmplite.vod.playback import BURST
from rtmplite.vod.playlist import MAX_ITEMS, MAX_NAMES


@pytest.mark.parametrize("line", readme_lines("FLV"), ids=lambda line: line[0])
def test_real_files_come_out_tag_for_tag(corpus, line):
    """Covers RTMP 1.0 §7.2.2.1."""
    raw = (corpus / "flv" / line[0]).read_bytes()
    tags = list(file.tags(raw))
    world = VodWorld(demo=raw)
    viewer = world.viewer("demo")
    last = max(tag.timestamp for tag in tags) / 1000
    world.wait(last - 0.2)
    assert len(viewer.tags) < len(tags) or len(tags) < 20
    world.wait(0.3)
    assert viewer.tags == as_played(tags)
    assert viewer.codes[-3:] == ["Play.Complete", "Play.Stop", "eof"]
    assert world.shelf.open_files == 0


def test_the_order_of_a_play_command():
    """Covers RTMP 1.0 §7.2.2.1: recorded, begin, reset, start, then media."""
    world = VodWorld(demo=film(2))
    viewer = world.viewer("demo")
    assert viewer.codes == ["Play.Reset", "Play.Start"]
    other = world.viewer("demo", 0.0, -1.0, False)
    assert other.codes == ["Play.Start"]
    assert viewer.tags[:2] == [(9, 0, AVC), (8, 0, AAC)]


def test_the_pace_is_that_of_the_clock():
    """Own design: a little ahead, never behind."""
    world = VodWorld(demo=film(10))
    viewer = world.viewer("demo")
    for _ in range(20):
        world.wait(0.5)
        assert world.now * 1000 - 500 <= viewer.pictures[-1] <= world.now * 1000 + 100


def test_so_far_ahead_as_the_client_wants():
    """Covers RTMP 1.0 §7.1.7: before and while playing."""
    world = VodWorld(demo=film(60))
    viewer = world.viewer("demo", buffer=3000)
    assert viewer.pictures[-1] == 3000
    viewer.peer.buffer(viewer.stream_id, 10_000)
    assert viewer.pictures[-1] == 10_000
    world.wait(1.0)
    assert viewer.pictures[-1] == 11_000
    viewer.peer.buffer(viewer.stream_id, 36_000_000)
    world.wait(0.0)
    assert viewer.codes[-1] == "eof" and viewer.tags == as_played(film(60))


def test_times_that_begin_late_are_not_waited_for():
    """Own design: the first tag is due at once, whatever its time."""
    tags = [Tag(8, 5_000_000 + at, SOUND) for at in range(0, 1000, 20)]
    world = VodWorld(demo=tags)
    viewer = world.viewer("demo")
    world.wait(1.0)
    assert viewer.tags == as_played(tags)


@pytest.mark.parametrize(("start", "first"), [(0.0, 0), (999.0, 0), (1000.0, 1000), (2700.0, 2000)])
def test_a_start_is_at_the_key_frame_before(start, first):
    """Covers RTMP 1.0 §7.2.2.1: headers first, all at times of the file."""
    world = VodWorld(demo=film(5))
    viewer = world.viewer("demo", start)
    assert viewer.tags[:3] in (
        [(9, first, AVC), (8, first, AAC), (9, first, KEY)],
        [(8, first, AAC), (9, first, AVC), (9, first, KEY)],
    )
    world.wait(5.0)
    assert viewer.tags[2:] == [t for t in as_played(film(5))[2:] if t[1] >= first]


def test_a_duration_ends_it():
    """Covers RTMP 1.0 §7.2.2.1: in time, or as one frame."""
    world = VodWorld(demo=film(9), sound=[Tag(8, at, SOUND) for at in range(0, 900, 20)])
    viewer = world.viewer("demo", 2000.0, 1500.0)
    frame, sound = world.viewer("demo", 3000.0, 0.0), world.viewer("sound", 0.0, 0.0)
    assert frame.pictures == [3000] and frame.codes[-1] == "eof" and len(sound.tags) == 1
    world.wait(9.0)
    assert viewer.pictures == [2000, 2500, 3000, 3500] and viewer.codes[-1] == "eof"


def test_what_is_not_there_is_not_found():
    """Covers RTMP 1.0 §7.2.2.1: neither is what must be live."""
    world = VodWorld(demo=film(1))
    assert world.viewer("other").codes == ["Play.StreamNotFound"]
    assert world.viewer("").codes == ["Play.StreamNotFound"]
    assert world.viewer("demo", -1.0).codes == ["Play.StreamNotFound"]
    assert world.shelf.open_files == 0
    viewer = world.viewer("other")
    viewer.send("play", "demo")
    world.wait(2.0)
    assert viewer.codes[-1] == "eof"


def test_a_playlist_goes_on_in_time():
    """Covers RTMP 1.0 §7.2.2.1: what cannot be found is left out."""
    world = VodWorld(one=film(2, b"1"), two=film(5, b"2"))
    viewer = world.viewer("one")
    viewer.send("play", "missing", 0.0, -1.0, False)
    viewer.send("play", "two", 3000.0, 1000.0, False)
    world.wait(5.0)
    assert viewer.pictures == [0, 500, 1000, 1500, 1500, 2000, 2500]
    assert (9, 2000, INTER + b"2") in viewer.tags
    assert viewer.codes[2:] == ["Play.Switch", "Play.Complete", "Play.Stop", "eof"]
    viewer.send("play", "one", 0.0, -1.0, False)
    world.wait(3.0)
    assert viewer.pictures[7:] == [2500, 3000, 3500, 4000]
    viewer.send("play", "gone", 0.0, -1.0, False)
    assert viewer.codes[-4:] == ["Play.StreamNotFound", "Play.Complete", "Play.Stop", "eof"]
    viewer.send("seek", 2100.0)
    world.wait(1.0)
    assert viewer.pictures[11] == 1500 and (9, 1500, KEY + b"2") in viewer.tags[-5:]


def test_a_reset_empties_the_playlist():
    """Covers RTMP 1.0 §7.2.2.1."""
    world = VodWorld(one=film(2, b"1"), two=film(2, b"2"))
    viewer = world.viewer("one")
    viewer.send("play", "one", 0.0, -1.0, False)
    viewer.send("play", "two")
    before = len(viewer.tags)
    world.wait(9.0)
    assert {tag[2][-1:] for tag in viewer.tags[before:]} == {b"2"}
    assert viewer.codes.count("eof") == 1 and world.shelf.open_files == 0


def test_a_playlist_has_an_end():
    """Own design: a limit, as everything has."""
    world = VodWorld(demo=film(1))
    world.shelf.slow = True
    viewer = world.viewer("demo")
    for _ in range(MAX_ITEMS):
        viewer.send("play", "demo", 0.0, -1.0, False)
    assert viewer.codes == ["Play.Failed"]


def test_the_names_of_a_playlist_have_an_end():
    """Own design: together they would be far more than the streams that one client may play."""
    world = VodWorld(demo=film(1))
    world.shelf.slow = True
    viewer = world.viewer("demo")
    name, count = "n" * MAX_NAME, MAX_NAMES // MAX_NAME
    for _ in range(count):
        viewer.send("play", name, 0.0, -1.0, False)
    assert viewer.codes == []
    viewer.send("play2", {"streamName": name, "transition": "append"})
    viewer.send("play2", {"streamName": name + "n", "transition": "swap"})
    assert viewer.codes == ["Play.Failed", "Play.Failed"]


def test_seeking():
    """Covers RTMP 1.0 §7.2.2.7: notify, headers, the key frame before; nothing after the end."""
    world = VodWorld(demo=film(20))
    viewer = world.viewer("demo")
    viewer.send("seek", 7700.0)
    assert viewer.codes[2:] == ["Seek.Notify", "Play.Start"]
    assert viewer.tags[-4:-1] == [(8, 7000, AAC), (9, 7000, AVC), (9, 7000, KEY)]
    world.wait(1.0)
    assert viewer.pictures[-1] == 8000
    for beyond in (19_500.1, 99_000.0):
        viewer.send("seek", beyond)
        assert viewer.codes[-1] == "Seek.InvalidTime"
    world.wait(1.0)
    assert viewer.pictures[-1] == 9000  # it goes on as if nothing had been
    viewer.send("seek", 19_500.0)
    world.wait(2.0)
    assert viewer.codes[-1] == "eof"
    viewer.send("seek", 0.0)
    assert viewer.pictures[-1] == 0
    world.wait(1.0)
    assert viewer.pictures[-2:] == [500, 1000]
    for nonsense in (-5.0, float("nan"), float("inf"), "x"):
        viewer.send("seek", nonsense)
        assert viewer.codes[-1] == "Seek.InvalidTime"
    fresh = world.client()
    stream_id = fresh.stream()
    fresh.send("seek", 5.0, stream_id=stream_id)
    assert fresh.codes() == ["NetStream.Seek.Failed"]


def changing():
    """A film of other pictures from 5 s on, whose header comes a little before its key frame."""
    tags = film(10)
    at = next(n for n, tag in enumerate(tags) if tag.tag_type == 9 and tag.timestamp == 4500)
    return [*tags[: at + 1], Tag(9, 4950, AVC + b"2"), *tags[at + 1 :]]


@pytest.mark.parametrize("tags", [changing(), described(changing())], ids=["plain", "indexed"])
def test_behind_a_new_header_it_is_in_force(tags):
    """Covers RTMP 1.0 §7.2.2.1 and §7.2.2.7: for a start, a seek, and back again."""
    world = VodWorld(demo=tags)
    started = world.viewer("demo", 7000.0)
    assert [tag for tag in started.tags if tag[0] != 18][:3] == [
        (8, 7000, AAC),
        (9, 7000, AVC + b"2"),
        (9, 7000, KEY),
    ]
    viewer = world.viewer("demo")
    for at, header in ((7700.0, AVC + b"2"), (2000.0, AVC), (5000.0, AVC + b"2")):
        viewer.send("seek", at)
        place = at // 1000 * 1000
        assert viewer.tags[-4:-1] == [(8, place, AAC), (9, place, header), (9, place, KEY)]
    viewer.send("seek", 4000.0)
    world.wait(1.5)
    assert (9, 5000, AVC + b"2") in viewer.tags[-4:]  # with its key frame


def test_files_are_mended_like_a_publisher():
    """Covers FLV 10.1 §E.4.3.2: sets among the pictures, slices in tags of their own."""
    picture = h264_world.tag_of(1, [*h264_world.SETS, h264_world.slice_of(5, 1)])
    low = h264_world.tag_of(1, [h264_world.slice_of(5, 2, first=8)])
    tags = [Tag(9, at, body) for at in (0, 1000) for body in (picture, low)]
    world = VodWorld(demo=tags)
    viewer = world.viewer("demo")
    world.wait(2.0)
    assert viewer.tags[0] == (9, 0, h264_world.HEADER)
    slices = [h264_world.slice_of(5, 1), h264_world.slice_of(5, 2, first=8)]
    assert viewer.tags[-1] == (9, 1000, h264_world.tag_of(1, [*h264_world.SETS, *slices]))
    assert viewer.codes[-1] == "eof"


def test_a_pause_costs_nothing_and_repeats_nothing():
    """Covers RTMP 1.0 §7.2.2.8."""
    world = VodWorld(demo=film(20))
    viewer = world.viewer("demo", buffer=2000)
    world.wait(3.0)
    assert viewer.pictures[-1] == 5000
    viewer.send("pause", True, 3000.0)
    viewer.send("pause", True, 3000.0)
    world.wait(60.0)
    assert viewer.pictures[-1] == 5000
    viewer.send("pause", False, 3000.0)
    assert viewer.pictures[-1] == 5000
    world.wait(1.0)
    assert viewer.pictures[-2:] == [5500, 6000]
    viewer.send("pause", True, 0.0)
    viewer.send("pause", False, 8200.0)  # a client that says it has more than we sent
    world.wait(5.0)
    assert viewer.pictures[12:15] == [6000, 8500, 9000]
    assert viewer.codes[2:] == ["Pause.Notify"] * 2 + [
        *("Unpause.Notify", "Pause.Notify", "Unpause.Notify")
    ]


def test_media_off_and_on():
    """Covers RTMP 1.0 §7.2.2.4 and RTMP 1.0 §7.2.2.5: pictures come back at a key frame."""
    world = VodWorld(demo=film(20))
    viewer = world.viewer("demo")
    viewer.send("receiveAudio", False)
    world.wait(2.0)
    assert [tag for tag in viewer.tags if tag[0] == 8][2:] == []
    viewer.send("receiveAudio", True)
    viewer.send("receiveVideo", False)
    world.wait(2.2)
    assert viewer.pictures[-1] == 2000 and viewer.tags[-1] == (8, 4020, SOUND)
    viewer.send("receiveVideo", True)
    world.wait(1.0)
    assert viewer.pictures[-1] == 5000


def test_who_does_not_read_is_not_sent_more():
    """Own design: what is read from the file is bounded by what the client takes."""
    big = [Tag(9, at * 40, KEY + bytes(50_000)) for at in range(100)]
    world = VodWorld(demo=big)
    viewer = world.viewer("demo", buffer=36_000_000)
    viewer.peer.deaf = True
    for _ in range(50):
        world.wait(0.1)
        assert sum(map(len, viewer.peer.server.transport.output)) <= 2 * BURST + 100_000
    viewer.peer.deaf, viewer.peer.server.transport.output_size = False, 0
    world.run()
    world.wait(1.0)
    assert viewer.tags == as_played(big)


def test_answers_that_come_late():
    """Own design: neither a file nor its bytes, once nobody wants them."""
    world = VodWorld(one=film(2, b"1"), two=film(2, b"2"))
    world.shelf.slow = True
    viewer = world.viewer("one")
    viewer.send("play", "two")
    world.shelf.answer()
    assert viewer.codes == ["Play.Reset", "Play.Start"] and world.shelf.open_files == 1
    viewer.send("seek", 1000.0)
    for _ in range(3):
        world.shelf.answer()
    assert viewer.pictures == [1000]
    viewer.send("closeStream")
    assert world.shelf.open_files == 0 and viewer.codes[-1] == "Play.Stop"
    viewer.send("play", "one")
    viewer.peer.server.abort("gone", world.now)
    world.shelf.answer()
    assert world.shelf.open_files == 0
    world.wait(5.0)


def test_a_file_that_breaks_off():
    """Own design: all whole tags, the last one even without the size after it."""
    raw = file.write_flv(film(2))
    world = VodWorld(cut=raw[:-4], noise=raw + b"\x55" * 40)
    for name in ("cut", "noise"):
        viewer = world.viewer(name)
        world.wait(3.0)
        assert viewer.tags == as_played(film(2)) and viewer.codes[-1] == "eof"


def test_a_disk_that_fails_ends_it():
    """Own design: as if it were the end."""
    world = VodWorld(demo=film(60, bytes(5000)))
    viewer = world.viewer("demo")
    source = next(iter(world.playbacks))._feeder.recording.source
    source._data = source._data[:140_000]
    world.wait(70.0)
    assert viewer.codes[-1] == "eof" and 10 < len(viewer.tags) < 100
