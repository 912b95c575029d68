"""The report as one page of HTML that needs nothing beside it."""

from collections.abc import Iterator
from html import escape

from rfc_annotations.plot import dashboard
from rfc_annotations.record import Book, Chapter, Part, Rule, Spot

STYLE = """\
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; max-width: 78em; margin: 1em auto; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; font-size: 0.9em; }
th, td { padding: 0.15em 0.5em; text-align: left; vertical-align: top; }
td:nth-child(2) { width: 30%; }
.bar { background: #8883; }
.legend span { margin-right: 1.2em; }
article { border-left: 4px solid #8888; margin: 0.8em 0; padding-left: 0.8em; }
article p { margin: 0.2em 0; overflow-wrap: anywhere; }
pre { background: #8882; padding: 0.4em 0.6em; white-space: pre-wrap; overflow-wrap: anywhere; }
small { opacity: 0.75; }
@media (max-width: 46em) { th:nth-child(n+4), td:nth-child(n+4) { display: none; } }
"""


def page(book: Book) -> Iterator[str]:
    """Yield the page in pieces: the totals, then each spec folded, with the code of its rules."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    yield f"<!doctype html><html lang=en><head>{head}<title>Requirements and their code</title>"
    yield f"<style>{STYLE}</style></head><body><h1>Requirements and their code</h1>\n"
    yield dashboard(book.parts, "#{slug}")
    for part in book.parts:
        if part.states:
            yield from _part(book, part)
    yield "</body></html>\n"


def _part(book: Book, part: Part) -> Iterator[str]:
    yield f'\n<h2 id="{part.slug}">{part.name}: {escape(part.title)}</h2>\n<details>'
    told = f"{part.sentences[0]} of {part.text} binding sentences are in cited sections"
    yield f"<summary>{sum(part.states.values())} requirements; {told}</summary>\n"
    for chapter in part.chapters:
        if chapter.rules:
            yield from _chapter(book, chapter)
    yield "</details>\n"


def _chapter(book: Book, chapter: Chapter) -> Iterator[str]:
    same = chapter.number == chapter.title
    yield f"<h3>{escape(chapter.number)} {'' if same else escape(chapter.title)}</h3>\n"
    for rule in chapter.rules:
        yield from _rule(book, rule)


def _rule(book: Book, rule: Rule) -> Iterator[str]:
    item = rule.item
    said = f"{item.level} {item.who}: {rule.status} {item.replaced_by}"
    yield f"<article><p><b>{item.slug}</b> <small>{escape(said)}</small></p>"
    yield "".join(f"<p>{escape(text)}</p>" for text in (item.summary, item.why) if text)
    for spot in rule.code:
        text = escape("\n".join(book.excerpts.text(spot.file, spot.lines)))
        place = f"{spot.file}:{spot.line} {spot.score or ''}".rstrip()
        yield f"<p><small>{place}</small></p><pre>{text}</pre>"
    yield "".join(f"<p><small>{escape(_test(test))}</small></p>" for test in rule.tests)
    yield "</article>\n"


def _test(test: Spot) -> str:
    return f"{test.file}:{test.line} {test.name} {test.outcome}".rstrip()
