"""Looking into syntax trees, for the rules that judge the form of code and tests."""

import ast
from collections.abc import Iterator
from typing import Final

BARE: Final = {
    *("ctx", "id", "attr", "arg", "name", "op", "ops", "kind", "names", "module", "rest"),
    *("asname", "conversion", "is_async", "level", "simple", "type_comment"),
}
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
        if shut and isinstance(node, shut) and node is not top:
            continue
        for name in _FIELDS[type(node)]:
            below = getattr(node, name, None)
            if below.__class__ is list:
                todo += [each for each in below if isinstance(each, ast.AST)]
            elif isinstance(below, ast.AST):
                todo.append(below)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that may hold such nodes, found out when first asked."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        holds = () if kind is ast.Constant else kind._fields
        self[kind] = tuple(name for name in holds if name not in BARE)
        return self[kind]


_FIELDS: Final = _Fields()


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
