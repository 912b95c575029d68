"""All cases of WHIP, WHEP and ICE against our own gateway's parts."""

import re
from pathlib import Path

import pytest
from support.conform import skipped, unmet
from support.web_server import web_server

from rtclab.conform import ice, whep, whip
from rtclab.conform.case import Unreachable
from rtclab.conform.runner import Outcome, run

PAGE = Path(__file__).resolve().parents[3] / "docs" / "6-conformance" / "web-conform.md"
SUITES = {"whip": whip, "whep": whep, "ice": ice}
PLACES = {"whip": "live/cam/whip", "whep": "live/obs/whep", "ice": "live/cam/whip"}


@pytest.mark.parametrize("protocol", SUITES)
def test_our_server_meets_all(protocol):
    suite = SUITES[protocol].SUITE
    with web_server() as root:
        results = run(suite, f"{root}/{PLACES[protocol]}", suite.cases, 15)
    assert (unmet(results), skipped(results)) == ({}, set())
    assert {each.outcome for each in results} == {Outcome.PASSED}


def test_there_are_enough_cases():
    assert sum(len(each.SUITE.cases) for each in SUITES.values()) >= 160
    for each in SUITES.values():
        names = [case.name for case in each.SUITE.cases]
        assert len(set(names)) == len(names)


def test_without_a_token_what_is_about_it_does_not_apply():
    with web_server() as root:
        target = f"{root}/live/cam/whip".replace("secret@", "")
        with pytest.raises(ValueError, match="an offer is refused: 401"):
            whip.SUITE.reach(target)
        cases = [each for each in whip.SUITE.cases if "token" in each.name]
        assert skipped(run(whip.SUITE, target, cases, 15)) == {each.name for each in cases}


@pytest.mark.parametrize("wrong", ["sip:bob@127.0.0.1", "http://127.0.0.1", "https://a/b/whip", ""])
@pytest.mark.parametrize("protocol", SUITES)
def test_what_is_no_target(protocol, wrong):
    with pytest.raises(ValueError, match="a target is http"):
        SUITES[protocol].SUITE.connect(wrong)


def test_nobody_there():
    with web_server() as root:
        target = f"{root}/live/cam/whip"
    with pytest.raises(Unreachable):
        whip.SUITE.reach(target)


def test_the_page_counts_the_cases():
    rows = re.findall(r"^\| (\w+) \| `([\w.]+)` .*\| (\d+) \| (\d+) \|$", PAGE.read_text(), re.M)
    told = {(suite, module): (int(all_), int(weak)) for suite, module, all_, weak in rows}
    counted = {}
    for protocol, package in SUITES.items():
        for case in package.SUITE.cases:
            key = protocol, case.run.__module__.removeprefix("rtclab.conform.")
            cases, weak = counted.get(key, (0, 0))
            counted[key] = cases + 1, weak + (case.level != "MUST")
    assert counted == told
