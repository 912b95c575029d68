"""Cases cite requirements of the catalogue, and have their levels."""

import importlib
import tomllib
from pathlib import Path

import pytest

import rfc_annotations
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
}
# Weaker than their requirement, which leaves the target a way out.
WEAKER = {
    # RFC 4475 forbids to break, and says what is appropriate: 400
    *("missing_call_id_has_400", "missing_from_has_400", "missing_to_has_400"),
    "two_call_ids_have_400",
    # for those who have the extension
    *("ping_has_a_pong", "events_are_agreed_to"),
    # for those who list their users
    "unknown_user_has_404",
}
# What a text states without a sentence that the catalogue has, or no text asks for: this many cases
# have no slug, and no new one may be without.
WITHOUT = {"sip": 8, "rtp": 23, "rtmp": 25, "rtmfp": 2, "flv": 9}


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
        if not case.slug:
            continue
        requirement = catalogue[case.spec, case.section, case.slug]
        assert "replaced-by" not in requirement, case.name
        level = LEVELS.get(requirement["level"], case.level)
        if case.name in LIBERTIES:
            assert (level, case.level) == ("MAY", "MUST"), case.name
        elif case.name in WEAKER:
            assert (level, case.level) == ("MUST", "SHOULD"), case.name
        else:
            assert case.level == level, case.name


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_new_case_is_without_a_requirement(protocol):
    assert sum(not case.slug for case in suite(protocol)) == WITHOUT[protocol]
