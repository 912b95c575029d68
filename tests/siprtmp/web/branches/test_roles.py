"""The roles of clients, and the gateway's own resource."""

import logging

import pytest

from p2psip.errors import RemoteError
from siprtmp.edge.branches.audit_file import AuditFile
from siprtmp.operation.logs import LEVELS, Log, RunningLevel
from siprtmp.web.branches.audit_trail import MAX_ENTRIES, AuditTrail
from siprtmp.web.branches.gateway_branch import GatewayBranch
from siprtmp.web.branches.listed_branch import ListedBranch
from siprtmp.web.branches.roles import Role, Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.messages import Request, answer
from siprtmp.web.resources.mode import Right
from siprtmp.web.resources.tree import Tree

CLERK, BOSS, ROOT, ANN = (Asker(f"{name}@home") for name in ("clerk", "boss", "root", "ann"))
HERE = Asker(host="127.0.0.1")
ROLES = Roles(["boss"], is_local=False, viewers=["clerk"], admins=["root@home"])
LOOKS, CHANGES = {Right.READ, Right.SUBSCRIBE}, {Right.READ, Right.SUBSCRIBE, Right.UPDATE}


def given(branch, asker):
    return {right for right in Right if branch.may((), right, asker)}


def test_a_role_is_named_by_the_settings_or_by_a_token_and_local_programs_are_admins():
    known = [ROLES.role(each) for each in (ANN, CLERK, BOSS, ROOT)]
    assert known == [Role.NONE, Role.VIEWER, Role.OPERATOR, Role.ADMIN]
    assert ROLES.role(Asker("root@other")) is Role.NONE  # another realm's
    for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):
        assert ROLES.role(Asker("x", frozenset(["phones", role.word]))) is role
    both = Roles(["boss"], is_local=True, viewers=["boss"])
    assert both.role(BOSS) is Role.OPERATOR and both.role(HERE) is Role.ADMIN
    assert ROLES.role(HERE) is Role.NONE and both.role(Asker(host="192.0.2.1")) is Role.NONE


def test_viewers_read_lists_and_operators_end_what_is_on_them():
    branch = ListedBranch(ROLES, lambda: [])
    assert given(branch, ANN) == set() and given(branch, CLERK) == LOOKS
    assert given(branch, BOSS) == given(branch, ROOT) == CHANGES


class Outbox(list):
    """A connection that reads all."""

    put = list.append


@pytest.fixture
def level():
    """That of the process, as it was."""
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.INFO)
    yield RunningLevel(Log("siprtmp"))
    root.setLevel(before)


@pytest.fixture
def gateway(level):
    """The branch, and a list of how often its figures were collected."""
    asked = []

    def figures():
        asked.append(1)
        return {"counts": {"calls": len(asked)}}

    branch = GatewayBranch(ROLES, figures, level, AuditTrail(1000.0))
    branch.asked = asked
    return branch


def test_figures_are_collected_and_told_while_somebody_is_subscribed_and_no_longer(gateway):
    gateway.tick()
    tree, heard = Tree(lambda n: bytes(n)), Outbox()
    tree.mount("gateway", gateway)
    gateway.tick()
    assert not gateway.asked
    clerk = Asker("clerk", connection="1")
    assert tree.get(("gateway",), clerk).data["role"] == "viewer"
    tree.connect("1", heard)
    tree.subscribe(("gateway",), clerk)
    gateway.asked.clear()
    gateway.tick()
    assert len(gateway.asked) == len(heard) == 1 and '"log_level": "info"' in heard[0]
    assert "role" not in heard[0]  # of each subscriber it is another
    tree.gone("1")
    gateway.tick()
    assert len(gateway.asked) == 1


def test_an_admin_sets_the_level_of_the_log_which_says_by_whom(gateway, caplog):
    assert given(gateway, ANN) == set() and given(gateway, ROOT) == CHANGES
    assert given(gateway, CLERK) == given(gateway, BOSS) == LOOKS
    gateway.patch((), {"log_level": "error"}, ROOT)
    [record] = caplog.records
    assert record.values == {"level": "error", "by": "root@home"}
    assert gateway.read(()).data["log_level"] == "error"
    assert not logging.getLogger("siprtmp").isEnabledFor(logging.INFO)
    for wrong in ({}, [], {"log_level": "loud"}, {"log_level": None}, {"log_level": ["info"]},
                  {"version": "2"}, {"log_level": "info", "build": "c"}):  # fmt: skip
        with pytest.raises(RemoteError) as refused:
            gateway.patch((), wrong, ROOT)
        assert refused.value.status == 422
    assert {*LEVELS} == {"debug", "info", "warning", "error"}


