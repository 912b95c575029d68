"""The pages of the specs: requirements beside their code, rules in the margin, names to search."""

import ast
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import book
import dashboard
import margin
import peers
import pytest
import spec_pages
import vectors
from definitions import REPO
from docutils import nodes

from rfc_annotations.plot import bar
from rfc_annotations.results import Score
from rtclab.conform import sip

MACHINE = "src/p2psip/transaction/invite_client.py"
DOUBLES = ("RFC 3261", "17.1.1.2", "timer-a-doubles")


@pytest.fixture(scope="module")
def rules():
    return {rule.item.key: rule for part in book.parts().values() for rule in part.rules}


@pytest.fixture(scope="module")
def places():
    """Every place on the pages of specs."""
    found = Counter()
    for name, part in book.parts().items():
        for chapter in part.chapters:
            found[name, book.anchor(chapter.number)] += 1
            for rule in chapter.rules:
                found[name, book.anchor(chapter.number, rule.item.slug)] += 1
    return found


def test_no_place_of_a_page_has_two_meanings(places):
    assert [place for place, count in places.items() if count > 1] == []


def test_a_requirement_stands_beside_its_code_and_its_tests(rules):
    card = spec_pages.rule_card(rules[DOUBLES])
    assert card["ids"] == ["s17.1.1.2-timer-a-doubles"]
    assert "The gap between INVITEs doubles" in card.astext()
    links = [link["refuri"] for link in card.findall(nodes.reference)]
    assert any(re.fullmatch(rf"source:{MACHINE}#L\d+", link) for link in links)
    assert any(link.startswith("source:tests/p2psip/transaction/") for link in links)
    [code] = [raw.astext() for raw in card.findall(nodes.raw)]
    assert "_gap" in code and "timer-a-doubles" in code


def test_lines_that_several_requirements_claim_are_shown_once_a_page(rules):
    shown = set()
    first, again = (spec_pages.rule_card(rules[DOUBLES], shown) for _ in range(2))
    assert len(list(first.findall(nodes.raw))) == 1
    assert not list(again.findall(nodes.raw))
    assert [link["refuri"] for link in again.findall(nodes.reference)] == [
        link["refuri"] for link in first.findall(nodes.reference)
    ]


def scored(rule, score):
    spots = tuple(replace(spot, score=score) for spot in rule.code)
    card = spec_pages.rule_card(replace(rule, code=spots))
    return [paragraph.astext() for paragraph in card.findall(nodes.paragraph)]


def test_code_has_the_score_of_its_mutants_beside_it(rules):
    place = f"{rules[DOUBLES].code[0].file.removeprefix('src/')}:{rules[DOUBLES].code[0].line}"
    some = scored(rules[DOUBLES], Score(1, 2, 9, "2025-01-31"))
    assert f"{place} 1 of 2 mutants killed, of 9 possible, on 2025-01-31" in some
    assert f"{place} mutants not tried" in scored(rules[DOUBLES], None)
    [declined, *_] = (rule for rule in rules.values() if rule.state == "not done")
    assert not any("mutants" in text for text in scored(declined, None))


def test_a_mutant_that_may_live_stands_there_with_its_reason_as_it_is_written(rules):
    alive = [(rule, each) for rule in rules.values() for each in rule.alive]
    for rule, each in alive:
        card = spec_pages.rule_card(rule)
        assert each.was in [code.astext() for code in card.findall(nodes.literal)]
        assert each.why in card.astext()
    assert len(alive) > 10


def test_what_was_replaced_leads_to_its_replacement(rules, places):
    replaced = [rule for rule in rules.values() if rule.item.replaced_by]
    for rule in replaced:
        card = spec_pages.rule_card(rule)
        links = [link["refuri"] for link in card.findall(nodes.reference)]
        [place] = [link.removeprefix("spec:") for link in links if link.startswith("spec:")]
        assert tuple(place.split("#")) in places
    assert len(replaced) > 10


def test_the_lines_shown_are_those_that_cite(rules):
    """Each excerpt has the line of its claim."""
    spots = [spot for rule in rules.values() for spot in rule.code]
    assert len(spots) > 1000
    assert [spot for spot in spots if spot.line not in spot.lines] == []


def test_every_rule_in_a_margin_leads_to_a_place_that_exists(places):
    link = re.compile(r'href="([^"#]*)#([^"]*)"')
    pages = {book.page_of_spec(name): name for name in book.parts()}
    files = [lines for file, lines in margin.cited_in().items() if file.startswith("src/")]
    assert len(files) > 300
    for cited in (each for lines in files for line in lines.values() for each in line):
        html = margin.rules_of(cited, lambda page: page)
        found = [(pages[page], place) for page, place in link.findall(html)]
        assert len(found) == max(1, len(cited.slugs)) and set(found) <= places.keys()


def test_a_rule_stands_at_its_line_with_its_words():
    html = margin.source_html(MACHINE, lambda page: f"../{page}.html")
    line = next(each for each in html.split('<span id="') if "timer-a-doubles</a>" in each)
    assert line.startswith("invite_client-L")
    assert "../6-conformance/specs/rfc3261.html#s17.1.1.2-timer-a-doubles" in line
    assert "MUST: The gap between INVITEs doubles" in line
    number = int(re.match(r"invite_client-L(\d+)", line)[1])
    text = (REPO / MACHINE).read_text().splitlines()[number - 1]
    assert "[timer-a-doubles]" in text


