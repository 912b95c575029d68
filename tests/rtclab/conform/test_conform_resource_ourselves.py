"""All cases of resources against our own tree, as its users run them."""

import re
from pathlib import Path

import pytest
from support.conform import skipped, unmet
from support.peers.process import free_port
from support.resources.conformed import TOKEN, WHOLE, conformed

from rtclab.__main__ import main
from rtclab.conform.case import Unreachable
from rtclab.conform.resource import SUITE
from rtclab.conform.runner import Outcome, run

PAGE = Path(__file__).resolve().parents[3] / "docs" / "6-conformance" / "resource-conform.md"


def test_our_tree_meets_all():
    with conformed() as target:
        results = run(WHOLE, target, SUITE.cases, 60)
    assert (unmet(results), skipped(results)) == ({}, set())


def test_names_are_of_one_case_each():
    names = [case.name for case in SUITE.cases]
    assert len(set(names)) == len(names) >= 180


def test_without_users_what_needs_them_is_not_run():
    with conformed() as target:
        cases = [each for each in SUITE.cases if each.section == "5.2"]
        results = run(SUITE, target, cases, 60)
    assert unmet(results) == {}
    assert {each.case.name for each in results if each.outcome is Outcome.PASSED} == {
        "anonymous_owns_by_its_connection"
    }
    said = {each.got for each in results if each.outcome is Outcome.SKIPPED}
    assert said == {"not run without a user: --user or --token"}


def test_users_are_said_on_the_command_line(capsys):
    with conformed() as target:
        words = ["conform", "resource", target.replace("http", "ws"), "--section", "5.3"]
        assert main([*words, "--user", "ann:se:cret", "--token", TOKEN]) == 0
    said = capsys.readouterr().out
    assert said.endswith("4 cases: 4 passed\n")
    assert "se:cret" not in said and TOKEN not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("resource", "https://h/tree"), "a target is http://HOST:PORT/tree"),
        (("resource", "http://ann:x@h/tree"), "users are said by --user, --token"),
        (("resource", "http://h/tree", "--user", "ann"), "a user is NAME:PASSWORD"),
        (("sip", "sip:a@h", "--user", "ann:x"), "conform sip takes no --user and no --token"),
        (("sip", "sip:a@h", "--webhook", "h:80"), "conform sip takes no --webhook"),
        (("resource", "http://h/tree", "--webhook", "h"), "'h' is not HOST:PORT"),
    ],
)
def test_what_makes_no_sense_is_a_mistake(capsys, words, said):
    assert main(["conform", *words]) == 2
    assert said in capsys.readouterr().err


def test_without_a_service_what_needs_it_is_not_run(capsys):
    with conformed() as target:
        words = ["conform", "resource", target, "--section", "13.2", "--user", "ann:se:cret"]
        assert main(words) == 0
        other = f"127.0.0.1:{free_port()}"
        assert main([*words, "--section", "13.4", "--webhook", other]) == 0
    said = capsys.readouterr().out
    assert "not run without a web service for the target: --webhook" in said
    assert "the target may not post to this service: 403" in said


def test_nobody_there():
    with conformed() as target:
        pass
    with pytest.raises(Unreachable):
        SUITE.reach(target)


def test_the_page_counts_the_cases():
    rows = re.findall(r"^\| `(\w+)` .*\| (\d+) \| (\d+) \|$", PAGE.read_text(), re.M)
    told = {part: (int(by_http), int(by_socket)) for part, by_http, by_socket in rows}
    counted = {}
    for case in SUITE.cases:
        part = case.run.__module__.rpartition(".")[2]
        by_http, by_socket = counted.get(part, (0, 0))
        is_http = case.role == "http"
        counted[part] = by_http + is_http, by_socket + (not is_http)
    assert counted == told
