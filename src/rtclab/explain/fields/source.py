"""Where a rule comes from: the citation in the docstring of the class that implements it.

Own design: citations are read out of the running code, so that they cannot differ from it.  An
error is traced to the line that raised it, whose comment names the clause that was broken.  Where
the source files are absent, docstrings alone must do.

    >>> from p2psip.sip.via import Via
    >>> source_of(Via)
    Source(citation='RFC 3261 §20.42', name='p2psip.sip.via.Via')
    >>> meaning_of(Via)
    'One hop of a request: the transport it used, and where it wants the response'
    >>> try:
    ...     Via.parse("SIP/2.0")
    ... except SipError as error:
    ...     fault_of(error)
    Fault(reason='Bad Via', citation='RFC 3261 §25.1', name='p2psip.sip.via.Via._read')
"""

import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import FrameType, FunctionType, MethodType, TracebackType
from typing import Any, Final

from p2psip.errors import SipError
from rtmplite.errors import RtmpError

_SPECS: Final = (
    r"RFC\s+\d+|RTMP\s+1\.0|RTMP\s+Errata|AMF[03]|FLV\s+10\.1|E-RTMP\s+v[12]|Field"
    r"|Transport-wide\s+CC\s+01"
)
_CITATION: Final = re.compile(
    rf"(?:\b(?P<spec>{_SPECS})\s+)?"
    r"§(?P<section>[A-Z\d]+(?:\.\d+)*|\"[^\"]+\")(?P<slugs>(?:\s+\[[a-z0-9-]+\])*)"
)
_IMPLEMENTS: Final = re.compile(rf"\bImplements\s+(?P<spec>{_SPECS})\b")
_NOT_DONE: Final = re.compile(r"(?:Departs from|Not done:|Own design:)")
# Where a first sentence ends, or only the citation is to come.
_END: Final = re.compile(
    r"\.(?=\s|\Z)|;\s|,\s(?=§)|:\s(?=§|RFC|RTMP|AMF|FLV|E-RTMP|Field|Transport-wide)"
    r"|\s\((?:[A-Z][^()]*)?§[^()]*\)(?=[.:;]|\Z)"
)
_WORD: Final = re.compile(r"[a-z]{3,}")
_MOST_GIVEN: Final = 1000  # characters
_FAMILIES: Final = ("p2psip", "rtmplite")


