"""The rooms of the house, and which may know which.

Every arrow goes one way, between rooms and inside them, imports for type annotations included; the
SIP family and the RTMP family do not know each other, nor do the gateway and the laboratory, which
know both; only the edge touches the world.  No class is cut in two by a base that exists for a
single heir.
"""

import ast
import sys
from configparser import ConfigParser
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from rfc_annotations.anchors import blocks
from rfc_annotations.scan import shared_tree
from rfc_annotations.trees import walk

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
FAMILIES = ("p2psip", "rtmplite", "rtclab", "siprtmp")
KNOWN = dict.fromkeys(("rtclab", "siprtmp"), ("p2psip", "rtmplite"))  # the others know none
LEVELS = ("codec", "machine", "edge", "program")

# What tells the time, rolls dice, waits or talks to anybody.
WORLD = {
    *("gevent", "greenlet", "socket", "ssl", "select", "selectors", "asyncio", "threading"),
    *("time", "random", "secrets", "uuid", "subprocess", "sqlite3"),
}
WORLDLY = ("urandom", "monkey")  # and these attributes of anything
STILL = {"siprtmp.core"}  # of the edge's level for the settings it reads; no more of the world
# libraries that compute and nothing else
PURE = {"hypothesis", "Crypto", "cryptography", "dns", "av", "pylibsrtp"}

# Modules that import each other in a circle, and bases with a single heir: what is left of them.
# These lists may only shrink, and an entry that no longer holds is a failure.
CIRCLES = set()
HALVES = set()


def read_table(text):
    """The rooms in order: {room: (level, rooms it may import)}, and the levels of modules."""
    rooms, modules, known = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if line.startswith(" "):  # more of the line before
            known.update(line.split())
            continue
        level, room, *others = line.split()
        if room.startswith("["):
            modules[room.strip("[]")] = LEVELS.index(level)
            continue
        known = set(others)
        rooms[room] = LEVELS.index(level), known
    return rooms, modules


ROOMS, MODULES = read_table((ROOT / "tests/rooms.txt").read_text())


def name_of(path):
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {name_of(path): path for path in sorted(SRC.rglob("*.py"))}
# A front door shows names from all rooms of its family, and loads none before it is asked: its
# imports are for type checkers.  The rooms themselves name each other, and don't go by the door.
FRONT_DOORS = {
    name for name, path in PATHS.items() if path.stem == "__init__" and "_HOMES" in path.read_text()
}


@cache
def tree_of(path):
    return shared_tree(path.read_text())


def statements(tree):
    return chain.from_iterable(blocks(tree))


def room_of(module):
    """The folder a module stands in; a package's own `__init__` stands in it."""
    return module if module in ROOMS else module.rpartition(".")[0]


def level_of(module):
    return MODULES.get(module, ROOMS[room_of(module)][0])


