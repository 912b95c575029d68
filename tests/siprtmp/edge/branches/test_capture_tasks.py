"""Captures of single calls: what is in them, and when they end."""

import re
from types import SimpleNamespace

import pytest
from support.gateway.gateway_world import Desk, GatewayWorld

from p2psip.errors import RemoteError
from siprtmp.edge.branches import capture_tasks
from siprtmp.edge.branches.capture_tasks import LINGER, CaptureTasks, srtp_keys
from siprtmp.edge.branches.stream_tasks import NamedStreams
from siprtmp.edge.overview import call_row
from siprtmp.operation.arguments import ConfigError
from siprtmp.web.branches.call_branch import CallBranch
from siprtmp.web.branches.call_stories import CallStories
from siprtmp.web.branches.roles import Roles


class File:
    """A capture that keeps what it is given."""

    def __init__(self, path):
        self.path, self.keys_path = path, path.with_name(f"{path.name}.keys")
        self.said, self.lines, self.size, self.is_over = [], [], 24, False

    def message(self, data, flow, at, *, is_sent):
        self.said.append((data.split()[0], is_sent))

    def watched(self, source, target, data):
        pass

    def secret(self, line):
        self.lines.append(line)

    def close(self):
        self.is_over = True


class Rig:
    """Two calls, and the captures of them."""

    def __init__(self, folder):
        self.world = world = GatewayWorld()
        core, stories = world.gateway.core, CallStories(0.0)
        roles = Roles([], is_local=True)
        self.calls = CallBranch(roles, None, call_row, lambda: world.now, lambda: None)
        self.calls.stories = stories
        self.files, self.watched, self.told = [], [], []
        self.tasks = CaptureTasks(
            NamedStreams(world.registry, self.calls),
            stories,
            folder,
            self.open,
            lambda session, watch: self.watched.append((session, watch)),
            lambda: world.now,
        )
        self.tasks.on_change = lambda task, is_over: self.told.append((task.name, is_over))
        self.calls.followers.append(self.tasks.follow)
        core.context.on_event = self.calls.on_event

        def message(data, flow, is_sent):
            stories.message(data, flow, world.now, is_sent=is_sent)
            self.tasks.message(data, flow, world.now, is_sent=is_sent)

        core.stack.watch = message
        self.desks = []
        for name in ("one", "two"):
            world.tool().publish(name)
            self.desks.append(Desk(world.link, f"10.0.0.{20 + len(self.desks)}"))
            self.desks[-1].ring(name, world.now)
            world.wait()
        self.names = self.calls.children(())

    def open(self, path):
        if path.parent.name == "full":
            raise ConfigError("--capture full: No space left on device")
        self.files.append(File(path))
        return self.files[-1]


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


def test_a_capture_has_one_call_from_its_first_message_to_its_last(rig, tmp_path):
    first, _ = rig.names
    task = rig.tasks.begin({"call": first})
    [file] = rig.files
    assert file.path.parent == tmp_path
    assert re.fullmatch(r"[\w%.-]{1,40}-\d{8}T\d{6}Z\.pcap", file.path.name)
    assert rig.tasks.row(task) == {
        "call": first,
        "file": file.path.name,
        "keys": f"{file.path.name}.keys",
        "octets": 24,
    }
    assert rig.watched == [(task.call.media, file.watched)]
    for desk in rig.desks:
        desk.calls[0].bye(rig.world.now)
    rig.world.wait()
    rig.tasks.tick(rig.world.now)
    assert [*rig.tasks.running()] == [task]
    rig.tasks.tick(rig.world.now + LINGER)
    assert [*rig.tasks.running()] == [] and file.is_over
    assert rig.told == [(first, False), (first, True)] and rig.watched[-1][1] is None
    methods = [what for what, _ in file.said]
    assert methods[0] == b"INVITE" and methods[-2:] == [b"BYE", b"SIP/2.0"]
    assert methods.count(b"INVITE") == 1


def test_keys_that_are_agreed_on_later_are_written_once(rig, monkeypatch):
    """Of RFC 3264 §8: after a hold, or for a call that was captured while it rang."""
    keys = []
    monkeypatch.setattr(capture_tasks, "srtp_keys", lambda session: keys)
    rig.tasks.begin({"call": rig.names[0]})
    keys.append("first")
    rig.tasks.tick(rig.world.now)
    rig.tasks.tick(rig.world.now)
    keys.append("second")
    rig.tasks.stop()
    assert rig.files[0].lines == [b"first", b"second"]


def test_a_full_file_ends_the_capture_and_not_the_call(rig):
    task = rig.tasks.begin({"call": rig.names[0]})
    rig.files[0].is_over = True
    rig.tasks.tick(rig.world.now)
    assert [*rig.tasks.running()] == [] and rig.calls.find(task.name) is task.call
    rig.tasks.begin({"call": rig.names[0]})
    rig.tasks.stop()
    assert rig.files[1].is_over and len(rig.world.gateway.context.calls) == 2


def test_what_cannot_be_captured_is_refused_in_words(rig, monkeypatch, tmp_path):
    first, second = rig.names
    rig.tasks.begin({"call": first})
    monkeypatch.setattr(capture_tasks, "MAX_CAPTURES", 1)
    for said, status in (({}, 404), ({"call": "x"}, 404), ({"call": first}, 409)):
        with pytest.raises(RemoteError) as refused:
            rig.tasks.begin(said)
        assert refused.value.status == status
    with pytest.raises(RemoteError, match="Too many"):
        rig.tasks.begin({"call": second})
    full, none = Rig(tmp_path / "full"), Rig(None)
    with pytest.raises(RemoteError, match="No space") as refused:
        full.tasks.begin({"call": full.names[0]})
    assert refused.value.status == 507 and not [*full.tasks.running()] and not full.watched
    with pytest.raises(RemoteError, match="--capture-calls") as refused:
        none.tasks.begin({"call": none.names[0]})
    assert refused.value.status == 409


def test_a_name_leads_nowhere_and_no_file_is_written_twice(rig, tmp_path):
    path = rig.tasks._path(tmp_path, "../../etc/passwd")
    assert path.parent == tmp_path
    path.touch()
    assert rig.tasks._path(tmp_path, "../../etc/passwd") != path


def test_a_plain_call_has_no_keys(rig):
    [call, _] = rig.world.gateway.context.calls
    assert srtp_keys(call.media) == []
    assert srtp_keys(SimpleNamespace(terms=SimpleNamespace(plan=None), envelope=None)) == []
