"""Lists of the gateway as resources, and who is logged in."""

import pytest

from p2psip.errors import LocalError, RemoteError
from siprtmp.web.branches.listed_branch import ListedBranch
from siprtmp.web.branches.login_branch import MAX_OCTETS, LoginBranch
from siprtmp.web.branches.roles import Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.mode import Right

OPERATOR = Asker(host="127.0.0.1")
ANN, BOB = Asker("ann@home", connection="1"), Asker("bob@home", connection="2")
ROLES = Roles([], is_local=True)
ROWS = [
    (("live", "demo"), {"id": "7", "name": "live/demo"}),
    (("live", "a", "b"), {"id": "", "name": "live/a/b"}),
]


class Teller:
    def __init__(self):
        self.heard = []

    def changed(self, path, change, entity):
        self.heard.append((path, change, entity and entity.data))


def status_of(act, *args):
    with pytest.raises(RemoteError) as refused:
        act(*args)
    return refused.value.status


@pytest.fixture
def streams():
    def end(row):
        if not row["id"]:
            raise LocalError("no id begins with ''")
        ended.append(row["id"])

    ended = []
    branch = ListedBranch(ROLES, lambda: ROWS, end)
    branch.ended = ended
    return branch


def test_rows_are_found_by_their_paths(streams):
    assert streams.children(()) == ["live"] and streams.children(("live",)) == ["demo", "a"]
    assert streams.read(("live", "demo")).data["id"] == "7"
    assert streams.read(()).data == streams.read(("live",)).data == {}
    assert streams.read(("live", "a")).data == {} and streams.read(("live", "none")) is None
    assert streams.read(("live", "demo", "more")) is None


def test_a_row_is_ended_if_it_can_be(streams):
    streams.remove(("live", "demo"), OPERATOR)
    assert streams.ended == ["7"]
    assert status_of(streams.remove, ("live", "a", "b"), OPERATOR) == 409
    assert status_of(streams.remove, ("live",), OPERATOR) == 405
    assert status_of(ListedBranch(ROLES, lambda: ROWS).remove, ROWS[0][0], OPERATOR) == 405


def test_operators_alone_read_and_end_rows_and_nobody_changes_them(streams):
    assert not any(streams.may((), right, ANN) for right in Right)
    given = [right for right in Right if streams.may(("live", "demo"), right, OPERATOR)]
    assert given == [Right.READ, Right.UPDATE, Right.SUBSCRIBE]
    row = Entity(JSON, {})
    for act in (streams.create, streams.put, streams.event):
        assert status_of(act, (), row, OPERATOR) == 405
    assert status_of(streams.patch, (), {}, OPERATOR) == 405


def test_a_row_that_changes_is_told_with_what_it_holds(streams):
    streams.tell(("live", "demo"))  # to nobody yet
    teller = Teller()
    streams.attach(teller)
    streams.tell(("live", "demo"))
    assert teller.heard == [(("live", "demo"), Change.UPDATE, ROWS[0][1])]


@pytest.fixture
def logins():
    branch = LoginBranch(ROLES, lambda: ["flash@home"], lambda identity: frozenset([identity]))
    branch.teller = Teller()
    branch.attach(branch.teller)
    return branch


def test_a_page_is_logged_in_as_long_as_its_connection(logins):
    logins.put(("ann@home",), Entity(JSON, {"name": "Ann"}), ANN)
    logins.patch(("ann@home",), {"busy": True}, ANN)
    assert logins.children(()) == ["ann@home", "flash@home"]
    assert logins.read(("ann@home",)).data == {"name": "Ann", "busy": True}
    assert logins.read(("flash@home",)).data == {"by": "rtmp"}
    assert logins.read(("bob@home",)) is None
    logins.gone("2")
    assert logins.read(("ann@home",)) is not None and logins.has_page("ann@home")
    logins.gone("1")
    assert logins.children(()) == ["flash@home"] and not logins.has_page("ann@home")
    assert [change.value for _, change, _ in logins.teller.heard] == ["create", "update", "delete"]


def test_nobody_logs_in_as_another(logins):
    about = Entity(JSON, {})
    assert status_of(logins.put, ("ann@home",), about, BOB) == 403
    logins.put(("ann@home",), about, ANN)
    assert logins.may(("ann@home",), Right.UPDATE, ANN)
    assert not logins.may(("ann@home",), Right.UPDATE, BOB)
    assert logins.may(("ann@home",), Right.WRITE, BOB)  # an invitation, for one
    roles = Roles([], is_local=False)
    elsewhere = LoginBranch(roles, list, lambda identity: frozenset())
    assert not any(elsewhere.may((), right, Asker(host="10.0.0.9")) for right in Right)


def test_a_login_is_json_and_short_and_has_a_connection(logins):
    name = ("ann@home",)
    assert status_of(logins.put, name, Entity("text/plain", b"x"), ANN) == 415
    assert status_of(logins.put, name, Entity(JSON, "x" * MAX_OCTETS), ANN) == 413
    assert status_of(logins.put, name, Entity(JSON, {}), Asker("ann@home")) == 409
    assert status_of(logins.put, ("ann@home", "x"), Entity(JSON, {}), ANN) == 404
    assert status_of(logins.create, (), Entity(JSON, {}), ANN) == 405
    assert status_of(logins.remove, name, ANN) == status_of(logins.patch, name, {}, ANN) == 404
    logins.put(name, Entity(JSON, {}), ANN)
    logins.remove(name, ANN)
    assert logins.children(()) == ["flash@home"]
