"""Probes: statements that note which claimed lines a test reaches.

Modules that make claims are imported with a probe before each statement that a claim stands for,
and before the first statement of a function that it stands for as a whole.  A trace function sees
the same, and is called for every function that runs: with one, tests of machines take three times
as long.  A probe allocates nothing, so tests that measure memory measure the same.
"""

import ast
import builtins
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

    def __init__(self, root: Path, claims: Iterable[Cited]) -> None:
        self._claims: dict[str, dict[Place, Lines]] = {}
        for claim in claims:
            places = self._claims.setdefault(_real(str(root / claim.file)), {})
            places[claim.file, claim.line] = claim.anchor
        self._flags = bytearray()  # one for each probe
        self._probes: dict[Place, list[int]] = {}  # of each claim
        vars(builtins)[FLAGS] = self._flags

    def clear(self) -> None:
        """Forget which claimed lines have run."""
        self._flags[:] = bytes(len(self._flags))

    def reached(self, places: Iterable[Place]) -> Iterator[Place]:
        """Yield those of `places` whose lines have run since."""
        for place in places:
            if any(self._flags[number] for number in self._probes.get(place, ())):
                yield place

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module that makes claims, and leave all others to those who come after."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or _real(spec.origin) not in self._claims:
            return None
        spec.loader = _Loader(fullname, spec.origin, self.probed)
        return spec

    def probed(self, source: bytes, path: str) -> ast.Module:
        """Parse a module, and put its probes in."""
        tree = ast.parse(source)
        for function in outermost_functions(tree):
            self._plant(function, self._claims[_real(path)])
        return tree

    def _plant(self, function: Function, claims: Mapping[Place, Lines]) -> None:
        found = list(blocks(function))
        spans = [(each, own_lines(each)) for block in found for each in block]
        within = (each for each, _ in spans if isinstance(each, FUNCTIONS))
        bodies = [(body_of(each), body_lines(each)) for each in (function, *within)]
        places: dict[ast.stmt, list[Place]] = {}
        for place, anchor in claims.items():
            whole = [body[0] for body, lines in bodies if lines and lines <= anchor]
            for each in whole or [s for s, lines in spans if not anchor.isdisjoint(lines)]:
                places.setdefault(each, []).append(place)
        probes = {each: [self._probe(each, met)] for each, met in places.items()}
        for block in found:
            block[:] = [each for s in block for each in (*probes.get(s, ()), s)]

    def _probe(self, statement: ast.stmt, places: list[Place]) -> ast.stmt:
        """Make the statement that notes that `statement`, and with it these claims, is reached."""
        number = len(self._flags)
        self._flags.append(0)
        for place in places:
            self._probes.setdefault(place, []).append(number)
        [probe] = ast.parse(f"{FLAGS}[{number}] = 1").body
        for node in ast.walk(probe):
            ast.copy_location(node, statement)
        return probe


class _Loader(SourceFileLoader):
    """Compiles a module with its probes, and neither reads nor writes a compiled file."""

    def __init__(self, name: str, path: str, probed: Callable[[bytes, str], ast.Module]) -> None:
        super().__init__(name, path)
        self._probed = probed

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile(self._probed(self.get_data(path), path), path, "exec", dont_inherit=True)
