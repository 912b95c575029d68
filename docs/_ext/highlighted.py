"""The lines of Python files as HTML, each with its colours, and the names defined in them."""

import functools
import re
from collections.abc import Iterable

from definitions import REPO
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

INDENT = re.compile(r"((?:<[^>]*>)*)( *)")
TAG = re.compile(r"<[^>]*>")


@functools.cache
def html_lines(file: str) -> tuple[str, ...]:
    """Every line of a file; a token that spans lines is closed and begun again on each."""
    text = (REPO / file).read_text(encoding="utf-8")
    formatter = HtmlFormatter(nowrap=True)
    return tuple(highlight(text, PythonLexer(stripnl=False), formatter).splitlines())


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
