"""Persistent objects on disk: whole, late, and read again."""

import gevent
import pytest
from support.limits import patience

from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.rtmp.wire.shared_object import Change, Flags, SharedObject


def content(value, name="o"):
    return bytes(SharedObject(name, 1, Flags.PERSISTENT, (Change("x", value),)))


def load(files, key="app?o", seconds=20.0):
    """What there is."""
    found = []
    files.load(key, lambda data, now: found.append(data))
    with patience(seconds):
        while not found:
            gevent.sleep(0.002)
    return found[0]


@pytest.fixture
def files(tmp_path):
    made = SharedFiles(tmp_path / "so", delay=0.01)
    yield made
    made.stop()


def test_nothing_is_there_at_first(files):
    """And that is no error."""
    assert load(files) is None


def test_many_changes_are_one_write(files, tmp_path):
    """The newest content, under a name that leads nowhere else."""
    for number in range(100):
        files.save("../a?b/c", lambda number=number: content(float(number)))
    assert load(files, "../a?b/c") == content(99.0)  # not on the disk yet
    files.stop()
    (path,) = (each for each in (tmp_path / "so").rglob("*") if each.is_file())
    assert path.relative_to(tmp_path / "so").parts == ("%2E.%2Fa", "b%2Fc.so")
    assert path.read_bytes() == content(99.0) == load(files, "../a?b/c")


def test_a_change_during_a_write_is_written_next(files, tmp_path):
    """Never two writers of one file."""
    files.save("app?o", lambda: content(1.0))
    files._flush()
    assert load(files) == content(1.0)  # it is being written
    files.save("app?o", lambda: content(2.0))
    files._flush()
    files.stop()
    assert load(SharedFiles(tmp_path / "so")) == content(2.0)


def test_what_cannot_be_read_is_put_aside(files, tmp_path, caplog):
    """Somebody may be able to mend it."""
    folder = tmp_path / "so" / "app"
    folder.mkdir(parents=True)
    (folder / "o.so").write_bytes(b"rubbish")
    assert load(files) is None and "cannot be read" in caplog.text
    assert (folder / "o.broken").read_bytes() == b"rubbish"
    (folder / "p.so").mkdir()
    assert load(files, "app?p") is None


def test_a_disk_that_takes_nothing(tmp_path, caplog):
    """Is complained about, and waited for no longer than asked."""
    (tmp_path / "so").write_text("no folder")
    files = SharedFiles(tmp_path / "so", delay=0.01)
    files.save("app?o", lambda: content(1.0))
    files.stop()
    assert "cannot be written" in caplog.text


def test_long_names_stay_different(files):
    """Whatever a client calls them."""
    names = ["app?" + "x" * 500 + str(number) for number in range(2)]
    for name in names:
        files.save(name, lambda name=name: content(name))
    files.stop()
    assert [load(files, name) for name in names] == [content(name) for name in names]
