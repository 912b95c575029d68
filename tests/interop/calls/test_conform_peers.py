"""What conform finds in other programs: the table of docs/6-conformance/sip-peers.md."""

import json
import re
from pathlib import Path

import pytest
from support.peers.baresip import Baresip
from support.peers.linphone import Linphone

from siprtmp.conform.runner import Outcome, run
from siprtmp.conform.sip import SUITE

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "6-conformance"
DATA = json.loads((FOLDER / "sip-peers.json").read_text())
TIMEOUT = 4  # s


def unmet(target):
    cases = [case for case in SUITE.cases if case.role == "uas"]
    results = run(SUITE, target, cases, TIMEOUT)
    assert [each for each in results if each.outcome is Outcome.ERROR] == []
    return sorted(each.case.name for each in results if each.outcome is Outcome.UNMET)


@pytest.mark.needs("baresip")
def test_what_baresip_does_not_meet(start):
    phone = start(Baresip, "bob")
    assert unmet(f"sip:bob@127.0.0.1:{phone.port}") == DATA["baresip"]["unmet"]


@pytest.mark.needs("linphonec")
def test_what_linphone_does_not_meet(start):
    phone = start(Linphone, "bob", codec="PCMU/8000")
    assert unmet(phone.uri) == DATA["linphonec"]["unmet"]


def test_the_page_has_what_the_data_have():
    page = (FOLDER / "sip-peers.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    said = {name: {each for each in DATA if each in where} for name, where in rows.items()}
    assert said == {
        name: {each for each in DATA if name in DATA[each]["unmet"]}
        for name in {case for each in DATA.values() for case in each["unmet"]}
    }
