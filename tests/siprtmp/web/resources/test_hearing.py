"""An event is judged and written once for all subscribers of a kind, and told to each as it may."""

from dataclasses import replace
from itertools import product

import pytest
from support.resources.trees import Box, new_tree, value

from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.hearing import Hearing
from siprtmp.web.resources.mode import LETTERS, Mode, Right
from siprtmp.web.resources.nodes import Access
from siprtmp.web.resources.subscriptions import Event
from siprtmp.web.resources.tree import Wishes

USERS = ("ann", "bob", None)
GROUPS = (frozenset(), frozenset({"team"}))
HOSTS = ("127.0.0.1", "192.0.2.7")
TWICE = (1, 2)  # connections of each kind


@pytest.fixture
def crowd():
    """A tree, and two clients of each kind with their boxes."""
    tree = new_tree(LETTERS * 4)
    found = {}
    for number, (user, groups, host, _) in enumerate(product(USERS, GROUPS, HOSTS, TWICE)):
        asker = Asker(user, groups, f"c{number}", host)
        found[asker] = Box()
        tree.connect(asker.connection, found[asker])
    return tree, found


class Guarded:
    """A branch with one resource that those may hear of whom `allows` names."""

    def __init__(self, allows):
        self.allows, self.asked = allows, []

    def attach(self, teller):
        self.teller = teller

    def may(self, path, right, asker):
        self.asked.append((path, right, asker.user, asker.groups, asker.host))
        return self.allows(asker)

    def read(self, path, asker=None):
        return value(0)


@pytest.mark.parametrize(
    "allows",
    [
        lambda asker: asker.user == "ann",
        lambda asker: "team" in asker.groups,
        lambda asker: asker.host == "127.0.0.1",
    ],
)
def test_a_branch_is_asked_once_for_each_kind_and_each_hears_what_it_may(crowd, allows):
    tree, clients = crowd
    guarded = Guarded(lambda asker: True)
    tree.mount("gate", guarded)
    for asker in clients:
        tree.subscribe(("gate",), asker)
    guarded.allows, guarded.asked = allows, []
    guarded.teller.changed((), Change.UPDATE, value(1))
    assert {asker: len(box.texts) for asker, box in clients.items()} == {
        asker: int(allows(asker)) for asker in clients
    }
    rights = [each for each in guarded.asked if each[1] is Right.SUBSCRIBE]
    assert len(rights) == len(set(rights)) == len(clients) / len(TWICE)


def test_a_text_is_written_once_and_each_class_gets_its_own(crowd):
    tree, clients = crowd
    maker, stranger = list(clients)[-1], list(clients)[-2]  # anonymous, of one kind
    place = ("place",)
    tree.put(place, value(0), maker, Wishes(group="team"))
    for asker in clients:
        tree.subscribe(place, asker)
    author = Asker(None, frozenset(), "author", "h")
    tree.connect("author", Box())
    assert replace(maker, connection="") == replace(stranger, connection="")
    # self, group, users, anonymous
    tree.set_access(place, {"mode": LETTERS + "----s" + "-r--s" + "--u--"}, maker)
    tree.put(place, value("news"), author)
    heard = {asker: box.texts for asker, box in clients.items()}
    whole = [texts for asker, texts in heard.items() if texts and "news" in texts[0]]
    alone = [texts for asker, texts in heard.items() if texts and "news" not in texts[0]]
    assert len({id(texts[0]) for texts in whole}) == len({id(texts[0]) for texts in alone}) == 1
    for asker, texts in heard.items():
        is_maker, is_team = asker is maker, "team" in asker.groups
        assert len(texts) == (is_maker or is_team or asker.user is not None)
        assert (texts in whole) == (is_maker or (asker.user is not None and not is_team))


def test_the_owner_of_a_child_alone_hears_of_it_where_others_may_not_read_it(crowd):
    tree, clients = crowd
    maker = list(clients)[-1]
    for asker in clients:
        tree.subscribe((), asker)
    tree.put(("child",), value(0), maker, Wishes(mode=LETTERS + "--u--" * 3))
    author = Asker(None, frozenset(), "author", "h")
    tree.put(("child",), value(1), author)
    assert {asker.connection for asker, box in clients.items() if box.texts} == {maker.connection}


def test_an_event_of_before_is_told_to_those_who_might_hear_of_it_then():
    ann, bob = (Asker(user, frozenset(), user, "h") for user in ("ann", "bob"))
    then, now = (
        Access(Mode.parse(LETTERS + "----s" * 3), None, frozenset(users), frozenset())
        for users in ({"ann"}, {"ann", "bob"})
    )
    event = Event(1, ("a",), ("a",), "PUT", None, value("news"), then, "")
    hearing = Hearing(event, now, now)
    assert ["news" in hearing.text(asker) for asker in (ann, bob)] == [True, False]
