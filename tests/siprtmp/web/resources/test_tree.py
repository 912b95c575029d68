"""What each request does to a tree, and whom it tells."""

from dataclasses import replace

import pytest
from support.resources.trees import client, new_tree, refusal, value

from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.entity import Entity
from siprtmp.web.resources.mode import Mode, Right
from siprtmp.web.resources.nodes import TreeLimits
from siprtmp.web.resources.path import MAX_DEPTH, read_path
from siprtmp.web.resources.tree import Wishes

LOGIN = ("login",)
BOB = ("login", "bob")
STAYS = Wishes(persistent=True)


@pytest.fixture
def tree():
    return new_tree()


def test_put_makes_a_resource_and_then_replaces_what_it_holds(tree):
    """Covers Resources §4.2 [parent-is-there]."""
    bob, _ = client(tree, "bob")
    assert refusal(tree.put, BOB, value(1), bob) == 404
    assert tree.put(LOGIN, value(None), bob) == (value(None), True)
    assert tree.put(BOB, value({"name": "Bob"}), bob)[1]
    assert not tree.put(BOB, value({"name": "Robert"}), bob)[1]
    assert tree.get(BOB, bob) == value({"name": "Robert"})
    assert tree.children(LOGIN, bob) == ["bob"]


def test_subscribers_hear_of_a_resource_and_of_its_children(tree):
    """Covers Resources §2.3 [update-names-the-child], §6.1 [not-its-own]."""
    bob, of_bob = client(tree, "bob")
    ann, of_ann = client(tree, "ann")
    tree.put(LOGIN, value(0), bob)
    for each in bob, ann:
        tree.subscribe(LOGIN, each)
    name = tree.post(LOGIN, value({"name": "Bob"}), bob)
    child = (*LOGIN, name)
    tree.patch(child, {"away": True}, bob)
    tree.put((*child, "below"), value(1), bob)  # which is too far down
    tree.put(LOGIN, value(1), bob)
    tree.delete(child, bob)
    tree.delete(LOGIN, bob)
    update = {"notify": "UPDATE", "resource": "/login", "type": "application/json"}
    own = {"resource": "/login", "type": "application/json", "entity": 1}
    whole = {"name": "Bob", "away": True}
    assert of_ann.take() == [
        update | {"entity": {"name": "Bob"}, "create": name},
        update | {"entity": whole, "update": name},
        own | {"notify": "PUT"},
        update | {"entity": whole, "delete": name},
        own | {"notify": "DELETE"},
    ]
    assert of_bob.take() == []
    tree.put(LOGIN, value(2), bob)
    tree.put(LOGIN, value(3), bob)
    assert of_ann.take() == []  # the subscription has ended with its resource


def test_an_event_goes_to_all_other_subscribers(tree):
    bob, of_bob = client(tree, "bob")
    ann, of_ann = client(tree, "ann")
    tree.put(LOGIN, value(0), bob)
    tree.subscribe(LOGIN, bob)
    tree.subscribe(LOGIN, ann)
    tree.notify(LOGIN, value({"invite-to": "/call/conf123"}), ann)
    data = {"invite-to": "/call/conf123"}
    message = {"notify": "NOTIFY", "resource": "/login", "type": "application/json", "data": data}
    assert of_bob.take() == [message]
    assert of_ann.take() == []
    tree.unsubscribe(LOGIN, bob)
    tree.notify(LOGIN, value(1), ann)
    assert of_bob.take() == []
    assert refusal(tree.unsubscribe, LOGIN, bob) == 404


def test_a_transient_resource_ends_with_its_connection_and_a_persistent_one_does_not(tree):
    """Covers Resources §7 [transient-ends] [persistent-below-persistent]."""
    bob, _ = client(tree, "bob")
    ann, of_ann = client(tree, "ann")
    tree.put(("user",), value(0), bob, STAYS)
    tree.put(("user", "bob"), value(1), bob)
    tree.put(("user", "bob", "box"), value(2), bob)
    assert refusal(tree.put, ("user", "bob", "mail"), value(3), bob, STAYS) == 409
    tree.subscribe(("user",), ann)
    tree.subscribe(("user", "bob", "box"), ann)
    tree.gone(bob.connection)
    assert [(each["notify"], each["resource"]) for each in of_ann.take()] == [
        ("DELETE", "/user/bob/box"),
        ("UPDATE", "/user"),
    ]
    assert tree.children((), ann) == ["user"]
    assert tree.children(("user",), ann) == []


