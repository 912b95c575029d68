"""The comments and the literals of a Python file, found by one pattern.

`tokenize` tells more about a file, and takes longer over it than all the rest of reading it.  A
string that expressions stand in is one literal here.
"""

import ast
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

# Only single characters repeat possessively: Python before 3.11.5 fails at groups that do.
STRING: Final = r"""(?:\"""(?:[^"\\]++|\\.|"(?!""))*\"""|'''(?:[^'\\]++|\\.|'(?!''))*'''
    |"(?:[^"\\]++|\\.)*"|'(?:[^'\\]++|\\.)*')"""
NUMBER: Final = (
    r"""(?:0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?[jJ]?)"""
)
TOKEN: Final = re.compile(
    rf"""(?:[^\W\d]\w*+(?!["'])|[^\w"'#()\[\]{{}}\n\\.]++|\.(?!\d))*  # what is neither
    (?:(?P<end>\n)
    |(?P<open>[(\[{{])
    |(?P<close>[)\]}}])
    |(?P<literal>[rbfuRBFU]{{0,2}}{STRING}|{NUMBER})
    |(?P<comment>\#[^\n]*)
    |(?P<on>\\\n))""",
    re.VERBOSE | re.DOTALL,
)
PLAIN: Final = re.compile(r"(\"\"\"|'''|[\"'])([^\\]*)\1|0|[1-9]\d*")  # stands for itself
ESCAPE: Final = re.compile(r"\\[rnt]")


class Token(NamedTuple):
    """A comment, a literal, or the end of a logical line that began on the line `first`."""

    kind: Literal["comment", "literal", "end"]
    line: int
    text: str = ""
    column: int = 0
    alone: bool = False  # a comment with nothing beside it
    first: int = 0


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment, or a block of comments with nothing beside them (`alone`), line by line."""

    line: int
    last: int
    text: str
    alone: bool
    column: int = 0


def tokens(source: str) -> Iterator[Token]:
    """Yield the comments and literals of a valid module, and where its logical lines end."""
    line, begun = 1, 0  # this line, and where it begins
    first, depth = 0, 0  # line on which the logical line began, and brackets open in it
    for match in TOKEN.finditer(source):
        kind = match.lastgroup or ""
        if kind == "end":
            if first and not depth:
                yield Token("end", line, first=first)
                first = 0
            line, begun = line + 1, match.end()
        elif kind == "comment":
            start = match.start(kind)
            alone = not source[begun:start].strip()
            yield Token("comment", line, match[kind], start - begun, alone)
        else:
            first = first or line
            if kind == "literal":
                yield Token("literal", line, match[kind])
            else:
                depth += (kind == "open") - (kind == "close")
            if below := match[kind].count("\n"):
                line, begun = line + below, source.rindex("\n", 0, match.end()) + 1


def comments(found: Iterable[Token]) -> Iterator[Comment]:
    """Yield the comments of a file, those on consecutive lines of their own as one."""
    block: list[Token] = []
    for token in found:
        if token.kind != "comment":
            continue
        if block and not (token.alone and token.line == block[-1].line + 1):
            yield _comment(block)
            block = []
        if token.alone:
            block.append(token)
        else:
            yield Comment(token.line, token.line, token.text.lstrip("#: "), False)
    if block:
        yield _comment(block)


def _comment(block: list[Token]) -> Comment:
    text = "\n".join(token.text.lstrip("#: ") for token in block)
    return Comment(block[0].line, block[-1].line, text, True, block[0].column)


def literals(found: Iterable[Token], passed: Container[int]) -> Iterator[tuple[range, str]]:
    """Yield the strings and numbers of each logical line, and its lines, as one piece of text.

    Those that begin on a line of `passed` are left out.
    """
    words: list[str] = []
    for token in found:
        if token.kind == "literal" and token.line not in passed:
            words.append(_value(token.text))
        elif token.kind == "end" and words:
            yield range(token.first, token.line + 1), " ".join(words)
            words = []


def _value(literal: str) -> str:
    """Say what a literal stands for, as text.

    >>> [_value(text) for text in ("'a' 'b'"[:3], "b'\\\\n'", "0x10", "1_0", "f'{x} \\\\n'")]
    ['a', '\\n', '16', '10', "f'{x}  '"]
    """
    if plain := PLAIN.fullmatch(literal):
        return plain[2] if plain[1] else literal
    try:
        value = ast.literal_eval(literal)
    except (SyntaxError, ValueError):  # with expressions in it
        return ESCAPE.sub(" ", literal)
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
