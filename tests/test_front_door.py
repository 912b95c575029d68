"""The front doors: what may be relied on, loaded when it is asked for and not before."""

import ast
import importlib
import subprocess
import sys

import pytest
from test_layers import FRONT_DOORS, PATHS, level_of

from rfc_annotations.scan import shared_tree

DOORS = sorted(FRONT_DOORS)
by_door = pytest.mark.parametrize("door", DOORS)


def for_type_checkers(door):
    """The names that a door's imports under TYPE_CHECKING bind, with the module of each."""
    return {
        alias.asname: node.module
        for node in ast.walk(shared_tree(PATHS[door].read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


@by_door
def test_every_public_name_can_be_had_and_type_checkers_know_it(door):
    module = importlib.import_module(door)
    assert len(module.__all__) == len(set(module.__all__)) > 0
    assert for_type_checkers(door) == module._HOME_OF
    for name in module.__all__:
        value = getattr(module, name)
        assert value is getattr(importlib.import_module(module._HOME_OF[name]), name)
        assert name in dir(module)


@by_door
def test_what_is_not_public_is_not_there(door):
    module = importlib.import_module(door)
    with pytest.raises(AttributeError, match="no attribute 'NoSuchName'"):
        _ = module.NoSuchName


@by_door
def test_codecs_and_machines_load_no_gevent(door):
    """In an interpreter of its own: the package alone, then every name that does no I/O.

    The package itself loads only what chooses between sources and compiled modules.
    """
    module = importlib.import_module(door)
    inner = [name for name in module.__all__ if level_of(module._HOME_OF[name]) < 2]
    assert inner
    program = f"""
import sys, {door} as door
loaded = {{name for name in sys.modules if name.startswith({door!r} + ".")}}
inside = sorted(loaded - {{"{door}.compiled"}})
for name in {inner}:
    getattr(door, name)
print(inside, "gevent" in sys.modules, "socket" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[] False False\n", "")


@pytest.mark.parametrize("family, base", [("p2psip", "SipError"), ("rtmplite", "RtmpError")])
def test_one_base_for_all_errors_of_a_family(family, base):
    errors = importlib.import_module(f"{family}.errors")
    for error in (errors.LocalError, errors.RemoteError):
        assert issubclass(error, getattr(errors, base))
    assert not issubclass(errors.LocalError, errors.RemoteError)