def test_an_owner_that_comes_back_keeps_its_resource(tree):
    """Covers Resources §4.2 [owner-takes-over]."""
    first, _ = client(tree, "bob", name="first")
    second, _ = client(tree, "bob", name="second")
    tree.put(LOGIN, value(1), first)
    tree.put(LOGIN, value(2), second)
    tree.gone("first")
    assert tree.get(LOGIN, second) == value(2)
    tree.gone("second")
    assert refusal(tree.get, LOGIN, second) == 404


def test_another_client_that_replaces_a_resource_does_not_take_it_over(tree):
    bob, _ = client(tree, "bob")
    ann, _ = client(tree, "ann")
    tree.put(LOGIN, value(1), bob, Wishes(mode="cruws" * 4))
    tree.put(LOGIN, value(2), ann)
    tree.gone("c-ann")
    assert tree.get(LOGIN, bob) == value(2)


def test_a_persistent_resource_may_become_transient_unless_one_below_is_persistent(tree):
    bob, _ = client(tree, "bob")
    tree.put(("a",), value(1), bob, STAYS)
    tree.put(("a", "b"), value(1), bob, STAYS)
    back = Wishes(persistent=False)
    assert refusal(tree.put, ("a",), value(2), bob, back) == 409
    tree.delete(("a", "b"), bob)
    tree.put(("a",), value(3), bob, back)
    tree.gone("c-bob")
    assert refusal(tree.get, ("a",), bob) == 404


def test_a_delete_takes_all_below(tree):
    """Covers Resources §4.5 [delete-takes-all-below]."""
    bob, _ = client(tree, "bob")
    ann, of_ann = client(tree, "ann")
    tree.put(("a",), value(1), bob)
    tree.put(("a", "b"), value(1), ann)
    tree.put(("a", "b", "c"), value(1), bob)
    tree.subscribe(("a", "b", "c"), ann)
    tree.delete(("a",), bob)
    assert [(each["notify"], each["resource"]) for each in of_ann.take()] == [("DELETE", "/a/b/c")]
    assert tree.figures()["resources"] == 0
    assert refusal(tree.get, ("a", "b"), bob) == 404
    tree.gone("c-ann")


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_a_change_meant_for_another_state_is_refused(tree, method):
    """Covers Resources §4.6 [if-match-is-412]."""
    bob, _ = client(tree, "bob")
    entity, _ = tree.put(LOGIN, value(1), bob)
    action = getattr(tree, method)
    args = {"put": (value(2),), "patch": ({"a": 1},), "delete": ()}[method]
    for wishes in Wishes(if_match='"other"'), Wishes(if_none_match="*"):
        assert refusal(action, LOGIN, *args, bob, wishes) == 412
        assert tree.get(LOGIN, bob) == value(1)
    assert refusal(action, LOGIN, *args, bob, Wishes(if_match=f'"x", {entity.tag}')) == 0


def test_a_condition_of_something_there_is_refused_where_nothing_is(tree):
    bob, _ = client(tree, "bob")
    assert refusal(tree.put, LOGIN, value(1), bob, Wishes(if_match="*")) == 412
    assert refusal(tree.put, LOGIN, value(1), bob, Wishes(if_none_match="*")) == 0


def test_the_first_class_that_fits_counts(tree):
    """Covers Resources §5.1 [first-class-counts], §5.4 [401-or-403]."""
    bob, _ = client(tree, "bob", "team")
    ann, _ = client(tree, "ann", "team")
    eve, _ = client(tree, "eve")
    nobody, _ = client(tree)
    mode = "cruws---w--r-------s"
    tree.put(LOGIN, value(1), bob, Wishes(mode=mode, group="team"))
    assert [refusal(tree.get, LOGIN, each) for each in (bob, ann, eve, nobody)] == [0, 403, 0, 401]
    statuses = [refusal(tree.notify, LOGIN, value(1), each) for each in (bob, ann, eve, nobody)]
    assert statuses == [0, 0, 403, 401]
    statuses = [refusal(tree.subscribe, LOGIN, each) for each in (bob, ann, eve, nobody)]
    assert statuses == [0, 403, 403, 0]


