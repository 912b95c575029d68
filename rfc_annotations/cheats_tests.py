"""Claims of tests that prove nothing by the form of the test: rule 12.

A test that would pass whatever the claimed line did shows only when that line changes: left to
`mutants`; README.md says which is which.  Names are hardly resolved: a test asserts if it calls
something of the tests that asserts.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from rfc_annotations.anchors import DEFINITIONS, FUNCTIONS, blocks
from rfc_annotations.reached import LEAVING, Found, Reached, assigned, fails
from rfc_annotations.scan import Cited
from rfc_annotations.trees import mentioned, suppresses, swallows, walk
from rfc_annotations.truth import always, is_same, matches_anything

SPEAKING: Final = (ast.Name, ast.Attribute, ast.Call, ast.Assert, ast.Raise)  # of use or failure
XFAIL: Final = {"xfail", "expectedFailure"}
Finding = tuple[str, int, str]  # file, line, message
Idle = list[tuple[int, str]]  # lines of assertions that cannot fail, and why


def findings(
    trees: Mapping[str, ast.Module], claims: Mapping[str, Iterable[Cited]]
) -> Iterator[Finding]:
    """Yield the claims that the form of their tests makes worthless."""
    swallowing = _swallowing(trees.values())
    tests = {file: (tree, list(idle_assertions(tree, swallowing))) for file, tree in trees.items()}
    asserting = _asserting(tests.values())
    modules = frozenset(name for file in tests for name in _dotted(file))
    for file, (tree, found) in tests.items():
        yield from ((file, line, text) for line, text in found)
        of_file = Tests(tree, asserting, {line for line, _ in found}, swallowing, modules)
        yield from _judged(file, of_file, claims.get(file, ()))


def _judged(file: str, tests: "Tests", claims: Iterable[Cited]) -> Iterator[Finding]:
    for owner, line in sorted({(cited.owner, cited.line) for cited in claims}):
        if not owner:
            yield file, line, "no test makes this claim: it stands outside of all of them"
            continue
        for name, node in tests.of(owner):
            if text := tests.fault(node):
                yield file, line, f"{name} {text}"


@dataclass
class Tests:
    """The tests of one module.

    `asserting` names the helpers that assert, anywhere in the tests; `idle` are the lines of the
    module's assertions that cannot fail; `swallowing` are contexts and decorators that take a
    failure, and `modules` those of the tests, however they are imported.
    """

    tree: ast.Module
    asserting: frozenset[str]
    idle: set[int]
    swallowing: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()

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

    def fault(self, node: ast.AST) -> str:
        """Say why a test proves nothing; empty if it may prove something."""
        if self.expected_to_fail(node):
            return "is expected to fail, and proves nothing"
        if isinstance(node, FUNCTIONS):
            if self._defined.count(node.name) > 1:
                return "is not run: another of its name takes its place"
            if not self.swallowing.isdisjoint(_decorators(node)):
                return "has a decorator that takes its failure"
            if _has_no_parameters(node):
                return "is not run: it is parametrized by nothing"
        found = self._found(node)
        if any(not one.fault for one in found) or self._calls_for_help(node, bool(found)):
            return ""
        return f"asserts nothing but {_worded(found)}" if found else "asserts nothing"

    def expected_to_fail(self, node: ast.AST) -> bool:
        """Is a test, or its whole module, marked xfail, or does it say so itself?"""
        return not mentioned(node).isdisjoint(self._failing) or self._all_fail

    @cached_property
    def _failing(self) -> set[str]:
        """`xfail`, and the module's own names for it."""
        marks = assigned(self.tree).items()
        return XFAIL | {name for name, value in marks if not XFAIL.isdisjoint(mentioned(value))}

    @cached_property
    def _all_fail(self) -> bool:
        return any(
            isinstance(one, ast.Assign) and "pytestmark" in said and not XFAIL.isdisjoint(said)
            for one in self.tree.body
            for said in [mentioned(one) if isinstance(one, ast.Assign) else set()]
        )

    @cached_property
    def _defined(self) -> list[str]:
        """What the module defines, a name as often as it does."""
        return [node.name for node in self.tree.body if isinstance(node, DEFINITIONS)]

    @cached_property
    def _values(self) -> dict[str, ast.expr]:
        return assigned(self.tree)

    @cached_property
    def _tested(self) -> set[str]:
        """What the module imports from elsewhere: the tested code asserts nothing."""
        return {
            name.asname or name.name
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and not node.level
            if node.module not in self.modules
            for name in node.names
        }

    def _found(self, node: ast.AST) -> list[Found]:
        if isinstance(node, FUNCTIONS):
            return Reached(node, self.idle, self._values).found()
        return [Found(0) for inner in walk(node) if fails(inner, self.idle)][:1]

    def _calls_for_help(self, node: ast.AST, is_strict: bool) -> bool:
        """Does a test call, or mention, something of the tests that asserts?

        One with assertions of its own, none of them good, must call it by its bare name.
        """
        used = _called(node) - _inside(node) if is_strict else _used(node)
        return not self.asserting.isdisjoint(used - self._tested)


