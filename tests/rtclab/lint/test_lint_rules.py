"""Every rule finds what it is for, blames the right packet, and lets good conversations pass."""

from pathlib import Path

import pytest
from support.lint import (
    carried_cases,
    dtls_cases,
    media_cases,
    rtmfp_cases,
    rtmp_cases,
    sip_cases,
    srtp_cases,
)
from support.lint.scene import found

from rfc_annotations.specs import load, read_index
from rtclab.lint.findings.rules import RULES

TABLES = (
    *(sip_cases, carried_cases, dtls_cases, media_cases, srtp_cases),
    *(rtmp_cases, rtmfp_cases),
)
CASES = [case for table in TABLES for case in table.CASES]
GOOD = {name: scene for table in TABLES for name, scene in table.GOOD.items()}


def named(case):
    return case[0]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_rule_finds_what_it_is_for(case):
    rule, scene, packet, *keys = case
    assert (rule, packet) in found(scene, *keys)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_conversation_passes(name):
    scene, *keys = GOOD[name] if isinstance(GOOD[name], tuple) else (GOOD[name],)
    assert found(scene, *keys) == []


def test_every_rule_names_a_section_that_there_is():
    folder = Path(__file__).parents[3] / "rfc_annotations"
    index = read_index(load(folder / "specs.toml"), folder / "index")
    cited = {rule.citation for rule in RULES.values()}
    for spec, _, section in (each.partition(" §") for each in cited):
        assert section.strip('"') in index[spec], (spec, section)


def test_every_rule_has_a_case():
    assert {case[0] for case in CASES} == RULES.keys()
