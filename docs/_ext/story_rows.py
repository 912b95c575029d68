"""The fields of a story's step as rows: which are shown, how deep, and how octets are written.

Free of Sphinx, so that the test of the stories needs none.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from story import Step, Story

from rtclab.explain.fields.field import Field
from rtclab.explain.render import octets_of

ALL = 9  # levels; no field is deeper
MOST = 16  # octets that are written
TEXT = re.compile(rb"[\t\r\n -~]+")


class Row(NamedTuple):
    """A field with its depth, the buffer that it is in, and whether fields in it follow."""

    field: Field
    depth: int
    data: bytes
    is_opened: bool


def rows(field: Field, data: bytes, depth: int, most: int) -> Iterator[Row]:
    """The fields within one, in order; a line of text is one row."""
    inner = data if field.octets is None else field.octets
    for each in field.children:
        octets = inner[each.start : each.end]
        is_line = TEXT.fullmatch(octets) is not None and b"\n" not in octets.strip()
        is_opened = bool(each.children) and depth + 1 < most and not (is_line and most < ALL)
        yield Row(each, depth, inner, is_opened)
        if is_opened:
            yield from rows(each, inner, depth + 1, most)


def piece(step: Step, name: str) -> Field:
    """The field of this name that comes first within a step, or the whole step."""
    inner = (each for each in step.told.walk() if each is not step.told)
    return next(each for each in inner if each.name == name) if name else step.told


def buffer_of(step: Step, field: Field) -> bytes:
    """The octets that a field of a step is a piece of."""
    waiting = [(step.told, step.data)]
    for each, data in waiting:
        if each is field:
            return data
        waiting += [(child, each.octets or data) for child in each.children]
    raise LookupError(field.name)


def chosen(told: Story, step: Step, options: dict[str, str]) -> list[Row]:
    """The rows that the options of a directive ask for."""
    whole = piece(step, options.get("of", ""))
    data = buffer_of(step, whole)
    most = int(options.get("depth", ALL))
    found = list(rows(whole, data, 0, most))
    if "only" in options:
        names = {each.strip() for each in options["only"].split(",")}
        missing = names - {row.field.name for row in found if row.depth == 0}
        assert not missing, (step.name, missing)
        found = list(of_top(found, lambda row: row.field.name in names))
    if "unlike" in options:
        other = told.step(options["unlike"])
        before = piece(other, options.get("of", ""))
        known = set(map(key, rows(before, buffer_of(other, before), 0, most)))
        found = [row for row in found if key(row) not in known]
    return found


def of_top(found: list[Row], wanted: Callable[[Row], bool]) -> Iterator[Row]:
    """Rows of the outermost fields that are wanted, with those within them."""
    takes = False
    for row in found:
        if row.depth == 0:
            takes = wanted(row)
        if takes:
            yield row


def key(row: Row) -> object:
    """What a field has in common with one of another step: its octets, or its bits."""
    field = row.field
    return (field.name, field.value) if field.bits else row.data[field.start : field.end]


def written(row: Row, is_text: bool) -> str:
    """The octets of a field, as text, in hexadecimal or as bits; those before the fields in it."""
    field = row.field
    if field.bits is not None and not is_text:
        return octets_of(field, row.data)
    start, end = field.start, field.end
    if row.is_opened:
        end = start if field.octets is not None else max(start, field.children[0].start)
    octets = row.data[start:end]
    if is_text:
        return octets.decode().replace("\r\n", "\n").strip()
    return octets.hex(" ") if len(octets) <= MOST else f"{octets[: MOST - 2].hex(' ')} .."
