"""Drafts of entries for what is not catalogued."""

import tomllib

from rfc_annotations.draft import draft, spec_of
from rfc_annotations.fingerprint import locate
from rfc_annotations.specs import cut


def test_a_draft_has_an_entry_for_each_sentence_without_a_mark(repo):
    project = repo.project()
    path = repo.root / "specs/rfc7001.txt"
    spec, text = spec_of(project, path), path.read_text()
    document = tomllib.loads("\n".join(draft(project, spec, text)))
    assert document["spec"] == "RFC 7001"
    entries = document["requirement"]
    assert [(e["section"], e["level"]) for e in entries] == [("1", "MUST"), ("1.1", "SHOULD")]
    sections = cut(spec, text)
    assert all(locate(sections[e["section"]][1], e["mark"]) for e in entries)
    assert {(e["who"], e["summary"]) for e in entries} == {("", "")}


def test_a_draft_that_keeps_the_words_of_the_spec_fails_the_check(repo):
    project = repo.project()
    path = repo.root / "specs/rfc7001.txt"
    lines = "\n".join(draft(project, spec_of(project, path), path.read_text()))
    repo.write("rfc_annotations/requirements/rfc7001-more.toml", lines)
    assert any("repeats" in text for text in repo.problems(rule=8))


def test_an_rfc_that_is_not_listed_is_told_by_its_file(repo):
    assert spec_of(repo.project(), repo.root / "rfc2324.txt").name == "RFC 2324"
    assert spec_of(repo.project(), repo.root / "notes.txt") is None
