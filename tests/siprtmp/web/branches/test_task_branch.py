"""Tasks that clients begin and end."""

import pytest

from p2psip.errors import RemoteError
from siprtmp.web.branches.roles import Role, Roles
from siprtmp.web.branches.task_branch import TaskBranch
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.mode import Right

ROLES = Roles(["olga"], is_local=False, viewers=["vera"], admins=["ada"])
VERA, OLGA, ADA, ANN = (Asker(f"{name}@home") for name in ("vera", "olga", "ada", "ann"))


class Lamps:
    """Tasks that do nothing."""

    words = ("lamp",)

    def __init__(self):
        self.lit, self.on_change = [], None

    def running(self):
        return self.lit

    def row(self, task):
        return {"lamp": task}

    def begin(self, said):
        self.lit.append(said["lamp"])
        self.on_change(said["lamp"], False)
        return said["lamp"]

    def end(self, task):
        self.lit.remove(task)
        self.on_change(task, True)


class Teller:
    def __init__(self):
        self.heard = []

    def changed(self, path, change, entity):
        self.heard.append((path, change, entity and entity.data))


@pytest.fixture
def lamps():
    return Lamps()


@pytest.fixture
def branch(lamps):
    return TaskBranch(ROLES, lamps)


def test_what_is_over_is_told_once(branch, lamps):
    """Own design: a file is opened by a thread, maybe after its recording was ended."""
    teller = Teller()
    branch.attach(teller)
    name = begin(branch, "red")
    branch.remove((name,), OLGA)
    lamps.on_change("red", True)
    assert [(path, change) for path, change, _ in teller.heard] == [
        ((name,), Change.CREATE),
        ((name,), Change.DELETE),
    ]


def begin(branch, lamp):
    return branch.create((), Entity(JSON, {"lamp": lamp}), OLGA)


def test_a_task_has_a_number_that_comes_once_and_is_told(branch, lamps):
    teller = Teller()
    branch.attach(teller)
    assert [begin(branch, each) for each in ("red", "blue")] == ["1", "2"]
    assert branch.children(()) == ["1", "2"] and branch.read(("2",)).data == {"lamp": "blue"}
    lamps.on_change("blue", False)
    branch.remove(("1",), OLGA)
    assert begin(branch, "red") == "3" and branch.read(("1",)) is None
    assert [(path[0], change) for path, change, _ in teller.heard] == [
        *(("1", Change.CREATE), ("2", Change.CREATE), ("2", Change.UPDATE)),
        *(("1", Change.DELETE), ("3", Change.CREATE)),
    ]


def test_what_has_begun_by_itself_is_there_too(branch, lamps):
    lamps.lit.append("green")
    assert branch.children(()) == ["1"] and branch.read(()).data == {}


def test_operators_begin_and_end_and_viewers_read(branch, lamps):
    def rights(path, branch=branch):
        return {
            name: [each for each in Right if branch.may(path, each, asker)]
            for name, asker in (("vera", VERA), ("olga", OLGA), ("ada", ADA), ("ann", ANN))
        }

    seen = [Right.READ, Right.SUBSCRIBE]
    assert {*rights(())["olga"]} == {*seen, Right.CREATE}
    assert {*rights(("1",))["olga"]} == {*seen, Right.UPDATE}
    assert rights(())["vera"] == seen and rights(())["ann"] == []
    strict = rights((), TaskBranch(ROLES, lamps, Role.ADMIN, Role.ADMIN))
    assert strict["olga"] == [] and {*strict["ada"]} == {*seen, Right.CREATE}


@pytest.mark.parametrize("said", [None, [], {"lamp": 1}, {"size": "big"}, {"lamp": {}}])
def test_nothing_but_texts_by_known_names_is_taken(branch, said):
    with pytest.raises(RemoteError) as refused:
        branch.create((), Entity(JSON, said), OLGA)
    assert refused.value.status == 422


def test_a_task_is_not_changed(branch):
    begin(branch, "red")
    row = Entity(JSON, {})
    for act, given, status in (
        (branch.put, row, 405),
        (branch.patch, {}, 405),
        (branch.event, row, 405),
    ):
        with pytest.raises(RemoteError) as refused:
            act(("1",), given, OLGA)
        assert refused.value.status == status
    with pytest.raises(RemoteError) as refused:
        branch.remove(("7",), OLGA)
    assert refused.value.status == 404
