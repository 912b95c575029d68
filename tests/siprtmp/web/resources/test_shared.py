"""Trees of several gateways: each judges by all that was agreed on before, and does the same."""

import pytest
from support.resources.trees import client, new_tree, refusal, value

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import Entity
from siprtmp.web.resources.messages import Request, answer
from siprtmp.web.resources.mode import Mode
from siprtmp.web.resources.nodes import Held, TreeLimits
from siprtmp.web.resources.shared import (
    AWAY,
    TRIES,
    Act,
    Edit,
    StaleError,
    read_edits,
    read_row,
    written_edits,
    written_row,
)
from siprtmp.web.resources.tree import Wishes

KEPT = Wishes(persistent=True)


class Place:
    """One gateway: its tree, and what of the common list of entries it has done."""

    def __init__(self, entries, **options):
        self.entries, self.done = entries, 0
        self.is_loaded, self.is_away, self.turns = True, False, 0
        self.tree = new_tree(shared=self, **options)

    def commit(self, edit, rows):
        self.rows = list(rows)
        if self.is_away:
            raise RemoteError(AWAY, 503)
        if self.done < len(self.entries) and edit.act is not Act.EVENT:
            self.hear()
            raise StaleError
        self.entries.append(written_edits([edit]))
        self.hear()

    def leave(self):
        self.turns += 1

    def hear(self):
        for entry in self.entries[self.done :]:
            self.done += 1
            for edit in read_edits(entry):
                self.tree.apply(edit)

    def ask(self, who, method, resource, **more):
        """The answer to a request."""
        try:
            said = {"method": method, "resource": resource} | more
            return answer(self.tree, Request.read(said), who)
        except RemoteError as error:
            return error

    def status(self, *request, **more):
        return self.ask(*request, **more).status


@pytest.fixture
def places():
    entries = []
    return Place(entries), Place(entries)


def test_a_change_at_one_is_told_at_the_other_and_not_to_its_cause(places):
    here, there = places
    (ann, own), (bob, heard) = client(here.tree, "ann"), client(there.tree, "bob")
    for place, who in ((here, ann), (there, bob)):
        assert place.status(who, "SUBSCRIBE", "/") == 200
    assert here.status(ann, "PUT", "/a", entity=1, persistent=True) == 201
    there.hear()
    assert there.status(bob, "SUBSCRIBE", "/a") == 200
    assert here.status(ann, "PATCH", "/a", entity={"b": 1}) == 200
    assert here.status(ann, "PATCH", "/a", view="access", entity={"group": "g"}) == 200
    assert here.status(ann, "NOTIFY", "/a", data=7) == 204
    assert here.status(ann, "DELETE", "/a") == 204
    there.hear()
    told = [(each["notify"], each.get("data", each.get("entity"))) for each in heard.take()]
    assert told == [
        *(("UPDATE", 1), ("PUT", {"b": 1}), ("UPDATE", {"b": 1}), ("NOTIFY", 7)),
        *(("DELETE", {"b": 1}), ("UPDATE", {"b": 1})),
    ]
    assert own.take() == []
    assert there.status(bob, "GET", "/a") == 404
    assert here.turns > 4


def test_rights_owners_and_modes_are_the_same_at_both(places):
    here, there = places
    (ann, _), (bob, _) = client(here.tree, "ann"), client(there.tree, "bob")
    mode = "cruws-r----r--------"
    made = here.ask(ann, "POST", "/", entity=1, persistent=True, mode=mode, group="g")
    there.hear()
    path = made.path
    assert there.tree.access(path, bob).data == {
        "owner": "ann",
        "group": "g",
        "mode": mode,
        "persistent": True,
    }
    assert refusal(there.tree.put, path, value(2), bob) == 403
    here.status(ann, "PATCH", f"/{path[0]}", view="access", entity={"mode": None})
    there.hear()
    assert there.tree.access(path, bob).data["group"] == "g"
    also, _ = client(there.tree, "ann")
    assert there.status(also, "PUT", f"/{path[0]}", entity=2) == 200
    here.hear()
    assert (
        here.tree.get(path, ann) == value(2) and here.tree.access(path, ann).data["owner"] == "ann"
    )


