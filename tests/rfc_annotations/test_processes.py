"""A change goes into functions that are imported already, or is known to need a new import."""

import importlib.util
import sys

import pytest

from rfc_annotations.processes import Functions

SOURCE = """\
TWO = 2


def double(number, by=2):
    return number * by


def at_import():
    return 1


ONE = at_import()


class Cup:
    size = 3

    def fill(self):
        return [number + 1 for number in range(2)]
"""


@pytest.fixture
def cup(tmp_path):
    """The module, and its functions as they are known after the import."""
    path = tmp_path / "cup.py"
    path.write_text(SOURCE)
    functions = Functions(str(path))
    spec = importlib.util.spec_from_file_location("cup", path)
    module = importlib.util.module_from_spec(spec)
    before = sys.getprofile()
    sys.setprofile(functions.note)
    spec.loader.exec_module(module)
    sys.setprofile(before)
    functions.find(SOURCE)
    return module, functions


@pytest.mark.parametrize(
    ("was", "now", "is_changed"),
    [
        ("number * by", "number - by", True),
        ("number + 1", "number - 1", True),  # within a list, which may be code of its own
        ("        return [", "        pass\n\n        return [", True),
        ("by=2", "by=3", False),
        ("TWO = 2", "TWO = 3", False),
        ("size = 3", "size = 4", False),
        ("return 1", "return 2", False),  # ONE would be what it was
        ("def at_import", "def at_exit", False),
    ],
)
def test_what_an_import_did_is_not_changed(cup, was, now, is_changed):
    module, functions = cup
    assert functions.change(SOURCE.replace(was, now)) is is_changed
    before = [8, [1, 2], 1]
    after = {"number * by": [2, [1, 2], 1], "number + 1": [8, [-1, 0], 1]}.get(was, before)
    assert [module.double(4), module.Cup().fill(), module.at_import()] == after


def test_the_same_source_changes_nothing(cup):
    module, functions = cup
    assert functions.change(SOURCE) and module.double(4) == 8
