"""Every case cites a requirement of the catalogue, and has its level."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import rfc_annotations
from rfc_annotations.fingerprint import locate
from rtclab.conform.command import PROTOCOLS

FOLDER = Path(rfc_annotations.__file__).parent / "requirements"
LEVELS = {
    **dict.fromkeys(("MUST", "MUST NOT", "SHALL", "SHALL NOT", "REQUIRED"), "MUST"),
    **dict.fromkeys(("SHOULD", "SHOULD NOT", "RECOMMENDED", "NOT RECOMMENDED"), "SHOULD"),
    **dict.fromkeys(("MAY", "OPTIONAL"), "MAY"),
}
# What one side may do the other has to bear: RFC 2119 §5.  These cases do it to the target.
LIBERTIES = {
    "second_control_flow_is_heard",
    "stream_may_have_many_flows",
    "end_of_a_flow_is_not_the_end_of_its_stream",
    "media_may_share_the_flow_of_the_commands",
    "stream_goes_on_in_another_flow",
    *("quoted_pairs_are_read", "event_may_have_data"),
    # what the owner alone may do
    *("others_give_no_rights_by_http", "others_give_no_rights_by_websocket"),
    "others_make_nothing_persistent",
}
# Weaker than their requirement, which leaves the target a way out.
WEAKER = {
    # RFC 4475 forbids to break, and says what is appropriate: 400
    *("missing_call_id_has_400", "missing_from_has_400", "missing_to_has_400"),
    "two_call_ids_have_400",
    # forbidden to senders: of receivers RFC 4475 §3.1.2.7 and §3.1.2.17 say what they do about it
    *("uri_in_brackets_has_400", "cseq_of_another_method_has_400"),
    # for those who have the extension
    *("ping_has_a_pong", "events_are_agreed_to"),
    # for those who list their users
    "unknown_user_has_404",
    # no word of the specification: an answer that is longer serves floods of others
    "stranger_gets_no_more_than_it_sends",
}


def suite(protocol):
    return importlib.import_module(f"rtclab.conform.{protocol}").SUITE.cases


@pytest.fixture(scope="module")
def catalogue():
    found = {}
    for path in FOLDER.glob("*.toml"):
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        for each in read.get("requirement", ()):
            found[read["spec"], each["section"], each["slug"]] = each
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_case_has_the_level_of_its_requirement(protocol, catalogue):
    """A FACT has no word of its own, so the case chooses one."""
    for case in suite(protocol):
        if case.spec == "Resources" and not case.slug:
            continue  # our own page has sections that say more than its requirements
        requirement = catalogue[case.spec, case.section, case.slug]
        assert "replaced-by" not in requirement, case.name
        level = LEVELS.get(requirement["level"], case.level)
        if case.name in LIBERTIES:
            assert (level, case.level) == ("MAY", "MUST"), case.name
        elif case.name in WEAKER:
            assert (level, case.level) == ("MUST", "SHOULD"), case.name
        else:
            assert case.level == level, case.name


def test_a_mark_of_the_ledger_is_a_sentence_of_the_ledger(catalogue):
    """No copy of a specification has these, so that the checker calls them unverified."""
    text = (FOLDER.parent / "index" / "field.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", text, re.MULTILINE))
    marks = [
        (section, mark)
        for (spec, section, _), each in catalogue.items()
        if spec == "Field"
        for mark in (each["mark"], *each.get("also", ()))
    ]
    assert marks and [each for each in marks if locate(sections[each[0]], each[1]) is None] == []
