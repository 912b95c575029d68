"""Recorded files are found by name, and nothing else is."""

import os

import pytest
from support.sockets import until

from rtmplite.flv import file
from rtmplite.net.clock import now
from rtmplite.net.server.files import Alarms, Files
from rtmplite.net.workers import Workers

RAW = file.write_flv([file.Tag(9, 0, b"\x12key"), file.Tag(9, 40, b"\x22inter")])


@pytest.fixture
def shelf(tmp_path):
    """A folder of files, and how to open one."""
    root = tmp_path / "root"
    (root / "live").mkdir(parents=True)
    (root / "demo.flv").write_bytes(RAW)
    (root / "live" / "a%20b%2Fc.flv").write_bytes(RAW)
    (tmp_path / "secret.flv").write_bytes(RAW)
    (root / "link.flv").symlink_to(tmp_path / "secret.flv")
    (root / "inner.flv").symlink_to(root / "demo.flv")
    (root / "text.flv").write_text("no film")
    (root / "folder.flv").mkdir()
    os.mkfifo(root / "pipe.flv")
    workers = Workers()
    library, found = Files(root, workers), []

    def open_(name):
        found.clear()
        library.open(name, lambda recording, now: found.append(recording))
        assert workers.wait(5.0)
        return found[0]

    open_.workers = workers
    return open_


@pytest.mark.parametrize("name", ["demo", "demo.flv", "flv:demo", "live/a b/c", "inner"])
def test_what_is_there_is_found(shelf, name):
    """With or without the ending, and as the recorder names it."""
    recording = shelf(name)
    assert recording.index.duration == 40
    read = []
    recording.read(13, 15, lambda data, now: read.append(data))
    shelf.workers.wait(5.0)  # who asks twice at once may be answered in any order
    recording.read(len(RAW), 5, lambda data, now: read.append(data))
    shelf.workers.wait(5.0)
    assert read == [RAW[13:28], b""]
    recording.close()


@pytest.mark.parametrize(
    "name",
    ["other", "", "..", "../secret", "live/../../secret", "/etc/passwd", "link", "text", "folder",
     "pipe", "a\0b", "./demo", "x" * 5000, "\ud800"],
)  # fmt: skip
def test_what_is_not_ours_is_not_found(shelf, name):
    """No way out of the folder, no pipes, no other files."""
    assert shelf(name) is None


def test_closing_waits_for_the_reader(shelf):
    """Or a thread might read another file of the same number; nobody is told any more."""
    recording, read = shelf("demo"), []
    recording.read(0, 5, lambda data, now: read.append(data))
    recording.close()
    assert recording._source.fd >= 0
    shelf.workers.wait(5.0)
    assert read == [] and recording._source.fd < 0
    recording.close()


class Sleeper:
    """Stands for a playback."""

    def __init__(self, deadline):
        self.deadline, self.ticks, self.stream = deadline, 0, self
        self.connection, self.path, self.reason = self, "demo", ""

    def tick(self, now):
        self.ticks += 1
        self.deadline = None if self.ticks == 3 else now + 0.01
        assert self.path == "demo"

    def abort(self, reason, now):
        self.reason = reason


def test_playbacks_are_woken():
    """At every deadline; one that fails is closed."""
    alarms, sleeper, broken = Alarms(), Sleeper(now() + 0.01), Sleeper(now())
    broken.path = "broken"
    alarms(sleeper)
    alarms(broken)
    sleeper.deadline = now()
    alarms(sleeper)
    assert until(lambda: sleeper.ticks == 3 and broken.reason == "internal error")


@pytest.fixture
def calls(tmp_path):
    """A folder with recorded calls, and ways into it; gives what is found, and what was hidden."""
    root = tmp_path / "root"
    for folder in ("call", "live", "callers", "live/sip", "open", "Sip."):
        (root / folder).mkdir(parents=True)
        (root / folder / "bob.flv").write_bytes(RAW)
    (root / "linked").symlink_to(root / "call")
    (root / "straight.flv").symlink_to(root / "call" / "bob.flv")
    (root / "CALL").symlink_to("call")  # as if the disk ignored case
    (root / "sip").symlink_to("open")  # where somebody had the recorder write
    workers = Workers()

    def open_(name, folder=root, hidden=("call", "sip")):
        found, refused = [], []
        library = Files(folder, workers, hidden=hidden, on_hidden=refused.append)
        library.open(name, lambda recording, now: found.append(recording))
        assert workers.wait(5.0)
        return found[0] is not None, refused

    open_.root = root
    return open_


@pytest.mark.parametrize(
    "name",
    ["call/bob", "flv:call/bob.flv", "linked/bob", "straight", "CALL/bob", "live/sip/bob",
     "sip/bob", "open/bob", "Sip./bob"],
)  # fmt: skip
def test_what_is_hidden_is_not_found(calls, name):
    """However it is spelled, wherever the folder is, whatever links lead there."""
    assert calls(name) == (False, [name])
    assert calls(name, hidden=()) == (True, [])


@pytest.mark.parametrize("name", ["live/bob", "callers/bob"])
def test_what_is_beside_is_found(calls, name):
    assert calls(name) == (True, [])


def test_the_folder_itself_may_be_hidden(calls):
    """Played from as a whole, by its name or by its path."""
    assert calls("bob", calls.root / "call") == (False, ["bob"])
    assert calls("bob", calls.root / "linked") == (False, ["bob"])
    assert calls("bob", calls.root / "live") == (True, [])
    assert calls("bob", calls.root / "live", (str(calls.root / "live"),)) == (False, ["bob"])


def test_nothing_hidden_is_told_of_what_is_not_there(calls):
    """A name in no folder is simply no name."""
    assert calls("nothing/bob") == (False, [])
    assert calls("call/../call/bob") == (False, [])
