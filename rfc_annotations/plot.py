"""Bars of requirements by state, as SVG in HTML; the colours are in a style sheet beside them.

Own design: an SVG a row, in percent of its width, so that a plot fits a phone and its words stay
as large as the page's.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

from rfc_annotations.record import STATUS, Part

# Of middling lightness, so that they stand out from white and from black.
COLOURS: Final = {
    "met": "#2f8f5b",
    "not passed": "#c9a227",
    "departs": "#c46a2b",
    "not done": "#b8484e",
    "excused": "#4a80c4",
    "permitted": "#7d8590",
    "replaced": "#8a63b8",
    "no test": "#c9a227",
    "no code": "#c9a227",
    "open": "#d0312d",
}
HEIGHT: Final = 14  # pixels


def bar(states: Mapping[str, int], largest: int) -> str:
    """Draw one bar; as wide as its place if the states add up to `largest`."""
    drawn, x = [], 0.0
    for state, colour in COLOURS.items():
        if count := states.get(state, 0):
            width = 100 * count / largest
            place = f'x="{x:.3f}%" width="{width:.3f}%" height="{HEIGHT}" fill="{colour}"'
            drawn.append(f"<rect {place}><title>{count} {STATUS[state]}</title></rect>")
            x += width
    told = ", ".join(f"{states[s]} {STATUS[s]}" for s in COLOURS if states.get(s))
    return (
        f'<svg class="bar" role="img" width="100%" height="{HEIGHT}" aria-label="{told}"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(drawn)}</svg>'
    )


def legend(states: Iterable[str]) -> str:
    """Say which colour means which state."""
    shown = set(states)
    items = (
        f'<span><svg width="{HEIGHT}" height="{HEIGHT}" aria-hidden="true"><rect width="100%"'
        f' height="100%" fill="{colour}"/></svg> {STATUS[state]}</span>'
        for state, colour in COLOURS.items()
        if state in shown
    )
    return f'<p class="legend">{"".join(items)}</p>'


def dashboard(parts: Iterable[Part], page: str) -> str:
    """Write the totals and bars of all specs; `page` is the link to one, with `{slug}` in it."""
    shown = [part for part in parts if part.states]
    largest = max((sum(part.states.values()) for part in shown), default=1)
    states = [state for state in STATUS if any(part.states[state] for part in shown)]
    heads = ["spec", "requirements by state", "all", *map(STATUS.get, states), "not catalogued"]
    head = "".join(f"<th>{text}</th>" for text in heads)
    body = "".join(_row(part, states, largest, page) for part in shown)
    rows = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'{legend(states)}<table class="docutils totals">{rows}</table>'


def _row(part: Part, states: Iterable[str], largest: int, page: str) -> str:
    counted = sum(part.states.values())
    all_, lacking = part.sentences
    numbers = [str(part.states[state] or "") for state in states]
    numbers += [f"{lacking} of {all_}" if all_ else ""]
    cells = "".join(f"<td>{number}</td>" for number in numbers)
    link = f'<a href="{page.format(slug=part.slug)}">{part.name}</a> <small>{escape(part.title)}'
    drawn = bar(part.states, largest)
    return f"<tr><td>{link}</small></td><td>{drawn}</td><td>{counted}</td>{cells}</tr>"
