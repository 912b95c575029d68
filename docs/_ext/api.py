"""API pages from the front door of a package: its public names, with signature and docstring.

`__all__` of the package says what is shown, its `_HOME_OF` from which module each name comes, and
the table of `tests/rooms.txt` whether that module is a codec, a machine, or at the edge.
Sources are read, not imported, for signatures as they were written.
"""

import ast
import functools
import inspect
import re
import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType

from rfc_annotations.grammar import Citation, Grammar

REPO = Path(__file__).resolve().parent.parent.parent
LEVELS = {"codecs": ("codec",), "machines": ("machine",), "edge": ("edge", "program")}
SLUGS = re.compile(r"(§(?:\"[^\"]*\"|[\w.]*\w))(?:\s+\[[a-z0-9-]+\])+")
POINTLESS = re.compile(r"\s*\(?[Oo]wn design(?:[:;,] see the module)?\)?\.?\Z", re.MULTILINE)
CODE = re.compile(r"(`[^`]*`)")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def room_table() -> list[tuple[str, str, list[str]]]:
    """Level, room and the rooms it may import: the lines of `tests/rooms.txt`."""
    table = (REPO / "tests/rooms.txt").read_text(encoding="utf-8")
    lines = re.sub(r"\n +", " ", table).splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return [(level, room, others) for level, room, *others in rows]


def by_room(door: ModuleType, level: str) -> dict[str, list[str]]:
    """The public names of a level, by the room of each."""
    levels = {room.strip("[]"): name for name, room, _ in room_table()}
    found: dict[str, list[str]] = {}
    for name in door.__all__:
        home = door._HOME_OF[name]
        is_package = (REPO / "src" / home.replace(".", "/")).is_dir()
        room = home if is_package else home.rpartition(".")[0]
        if levels.get(home, levels[room]) in LEVELS[level]:
            found.setdefault(room, []).append(name)
    return found


class Entry:
    """One public name: its signature, its docstring, and its members if it is a class."""

    def __init__(self, door: ModuleType, name: str) -> None:
        self.door, self.name = door, name
        self.home: str = door._HOME_OF[name]

    def lines(self) -> Iterator[str]:
        """Markdown of the name, as a directive of Sphinx's Python domain."""
        if isinstance(value := getattr(self.door, self.name), ModuleType):
            yield from self._module(value)
            return
        node = top_level(self.home, self.name)
        match node:
            case ast.ClassDef():
                yield from self._class(getattr(self.door, self.name), node)
            case ast.FunctionDef():
                signature = f"{self.name}{arguments(node)}"
                yield from self._block("function", signature, node, self.home)
            case _:
                yield from self._value(node)

    def _class(self, value: type, node: ast.ClassDef) -> Iterator[str]:
        kind = "exception" if issubclass(value, BaseException) else "class"
        family = [base for base in value.__mro__ if base.__module__.startswith(self._family)]
        bases = [base for base in family[1:] if self.door._HOME_OF.get(base.__name__)]
        yield f"::::{{py:{kind}}} {self.name}{constructor(family)}"
        yield from self._about(node, self.home, "::::")
        if bases:
            yield f"Derives from {reference(self.door, bases[0].__name__)}."
            yield ""
        if issubclass(value, Enum) and (words := list(enumerated(node))):
            yield f"One of {', '.join(words)}."
            yield ""
        seen: set[str] = set()
        for base in family:
            if base in bases:
                break
            for member in members(top_level(base.__module__, base.__name__)):
                if member.name not in seen:
                    seen.add(member.name)
                    yield from self._member(member, base.__module__)
        yield "::::"

    def _module(self, value: ModuleType) -> Iterator[str]:
        """The public functions of a module that is itself a public name."""
        for node in tree_of(value.__name__).body:
            if isinstance(node, Function) and node.name[0] != "_":
                signature = f"{self.name}.{node.name}{arguments(node)}"
                yield from self._block("function", signature, node, value.__name__)

    def _member(self, node: Function, module: str) -> Iterator[str]:
        marks = {ast.unparse(each) for each in node.decorator_list}
        if "property" in marks or "cached_property" in marks:
            returns = annotation(node.returns)
            yield from self._block("property", node.name, node, module, f":type: {returns}")
        else:
            kind = "classmethod" if "classmethod" in marks else "method"
            is_static = "staticmethod" in marks
            signature = f"{node.name}{arguments(node, skip=0 if is_static else 1)}"
            yield from self._block(kind, signature, node, module)

    def _value(self, node: ast.stmt) -> Iterator[str]:
        text = ast.unparse(node.value) if isinstance(node, (ast.Assign, ast.AnnAssign)) else ""
        yield f"::::{{py:data}} {self.name}"
        yield f":module: {self.door.__name__}"
        yield f":value: {text}"
        yield ""
        yield from markdown(self.door, doc_below(self.home, node), default_spec(self.home))
        yield "::::"

    def _block(
        self, kind: str, signature: str, node: Function, module: str, *options: str
    ) -> Iterator[str]:
        fence = "::::" if kind == "function" else ":::"
        yield f"{fence}{{py:{kind}}} {signature}"
        yield from options
        yield from self._about(node, module, fence)
        yield fence

    def _about(self, node: Function | ast.ClassDef, module: str, fence: str) -> Iterator[str]:
        if fence == "::::":
            yield f":module: {self.door.__name__}"
        yield ""
        yield from markdown(self.door, ast.get_docstring(node) or "", default_spec(module))
        yield ""

    @property
    def _family(self) -> str:
        return self.door.__name__.partition(".")[0] + "."


