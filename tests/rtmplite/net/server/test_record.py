"""Recordings on a disk: never overwritten, never in the way, whole whatever happens."""

import logging
import os
import stat
import threading

import gevent
import pytest
from support.sockets import until

from rtmplite.errors import LocalError
from rtmplite.flv import file, metadata
from rtmplite.live.streams import Registry
from rtmplite.net.server import record
from rtmplite.net.server.record import Recordings
from rtmplite.net.workers import Workers

KEY, SOUND = b"\x17\x01\0\0\0key", b"\xb2sound"


@pytest.fixture
def studio(tmp_path):
    """A registry, and what records it."""
    registry = Registry()
    recordings = Recordings(tmp_path, registry)
    yield registry, recordings
    recordings.stop()


def take(studio, name="demo", kind="live", count=3):
    """Publish a little, and wait for the file to be closed."""
    registry, recordings = studio
    live = registry.open("live", name)
    live.begin(0.0, kind)
    for at in range(count):
        live.write(9, at * 40, KEY, 0.0)
    live.end(0.0)
    assert recordings.workers.wait(20.0)
    assert recordings.active == 0


def times(path):
    return [tag.timestamp for tag in file.tags(path.read_bytes())][1:]


def so_far(path):
    """The times in a file that is being written."""
    return [tag.timestamp for tag in file.FlvReader().feed(path.read_bytes())][1:]


def told(path):
    """Where a file ends, where it says that it ends (ms), and whether its size is as it says."""
    raw = path.read_bytes()
    said = metadata.read(next(file.tags(raw)).data)
    return max(times(path)), said["duration"] * 1000, said["filesize"] == len(raw)


def test_what_is_published_is_stored(studio, tmp_path):
    """With a true description at the end."""
    take(studio)
    path = tmp_path / "live" / "demo.flv"
    assert times(path) == [0, 40, 80]
    said = metadata.read(next(file.tags(path.read_bytes())).data)
    assert said["duration"] == 0.08 and said["filesize"] == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) & 0o133 == 0


def test_the_log_has_its_beginning_and_its_end(studio, tmp_path, caplog):
    """With what came of it."""
    with caplog.at_level(logging.INFO):
        take(studio)
    path = tmp_path / "live" / "demo.flv"
    assert [record.getMessage() for record in caplog.records] == [
        f"recording {path}",
        f"recorded {path}, 0.1 s, {path.stat().st_size} bytes",
    ]


def test_it_is_there_while_it_lasts(studio, tmp_path):
    """Within a moment; that is what a killed server leaves."""
    registry, _ = studio
    live = registry.open("live", "demo")
    live.begin(0.0)
    for at in range(5):
        live.write(9, at * 40, KEY, 0.0)
    path = tmp_path / "live" / "demo.flv"
    assert until(lambda: path.exists() and so_far(path) == [0, 40, 80, 120, 160])
    live.end(0.0)


def test_its_length_is_told_while_it_grows(studio, tmp_path, monkeypatch):
    """Own design: with eight bytes in one place each, so that it is whole at every moment."""
    monkeypatch.setattr(record, "RENEW", 0.0)
    take(studio, kind="append")
    registry, _ = studio
    live = registry.open("live", "demo")
    live.begin(0.0, "append")
    path = tmp_path / "live" / "demo.flv"
    for at in range(1, 5):
        live.write(9, at * 40, KEY, 0.0)
        assert until(lambda at=at: told(path) == (41 + at * 40, 41 + at * 40, True))
    live.end(0.0)


def test_nothing_is_overwritten(studio, tmp_path):
    """A time, then a number, after the name."""
    for _ in range(4):
        take(studio)
    names = sorted(path.name for path in (tmp_path / "live").iterdir())
    assert len(names) == 4 and "demo.flv" in names
    assert all(times(tmp_path / "live" / name) == [0, 40, 80] for name in names)


HEADER, FRAME = b"\x17\0\0\0\0avcC", b"\x27\x01\0\0\0inter"


@pytest.fixture
def asked(tmp_path):
    """A registry, and what records those of its streams for which somebody asks."""
    registry = Registry()
    recordings = Recordings(tmp_path, registry, records_all=False)
    yield registry, recordings
    recordings.stop()


def test_what_nobody_asks_for_is_not_stored(asked, tmp_path):
    take(asked)
    assert not [*tmp_path.iterdir()]


def test_a_recording_that_is_asked_for_begins_with_the_last_key_frame(asked, tmp_path):
    """Covers FLV 10.1 §E.4.3.1: with the header, until it is stopped; the stream goes on."""
    registry, recordings = asked
    live = registry.open("live", "demo")
    for at, payload in ((0, HEADER), (0, KEY), (40, FRAME), (80, KEY), (120, FRAME)):
        live.write(9, at, payload, 0.0)
    heard = []
    recordings.on_change = lambda each: heard.append((each.is_over, each.path))
    recording = recordings.record(live, 0.0)
    with pytest.raises(LocalError, match="live/demo is recorded already"):
        recordings.record(live, 0.0)
    live.write(9, 160, FRAME, 0.0)
    recording.stop(0.0)
    assert not live.recorded and recordings.running == []
    live.write(9, 200, FRAME, 0.0)
    live.end(0.0)
    assert recordings.workers.wait(20.0)
    path = tmp_path / "live" / "demo.flv"
    tags = [*file.tags(path.read_bytes())][1:]
    assert [(each.timestamp, each.data) for each in tags] == [
        *((0, HEADER), (0, KEY)),
        *((40, FRAME), (80, FRAME)),
    ]
    assert heard[0] == (False, None) and (True, None) in heard and heard[-1][1] == path


