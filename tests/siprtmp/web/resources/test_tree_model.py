"""The rules of access, held to a model that knows nothing of how the tree keeps resources."""

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.resources.trees import Box, new_tree, value

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.mode import DEFAULT_MODE, LETTERS
from siprtmp.web.resources.tree import Wishes

PATHS = [("a",), ("b",), ("a", "b"), ("a", "c"), ("b", "a"), ("a", "b", "c")]
CLIENTS = {
    "bob": Asker("bob", frozenset({"team"}), "bob", "h"),
    "bob2": Asker("bob", frozenset(), "bob2", "h"),
    "ann": Asker("ann", frozenset({"team"}), "ann", "h"),
    "eve": Asker("eve", frozenset(), "eve", "h"),
    "nobody": Asker(None, frozenset(), "nobody", "h"),
    "nobody2": Asker(None, frozenset(), "nobody2", "h"),
    "by http": Asker(None, frozenset(), "", "h"),
}
MODES = st.one_of(
    st.none(),
    st.lists(st.sampled_from([LETTERS, "-----", "-r--s", "c--w-", "--u--"]), min_size=4).map(
        lambda each: "".join(each[:4])
    ),
)
A_PATH = st.sampled_from(PATHS)
A_CLIENT = st.sampled_from(sorted(CLIENTS))


class Item:
    """What the model knows of a resource."""

    def __init__(self, data, asker, connection, mode, group):
        self.data, self.owner, self.maker = data, asker.user, asker.connection
        self.connection, self.mode, self.group = connection, mode, group


