"""Claims that prove nothing by their form: rule 12.

A test that would pass whatever the claimed line did shows only when that line changes: left to
`mutants`; README.md says which is which.  Names are not resolved: a test asserts if it calls
something of the tests that asserts.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final

from rfc_annotations.anchors import DEFINITIONS, FUNCTIONS, blocks
from rfc_annotations.grammar import DEPARTS, NOT_DONE
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited, parsed

BROAD: Final = {"AssertionError", "Exception", "BaseException"}  # what takes an assertion as well
EXPECTING: Final = {"raises", "warns", "fail"}  # of pytest: they assert
LEAVING: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
LOGGING: Final = {"debug", "info", "warning", "error", "exception"}
BARE: Final = {"ctx", "id", "attr", "arg", "name", "op", "ops", "kind", "names", "module", "rest"}
Finding = tuple[str, int, str]  # file, line, message


def findings(project: Project) -> Iterator[Finding]:
    """Yield every claim that the form of its test, or of its line, makes worthless."""
    claims: dict[str, list[Cited]] = {}
    for cited in project.cited:
        if cited.slugs and cited.verb not in (DEPARTS, NOT_DONE):
            claims.setdefault(cited.file, []).append(cited)
    tests = {file: (tree, list(idle_assertions(tree))) for file, tree in _trees(project, "test")}
    asserting = _asserting(tests.values())
    for file, (tree, found) in tests.items():
        yield from ((file, line, text) for line, text in found)
        yield from _tests(file, Tests(tree, asserting, _lines(found)), claims.get(file, ()))
    for file, tree in _trees(project, "code"):
        idle = list(idle_lines(tree)) if file in claims else []
        for cited in claims.get(file, ()):
            for text in sorted({text for lines, text in idle if cited.line in lines}):
                yield file, cited.line, text


def _trees(project: Project, kind: str) -> Iterator[tuple[str, ast.Module]]:
    for scanned in project.scanned:
        if scanned.kind == kind:
            try:
                yield scanned.file, parsed((project.root / scanned.file).read_text())
            except SyntaxError:
                continue  # rule 1 has said so


def _tests(file: str, tests: "Tests", claims: Iterable[Cited]) -> Iterator[Finding]:
    for owner, line in sorted({(cited.owner, cited.line) for cited in claims}):
        if not owner:
            yield file, line, "no test makes this claim: it stands outside of all of them"
            continue
        for name, node in tests.of(owner):
            if tests.expected_to_fail(node):
                yield file, line, f"{name} is expected to fail, and proves nothing"
            elif not tests.asserts(node):
                yield file, line, f"{name} asserts nothing"


def walk(top: ast.AST, shut: tuple[type[ast.AST], ...] = ()) -> Iterator[ast.AST]:
    """Yield `top` and every node within, in no order; `ast.walk` takes five times as long.

    Nodes that hold nothing but a word of Python are left out.  Those of a `shut` kind are not
    looked into, unless it is `top`.
    """
    todo = [top]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, shut) and node is not top:
            continue
        for name in _fields(type(node).__name__):
            below = getattr(node, name, None)
            if isinstance(below, list):
                todo += [each for each in below if isinstance(each, ast.AST)]
            elif isinstance(below, ast.AST):
                todo.append(below)


@cache
def _fields(kind: str) -> tuple[str, ...]:
    """The fields of a kind of node that may hold such nodes."""
    return tuple(name for name in getattr(ast, kind)._fields if name not in BARE)


# Tests


@dataclass
class Tests:
    """The tests of one module.

    `asserting` names the helpers that assert, anywhere in the tests; `idle` are the lines of the
    module's assertions that cannot fail.
    """

    tree: ast.Module
    asserting: frozenset[str]
    idle: set[int]

    def of(self, owner: str) -> Iterator[tuple[str, ast.AST]]:
        """Yield the tests that a claim of `owner` speaks for: one, or all of a class."""
        top, _, method = owner.partition("::")
        for node in self.tree.body:
            match node:
                case ast.ClassDef(name=name, body=body) if name == top:
                    for inner in body:
                        name = inner.name if isinstance(inner, FUNCTIONS) else ""
                        if name.startswith("test") and method in ("", name):
                            yield f"{top}::{name}", inner
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name == top:
                    yield top, node
                case ast.Assign(targets=[ast.Name(id=name)]) if name == top:
                    yield top, node

    def asserts(self, node: ast.AST) -> bool:
        """Does a test, or something of the tests that it mentions, assert?"""
        return _asserts(node, self.idle) or not self.asserting.isdisjoint(_used(node))

    def expected_to_fail(self, node: ast.AST) -> bool:
        """Is a test, or its whole module, marked xfail, or does it say so itself?"""
        marks = [
            n for n in self.tree.body if isinstance(n, ast.Assign) and "pytestmark" in _mentioned(n)
        ]
        return any("xfail" in _mentioned(one) for one in (node, *marks))


def _lines(idle: Iterable[tuple[int, str]]) -> set[int]:
    return {line for line, _ in idle}


def _asserting(tests: Iterable[tuple[ast.Module, list[tuple[int, str]]]]) -> frozenset[str]:
    """Name the helpers of the tests that assert, by themselves or by others."""
    mentioned: dict[str, set[str]] = {}
    found: set[str] = set()

    def read(top: ast.AST, idle: set[int]) -> tuple[set[str], bool]:
        """Note every definition within, and say what `top` uses, and whether it asserts."""
        names, asserts = set[str](), False
        for node in walk(top, DEFINITIONS):
            inner = isinstance(node, DEFINITIONS) and node is not top
            used, does = read(node, idle) if inner else (_used_here(node), _fails(node, idle))
            names.update(used)
            asserts = asserts or does
        if isinstance(top, DEFINITIONS) and not top.name.startswith("__"):
            mentioned.setdefault(top.name, set()).update(names)
            if asserts:
                found.add(top.name)
        return names, asserts

    for tree, assertions in tests:
        read(tree, _lines(assertions))
    while more := {n for n, others in mentioned.items() if n not in found and others & found}:
        found |= more
    return frozenset(found)


def _used(node: ast.AST) -> set[str]:
    """Every name that `node` calls, and every class it mentions.

    A test may run a state machine by naming its class.
    """
    return {name for inner in walk(node) for name in _used_here(inner)}


def _used_here(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name[:1].isupper():
            return (name,)
        case ast.Call(func=ast.Name(id=name)):
            return (name,)
        case ast.Call(func=called):
            return _mentioned(called)
    return ()


def _mentioned(node: ast.AST) -> set[str]:
    names = set()
    for inner in walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                names.add(name)
    return names


def _asserts(node: ast.AST, idle: set[int]) -> bool:
    return any(_fails(inner, idle) for inner in walk(node))


def _fails(node: ast.AST, idle: set[int]) -> bool:
    """May this node, by itself, fail a test?"""
    match node:
        case ast.Assert(lineno=line):
            return line not in idle
        case ast.Raise(exc=raised):
            return raised is not None and "AssertionError" in _mentioned(raised)
        case ast.Call(func=ast.Attribute(value=ast.Name("pytest"), attr=name)) if name in EXPECTING:
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("assert")
    return False


def idle_assertions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the assertions that cannot fail a test, by line."""
    for node in chain.from_iterable(blocks(tree)):
        match node:
            case ast.Assert(test=test, lineno=line) if always(test) is True:
                yield line, f"always true: assert {ast.unparse(test)}"
            case ast.Try(body=body, handlers=handlers) if any(map(_swallows, handlers)):
                for line in _asserted(body):
                    yield line, "an assertion whose failure is swallowed by except"
            case ast.With(items=items, body=body) if any(map(_suppresses, items)):
                for line in _asserted(body):
                    yield line, "an assertion whose failure is suppressed"


