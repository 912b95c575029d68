"""Reads source files: their citations, their prose, and their public names.

Python is read with `ast` and `lexical`: citations count in docstrings and comments, never in other
strings.  In Markdown everything counts except what stands between code fences; in languages with
comments of `//` and `/* */`, those comments.
"""

import ast
import gc
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Literal

from rfc_annotations import braces
from rfc_annotations.anchors import DEFINITIONS, FUNCTIONS, Anchors, Definition, Lines
from rfc_annotations.grammar import OWN_DESIGN, Grammar, Mistake
from rfc_annotations.lexical import Comment, comments, literals, tokens
from rfc_annotations.trees import walk

Kind = Literal["code", "test", "tool", "doc"]
FENCED: Final = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation in its place; `owner` names the test that makes it, `anchor` the lines to run."""

    file: str
    line: int
    spec: str
    section: str
    slugs: tuple[str, ...]
    verb: str
    owner: str = ""
    anchor: Lines = frozenset()

    @property
    def is_traced(self) -> bool:
        """Whether a run of pytest can tell that its lines ran."""
        return bool(self.anchor) and is_python(self.file)


@dataclass(frozen=True, slots=True)
class Prose:
    """Text that might repeat a spec; `literal` is true of strings and numbers in code."""

    line: int
    text: str
    literal: bool = False
    cites: bool = False


@dataclass(slots=True)
class Scanned:
    """The contents of one file, as far as the rules need them."""

    file: str
    kind: Kind
    cited: list[Cited] = field(default_factory=list)
    mistakes: list[tuple[int, str]] = field(default_factory=list)
    prose: list[Prose] = field(default_factory=list)
    uncited: list[tuple[int, str]] = field(default_factory=list)  # public names without a source
    default: str | None = None
    tree: ast.Module | None = None  # of a file in Python that can be read


def is_python(file: str) -> bool:
    """Whether a file is in Python; claims in other languages are left to their own coverage."""
    return file.endswith(".py")


def scan(path: Path, file: str, kind: Kind, grammar: Grammar) -> Scanned:
    """Read one file; `file` is how reports shall call it."""
    text = path.read_text()
    result = Scanned(file, kind)
    if path.suffix == ".md":
        _Markdown(result, grammar).read(text)
    elif braces.reads(file):
        _Braces(result, grammar).read(braces.Source(text, path.suffix))
    else:
        try:
            _Python(result, grammar, text).read()
        except SyntaxError as error:
            result.mistakes.append((error.lineno or 1, f"cannot read: {error}"))
    return result


Place = Callable[[], tuple[str, Lines]]


def _nowhere() -> tuple[str, Lines]:
    return "", frozenset()


@dataclass(slots=True)
class _Reader:
    result: Scanned
    grammar: Grammar

    def cite(self, text: str, line: int, place: Place = _nowhere) -> int:
        """Record the citations of `text`, which begins on `line`; return how many there are.

        `place` gives the owner and the anchor, and is asked only if something is claimed.
        """
        count = 0
        named: str | None = None  # the spec last spelled out in this text
        for item in self.grammar.parse(text):
            at = line + text.count("\n", 0, item.start)
            if isinstance(item, Mistake):
                self.result.mistakes.append((at, item.message))
                continue
            named = item.spec or named
            spec = item.spec or item.chained or self.result.default or named
            if spec is None:
                self.result.mistakes.append((at, f"§{item.section} without a spec"))
                continue
            count += 1
            where = (self.result.file, at, spec, item.section)
            meant = place() if item.slugs else ("", frozenset())
            self.result.cited.append(Cited(*where, item.slugs, item.verb, *meant))
        return count


class _Markdown(_Reader):
    def read(self, text: str) -> None:
        self.result.prose.append(Prose(1, text))
        blank = FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        self.result.default = self.grammar.default(blank)
        self.cite(blank, 1)


class _Braces(_Reader):
    def read(self, source: braces.Source) -> None:
        found = list(source.comments())
        heading = "\n".join(comment.text for comment in found if source.is_heading(comment))
        self.result.default = self.grammar.default(heading)
        sources: set[int] = set()  # lines of comments that cite, and those below
        for comment in found:
            if self.cite(comment.text, comment.line, partial(self._beside, source, comment)):
                sources.update(range(comment.line, comment.last + 2))
            self.result.prose.append(Prose(comment.line, comment.text))
        for line, text in source.strings:
            self.result.prose.append(Prose(line, text, literal=True, cites=line in sources))

    def _beside(self, source: braces.Source, comment: Comment) -> tuple[str, Lines]:
        return "", source.of_comment(comment)


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the garbage collector rest: it looks into every tree again and again, and finds nothing.

    Own design: some versions of CPython, besides, take the end of a tree for a SystemError if a
    finalizer that runs while it is made parses too, as the report of an exception in it does.
    """
    rests = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if rests:
            gc.enable()


def parsed(source: str) -> ast.Module:
    """Parse a module; raise SyntaxError where it is none."""
    with uncollected():
        return ast.parse(source)


@lru_cache(maxsize=4096)  # more than most projects have files
def shared_tree(source: str) -> ast.Module:
    """Parse a module once for all who ask; nobody changes what they get."""
    return parsed(source)


