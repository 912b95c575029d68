"""Pushes that operators ask for: to listed servers, and nobody is told the keys."""

from types import SimpleNamespace

import pytest
from support.rtmp.relay_world import RelayWorld

from p2psip.errors import RemoteError
from siprtmp.edge.branches import push_tasks
from siprtmp.edge.branches.push_tasks import PORTS, PushTasks
from siprtmp.edge.branches.stream_tasks import NamedStreams
from siprtmp.operation.logs import Log
from siprtmp.web.resources.told_hosts import ToldHosts


class Pushing:
    """A server with a published stream, and what pushes it."""

    def __init__(self):
        self.world = world = RelayWorld()
        self.live = world.registry.open("live", "demo")
        self.live.begin(0.0)
        self.admits = []

        def admitted_dial(admits):
            self.admits.append(admits)
            return world.dial

        transports = SimpleNamespace(relays=world.relays, admitted_dial=admitted_dial)
        streams, hosts = NamedStreams(world.registry, None), ToldHosts(["far"], PORTS)
        self.tasks = PushTasks(streams, transports, hosts, Log("siprtmp"), lambda: world.now)
        self.told = []
        self.tasks.on_change = lambda task, is_over: self.told.append(
            (self.tasks.row(task)["state"], is_over)
        )

    def begin(self, url, stream="live/demo"):
        return self.tasks.begin({"stream": stream, "url": url})


@pytest.fixture
def pushing():
    return Pushing()


def test_a_push_is_seen_until_its_stream_ends(pushing, caplog):
    player = pushing.world.far.client()
    player.play("key")
    with caplog.at_level("INFO"):
        push = pushing.begin("rtmp://ann:pass@far/live/key?token=hush")
        pushing.world.run()
    row = {"stream": "live/demo", "server": "rtmp://far/live", "state": "running", "reason": ""}
    assert pushing.tasks.row(push) == row and [*pushing.tasks.running()] == [push]
    logged = str([each.values for each in caplog.records])
    assert "rtmp://far/live'" in logged
    assert not any(word in logged for word in ("key", "pass", "hush"))
    with pytest.raises(RemoteError, match="pushed there already"):
        pushing.begin("rtmp://ann:pass@far/live/key?token=hush")
    pushing.live.end(pushing.world.now)
    assert pushing.told == [("connecting", False), ("running", False), ("idle", True)]
    assert not [*pushing.tasks.running()] and pushing.admits[0]("far", "8.8.8.8", 1935)


def test_a_server_that_is_not_there_is_a_reason_and_the_push_is_ended(pushing):
    pushing.world.up = False
    push = pushing.begin("rtmps://far/live")
    assert pushing.tasks.row(push)["reason"] == "Connection refused"
    assert push.target.stream == "demo"
    pushing.tasks.end(push)
    assert not pushing.world.relays.links and pushing.told[-1] == ("idle", True)
    assert pushing.live.publishing


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("", 422),
        ("http://far/live", 422),
        ("rtmfp://far/live", 422),
        ("rtmpe://far/live", 422),
        ("rtmpt://far/live", 422),
        ("rtmp://far:99999/live", 422),
        ("rtmp://far:22/live", 403),
        ("rtmp://near/live", 403),
        ("rtmp://127.0.0.1/live", 403),
        ("rtmp://far@near/live", 403),
    ],
)
def test_no_other_server_and_nothing_else_is_taken(pushing, url, status):
    with pytest.raises(RemoteError) as refused:
        pushing.begin(url)
    assert refused.value.status == status and not pushing.world.dials


def test_there_are_so_many_pushes_and_of_what_is_published(pushing, monkeypatch):
    monkeypatch.setattr(push_tasks, "MAX_PUSHES", 1)
    pushing.begin("rtmp://far/live/one")
    for stream, status in (("live/demo", 507), ("live/none", 404)):
        with pytest.raises(RemoteError) as refused:
            pushing.begin("rtmp://far/live/two", stream)
        assert refused.value.status == status