def always(test: ast.expr) -> bool | None:
    """The constant truth value of an expression, or None if it depends on names.

    >>> texts = ("x or True", "x and ''", "not 0", "(x, 'why')", "x == x", "x is True", "[]")
    >>> [always(ast.parse(text, mode="eval").body) for text in texts]
    [True, False, True, True, True, None, False]
    """
    match test:
        case ast.Constant(value):
            return bool(value)
        case ast.Tuple(elts) | ast.List(elts) | ast.Set(elts):
            starred = any(isinstance(one, ast.Starred) for one in elts)
            return None if starred else bool(elts)
        case ast.Lambda():
            return True
        case ast.UnaryOp(ast.Not(), operand):
            known = always(operand)
            return None if known is None else not known
        case ast.BoolOp(operator, values):
            each = [always(value) for value in values]
            deciding = isinstance(operator, ast.Or)
            if deciding in each:
                return deciding
            return None if None in each else not deciding
        case ast.Compare(ast.Name() as left, [ast.Eq() | ast.Is()], [right]):
            return True if ast.dump(left) == ast.dump(right) else None
    return None


def _asserted(body: list[ast.stmt]) -> Iterator[int]:
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.Assert):
                yield node.lineno


def _swallows(handler: ast.ExceptHandler) -> bool:
    broad = handler.type is None or not BROAD.isdisjoint(_mentioned(handler.type))
    goes_on = any(isinstance(node, ast.Raise | ast.Assert) for node in walk(handler))
    return broad and not goes_on and "fail" not in _mentioned(handler)


