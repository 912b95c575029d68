"""Probes: statements that note which claimed lines a test reaches.

Modules that make claims are imported with a probe before each statement that a claim stands for,
and before the first statement of a function that it stands for as a whole.  A trace function sees
the same, and is called for every function that runs: with one, tests of machines take three times
as long.  A probe allocates nothing, so tests that measure memory measure the same.

Processes that share a run share what they compile: numbers of probes are those of the claims, which
are the same in all of them.
"""

import ast
import builtins
import fcntl
import hashlib
import marshal
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from rfc_annotations.anchors import (
    FUNCTIONS,
    Function,
    Lines,
    blocks,
    body_lines,
    body_of,
    outermost_functions,
    own_lines,
)
from rfc_annotations.evidence import Place
from rfc_annotations.scan import Cited

FLAGS: Final = "__rfc_annotations_reached__"  # in builtins, so that no module shows it


@cache
def _real(path: str) -> str:
    return os.path.realpath(path)


class Probes(MetaPathFinder):
    """Finds the modules that make claims, puts probes into them, and knows what was reached."""

    def __init__(self, root: Path, claims: Iterable[Cited], shared: Path | None = None) -> None:
        self._claims: dict[str, dict[Place, Lines]] = {}
        self._numbers: dict[Place, int] = {}
        for claim in claims:
            places = self._claims.setdefault(_real(str(root / claim.file)), {})
            place = claim.file, claim.line
            places[place] = claim.anchor
            self._numbers.setdefault(place, len(self._numbers))
        self._flags = bytearray(len(self._numbers))  # whether a claim's lines have run
        self._shared = shared  # the folder of what is compiled
        vars(builtins)[FLAGS] = self._flags

    def clear(self) -> None:
        """Forget which claimed lines have run."""
        self._flags[:] = bytes(len(self._flags))

    def reached(self, places: Iterable[Place]) -> Iterator[Place]:
        """Yield those of `places` whose lines have run since."""
        for place in places:
            if self._flags[self._numbers[place]]:
                yield place

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module that makes claims, and leave all others to those who come after."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or _real(spec.origin) not in self._claims:
            return None
        spec.loader = _Loader(fullname, spec.origin, self.code)
        return spec

    def code(self, source: bytes, path: str) -> CodeType:
        """Compile a module with its probes, unless another process of this run has done so."""
        if self._shared is None:
            return self._compiled(source, path)
        name = hashlib.sha256(path.encode() + source).hexdigest()
        with (self._shared / name).open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if not (made := file.read()):
                file.write(made := marshal.dumps(self._compiled(source, path)))
        code: CodeType = marshal.loads(made)
        return code

    def _compiled(self, source: bytes, path: str) -> CodeType:
        tree = ast.parse(source)
        for function in outermost_functions(tree):
            self._plant(function, self._claims[_real(path)])
        return compile(tree, path, "exec", dont_inherit=True)

    def _plant(self, function: Function, claims: Mapping[Place, Lines]) -> None:
        inside = range(function.lineno, (function.end_lineno or function.lineno) + 1)
        found = list(blocks(function))
        spans = [(each, own_lines(each)) for block in found for each in block]
        within = (each for each, _ in spans if isinstance(each, FUNCTIONS))
        bodies = [(body_of(each), body_lines(each)) for each in (function, *within)]
        probes: dict[ast.stmt, list[ast.stmt]] = {}
        for place, anchor in claims.items():
            if anchor.isdisjoint(inside):
                continue
            whole = [body[0] for body, lines in bodies if lines and lines <= anchor]
            for each in whole or [s for s, lines in spans if not anchor.isdisjoint(lines)]:
                probes.setdefault(each, []).append(_probe(each, self._numbers[place]))
        for block in found:
            block[:] = [each for s in block for each in (*probes.get(s, ()), s)]


def _probe(statement: ast.stmt, number: int) -> ast.stmt:
    """Make the statement that notes that `statement`, and with it a claim, is reached."""
    [probe] = ast.parse(f"{FLAGS}[{number}] = 1").body
    for node in ast.walk(probe):
        ast.copy_location(node, statement)
    return probe


class _Loader(SourceFileLoader):
    """Gives a module with its probes, and neither reads nor writes the compiled file beside it."""

    def __init__(self, name: str, path: str, code: Callable[[bytes, str], CodeType]) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self._code(self.get_data(path), path)