def test_where_no_frames_are_kept_it_waits_for_a_key_frame(asked, tmp_path):
    registry, recordings = asked
    registry.keeps_groups = False
    live = registry.open("live", "demo")
    live.write(9, 0, HEADER, 0.0)
    live.write(9, 0, KEY, 0.0)
    recording = recordings.record(live, 0.0)
    for at, payload in ((40, FRAME), (80, KEY), (120, FRAME)):
        live.write(9, at, payload, 0.0)
    live.end(0.0)
    assert recording.is_over and recordings.workers.wait(20.0)
    tags = [*file.tags((tmp_path / "live" / "demo.flv").read_bytes())][1:]
    assert [each.data for each in tags] == [HEADER, KEY, FRAME]


def test_append_continues_a_file(studio, tmp_path):
    """Covers RTMP 1.0 §7.2.2.6; only one of ours that nobody writes."""
    take(studio, kind="append")
    path = tmp_path / "live" / "demo.flv"
    with path.open("ab") as torn:
        torn.write(b"\x09\x00\x00")
    take(studio, kind="append", count=2)
    assert times(path) == [0, 40, 80, 81, 121]
    other = tmp_path / "live" / "other.flv"
    other.write_bytes(file.write_flv([file.Tag(9, 0, KEY)]))
    take(studio, name="other", kind="append")
    assert times(other) == [] and len(list(tmp_path.glob("live/other-*.flv"))) == 1
    os.mkfifo(tmp_path / "live" / "pipe.flv")
    take(studio, name="pipe", kind="append")
    assert len(list(tmp_path.glob("live/pipe-*.flv"))) == 1


def test_a_file_being_written_is_not_continued(studio, tmp_path):
    """By its lock, even where another process writes it."""
    registry, recordings = studio
    live = registry.open("live", "demo")
    live.begin(0.0)
    live.write(9, 0, KEY, 0.0)
    assert recordings.workers.wait(20.0)
    other = Recordings(tmp_path, rival := Registry())
    take((rival, other), kind="append")
    other.stop()
    live.end(0.0)
    recordings.workers.wait(20.0)
    assert times(tmp_path / "live" / "demo.flv") == [0]
    assert len(list(tmp_path.glob("live/demo-*.flv"))) == 1


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "a/b", "..", "x\0y", "é" * 300])
def test_no_name_leads_out_of_the_folder(studio, tmp_path, name):
    """Nor into another one."""
    take(studio, name=name)
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(found) == 1 and found[0].parent == tmp_path / "live"


def test_a_link_is_not_followed(studio, tmp_path):
    """Nor written through."""
    victim = tmp_path / "victim"
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "demo.flv").symlink_to(victim)
    take(studio, kind="append")
    assert not victim.exists()


def test_nothing_published_nothing_stored(studio, tmp_path):
    """No empty files."""
    take(studio, count=0)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_ends_the_recording_alone(studio, tmp_path, monkeypatch, caplog):
    """It is logged, once, and the stream goes on."""
    registry, recordings = studio
    (tmp_path / "live").write_text("no folder")
    with caplog.at_level(logging.ERROR):
        take(studio)
    assert caplog.text.count("is interrupted:") == 1
    (tmp_path / "live").unlink()
    live = registry.open("live", "full")
    live.begin(0.0)
    live.write(9, 0, KEY, 0.0)
    assert recordings.workers.wait(20.0)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "_all", full)
    for at in range(1, 5):
        live.write(9, at, KEY, 0.0)
        recordings._flush()
        assert recordings.workers.wait(20.0)
    assert until(lambda: recordings.active == 0)
    assert live.publishing and "No space" in caplog.text
    assert recordings.interrupted == 2
    closed = []
    monkeypatch.setattr(record.os, "close", closed.append)  # the number is somebody else's by now
    live.end(0.0)
    assert recordings.workers.wait(20.0)
    assert not closed and "Errno" not in caplog.text


