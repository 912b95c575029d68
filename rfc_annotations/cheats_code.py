"""Claims that prove nothing by the form of the line that they stand on: rule 12.

That a line does something else than its claim says shows no form: left to `mutants`.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final

from rfc_annotations.anchors import FUNCTIONS, Function, blocks, own_lines
from rfc_annotations.reached import assigned
from rfc_annotations.scan import Cited
from rfc_annotations.trees import BROAD, mentioned, suppresses, walk
from rfc_annotations.truth import always

LEAVING: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
LOGGING: Final = {"debug", "info", "warning", "error", "exception"}
COMPUTING: Final = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
NOTHING: Final = "a claim on a statement that does nothing"
SAME: Final = "a claim on a choice that is always the same"
Finding = tuple[str, int, str]  # file, line, message
Idle = tuple[range, str]  # lines that cannot meet a claim, and why they cannot


def findings(
    trees: Mapping[str, ast.Module], claims: Mapping[str, Iterable[Cited]]
) -> Iterator[Finding]:
    """Yield the claims of the code whose lines cannot meet them."""
    code = Code(tuple(trees.values()))
    for file, tree in trees.items():
        own = claims.get(file, ())
        lines = {line for cited in own for line in (cited.line, *cited.anchor)}
        idle = list(idle_lines(tree, lines, code)) if lines else []
        for cited in own:
            for text in sorted({text for span, text in idle if _is_within(cited, span)}):
                yield file, cited.line, text


def _is_within(cited: Cited, span: range) -> bool:
    if cited.line in span:
        return True
    return bool(cited.anchor) and min(cited.anchor) in span and max(cited.anchor) in span


@dataclass
class Code:
    """All modules of the code."""

    trees: tuple[ast.Module, ...]
    _by_module: dict[ast.Module, set[str]] = field(init=False, default_factory=dict)

    def reads(self, name: str, own: ast.Module) -> bool:
        """Does any module read `name`, above all its `own`?"""
        return name in self._read_by(own) or name in self._read

    @cached_property
    def _read(self) -> set[str]:
        return set().union(*map(self._read_by, self.trees))

    def _read_by(self, tree: ast.Module) -> set[str]:
        if tree not in self._by_module:
            self._by_module[tree] = set(_read_in(tree))
        return self._by_module[tree]


def _read_in(tree: ast.Module) -> Iterator[str]:
    """Yield what a module reads: names, attributes, and what it imports from elsewhere."""
    for node in walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (each.name for each in names)


def idle_lines(tree: ast.Module, claimed: set[int], code: Code) -> Iterator[Idle]:
    """Yield the lines that cannot meet a claim.

    Expressions are looked into on `claimed` lines alone.
    """
    every = list(blocks(tree))
    known = _constants(tree, every)
    yield from _empty(tree.body)
    yield from _unused(tree, claimed, code)
    for block in every:
        yield from _unreached(block)
        for node in block:
            yield from _idle(node, known)
            if not claimed.isdisjoint(own_lines(node)) and _is_settled(node, known):
                yield _span(node, node), SAME
            if isinstance(node, FUNCTIONS) and not claimed.isdisjoint(_span(node, node)):
                yield from _unread(node)


def _constants(tree: ast.Module, every: Iterable[list[ast.stmt]]) -> dict[str, bool]:
    """The names of the module whose truth is settled: constants that it gives a value once."""
    statements = chain.from_iterable(every)
    changed = {name for one in statements if isinstance(one, ast.Global) for name in one.names}
    values = ((name, always(value)) for name, value in assigned(tree).items())
    found = {name: truth for name, truth in values if truth is not None and name not in changed}
    return {**found, "TYPE_CHECKING": False}


def _idle(node: ast.stmt, known: Mapping[str, bool]) -> Iterator[Idle]:
    match node:
        case ast.If(test=test) | ast.While(test=test):
            truth = always(test, known)
            if truth is False:
                text = "a claim in dead code: its condition is never true"
                yield _span(node.body[0], node.body[-1]), text
            elif truth and isinstance(node, ast.If) and node.orelse:
                text = "a claim in dead code: its condition is never false"
                yield _span(node.orelse[0], node.orelse[-1]), text
        case ast.For(iter=ast.Tuple([]) | ast.List([]), body=body):
            yield _span(body[0], body[-1]), "a claim in dead code: the loop has no turn"
        case ast.Try(body=body, handlers=handlers) if any(map(_takes_all, handlers)):
            yield _span(body[0], body[-1]), "a claim in a try that takes any failure"
        case ast.With(items=items, body=body) if any(map(suppresses, items)):
            yield _span(body[0], body[-1]), "a claim in a try that takes any failure"
        case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
            yield _span(node, node), NOTHING
        case ast.Assign(targets=[target], value=value) if _is_spelt_alike(target, value):
            yield _span(node, node), NOTHING
        case ast.Expr(ast.Call(func=ast.Attribute(value=of, attr=name))) if name in LOGGING and any(
            "log" in word.lower() for word in mentioned(of)
        ):
            yield _span(node, node), "a claim on a line of the log, which no peer sees"
        case ast.Expr(value) if not isinstance(value, ast.Constant) and not _computes(value):
            yield _span(node, node), NOTHING
        case ast.ClassDef(body=body, bases=bases):
            # What a base class would do, a method may be there to leave undone.
            if not bases or any("Protocol" in mentioned(base) for base in bases):
                yield from _empty(body)


def _is_spelt_alike(target: ast.expr, value: ast.expr) -> bool:
    return type(target) is type(value) and ast.unparse(target) == ast.unparse(value)


def _computes(node: ast.expr) -> bool:
    return any(isinstance(inner, COMPUTING) for inner in walk(node))


def _is_settled(node: ast.stmt, known: Mapping[str, bool]) -> bool:
    """Does a statement choose, and always the same?"""
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    for inner in chain.from_iterable(map(walk, parts)):
        match inner:
            case ast.IfExp(test=test) if always(test, known) is not None:
                return True
            case ast.BoolOp(values=[*operands, _]):
                if any(always(operand, known) is not None for operand in operands):
                    return True
    return False


def _takes_all(handler: ast.ExceptHandler) -> bool:
    broad = handler.type is None or not BROAD.isdisjoint(mentioned(handler.type))
    return broad and not _does(handler.body)


def _unused(tree: ast.Module, claimed: set[int], code: Code) -> Iterator[Idle]:
    """Yield the constants, and the private functions, that make a claim and that no code reads."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                what = "on a value that no code reads"
            case ast.FunctionDef(name=name, decorator_list=[]) if name.startswith("_"):
                what = "of a function that no code calls"
            case _:
                continue
        span = _span(node, node)
        if not claimed.isdisjoint(_with_comments(span)) and not code.reads(name, tree):
            yield _with_comments(span), f"a claim {what}: {name}"