def test_nothing_else_of_the_gateway_can_be_changed(gateway):
    for act in (gateway.create, gateway.put, gateway.event):
        with pytest.raises(RemoteError) as refused:
            act((), Entity(JSON, {}), ROOT)
        assert refused.value.status == 405
    with pytest.raises(RemoteError):
        gateway.remove((), ROOT)
    assert gateway.read(("none",)) is None


def test_requests_that_change_something_are_noted_without_secrets_and_told_to_admins():
    kept, trail = [], AuditTrail(1000.0)
    trail.keep = kept.append
    branch = GatewayBranch(ROLES, dict, RunningLevel(Log("siprtmp")), trail)
    tree, heard, now = Tree(lambda n: bytes(n)), Outbox(), 5.0
    tree.mount("gateway", branch)
    tree.mount("call", ListedBranch(ROLES, lambda: []))
    tree.on_change = lambda *about: trail.note(*about, now)
    tree.connect("1", heard)
    root = Asker("root@home", connection="1")
    answer(tree, Request("SUBSCRIBE", ("gateway", "audit")), root)
    said = {"digits": "1234", "to": "sip:bob:hush@home", "held": True}
    pin = Entity(JSON, {**said, "url": "rtmp://ann:hush@live.example:1936/app/hush?hush"})
    for asker in (BOSS, ANN, Asker(host="192.0.2.1")):
        with pytest.raises(RemoteError):
            answer(tree, Request("POST", ("call",), pin), asker)
    with pytest.raises(RemoteError):
        answer(tree, Request("PUT", ("lobby",), pin), ANN)  # no resource of the gateway's own
    assert [each["user"] for each in kept] == ["boss@home", "ann@home"]
    first = kept[0]
    assert first["at"] == "1970-01-01T00:16:45.000+00:00" and first["resource"] == "/call"
    masked = {"digits": "...", "to": "sip:bob:***@home", "held": True}
    assert first["entity"] == {**masked, "url": "rtmp://live.example:1936"}
    assert len(heard) == 2 and '"entry"' in heard[0] and "hush" not in heard[0]
    assert branch.read(("audit",)).data == {"entries": kept[::-1]}
    assert not branch.may(("audit",), Right.READ, BOSS) and branch.may(("audit",), Right.READ, ROOT)
    assert not branch.may(("audit",), Right.UPDATE, ROOT)
    for _ in range(MAX_ENTRIES):
        trail.note("PATCH", ("call", "1"), {}, BOSS, 200, now)
    assert len(trail.read()["entries"]) == MAX_ENTRIES


def test_a_user_of_others_has_no_role_by_a_part_of_its_name():
    """Own design: anybody may have a mail address that begins with the name of an operator."""
    roles = Roles(["boss", "ann@example.org"], is_local=False)
    for user, role in (
        ("boss@example.com", Role.NONE),
        ("boss", Role.OPERATOR),
        ("ann@example.org", Role.OPERATOR),
        ("ann@example.com", Role.NONE),
    ):
        assert roles.role(Asker(user, by_token=True)) is role
    assert roles.role(Asker("boss@home")) is Role.OPERATOR


def test_no_part_of_a_password_with_a_slash_is_in_the_audit():
    trail = AuditTrail(0.0)
    for url in ("rtmp://ann:hu/sh@live.example/app/key", "rtmp://live.example/app/key"):
        trail.note("POST", ("push",), {"url": url}, BOSS, 422, 1.0)
    shown = [each["entity"]["url"] for each in trail.read()["entries"]]
    assert shown == ["rtmp://live.example", "..."]


def test_the_file_of_the_audit_is_its_owners_and_bounded(tmp_path, caplog):
    file = AuditFile(tmp_path, Log("siprtmp"), limit=40)
    for number in range(5):
        file.write({"number": number, "text": "x" * 20})
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["audit.jsonl.1"] or names == ["audit.jsonl", "audit.jsonl.1"]
    assert all(each.stat().st_mode & 0o077 == 0 for each in tmp_path.iterdir())
    lost = AuditFile(tmp_path / "none", Log("siprtmp"))
    lost.write({})
    lost.write({})
    assert [record.message for record in caplog.records] == ["no-audit"]
