"""Print what the parsers of both families make of drawn input, a line each, to compare two forms.

    PYTHONPATH=src:tests SIPRTMP_PURE=1 python -m support.forms draw FILE --count 20
    PYTHONPATH=src:tests python -m support.forms read FILE

Own design: each form has a process of its own, since an interpreter has one form of a module, and
one process draws for both: Hypothesis takes constants from the sources that it finds.  What a peer
sends is `bytes`; a caller of ours may hold other octets or its own kind of text, so each parser
gets those as well.
"""

import argparse
import io
import json
import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from siprtmp.operation.build import compiled_modules

FAMILIES = ("support.reach.p2psip_readings", "support.reach.rtmplite_readings")
# Readers that others call with the `bytes` of a datagram or a buffer, and that announce no others.
INNER = {"basic header", "header", "header broken", "user data", "next user data", "ranges"}
ATTRIBUTES = (property, GetSetDescriptorType, MemberDescriptorType)
DEPTH = 12  # of values within values, which is more than any has without a circle
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Text(str):
    """A caller's own kind of text."""


class Octets(bytes):
    """A caller's own kind of octets."""


KINDS = {bytes: (bytearray, memoryview, Octets), str: (Text,)}


class Writer(pickle.Pickler):
    """Writes our values by their fields, which both forms of a class are made of."""

    def reducer_override(self, value: Any) -> Any:
        """How a value of a dataclass is made again."""
        if not is_dataclass(value) or isinstance(value, type):
            return NotImplemented
        given = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return partial(type(value), **given), ()


def main() -> None:
    """Draw for all readings, or read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="support.forms")
    parser.add_argument("command", choices=["draw", "read"])
    parser.add_argument("file", type=Path, help="of the input")
    parser.add_argument("--count", type=int, default=20, help="inputs of each reading")
    parser.add_argument("--seed", type=int, default=0, help="to draw other inputs")
    options = parser.parse_args()
    for name in compiled_modules():  # before the laboratory, which reads sources
        import_module(name)
    readings = [each for name in FAMILIES for each in import_module(name).FAMILY.readings]
    if options.command == "draw":
        inputs = [each.draw(options.count, options.seed) for each in readings]
        written = io.BytesIO()
        Writer(written).dump(inputs)
        options.file.write_bytes(written.getvalue())
        return
    for reading, inputs in zip(readings, pickle.loads(options.file.read_bytes()), strict=True):
        for drawn in inputs:
            for kind, value in kinds(drawn, reading.name in INNER):
                print(json.dumps([reading.name, kind, described(drawn), outcome(reading, value)]))


def kinds(drawn: Any, is_inner: bool) -> Iterator[tuple[str, Any]]:
    """An input as it was drawn, and as a caller might hold it."""
    yield type(drawn).__name__, drawn
    if is_inner:
        return
    octets = getattr(drawn, "octets", drawn)  # of a case of the oracle
    for kind in KINDS.get(type(octets), ()):
        value = kind(octets)
        yield kind.__name__, value if octets is drawn else replace(drawn, octets=value)


def outcome(reading: Any, value: Any) -> str:
    """Return the value that is read, or the error with what it says."""
    try:
        return described(reading.read(value))
    except TypeError as error:  # whose words are the form's own
        return type(error).__name__
    except Exception as error:
        return ADDRESS.sub("", f"{type(error).__name__}: {error}")


def described(value: Any, depth: int = 0) -> str:
    """Types and contents, through the attributes of any object of either form."""
    if depth == DEPTH:
        return "..."
    if value is None or isinstance(value, Enum | str | bytes | bytearray | int | float):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, memoryview):
        return f"memoryview {bytes(value)!r}"
    if isinstance(value, Mapping):
        return f"{type(value).__name__} {described(list(value.items()), depth)}"
    if isinstance(value, list | tuple | Iterator):
        inside = ", ".join(described(each, depth + 1) for each in value)
        return f"{type(value).__name__} [{inside}]"
    if isinstance(value, set | frozenset):
        inside = ", ".join(sorted(described(each, depth + 1) for each in value))
        return f"{type(value).__name__} {{{inside}}}"
    told = attributes(value).items()
    inside = ", ".join(f"{name}={described(each, depth + 1)}" for name, each in told)
    return f"{type(value).__name__}({inside})"


def attributes(value: Any) -> dict[str, Any]:
    """All that an object keeps or computes, by name; a compiled class has both as one kind."""
    names = set(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        names |= {name for name, found in vars(kind).items() if isinstance(found, ATTRIBUTES)}
    kept = sorted(name for name in names if not name.startswith("__"))
    return {name: got for name in kept for got in asked(value, name)}


def asked(value: Any, name: str) -> list[Any]:
    """The value of an attribute, or its error; an attribute without a value is left out."""
    try:
        return [getattr(value, name)]
    except AttributeError:
        return []
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    main()
