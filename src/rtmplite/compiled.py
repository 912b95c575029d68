"""Chooses between the two forms of a module: its source, and what mypyc made of it.

Own design: Python prefers an extension module to a source of the same name.  A package that calls
`obey_environment` first is read from its sources alone where `SIPRTMP_PURE` is set, and so are its
optional extensions absent.  p2psip has the same, since the families do not know each other.
"""

import os
import sys
from collections.abc import Sequence
from importlib.abc import PathEntryFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from typing import Final

VARIABLE: Final = "SIPRTMP_PURE"

_sources_of = FileFinder.path_hook((SourceFileLoader, SOURCE_SUFFIXES))


def obey_environment(folders: Sequence[str]) -> None:
    """Read a package, whose `__path__` is given, from its sources if the variable says so."""
    if os.environ.get(VARIABLE):
        read_sources(folders)


def read_sources(folders: Sequence[str]) -> None:
    """Read what is imported from now on of a package from its sources."""
    roots = [os.path.join(folder, "") for folder in folders]

    def finder(path: str) -> PathEntryFinder:
        if not any(os.path.join(path, "").startswith(root) for root in roots):
            raise ImportError(f"{path} is of another package")
        return _sources_of(path)

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()
