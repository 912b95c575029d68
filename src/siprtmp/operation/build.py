"""Says whether the gateway runs as Python, or partly compiled.

Own design: the files beside the sources are asked for, and the one that an import would take
decides, so that `--version` tells it before anything is loaded.
"""

from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Final

FAMILIES: Final = ("p2psip", "rtmplite", "siprtmp")


def compiled_modules() -> list[str]:
    """The names of all modules that an import takes from an extension."""
    found = []
    for family in FAMILIES:
        spec = find_spec(family)
        for folder in spec.submodule_search_locations or () if spec else ():
            for path in sorted(Path(folder).rglob(f"*{EXTENSION_SUFFIXES[0]}")):
                parts = path.relative_to(folder).parts
                name = ".".join((family, *parts)).removesuffix(EXTENSION_SUFFIXES[0])
                if _origin(name) == str(path):
                    found.append(name)
    return found


@cache
def build() -> str:
    """`compiled`, where any module is, or `python`."""
    return "compiled" if compiled_modules() else "python"


def _origin(name: str) -> str | None:
    spec = find_spec(name)
    return spec.origin if spec else None