def test_of_two_that_replace_what_had_one_tag_one_is_refused(places):
    """Covers Resources §15.2 [judged-by-all-before]: and of two that make one."""
    here, there = places
    (ann, _), (bob, _) = client(here.tree, "ann"), client(there.tree, "ann")
    tag = here.ask(ann, "PUT", "/a", entity=1, persistent=True).tag
    there.hear()
    assert here.status(ann, "PUT", "/a", entity=2, **{"if-match": tag}) == 200
    assert there.status(bob, "PUT", "/a", entity=3, **{"if-match": tag}) == 412
    assert there.tree.get(("a",), bob) == value(2)
    once = {"entity": 1, "persistent": True, "if-none-match": "*"}
    assert [each.status(who, "PUT", "/b", **once) for each, who in ((here, ann), (there, bob))] == [
        201,
        412,
    ]
    assert here.status(ann, "DELETE", "/b") == 204
    assert there.status(bob, "PUT", "/b/c", entity=1, persistent=True) == 404
    assert here.turns == there.turns + 1 == 4


def test_a_gateway_that_is_never_fast_enough_gives_up():
    """A log that always has news for it answers 503 at last."""
    place = Place([])
    ann, _ = client(place.tree, "ann")
    tries = []

    def commit(edit, rows):
        tries.append(edit)
        raise StaleError

    place.commit = commit
    assert place.status(ann, "PUT", "/a", entity=1, persistent=True) == 503
    assert len(tries) == TRIES and place.turns == 1


def test_without_the_log_nothing_persistent_changes_and_all_else_goes_on(places):
    """Covers Resources §15.3 [changes-are-503]: what is known is read."""
    here, _ = places
    ann, _ = client(here.tree, "ann")
    here.status(ann, "PUT", "/a", entity=1, persistent=True)
    here.is_away = True
    for request in (
        *(("PUT", "/a"), ("PUT", "/b"), ("POST", "/a"), ("PATCH", "/a"), ("NOTIFY", "/a")),
        ("DELETE", "/a"),
    ):
        more = {} if request[0] == "DELETE" else {"entity": {}}
        more |= {"persistent": True} if request[0] in ("PUT", "POST") else {}
        assert here.status(ann, *request, **more) == 503, request
    assert here.tree.get(("a",), ann) == value(1)
    assert here.status(ann, "PUT", "/mine", entity=1) == 201
    assert here.status(ann, "DELETE", "/mine") == 204
    here.is_loaded = False
    assert here.status(ann, "GET", "/unknown") == 503
    assert here.status(ann, "PUT", "/unknown/b", entity=1) == 503


def test_what_is_transient_stays_at_its_gateway(places):
    """Covers Resources §15.1 [shared-stays-persistent]: and gives way to what is persistent."""
    here, there = places
    (ann, heard), (bob, _) = client(here.tree, "ann"), client(there.tree, "bob")
    assert here.status(ann, "PUT", "/a", entity=1) == 201
    assert here.status(ann, "PUT", "/a/b", entity=1) == 201
    assert here.status(ann, "PUT", "/a/b", entity=1, persistent=True) == 409
    here.status(ann, "SUBSCRIBE", "/a")
    assert here.entries == [] and there.status(bob, "GET", "/a") == 404
    assert there.status(bob, "PUT", "/a", entity=2, persistent=True) == 201
    here.hear()
    assert here.tree.get(("a",), ann) == value(2) and heard.take()[0]["notify"] == "PUT"
    assert here.tree.access(("a",), ann).data["owner"] == "bob"
    assert there.status(bob, "PUT", "/a", entity=3, persistent=False) == 409
    assert here.status(ann, "PUT", "/c", entity=1) == 201
    assert here.status(ann, "PUT", "/c", entity=2, persistent=True) == 200
    assert here.status(ann, "PUT", "/d", entity=2) == 201
    here.tree.gone(ann.connection)
    assert here.tree.get(("c",), ann) == value(2)
    assert [here.status(ann, "GET", each) for each in ("/a/b", "/d")] == [404, 404]
    there.hear()
    assert there.tree.get(("c",), bob) == value(2)
    # its request had to wait, and then there was no connection any more
    assert here.status(ann, "PUT", "/late", entity=1) == 409