def imports(tree, known):
    """Yield (line, module) for all that a module imports, wherever in it."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield node.lineno, inner if inner in known else node.module


def trespasses(module, source, known):
    """Yield what a module imports against the arrows."""
    family, room, own = module.partition(".")[0], room_of(module), level_of(module)
    is_still = own < LEVELS.index("edge") or room in STILL
    tree = shared_tree(source)
    for line, name in imports(tree, known):
        top = name.partition(".")[0]
        where = f"{module}:{line} imports {name}"
        if name is None or top == "":
            yield f"{where}: say the whole name"
        elif top == "rfc_annotations":
            yield f"{where}: the product does not know the tool"
        elif name in FRONT_DOORS:
            yield f"{where}: the front door is for others, name the module"
        elif module in FRONT_DOORS and top == family:
            continue
        elif top in FAMILIES:
            yield from family_trespasses(where, room, own, name, family)
        elif is_still and top in WORLD:
            yield f"{where}: only the edge touches the world"
        elif top == "hypothesis" and "strategies" not in module and own < LEVELS.index("program"):
            yield f"{where}: strategies are for tests"
        elif own < LEVELS.index("edge") and top not in sys.stdlib_module_names and top not in PURE:
            yield f"{where}: a codec or a machine stands alone"
    named = any(word in source for word in WORLDLY)
    for node in walk(tree) if named and is_still else ():
        if isinstance(node, ast.Attribute) and node.attr in WORLDLY:
            yield f"{module}:{node.lineno} uses {node.attr}: only the edge touches the world"


def family_trespasses(where, room, own, name, family):
    """Yield what is wrong with importing a module of ours."""
    top = name.partition(".")[0]
    if name in (f"{family}.errors", family):
        return
    if top not in (family, *KNOWN.get(family, ())):
        yield f"{where}: {family} does not know {top}"
    elif name.endswith(".errors"):
        return
    elif level_of(name) > own:
        yield f"{where}: that is further out"
    elif room_of(name) not in (room, *ROOMS[room][1]):
        yield f"{where}: the table has no arrow from {room} to {room_of(name)}"


def test_the_table_has_every_room_and_no_other():
    assert {room_of(name) for name in PATHS} == ROOMS.keys()
    assert MODULES.keys() <= PATHS.keys()


def test_rooms_know_only_what_stands_above_them():
    above = set()
    for room, (_, others) in ROOMS.items():
        assert others <= above, f"{room}: {others - above} must stand above it"
        above.add(room)


def test_every_arrow_of_the_table_is_used():
    used = {room: set() for room in ROOMS}
    for module, path in PATHS.items():
        if module in FRONT_DOORS:
            continue
        for _, name in imports(tree_of(path), PATHS):
            if name.partition(".")[0] in FAMILIES and not name.endswith(".errors") and "." in name:
                used[room_of(module)].add(room_of(name))
    idle = {room: others - used[room] for room, (_, others) in ROOMS.items()}
    assert {room: others for room, others in idle.items() if others} == {}


def test_every_import_follows_the_arrows():
    found = [
        text for name, path in PATHS.items() for text in trespasses(name, path.read_text(), PATHS)
    ]
    assert found == []


def test_nobody_outside_media_names_a_stream():
    """A call, its users and the edge see a session: see docs/7-decisions, one call, one object."""
    streams = {f"siprtmp.media.{kind}_stream" for kind in ("audio", "video", "tunnel")}
    assert streams <= PATHS.keys()
    users = {
        module
        for module, path in PATHS.items()
        for _, name in imports(tree_of(path), PATHS)
        if name in streams
    }
    assert {room_of(module) for module in users} == {"siprtmp.media"}


def reaches(source):
    """Yield the lines that reach through a call to what its session has."""
    for node in ast.walk(shared_tree(source)):
        match node:
            case ast.Attribute(value=ast.Attribute(value=of, attr="media")):
                if name_used(of) in ("call", "_call"):
                    yield node.lineno


def test_nobody_reaches_through_a_call_to_its_session():
    found = {name: [*reaches(path.read_text())] for name, path in PATHS.items()
             if name.startswith("siprtmp.") and name != "siprtmp.calls.call"}  # fmt: skip
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert [*reaches("self._call.media.publish(8, 0, b'')\n\ncall.media.terms.plan")] == [1, 3]
    assert [*reaches("MixedCall(call.media, rate)")] == []


def test_each_part_of_the_gateway_gets_its_own_settings():
    """Whole, they are for what reads and checks them, and for `Gateway`, which takes them apart."""
    whole = "siprtmp.settings.table.Settings"
    users = {
        module
        for module, path in PATHS.items()
        for node in statements(tree_of(path))
        if isinstance(node, ast.ImportFrom)
        and whole in {f"{node.module}.{alias.name}" for alias in node.names}
    }
    others = {user for user in users if room_of(user) != "siprtmp.settings"}
    assert others == {"siprtmp.edge.gateway"}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("p2psip.sip.uri", "from p2psip.transaction.key import Key"),
        ("p2psip.sip.uri", "if TYPE_CHECKING:\n    from p2psip.transaction.key import Key"),
        ("p2psip.sip.uri", "def f():\n    import time"),
        ("p2psip.transaction.client", "from p2psip import net"),
        ("p2psip.transaction.client", "import os\nos.urandom(3)"),
        ("p2psip.net.udp", "from rtmplite.errors import RemoteError"),
        ("rtmplite.rtmp.wire.chunk_reader", "from rtmplite.rtmp.connection import Connection"),
        ("rtmplite.live.streams", "from rtmplite.net.server.rtmp_listener import Server"),
        ("rtmplite.live.streams", "from rtmplite.rtmp.connection import Connection"),
        ("rtmplite.live.streams", "import dpkt"),
        ("rtmplite.amf.amf0", "from rtmplite.strategies.amf import values"),
        ("rtmplite.amf.amf0", "from hypothesis import strategies"),
        ("p2psip.sip.uri", "from p2psip import Agent"),
        ("siprtmp.calls.call", "from p2psip import Request"),
        ("p2psip", "from rtmplite.amf import amf0"),
        ("siprtmp.calls.call", "from siprtmp.edge.gateway import Gateway"),
        ("siprtmp.edge.gateway", "import rfc_annotations"),
        ("siprtmp.__main__", "from rtclab.lint import command"),
        ("siprtmp.__main__", "import rtclab.__main__"),
        ("rtclab.lint.command", "from siprtmp.operation.arguments import Parser"),
        ("rtclab.lint.command", "import siprtmp"),
        ("p2psip.__main__", "from rtclab.explain import command"),
    ],
)
def test_a_trespass_is_noticed(module, source):
    assert list(trespasses(module, source, PATHS))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("p2psip.transaction.client", "from p2psip.sip.uri import Uri"),
        ("p2psip.net.udp", "import socket, time, gevent"),
        ("p2psip", "from p2psip.dialog.dialog import Dialog"),
        ("p2psip.strategies.sip", "from hypothesis import strategies"),
        ("siprtmp.media.translate.audio_formats", "from p2psip.rtp.payload import speex"),
        ("siprtmp.edge.gateway", "import gevent\nfrom p2psip.net import udp"),
    ],
)
def test_what_the_arrows_allow_is_let_pass(module, source):
    assert list(trespasses(module, source, PATHS)) == []


def in_circles(graph):
    """The keys of a graph from which its arrows lead back to themselves."""
    found = set()
    for start in graph:
        reached, ahead = set(), [*graph[start]]
        while ahead:
            if (at := ahead.pop()) not in reached:
                reached.add(at)
                ahead += graph.get(at, ())
        if start in reached:
            found.add(start)
    return found


def test_no_modules_import_each_other_in_a_circle():
    graph = {
        module: {name for _, name in imports(tree_of(path), PATHS) if name in PATHS}
        for module, path in PATHS.items()
        if module not in FRONT_DOORS
    }
    assert in_circles(graph) == CIRCLES


def test_a_circle_is_noticed():
    graph = {"first": {"second", "other"}, "second": {"third"}, "third": {"first"}, "other": set()}
    assert in_circles(graph) == {"first", "second", "third"}
    assert in_circles({**graph, "third": {"other"}}) == set()


def name_used(node):
    """The last part of a name, with or without parameters of its type; None for anything else."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return getattr(node, "id", getattr(node, "attr", None))


