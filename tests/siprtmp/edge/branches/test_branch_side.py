"""What the gateway has, as branches of a tree."""

import pytest
from support.gateway.gateway_world import DESK, PCMU, Desk, GatewayWorld, sdp
from support.sip.homes import CAROL, register

from p2psip.errors import RemoteError
from p2psip.server.users import UserStore
from rtmplite.auth.credentials import user_lines
from rtmplite.net.server.record import Recordings
from siprtmp.edge.branches.branch_side import BranchSide
from siprtmp.edge.overview import Overview, call_row
from siprtmp.settings.routes import RouteSettings
from siprtmp.web.branches.roles import Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JSON, Entity

OPERATOR = Asker(host="127.0.0.1")
LOCAL = Roles([], is_local=True)
ROUTES = [RouteSettings("news", stream="studio", push="rtmp://live.example/app/KEY")]


class Tree:
    """A tree that mounts branches, and what they tell."""

    def __init__(self):
        self.branches, self.told = {}, []

    def mount(self, name, branch):
        self.branches[name] = branch
        branch.attach(Teller(self, name))


class Teller:
    def __init__(self, tree, name):
        self.tree, self.name = tree, name

    def changed(self, path, change, entity):
        data = None if entity is None else entity.data
        self.tree.told.append((self.name, path, change.value, data))

    def notify(self, path, entity):
        pass

    def is_heard(self, path):
        return False


@pytest.fixture
def overview(world):
    clients = lambda: [peer.server for peer in world.peers]  # noqa: E731
    gateway = world.gateway
    overview = Overview(world.registry, clients, gateway.log)
    overview.calls, overview.tolls = gateway.context.calls, gateway.tolls
    overview.registrar, overview.hear = gateway.registrar, gateway.stack.receive
    return overview


@pytest.fixture
def tree(world, overview, monkeypatch):
    monkeypatch.setattr("siprtmp.edge.branches.branch_side.monotonic", lambda: world.now)
    roles, core = Roles([], is_local=True), world.gateway.core
    log, tree = world.gateway.log, Tree()
    side = BranchSide(roles, overview, call_row, core, world.registry, ROUTES, log)
    side.mount(tree)
    return tree.branches, tree.told


def test_without_sip_there_are_streams_alone(world, overview):
    roles, tree = Roles([], is_local=True), Tree()
    side = BranchSide(roles, overview, call_row, None, world.registry, [], world.gateway.log)
    side.mount(tree)
    assert [*tree.branches] == ["stream", "route", "gateway", "openapi"]


def test_the_gateway_counts_what_it_has(world, tree):
    branches, _ = tree
    world.client("rtmp://host/live").publish("demo")
    world.gateway.hear(register(contact=f"<sip:bob@{CAROL}>"), source=CAROL)
    Desk(world.link).ring("team", world.now)
    world.wait()
    row = branches["gateway"].read((), OPERATOR).data
    counts = {"calls": 1, "streams": 2, "registrations": 1, "rooms": 1}  # the room is a stream too
    assert row["counts"] == counts
    assert row["role"] == "admin" and row["workers"] == 1 and row["memory_bytes"] > 0


def test_a_stream_is_found_by_its_path_and_ended(world, tree):
    branches, _ = tree
    publisher = world.client("rtmp://host/live")
    publisher.publish("demo")
    assert branches["stream"].children(("live",)) == ["demo"]
    assert branches["stream"].read(("live", "demo")).data["id"] == publisher.server.id
    branches["stream"].remove(("live", "demo"), OPERATOR)
    world.run()
    assert publisher.server.closed and world.is_clean()


def test_a_phone_that_registers_is_told_and_can_be_forgotten(world, tree):
    branches, told = tree
    world.gateway.hear(register(contact=f"<sip:bob@{CAROL}>"), source=CAROL)
    [name] = branches["registration"].children(())
    assert branches["registration"].read((name,)).data["user"] == "sip:bob@home"
    assert told == [("registration", (), "update", {})]
    branches["registration"].remove((name,), OPERATOR)
    assert branches["registration"].children(()) == [] and len(told) == 2


