"""Mutants are made of what a claim bears on, and of nothing else."""

import ast

import pytest

from rfc_annotations.mutate import Mutator

SOURCE = '''\
"""Tea."""

from enum import IntEnum
from typing import Final


class Leaf(IntEnum):
    GREEN = 1
    BLACK = 2


MINUTES: Final = 4  # 13: a constant
TABLE = {
    Leaf.GREEN: (Leaf.BLACK,),
    Leaf.BLACK: (3, "x" "y"),  # 16: a row
}


def brew(pot, minutes, warm):
    """Brew: 21."""
    # 22: alone
    pot.fill(f"é {minutes + 1}")
    if warm and minutes >= 4:  # 24: a condition
        pot.steep(1 << 2)
    match pot.kind:
        case 1 if not warm:  # 27: a case
            return pot
        case _:
            pot.size, name = 3, "pot"  # 30
    return None
'''


def texts(line, source=SOURCE):
    mutator = Mutator("tea.py", source)
    number = next(n for n, text in enumerate(source.splitlines(), 1) if f"{line}" in text)
    found = list(mutator.of_claim(number))
    for mutant in found:
        changed = mutant.apply(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
        lines = zip(source.splitlines(), changed.splitlines(), strict=True)
        assert [n for n, (a, b) in enumerate(lines, 1) if a != b] == [mutant.line]
        assert mutant.was in source and mutant.now in changed
    return [mutant.now for mutant in found]


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        (13, ["MINUTES: Final = 5"]),
        (
            16,
            [
                "Leaf.GREEN: (3, 'x' \"y\"),".replace("'x' \"y\"", '"x" "y"'),
                'Leaf.BLACK: (4, "x" "y"),',
                "Leaf.BLACK: (3, 'xyx'),",
                "",
            ],
        ),
        (22, ["pass"]),
        (
            24,
            [
                "if (warm or minutes >= 4):",
                "if warm and (minutes > 4):",
                "if warm and (minutes < 4):",
                "if warm and minutes >= 5:",
                "if not (warm and minutes >= 4):",
            ],
        ),
        (27, ["case 2 if not warm:", "case 1 if (warm):", "case 1 if True:", "pass"]),
        (30, ["pass", 'pot.size, name = 4, "pot"', "pot.size, name = 3, 'potx'"]),
    ],
)
def test_a_comment_bears_on_its_statement_row_or_case(line, mutants):
    assert sorted(texts(f"# {line}")) == sorted(mutants)


def test_a_docstring_bears_on_its_function():
    found = texts("Brew: 21")
    assert "pot.steep(1 >> 2)".replace("1 >> 2", "(1 >> 2)") in found and len(found) == 18
    assert not any("ée" in text or "Brew" in text for text in found)


def test_an_exception_may_go_uncaught():
    source = "def f(x):\n    try:\n        x()\n    except KeyError:  # claim\n        pass\n"
    assert texts("claim", source=source) == ["except ():"]


def test_the_docstring_of_a_class_bears_on_its_members_or_fields_or_else_its_functions():
    source = 'class Leaf(IntEnum):\n    """Claim."""\n\n    GREEN = 1\n    BLACK = 2\n'
    assert texts("Claim", source=source) == ["GREEN = 2", "BLACK = 3"]
    grown = f"{source}\n    def steep(self):\n        return 3\n"
    assert texts("Claim", source=grown) == ["GREEN = 2", "BLACK = 3"]
    fields = 'class Leaf:\n    """Claim."""\n\n    size: int\n    name: str\n'
    assert texts("Claim", source=fields) == ["pass", "pass"]
    function = 'class Leaf:\n    """Claim."""\n\n    def steep(self):\n        return 3\n'
    assert texts("Claim", source=function) == ["pass", "return 4"]


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("return max(x, y)", ["pass", "return min(x, y)"]),
        ("return [y for y in x if y]", ["pass", "return [y for y in x if (not (y))]"]),
        ("for y in x: y.go()", ["for y in x: pass", "for y in (): y.go()"]),
        ("y = x.size", ["y = None"]),
        ("y = None", ["y = 0"]),
    ],
)
def test_more_kinds_of_lines_can_be_changed(line, mutants):
    assert texts("claim", source=f"def f(x):\n    {line}  # claim\n") == mutants


def test_entries_of_tables_and_lone_members_go():
    source = "def f(x):\n    return {1: (x,), 2: [x]}  # claim\n"
    assert "return { 2: [x]}" in texts("claim", source=source)
    assert "return {1: (x,), }" in texts("claim", source=source)
    assert "return {1: (), 2: [x]}" in texts("claim", source=source)
    assert "return {1: (x,), 2: []}" in texts("claim", source=source)


def test_what_is_said_to_people_is_left_alone():
    source = "def f(x):\n    raise ValueError('no tea', x + 1)  # claim\n"
    assert texts("claim", source=source) == ["pass"]


def test_what_cannot_be_changed_gives_nothing():
    assert texts("claim", source="import os  # claim\n") == []
    assert texts("claim", source="x = 1\n# claim\n") == []
