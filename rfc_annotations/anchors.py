"""Which lines must run before a test can be said to have met a claim.

The anchor of a claim is a set of lines; running any of them will do.

- A comment in a function stands for its statement, or above a statement, for the one that follows.
  On the line of a `case` or an `else`, or alone below an `if`, it stands for the first statement
  inside: being considered is not being taken.
- A docstring stands for every line of its function; that of a class or module, for every line of
  the functions within.
- A statement of a class or a module runs at import, so a claim on it (a table, a constant) stands
  for every line of the module's functions, which are what uses it.

A comment in a block that has nothing to follow it stands for nothing, and nothing meets it.

An empty anchor cannot be traced (a class without methods, a module of constants): a passing test
is then enough.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS: Final = (*FUNCTIONS, ast.ClassDef)
BLOCKS: Final = ("body", "handlers", "orelse", "finalbody", "cases")  # what statements are in
Lines = frozenset[int]


@dataclass
class Anchors:
    """The anchors of one module."""

    tree: ast.Module
    _statements: list[tuple[ast.stmt, bool]] = field(init=False)  # and: is it in a function?

    def __post_init__(self) -> None:
        self._statements = sorted(_statements(self.tree, False), key=lambda s: _first(s[0]))

    @property
    def statements(self) -> Iterator[ast.stmt]:
        """Every statement, those within others too, by its line."""
        return (statement for statement, _ in self._statements)

    @cached_property
    def _spans(self) -> list[range]:
        return [own_lines(statement) for statement, _ in self._statements]

    @cached_property
    def _module(self) -> Lines:
        return function_lines(self.tree)

    def of_docstring(self, node: ast.Module | Definition) -> Lines:
        """Give the anchor of a claim in a docstring."""
        return body_lines(node) if isinstance(node, FUNCTIONS) else function_lines(node)

    def of_comment(self, line: int, column: int = 0) -> Lines:
        """Give the anchor of a claim in a comment that begins at `column` and ends on `line`."""
        statement, inside = self._statement(line, column)
        if _after_all(statement, line, column):
            return frozenset([line])  # which nothing runs
        if statement is None:
            return self._module
        if isinstance(statement, DEFINITIONS):
            return self.of_docstring(statement)
        return frozenset(own_lines(statement)) if inside else self._module

    def statement_of(self, line: int, column: int = 0) -> tuple[ast.stmt | None, range]:
        """Give the statement that a comment ending on `line` stands for, and its own lines."""
        statement, _ = self._statement(line, column)
        return statement, own_lines(statement) if statement else range(0)

    def _statement(self, line: int, column: int) -> tuple[ast.stmt | None, bool]:
        around = [number for number, lines in enumerate(self._spans) if line in lines]
        if around and not (column and line > _head(self._statements[around[-1]][0])):
            return self._statements[around[-1]]
        return next((s for s in self._statements if _first(s[0]) > line), (None, False))


def _after_all(statement: ast.stmt | None, line: int, column: int) -> bool:
    """Does a comment stand at the end of a block, and speak of nothing?

    Below it come the end or a definition further out, which is another matter.
    """
    if statement is None:
        return column > 0
    ahead = _first(statement) > line and column > statement.col_offset
    return ahead and isinstance(statement, DEFINITIONS)


def function_lines(node: ast.AST) -> Lines:
    """Give every line of every function within `node`."""
    within = (statement for statement, _ in _statements(node, False))
    functions = [node, *within] if isinstance(node, FUNCTIONS) else within
    return frozenset(
        line for one in functions if isinstance(one, FUNCTIONS) for line in body_lines(one)
    )


def outermost_functions(tree: ast.Module) -> Iterator[Function]:
    """Yield the functions that stand in no other."""
    for statement, inside in _statements(tree, False):
        if isinstance(statement, FUNCTIONS) and not inside:
            yield statement


def body_of(node: Function) -> list[ast.stmt]:
    """Give the statements of a function, less its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def body_lines(node: Function) -> Lines:
    """Give the lines of a function's body, less its docstring."""
    body = body_of(node)
    return frozenset(range(body[0].lineno, _last(node) + 1)) if body else frozenset()


def blocks(top: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every block of statements within a statement or a module; expressions have none."""
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(top, name, None):
            yield block
            for statement in block:
                yield from blocks(statement)
    for name in ("handlers", "cases"):
        for branch in getattr(top, name, ()):
            yield from blocks(branch)


def _statements(node: ast.AST, inside: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the statements within `node`; expressions hold none."""
    for block in BLOCKS:
        for child in getattr(node, block, ()):
            if isinstance(child, ast.stmt):
                yield child, inside
            yield from _statements(child, inside or isinstance(child, FUNCTIONS))


def own_lines(statement: ast.stmt) -> range:
    """Give the lines of a statement, decorators included, down to the first statement within."""
    inner = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not inner:
        return range(statement.lineno, _last(statement) + 1)
    within = inner[0].pattern.lineno if isinstance(inner[0], ast.match_case) else _first(inner[0])
    return range(_first(statement), max(statement.lineno + 1, within))


def _head(statement: ast.stmt) -> int:
    """Say where the condition, or the like, of a statement that holds others ends."""
    if not hasattr(statement, "body"):
        return _last(statement)
    blocks = (set(getattr(statement, name, ())) for name in BLOCKS)
    within = set().union(*blocks)
    parts = (node for node in ast.iter_child_nodes(statement) if node not in within)
    return max([statement.lineno, *(getattr(part, "end_lineno", None) or 0 for part in parts)])


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] | None = getattr(statement, "decorator_list", None)
    return decorators[0].lineno if decorators else statement.lineno


def _last(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno
