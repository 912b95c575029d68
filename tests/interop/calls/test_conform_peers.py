"""What conform finds in other programs: the table of docs/6-conformance/sip-peers.md."""

import json
import re
from pathlib import Path

import pytest
from support.peers.baresip import Baresip
from support.peers.linphone import Linphone
from support.peers.peers import Kamailio, Sipp

from siprtmp.conform.runner import Outcome, run
from siprtmp.conform.sip import SUITE, calls

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "6-conformance"
DATA = json.loads((FOLDER / "sip-peers.json").read_text())
TIMEOUT = 4  # s


def cases_of(program, chosen=SUITE.cases):
    return [case for case in chosen if case.role in DATA[program]["roles"]]


def unmet(target, cases, timeout=TIMEOUT):
    results = run(SUITE, target, cases, timeout)
    assert [each for each in results if each.outcome is Outcome.ERROR] == []
    return sorted(each.case.name for each in results if each.outcome is Outcome.UNMET)


@pytest.mark.needs("baresip")
def test_what_baresip_does_not_meet(start):
    phone = start(Baresip, "bob")
    found = unmet(f"sip:bob@127.0.0.1:{phone.port}", cases_of("baresip"))
    assert found == DATA["baresip"]["unmet"]


@pytest.mark.needs("linphonec")
def test_what_linphone_does_not_meet(start):
    phone = start(Linphone, "bob", codec="PCMU/8000")
    assert unmet(phone.uri, cases_of("linphonec")) == DATA["linphonec"]["unmet"]


@pytest.mark.needs("kamailio")
def test_what_kamailio_does_not_meet(start):
    server = start(Kamailio, users={})
    found = unmet(f"sip:bob@{server.address}", cases_of("kamailio"), 2)
    assert found == DATA["kamailio"]["unmet"]


@pytest.mark.needs("sipp")
def test_what_the_script_of_sipp_does_not_meet(start):
    phone = start(Sipp, "-sn uas")
    found = unmet(f"sip:bob@127.0.0.1:{phone.port}", cases_of("sipp", calls.cases.all), 1)
    assert found == DATA["sipp"]["unmet"]


def test_the_page_has_what_the_data_have():
    page = (FOLDER / "sip-peers.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    names = {each: DATA[each]["version"].partition(" ")[0] for each in DATA}
    said = {name: {each for each in DATA if names[each] in where} for name, where in rows.items()}
    assert said == {
        name: {each for each in DATA if name in DATA[each]["unmet"]}
        for name in {case for each in DATA.values() for case in each["unmet"]}
    }
    counts = re.findall(r"^\| (\S+) .*\| ([0-9]+) \|$", page, re.MULTILINE)
    assert dict(counts) == {names[each]: str(len(DATA[each]["unmet"])) for each in DATA}
