"""Calls as resources: placed, followed, held, muted and ended by those who may."""

import pytest
from support.gateway.gateway_world import AUDIO, DESK, PCMU, Desk, GatewayWorld, sdp

from p2psip.errors import RemoteError
from p2psip.server.users import UserStore
from rtmplite.auth.credentials import user_lines
from siprtmp.core.placing import Placing
from siprtmp.edge.overview import call_row
from siprtmp.web.branches.call_branch import CallBranch
from siprtmp.web.branches.roles import Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.mode import Right

OPERATOR = Asker(host="127.0.0.1")
ANN, BOB = Asker("ann", host="10.0.0.7"), Asker("bob", host="10.0.0.8")
BOSS, CLERK = Asker("boss"), Asker("clerk", frozenset(["operator"]))
PHONE = f"user@{DESK}"


class Teller:
    """What subscribers hear."""

    def __init__(self):
        self.heard = []

    def changed(self, path, change, entity):
        self.heard.append((change.value, entity.data["state"]))

    def notify(self, path, entity):
        self.heard.append(("notify", entity.data))


class Rig:
    """A gateway in memory with the branch of its calls."""

    def __init__(self, *, is_local=True, **options):
        self.world = GatewayWorld(**options)
        self.desk = Desk(self.world.link)
        core = self.world.gateway.core
        placing = Placing(core, core.names, self.world.registry)
        clock = lambda: self.world.now  # noqa: E731
        roles = Roles(["boss"], is_local=is_local)
        self.wake = lambda: None
        self.branch = CallBranch(roles, placing, call_row, clock, lambda: self.wake())
        core.context.on_event = self.branch.on_event
        self.teller = Teller()
        self.branch.attach(self.teller)

    def place(self, asker=OPERATOR, caller="studio", callee=PHONE):
        name = self.branch.create((), Entity(JSON, {"from": caller, "to": callee}), asker)
        self.world.wait()
        return name

    def row(self, name):
        return self.branch.read((name,)).data

    def end(self, name):
        self.branch.remove((name,), OPERATOR)
        self.world.wait()


@pytest.fixture
def rig():
    return Rig()


@pytest.fixture
def guarded():
    """One that others reach, with two users."""
    lines = [*user_lines("ann", "home", "secret"), *user_lines("bob", "home", "other")]
    return Rig(is_local=False, users=UserStore.parse("\n".join(lines)))


def status_of(act, *args):
    with pytest.raises(RemoteError) as refused:
        act(*args)
    return refused.value.status


def test_a_call_is_placed_rings_is_answered_and_hung_up(rig):
    rig.desk.answers = b""
    name = rig.place()
    assert rig.branch.children(()) == [name]
    row = rig.row(name)
    assert (row["id"], row["state"], row["callee"]) == (name, "ringing", f"sip:{PHONE}")
    rig.desk.calls[0].accept(sdp(PCMU), rig.world.now)
    rig.world.wait()
    assert rig.row(name)["state"] == "up" and rig.row(name)["codec"] == "pcmu"
    rig.end(name)
    assert rig.desk.events()[-1] == "ended" and rig.branch.children(()) == []
    assert rig.branch.read((name,)) is None
    assert rig.teller.heard == [
        ("create", "ringing"),
        ("notify", {"event": "ringing"}),
        ("update", "ringing"),
        ("notify", {"event": "answered"}),
        ("update", "up"),
        ("delete", "up"),
    ]
    assert rig.world.gateway.log.ends() == ["operator"] and rig.world.is_clean()


def test_keys_and_chat_go_both_ways(rig):
    """Covers RFC 6086 §4.2.1 and RFC 3428 §4: a call that a client has placed has a reader."""
    name = rig.place()
    phone, read = rig.desk.calls[0], []
    rig.desk.on_message = lambda call, message, now: read.append(message.text)
    phone.info("application/dtmf-relay", b"Signal=5\r\nDuration=100\r\n", rig.world.now)
    phone.message("hello", rig.world.now)
    rig.world.wait()
    told = [said for word, said in rig.teller.heard if word == "notify"][1:]
    assert told == [{"event": "digit", "digits": "5"}, {"event": "message", "message": "hello"}]
    rig.branch.event((name,), Entity(JSON, {"digits": "12"}), OPERATOR)
    rig.branch.event((name,), Entity(JSON, {"message": "good day"}), OPERATOR)
    rig.world.wait(2.0)
    assert rig.desk.events().count("info") == 2
    assert read == ["good day"]
    for wrong in ({}, {"digits": 5}, {"digits": "1", "message": "x"}, {"shout": "x"}, []):
        assert status_of(rig.branch.event, (name,), Entity(JSON, wrong), OPERATOR) == 422
    assert status_of(rig.branch.event, ("none",), Entity(JSON, {"digits": "1"}), OPERATOR) == 404
    rig.end(name)
    assert rig.world.is_clean()


def test_a_call_is_held_and_muted(rig):
    """Covers RFC 3264 §8.4."""
    tool = rig.world.tool()
    stream = tool.publish("studio")
    name = rig.place()
    rig.branch.patch((name,), {"muted": True}, OPERATOR)
    tool.write(AUDIO, 0, stream, b"\x82" + b"s" * 160)
    assert rig.row(name)["muted"] and not rig.world.gateway.media.sent
    assert rig.teller.heard[-1] == ("update", "up")
    rig.desk.reply_to_offer = sdp(PCMU, more=("recvonly",))
    rig.branch.put((name,), Entity(JSON, {**rig.row(name), "held": True}), OPERATOR)
    rig.world.wait()
    assert rig.row(name)["held"] and rig.row(name)["muted"]
    rig.desk.reply_to_offer = sdp(PCMU)
    rig.branch.patch((name,), {"held": False, "muted": False}, OPERATOR)
    rig.world.wait()
    assert not rig.row(name)["held"] and not rig.row(name)["muted"]
    for wrong in ({}, {"held": "yes"}, {"muted": True, "caller": "sip:x@y"}, [], "held"):
        assert status_of(rig.branch.patch, (name,), wrong, OPERATOR) == 422
    rig.end(name)
    assert rig.world.is_clean()


