"""A state machine's table as a drawing: boxes in a column, arrows on a bus beside them.

Every box that arrows lead to has a lane, a vertical line of its own.  An arrow leaves its box on
the row that names it, runs right to the lane of its target, and along that to the head of the
target's box.  So nothing needs placing by hand, and two drawings of one table are the same.
"""

from collections.abc import Mapping, Sequence
from html import escape

Figure = Mapping[str, Mapping[str, tuple[str, Sequence[str]]]]
"""State -> event -> (next state, orders); the shape of every table of a machine."""

ROW, HEAD, GAP = 20, 26, 16  # heights, in pixels
LETTER = 7.2  # width of one letter at this size of type
LANE = 18  # between two lanes
BOX_LEFT = 10


def with_todo(arrow: tuple[str, Sequence[str]] | str) -> tuple[str, Sequence[str]]:
    """An arrow of a table, which may name its target alone."""
    return arrow if isinstance(arrow, tuple) else (arrow, ())


def draw(figure: Figure, title: str) -> str:
    """The figure as an SVG element; `title` is for screen readers."""
    rows = {
        state: [(label(event, todo), target) for event, (target, todo) in arrows.items()]
        for state, arrows in figure.items()
    }
    targets = [state for state in figure if any(state == to for r in rows.values() for _, to in r)]
    box_right = BOX_LEFT + 24 + LETTER * max(map(len, figure))
    widest = max((len(text) for found in rows.values() for text, _ in found), default=0)
    lane_of = {
        state: box_right + 24 + LETTER * widest + LANE * i for i, state in enumerate(targets)
    }
    tops, height = _place(rows)
    out = []
    for state, found in rows.items():
        out += _box(state, tops[state], len(found), box_right)
        for i, (text, target) in enumerate(found):
            y = tops[state] + HEAD + ROW * i + ROW / 2
            out += _arrow(text, y, box_right, lane_of[target])
    for state in targets:
        out += _lane(state, rows, tops, box_right, lane_of[state])
    width = max(lane_of.values(), default=box_right) + LANE
    return (
        f'<svg class="machine" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(out)}</svg>"
    )


def label(event: str, todo: Sequence[str]) -> str:
    """The text beside an arrow: the event, and the action on it."""
    return f"{event} / {', '.join(todo)}" if todo else event


def _place(rows: Mapping[str, Sequence[object]]) -> tuple[dict[str, float], float]:
    """The top of each box, and the height of all."""
    tops, y = {}, float(GAP)
    for state, found in rows.items():
        tops[state] = y
        y += HEAD + ROW * len(found) + GAP
    return tops, y


def _box(state: str, top: float, rows: int, right: float) -> list[str]:
    height = HEAD + ROW * rows
    return [
        f'<rect x="{BOX_LEFT}" y="{top}" width="{right - BOX_LEFT:.1f}" height="{height}" rx="5"/>',
        f'<text class="state" x="{BOX_LEFT + 12}" y="{top + 18}">{escape(state)}</text>',
    ]


def _arrow(text: str, y: float, start: float, lane: float) -> list[str]:
    """The way from a box to a lane, with a dot where it joins."""
    return [
        f'<path d="M{start:.1f} {y}H{lane:.1f}"/>',
        f'<circle cx="{lane:.1f}" cy="{y}" r="3"/>',
        f'<text x="{start + 8:.1f}" y="{y - 4}">{escape(text)}</text>',
    ]


def _lane(
    state: str,
    rows: Mapping[str, Sequence[tuple[str, str]]],
    tops: Mapping[str, float],
    box_right: float,
    lane: float,
) -> list[str]:
    """A lane from its farthest arrow to the head of the box that it leads to."""
    ys = [
        tops[source] + HEAD + ROW * i + ROW / 2
        for source, found in rows.items()
        for i, (_, target) in enumerate(found)
        if target == state
    ]
    head = tops[state] + HEAD / 2 - 2
    point = f"{box_right:.1f},{head} {box_right + 9:.1f},{head - 4} {box_right + 9:.1f},{head + 4}"
    return [
        f'<path d="M{lane:.1f} {min(*ys, head)}V{max(*ys, head)}"/>',
        f'<path d="M{lane:.1f} {head}H{box_right:.1f}"/>',
        f'<polygon points="{point}"/>',
    ]
