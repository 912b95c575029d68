"""Looking into syntax trees, for the rules that judge the form of code and tests."""

import ast
from collections.abc import Iterator
from functools import cache
from typing import Final

BARE: Final = {"ctx", "id", "attr", "arg", "name", "op", "ops", "kind", "names", "module", "rest"}
BROAD: Final = {"AssertionError", "Exception", "BaseException"}  # what takes an assertion as well


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


def mentioned(node: ast.AST) -> set[str]:
    """Every name and attribute within."""
    names = set()
    for inner in walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                names.add(name)
    return names


def swallows(handler: ast.ExceptHandler) -> bool:
    """Does a handler take a failed assertion, and go on?"""
    broad = handler.type is None or not BROAD.isdisjoint(mentioned(handler.type))
    goes_on = any(isinstance(node, ast.Raise | ast.Assert) for node in walk(handler))
    return broad and not goes_on and "fail" not in mentioned(handler)


def suppresses(item: ast.withitem) -> bool:
    """Does a context of contextlib or of pytest take a failed assertion?"""
    match item.context_expr:
        case ast.Call(func=ast.Name("suppress") | ast.Attribute(attr="suppress"), args=args):
            return any(not BROAD.isdisjoint(mentioned(arg)) for arg in args)
        case ast.Call(func=ast.Attribute(attr="raises"), args=[expected, *_], keywords=[]):
            return not BROAD.isdisjoint(mentioned(expected))
    return False
