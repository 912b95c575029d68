"""A claim is tied to the lines that keep its promise."""

import ast

from rfc_annotations.anchors import Anchors
from rfc_annotations.scan import test_owner as owner

SOURCE = '''\
"""A module."""

TABLE = {
    "a": 1,  # entry
}  # 5


class Box:
    """A class."""

    size: int = 1  # 11

    # above the method
    @property
    def lid(self):
        """A method."""
        # above the statement
        value = (
            1,
            2,  # 20
        )
        if value:  # 22
            return 1  # 23
        else:  # 24
            value = 2
        match value:
            case 1:  # 27
                return 3
            case 2: return 4  # 29
        return 5


def last():
    return 6
    # after it all
'''
ANCHORS = Anchors(ast.parse(SOURCE))
FUNCTIONS = {*range(18, 31), 34}


def test_a_comment_in_a_function_stands_for_its_statement():
    assert ANCHORS.of_comment(20) == {18, 19, 20, 21}
    assert ANCHORS.of_comment(17) == {18, 19, 20, 21}
    assert ANCHORS.of_comment(22) == {22}
    assert ANCHORS.of_comment(23) == {23}
    assert ANCHORS.of_comment(29) == {29}


def test_a_branch_is_met_by_taking_it_not_by_considering_it():
    assert ANCHORS.of_comment(24) == {25}
    assert ANCHORS.of_comment(27) == {28}


def test_a_comment_below_a_condition_stands_for_what_it_leads_to():
    source = (
        "def f(a):\n    # 2\n    if (\n        # 4\n        a\n    ):\n        # 7\n        a()\n"
    )
    anchors = Anchors(ast.parse(source))
    assert anchors.of_comment(2, 4) == anchors.of_comment(4, 8) == {3, 4, 5, 6, 7}
    assert anchors.of_comment(7, 8) == {8}


def test_what_runs_at_import_stands_for_the_functions_that_use_it():
    for line in (4, 5, 11):
        assert ANCHORS.of_comment(line) == FUNCTIONS
    assert ANCHORS.of_comment(35) == FUNCTIONS


def test_a_comment_that_nothing_follows_is_met_by_nothing():
    assert ANCHORS.of_comment(35, 4) == {35}
    assert ANCHORS.of_comment(31, 8) == {31}
    assert ANCHORS.of_comment(31, 0) == {34}
    assert ANCHORS.of_comment(13, 4) == set(range(18, 31))


def test_a_comment_above_a_method_and_a_docstring_stand_for_the_whole():
    assert ANCHORS.of_comment(13) == set(range(18, 31))
    box = ANCHORS.tree.body[2]
    assert ANCHORS.of_docstring(box.body[2]) == set(range(18, 31))
    assert ANCHORS.of_docstring(box) == set(range(18, 31))
    assert ANCHORS.of_docstring(ANCHORS.tree) == FUNCTIONS


def test_a_module_without_functions_cannot_be_traced():
    assert Anchors(ast.parse("X = 1  # claim\n")).of_comment(1) == frozenset()


TESTS = """\
class Machine(RuleBasedStateMachine):
    @rule()
    def step(self): ...

class Other(RuleBasedStateMachine):
    @rule()
    def step(self): ...

TestMachine = Machine.TestCase

def helper(): ...

def test_other():
    run_state_machine_as_test(Other)

class TestGroup:
    def test_one(self): ...

    def other(self): ...
"""


def test_every_line_of_a_test_module_speaks_for_somebody():
    tree = ast.parse(TESTS)
    spans = {}
    for line in range(1, 20):
        spans.setdefault(owner(tree, line), []).append(line)
    assert spans == {
        "TestMachine": [1, 2, 3],
        "": [4, 8, 9, 10, 11, 12, 15],
        "test_other": [5, 6, 7, 13, 14],
        "TestGroup": [16, 18, 19],
        "TestGroup::test_one": [17],
    }
