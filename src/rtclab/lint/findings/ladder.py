"""Who sent what to whom, in order: a diagram for each call, connection and session.

Own design: the columns are the ends as they appear, and a row is a packet.

    >>> ladder = Ladder()
    >>> arrow = SeenPacket(1, 0.0, "192.0.2.1:5060", "192.0.2.2:5060", b"")
    >>> ladder.add("call", "a84b4c76e66710", arrow, "INVITE")
    >>> print("\\n".join(text_rows(ladder.diagrams[0], {1: "sip-branch"})))
    call a84b4c76e66710
              192.0.2.1:5060      192.0.2.2:5060
    0.000000  |----- INVITE ----->|               #1  ! sip-branch
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rtclab.lint.findings.packet import SeenPacket

_GAP: Final = 6  # columns of an arrow beyond its label
_TIME: Final = 10
MOST_ROWS: Final = 500  # of a diagram; nobody reads more


@dataclass(slots=True)
class Arrow:
    """One row: a packet, or a stream from its first packet on."""

    packet: int
    time: float
    source: str
    target: str
    label: str


@dataclass(slots=True)
class Diagram:
    """The arrows of one conversation; `omitted` are those beyond `MOST_ROWS`."""

    kind: str
    name: str
    arrows: list[Arrow] = field(default_factory=list)
    omitted: int = 0

    @property
    def ends(self) -> list[str]:
        """The ends, as they appear."""
        ends = (end for each in self.arrows for end in (each.source, each.target))
        return list(dict.fromkeys(ends))


class Ladder:
    """All diagrams of a capture, in order of appearance."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Diagram] = {}

    @property
    def diagrams(self) -> list[Diagram]:
        """The diagrams, in order of appearance."""
        return list(self._by_name.values())

    def add(
        self,
        kind: str,
        name: str,
        packet: SeenPacket,
        label: str,
        ends: tuple[str, str] | None = None,
    ) -> None:
        """Add a row; `ends` are its columns where those are not the packet's addresses."""
        diagram = self._by_name.setdefault((kind, name), Diagram(kind, name))
        source, target = ends or (packet.source, packet.target)
        if len(diagram.arrows) >= MOST_ROWS:
            diagram.omitted += 1
            return
        diagram.arrows.append(Arrow(packet.number, packet.time, source, target, label))

    def sort(self) -> None:
        """Put the rows in the order of their packets: streams are added when they are over."""
        for diagram in self._by_name.values():
            diagram.arrows.sort(key=lambda each: each.packet)


def text_rows(diagram: Diagram, marks: Mapping[int, str]) -> Iterator[str]:
    """Draw a diagram with letters; `marks` are what to say beside a packet."""
    ends = diagram.ends
    longest = max((len(each.label) for each in diagram.arrows), default=0)
    width = max(longest + _GAP + 2, *(len(end) + 2 for end in ends), 20)
    yield f"{diagram.kind} {diagram.name}"
    yield " " * _TIME + "".join(end.ljust(width) for end in ends).rstrip()
    for arrow in diagram.arrows:
        row = _row(arrow, ends, width)
        mark = f"  ! {marks[arrow.packet]}" if arrow.packet in marks else ""
        yield f"{f'{arrow.time:.6f}'.ljust(_TIME)}{row}#{arrow.packet}{mark}"
    if diagram.omitted:
        yield f"{diagram.omitted} more rows"


def _row(arrow: Arrow, ends: list[str], width: int) -> str:
    """The lines of all ends, with the arrow between its two."""
    row = list("|".ljust(width) * (len(ends) - 1) + "|".ljust(16))
    one, two = ends.index(arrow.source), ends.index(arrow.target)
    left, right = sorted((one * width, two * width))
    if left == right:
        label = f"(* {arrow.label})"
        row[left + 1 : left + 1 + len(label)] = label
        return "".join(row)
    inner = f" {arrow.label} ".center(right - left - 2, "-")
    inner = f"{inner}>" if one < two else f"<{inner}"
    row[left + 1 : right] = inner
    return "".join(row)
