"""The runner, the reports and the command of conform, with scripted cases."""

import json
from contextlib import contextmanager
from xml.etree import ElementTree

import gevent
import pytest

from rtclab.command_line.arguments import ConfigError
from rtclab.conform import command
from rtclab.conform.case import Cases, NotApplicable, Suite, Unmet, Unreachable
from rtclab.conform.report import as_json, as_junit, case_lines, text_lines
from rtclab.conform.runner import Outcome, run

cases = Cases()


@cases.case("RFC 3261 §8.10", role="uas")
def good_one(peer):
    """It is met."""
    assert peer == "peer of here"


@cases.case("RFC 3261 §8.2", role="uas")
def bad_one(peer):
    """It is not met."""
    raise Unmet("200", "404\x01")


@cases.case("RFC 3261 §8.2", level="SHOULD", role="proxy")
def weak_one(peer):
    """It is not met, and only a SHOULD."""
    raise Unmet("a Date", "none")


@cases.case("RFC 3261 §8.2.1", role="uas")
def void_one(peer):
    """It does not apply."""
    raise NotApplicable("no TCP")


@cases.case("RFC 3261 §9", role="uas")
def broken_one(peer):
    """The case is broken."""
    raise KeyError("oh")


@cases.case("RFC 3261 §9", role="uas", alone=True)
def late_one(peer):
    """The target is silent."""
    gevent.get_hub().wait(gevent.get_hub().loop.async_())


@contextmanager
def connect(target):
    yield f"peer of {target}"


def reach(target):
    if target == "nowhere":
        raise Unreachable("no reply")
    if target == "nonsense":
        raise ValueError("no URI")


SUITE = Suite(tuple(cases.all), connect, reach, "a place", at_once=2)


@pytest.fixture(scope="module")
def results():
    return run(SUITE, "here", SUITE.cases, 0.05)


def test_each_case_has_its_outcome(results):
    assert [each.outcome for each in results] == [
        *(Outcome.PASSED, Outcome.UNMET, Outcome.UNMET, Outcome.SKIPPED, Outcome.ERROR),
        Outcome.UNMET,
    ]
    assert results[-1].expected == "The target is silent."


def test_a_should_counts_only_if_strict(results):
    assert [each.case.name for each in results if each.fails(False)] == ["bad_one", "late_one"]
    assert [each.case.name for each in results if each.fails(True)][1] == "weak_one"


def test_the_text_stands_by_section_in_numerical_order(results):
    lines = list(text_lines(results))
    heads = [line for line in lines if line.startswith("RFC")]
    assert heads == [f"RFC 3261 §{section}" for section in ("8.2", "8.2.1", "8.10", "9")]
    assert lines[-1] == "6 cases: 1 passed, 3 unmet, 1 skipped, 1 error"
    assert "           expected: 200" in lines


def test_json_has_the_citation_and_the_version(results):
    found = json.loads(as_json(results, "sip", "here"))
    assert found["target"] == "here"
    assert found["siprtmp"]
    assert found["cases"][1]["citation"] == "RFC 3261 §8.2"
    assert found["cases"][1]["outcome"] == "unmet"


@pytest.mark.parametrize(("strict", "failures"), [(False, "2"), (True, "3")])
def test_junit_counts_failures_and_is_xml(results, strict, failures):
    suite = ElementTree.fromstring(as_junit(results, "sip", strict))
    assert (suite.get("failures"), suite.get("errors")) == (failures, "1")
    assert suite.find("testcase/failure").get("message") == "expected 200, got 404?"


def test_role_and_section_choose():
    assert [each.name for each in command.chosen(SUITE, "uas", "8.2")] == ["bad_one", "void_one"]
    with pytest.raises(ConfigError, match="no role"):
        command.chosen(SUITE, "cook", None)
    with pytest.raises(ConfigError, match="no case"):
        command.chosen(SUITE, None, "99")


def test_the_command_has_its_exit_codes(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("rtclab.conform.sip.SUITE", SUITE)
    files = ["--json", str(tmp_path / "json"), "--junit", str(tmp_path / "junit")]
    assert command.run(["sip", "here", "--section", "8.10", *files]) == 0
    assert (tmp_path / "json").stat().st_size
    assert (tmp_path / "junit").stat().st_size
    assert command.run(["sip", "here", "--role", "proxy"]) == 0
    assert command.run(["sip", "here", "--role", "proxy", "--strict"]) == 1
    assert command.run(["sip", "nowhere"]) == 3
    assert "no reply" in capsys.readouterr().err
    assert command.run(["sip", "here", "--section", "8.10", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "here"
    for wrong in (["sip"], ["sip", "nonsense"]):
        with pytest.raises(ConfigError):
            command.run(wrong)
    assert command.run(["sip", "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == list(case_lines(SUITE.cases))