# -- reading sources ------------------------------------------------------------------


@functools.cache
def tree_of(module: str) -> ast.Module:
    """The source of a module."""
    path = REPO / "src" / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def top_level(module: str, name: str) -> ast.stmt:
    """Where a module defines a name."""
    for node in tree_of(module).body:
        if isinstance(node, (ast.ClassDef, Function)) and node.name == name:
            return node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            return node
    raise LookupError(f"{module} does not define {name}: name its home in the front door")


def members(node: ast.stmt) -> Iterator[Function]:
    """The public methods and properties of a class, and the special ones that have a docstring."""
    assert isinstance(node, ast.ClassDef)
    for each in node.body:
        if not isinstance(each, Function) or not ast.get_docstring(each):
            continue
        marks = [ast.unparse(mark) for mark in each.decorator_list]
        if any(mark.endswith((".setter", "overload")) for mark in marks):
            continue
        if each.name[0] != "_" or (each.name.endswith("__") and each.name != "__init__"):
            yield each


def enumerated(node: ast.ClassDef) -> Iterator[str]:
    """The words of an enumeration."""
    for each in node.body:
        if isinstance(each, ast.Assign):
            yield f"`{ast.unparse(each.targets[0])}`"


def doc_below(module: str, node: ast.stmt) -> str:
    """The string that stands below a value, which is how a value is documented."""
    body = tree_of(module).body
    following = body[body.index(node) + 1 :][:1]
    for each in following:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            return inspect.cleandoc(str(each.value.value))
    return ""


# -- signatures -----------------------------------------------------------------------


def constructor(family: list[type]) -> str:
    """The arguments that a class is made with, "" if it is not made by hand."""
    for base in family:
        node = top_level(base.__module__, base.__name__)
        assert isinstance(node, ast.ClassDef)
        if any(ast.unparse(each).startswith(("Protocol", "StrEnum")) for each in node.bases):
            return ""
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                return arguments(each, skip=1).removesuffix(" -> None")
        marks = [ast.unparse(each) for each in (*node.decorator_list, *node.bases)]
        if any(mark.startswith(("dataclass", "NamedTuple")) for mark in marks):
            return f"({', '.join(fields(node))})"
    return ""


def fields(node: ast.ClassDef) -> Iterator[str]:
    """The fields of a dataclass or of a named tuple, as arguments."""
    for each in node.body:
        if not isinstance(each, ast.AnnAssign):
            continue
        value = "" if each.value is None else ast.unparse(each.value)
        if "ClassVar" in ast.unparse(each.annotation) or "init=False" in value:
            continue
        value = "..." if value.startswith("field(") else value
        text = f"{ast.unparse(each.target)}: {annotation(each.annotation)}"
        yield f"{text} = {value}" if value else text


def arguments(node: Function, skip: int = 0) -> str:
    """Arguments and result, without the first `skip`."""
    node = ast.parse(ast.unparse(node)).body[0]  # a copy
    assert isinstance(node, Function)
    given = node.args
    for _ in range(skip):
        (given.posonlyargs or given.args).pop(0)
    for each in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
        if each is not None and each.annotation is not None:
            each.annotation = ast.parse(annotation(each.annotation), mode="eval").body
    returns = annotation(node.returns)
    return f"({ast.unparse(given)})" + (f" -> {returns}" if returns else "")


class Unquoted(ast.NodeTransformer):
    """An annotation without the quotes that only the interpreter needs."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Evaluate a string annotation."""
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def annotation(node: ast.expr | None) -> str:
    """A type as a reader wants it."""
    return "" if node is None else ast.unparse(Unquoted().visit(node))


# -- docstrings -----------------------------------------------------------------------


@functools.cache
def grammar() -> Grammar:
    """The grammar of citations, with the names of `rfc_annotations/specs.toml`."""
    listed = tomllib.loads((REPO / "rfc_annotations/specs.toml").read_text(encoding="utf-8"))
    return Grammar(spec["name"] for spec in listed["spec"])


def default_spec(module: str) -> str | None:
    """The specification that a bare § of this module means."""
    return grammar().default(ast.get_docstring(tree_of(module)) or "")


def spelled_out(text: str, spec: str | None) -> str:
    """The text with the specification before each bare §, and without the slugs of claims."""
    for cited in reversed(list(grammar().parse(text))):
        if isinstance(cited, Citation) and not cited.spec and not cited.chained and spec:
            text = f"{text[: cited.start]}{spec} {text[cited.start :]}"
    return SLUGS.sub(r"\1", text)


def markdown(door: ModuleType, doc: str, spec: str | None) -> Iterator[str]:
    """A docstring as Markdown: examples fenced, public names linked."""
    for block in re.split(r"\n\s*\n", POINTLESS.sub("", doc)):
        if block.startswith("    "):
            yield "```pycon" if ">>>" in block else "```text"
            yield from inspect.cleandoc(block).splitlines()
            yield "```"
        else:
            parts = CODE.split(spelled_out(block, spec))
            plain = [re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts[::2]]
            code = [reference(door, part.strip("`")) for part in parts[1::2]]
            joined = [text for pair in zip(plain, [*code, ""], strict=True) for text in pair]
            yield from "".join(joined).splitlines()
        yield ""


def reference(door: ModuleType, text: str) -> str:
    """A link to a public name, else the text as code."""
    is_public = text.partition(".")[0] in door.__all__
    return f"{{py:obj}}`{text} <{door.__name__}.{text}>`" if is_public else f"`{text}`"
