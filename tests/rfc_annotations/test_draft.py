"""Drafts of entries for what is not catalogued."""

import tomllib

from rfc_annotations.draft import draft, spec_of
from rfc_annotations.fingerprint import fingerprint, locate
from rfc_annotations.specs import cut

WARM = (
    "The host MUST warm the pot before any water of a rolling boil is poured on the leaves that"
    " were measured out for the guests in the room."
)


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


def test_the_sentence_on_the_words_of_rfc_2119_is_left_out(repo):
    project = repo.project()
    spec = spec_of(project, repo.root / "specs/rfc7001.txt")
    text = '1 Words\n\n   The key words "MUST" and "MAY" here\n   are interpreted as in RFC 2119.\n'
    assert list(draft(project, spec, text)) == ['spec = "RFC 7001"']


def test_a_draft_that_keeps_the_words_of_the_spec_fails_the_check(repo):
    project = repo.project()
    path = repo.root / "specs/rfc7001.txt"
    lines = "\n".join(draft(project, spec_of(project, path), path.read_text()))
    repo.write("rfc_annotations/requirements/rfc7001-more.toml", lines)
    assert any("repeats" in text for text in repo.problems(rule=8))


def test_an_rfc_that_is_not_listed_is_told_by_its_file(repo):
    assert spec_of(repo.project(), repo.root / "rfc2324.txt").name == "RFC 2324"
    assert spec_of(repo.project(), repo.root / "notes.txt") is None


SHIPPED = f"""\
spec = "RFC 7001"

[[requirement]]
section = "1.1"
slug = "milk-last"
level = "SHOULD"
who = "host"
summary = "Tea before milk."
mark = "{fingerprint("Milk SHOULD come last.")}"
excused = ["test"]
why = "Nobody here takes milk."
replaced-by = "RFC 7002 §3 [lemon]"

[[requirement]]
section = "2"
slug = "waits-elsewhere"
level = "MUST"
who = "host"
summary = "Another name for what this project has catalogued."
mark = "{fingerprint("The host MUST wait four minutes.")}"

[[not-ours]]
section = "1"
marks = ["{fingerprint(WARM)}"]
why = "All pots are warm here."
"""


def test_the_catalogue_that_comes_with_the_tool_fills_drafts_in(repo, tmp_path):
    """But for the decisions of the project that it was written for."""
    (tmp_path / "rfc7001.toml").write_text(SHIPPED)
    path = repo.root / "specs/rfc7001.txt"
    project = repo.project()
    lines = list(draft(project, spec_of(project, path), path.read_text(), tmp_path))
    warm, milk = tomllib.loads("\n".join(lines))["requirement"]
    assert (warm["slug"], warm["summary"]) == ("draft-1", "")
    assert milk == {
        "section": "1.1",
        "slug": "milk-last",
        "level": "SHOULD",
        "who": "host",
        "summary": "Tea before milk.",
        "mark": fingerprint("Milk SHOULD come last."),
    }
    assert "# replaced by RFC 7002 §3 [lemon]" in "\n".join(lines)
    assert not any("Milk SHOULD" in line for line in lines), "no comment repeats the spec"
