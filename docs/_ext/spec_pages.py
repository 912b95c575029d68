"""A page for each spec: its sections in order, and in each the requirements beside their code.

```{spec} RFC 3261
"""

from collections.abc import Iterator
from html import escape
from itertools import groupby

from book import FIELD, anchor, book, page_of_spec, parts, section_link
from definitions import REPO
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from highlighted import excerpt
from peers import unmet_in
from sphinx.application import Sphinx
from vectors import vectors_in

from rfc_annotations.catalogue import Requirement
from rfc_annotations.plot import bar, legend
from rfc_annotations.record import STATUS, Chapter, Part, Rule, Spot
from rfc_annotations.specs import Library, cut

POINTERS = 6  # places of the code that are named beside a section


class SpecPage(Directive):
    """The sections of one spec."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """What the whole has, the list of the sections, the sections."""
        part = parts()[self.arguments[0]]
        config = self.state.document.settings.env.config
        self.texts = texts_of(part.name, config.spec_texts)
        page = nodes.section(ids=[part.slug], names=[part.slug])
        page += nodes.title("", "", nodes.Text(f"{part.name}: {part.title}"))
        page += [*summary(part), contents(part)]
        self.shown: set[tuple[str, range]] = set()
        self.entries = field_entries() if part.name == FIELD else {}
        for is_told, chapters in groupby(part.chapters, told):
            if is_told:
                page += [self._section(chapter) for chapter in chapters]
            else:
                page += not_catalogued(list(chapters))
        return [page]

    def _section(self, chapter: Chapter) -> nodes.section:
        place = anchor(chapter.number)
        section = nodes.section(ids=[place], names=[place])
        section += nodes.title("", "", nodes.Text(heading(chapter)))
        if chapter.number in self.entries:
            lines = self.entries[chapter.number].splitlines()
            self.state.nested_parse(
                StringList(lines, source=book().project.ledgers[FIELD]), 0, section
            )
        section += facts(chapter)
        if text := self.texts.get(chapter.number):
            section += local_text(text)
        section += vectors_in(chapter.spec, chapter.number)
        section += [rule_card(rule, self.shown) for rule in chapter.rules]
        return section


def heading(chapter: Chapter) -> str:
    """The title of a section, with its number if it has one."""
    same = chapter.number == chapter.title
    return chapter.title if same else f"{chapter.number} {chapter.title}"


def told(chapter: Chapter) -> bool:
    """Whether a section gets a heading: something of it is in our catalogue."""
    return bool(chapter.rules or chapter.declined or chapter.spec == FIELD)


def texts_of(name: str, folder: str) -> dict[str, str]:
    """The text of the sections of a local copy, if the builder asked for it."""
    if not folder:
        return {}
    library = Library(book().project.library.specs, (book().project.root / folder).resolve())
    return {number: text for number, (_, text) in (library.sections(name) or {}).items()}


def field_entries() -> dict[str, str]:
    """Our ledger by heading, without the headings."""
    path = REPO / book().project.ledgers[FIELD]
    sections = cut(book().project.library.specs[FIELD], path.read_text(encoding="utf-8"))
    return {name: text.partition("\n")[2] for name, (_, text) in sections.items()}


def summary(part: Part) -> list[nodes.Node]:
    """The figures of a spec, and its bar."""
    states = part.states
    counted = sum(states.values())
    all_, lacking = part.sentences
    words = f"{counted} requirements are catalogued"
    if counted:
        words += ": " + ", ".join(f"{states[key]} {STATUS[key]}" for key in STATUS if states[key])
    words += "."
    if all_:
        words += f" Of {all_} binding sentences in the sections that the code cites, "
        words += f"{lacking} are not catalogued" if lacking else "all are catalogued"
        words += f"; the whole text has {part.text}."
    if part.name == FIELD:
        words = "What only peers define: each entry says with which program it was seen."
    drawn = [nodes.raw("", bar(states, counted) + legend(states), format="html")] if counted else []
    return [nodes.paragraph("", words), *drawn]


def contents(part: Part) -> nodes.container:
    """The sections that have something, as links."""
    listed = nodes.bullet_list(classes=["spec-contents"])
    for chapter in filter(told, part.chapters):
        text = heading(chapter)
        link = nodes.reference("", text, refuri=f"#{anchor(chapter.number)}", internal=True)
        count = nodes.inline("", f" {len(chapter.rules) or ''}", classes=["count"])
        listed += nodes.list_item("", nodes.paragraph("", "", link, count))
    box = nodes.container("", classes=["no-search"])
    if len(listed):
        box += listed
    return box


def not_catalogued(chapters: list[Chapter]) -> nodes.bullet_list:
    """The sections in a row of which nothing is in the catalogue."""
    listed = nodes.bullet_list(classes=["not-catalogued"])
    for chapter in chapters:
        line = nodes.paragraph("", "", ids=[anchor(chapter.number)])
        line += _outside(chapter, heading(chapter))
        line += nodes.Text(": not catalogued")
        if chapter.sentences:
            line += nodes.Text(f", {chapter.sentences[1]} binding sentences")
        if chapter.cited:
            line += [nodes.Text("; followed by "), *links(chapter.cited)]
        listed += nodes.list_item("", line)
    return listed


def _outside(chapter: Chapter, text: str) -> nodes.Node:
    """The text, as a link to the published section where there is one."""
    url = section_link(chapter)
    return nodes.reference("", text, refuri=url) if url else nodes.Text(text)


def facts(chapter: Chapter) -> nodes.container:
    """What is known of a section beside its requirements."""
    box = nodes.container("", classes=["section-facts"])
    if section_link(chapter):
        box += nodes.paragraph("", "", _outside(chapter, "The section at the RFC Editor"))
    if chapter.sentences and chapter.sentences[1]:
        all_, lacking = chapter.sentences
        box += nodes.paragraph("", f"{lacking} of its {all_} binding sentences: not catalogued.")
    box += [nodes.paragraph("", f"None of ours: {why}") for why in chapter.declined]
    if chapter.cited:
        box += nodes.paragraph("", "Also followed by ", *links(chapter.cited))
    for ledger, name in chapter.quirks:
        uri = f"spec:{ledger}#{anchor(name)}"
        link = nodes.reference("", name, refuri=uri, internal=True)
        box += nodes.paragraph("", "What peers do: ", link)
    for case, programs in unmet_in(chapter.spec, chapter.number):
        box += nodes.paragraph("", "Not met by ", nodes.Text(f"{', '.join(programs)}: "), case)
    return box


def links(spots: tuple[Spot, ...]) -> Iterator[nodes.Node]:
    """Places of the code, separated by commas."""
    unique = list(dict.fromkeys((spot.file, spot.line) for spot in spots))
    for number, (file, line) in enumerate(unique[:POINTERS]):
        if number:
            yield nodes.Text(", ")
        yield source_link(file, line)
    if len(unique) > POINTERS:
        yield nodes.Text(f" and {len(unique) - POINTERS} more places")


def source_link(file: str, line: int, text: str = "") -> nodes.reference:
    """A link that opens the page of a source at a line."""
    text = text or f"{file.removeprefix('src/')}:{line}"
    return nodes.reference("", text, refuri=f"source:{file}#L{line}", internal=True)


def local_text(text: str) -> nodes.raw:
    """The text of the builder's own copy, folded."""
    shown = f"<details><summary>Its text</summary><pre>{escape(text)}</pre></details>"
    return nodes.raw("", shown, format="html", classes=["no-search"])