def test_a_resource_ends_with_all_below_it_at_both(places):
    here, there = places
    (ann, _), (bob, heard) = client(here.tree, "ann"), client(there.tree, "bob")
    for path in ("/a", "/a/b", "/a/b/c"):
        here.status(ann, "PUT", path, entity=1, persistent=True)
    there.hear()
    there.status(bob, "PUT", "/a/b/mine", entity=1)
    there.status(bob, "SUBSCRIBE", "/a/b/mine")
    here.status(ann, "DELETE", "/a")
    assert here.rows == [(("a",), None), (("a", "b"), None), (("a", "b", "c"), None)]
    there.hear()
    assert heard.take()[0]["notify"] == "DELETE"
    assert there.tree.figures()["resources"] == here.tree.figures()["resources"] == 0


def test_limits_hold_for_what_all_have_made():
    entries = []
    here, there = (Place(entries, limits=TreeLimits(resources_of_one=2)) for _ in "ab")
    (ann, _), (also, _) = client(here.tree, "ann"), client(there.tree, "ann")
    stranger = Asker(None, frozenset(), "", "192.0.2.9")
    for name in ("a", "b"):
        assert here.status(ann, "PUT", f"/{name}", entity=1, persistent=True) == 201
        assert here.status(stranger, "PUT", f"/{name}{name}", entity=1, persistent=True) == 201
    assert there.status(also, "PUT", "/c", entity=1, persistent=True) == 507
    assert there.status(stranger, "PUT", "/cc", entity=1, persistent=True) == 507


def test_a_tree_that_reads_everything_tells_what_is_different(places):
    here, _ = places
    ann, heard = client(here.tree, "ann")
    for path in ("/a", "/b", "/b/c", "/d"):
        here.status(ann, "PUT", path, entity=1, persistent=True)
    here.status(ann, "PUT", "/mine", entity=1)
    kept = dict(here.tree.persistent())
    for path in ("/", "/a", "/b", "/d"):
        here.status(ann, "SUBSCRIBE", path)
    here.tree.renew(kept)
    assert heard.take() == []
    changed = {("a",): kept["a",]._replace(entity=value(2)), ("d",): kept["d",]}
    here.tree.renew(changed | {("e", "f"): kept["a",], ("e",): kept["a",]})
    told = [
        next(f"{word} {each['resource']} {each.get(word)}" for word in each if word != "resource")
        if each["notify"] != "UPDATE"
        else f"{next(w for w in ('create', 'update', 'delete') if w in each)} {each['resource']}"
        for each in heard.take()
    ]
    assert told == [
        *("delete /b", "notify /b DELETE", "delete /", "notify /a PUT", "update /", "create /"),
    ]
    assert here.tree.get(("e", "f"), ann) == value(1)
    assert here.tree.get(("mine",), ann) == value(1)


def test_rows_and_entries_are_read_as_they_are_written():
    mode = Mode.parse("cruws-r----r--------")
    for held in (
        Held(Entity("image/png", b"\0\xff"), None, None, None),
        Held(value({"a": [1.5, "ü"]}), "ann", "g", mode),
    ):
        found = read_row(written_row(held))
        assert found == held and found.entity.tag == held.entity.tag
        edits = [Edit(Act.PUT, ("a", "b"), held, "c-1"), Edit(Act.DELETE, ("a",))]
        assert read_edits(written_edits(edits)) == edits


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "7", "[1]", "[[]]", '[["put", "a", "", null]]', '[["fly", "/a", "", null]]'),
        *('[["put", "/a", "", "[]"]]', '[["put", "/a", "", 7]]', '[["put", 7, "", null]]'),
        '[["put", "/a", "", "[\\"text/plain\\", \\"aGk=\\", 7, null, null]"]]',
    ],
)
def test_what_no_gateway_has_written_is_refused(text):
    with pytest.raises(RemoteError):
        if read_edits(text) == []:
            raise RemoteError("nothing")