def test_the_owner_of_a_folder_owns_all_below_it(tree):
    bob, _ = client(tree, "bob")
    ann, _ = client(tree, "ann")
    inbox = Wishes(mode="cruws-----c---------")
    tree.put(("bob",), value(0), bob)
    tree.put(("bob", "inbox"), value(0), bob, inbox)
    name = tree.post(("bob", "inbox"), value("hello"), ann)
    letter = ("bob", "inbox", name)
    assert tree.get(letter, bob) == value("hello")
    assert tree.get(letter, ann) == value("hello")
    assert refusal(tree.children, ("bob", "inbox"), ann) == 403
    tree.delete(letter, bob)


def test_a_mode_is_inherited_until_a_resource_says_its_own(tree):
    """Covers Resources §5.3 [mode-is-inherited]."""
    bob, _ = client(tree, "bob")
    ann, _ = client(tree, "ann", "team")
    tree.put(("a",), value(0), bob, Wishes(mode="cruws-r-------------", group="team"))
    tree.put(("a", "b"), value(0), bob)
    assert refusal(tree.get, ("a", "b"), ann) == 0
    tree.set_access(("a", "b"), {"mode": "cruws---------------"}, bob)
    assert refusal(tree.get, ("a", "b"), ann) == 403
    tree.set_access(("a", "b"), {"mode": None}, bob)
    assert tree.get(("a", "b"), ann) == value(0)
    said = {"owner": "bob", "group": "team", "persistent": False}
    assert tree.access(("a", "b"), ann).data == said | {"mode": "cruws-r-------------"}


def test_nobody_but_the_owner_gives_rights(tree):
    """Covers Resources §5.2 [owner-alone-gives-rights]."""
    bob, _ = client(tree, "bob")
    ann, _ = client(tree, "ann")
    tree.put(LOGIN, value(1), bob, Wishes(mode="cruws" * 4))
    assert refusal(tree.set_access, LOGIN, {"mode": "cruws" * 4}, ann) == 403
    for wishes in Wishes(mode="-" * 20), Wishes(group="team"), Wishes(group=""), STAYS:
        assert refusal(tree.put, LOGIN, value(2), ann, wishes) == 403
    assert tree.get(LOGIN, bob) == value(1)
    tree.put(LOGIN, value(2), ann, Wishes(persistent=False))  # which it is
    tree.put(LOGIN, value(3), bob, STAYS)
    assert refusal(tree.put, LOGIN, value(4), ann, Wishes(persistent=False)) == 403
    tree.put(LOGIN, value(5), ann, STAYS)
    assert refusal(tree.set_access, (), {"mode": "cruws" * 4}, bob) == 403
    assert refusal(tree.set_access, LOGIN, {"owner": "ann"}, bob) == 400


def test_an_owner_that_took_its_own_rights_may_give_them_back(tree):
    bob, _ = client(tree, "bob")
    tree.put(LOGIN, value(1), bob)
    tree.set_access(LOGIN, {"mode": "-" * 20}, bob)
    assert refusal(tree.get, LOGIN, bob) == 403
    tree.set_access(LOGIN, {"mode": None}, bob)
    assert tree.get(LOGIN, bob) == value(1)


def test_what_an_anonymous_client_made_is_its_connections(tree):
    one, _ = client(tree, name="one")
    other, _ = client(tree, name="other")
    tree.put(LOGIN, value(1), one)
    assert refusal(tree.put, LOGIN, value(2), other) == 401
    tree.put(LOGIN, value(3), one)
    tree.put(LOGIN, value(4), one, STAYS)
    assert refusal(tree.put, LOGIN, value(5), one) == 401  # which is nobody's from then on


def test_a_right_that_was_taken_away_ends_what_is_told(tree):
    """Covers Resources §6.2 [judged-each-time] [readers-alone-hear]."""
    bob, _ = client(tree, "bob")
    ann, of_ann = client(tree, "ann")
    tree.put(LOGIN, value(0), bob)
    tree.put(BOB, value("secret"), bob, Wishes(mode="cruws---------------"))
    tree.subscribe(LOGIN, ann)
    tree.put(BOB, value("another"), bob)
    assert of_ann.take() == []  # of a child that it may not read
    tree.set_access(BOB, {"mode": None}, bob)
    tree.put(BOB, value("open"), bob)
    assert [each["entity"] for each in of_ann.take()] == ["open"]
    tree.set_access(LOGIN, {"mode": "cruws---------s-----"}, bob)
    tree.put(LOGIN, value(1), bob)
    assert of_ann.take() == [{"notify": "PUT", "resource": "/login"}]
    tree.set_access(LOGIN, {"mode": "cruws------r--------"}, bob)
    tree.put(LOGIN, value(2), bob)
    assert of_ann.take() == []


