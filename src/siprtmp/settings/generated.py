"""What is made from the table of settings for the operator: the example file and its schema.

Own design: the example has every option with its default, and the schema lets an editor complete
names and mark mistakes. `python -m siprtmp.settings` prints them.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from typing import Any, Final

from rtmplite.net.settings import Setting, groups, rows
from siprtmp.settings import routes, trunks, webhooks
from siprtmp.settings.table import TABLES, Settings

SCHEMA: Final = "settings.schema.json"  # its file, beside the example
WIDTH: Final = 100
HEADER: Final = f"""\
#:schema {SCHEMA}
# Every setting of siprtmp, with its default unless it is commented out.
#
#   python -m siprtmp --config examples/siprtmp.toml
#   python -m siprtmp check-config examples/siprtmp.toml
#
# The names are those of the command line; what is given there wins over this file. A setting that
# is commented out is off, or follows from others; its value here is an example. A file that is
# named here is looked for beside this one. Editors that know the first line's schema complete
# names and mark mistakes. `python -m siprtmp.settings example` prints this file.
"""
NOTES: Final = {
    "listeners": '"HOST:PORT", port 0 for a free one, "off" for none. IPv6 addresses stand in '
    'brackets: "[::1]:1935". A listener that other machines can reach needs `users`, or '
    "`allow-anonymous`; if it is not for phones, anything that guards publishing will do.",
    "trunk": f"Tables stand at the end. {trunks.INTRODUCTION}",
    "route": routes.INTRODUCTION,
    "webhook": webhooks.INTRODUCTION,
}


def schema() -> str:
    """The schema of the configuration file, in words of JSON Schema, draft 7."""
    options = {row.option: _described(row) for group in groups(Settings).values() for row in group}
    tables = {
        name: {"type": "array", "description": NOTES[name], "items": _object(rows(owner))}
        for name, owner in TABLES.items()
    }
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of siprtmp",
        "type": "object",
        "properties": {**options, **tables},
        "additionalProperties": False,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def example() -> str:
    """The configuration file with every option and table, commented."""
    lines = [HEADER]
    for title, options in groups(Settings).items():
        lines += _heading(title)
        for row in options:
            lines += _option(row)
    for name, owner in TABLES.items():
        lines += [*_heading(name), f"#[[{name}]]", *_table(rows(owner)), ""]
    return "\n".join(lines)


def _described(row: Setting) -> dict[str, Any]:
    described: dict[str, Any] = {**row.type.schema, "description": row.meaning}
    if row.written is not None and row.written != "":
        described["default"] = row.written
    return described


def _object(options: list[Setting]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {row.option: _described(row) for row in options},
        "required": [row.option for row in options if row.default is MISSING],
        "additionalProperties": False,
    }


def _heading(title: str) -> Iterator[str]:
    yield f"# -- {title} ".ljust(WIDTH - 4, "-")
    yield ""
    if title in NOTES:
        yield from _comment(NOTES[title])
        yield ""


def _option(row: Setting) -> Iterator[str]:
    yield from _comment(f"{row.meaning} {row.note}")
    value, off = (row.written, "") if row.example is None else (row.example, "#")
    yield f"{off}{_line(row, value)}"
    yield ""


def _table(options: list[Setting]) -> Iterator[str]:
    for row in options:
        value = row.written if row.example is None else row.example
        if value in (None, ""):
            yield from _comment(f"{row.option}: {row.meaning}", "#  # ")
        else:
            yield from _comment(row.meaning, "#  # ")
            yield f"#  {_line(row, value)}"


def _line(row: Setting, value: object) -> str:
    """A line of TOML, whose strings, numbers, booleans and lists are those of JSON."""
    unit = f"  # {row.unit}" if row.unit else ""
    return f"{row.option} = {json.dumps(value, ensure_ascii=False)}{unit}"


def _comment(text: str, mark: str = "# ") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=mark, subsequent_indent=mark)
