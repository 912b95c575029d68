"""What conform finds in other programs: sip-peers.md and rtp-peers.md of docs/6-conformance."""

import json
import re
from pathlib import Path

import pytest
from support.conform import judged, patiently, unmet
from support.peers.baresip import Baresip
from support.peers.linphone import Linphone
from support.peers.peers import Kamailio, Sipp

from rtclab.conform import rtp
from rtclab.conform.sip import SUITE, calls

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "6-conformance"
DATA = json.loads((FOLDER / "sip-peers.json").read_text())
RTP_DATA = json.loads((FOLDER / "rtp-peers.json").read_text())
TIMEOUT = 4  # s


def cases_of(program, chosen=SUITE.cases):
    return [case for case in chosen if case.role in DATA[program]["roles"]]


def sip_unmet(program, target, cases, timeout=TIMEOUT):
    """What it does not meet; what it is known to meet is asked again, lest it only was late."""
    return sorted(unmet(patiently(SUITE, target, cases, timeout, DATA[program]["unmet"])))


@pytest.mark.needs("baresip")
def test_what_baresip_does_not_meet(start):
    phone = start(Baresip, "bob")
    found = sip_unmet("baresip", f"sip:bob@127.0.0.1:{phone.port}", cases_of("baresip"))
    assert found == DATA["baresip"]["unmet"]


@pytest.mark.needs("linphonec")
def test_what_linphone_does_not_meet(start):
    phone = start(Linphone, "bob", codec="PCMU/8000")
    assert sip_unmet("linphonec", phone.uri, cases_of("linphonec")) == DATA["linphonec"]["unmet"]


@pytest.mark.needs("kamailio")
def test_what_kamailio_does_not_meet(start):
    server = start(Kamailio, users={})
    found = sip_unmet("kamailio", f"sip:bob@{server.address}", cases_of("kamailio"), 2)
    assert found == DATA["kamailio"]["unmet"]


@pytest.mark.needs("sipp")
def test_what_the_script_of_sipp_does_not_meet(start):
    phone = start(Sipp, "-sn uas")
    target = f"sip:bob@127.0.0.1:{phone.port}"
    found = sip_unmet("sipp", target, cases_of("sipp", calls.cases.all), 1)
    assert found == DATA["sipp"]["unmet"]


def rtp_unmet(targets):
    parts = rtp.sound, rtp.control, rtp.reports, rtp.robustness
    groups = [part.cases.all for part in parts[: len(targets)]]
    results = judged(rtp.SUITE, targets, *groups, timeout=30)
    assert {each.case for each in results} == set(rtp.SUITE.cases)
    print(unmet(results))  # what came, should it be another one than before
    return sorted(unmet(results))


@pytest.mark.needs("baresip")
def test_how_baresip_talks(start):
    phones = [start(Baresip, "bob", rtcp_mux=True) for _ in range(4)]
    targets = [f"sip:bob@127.0.0.1:{phone.port}" for phone in phones]
    assert rtp_unmet(targets) == RTP_DATA["baresip"]["unmet"]


@pytest.mark.alone
@pytest.mark.needs("linphonec")
def test_how_linphone_talks(start):
    """Asked again if a report came too early: this phone's are, behind one that had to wait."""
    wanted = RTP_DATA["linphonec"]["unmet"]
    for _ in range(2):
        phones = [start(Linphone, "bob", codec="PCMU/8000") for _ in range(4)]
        found = rtp_unmet([phone.uri for phone in phones])
        if set(found) ^ set(wanted) != {"reports_are_not_too_many"}:
            break
    assert found == wanted


@pytest.mark.parametrize(("name", "data"), [("sip-peers", DATA), ("rtp-peers", RTP_DATA)])
def test_the_page_has_what_the_data_have(name, data):
    page = (FOLDER / f"{name}.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE))
    names = {each: data[each]["version"].partition(" ")[0] for each in data}
    said = {name: {each for each in data if names[each] in where} for name, where in rows.items()}
    assert said == {
        name: {each for each in data if name in data[each]["unmet"]}
        for name in {case for each in data.values() for case in each["unmet"]}
    }
    counts = re.findall(r"^\| (\S+) .*\| ([0-9]+) \|$", page, re.MULTILINE)
    assert dict(counts) == {names[each]: str(len(data[each]["unmet"])) for each in data}
