"""The lines of Python files as HTML, with a few colours, and their places on a page.

Only what guides the eye is marked, by short tags: Pygments' own HTML has a span for each name,
bracket and operator, and makes the pages of the sources four times as large.
"""

import functools
import re
from collections.abc import Iterable
from html import escape
from itertools import groupby

from definitions import REPO
from pygments.lexers import PythonLexer
from pygments.token import Token

COLOURED = "src/"  # finding the tokens takes most of the time
LEXER = PythonLexer(stripnl=False)
TAGS = {  # the first that has a token's kind gives its tag; source.css has the colours
    Token.Comment: "em",
    Token.Literal.String.Doc: "em",
    Token.Literal.String: "samp",
    Token.Keyword: "b",
    Token.Name.Class: "b",
    Token.Name.Function: "b",
}
INDENT = re.compile(r"((?:<[^>]*>)*)( *)")
TAG = re.compile(r"<[^>]*>")


def place_of(file: str, line: str = "") -> str:
    """The place of a file, or of a line such as L12, on the page of its room."""
    stem = file.rpartition("/")[2].removesuffix(".py")
    return f"{stem}-{line}" if line else f"{stem}.py"


@functools.cache
def html_lines(file: str) -> tuple[str, ...]:
    """Every line of a file; a token that spans lines is closed and begun again on each."""
    text = (REPO / file).read_text(encoding="utf-8")
    if not file.startswith(COLOURED):
        return tuple(escape(text, quote=False).splitlines())
    lines = [""]
    for tag, tokens in groupby(LEXER.get_tokens(text), lambda token: tag_of(token[0])):
        first, *more = escape("".join(part for _, part in tokens), quote=False).split("\n")
        lines[-1] += _tagged(tag, first)
        lines += [_tagged(tag, part) for part in more]
    return tuple(lines[:-1])  # the last one ends, as every line does


@functools.cache
def tag_of(kind: object) -> str:
    """The tag of a kind of token, or nothing."""
    return next((tag for each, tag in TAGS.items() if kind in each), "")


def _tagged(tag: str, text: str) -> str:
    bare = text.lstrip(" ")
    indent = " " * (len(text) - len(bare))
    return f"{indent}<{tag}>{bare}</{tag}>" if tag and bare else text


def excerpt(file: str, lines: range, marked: Iterable[int] = ()) -> str:
    """Some lines of a file, less the indent that they share; `marked` stand out."""
    shown = html_lines(file)[lines.start - 1 : lines.stop - 1]
    widths = [len(indent_of(line)) for line in shown if TAG.sub("", line).strip()]
    shared = min(widths, default=0)
    out = []
    for number, line in enumerate(shown, lines.start):
        bare = INDENT.sub(lambda found: found[1] + found[2][shared:], line, count=1)
        out.append(f'<span class="cites">{bare}</span>' if number in marked else bare)
    text = "\n".join(out)
    return f'<div class="highlight"><pre>{text}\n</pre></div>'


def indent_of(line: str) -> str:
    """The blanks that a line of HTML begins with."""
    found = INDENT.match(line)
    return found[2] if found else ""