def _dotted(file: str) -> Iterator[str]:
    """Yield the names by which a file can be imported, from whichever folder."""
    words = file.removesuffix(".py").removesuffix("/__init__").split("/")
    yield from (".".join(words[at:]) for at in range(len(words)))


def _worded(found: list[Found]) -> str:
    return sorted(found, key=lambda one: one.line)[0].fault


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return set().union(*(mentioned(one) for one in node.decorator_list))


def _has_no_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(ast.Attribute(attr="parametrize"), [_, ast.List([]) | ast.Tuple([]), *_]):
                return True
    return False


def _asserting(tests: Iterable[tuple[ast.Module, Idle]]) -> frozenset[str]:
    """Name the helpers of the tests that assert, by themselves or by others."""
    uses: dict[str, set[str]] = {}
    found: set[str] = set()

    def read(top: ast.AST, idle: set[int]) -> tuple[set[str], bool]:
        """Note every definition within, and say what `top` uses, and whether it asserts."""
        names, asserts = set[str](), False
        used: Iterable[str]
        for node in walk(top, DEFINITIONS):
            if isinstance(node, DEFINITIONS) and node is not top:
                used, does = read(node, idle)
            elif isinstance(node, SPEAKING):
                used, does = _used_here(node), fails(node, idle)
            else:
                continue
            names.update(used)
            asserts = asserts or does
        if isinstance(top, DEFINITIONS) and not top.name.startswith("__"):
            uses.setdefault(top.name, set()).update(names)
            if asserts:
                found.add(top.name)
        return names, asserts

    for tree, assertions in tests:
        read(tree, {line for line, _ in assertions})
    while more := {n for n, others in uses.items() if n not in found and others & found}:
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
            return mentioned(called)
    return ()


def _called(node: ast.AST) -> set[str]:
    """The functions that `node` calls by their bare names."""
    return {
        inner.func.id
        for inner in walk(node)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
    }


def _inside(node: ast.AST) -> set[str]:
    """The functions that a test defines, of whose assertions it is known whether they count."""
    return {inner.name for inner in walk(node) if isinstance(inner, FUNCTIONS)}


