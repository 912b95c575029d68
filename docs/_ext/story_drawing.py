"""Drawings of stories: a chart of who sent what when, and the bits of a header."""

from collections.abc import Sequence
from html import escape

from story import Step

from rtclab.explain.fields.field import Field

LETTER = 7.2  # width of one letter at this size of type, in pixels
TIMES, ROW, HEAD = 70, 34, 30  # pixels: the column of times, heights
BIT, LINE = 20, 38  # pixels: the width of a bit, the height of 32
WORD = 32  # bits in a line
LONGEST = 3 * WORD  # bits; of longer fields one line stands for all


def chart(steps: Sequence[Step], lanes: Sequence[str], title: str) -> str:
    """A sequence chart: a line for each end, an arrow for each step, its time in ms at the left."""
    widest = max(len(each.label) for each in steps)
    seen = {name for each in steps for name in (each.source, each.destination)}
    lanes = [name for name in lanes if name in seen]
    gap = max(160.0, LETTER * widest + 24)
    where = {name: TIMES + 34 + gap * i for i, name in enumerate(lanes)}
    height = HEAD + ROW * len(steps) + 14
    width = max(where.values()) + 44
    out = [
        f'<text class="state" text-anchor="middle" x="{x:.0f}" y="16">{escape(name)}</text>'
        f'<path d="M{x:.0f} 24V{height - 4}"/>'
        for name, x in where.items()
    ]
    for i, each in enumerate(steps):
        out += _arrow(each, HEAD + ROW * i + 24, where)
    return _svg("chart", width, height, title, out)


def _arrow(step: Step, y: float, where: dict[str, float]) -> list[str]:
    """One step: its time, its label and its arrow, which ends in a cross if it was lost."""
    start, end = where[step.source], where[step.destination]
    way = 1 if end > start else -1
    if step.lost:
        end -= way * 0.3 * abs(end - start)
        head = f'<path d="M{end - 5:.1f} {y - 5}l10 10m0 -10l-10 10"/>'
    else:
        back = end - way * 9
        points = f"{end:.1f},{y} {back:.1f},{y - 4} {back:.1f},{y + 4}"
        head = f'<polygon points="{points}"/>'
    middle = (where[step.source] + where[step.destination]) / 2
    text = escape(step.label)
    return [
        f'<text x="{TIMES - 10}" y="{y + 4}" text-anchor="end">{step.at * 1000:.0f} ms</text>',
        f'<text x="{middle:.1f}" y="{y - 6}" text-anchor="middle">{text}</text>',
        f'<path d="M{start:.1f} {y}H{end:.1f}"/>',
        head,
    ]


def bits(fields: Sequence[Field], title: str) -> str:
    """Fields as RFCs draw them, 32 bits in a line, each with its value in this run."""
    out = [
        f'<text class="bit" text-anchor="middle" x="{BIT * (at + 0.5):.0f}" y="12">{at}</text>'
        for at in range(0, WORD, 4)
    ]
    base, at = fields[0].span[0], 0
    for each in fields:
        first, last = each.span[0] - base, each.span[1] - base
        size = min(last - first, LONGEST) if last - first <= LONGEST else WORD - at % WORD
        out += _cells(each, at, size, last - first)
        at += size
    return _svg("bits", BIT * WORD + 2, 18 + LINE * (-(-at // WORD)) + 2, title, out)


def _cells(field: Field, at: int, size: int, whole: int) -> list[str]:
    """The boxes of one field, one on each line that it reaches, its name in the widest."""
    pieces = []
    while size > 0:
        width = min(size, WORD - at % WORD)
        pieces.append((at, width))
        at, size = at + width, size - width
    widest = max(pieces, key=lambda piece: piece[1])
    out = []
    for start, width in pieces:
        x, y = 1 + BIT * (start % WORD), 18 + LINE * (start // WORD)
        out.append(f'<rect x="{x}" y="{y}" width="{BIT * width}" height="{LINE}"/>')
        if (start, width) == widest:
            out += _label(field, x, y, BIT * width, whole)
    return out


def _label(field: Field, x: float, y: float, room: float, whole: int) -> list[str]:
    """Name and value, as far as there is room; the rest shows under the pointer."""
    name = field.name if LETTER * len(field.name) <= room else _short(field.name)
    value = field.value if LETTER * len(field.value) <= room else ""
    if whole > LONGEST:
        value = f"{whole // 8} bytes"
    hint = f"<title>{escape(f'{field.name} {field.value} {field.meaning}'.strip())}</title>"
    middle = f'text-anchor="middle" x="{x + room / 2:.0f}"'
    return [
        f'<text class="state" {middle} y="{y + 16}">{hint}{escape(name)}</text>',
        f'<text {middle} y="{y + 31}">{escape(value)}</text>',
    ]


def _short(name: str) -> str:
    return "".join(word[0] for word in name.split()).upper()


def _svg(kind: str, width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<div class="wide" tabindex="0"><svg class="machine {kind}" role="img" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg></div>"
    )