def test_the_search_knows_sections_rules_and_classes():
    names = list(map(book.page_of_spec, book.parts()))
    index = dict.fromkeys(("docnames", "filenames", "titles"), (*names,))
    index |= {"alltitles": {}, "titleterms": {"rfc": [0]}}
    indexer = SimpleNamespace(freeze=lambda: index)
    app = SimpleNamespace(builder=SimpleNamespace(indexer=indexer))
    margin.add_names(app, {"_modules/transaction": [MACHINE]})
    frozen = indexer.freeze()
    spec, source = names.index("6-conformance/specs/rfc3261"), len(names)
    titles = frozen["alltitles"]
    assert (spec, "s12.2.1.1") in titles["RFC 3261 12.2.1.1"]
    assert (spec, "s12.2.1.1") in titles["12.2.1.1"]
    assert (spec, None) in titles["RFC3261"]
    assert (spec, "s17.1.1.2-timer-a-doubles") in titles["timer-a-doubles"]
    [(where, line)] = titles["InviteClient"]
    assert where == source and line.startswith("invite_client-L")
    assert (source, line) != titles["T1"][0] and titles["T1"][0][0] == source
    assert frozen["docnames"][source] == "_modules/transaction"


def test_stubs_are_written_once_and_hold_no_words_of_a_spec(tmp_path):
    app = SimpleNamespace(srcdir=tmp_path)
    folder = tmp_path / book.FOLDER
    folder.parent.mkdir()
    book.write_stubs(app)
    stub = folder / "rfc3261.md"
    first = stub.stat().st_mtime_ns
    assert "```{spec} RFC 3261" in stub.read_text() and "Initiation" not in stub.read_text()
    (folder / "rfc9999.md").write_text("of a spec that is gone")
    book.write_stubs(app)
    assert stub.stat().st_mtime_ns == first
    assert {path.stem for path in folder.iterdir()} == {part.slug for part in book.book().parts}


def test_the_text_of_a_spec_is_shown_only_on_demand(tmp_path):
    (tmp_path / "rfc3261.txt").write_text("1 Introduction\n\n   All of it.\n")
    assert spec_pages.texts_of("RFC 3261", "") == {}
    assert "All of it." in spec_pages.texts_of("RFC 3261", str(tmp_path))["1"]
    conf = (REPO / "docs/conf.py").read_text() + (REPO / "Makefile").read_text()
    assert "spec_texts" not in conf


def test_a_section_that_nobody_read_says_so():
    part = book.parts()["RFC 3261"]
    bare = [chapter for chapter in part.chapters if not spec_pages.told(chapter)]
    assert bare
    listed = spec_pages.not_catalogued(bare)
    assert all("not catalogued" in item.astext() for item in listed)


def test_sections_of_rfcs_lead_to_the_published_text():
    chapters = {chapter.number: chapter for chapter in book.parts()["RFC 3261"].chapters}
    site = "https://www.rfc-editor.org/rfc/rfc3261"
    assert spec_pages.section_link(chapters["12.2.1.1"]) == f"{site}#section-12.2.1.1"
    [ours, *_] = book.parts()["RTMP 1.0"].chapters
    assert spec_pages.section_link(ours) == ""


def test_a_vector_has_its_place_on_a_page():
    places = {(name, c.number) for name, part in book.parts().items() for c in part.chapters}
    shown = {place for place in vectors.vectors() if place[0] in book.parts()}
    assert shown <= places
    assert len(shown) > 90
    kinds = {each["class"] for each in vectors.vectors()["RFC 8866", "5"]}
    assert kinds == {"valid", "odd", "broken"}


def test_our_ledger_is_a_page_with_its_entries():
    entries = spec_pages.field_entries()
    for chapter in book.parts()["Field"].chapters:
        assert chapter.number == "Field: what only peers define" or entries[chapter.number]


@pytest.mark.parametrize("suite", peers.CASES)
def test_the_matrix_has_what_the_programs_did(places, suite):
    recorded = peers.recorded(suite).values()
    rows = {case: peers.row(case, recorded) for case in peers.CASES[suite]}
    for number, data in enumerate(recorded):
        verdicts = {}
        for case, row in rows.items():
            verdicts[case.name] = re.findall(r'<td class="[^"]+">([^<]+)</td>', row)[1 + number]
            assert verdicts[case.name] == "not asked" or case.role in data.get("roles", [case.role])
        assert {name for name, each in verdicts.items() if each == "not met"} == {*data["unmet"]}
    slugs = {part.slug: name for name, part in book.parts().items()}
    links = [re.search(r'href="specs/(.*)\.html#([^"]+)"', row) for row in rows.values()]
    assert {(slugs[link[1]], link[2]) for link in links if link} <= set(places)


def test_a_program_that_answers_calls_alone_is_not_asked_the_rest():
    data = peers.recorded("sip")["sipp"]
    asked = [case for case in sip.SUITE.cases if peers.verdict(case, data) != peers.NOT_ASKED]
    assert asked == list(sip.calls.cases.all)


def test_the_matrix_says_of_our_own_programs_what_the_suite_says():
    text = (REPO / "tests/rtclab/conform/test_conform_ourselves.py").read_text()
    [said] = re.findall(r"^EXCUSED = (.*)$", text, re.MULTILINE)
    assert ast.literal_eval(said) == peers.OURS_UNMET


def test_the_totals_add_up(rules):
    sums, *_ = dashboard.totals()
    assert sums.astext().startswith(f"{len(rules)} requirements of {len(book.parts())} ")


def test_a_bar_is_as_wide_as_its_share():
    drawn = bar({"met": 3, "departs": 1}, 8)
    assert [float(width) for width in re.findall(r' width="([\d.]+)%" height', drawn)][-2:] == [
        37.5,
        12.5,
    ]
    assert "<title>3 held and tested</title>" in drawn