def _swallowing(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Name the contexts and decorators of the tests that take a failed assertion, and go on."""
    found: set[str] = set()
    for tree in trees:
        for node in tree.body:
            match node:
                case ast.ClassDef(name=name, body=body):
                    if any(isinstance(one, FUNCTIONS) and _takes_it(one) for one in body):
                        found.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if _goes_on(node):
                        found.add(name)
    return frozenset(found)


def _takes_it(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Does an `__exit__` say that all is well, whatever happened?"""
    return method.name in ("__exit__", "__aexit__") and any(
        isinstance(inner, ast.Return) and inner.value is not None and always(inner.value)
        for inner in walk(method)
    )


def _goes_on(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Is something run within a function whose failure the function takes?

    That is what a context manager yields to, or what a decorator calls.
    """
    if not function.args.args and "contextmanager" not in _decorators(function):
        return False
    within = {arg.arg for arg in function.args.args}
    for node in chain.from_iterable(blocks(function)):
        match node:
            case ast.Try() | ast.TryStar() if _loses(node):
                inner = [part for one in node.body for part in walk(one)]
            case ast.With() if any(map(suppresses, node.items)):
                inner = [part for one in node.body for part in walk(one)]
            case _:
                continue
        if "contextmanager" in _decorators(function):
            return any(isinstance(part, ast.Yield) for part in inner)
        nested = any(isinstance(one, FUNCTIONS) for one in function.body)
        if nested and any(_called(part) & within for part in inner):
            return True
    return False


def _loses(node: ast.Try | ast.TryStar) -> bool:
    """Does a `try` take a failed assertion within, by `except` or by a way out in `finally`?"""
    return any(map(swallows, node.handlers)) or any(
        isinstance(inner, LEAVING) for one in node.finalbody for inner in walk(one, DEFINITIONS)
    )


def idle_assertions(
    tree: ast.AST, swallowing: frozenset[str] = frozenset()
) -> Iterator[tuple[int, str]]:
    """Yield the assertions that cannot fail a test, by line.

    `swallowing` names contexts that take their failure.
    """
    known = _Functions(tree)
    for block in blocks(tree):
        yield from _dead(block)
        for node in block:
            match node:
                case ast.Assert(test=test, lineno=line) if always(test, known) is True:
                    yield line, f"always true: assert {ast.unparse(test)}"
                case ast.Try() | ast.TryStar() if _loses(node):
                    how = "except" if any(map(swallows, node.handlers)) else "finally"
                    for line in _asserted(node.body):
                        yield line, f"an assertion whose failure is swallowed by {how}"
                case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                    if any(suppresses(item) or _is_of(item, swallowing) for item in items):
                        for line in _asserted(body):
                            yield line, "an assertion whose failure is suppressed"
                    if any(map(_takes_any_message, items)):
                        yield node.lineno, "a pattern that matches any message"
                case ast.If(test=test, body=body) if always(test) is False:
                    for line in _asserted(body):
                        yield line, "an assertion that nothing reaches"
                case ast.Expr(ast.Call(func=ast.Attribute(attr=name), args=args)):
                    if _is_idle_method(name, args, known):
                        yield node.lineno, f"always true: {ast.unparse(node)}"
                    if name == "enter_context" and any(
                        suppresses(ast.withitem(arg)) or _is_of(ast.withitem(arg), swallowing)
                        for arg in args
                    ):
                        yield node.lineno, "a context that takes the failure of assertions"


class _Functions(dict[str, bool]):
    """The module's functions, each of which is true if it is not called."""

    def __init__(self, tree: ast.AST) -> None:
        self._tree = tree
        inner = getattr(tree, "body", ())
        super().__init__({one.name: True for one in inner if isinstance(one, FUNCTIONS)})

    def get(self, name: str, default: bool | None = None) -> bool | None:  # type: ignore[override]
        return default if name not in self or name in self._others else True

    @cached_property
    def _others(self) -> set[str]:
        """Names that stand for something else too."""
        found = set()
        for node in walk(self._tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    found.add(name)
        return found


def _dead(block: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for at, statement in enumerate(block):
        if isinstance(statement, (*LEAVING, ast.Raise)):
            for line in _asserted(block[at + 1 :]):
                yield line, "an assertion that nothing reaches"
            return


def _asserted(body: list[ast.stmt]) -> Iterator[int]:
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.Assert):
                yield node.lineno


def _is_of(item: ast.withitem, names: frozenset[str]) -> bool:
    match item.context_expr:
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name)) | ast.Name(name):
            return name in names
    return False


def _takes_any_message(item: ast.withitem) -> bool:
    match item.context_expr:
        case ast.Call(func=ast.Attribute(attr="raises" | "warns"), keywords=keywords):
            return any(
                key.arg == "match"
                and isinstance(key.value, ast.Constant)
                and isinstance(key.value.value, str)
                and matches_anything(key.value.value)
                for key in keywords
            )
    return False


def _is_idle_method(name: str, args: list[ast.expr], known: Mapping[str, bool]) -> bool:
    """Is it an assertion of unittest that cannot fail?"""
    match name, args:
        case "assertTrue", [test, *_]:
            return always(test, known) is True
        case "assertFalse", [test, *_]:
            return always(test, known) is False
        case "assertEqual" | "assertIs", [left, right, *_]:
            return is_same(left, right)
    return False