def test_a_call_between_phones_is_read_and_ended(world, tree):
    """Covers RFC 3261 §16.10."""
    branches, _ = tree
    desk, other = Desk(world.link), Desk(world.link, CAROL, sdp(PCMU, at=CAROL))
    world.gateway.hear(register(contact=f"<sip:bob@{CAROL}>"), source=CAROL)
    desk.ring("bob", world.now)
    world.wait()
    [name] = branches["call"].children(())
    row = branches["call"].read((name,)).data
    assert (row["state"], row["direction"], row["callee"]) == ("up", "through", "sip:bob@10.0.0.1")
    for act in (branches["call"].patch, branches["call"].event):
        with pytest.raises(RemoteError) as refused:
            act((name,), Entity(JSON, {}) if act == branches["call"].event else {}, OPERATOR)
        assert refused.value.status == 409
    branches["call"].remove((name,), OPERATOR)
    world.wait()
    assert [each.events()[-1] for each in (desk, other)] == ["ended", "ended"]
    assert branches["call"].children(()) == []


def test_a_route_is_shown_without_its_key(tree):
    branches, _ = tree
    row = branches["route"].read(("0",)).data
    assert row == {"match": "news", "stream": "studio", "push": True}


def test_a_call_is_mixed_and_the_stream_of_both_sides_recorded(world, overview, tmp_path):
    """What is begun is told, and so is its end, which that of the call is."""
    pytest.importorskip("av")
    core, log, tree = world.gateway.core, world.gateway.log, Tree()
    side = BranchSide(LOCAL, overview, call_row, core, world.registry, [], log)
    recordings = Recordings(tmp_path, world.registry, records_all=False)
    side.add_recordings(recordings)
    side.mount(tree)
    mix, recording = tree.branches["mix"], tree.branches["recording"]
    world.tool().publish("show")
    desk = Desk(world.link)
    desk.ring("show", world.now)
    world.wait()
    [name] = tree.branches["call"].children(())
    wanted = Entity(JSON, {"call": name})
    assert mix.create((), wanted, OPERATOR) == "1" and mix.children(()) == ["1"]
    row = {"call": name, "stream": "mixed/show"}
    assert mix.read(("1",)).data == row
    assert recording.create((), wanted, OPERATOR) == "1"
    assert recording.read(("1",)).data["stream"] == "mixed/show"
    for branch, said, status in (
        (mix, {"call": name}, 409),
        (mix, {"call": "none"}, 404),
        (recording, {"call": name}, 409),
        (recording, {"stream": "live/none"}, 404),
        (recording, {"stream": "mixed/show", "call": name}, 422),
        (recording, {}, 422),
    ):
        with pytest.raises(RemoteError) as refused:
            branch.create((), Entity(JSON, said), OPERATOR)
        assert refused.value.status == status, said
    desk.calls[0].bye(world.now)
    world.wait()
    recordings.stop()
    told = [each for each in tree.told if each[0] in ("mix", "recording") and each[2] != "update"]
    assert [each[:3] for each in told] == [
        *(("mix", ("1",), "create"), ("recording", ("1",), "create")),
        *(("recording", ("1",), "delete"), ("mix", ("1",), "delete")),
    ]
    assert told[-1][3] == row and mix.children(()) == recording.children(()) == []
    assert world.is_clean()


def test_without_a_folder_nothing_is_recorded(world, overview):
    core, log, tree = world.gateway.core, world.gateway.log, Tree()
    side = BranchSide(LOCAL, overview, call_row, core, world.registry, [], log)
    side.add_recordings(None)
    side.mount(tree)
    world.client("rtmp://host/live").publish("demo")
    with pytest.raises(RemoteError, match="--record") as refused:
        wanted = Entity(JSON, {"stream": "live/demo"})
        tree.branches["recording"].create((), wanted, OPERATOR)
    assert refused.value.status == 409 and tree.branches["recording"].children(()) == []


