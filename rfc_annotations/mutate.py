"""Mutants: small changes to the lines that bear claims, which the tests of those claims must see.

A comment with a claim bears on the nodes of its own line; where it stands alone, on the statement
or the line of a table that follows.  A claim in a function's docstring bears on the whole function,
one in the docstring of a class on its members and fields, or else on its functions.

A line that holds nothing to change has the value that it computes replaced by None, or its field
taken away.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rfc_annotations.anchors import (
    DEFINITIONS,
    FUNCTIONS,
    Anchors,
    Definition,
    Lines,
    body_lines,
    function_lines,
)
from rfc_annotations.lexical import Comment, comments, tokens
from rfc_annotations.scan import parsed, shared_tree

COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
SWAPPED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
DROPPED: Final = (ast.Expr, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)
Located = ast.expr | ast.stmt | ast.pattern


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One change: bytes `start` to `end` of the source of the file become `after`.

    `was` and `now` are the first changed line before and after, less comments: they name the
    mutant wherever its line moves.
    """

    file: str
    line: int
    start: int
    end: int
    after: str
    was: str
    now: str

    def apply(self, source: str) -> str:
        """Give the changed source."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


@dataclass(slots=True)
class Mutator:
    """The mutants of one source file."""

    file: str
    source: str
    _tree: ast.Module = field(init=False)
    _anchors: Anchors = field(init=False)
    _offsets: list[int] = field(init=False)  # of each line, in bytes
    _comments: list[Comment] = field(init=False)
    _enums: dict[str, list[str]] = field(init=False)
    _inside: set[int] = field(init=False)  # lines of functions
    _every: list[ast.AST] = field(init=False)
    _changeable: list[ast.expr | ast.stmt] = field(init=False)

    def __post_init__(self) -> None:
        self._tree = shared_tree(self.source)
        self._anchors = Anchors(self._tree)
        lines = self.source.splitlines(keepends=True)
        self._offsets = [0]
        for line in lines:
            self._offsets.append(self._offsets[-1] + len(line.encode()))
        self._comments = list(comments(tokens(self.source)))
        self._enums = dict(_enums(self._tree))
        self._every, self._changeable = list(ast.walk(self._tree)), list(_nodes(self._tree))
        functions = (node for node in self._every if isinstance(node, FUNCTIONS))
        self._inside = {line for node in functions for line in body_lines(node)}

    def of_claim(self, line: int) -> Iterator[Mutant]:
        """Yield the mutants that tests of a claim on `line` must notice."""
        lines = self._lines_of_claim(line)
        found = list(self._of_lines(lines))
        yield from found or self._crude(lines)

    def text_of_claim(self, line: int) -> list[str]:
        """Give the lines that a claim on `line` speaks of, less their comments."""
        texts = self.source.splitlines()
        return [_bare(texts[number - 1]) for number in sorted(self._lines_of_claim(line))]

    def _lines_of_claim(self, line: int) -> Lines:
        for comment in self._comments:
            if comment.line <= line <= comment.last:
                return self._borne(comment)
        for node in self._every:
            if isinstance(node, DEFINITIONS) and ast.get_docstring(node) is not None:
                about = node.body[0]
                if about.lineno <= line <= (about.end_lineno or line):
                    return _lines_of(node)
        return frozenset()

    def _borne(self, comment: Comment) -> Lines:
        """List the lines that a comment speaks about."""
        column = comment.column if comment.alone else 0
        statement, own = self._anchors.statement_of(comment.last, column)
        after = comment.last + 1 if comment.alone else comment.last
        if statement is None:
            return frozenset()
        if comment.last in own and len(own) > 1:  # a line of a table, or of a long expression
            near = frozenset([after])
            return near if any(self._of_lines(near)) else frozenset(own)
        return frozenset(own) | {comment.last}  # with the `case` that leads to the statement

    def _of_lines(self, lines: Lines) -> Iterator[Mutant]:
        for node in self._changeable:
            if not lines.issuperset(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                continue
            if isinstance(node, ast.expr):
                for text in self._expressions(node):
                    yield from self._mutant(node, text)
                if isinstance(node, ast.IfExp):
                    yield from self._mutant(node.test, f"(not ({ast.unparse(node.test)}))")
            elif node.lineno in self._inside and (isinstance(node, DROPPED) or _stores(node)):
                yield from self._mutant(node, "pass")
        for inner in self._every:
            match inner:
                case ast.If(test=test) | ast.While(test=test) if test.lineno in lines:
                    yield from self._mutant(test, f"not ({ast.unparse(test)})")
                case ast.match_case(guard=ast.expr() as guard) if guard.lineno in lines:
                    yield from self._mutant(guard, "True")
                case ast.For(iter=iterated) if iterated.lineno in lines:
                    yield from self._mutant(iterated, "()")
                case ast.comprehension(ifs=tests):
                    for test in tests:
                        if test.lineno in lines:
                            yield from self._mutant(test, f"(not ({ast.unparse(test)}))")
                case ast.ExceptHandler(type=ast.expr() as type_) if type_.lineno in lines:
                    yield from self._mutant(type_, "()")
                case ast.Dict():
                    yield from self._entries(inner, lines)

    def _crude(self, lines: Lines) -> Iterator[Mutant]:
        """Take away what a line computes, or the field that it declares."""
        for node in self._changeable:
            if not lines.issuperset(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
                continue
            match node:
                case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                    is_none = isinstance(value, ast.Constant) and value.value is None
                    yield from self._mutant(value, "0" if is_none else "None")
                case ast.AnnAssign():
                    yield from self._mutant(node, "pass")

    def _expressions(self, node: ast.expr) -> Iterator[str]:
        match node:
            case ast.Constant(value=value):
                yield from _constants(value)
            case ast.Compare(left, operators, rest):
                for at, operator in enumerate(operators):
                    for other in COMPARISONS[type(operator)]:
                        changed = [*operators[:at], other(), *operators[at + 1 :]]
                        yield f"({ast.unparse(ast.Compare(left, changed, rest))})"
            case ast.BoolOp(operator, values):
                swapped = ast.Or() if isinstance(operator, ast.And) else ast.And()
                yield f"({ast.unparse(ast.BoolOp(swapped, values))})"
            case ast.UnaryOp(ast.Not(), operand):
                yield f"({ast.unparse(operand)})"
            case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
                yield f"({ast.unparse(ast.BinOp(left, OPERATORS[type(operator)](), right))})"
            case ast.Attribute(ast.Name(name), member) if member in self._enums.get(name, ()):
                members = self._enums[name]
                yield f"{name}.{members[(members.index(member) + 1) % len(members)]}"
            case ast.Call(ast.Name(name), arguments, keywords) if name in SWAPPED:
                yield ast.unparse(ast.Call(ast.Name(SWAPPED[name]), arguments, keywords))
            case ast.Tuple(elts=[_], ctx=ast.Load()):
                yield "()"
            case ast.List(elts=[_, *_], ctx=ast.Load()):
                yield "[]"

    def _entries(self, node: ast.Dict, lines: Lines) -> Iterator[Mutant]:
        """Drop each entry of a table."""
        data = self.source.encode()
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None or key.lineno not in lines or value.end_lineno not in lines:
                continue
            start, end = self._span(key)[0], self._span(value)[1]
            while data[end : end + 1] in (b" ", b")"):  # in brackets of its own
                end += 1
            if data[end : end + 1] in (b",", b"}"):
                yield from self._change(key.lineno, start, end + (data[end : end + 1] == b","), "")

    def _span(self, node: Located) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        start = self._offsets[node.lineno - 1] + node.col_offset
        return start, self._offsets[last - 1] + column

    def _mutant(self, node: Located, after: str) -> Iterator[Mutant]:
        yield from self._change(node.lineno, *self._span(node), after)

    def _change(self, line: int, start: int, end: int, after: str) -> Iterator[Mutant]:
        data = self.source.encode()
        if data[start:end] == after.encode():
            return
        changed = (data[:start] + after.encode() + data[end:]).decode()
        try:
            parsed(changed)
        except SyntaxError:  # a pattern or the like, where this cannot stand
            return
        was, now = (text.splitlines()[line - 1] for text in (self.source, changed))
        yield Mutant(self.file, line, start, end, after, _bare(was), _bare(now))


def _lines_of(node: Definition) -> Lines:
    """The body of a function; the members and fields of a class, or else its functions."""
    if isinstance(node, FUNCTIONS):
        return body_lines(node)
    inner = function_lines(node)
    fields = (one for one in node.body[1:] if not isinstance(one, DEFINITIONS))
    return (
        frozenset(n for one in fields for n in range(one.lineno, (one.end_lineno or 0) + 1))
        or inner
    )


def _bare(line: str) -> str:
    return line.partition("  #")[0].strip()


def _constants(value: object) -> Iterator[str]:
    match value:
        case bool():
            yield repr(not value)
        case int():
            yield repr(value + 1)
        case float():
            yield repr(value + 1)
        case str() if " " not in value.strip():  # several words are for people
            yield repr(f"{value}x")
        case bytes():
            yield repr(value + b"x")


def _stores(node: ast.AST) -> bool:
    """Is it an assignment that may be missed?  Names without one are noticed by themselves."""
    return isinstance(node, ast.Assign) and not all(isinstance(t, ast.Name) for t in node.targets)


def _enums(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(b) for b in node.bases):
            names = [
                target.id
                for item in node.body
                if isinstance(item, ast.Assign)
                for target in item.targets
                if isinstance(target, ast.Name)
            ]
            yield node.name, names


def _nodes(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Walk over the nodes that can be changed: no docstrings, annotations or texts for people.

    Those are the insides of f-strings and what is raised.
    """
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _mute(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            if not isinstance(child, ast.JoinedStr | ast.Raise):
                yield from _nodes(child)


def _mute(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
