"""All RTMFP cases of conform against our own server, as its users run it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from siprtmp.conform.case import Unreachable
from siprtmp.conform.rtmfp import SUITE
from siprtmp.conform.runner import Outcome, run

REQUIREMENTS = Path(__file__).resolve().parents[3] / "rfc_annotations" / "requirements"
SHOULD = ("SHOULD", "SHOULD NOT", "RECOMMENDED")


@pytest.fixture
def url():
    """The URL of `python -m rtmplite serve`."""
    words = ["-m", "rtmplite", "serve", "--rtmp", "off", "--rtmfp", "127.0.0.1:0"]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    yield f"rtmfp://{process.stdout.readline().split('rtmfp=')[1].strip()}/live"
    process.kill()
    process.communicate()


def test_our_server_meets_all(url):
    results = run(SUITE, url, SUITE.cases, 20)
    assert len(results) >= 40
    assert {
        each.case.name: (each.outcome.value, each.got)
        for each in results
        if each.outcome is not Outcome.PASSED
    } == {}


def test_cases_have_names_of_their_own_and_the_level_of_the_catalogue():
    levels = {
        (each["spec"], each["section"], each["slug"]): each["level"]
        for number in ("7016", "7425")
        for path in REQUIREMENTS.glob(f"rfc{number}-*.toml")
        for each in catalogue(path)
    }
    assert len({case.name for case in SUITE.cases}) == len(SUITE.cases)
    for case in SUITE.cases:
        level = levels[case.spec, case.section, case.slug] if case.slug else case.level
        assert case.level == ("SHOULD" if level in SHOULD else "MUST"), case.name


def catalogue(path):
    read = tomllib.loads(path.read_text())
    return [{"spec": read["spec"], **each} for each in read["requirement"]]


def test_a_target_where_nobody_is_cannot_be_reached():
    with pytest.raises(Unreachable, match="refused"):
        SUITE.reach("rtmfp://127.0.0.1:9/live")


@pytest.mark.parametrize("wrong", ["rtmp://127.0.0.1/live", "127.0.0.1:1935", "rtmfp:"])
def test_a_target_is_an_rtmfp_url(wrong):
    with pytest.raises(ValueError, match="rtm"):
        SUITE.reach(wrong)