def test_a_member_that_enters_a_room_is_told(world, tree):
    branches, told = tree
    assert branches["room"].read(("team",)).data == {"name": "team", "members": 0}
    desk = Desk(world.link)
    desk.ring("team", world.now)
    world.wait()
    assert told[-1] == ("room", ("team",), "update", {"name": "team", "members": 1})
    desk.calls[0].bye(world.now)
    world.wait()
    assert told[-1][3]["members"] == 0 and world.is_clean()


def test_the_members_of_a_room_are_listed_muted_and_leave(world, tree):
    """A phone and a publisher; whoever subscribes to the room hears of both."""
    branches, told = tree
    room, desk, tool = branches["room"], Desk(world.link), world.tool("room")
    desk.ring("team", world.now)
    world.wait()
    tool.publish("team")
    world.wait()
    first, second = room.children(("team",))
    phone, publisher = (room.read(("team", each)).data for each in (first, second))
    assert phone["kind"] == "phone" and "user@" in phone["caller"] and not phone["muted"]
    assert publisher["kind"] == "publisher" and publisher["source"].startswith("RTMP:")
    assert [each[2] for each in told if each[1] == ("team", second)] == ["create"]
    room.patch(("team", second), {"muted": True}, OPERATOR)
    assert told[-1] == ("room", ("team", second), "update", {**publisher, "muted": True})
    assert [each.is_muted for each in world.gateway.rooms.rooms["team"].members] == [False, True]
    for each in (first, second):
        room.remove(("team", each), OPERATOR)
        world.wait()
        assert ("room", ("team", each), "delete", None) in told
    assert room.children(("team",)) == [] and world.is_clean()


def test_what_a_room_and_its_members_refuse(world, tree):
    room = tree[0]["room"]
    Desk(world.link).ring("team", world.now)
    world.wait()
    for path, change, status in (
        (("team",), {"muted": True}, 405),
        (("team", "1"), {"member": 7}, 422),
        (("team", "1"), {"muted": 1}, 422),
        (("team", "1"), None, 422),
        (("team", "2"), {"muted": True}, 405),
    ):
        with pytest.raises(RemoteError) as refused:
            room.patch(path, change, OPERATOR)
        assert refused.value.status == status
    with pytest.raises(RemoteError) as refused:
        room.remove(("team",), OPERATOR)
    assert refused.value.status == 409


def test_a_call_is_placed_and_a_line_is_logged_in(world, tree):
    branches, told = tree
    desk = Desk(world.link)
    wanted = Entity(JSON, {"from": "studio", "to": f"user@{DESK}"})
    name = branches["call"].create((), wanted, OPERATOR)
    world.wait()
    assert branches["call"].read((name,)).data["state"] == "up" and desk.calls
    branches["call"].remove((name,), OPERATOR)
    world.wait()
    assert told[-1][2] == "delete"
    world.rich("alice@home")
    assert branches["login"].children(()) == ["alice@home"] and world.is_clean()


def test_a_user_logs_in_by_its_address_and_is_called_in_its_page():
    """Covers RFC 3261 §13.3.1.1: the call rings there until the page has gone."""
    world = GatewayWorld(users=UserStore.parse("\n".join(user_lines("ann", "home", "secret"))))
    overview = Overview(world.registry, lambda: [], world.gateway.log)
    core, tree, roles = world.gateway.core, Tree(), Roles([], is_local=False)
    BranchSide(roles, overview, call_row, core, world.registry, [], world.gateway.log).mount(tree)
    login, ann = tree.branches["login"], Asker("ann@home", connection="1")
    with pytest.raises(RemoteError):
        login.put(("bob@home",), Entity(JSON, {}), ann)
    login.put(("ann@home",), Entity(JSON, {}), ann)
    desk = Desk(world.link)
    desk.ring("ann", world.now)
    world.wait()
    assert desk.events() == ["ringing"]
    [call] = world.gateway.context.calls
    call.drop(world.now)
    login.gone("1")
    desk.ring("ann", world.now)
    world.wait()
    assert desk.events() == ["ringing", "rejected", "rejected"] and world.is_clean()
