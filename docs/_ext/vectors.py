"""Test vectors beside the sections that they are about: octets, and what a reader must answer.

`tests/vectors` has a few of each section, in the form that `rtclab oracle vectors` prints, so that
a build need not draw them.  `python docs/_ext/vectors.py` draws and chooses them again.
"""

import functools
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from definitions import REPO
from docutils import nodes

from rtclab.oracle import catalogue
from rtclab.oracle.codec import VERSION, Codec

FOLDER = REPO / "tests/vectors"
DRAWN = 100  # cases of each class, as many as the command draws without an option
FAULTS = 4  # of one section that are kept
MIDDLING = 48  # octets: as much of a longer case is kept, if there is one
LONGEST = 4096  # octets: what is drawn at the limits of a format is no reading for a page
TEXTS = ("sip", "sdp")
Line = dict[str, Any]
Place = tuple[str, str]  # spec and section


@functools.cache
def vectors() -> dict[Place, list[Line]]:
    """The vectors by section; a value stands in the sections of all that it has."""
    found: dict[Place, list[Line]] = defaultdict(list)
    for path in sorted(FOLDER.glob("*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            for place in places(line):
                found[place].append(line)
    return found


def places(line: Line) -> dict[Place, Any]:
    """The sections that a vector is about, and the part of its value that each is about."""
    found = {_place(line["clause"]): line.get("value")}
    if line["class"] == "valid":
        for name, part in _named(line["value"]):
            if clause := catalogue.CODECS[line["codec"]].clauses.get(name):
                found.setdefault(_place(clause), part)
    return found


def _place(clause: str) -> Place:
    spec, _, section = clause.partition(" §")
    return spec, section.strip('"')


def _named(value: Any) -> Iterator[tuple[str, Any]]:
    """The members and the types within a value, those that are empty left out."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield value["type"], value
        yield from ((name, {name: part}) for name, part in value.items() if part not in ("", None))
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _named(inner)


def vectors_in(spec: str, section: str) -> list[nodes.Node]:
    """What the page of a spec shows of a section's vectors, folded."""
    lines = vectors().get((spec, section), [])
    if not lines:
        return []
    counts = Counter(line["class"] for line in lines)
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    rows = "".join(_row(line, places(line)[spec, section]) for line in lines)
    more = "".join(f"<p>More: <code>{command}</code></p>" for command in _commands(lines))
    folded = f"<details><summary>Test vectors: {told}</summary>{rows}{more}</details>"
    return [nodes.raw("", f'<div class="vectors">{folded}</div>', format="html")]


def _row(line: Line, part: Any) -> str:
    octets = bytes.fromhex(line["octets"])
    error, allowed = line.get("error"), line["allowed"]
    if error:
        answer = f"refused: {error['fault']}"
        answer += f", with {error['status']}" if "status" in error else ""
        answer += ", or read" if "value" in allowed else ""
    else:
        answer = json.dumps(part, ensure_ascii=False) + (
            ", or refused" if "error" in allowed else ""
        )
    shown = _text(octets) if line["codec"] in TEXTS else octets.hex(" ")
    head = f'<span class="level">{line["class"]}</span> {line["codec"]}, {len(octets)} octets'
    return f"<p>{head}</p><pre>{escape(shown)}</pre><p>{escape(answer)}</p>"


def _text(octets: bytes) -> str:
    """A message in text; what is no plain character is escaped, but for the ends of lines."""
    text = octets.decode("ascii", "backslashreplace").replace("\r\n", "\n")
    return "".join(c if c == "\n" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _commands(lines: list[Line]) -> list[str]:
    asked = {(line["codec"], line["class"]) for line in lines}
    return [
        f"python -m rtclab oracle vectors {codec} --{kind} --seed 1"
        for codec, kind in sorted(asked)
    ]


def choose(codec: Codec) -> list[Line]:
    """Draw cases of a codec, and keep some of each section."""
    from rtclab.oracle.search import draws  # Hypothesis, which the pages do without

    head = {"version": VERSION, "codec": codec.name}
    return [
        line
        for strategy in catalogue.cases_of(codec).values()
        for line in chosen(
            head | case.written()
            for case in draws(strategy, DRAWN, 0)
            if len(case.octets) <= LONGEST
        )
    ]


def chosen(lines: Iterable[Line]) -> list[Line]:
    """Of one class: the shortest and a longer one of each section, or one of each fault."""
    ordered = sorted(lines, key=lambda line: (len(line["octets"]), line["octets"]))
    longer = [line for line in reversed(ordered) if len(line["octets"]) <= 2 * MIDDLING]
    kept: dict[str, Line] = {}
    known: set[tuple[Place, str]] = set()
    counts: Counter[Place] = Counter()
    for line in ordered:
        fault = line.get("error", {}).get("fault", "")
        asked = [place for place in places(line) if counts[place] < FAULTS]
        if news := [place for place in asked if (place, fault) not in known]:
            kept[line["octets"]] = line
            known.update((place, fault) for place in news)
            counts.update(news)
    for place in {_place(line["clause"]) for line in ordered if "value" in line}:
        of_it = [line for line in longer if _place(line["clause"]) == place]
        kept |= {line["octets"]: line for line in of_it[:1]}
    return sorted(kept.values(), key=ordered.index)


def main() -> None:
    """Write all files again."""
    FOLDER.mkdir(exist_ok=True)
    for codec in catalogue.CODECS.values():
        text = "".join(f"{json.dumps(line)}\n" for line in choose(codec))
        (FOLDER / f"{codec.name}.jsonl").write_text(text, encoding="utf-8")
        print(codec.name, text.count("\n"), len(text), file=sys.stderr)


if __name__ == "__main__":
    main()