class _Python(_Reader):
    def __init__(self, result: Scanned, grammar: Grammar, source: str) -> None:
        super().__init__(result, grammar)
        self._tree = result.tree = shared_tree(source)
        self._tokens = list(tokens(source))
        self._anchors = Anchors(self._tree)
        self._sources: set[int] = set()  # lines of comments that cite

    def read(self) -> None:
        about = ast.get_docstring(self._tree, clean=False) or ""
        self.result.default = self.grammar.default(about)
        strings = self._docstrings()
        for comment in comments(self._tokens):
            if self.cite(comment.text, comment.line, partial(self._beside, comment)):
                self._sources.update(range(comment.line, comment.last + 1))
            self.result.prose.append(Prose(comment.line, comment.text))
        for lines, text in literals(self._tokens, strings):
            # a comment right above a line still counts as on it
            cites = not self._sources.isdisjoint(range(lines.start - 1, lines.stop))
            self.result.prose.append(Prose(lines.start, text, literal=True, cites=cites))
        if not OWN_DESIGN.search(about):
            self._judge(self._tree.body, "")

    def _docstrings(self) -> set[int]:
        """Read every docstring, and return the lines on which they begin."""
        lines = set()
        for node in (self._tree, *self._anchors.statements):
            if not isinstance(node, (ast.Module, *DEFINITIONS)):
                continue
            text = ast.get_docstring(node, clean=False)
            if text is None:
                continue
            line = node.body[0].lineno
            lines.add(line)
            self.cite(text, line, partial(self._within, node, line))
            self.result.prose.append(Prose(line, text))
        return lines | self._remarks(lines)

    def _remarks(self, docstrings: set[int]) -> set[int]:
        """Read the strings that stand alone, such as those below constants, like docstrings."""
        lines = set()
        for node in self._anchors.statements:
            match node:
                case ast.Expr(ast.Constant(str(text)), lineno=line) if line not in docstrings:
                    lines.add(line)
                    self.cite(text, line, partial(self._beside, Comment(line, line, text, True)))
                    self.result.prose.append(Prose(line, text))
        return lines

    def _beside(self, comment: Comment) -> tuple[str, Lines]:
        anchor = self._anchors.of_comment(comment.last, comment.column)
        return self._owner(comment.last), anchor

    def _within(self, node: ast.Module | Definition, line: int) -> tuple[str, Lines]:
        return self._owner(line), self._anchors.of_docstring(node)

    def _owner(self, line: int) -> str:
        return test_owner(self._tree, line) if self.result.kind == "test" else ""

    def _judge(self, body: list[ast.stmt], prefix: str) -> None:
        """List the public names with neither a citation nor an `Own design`.

        What is our own design is so with all that it contains.
        """
        for node in _definitions(body):
            if node.name.startswith("_"):
                continue
            name = f"{prefix}{node.name}"
            if not _repeated(node) and not self._justified(node):
                self.result.uncited.append((node.lineno, name))
            if isinstance(node, ast.ClassDef) and not _own_design(node):
                self._judge(node.body, f"{name}.")

    def _justified(self, node: Definition) -> bool:
        if _own_design(node):
            return True
        within = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.ClassDef):  # its methods speak for themselves
            for method in node.body:
                if isinstance(method, DEFINITIONS):
                    within -= set(range(method.lineno, (method.end_lineno or 0) + 1))
        return any(cited.line in within for cited in self.result.cited)


def _definitions(body: Iterable[ast.AST]) -> Iterator[Definition]:
    """Yield the definitions in `body`, in all its branches."""
    for node in body:
        if isinstance(node, DEFINITIONS):
            yield node
        elif not isinstance(node, ast.expr):
            yield from _definitions(ast.iter_child_nodes(node))


def _own_design(node: Definition) -> bool:
    return OWN_DESIGN.search(ast.get_docstring(node, clean=False) or "") is not None


def _repeated(node: Definition) -> bool:
    """Whether it is a property's setter, or an overload: another definition is judged."""
    return any(
        getattr(decorator, "attr", getattr(decorator, "id", "")) in ("setter", "overload")
        for decorator in node.decorator_list
    )


def test_owner(tree: ast.Module, line: int) -> str:
    """Name the test of a module, or the group of tests, that a claim on `line` speaks for.

    A state machine speaks for the test that its `TestCase` was assigned to, or for the test
    function that runs it; a class for all the tests in it.
    """
    for node in tree.body:
        if not isinstance(node, DEFINITIONS) or line not in _lines(node):
            continue
        name = node.name if node.name.startswith(("test", "Test")) else _runner(tree, node.name)
        for inner in node.body:
            if isinstance(inner, FUNCTIONS) and line in _lines(inner):
                return f"{name}::{inner.name}" if inner.name.startswith("test") else name
        return name
    return ""


def _runner(tree: ast.Module, machine: str) -> str:
    for node in tree.body:
        if not any(isinstance(x, ast.Name) and x.id == machine for x in walk(node)):
            continue
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(attr="TestCase")):
                return name
            case ast.FunctionDef(name=name) if name.startswith("test"):
                return name
    return ""


def _lines(node: Definition) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