def half_classes(trees, promised=()):
    """The classes that have a single heir and are never made, nor `promised` to users.

    A class is made where its name is called, or is passed on or kept as a value.
    """
    heirs, defined, made = {}, set(), set(promised)
    for node in chain.from_iterable(map(walk, trees)):
        match node:
            case ast.ClassDef(name=name, bases=bases):
                if "Protocol" not in (parents := [name_used(base) for base in bases]):
                    defined.add(name)
                for parent in parents:
                    heirs.setdefault(parent, set()).add(name)
            case ast.Call(func=func, args=args):
                made.add(name_used(func))
                if name_used(func) not in ("isinstance", "issubclass", "cast"):
                    made |= {name_used(arg) for arg in args}
            case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.Return(value=value):
                made.add(name_used(value))
    return {name for name in defined - made if len(heirs.get(name, ())) == 1}


def test_no_base_class_exists_for_a_single_heir():
    promised = set()
    for door in FRONT_DOORS:
        promised |= {alias.asname for node in walk(tree_of(PATHS[door]))
                     if isinstance(node, ast.ImportFrom) for alias in node.names}  # fmt: skip
    assert half_classes(map(tree_of, PATHS.values()), promised) == HALVES


@pytest.mark.parametrize(
    ("source", "halves"),
    [
        ("class Half: pass\nclass Whole(Half): pass", {"Half"}),
        ("class Half(Generic[T]): pass\nclass Whole(Half[int]): pass\nWhole()", {"Half"}),
        ("class Base: pass\nclass Heir(Base): pass\nBase()", set()),
        ("class Base: pass\nclass Heir(Base): pass\nkind: type[Base] = Base", set()),
        ("class Base: pass\nclass Heir(Base): pass\nclass Other(Base): pass", set()),
        ("class Base: pass\nclass Heir(Base): pass\nisinstance(x, Base)", {"Base"}),
        ("class Asked(Protocol): pass\nclass Answer(Asked): pass", set()),
    ],
)
def test_a_half_of_a_class_is_noticed(source, halves):
    assert half_classes([ast.parse(source)]) == halves


def test_public_classes_have_names_of_their_own():
    """The states, events and deeds of a table are always read beside their figure."""
    places = {}
    for name, path in PATHS.items():
        for node in tree_of(path).body:
            shared = isinstance(node, ast.ClassDef) and node.name in ("State", "Event", "Do")
            if isinstance(node, ast.ClassDef) and node.name[0] != "_" and not shared:
                places.setdefault((name.partition(".")[0], node.name), []).append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_every_room_is_installed():
    """A room that setup.cfg does not name is in no wheel."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    rooms = {name_of(path) for path in SRC.rglob("__init__.py")}
    assert {*config["options"]["packages"].split()} == rooms | {"rfc_annotations"}