def rule_card(rule: Rule, shown: set[tuple[str, range]] | None = None) -> nodes.container:
    """One requirement, its code beside it; lines that are `shown` above are named alone."""
    shown = set() if shown is None else shown
    item = rule.item
    words = nodes.container("", classes=["rule-words"])
    words += _head(rule)
    words += nodes.paragraph("", item.summary)
    words += [nodes.paragraph("", text) for text in _reasons(item)]
    if item.target in book().project.catalogue.requirements:
        spec, section, slug = item.target or ("", "", "")
        uri = f"spec:{spec}#{anchor(section, slug)}"
        link = nodes.reference("", item.replaced_by, refuri=uri, internal=True)
        words += nodes.paragraph("", "Replaced by ", link)
    for test in _unique(rule.tests):
        line = nodes.paragraph("", "", classes=["test"])
        name = test.name or test.file.rpartition("/")[2]
        line += source_link(test.file, test.line, name.replace("::", " "))
        line += nodes.inline("", f" {test.outcome}", classes=["outcome"]) if test.outcome else []
        words += line
    for each in rule.alive:
        line = nodes.paragraph("", "May live: ", classes=["mutant"])
        line += [nodes.literal("", each.now or "nothing"), nodes.Text(" for ")]
        line += [nodes.literal("", each.was), nodes.Text(f". {each.why}")]
        words += line
    code = nodes.container("", classes=["rule-code", "no-search"])
    for spot in rule.code:
        code += nodes.paragraph("", "", source_link(spot.file, spot.line), *score_of(rule, spot))
        if (spot.file, spot.lines) not in shown:
            code += nodes.raw("", excerpt(spot.file, spot.lines, [spot.line]), format="html")
        shown.add((spot.file, spot.lines))
    place = anchor(item.section, item.slug)
    classes = ["rule", f"state-{rule.state.replace(' ', '-')}"]
    return nodes.container("", words, code, classes=classes, ids=[place])


def _head(rule: Rule) -> nodes.paragraph:
    item = rule.item
    uri = f"#{anchor(item.section, item.slug)}"
    head = nodes.paragraph("", "", classes=["rule-head"])
    head += nodes.reference("", item.slug, refuri=uri, internal=True)
    for kind, text in (("level", item.level), ("who", item.who), ("status", rule.status)):
        if text:
            head += [nodes.Text(" "), nodes.inline("", text, classes=[kind])]
    return head


def _unique(tests: tuple[Spot, ...]) -> list[Spot]:
    """One place for each test."""
    return list({(test.file, test.name): test for test in reversed(tests)}.values())[::-1]


def _reasons(item: Requirement) -> Iterator[str]:
    if item.excused:
        yield f"Excused from {' and '.join(item.excused)}: {item.why}"
    elif item.why:
        yield item.why


def score_of(rule: Rule, spot: Spot) -> Iterator[nodes.Node]:
    """What the tests said of mutants of these lines; nothing where the lines decline the rule."""
    if rule.state not in ("departs", "not done"):
        said = str(spot.score) if spot.score else "mutants not tried"
        kind = "survived" if spot.score and spot.score.survived else "mutants"
        yield nodes.inline("", f" {said}", classes=[kind])


def open_specs(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Point links between the pages of specs."""
    for link in tree.findall(nodes.reference):
        if link.get("refuri", "").startswith("spec:"):
            spec, _, place = link["refuri"].removeprefix("spec:").partition("#")
            uri = app.builder.get_relative_uri(name, page_of_spec(spec))
            link["refuri"] = f"{uri}#{place}" if place else uri


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("spec", SpecPage)
    app.connect("doctree-resolved", open_specs)
    app.add_css_file("book.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
