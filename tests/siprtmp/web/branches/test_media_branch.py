"""Pages publish and play by resources, as by WHIP and WHEP."""

import pytest
from support.gateway.whip_world import World, offer

from p2psip.errors import RemoteError
from p2psip.sdp.session import SessionDescription
from siprtmp.web.branches.media_branch import MediaBranch
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.mode import Right
from siprtmp.web.whip import MAX_OFFER

PAGE = Asker("ann@home", connection="1", host="192.0.2.7")
CAMERA = {"way": "publish", "stream": "live/cam"}


class Told:
    """The tree behind a branch."""

    def __init__(self):
        self.changes = []

    def changed(self, path, change, entity):
        self.changes.append((path, change, entity.data))


@pytest.fixture
def world():
    return World()


@pytest.fixture
def branch(world):
    made = MediaBranch(world.sessions, ("live", "call"), world.admits)
    made.told = Told()
    made.attach(made.told)
    return made


def begin(branch, asker=PAGE, **said):
    said = {**CAMERA, "sdp": offer("audio", "h264").decode(), **said}
    return branch.create((), Entity(JSON, said), asker)


def test_an_offer_is_answered_in_the_resource_that_it_makes(world, branch):
    name = begin(branch)
    shown = branch.read((name,)).data
    answer = SessionDescription.parse(shown["sdp"].encode())
    assert [each.attribute("recvonly") for each in answer.media] == ["", ""]
    assert (shown["way"], shown["stream"]) == ("publish", "live/cam")
    assert world.asked == [("whip", "live", "cam", "", "192.0.2.7")]
    assert world.registry.get("live", "cam").publishing


def test_a_page_plays_with_the_proof_that_it_gives(world, branch):
    world.live("obs")
    sdp = offer("audio", "h264", flow="recvonly").decode()
    name = begin(branch, way="play", stream="live/obs", sdp=sdp, proof="user=ann&pass=word")
    assert branch.read((name,)).data["way"] == "play"
    assert world.asked == [("whep", "live", "obs", "user=ann&pass=word", "192.0.2.7")]


def test_a_session_ends_by_delete_and_its_subscribers_hear_why(world, branch):
    name = begin(branch)
    branch.remove((name,), PAGE)
    gone = ((name,), Change.DELETE, {"reason": "ended by the client"})
    assert branch.told.changes == [gone]
    assert branch.read((name,)) is None and len(world.sessions) == 0 and world.left == 1
    with pytest.raises(RemoteError) as refused:
        branch.remove((name,), PAGE)
    assert refused.value.status == 404


def test_a_session_ends_with_the_connection_of_its_page_and_no_other_does(world, branch):
    name = begin(branch)
    other = begin(branch, Asker(None, connection="2", host="192.0.2.8"), stream="live/other")
    branch.gone("1")
    assert branch.read((name,)) is None and branch.read((other,)) is not None
    assert branch.told.changes == [((name,), Change.DELETE, {"reason": "the page has gone"})]


def test_sessions_cannot_be_listed_nor_guessed(branch):
    name = begin(branch)
    stranger = Asker(None, host="192.0.2.9")
    assert branch.children(()) == [] and branch.read(()).data == {}
    assert not branch.may((), Right.SUBSCRIBE, stranger)
    assert not branch.may(("a" * len(name),), Right.UPDATE, stranger)
    assert branch.may((name,), Right.READ, stranger)  # who knows the name may


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"way": "watch"}, 422),
        ({"stream": "vod/cam"}, 404),
        ({"stream": "live/"}, 404),
        ({"sdp": ""}, 422),
        ({"sdp": "v" * (MAX_OFFER + 1)}, 413),
        ({"sdp": "nonsense"}, 400),
        ({"sdp": offer("audio", "av1").decode()}, 422),
        ({"sdp": 1}, 422),
        ({"more": "x"}, 422),
        ({"way": "play", "stream": "live/nobody"}, 409),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(world, branch, said, status):
    with pytest.raises(RemoteError) as refused:
        begin(branch, **said)
    assert refused.value.status == status
    assert len(world.sessions) == 0 and world.transports == [] and world.left == len(world.asked)


def test_a_stream_that_is_another_s_is_refused(world, branch):
    world.may = False
    with pytest.raises(RemoteError) as refused:
        begin(branch)
    assert refused.value.status == 403 and world.transports == []


@pytest.mark.parametrize(
    "change",
    [
        lambda branch, path: branch.put(path, Entity(JSON, {}), PAGE),
        lambda branch, path: branch.patch(path, {}, PAGE),
        lambda branch, path: branch.event(path, Entity(JSON, {}), PAGE),
        lambda branch, path: branch.create(path, Entity(JSON, {}), PAGE),
    ],
)
def test_a_session_does_not_change(branch, change):
    with pytest.raises(RemoteError) as refused:
        change(branch, (begin(branch),))
    assert refused.value.status == 405