def _unread(function: Function) -> Iterator[Idle]:
    """Yield what a function computes, or defines, and never reads."""
    read = set[str]()
    outer = set[str]()
    for node in walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Load() | ast.Del()):
                read.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                outer.update(names)
    for block in blocks(function):
        for node in block:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(name)], value=value)
                    | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
                ) if name not in read and name not in outer:
                    if not (name.startswith("_") and _computes(value)):
                        yield _span(node, node), f"a claim on a value that no code reads: {name}"
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if name not in read and not node.decorator_list:
                        text = f"a claim of a function that no code calls: {name}"
                        yield _span(node, node), text


def _unreached(block: list[ast.stmt]) -> Iterator[Idle]:
    for at, statement in enumerate(block[:-1]):
        if isinstance(statement, LEAVING):
            yield _span(block[at + 1], block[-1]), "a claim in dead code: nothing gets here"
            return


def _empty(body: list[ast.stmt]) -> Iterator[Idle]:
    for node in body:
        if isinstance(node, FUNCTIONS) and not _does(node.body):
            yield _span(node, node), f"a claim of a function that does nothing: {node.name}"


def _span(first: ast.stmt, last: ast.stmt) -> range:
    return range(first.lineno, (last.end_lineno or last.lineno) + 1)


def _with_comments(span: range) -> range:
    """The lines of a constant, and the one above, where the comment on it ends."""
    return range(span.start - 1, span.stop)


def _does(body: list[ast.stmt]) -> bool:
    return not all(map(_is_nothing, body))


def _is_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None):
            return True
        case ast.Raise(exc=ast.expr() as raised):
            return "NotImplementedError" in mentioned(raised)
    return False
