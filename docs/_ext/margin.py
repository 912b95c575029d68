"""The rules in the margin of a source: what each line cites, linked to the pages of the specs."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from html import escape

from book import anchor, book, page_of_spec, parts
from definitions import definitions
from highlighted import html_lines, place_of
from sphinx.application import Sphinx

from rfc_annotations.record import Part
from rfc_annotations.scan import Cited

Link = Callable[[str], str]  # the page of a spec, as seen from the page of the source
CLASSES = 1  # words in a short name


@functools.cache
def cited_in() -> dict[str, dict[int, list[Cited]]]:
    """The citations of each file, by line."""
    found: dict[str, dict[int, list[Cited]]] = defaultdict(lambda: defaultdict(list))
    for cited in book().project.cited:
        if cited.spec in parts():
            found[cited.file][cited.line].append(cited)
    return found


def source_html(file: str, link: Link) -> str:
    """A file line by line, with the rules of each."""
    cited = cited_in().get(file, {})
    defined = set(definitions(file).values())
    kind = "source annotated" if cited else "source"
    lines = []
    for number, text in enumerate(html_lines(file), 1):
        rules = "".join(rules_of(each, link) for each in cited.get(number, ()))
        if rules:
            text = f'<span class="rules">{rules}</span><span>{text}</span>'
        place = place_of(file, f"L{number}")
        if rules:
            lines.append(f'<span id="{place}" class="ruled">{text}\n</span>')
        elif number in defined:  # a link may lead here
            lines.append(f'<span id="{place}">{text}</span>\n')
        else:
            lines.append(f"{text}\n")
    rows = "".join(lines)
    return f'<div class="{kind}"><div class="highlight"><pre>{rows}</pre></div></div>'


def rules_of(cited: Cited, link: Link) -> str:
    """The claims of one citation, or the section that it points to."""
    page = link(page_of_spec(cited.spec))
    spec = cited.spec.removeprefix("RFC ")
    where = f"{cited.spec} §{cited.section}"
    if not cited.slugs:
        text = escape(f"{spec} §{cited.section}")
        return f'<a class="pointer" href="{page}#{anchor(cited.section)}">{text}</a>'
    out = ""
    for slug in cited.slugs:
        item = book().project.catalogue.requirements.get((cited.spec, cited.section, slug))
        said = escape(f"{where} {item.level}: {item.summary}" if item else where, quote=True)
        out += f'<a href="{page}#{anchor(cited.section, slug)}" title="{said}">{slug}</a>'
    return out


def add_names(app: Sphinx, rooms: dict[str, list[str]]) -> None:
    """Let the search find sections, requirements and what the sources define, each at its place.

    `rooms` are the sources by page.  Sphinx indexes documents alone, so the names are added where
    it writes its index down.
    """
    indexer = app.builder.indexer  # type: ignore[attr-defined]
    freeze = indexer.freeze

    def frozen() -> dict[str, object]:
        index = freeze()
        numbers = {name: number for number, name in enumerate(index["docnames"])}
        for key in ("docnames", "filenames", "titles"):
            index[key] = list(index[key])
        titles = index["alltitles"]
        index["titleterms"].pop("rfc", None)  # in so many titles that it would hide the section
        for part in parts().values():
            page = numbers[page_of_spec(part.name)]
            for name in (part.name, part.name.replace(" ", "")):
                titles.setdefault(name, []).append((page, None))
            for name, place in _places(part):
                titles.setdefault(name, []).append((page, place))
        for page, files in rooms.items():
            number = len(index["docnames"])
            index["docnames"].append(page)
            index["filenames"].append(page)
            index["titles"].append(page.partition("/")[2])
            for file in (each for each in files if each.startswith("src/")):
                for name, line in definitions(file).items():
                    short = name.rpartition(".")[2] if name.count(".") > CLASSES else name
                    titles.setdefault(short, []).append((number, place_of(file, f"L{line}")))
        return index

    indexer.freeze = frozen


def _places(part: Part) -> Iterator[tuple[str, str]]:
    """What the sections and the requirements of a spec may be called, and their places."""
    for chapter in part.chapters:
        yield f"{part.name} {chapter.number}", anchor(chapter.number)
        if chapter.rules:
            yield chapter.number, anchor(chapter.number)
        for rule in chapter.rules:
            yield rule.item.slug, anchor(chapter.number, rule.item.slug)