class TreeMachine(RuleBasedStateMachine):
    """Requests of all kinds, by clients of all classes."""

    @initialize(mode=st.sampled_from([DEFAULT_MODE, LETTERS * 4, LETTERS + "c----" * 3]))
    def begin(self, mode):
        self.tree, self.top, self.items = new_tree(mode), mode, {}
        self.boxes, self.heard = {}, {}
        self.subscribed = set()
        for name, asker in CLIENTS.items():
            if asker.connection:
                self.boxes[name] = Box()
                self.tree.connect(asker.connection, self.boxes[name])
        for path in PATHS[:4]:  # enough to begin with: most requests find something
            owner = ("bob", "nobody")[path[-1] == "b"]
            self.put(path, owner, 0, None, "team", None)
            for name in self.boxes:
                self.subscribe(path, name)

    # -- the model's own reading of the specification -----------------------------------

    def line(self, path):
        above = [path[:length] for length in range(1, len(path) + 1)]
        return [self.items[each] for each in above if each in self.items]

    def is_self(self, path, asker):
        for item in self.line(path):
            if item.owner is not None:
                if item.owner == asker.user:
                    return True
            elif item.connection and item.connection == asker.connection:
                return True
        return False

    def may(self, path, letter, asker):
        line = self.line(path)
        mode = next((each.mode for each in reversed(line) if each.mode), self.top)
        group = next((each.group for each in reversed(line) if each.group), None)
        if self.is_self(path, asker):
            place = 0
        elif group in asker.groups:
            place = 1
        else:
            place = 3 if asker.user is None else 2
        return letter in mode[5 * place : 5 * place + 5]

    def refusal(self, asker):
        return 401 if asker.user is None else 403

    def remove(self, path, origin):
        for each in sorted(self.items, key=len, reverse=True):
            if each[: len(path)] == path:
                self.tell(each, each, origin)
                self.tell(each[:-1], each, origin)
                self.subscribed = {pair for pair in self.subscribed if pair[0] != each}
        gone = [each for each in self.items if each[: len(path)] == path]
        for each in gone:
            del self.items[each]

    def tell(self, resource, subject, origin):
        """Count a notification for each subscriber that the specification lets hear of it."""
        for place, name in self.subscribed:
            asker = CLIENTS[name]
            hears = place == resource and asker.connection != origin
            hears = hears and self.may(resource, "s", asker)
            if hears and (resource == subject or self.may(subject, "r", asker)):
                shows = self.may(subject, "r", asker)
                self.heard.setdefault(name, []).append((resource, shows))

    def check(self, expected, action, *args):
        try:
            result = action(*args)
        except RemoteError as error:
            assert error.status == expected
            return None
        assert expected == 0
        return result

    # -- requests ------------------------------------------------------------------------

    @rule(
        path=A_PATH,
        name=A_CLIENT,
        data=st.integers(0, 3),
        mode=MODES,
        group=st.sampled_from([None, "team"]),
        persistent=st.sampled_from([None, True, False]),
    )
    def put(self, path, name, data, mode, group, persistent):
        asker, item = CLIENTS[name], self.items.get(path)
        above = self.items.get(path[:-1])
        connection = "" if persistent else asker.connection
        wishes = Wishes(mode=mode, group=group, persistent=persistent)
        expected = 0
        if item is None:
            if not self.may(path[:-1], "c", asker):
                expected = self.refusal(asker)
            elif path[:-1] and above is None:
                expected = 404
            elif (not connection and not persistent) or (
                above is not None and above.connection and not connection
            ):
                expected = 409
        else:
            is_own = item.owner == asker.user if item.owner else self.is_maker(item, asker)
            if not self.may(path, "u", asker) or (
                not is_own and (mode or group or persistent not in (None, not item.connection))
            ):
                expected = self.refusal(asker)
            elif is_own:
                connection = self.taken(item, asker, persistent)
                if self.clashes(path, item, connection):
                    expected = 409
            else:
                connection = item.connection
        self.check(expected, self.tree.put, path, value(data), asker, wishes)
        if expected:
            return
        if item is None:
            self.items[path] = Item(data, asker, connection, mode, group)
            self.tell(path[:-1], path, asker.connection)
            return
        item.data, item.connection = data, connection
        item.mode, item.group = mode or item.mode, group or item.group
        self.tell(path, path, asker.connection)
        self.tell(path[:-1], path, asker.connection)

    def is_maker(self, item, asker):
        return bool(item.connection) and item.connection == asker.connection

    def taken(self, item, asker, persistent):
        if persistent:
            return ""
        if item.connection:
            return asker.connection or item.connection
        return asker.connection if persistent is False else ""

    def clashes(self, path, item, connection):
        if connection == item.connection:
            return False
        above = self.items.get(path[:-1])
        if not connection:
            return above is not None and bool(above.connection)
        below = [each for each in self.items if each[:-1] == path]
        return any(not self.items[each].connection for each in below)

    @rule(path=A_PATH, name=A_CLIENT)
    def get(self, path, name):
        asker = CLIENTS[name]
        expected = 0 if path in self.items else 404
        expected = expected if self.may(path, "r", asker) else self.refusal(asker)
        got = self.check(expected, self.tree.get, path, asker)
        if got is not None:
            assert got.data == self.items[path].data
            names = [each[-1] for each in self.items if each[:-1] == path]
            seen = [each for each in names if self.may((*path, each), "r", asker)]
            assert sorted(self.tree.children(path, asker)) == sorted(seen)

    @rule(path=A_PATH, name=A_CLIENT)
    def delete(self, path, name):
        asker = CLIENTS[name]
        expected = 0 if path in self.items else 404
        expected = expected if self.may(path, "u", asker) else self.refusal(asker)
        self.check(expected, self.tree.delete, path, asker)
        if not expected:
            self.remove(path, asker.connection)

    @rule(path=A_PATH, name=A_CLIENT, mode=MODES, group=st.sampled_from([None, "team"]))
    def set_access(self, path, name, mode, group):
        asker = CLIENTS[name]
        expected = 0 if path in self.items else 404
        if not expected and not self.is_self(path, asker):
            expected = self.refusal(asker)
        self.check(expected, self.tree.set_access, path, {"mode": mode, "group": group}, asker)
        if not expected:
            self.items[path].mode, self.items[path].group = mode, group

    @rule(path=A_PATH, name=A_CLIENT)
    def subscribe(self, path, name):
        asker = CLIENTS[name]
        expected = 0 if path in self.items else 404
        expected = expected if self.may(path, "s", asker) else self.refusal(asker)
        expected = expected if asker.connection else 405
        self.check(expected, self.tree.subscribe, path, asker)
        if not expected:
            self.subscribed.add((path, name))

    @rule(path=A_PATH, name=A_CLIENT)
    def notify(self, path, name):
        asker = CLIENTS[name]
        expected = 0 if path in self.items else 404
        expected = expected if self.may(path, "w", asker) else self.refusal(asker)
        self.check(expected, self.tree.notify, path, value("event"), asker)
        if not expected:
            for place, other in self.subscribed:
                listener = CLIENTS[other]
                is_told = place == path and listener.connection != asker.connection
                if is_told and self.may(path, "s", listener):
                    self.heard.setdefault(other, []).append((path, True))

    @rule(name=st.sampled_from(sorted(each for each in CLIENTS if each != "by http")))
    def goes(self, name):
        connection = CLIENTS[name].connection
        self.subscribed = {pair for pair in self.subscribed if pair[1] != name}
        self.tree.gone(connection)
        for path in sorted(self.items, key=len):
            if path in self.items and self.items[path].connection == connection:
                self.remove(path, connection)
        self.tree.connect(connection, self.boxes[name])

    @invariant()
    def each_has_heard_what_it_may(self):
        for name, box in getattr(self, "boxes", {}).items():
            told = []
            for text in box.texts:
                message = json.loads(text)
                place = tuple(message["resource"][1:].split("/"))
                told.append((place, "entity" in message or "data" in message))
            box.texts.clear()
            assert sorted(told) == sorted(self.heard.pop(name, []))


TestTree = TreeMachine.TestCase
TestTree.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
