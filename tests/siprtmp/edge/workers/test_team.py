"""One worker without the others: what it does when the bus tells it something."""

import pytest

from rtmplite.live.streams import Registry
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.message_transport import ConnectionLimits
from siprtmp.edge.workers.place import close_places, open_places
from siprtmp.edge.workers.team import Team
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.table import ListenerSettings

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
    made = open_places(ListenerSettings(rtmp=None, http=None), 2)
    yield made
    close_places(made)
    assert not made[0].folder.exists()


@pytest.fixture
def second(places):
    """The worker with the higher number."""
    return worker(places[1])


def worker(place):
    team = Team(place, Registry(), LiveApplication(), ConnectionLimits(), 0.0)
    return team


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
        open_places(ListenerSettings(rtmp=None, http=None), 2)
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
    class Screen:
        output_size = 0

        def put(self, data):
            """Show nothing."""

    registry = second._registry
    live = registry.open(*KEY)
    player = live.join(Screen(), lambda *message: b"", None, 0.0)
    assert not registry.can_fetch(live) and [*second.waited()] == [tuple(KEY)]
    second.handlers["publish"](0, {"key": KEY})
    assert registry.can_fetch(live) and [*second.waited()] == []
    assert second._copies[tuple(KEY)].owner == 0
    player.leave(1.0)
    assert second._copies == {}


def test_nobody_uses_a_shared_object(second):
    """Its users would be in different workers, and not hear of each other."""
    assert second._registry.shared._limits.objects == 0