def test_nothing_but_keys_is_done_with_a_call_that_is_not_up(rig):
    rig.desk.answers = b""
    name = rig.place()
    assert status_of(rig.branch.patch, (name,), {"held": True}, OPERATOR) == 409
    assert status_of(rig.branch.event, (name,), Entity(JSON, {"digits": "1"}), OPERATOR) == 409
    rig.end(name)
    assert rig.desk.events()[-1] == "cancelled" and rig.world.is_clean()


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"from": "studio"}, 422),
        ({"from": "studio", "to": 5}, 422),
        ({"from": "studio", "to": "desk"}, 422),
        (["studio", PHONE], 422),
        ({"from": "a b", "to": PHONE}, 400),
    ],
)
def test_what_cannot_be_placed_is_refused(rig, wanted, status):
    assert status_of(rig.branch.create, (), Entity(JSON, wanted), OPERATOR) == status
    assert rig.branch.children(()) == [] and rig.world.is_clean()


def test_a_client_hears_why_its_call_has_failed_at_once(rig):
    rig.wake, rig.desk.answers = rig.world.wait, 486
    wanted = Entity(JSON, {"from": "studio", "to": PHONE})
    with pytest.raises(RemoteError, match="486 Busy Here") as refused:
        rig.branch.create((), wanted, OPERATOR)
    assert refused.value.status == 503 and rig.world.is_clean()


def test_a_name_has_one_call(rig):
    name = rig.place()
    wanted = Entity(JSON, {"from": "studio", "to": PHONE})
    assert status_of(rig.branch.create, (), wanted, OPERATOR) == 409
    rig.end(name)
    assert rig.world.is_clean()


def test_a_user_has_calls_of_its_own_and_no_others(guarded):
    """Own design: what others call, and whom, is nobody else's business."""
    branch = guarded.branch
    name = guarded.place(ANN, "ann")
    reads = [branch.may((name,), Right.READ, each) for each in (ANN, BOB, BOSS, CLERK, OPERATOR)]
    assert reads == [True, False, True, True, False]  # nobody is the operator from elsewhere
    for right in Right:
        assert branch.may((name,), right, ANN) and not branch.may((name,), right, BOB)
        assert not branch.may((name, "more"), right, ANN)
    assert status_of(branch.create, (), Entity(JSON, {"from": "ann", "to": PHONE}), BOB) == 403
    other = Entity(JSON, {"from": f"elsewhere@{DESK}", "to": PHONE})
    assert status_of(branch.create, (), other, BOB) == 403
    assert not branch.may((), Right.READ, OPERATOR) and branch.may((), Right.CREATE, BOB)
    assert not branch.may((), Right.UPDATE, BOB)
    branch.remove((name,), ANN)
    guarded.world.wait()
    assert guarded.world.gateway.log.ends() == ["user"] and guarded.world.is_clean()


def test_nobody_is_the_operator_through_a_proxy_on_this_machine(rig):
    assert rig.branch.may((), Right.READ, OPERATOR)
    assert not rig.branch.may((), Right.READ, Asker(host="192.0.2.1"))


def test_a_call_that_comes_for_a_user_is_its_own(guarded):
    guarded.world.tool().publish("ann?user=ann&pass=secret")
    guarded.desk.ring("ann", guarded.world.now)
    guarded.world.wait()
    [name] = guarded.branch.children(())
    assert guarded.branch.may((name,), Right.UPDATE, ANN)
    assert not guarded.branch.may((name,), Right.READ, BOB)
    guarded.branch.remove((name,), BOSS)
    guarded.world.wait()
    assert guarded.world.gateway.log.ends() == ["operator"] and guarded.world.is_clean()


def test_limits_hold_for_calls_that_are_placed_here():
    rig = Rig(max_user_calls=1)
    name = rig.place()
    wanted = Entity(JSON, {"from": "attic2", "to": PHONE})
    assert status_of(rig.branch.create, (), wanted, OPERATOR) == 403
    rig.end(name)
    assert rig.world.is_clean()


def test_both_ends_of_a_call_between_two_clients_are_resources(rig):
    world = rig.world
    alice, bob = world.rich("alice@home"), world.rich("bob@home")
    alice.call("invite", "bob@home")
    world.wait()
    first, second = rig.branch.children(())
    assert second == f"{first}:2" and bob.connected
    assert rig.row(first)["direction"] == "out" and rig.row(second)["direction"] == "in"
    rig.end(second)
    assert rig.branch.children(()) == [] and world.is_clean()


def test_followers_hear_of_each_event_with_the_call(rig):
    told = []
    rig.branch.followers.append(told.append)
    name = rig.place()
    rig.end(name)
    assert [each["event"] for each in told] == ["begun", "answered", "ended"]
    assert all(each["call"]["id"] == name for each in told) and told[-1]["reason"] == "operator"
    assert Change.DELETE.value == rig.teller.heard[-1][0]
