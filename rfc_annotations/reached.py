"""Which assertions of a test are bound to be reached, and would notice something.

An assertion is doubtful under a condition, in a loop that may have no turn, behind a way out, or in
a function that somebody else calls.  One is weak that looks at a type only, or compares the tested
code with itself.  A test may have both, but not nothing else.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from rfc_annotations.anchors import DEFINITIONS, FUNCTIONS, Function
from rfc_annotations.trees import BROAD, mentioned, walk
from rfc_annotations.truth import always, is_pure

EXPECTING: Final = {"raises", "warns", "fail"}  # of pytest: they assert
OF_A_TYPE: Final = {"isinstance", "issubclass", "hasattr", "callable"}
WAITING: Final = {"get", "result", "wait_for", "gather", "run", "run_until_complete", "joinall"}
PASSING_ON: Final = {"enumerate", "zip", "sorted", "reversed", "list", "tuple", "set", "iter"}
OF_ITERTOOLS: Final = {"product", "permutations", "combinations", "pairwise", "chain"}
OF_TABLES: Final = {"items", "values", "keys"}
LEAVING: Final = (ast.Return, ast.Continue, ast.Break)
LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
CONDITION, LOOP = "under a condition", "in a loop that may have no turn"
WAY_OUT, CALLBACK = "behind a way out", "in a function that somebody else may call"
HANDLED: Final = "in a try whose except goes on"


@dataclass(frozen=True, slots=True)
class Found:
    """An assertion of a test, and what is wrong with it, if anything is."""

    line: int
    fault: str = ""


def fails(node: ast.AST, idle: set[int]) -> bool:
    """May this node, by itself, fail a test?  `idle` are lines of assertions that cannot."""
    match node:
        case ast.Assert(lineno=line):
            return line not in idle
        case ast.Raise(exc=raised):
            return raised is not None and "AssertionError" in mentioned(raised)
        case ast.Call(func=ast.Attribute(value=ast.Name("pytest"), attr=name)) if name in EXPECTING:
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("assert")
    return False


@dataclass
class Reached:
    """The assertions of one test; `outer` are the values of the module's constants."""

    test: Function
    idle: set[int]
    outer: dict[str, ast.expr] = field(default_factory=dict)

    @cached_property
    def _values(self) -> dict[str, ast.expr]:
        return {**self.outer, **assigned(self.test)}

    @cached_property
    def _given(self) -> set[str]:
        args = self.test.args
        return {each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)}

    @cached_property
    def _awaits(self) -> bool:
        return not WAITING.isdisjoint(mentioned(self.test))

    def found(self) -> list[Found]:
        """Every assertion of the test, with its fault."""
        return list(self._read(self.test.body, ""))

    def _read(self, body: list[ast.stmt], doubt: str) -> Iterator[Found]:
        for statement in body:
            yield from self._statement(statement, doubt)
            if isinstance(statement, (*LEAVING, ast.Raise)):
                return
            doubt = doubt or (WAY_OUT if self._may_leave(statement) else "")

    def _statement(self, node: ast.stmt, doubt: str) -> Iterator[Found]:
        match node:
            case ast.Assert(test=test, lineno=line):
                if line not in self.idle:
                    yield Found(line, doubt or self._weak(test))
            case ast.If():
                yield from self._if(node, doubt)
            case ast.For(iter=over) | ast.AsyncFor(iter=over):
                inside = doubt or ("" if self._has_turns(over) else LOOP)
                yield from self._read(node.body, inside)
                yield from self._read(node.orelse, doubt)
            case ast.While(test=test):
                inside = doubt or ("" if always(test) else LOOP)
                yield from self._read(node.body, inside)
                yield from self._read(node.orelse, doubt)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                yield from (Found(node.lineno, doubt or _broad(i)) for i in items if _expects(i))
                yield from self._read(node.body, doubt)
            case ast.Try() | ast.TryStar():
                yield from self._try(node, doubt)
            case ast.Match(cases=cases):
                yield from self._either([case.body for case in cases], doubt, _is_total(cases))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from self._nested(node, doubt)
            case _:
                yield from (
                    Found(node.lineno, doubt) for inner in walk(node) if fails(inner, self.idle)
                )

    def _if(self, node: ast.If, doubt: str) -> Iterator[Found]:
        truth = always(node.test)
        if truth is not None:
            yield from self._read(node.body if truth else node.orelse, doubt)
        elif any(_complains(one) for one in node.body):
            yield Found(node.lineno, doubt)  # `if x: fail()` asserts by itself
            yield from self._read(node.orelse, doubt)
        else:
            yield from self._either([node.body, node.orelse], doubt, bool(node.orelse))

    def _either(self, bodies: list[list[ast.stmt]], doubt: str, total: bool) -> Iterator[Found]:
        """Read branches, one of which is taken if they are `total`: each must assert, then."""
        found = [list(self._read(body, doubt)) for body in bodies]
        if total and all(any(not one.fault for one in branch) for branch in found):
            yield from (one for branch in found for one in branch)
        else:
            yield from (
                Found(one.line, one.fault or CONDITION) for branch in found for one in branch
            )

    def _try(self, node: ast.Try | ast.TryStar, doubt: str) -> Iterator[Found]:
        inside = doubt
        for handler in node.handlers:
            told = list(self._read(handler.body, doubt))
            yield from (Found(one.line, one.fault or CONDITION) for one in told)
            if not any(not one.fault for one in told) and not _raises(handler):
                inside = inside or HANDLED
        yield from self._read(node.body, inside)
        yield from self._read(node.orelse, inside)
        yield from self._read(node.finalbody, doubt)

    def _nested(self, node: Function | ast.ClassDef, doubt: str) -> Iterator[Found]:
        called = isinstance(node, FUNCTIONS) and self._is_called(node)
        yield from self._read(node.body, doubt or ("" if called else CALLBACK))

    def _is_called(self, node: Function) -> bool:
        """Does the test call a function in it, or wait for the thread that runs it?"""
        calls = (inner for inner in walk(self.test) if isinstance(inner, ast.Call))
        awaited = {id(i.value) for i in walk(self.test) if isinstance(i, ast.Await)}
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id == node.name:
                if isinstance(node, ast.FunctionDef) or id(call) in awaited or self._awaits:
                    return True
            elif self._awaits and any(node.name in mentioned(arg) for arg in call.args):
                return True
        return False

    def _may_leave(self, node: ast.stmt) -> bool:
        """May a statement end the test, or the turn of a loop, before anything was asserted?"""
        if not _leaves(node):
            return False
        ways = [body for body in _bodies(node) if any(map(_leaves, body))]
        return not all(any(not one.fault for one in self._read(body, "")) for body in ways)

    def _weak(self, test: ast.expr) -> str:
        """Say why an assertion would hardly notice anything; empty if it would."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                return self._weak(operand)
            case ast.BoolOp(values=values):
                said = [self._weak(value) for value in values]
                return said[0] if all(said) else ""
            case ast.Call(func=ast.Name(name)) if name in OF_A_TYPE:
                return "a type"
            case ast.Compare(_, [ast.IsNot() | ast.NotEq()], [ast.Constant(None)]):
                return "that there is something"
            case ast.Compare(ast.Call(ast.Name("type")), [_], [_]):
                return "a type"
            case ast.Compare(left, [ast.Eq() | ast.Is() | ast.LtE() | ast.GtE()], [right]):
                if _is_alike(self._meant(left), self._meant(right)):
                    return "that the tested code gives what it gives"
            case ast.Call(ast.Name("all"), [ast.GeneratorExp() | ast.ListComp() as each]):
                return "" if self._has_turns(each.generators[0].iter) else "what may be of nothing"
        return ""

    def _meant(self, node: ast.expr) -> ast.expr:
        """Give an expression, or the value of a name that was given one once."""
        if isinstance(node, ast.Name) and node.id in self._values:
            value = self._values[node.id]
            return node if is_pure(value) else value
        return node

    def _has_turns(self, over: ast.expr) -> bool:
        """Does a loop have a turn, as far as the test says what it is over?"""
        match over:
            case ast.Tuple(elts) | ast.List(elts) | ast.Set(elts):
                return any(not isinstance(e, ast.Starred) or self._has_turns(e.value) for e in elts)
            case ast.Dict(keys):
                return bool(keys)
            case ast.Constant(value):
                return bool(value)
            case ast.Call(ast.Name("range"), bounds):
                return _counts(bounds)
            case ast.Call(ast.Name("map"), [_, *those]):
                return all(map(self._has_turns, those))
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name), those) if (
                name in PASSING_ON or name in OF_ITERTOOLS
            ):
                return bool(those) and self._has_turns(those[0])
            case ast.Call(ast.Attribute(value=value, attr=name), []) if name in OF_TABLES:
                return self._has_turns(value)
            case ast.Name(name) if name in self._values:
                return self._has_turns(self._values[name])
            case ast.Name(name):
                return name in self._given or name[:1].isupper()
            case ast.Attribute(attr=name):
                return name[:1].isupper()
            case ast.BinOp(left, _, right):
                return self._has_turns(left) or self._has_turns(right)
            case ast.GeneratorExp(generators=[one]) | ast.ListComp(generators=[one]):
                return not one.ifs and self._has_turns(one.iter)
        return False


def _is_alike(left: ast.expr, right: ast.expr) -> bool:
    return type(left) is type(right) and ast.dump(left) == ast.dump(right)


def assigned(node: ast.AST) -> dict[str, ast.expr]:
    """The names that a test, or a module outside of its definitions, gives a value once."""
    values: dict[str, ast.expr] = {}
    times: Counter[str] = Counter()
    for inner in walk(node, DEFINITIONS):
        match inner:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                values[name] = value
            case ast.Name(id=name, ctx=ast.Store()):
                times[name] += 1
    return {name: value for name, value in values.items() if times[name] == 1}


def _counts(bounds: list[ast.expr]) -> bool:
    """Is a range of more than nothing, by its constants?"""
    match bounds:
        case [ast.Constant(int(stop))]:
            return stop > 0
        case [ast.Constant(int(start)), ast.Constant(int(stop)), *_]:
            return start != stop
        case [ast.Name(name)] | [_, ast.Name(name), *_]:
            return name.isupper()
        case [ast.BinOp()] | [_, ast.BinOp(), *_]:
            return all(is_pure(bound) for bound in bounds)
    return False


def _expects(item: ast.withitem) -> bool:
    return fails(item.context_expr, set())


def _broad(item: ast.withitem) -> str:
    match item.context_expr:
        case ast.Call(args=[expected, *_], keywords=[]) if not BROAD.isdisjoint(
            mentioned(expected)
        ):
            return "that anything at all goes wrong"
    return ""


def _is_total(cases: list[ast.match_case]) -> bool:
    last = cases[-1]
    return isinstance(last.pattern, ast.MatchAs) and not last.pattern.pattern and not last.guard


def _complains(node: ast.stmt) -> bool:
    """Is it `raise AssertionError` or `pytest.fail()`?"""
    return fails(node.value if isinstance(node, ast.Expr) else node, set()) and not isinstance(
        node, ast.Assert
    )


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(one, ast.Raise) or _complains(one) for one in handler.body)


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if body := getattr(node, name, None):
            yield body
    for name in ("handlers", "cases"):
        yield from (branch.body for branch in getattr(node, name, ()))


def _leaves(node: ast.stmt, way_out: tuple[type[ast.stmt], ...] = LEAVING) -> bool:
    """Does a statement have a way out of the block around it?"""
    if isinstance(node, way_out):
        return True
    if isinstance(node, LOOPS):
        way_out = (ast.Return,)
    return not isinstance(node, DEFINITIONS) and any(
        _leaves(one, way_out) for body in _bodies(node) for one in body
    )
