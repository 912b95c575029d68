"""The diagrams as one picture, SVG, for pages and reports.

Own design: no script and no font of its own; a finding is red, with its rule beside the row.

    >>> ladder = Ladder()
    >>> packet = SeenPacket(1, 0.0, "192.0.2.1:5060", "192.0.2.2:5060", b"")
    >>> ladder.add("call", "1@c", packet, "INVITE")
    >>> drawn = picture(ladder.diagrams, {1: "sip-branch"})
    >>> drawn.startswith("<svg"), "INVITE" in drawn, "sip-branch" in drawn
    (True, True, True)
"""

from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from rtclab.lint.findings.ladder import Arrow, Diagram, Ladder
from rtclab.lint.findings.packet import SeenPacket

__all__ = ["Ladder", "SeenPacket", "picture"]

_ROW: Final = 24
_COLUMN: Final = 260
_LEFT: Final = 150
_RIGHT: Final = 240
_HEAD: Final = 56
_GOOD, _BAD, _LINE = "#1f4e79", "#b00020", "#999999"


def picture(diagrams: Sequence[Diagram], marks: Mapping[int, str]) -> str:
    """Draw all diagrams, one below the other; `marks` are the rules broken, by packet."""
    most = max((len(each.ends) for each in diagrams), default=1)
    width = _LEFT + _COLUMN * (most - 1) + _RIGHT
    height = sum(_height(each) for each in diagrams) + _ROW
    root = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        width=str(width),
        height=str(height),
        viewBox=f"0 0 {width} {height}",
    )
    root.set("font-family", "sans-serif")
    root.set("font-size", "12")
    SubElement(root, "rect", width="100%", height="100%", fill="white")
    top = _ROW
    for diagram in diagrams:
        _diagram(root, diagram, marks, top)
        top += _height(diagram)
    return ElementTree.tostring(root, encoding="unicode")


def _height(diagram: Diagram) -> int:
    return _HEAD + _ROW * (len(diagram.arrows) + 2)


def _diagram(root: Element, diagram: Diagram, marks: Mapping[int, str], top: int) -> None:
    ends, bottom = diagram.ends, top + _HEAD + _ROW * len(diagram.arrows)
    _text(root, 8, top, f"{diagram.kind} {diagram.name}", weight="bold")
    for number, end in enumerate(ends):
        x = str(_LEFT + number * _COLUMN)
        _text(root, int(x), top + _ROW, end, anchor="middle")
        SubElement(root, "line", x1=x, x2=x, y1=str(top + 34), y2=str(bottom), stroke=_LINE)
    for number, arrow in enumerate(diagram.arrows):
        _arrow(root, arrow, ends, top + _HEAD + _ROW * number, marks.get(arrow.packet, ""))
    if diagram.omitted:
        _text(root, 8, bottom + _ROW // 2, f"{diagram.omitted} more rows")


def _arrow(root: Element, arrow: Arrow, ends: Sequence[str], y: int, mark: str) -> None:
    colour = _BAD if mark else _GOOD
    one, two = (_LEFT + ends.index(each) * _COLUMN for each in (arrow.source, arrow.target))
    _text(root, 8, y + 4, f"{arrow.time:.3f} s  #{arrow.packet}")
    if one == two:
        two = one + 40
    back = 7 if two > one else -7
    SubElement(root, "line", x1=str(one), x2=str(two), y1=str(y), y2=str(y), stroke=colour)
    points = f"{two},{y} {two - back},{y - 4} {two - back},{y + 4}"
    SubElement(root, "polygon", points=points, fill=colour)
    _text(root, (one + two) // 2, y - 4, arrow.label, anchor="middle", fill=colour)
    if mark:
        x = _LEFT + (len(ends) - 1) * _COLUMN + 10
        _text(root, x, y + 4, mark, fill=_BAD)


def _text(
    root: Element,
    x: int,
    y: int,
    text: str,
    *,
    anchor: str = "start",
    fill: str = "black",
    weight: str = "normal",
) -> None:
    made = SubElement(root, "text", x=str(x), y=str(y), fill=fill)
    made.set("text-anchor", anchor)
    made.set("font-weight", weight)
    made.text = "".join(letter if letter.isprintable() else "?" for letter in text)
