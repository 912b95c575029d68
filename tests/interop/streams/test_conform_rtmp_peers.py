"""What conform finds in other RTMP servers: the table of docs/6-conformance/rtmp-conform.md."""

import json
import re
from pathlib import Path

import pytest
from support.conform import patiently
from support.peers.peers import NginxRtmp

from rtclab.conform.rtmp import SUITE
from rtclab.conform.runner import Outcome

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "6-conformance"
DATA = json.loads((FOLDER / "rtmp-conform.json").read_text())
PAGE = (FOLDER / "rtmp-conform.md").read_text()
TIMEOUT = 3  # s
LEVELS = ("MUST", "SHOULD", "MAY")


@pytest.mark.needs("nginx")
def test_what_nginx_does_not_meet(start):
    server = start(NginxRtmp)
    target = server.url("").rstrip("/")
    results = patiently(SUITE, target, SUITE.cases, TIMEOUT, DATA["nginx-rtmp"]["unmet"])
    assert [each for each in results if each.outcome is Outcome.ERROR] == []
    unmet = sorted(each.case.name for each in results if each.outcome is Outcome.UNMET)
    assert unmet == DATA["nginx-rtmp"]["unmet"]


def test_the_page_has_what_the_data_have():
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE))
    said = {name: {each for each in DATA if each in where} for name, where in rows.items()}
    assert said == {
        name: {each for each in DATA if name in DATA[each]["unmet"]}
        for name in {case for each in DATA.values() for case in each["unmet"]}
    }


def test_the_page_counts_and_cites_as_the_suite():
    cases = {each.name: each for each in SUITE.cases}
    for name, citation, level in re.findall(
        r"^\| `(\w+)` \| (.+?) \| (\w+) \|", PAGE, re.MULTILINE
    ):
        assert (citation, level) == (cases[name].citation, cases[name].level)
    for data in DATA.values():
        levels = [cases[name].level for name in data["unmet"]]
        counts = ", ".join(str(levels.count(level)) for level in LEVELS)
        row = f"| {data['version']} | {len(cases)} | {len(levels)} | {counts} |"
        assert row in PAGE
    assert f"| `rtmplite serve` | {len(cases)} | none |" in PAGE