def _suppresses(item: ast.withitem) -> bool:
    match item.context_expr:
        case ast.Call(func=ast.Name("suppress") | ast.Attribute(attr="suppress"), args=args):
            return any(not BROAD.isdisjoint(_mentioned(arg)) for arg in args)
        case ast.Call(func=ast.Attribute(attr="raises"), args=[expected, *_], keywords=[]):
            return not BROAD.isdisjoint(_mentioned(expected))
    return False


# Code


def idle_lines(tree: ast.Module) -> Iterator[tuple[range, str]]:
    """Yield the lines that cannot meet a claim, and why they cannot."""
    yield from _empty(tree.body)
    for block in blocks(tree):
        yield from _unreached(block)
        yield from chain.from_iterable(map(_idle, block))


def _idle(node: ast.stmt) -> Iterator[tuple[range, str]]:
    match node:
        case ast.If(test=test, body=body) | ast.While(test=test, body=body) if (
            always(test) is False
        ):
            yield _span(body[0], body[-1]), "a claim in dead code: its condition is never true"
        case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
            yield _span(node, node), "a claim on a statement that does nothing"
        case ast.Expr(ast.Call(func=ast.Attribute(value=of, attr=name))) if name in LOGGING and any(
            "log" in word.lower() for word in _mentioned(of)
        ):
            yield _span(node, node), "a claim on a line of the log, which no peer sees"
        case ast.ClassDef(body=body, bases=bases):
            # What a base class would do, a method may be there to leave undone.
            if not bases or any("Protocol" in _mentioned(base) for base in bases):
                yield from _empty(body)


def _unreached(block: list[ast.stmt]) -> Iterator[tuple[range, str]]:
    for at, statement in enumerate(block[:-1]):
        if isinstance(statement, LEAVING):
            yield _span(block[at + 1], block[-1]), "a claim in dead code: nothing gets here"
            return


def _empty(body: list[ast.stmt]) -> Iterator[tuple[range, str]]:
    for node in body:
        if isinstance(node, FUNCTIONS) and not _does(node.body):
            yield _span(node, node), f"a claim of a function that does nothing: {node.name}"


def _span(first: ast.stmt, last: ast.stmt) -> range:
    return range(first.lineno, (last.end_lineno or last.lineno) + 1)


def _does(body: list[ast.stmt]) -> bool:
    return not all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in body
    )
