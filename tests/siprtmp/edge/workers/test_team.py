"""One worker without the others: what it does when the bus tells it something."""

import socket
from contextlib import suppress

import pytest
from support.sockets import until

from rtmplite.live.streams import Registry
from rtmplite.relay.rules import Relays, Rule
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.message_transport import ConnectionLimits
from siprtmp.edge.workers.place import close_places, open_places
from siprtmp.edge.workers.team import Team
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.table import ListenerSettings

PULLED = "live/far=rtmp://192.0.2.1/live"
NOTHING = ListenerSettings(rtmp=None, rtmfp=None, sip=(), http=None)

KEY = ["live", "demo"]


class Publisher:
    """One that answers pings or not, and hears when it is replaced."""

    is_copy = False

    def __init__(self, *, silent: bool = False) -> None:
        self.silent, self.gone = silent, False

    def is_silent(self, now: float) -> bool:
        return self.silent

    def replaced(self, now: float) -> None:
        self.gone = True


@pytest.fixture
def places():
    """Two places without listeners for clients."""
    made = open_places(NOTHING, 2)
    yield made
    close_places(made)
    assert not made[0].folder.exists()


@pytest.fixture
def second(places):
    """The worker with the higher number."""
    return worker(places[1])


def worker(place):
    registry = Registry()
    relays = Relays(registry, lambda session: None, bytes, pull=[Rule.parse(PULLED)])
    return Team(place, registry, LiveApplication(), ConnectionLimits(), 0.0, relays)


class Screen:
    output_size = 0

    def put(self, data):
        """Show nothing."""


def watched(team, app, name):
    """A player of a stream there."""
    live = team._registry.open(app, name)
    return live.join(Screen(), lambda *message: b"", None, 0.0)


def published(team, publisher):
    """A stream of this publisher there."""
    live = team._registry.open(*KEY)
    live.begin(0.0, publisher=publisher)
    return live


def test_only_their_owner_enters_the_folder_of_the_bus(places):
    folder = places[0].folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    assert len([*folder.iterdir()]) == 4


@pytest.mark.parametrize("kind", ["long", "missing"])
def test_a_folder_that_cannot_be_had_is_one_line_and_leaves_nothing(kind, tmp_path, monkeypatch):
    """No disk, no room, or a path that is too long for a Unix socket."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder if kind == "long" else folder / "none"))
    with pytest.raises(ConfigError, match=r"--workers 2: .*: another TMPDIR may do"):
        open_places(NOTHING, 2)
    assert not [*folder.iterdir()]


def test_of_two_that_publish_one_name_at_once_the_lower_worker_keeps_it(places):
    publishers = [Publisher(), Publisher()]
    teams = [worker(place) for place in places]
    streams = [published(*pair) for pair in zip(teams, publishers, strict=True)]
    for team, other in zip(teams, (1, 0), strict=True):
        team.handlers["publish"](other, {"key": KEY})
    assert [each.gone for each in publishers] == [False, True]
    assert [live.publishing for live in streams] == [True, False]


@pytest.mark.parametrize("silent", [False, True])
def test_a_name_is_given_up_to_another_worker_if_its_publisher_is_lost(second, silent):
    publisher = Publisher(silent=silent)
    live = published(second, publisher)
    claim = {"key": KEY, "newcomer": ["192.0.2.1", False]}
    assert second.handlers["claim"](0, claim) is silent
    assert (publisher.gone, live.publishing) == (silent, not silent)


def test_a_name_that_nobody_publishes_here_is_free(second):
    assert second.handlers["claim"](0, {"key": KEY, "newcomer": ["192.0.2.1", False]}) is True


def test_a_stream_of_another_worker_is_taken_while_somebody_plays_it(second):
    registry = second._registry
    player = watched(second, *KEY)
    live = registry.open(*KEY)
    assert not registry.can_fetch(live) and [*second.waited()] == [tuple(KEY)]
    second.handlers["publish"](0, {"key": KEY})
    assert registry.can_fetch(live) and [*second.waited()] == []
    assert second._copies[tuple(KEY)].owner == 0
    player.leave(1.0)
    assert second._copies == {}


def test_nobody_uses_a_shared_object(second):
    """Its users would be in different workers, and not hear of each other."""
    assert second._registry.shared._limits.objects == 0


@pytest.mark.parametrize("way", ["bus", "streams"])
def test_a_process_of_another_user_is_not_served(second, places, way, monkeypatch):
    """Even if it has got to the socket; ours may have so many streams and no more."""
    hello = {"bus": b'{"worker":0}\n', "streams": b"\3" + bytes(1536)}[way]

    def is_served():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
            connected.connect(str(places[1].folder / f"{way}-1"))
            connected.setblocking(False)
            with suppress(OSError):
                connected.sendall(hello)
            assert until(lambda: 0 in second.bus._readers or said(connected) is not None)
            return 0 in second.bus._readers or bool(said(connected))

    second.start()
    try:
        assert is_served() and until(lambda: not second.bus._readers)
        with monkeypatch.context() as patched:
            patched.setattr("siprtmp.edge.workers.place.os.getuid", lambda: 4711)
            assert not is_served()
        monkeypatch.setattr("siprtmp.edge.workers.local_links.MAX_CONNECTIONS", 0)
        assert is_served() is (way == "bus")
    finally:
        second.stop()


def said(connected):
    """What the other end has said, empty if it has closed, None if it has done neither yet."""
    try:
        return connected.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""


def test_the_first_worker_pulls_for_all(places):
    """Another one takes the stream from it, unless a client of a third one publishes it."""
    first, second = map(worker, places)
    for each in (first, second):
        watched(each, "live", "far")
    assert len(first._relays.links) == 1 and not second._relays.links
    assert [copy.owner for copy in second._copies.values()] == [0] and not first._copies
    first.directory.add(1, ("live", "near"))
    watched(first, "live", "near")
    assert [copy.owner for copy in first._copies.values()] == [1]


def test_the_first_worker_does_not_pull_what_another_one_publishes(places):
    """Although there is a rule for it."""
    first = worker(places[0])
    first.directory.add(1, ("live", "far"))
    watched(first, "live", "far")
    assert not first._relays.links
    assert [copy.owner for copy in first._copies.values()] == [1]