@dataclass(frozen=True, slots=True)
class Source:
    """The clause that describes a field, and the class or function that implements it."""

    citation: str
    name: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, the clause that it breaks, and the function that noticed.

    `given` are the texts that the functions on the way there were given, the innermost first: what
    is wrong stands in them.
    """

    reason: str
    citation: str = ""
    name: str = ""
    given: tuple[bytes, ...] = field(default=(), compare=False, repr=False)


@cache
def source_of(described: object) -> Source:
    """Name a class, function or property, and the first section that its docstring cites.

    An attribute that has no text of its own, as each of a compiled class, is told by its class.
    """
    inner: Any = getattr(described, "fget", None) or getattr(described, "func", described)
    inner = getattr(inner, "__objclass__", inner)
    inner = getattr(inner, "__func__", inner)
    module = inner.__module__
    cited = _cited(inner.__doc__, module) or _inside(inner, module) or _of_class(inner, module)
    return Source(cited or _of_module(module), _name(inner))


@cache
def meaning_of(described: object) -> str:
    """Give the first sentence of a class's or property's docstring, up to its citation.

    Those of functions say what they do, and not what the octets are.
    """
    if isinstance(described, FunctionType | MethodType):
        return ""
    inner = getattr(described, "fget", None) or getattr(described, "func", described)
    return _END.split(" ".join((inner.__doc__ or "").split()), maxsplit=1)[0]


def fault_of(error: SipError | RtmpError) -> Fault:
    """Say what a codec refused, and by which clause."""
    reason = str(getattr(error, "reason", None) or getattr(error, "description", None) or error)
    frames = [each for each in _frames(error.__traceback__) if _is_codec(each[0])]
    where = _qualified(frames[-1][0]) if frames else ""
    given = tuple(each for frame, _ in reversed(frames) for each in _given(frame))
    for frame, line in reversed(frames):
        if citation := _at_line(frame, line, reason) or _at_function(frame):
            return Fault(reason, citation, where, given)
    return Fault(reason, "", where, given)


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _given(frame: FrameType) -> Iterator[bytes]:
    """Yield the arguments of a call that are texts of a moderate length."""
    for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]:
        given = frame.f_locals.get(name)
        if isinstance(given, str) and len(given) <= _MOST_GIVEN:
            yield given.encode("utf-8", "surrogateescape").strip()


def _is_codec(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _FAMILIES


def _qualified(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"


def _at_line(frame: FrameType, line: int, reason: str) -> str:
    """The citation beside a line, above it, or beside or above the condition it stands under.

    Of several the one that has a word of the reason in its slug, else the first.
    """
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
    comments = [linecache.getline(file, line).partition("  # ")[2]]
    above, at = _comments_above(file, line)
    comments += above
    over = linecache.getline(file, at).strip()
    if over.startswith(("if ", "elif ", "else", "except", "while ")):
        comments += [over.partition("  # ")[2], *_comments_above(file, at)[0]]
    found = [each for text in comments for each in _citations(text, module, slugs=True)]
    words = set(_WORD.findall(reason.lower()))
    return max(found, key=lambda each: len(words & set(_WORD.findall(each))), default="")


def _comments_above(file: str, line: int) -> tuple[list[str], int]:
    """The comments right above a line, and the number of the line over them."""
    found: list[str] = []
    at = line - 1
    while (over := linecache.getline(file, at).strip()).startswith("#"):
        found.insert(0, over)
        at -= 1
    return found, at


def _at_function(frame: FrameType) -> str:
    """The citation of a function's docstring, or of its class's."""
    module = str(frame.f_globals.get("__name__"))
    at: object = sys.modules.get(module)
    docs: list[str | None] = []
    for part in frame.f_code.co_qualname.split("."):
        at = getattr(at, part, None)
        docs.append(getattr(at, "__doc__", None))
    return next((found for each in reversed(docs) if (found := _cited(each, module))), "")


def _cited(text: str | None, module: str) -> str:
    """The first citation of a text, "" if there is none."""
    return next(_citations(text, module), "")


def _citations(text: str | None, module: str, *, slugs: bool = False) -> Iterator[str]:
    """Yield the citations of a text, spelled out; those of departures from a rule are none."""
    for part in (text or "").split("\n\n"):
        spec = _default(module)
        for found in _CITATION.finditer(_NOT_DONE.split(part)[0]):
            spec = " ".join((found["spec"] or spec).split())
            named = "".join(f" {each}" for each in found["slugs"].split()) if slugs else ""
            yield f"{spec} §{found['section']}{named}".strip()


def _default(module: str) -> str:
    """The spec that a bare section of a module means."""
    found = _IMPLEMENTS.search(_doc(module))
    return found["spec"] if found else ""


def _inside(described: object, module: str) -> str:
    """The first citation in a function's comments."""
    if not inspect.isfunction(described):
        return ""
    try:
        lines, _ = inspect.getsourcelines(described)
    except OSError:
        return ""
    comments = (line.partition("# ")[2] for line in lines)
    return next((found for each in comments if (found := _cited(each, module))), "")


def _of_class(described: object, module: str) -> str:
    """The citation of the class of a method."""
    name = getattr(described, "__qualname__", "").rpartition(".")[0]
    return _cited(getattr(getattr(sys.modules[module], name, None), "__doc__", None), module)


def _of_module(module: str) -> str:
    return _cited(_doc(module), module)


def _doc(module: str) -> str:
    return getattr(sys.modules.get(module), "__doc__", None) or ""


def _name(described: Callable[..., object]) -> str:
    return f"{described.__module__}.{described.__qualname__}"