def test_a_client_that_comes_back_gets_what_it_has_missed(tree):
    bob, _ = client(tree, "bob")
    ann, _ = client(tree, "ann")
    tree.put(LOGIN, value(0), bob)
    heard, _, _ = tree.subscribe(LOGIN, ann)
    tree.gone("c-ann")
    tree.put(BOB, value(1), bob, Wishes(mode="cruws---------------"))
    tree.put(LOGIN, value(1), bob)
    tree.notify(LOGIN, value(2), bob)
    again, _ = client(tree, "ann", name="again")
    last, missed, events = tree.subscribe(LOGIN, again, heard, tree.epoch)
    assert last == tree.sequence and not missed
    assert len(events) == 2  # for the child is private
    assert '"entity": 1' in events[0] and '"data": 2' in events[1]


def test_what_was_private_then_is_not_told_later(tree):
    bob, _ = client(tree, "bob")
    ann, _ = client(tree, "ann")
    tree.put(LOGIN, value(0), bob)
    heard, _, _ = tree.subscribe(LOGIN, ann)
    tree.put(BOB, value("secret"), bob, Wishes(mode="cruws---------------"))
    tree.delete(BOB, bob)
    assert tree.subscribe(LOGIN, ann, heard, tree.epoch)[2] == []
    tree.put(BOB, value("open"), bob)
    tree.set_access(BOB, {"mode": "cruws---------------"}, bob)
    assert tree.subscribe(LOGIN, ann, heard, tree.epoch)[2] == []


def test_a_client_that_has_missed_too_much_is_told_so():
    tree = new_tree(limits=TreeLimits(history=2))
    bob, _ = client(tree, "bob")
    tree.put(LOGIN, value(0), bob)
    heard, _, _ = tree.subscribe(LOGIN, bob)
    assert tree.subscribe(LOGIN, bob, heard, tree.epoch) == (heard, False, [])
    assert tree.subscribe(LOGIN, bob, heard, "another")[1:] == (True, [])
    assert tree.subscribe(LOGIN, bob, heard + 1, tree.epoch)[1:] == (True, [])
    for number in range(3):
        tree.notify(LOGIN, value(number), bob)
    assert tree.subscribe(LOGIN, bob, heard, tree.epoch)[1:] == (True, [])
    assert tree.subscribe(LOGIN, bob, heard + 1, tree.epoch)[1] is False


SMALL = TreeLimits(resources=4, resources_of_one=3, octets=400, octets_of_one=200)


def test_what_is_beyond_a_limit_is_refused_and_changes_nothing():
    """Covers Resources §8 [limits-are-507]."""
    limits = replace(SMALL, entity_octets=150, subscriptions=1)
    tree = new_tree(limits=limits)
    bob, _ = client(tree, "bob")
    ann, _ = client(tree, "ann")
    for name in "abc":
        tree.put((name,), value(0), bob)
    assert refusal(tree.put, ("d",), value(0), bob) == 507
    assert refusal(tree.put, ("a",), value("x" * 160), bob) == 413
    tree.put(("a",), value("x" * 120), bob)
    assert refusal(tree.put, ("b",), value("x" * 120), bob) == 507
    assert tree.get(("b",), bob) == value(0)
    tree.put(("d",), value("x" * 120), ann)
    assert refusal(tree.put, ("e",), value(0), ann) == 507  # since all together have four
    tree.delete(("c",), bob)
    assert refusal(tree.put, ("d", "e"), value("x" * 100), ann) == 507
    tree.delete(("d",), ann)
    tree.put(("d",), value("x" * 140), ann)  # there is room again
    tree.subscribe(("d",), ann)
    tree.subscribe(("d",), ann)
    assert refusal(tree.subscribe, ("a",), ann) == 507
    tree.unsubscribe(("d",), ann)
    tree.subscribe(("a",), ann)


def test_connections_that_have_gone_leave_nothing():
    tree = new_tree()
    for number in range(3):
        bob, _ = client(tree, "bob", name=f"c{number}")
        tree.put(LOGIN, value(0), bob)
        tree.subscribe(LOGIN, bob)
        tree.gone(bob.connection)
    assert set(tree.figures().values()) == {0}


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/a/./b", "/a\n", "/\x00", None),
        *("/\u202ea", "/\ud800", "/" + "x" * 129, "/" + "é" * 65, "/a" * (MAX_DEPTH + 1), 7),
        "/" * 100_000,
    ],
)
def test_a_text_that_is_no_path_is_refused(text):
    """Covers Resources §3 [no-dots]."""
    assert refusal(read_path, text) in (400, 414)


