"""Files of the languages that write comments as `//` and `/* */`, and the lines claims stand for.

No language is parsed: comments, strings and brackets are told apart, and the rest is code.  Blocks
of a name (a class, a module, a namespace) hold functions; the outermost other blocks with a round
bracket before them are functions.  The anchors are those of `anchors`, by that measure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Final

from rfc_annotations.anchors import Lines
from rfc_annotations.lexical import Comment

SCRIPTS: Final = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx")  # strings in single quotes
C: Final = (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m", ".mm")
LINES: Final = (*SCRIPTS, ".go", ".kt", ".scala", ".swift")  # whose statements end with the line
SUFFIXES: Final = (*C, ".cs", ".java", ".rs", *LINES)
COMMENT: Final = r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
STRINGS: Final = r"""r(?P<hash>\#+)".*?"(?P=hash)|R"(?P<mark>\w{0,16})\(.*?\)(?P=mark)"
    |\"{3}.*?\"{3}|"(?:[^"\\\n]|\\.)*+\""""
CHARACTER: Final = r"|'(?:[^'\\\n]|\\.[^'\n]{0,8})'"
QUOTED: Final = r"|'(?:[^'\\\n]|\\.)*+'"
TEMPLATE: Final = r"|`(?:[^`\\]|\\.)*+`"
RAW: Final = r"|`[^`]*+`"
HOLDING: Final = re.compile(
    r"\b(?:impl|trait|mod|module|namespace|class|interface|object|record|protocol|extension)\b"
)
BRANCH: Final = re.compile(r"}?\s*(?:else\s*{?|(?:case\b.*|default\s*):|.*=>\s*{)")
LONGEST: Final = 16  # lines between a comment and what it stands for, to be shown as one
# What stands before a definition and may hold brackets of its own.
DRESS: Final = re.compile(
    r"^[ \t]*\#(?!\[).*$|\#!?\[[^]]*\]|@\w+(?:\([^)]*\))?|\bpub\([^)]*\)"
    r"|\b(?:__attribute__|alignas|__declspec)\s*\(+[^)]*\)+",
    re.MULTILINE,
)
FURNITURE: Final = re.compile(r"^[ \t]*(?:/\*+!?|//+!?|\*+(?!/))?[ \t]?|\s*\*+/\Z", re.MULTILINE)
ONGOING: Final = re.compile(r"[-+*/%&|^=<.(,]\Z")


@dataclass(frozen=True, slots=True)
class _Block:
    """A pair of braces: the lines of its heading, of `{` and of `}`."""

    head: int
    first: int
    last: int
    is_function: bool

    @property
    def lines(self) -> Lines:
        return frozenset(range(self.first, self.last + 1))


def reads(file: str) -> bool:
    """Whether a file is of such a language, by its name."""
    return PurePath(file).suffix in SUFFIXES


@dataclass
class Source:
    """One file; `suffix` tells its language."""

    text: str
    suffix: str
    strings: list[tuple[int, str]] = field(init=False, default_factory=list)  # line and text
    _found: list[Comment] = field(init=False, default_factory=list)
    _code: str = field(init=False)

    def __post_init__(self) -> None:
        single = QUOTED if self.suffix in SCRIPTS else CHARACTER
        back = RAW if self.suffix == ".go" else TEMPLATE if self.suffix in SCRIPTS else ""
        pattern = f"{COMMENT}|(?:{STRINGS}{single}{back})"
        self._code = re.sub(pattern, self._take, self.text, flags=re.VERBOSE | re.DOTALL)

    def _take(self, match: re.Match[str]) -> str:
        """Note a comment or a string, and leave what has neither bracket nor letter behind."""
        line = self.text.count("\n", 0, match.start()) + 1
        comment = match["comment"]
        if comment is None:
            self.strings.append((line, match[0]))
            return re.sub(r"[^\n]", "_", match[0])
        before = self.text[self.text.rfind("\n", 0, match.start()) + 1 : match.start()]
        last = line + comment.count("\n")
        alone = not before.strip()
        self._found.append(Comment(line, last, FURNITURE.sub("", comment), alone, len(before)))
        return re.sub(r"[^\n]", " ", comment)

    def comments(self) -> Iterator[Comment]:
        """Yield the comments, those with nothing beside them on lines that follow as one."""
        waiting: Comment | None = None
        for one in self._found:
            if waiting and waiting.alone and one.alone and one.line == waiting.last + 1:
                text = f"{waiting.text}\n{one.text}"
                waiting = Comment(waiting.line, one.last, text, True, waiting.column)
                continue
            if waiting:
                yield waiting
            waiting = one
        if waiting:
            yield waiting

    def shown(self, line: int) -> range:
        """Give the lines to show for a comment on `line`: it, and what it stands for if near."""
        near = (c for c in self.comments() if c.line <= line <= c.last)
        comment = next(near, Comment(line, line, "", False))
        anchor = self.of_comment(comment)
        first, last = min(anchor, default=line), max(anchor, default=line)
        if not comment.line - LONGEST < first < comment.last + LONGEST:
            return range(comment.line, comment.last + 1)
        return range(min(first, comment.line), max(last, comment.last) + 1)

    def is_heading(self, comment: Comment) -> bool:
        """Whether a comment stands before all code, as a module's docstring does."""
        above = self._lines[: comment.line - 1]
        return comment.alone and not any(line.strip() for line in above)

    def of_comment(self, comment: Comment) -> Lines:
        """Give the anchor of a claim in a comment."""
        line = self._next(comment.last) if comment.alone else comment.line
        if line is None:
            return self._functions_in(1, len(self._lines))
        inside = any(block.first <= comment.line <= block.last for block in self._functions)
        if inside:
            return self._statement(line, comment)
        for block in self._blocks:
            if block.head <= line <= block.first:
                return block.lines if block.is_function else self._functions_in(line, block.last)
        return self._functions_in(1, len(self._lines))

    def _statement(self, line: int, comment: Comment) -> Lines:
        """Give the lines of the statement on `line`, or the first one inside of a branch."""
        text = self._lines[line - 1].strip()
        if comment.alone and text.startswith("}"):
            return frozenset([comment.line])  # which nothing runs
        if not comment.alone and BRANCH.fullmatch(text):
            inside = self._next(line)
            line = inside if inside is not None else line
        first = last = line
        while self._goes_on(first - 1):
            first -= 1
        while self._goes_on(last) and not self._lines[last].strip().startswith("}"):
            last += 1
        return frozenset(range(first, last + 1))

    def _goes_on(self, line: int) -> bool:
        """Does the statement that is on `line` go on below?"""
        if not 0 < line < len(self._lines):
            return False
        text = self._lines[line - 1].strip()
        if not text or text.startswith("#"):
            return False
        if self._open_at_end[line - 1]:
            return True
        if self.suffix in LINES:
            return ONGOING.search(text) is not None
        return not text.endswith((";", "{", "}", ":", ","))

    def _next(self, line: int) -> int | None:
        """Find the next line with code."""
        below = range(line + 1, len(self._lines) + 1)
        return next((number for number in below if self._lines[number - 1].strip()), None)

    def _functions_in(self, first: int, last: int) -> Lines:
        within = (block.lines for block in self._functions if first <= block.first <= last)
        return frozenset().union(*within)

    @cached_property
    def _lines(self) -> list[str]:
        return self._code.split("\n")

    @cached_property
    def _functions(self) -> list[_Block]:
        return [block for block in self._blocks if block.is_function]

    @cached_property
    def _blocks(self) -> list[_Block]:
        """The blocks that hold functions, and the functions, in order."""
        found: list[_Block] = []
        around: list[tuple[int, int, bool, str]] = []  # of each open brace: lines of head and it
        begun, inside = 0, 0  # where the head begins, and functions around
        for match in re.finditer(r"[;{}]", self._code):
            line = self._code.count("\n", 0, match.start()) + 1
            if match[0] == "{":
                head = self._code[begun : match.start()]
                if self.suffix in LINES:
                    head = self._last_statement(head, line)
                start = line - head.lstrip().count("\n")
                is_function = not inside and _opens_function(head)
                inside += bool(inside) or is_function
                around.append((start, line, is_function, head))
            elif match[0] == "}" and around:
                start, first, is_function, head = around.pop()
                if is_function or not (inside or "=" in head):  # which is a table
                    found.append(_Block(start, first, line, is_function))
                inside = max(0, inside - 1)
            begun = match.end()
        return sorted(found, key=lambda block: block.first)

    def _last_statement(self, head: str, line: int) -> str:
        """Leave out of a head that ends on `line` the statements that no semicolon ended."""
        lines = head.split("\n")
        for at in range(len(lines) - 1, 0, -1):
            before = line - len(lines) + at
            if not self._open_at_end[before - 1] and "".join(lines[at:]).strip():
                return "\n".join(lines[at:])
        return head

    @cached_property
    def _open_at_end(self) -> list[bool]:
        """Whether a round or square bracket is open at the end of each line, within its block."""
        depth, around, told = 0, [], []
        for line in self._lines:
            for mark in re.findall(r"[][(){}]", line):
                if mark == "{":
                    around.append(depth)
                    depth = 0
                elif mark == "}":
                    depth = around.pop() if around else 0
                else:
                    depth = max(0, depth + (1 if mark in "([" else -1))
            told.append(depth > 0)
        return told


def _opens_function(head: str) -> bool:
    """Does a block after `head`, in no function, hold statements?

    >>> [_opens_function(h) for h in ("int f(int a) ", "impl X for Y ", "struct a *f(void) ")]
    [True, False, True]
    >>> [_opens_function(h) for h in ("type T struct ", "int t[] = ", "class A(val x: Int) ")]
    [False, False, False]
    >>> [_opens_function(h) for h in ("#[cfg(test)] mod x ", "pub(crate) struct S ", "#if X(1)\\n")]
    [False, False, False]
    """
    before, bracket, _ = DRESS.sub("", head).partition("(")
    return bool(bracket) and HOLDING.search(before) is None
