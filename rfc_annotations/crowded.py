"""Claims that stand too close to each other to be read one by one: rules 16 and 17."""

import ast
from collections.abc import Iterator
from typing import Final

from rfc_annotations.anchors import FUNCTIONS, blocks
from rfc_annotations.catalogue import Key
from rfc_annotations.grammar import DEPARTS, NOT_DONE
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited, Scanned
from rfc_annotations.trees import mentioned

OF_A_LINE: Final = 3  # requirements that a line of code may claim
OF_A_TEST: Final = 8  # and a test that is no table


def lines(project: Project) -> Iterator[tuple[str, int, int]]:
    """Yield file, line and number of requirements where a line of code claims too many."""
    found: dict[tuple[str, int], set[Key]] = {}
    for cited in project.cited:
        if project.kind(cited.file) == "code" and cited.verb not in (DEPARTS, NOT_DONE):
            found.setdefault((cited.file, cited.line), set()).update(_keys(cited))
    for (file, line), keys in found.items():
        if len(keys) > OF_A_LINE:
            yield file, line, len(keys)


def tests(project: Project) -> Iterator[tuple[str, int, str, int]]:
    """Yield file, line, name and number of requirements of tests that claim too many.

    A table is parametrized: each requirement has a row of its own.  The rules of a state machine
    are counted one by one.
    """
    for scanned in project.scanned:
        if scanned.kind != "test":
            continue
        found: dict[tuple[str, int], set[Key]] = {}
        first: dict[tuple[str, int], int] = {}
        claiming = [cited for cited in scanned.cited if cited.slugs and cited.owner]
        functions = _functions(scanned) if claiming else []
        for cited in claiming:
            place = cited.owner, _around(functions, cited.line)
            found.setdefault(place, set()).update(_keys(cited))
            first.setdefault(place, cited.line)
        many = {place: keys for place, keys in found.items() if len(keys) > OF_A_TEST}
        tables = _tables(scanned) if many else set()
        for place, keys in many.items():
            if place[0] not in tables:
                yield scanned.file, first[place], place[0], len(keys)


def _keys(cited: Cited) -> set[Key]:
    return {(cited.spec, cited.section, slug) for slug in cited.slugs}


def _functions(scanned: Scanned) -> list[range]:
    within = blocks(scanned.tree) if scanned.tree is not None else ()
    found = [node for block in within for node in block if isinstance(node, FUNCTIONS)]
    return [range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in found]


def _around(functions: list[range], line: int) -> int:
    """Give the first line of the innermost function around a line, 0 outside of all."""
    return max((lines.start for lines in functions if line in lines), default=0)


def _tables(scanned: Scanned) -> set[str]:
    """Name the parametrized tests of a file, and those of its classes."""
    found: set[str] = set()
    for top in scanned.tree.body if scanned.tree is not None else ():
        inner = top.body if isinstance(top, ast.ClassDef) else ()
        for prefix, nodes in (("", (top,)), (f"{getattr(top, 'name', '')}::", inner)):
            found |= {
                f"{prefix}{node.name}"
                for node in nodes
                if isinstance(node, (*FUNCTIONS, ast.ClassDef))
                and any("parametrize" in mentioned(one) for one in node.decorator_list)
            }
    return found