def test_paths_of_the_longest_kind_are_read():
    assert read_path("/" + "x" * 128) == ("x" * 128,)
    assert len(read_path("/a" * MAX_DEPTH)) == MAX_DEPTH
    assert read_path("/%2e%2e/...") == ("%2e%2e", "...")


class Lamps:
    """A branch with the state of lamps."""

    def __init__(self):
        self.lamps = {"hall": False}
        self.events, self.ended = [], []

    def attach(self, teller):
        self.teller = teller

    def may(self, path, right, asker):
        return asker.user == "bob" or (right in Right.READ | Right.SUBSCRIBE and path != ("safe",))

    def read(self, path, asker=None):
        if not path:
            return value(None)
        return value(self.lamps[path[0]]) if path[0] in self.lamps else None

    def children(self, path):
        return [] if path else [*self.lamps]

    def create(self, path, entity, asker):
        self.switch("new", entity.data)
        return "new"

    def put(self, path, entity, asker):
        self.switch(path[0], entity.data)

    def patch(self, path, change, asker):
        self.switch(path[0], change)

    def switch(self, name, lit):
        is_new = name not in self.lamps
        self.lamps[name] = lit
        self.teller.changed((name,), Change.CREATE if is_new else Change.UPDATE, value(lit))

    def remove(self, path, asker):
        lit = self.lamps.pop(path[0])
        self.teller.changed(path, Change.DELETE, value(lit))

    def event(self, path, entity, asker):
        self.events.append((path, entity))

    def gone(self, connection):
        self.ended.append(connection)


def test_a_branch_is_read_changed_and_listened_to_like_all_else(tree):
    lamps = Lamps()
    tree.mount("lamp", lamps)
    bob, of_bob = client(tree, "bob")
    ann, of_ann = client(tree, "ann")
    hall, safe = ("lamp", "hall"), ("lamp", "safe")
    assert tree.children((), ann) == ["lamp"]
    tree.subscribe(("lamp",), ann)
    assert refusal(tree.put, hall, value(True), ann) == 403
    assert tree.put(hall, value(True), bob) == (value(True), False)
    tree.put(safe, value(True), bob)
    assert tree.post(("lamp",), value(True), bob) == "new"
    assert tree.patch(hall, False, bob) == value(False)
    tree.notify(hall, value("flash"), bob)
    tree.delete(hall, bob)
    told = [{k: v for k, v in each.items() if k in Seen} for each in of_ann.take()]
    assert told == [
        {"update": "hall", "entity": True},
        {"create": "new", "entity": True},
        {"update": "hall", "entity": False},
        {"delete": "hall", "entity": False},
    ]
    assert lamps.events == [(("hall",), value("flash"))]
    assert tree.children(("lamp",), ann) == ["new"]
    assert refusal(tree.get, hall, bob) == 404
    assert refusal(tree.access, ("lamp", "new"), bob) == 404
    tree.gone("c-ann")
    assert lamps.ended == ["c-ann"]
    assert of_bob.take() == []


Seen = {"create", "update", "delete", "entity"}


def test_a_merge_patch_of_what_is_not_json_is_refused(tree):
    bob, _ = client(tree, "bob")
    tree.put(LOGIN, Entity("application/sdp", b"v=0"), bob)
    assert refusal(tree.patch, LOGIN, {}, bob) == 409


def test_the_top_stays_as_it_is(tree):
    bob, _ = client(tree, "bob")
    open_tree = new_tree("cruws" * 4)
    for each in tree, open_tree:
        assert refusal(each.put, (), value(1), bob) == 405
        assert refusal(each.delete, (), bob) in (403, 405)
        assert refusal(each.patch, (), 1, bob) in (403, 405)
    assert tree.get((), bob) == value(None)


def test_a_mode_of_the_top_is_the_operators():
    tree = new_tree("cruws-----c---------")
    bob, _ = client(tree, "bob")
    nobody, _ = client(tree)
    assert refusal(tree.put, LOGIN, value(1), nobody) == 401
    tree.put(LOGIN, value(1), bob)
    assert tree.access(LOGIN, bob).data["mode"] == str(Mode.parse("cruws-----c---------"))
