"""What is true, or false, whatever the names in an expression stand for."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

NOTHING: Final[Mapping[str, bool]] = {}
REFLEXIVE: Final = (ast.Eq, ast.Is, ast.LtE, ast.GtE)  # true of a thing and itself
IRREFLEXIVE: Final = (ast.NotEq, ast.IsNot, ast.Lt, ast.Gt)
OPERATORS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
MIRRORED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
NEVER_NEGATIVE: Final = ("len", "abs")
COMPUTING: Final = (ast.Call, ast.Await, ast.Attribute, ast.NamedExpr, ast.Yield, ast.YieldFrom)
SAMPLES: Final = ("", "x", "7 y", "Zz-!", "200 OK")  # which a pattern of some use tells apart


def always(test: ast.expr, known: Mapping[str, bool] = NOTHING) -> bool | None:
    """The constant truth value of an expression, or None if it depends on names.

    `known` are names whose truth does not change, such as those of functions.

    >>> texts = ("x or True", "x and ''", "not 0", "(x, 'why')", "x == x", "x is True", "[]")
    >>> [always(ast.parse(text, mode="eval").body) for text in texts]
    [True, False, True, True, True, None, False]
    >>> texts = ("len(x) >= 0", "x in (x, y)", "x or not x", "1 > 2", "f(x) == f(x)", "f'a{x}'")
    >>> [always(ast.parse(text, mode="eval").body) for text in texts]
    [True, True, True, False, None, True]
    """
    match test:
        case ast.Constant(value):
            return bool(value)
        case ast.Name(id=name):
            return known.get(name)
        case ast.Tuple(elts) | ast.List(elts) | ast.Set(elts):
            starred = any(isinstance(one, ast.Starred) for one in elts)
            return None if starred else bool(elts)
        case ast.Dict(keys):
            return None if None in keys else bool(keys)
        case ast.JoinedStr(values):
            return True if any(isinstance(one, ast.Constant) for one in values) else None
        case ast.Lambda() | ast.GeneratorExp():
            return True
        case ast.NamedExpr(value=value):
            return always(value, known)
        case ast.UnaryOp(ast.Not(), operand):
            truth = always(operand, known)
            return None if truth is None else not truth
        case ast.BoolOp(op, values):
            return _joined(op, values, known)
        case ast.IfExp(condition, body, orelse):
            taken = {True: (body,), False: (orelse,), None: (body, orelse)}[
                always(condition, known)
            ]
            return _agreed(always(one, known) for one in taken)
        case ast.Compare(left, [op], [right]):
            return _compared(left, op, right)
        case ast.Call():
            return _called(test, known)
    return None


def _joined(op: ast.boolop, values: list[ast.expr], known: Mapping[str, bool]) -> bool | None:
    each = [always(value, known) for value in values]
    deciding = isinstance(op, ast.Or)
    if deciding in each or _has_opposites(values):
        return deciding
    return None if None in each else not deciding


def _has_opposites(values: list[ast.expr]) -> bool:
    denied = {ast.dump(v.operand) for v in values if isinstance(v, ast.UnaryOp)}
    return bool(denied) and any(is_pure(v) and ast.dump(v) in denied for v in values)


def _agreed(truths: Iterable[bool | None]) -> bool | None:
    said = set(truths)
    return said.pop() if len(said) == 1 else None


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
    match left, op, right:
        case ast.Constant(one), _, ast.Constant(other) if type(op) in OPERATORS:
            try:
                return OPERATORS[type(op)](one, other)
            except TypeError:
                return None
        case _, ast.In() | ast.NotIn(), ast.Tuple(elts) | ast.List(elts) | ast.Set(elts):
            if any(is_same(left, one) for one in elts):
                return isinstance(op, ast.In)
        case ast.Call(ast.Name(name)), _, bound if name in NEVER_NEGATIVE:
            return _of_a_size(op, bound)
        case bound, _, ast.Call(ast.Name(name)) if name in NEVER_NEGATIVE:
            return _of_a_size(MIRRORED.get(type(op), type(op))(), bound)
    if is_same(left, right):
        return True if isinstance(op, REFLEXIVE) else False if isinstance(op, IRREFLEXIVE) else None
    return None


def _of_a_size(op: ast.cmpop, bound: ast.expr) -> bool | None:
    """Compare something that is never below zero."""
    match bound:
        case ast.UnaryOp(ast.USub(), ast.Constant()):
            return isinstance(op, ast.GtE | ast.Gt | ast.NotEq)
        case ast.Constant(0) if isinstance(op, ast.GtE | ast.Lt):
            return isinstance(op, ast.GtE)
    return None


def _called(call: ast.Call, known: Mapping[str, bool]) -> bool | None:
    match call:
        case ast.Call(ast.Name("bool"), [value], []):
            return always(value, known)
        case ast.Call(ast.Name("repr"), [_], []) | ast.Call(
            ast.Name("isinstance"), [_, ast.Name("object")], []
        ):
            return True
        case ast.Call(
            ast.Name("all" | "any" as name), [ast.Tuple(elts) | ast.List(elts) | ast.Set(elts)], []
        ):
            if any(isinstance(one, ast.Starred) for one in elts):
                return None
            return _joined(ast.Or() if name == "any" else ast.And(), elts, known)
        case ast.Call(
            ast.Attribute(ast.Name("re"), "match" | "search" | "fullmatch" as how),
            [ast.Constant(str(pattern)), *_],
        ):
            return True if matches_anything(pattern, how) else None
    return None


def matches_anything(pattern: str, how: str = "search") -> bool:
    """Does a pattern take whatever it is given?

    >>> [matches_anything(text) for text in (".*", "", "(x|.*)", "x?", "x+", "^$", "(")]
    [True, True, True, True, False, False, False]
    """
    try:
        return all(getattr(re, how)(pattern, sample) for sample in SAMPLES)
    except re.error:
        return False


def is_pure(node: ast.expr) -> bool:
    """Does an expression give the same each time, as no call and no property need do?"""
    return not any(isinstance(inner, COMPUTING) for inner in ast.walk(node))


def is_same(one: ast.expr, other: ast.expr) -> bool:
    """Are two expressions spelt alike, and is so what they give?"""
    return type(one) is type(other) and ast.dump(one) == ast.dump(other) and is_pure(one)