def test_a_recording_goes_on_when_the_disk_has_room_again(studio, tmp_path, monkeypatch, caplog):
    """In the same file, with its headers and a key frame; until then the file is whole and true."""
    registry, recordings = studio
    monkeypatch.setattr(record, "RETRY", 0.0)
    path, header, inter = tmp_path / "live" / "demo.flv", b"\x17\x00\0\0\0avcC", b"\x27\x01\0\0\0"
    live = registry.open("live", "demo")
    live.begin(0.0)
    live.write(9, 0, header, 0.0)
    live.write(9, 0, KEY, 0.0)
    assert until(lambda: path.exists() and so_far(path) == [0, 0])
    whole, is_full = record._all, threading.Event()

    def write(write, data):
        if is_full.is_set():
            write(data[:12])  # as a disk does that becomes full
            raise OSError(28, "No space left on device")
        whole(write, data)

    monkeypatch.setattr(record, "_all", write)
    is_full.set()
    with caplog.at_level(logging.INFO):
        live.write(9, 40, inter, 0.0)
        assert until(lambda: recordings.active == 0 and recordings.workers.idle)
        assert told(path) == (0, 0, True)
        for at in (80, 120):  # it is tried again in vain, and leaves nothing else behind
            live.write(9, at, KEY, 0.0)
            assert until(lambda: recordings.active == 0 and recordings.workers.idle)
        is_full.clear()
        live.write(9, 160, inter, 0.0)
        live.write(9, 200, KEY, 0.0)
        live.write(9, 240, inter, 0.0)
        live.end(0.0)
        assert recordings.workers.wait(20.0)
    assert [tag.data for tag in file.tags(path.read_bytes())][1:] == [
        *(header, KEY), *(header, KEY, inter),
    ]  # fmt: skip
    assert told(path) == (41, 41, True) and recordings.interrupted == 1
    assert [name.name for name in path.parent.iterdir()] == [path.name]
    said = [each.getMessage() for each in caplog.records]
    assert sum("is interrupted: No space" in each for each in said) == 1
    assert said.count(f"recording {path} goes on") == 1


def test_a_disk_that_is_full_from_the_start_gets_a_file_later(studio, tmp_path, monkeypatch):
    """Not an empty one before."""
    registry, recordings = studio
    monkeypatch.setattr(record, "RETRY", 0.0)
    path, whole = tmp_path / "live" / "demo.flv", record._all

    def full(write, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "_all", full)
    live = registry.open("live", "demo")
    live.begin(0.0)
    live.write(9, 0, KEY, 0.0)
    assert until(lambda: recordings.active == 0 and recordings.workers.idle)
    assert not path.exists()
    monkeypatch.setattr(record, "_all", whole)
    live.write(9, 40, KEY, 0.0)
    live.end(0.0)
    assert recordings.workers.wait(20.0)
    assert times(path) == [0] and told(path) == (0, 0, True)


def test_a_disk_that_is_too_slow_costs_bounded_memory(studio, monkeypatch, caplog):
    """It stands still, the stream does not."""
    registry, recordings = studio
    go = threading.Event()
    monkeypatch.setattr(record, "_all", lambda write, data: go.wait(10))
    live = registry.open("live", "demo")
    live.begin(0.0)
    block = KEY + bytes(1_000_000)
    for at in range(40):
        live.write(9, at, block, 0.0)
        recordings._flush()
        gevent.sleep(0)
    assert until(lambda: "behind" in caplog.text) and live.publishing
    (tap,) = live._taps
    assert sum(map(len, tap._file._output)) == 0
    go.set()
    live.end(0.0)
    assert recordings.workers.wait(20.0)
    assert until(lambda: recordings.active == 0)


def test_a_file_that_is_full_is_followed_by_another(studio, tmp_path):
    """A tag's time has an end, after 24.8 days; headers come first in the next one."""
    registry, recordings = studio
    live = registry.open("live", "demo")
    live.begin(0.0)
    live.write(9, 0, b"\x17\x00\0\0\0avcC", 0.0)
    assert recordings.workers.wait(20.0)
    for hour in range(0, 600, 5):
        live.write(9, hour * 3_600_000 & 0xFFFFFFFF, KEY, 0.0)
    live.write(9, 2**31 - 59_000, KEY, 0.0)
    live.write(9, 2**31 - 58_000, KEY, 0.0)
    live.end(0.0)
    assert recordings.workers.wait(20.0)
    (later,) = tmp_path.glob("live/demo-*.flv")
    assert [tag.data for tag in file.tags(later.read_bytes())][1:] == [b"\x17\x00\0\0\0avcC", KEY]


def test_the_hub_does_not_wait_for_the_disk(studio, monkeypatch):
    """A write that never comes to an end lets the loop turn: it ends when the loop says so."""
    registry, recordings = studio
    writing, permitted, ends = threading.Event(), threading.Event(), []

    def slow(write, data):
        writing.set()
        ends.append(permitted.wait(10))

    monkeypatch.setattr(record, "_all", slow)
    live = registry.open("live", "demo")
    live.begin(0.0)
    live.write(9, 0, KEY, 0.0)
    while not writing.is_set():
        gevent.sleep(0.001)
    permitted.set()
    live.end(0.0)
    assert recordings.workers.wait(20.0)
    assert ends and all(ends)


def test_jobs_run_in_order_and_survive_a_bug(caplog):
    """More jobs than threads wait their turn."""
    workers, done = Workers(threads=1), []
    workers.run(lambda: 1 // 0, done.append)
    for number in range(20):
        workers.run(lambda number=number: number, done.append)
    workers.run(lambda: "x", lambda value: value + 1)
    assert workers.wait(5.0) and done == list(range(20))
    assert "ZeroDivisionError" in caplog.text and "TypeError" in caplog.text
