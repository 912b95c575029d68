"""The rows of the settings page: every key, its default and its meaning.

Apart from the directives, so that its test needs no Sphinx.
"""

from collections.abc import Iterator
from dataclasses import MISSING

from rtmplite.net.settings import FIRST, Setting, groups, rows
from siprtmp.settings.table import TABLES, Settings


def settings() -> Iterator[tuple[str, list[list[str]]]]:
    """The title of each group, and key, default and meaning of its settings; then the tables."""
    for title, options in groups(Settings).items():
        yield title, [_row(each) for each in options]
    for name, owner in TABLES.items():
        yield f"[[{name}]]", [_row(each) for each in rows(owner)]


def _row(row: Setting) -> list[str]:
    since = "" if row.since == FIRST else f" Since {row.since}."
    return [row.option, _shown(row), row.meaning + since]


def _shown(row: Setting) -> str:
    """A default as the file would have it."""
    if row.default is MISSING:
        return "required"
    if row.written in (None, ""):
        return "none"
    if isinstance(row.written, bool):
        return str(row.written).lower()
    return f"{row.written} {row.unit}".rstrip()
