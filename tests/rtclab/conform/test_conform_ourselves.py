"""All cases of conform against our own agent and registrar, as their users run them."""

import sys

import pytest
from support.conform import judged as judged_at_once
from support.conform import skipped, unmet
from support.peers.nursery import Overheard

from rtclab.__main__ import main
from rtclab.conform import rtp
from rtclab.conform.runner import run
from rtclab.conform.sip import SUITE
from rtclab.conform.sip.peer import changed, connect, reach

# What departs from the RFC at a SHOULD, and what our programs have no use for.
EXCUSED = {"answer_has_a_date"}


@pytest.fixture
def serving():
    """`serving(*words)`: `python -m p2psip` that listens, and the first line that it says."""
    running = []

    def start(*words):
        argv = [sys.executable, "-m", "p2psip", *words]
        process = Overheard(argv)
        running.append(process)
        return process.stdout.readline().strip()

    yield start
    for process in running:
        process.kill()
        process.communicate()


def judged(target, role):
    cases = [case for case in SUITE.cases if case.role == role]
    return run(SUITE, target, cases, 15)


def test_no_two_cases_have_the_same_name():
    names = [case.name for case in SUITE.cases]
    assert len(set(names)) == len(names)


def test_what_is_no_uri_is_a_mistake(capsys):
    assert main(["conform", "sip", "notauri"]) == 2
    said = "notauri: Bad URI: sip:USER@HOST:PORT is expected"
    assert capsys.readouterr().err == f"rtclab: {said}\n"


def test_our_agent_meets_all(serving):
    target = serving("listen", "--listen", "127.0.0.1:0").removeprefix("listening at ")
    results = judged(target, "uas")
    assert unmet(results) == {}
    # it answers at once, has 501 for a method of nobody, and refuses without state
    assert skipped(results) <= {
        *("cancelled_invite_has_487", "refused_method_comes_with_allow"),
        *("refusal_is_repeated_until_the_ack", "repeats_come_after_t1_and_twice_t1"),
        "cancel_of_an_answered_request_has_200",
    }


def test_our_registrar_meets_all(serving):
    words = serving("serve", "--listen", "127.0.0.1:0", "--domain", "127.0.0.1").split()
    results = judged(f"sip:bob@{words[-1]}", "registrar")
    assert unmet(results).keys() == EXCUSED
    assert skipped(results) <= {"path_comes_back"}
    reach(f"sip:bob@{words[-1]}")  # which rang at the contacts of the run, while they were left
    with connect(f"sip:bob@{words[-1]}") as peer:
        response = peer.ask(changed(peer.register(), "Contact"))
    assert (response.status, response.contacts) == (200, ())


def test_our_proxy_meets_all(serving):
    words = serving("serve", "--listen", "127.0.0.1:0", "--domain", "127.0.0.1").split()
    results = judged(f"sip:bob@{words[-1]}", "proxy")
    assert unmet(results) == {}
    assert skipped(results) == set()


def test_our_phone_talks_as_it_should(serving):
    groups = [
        rtp.sound.cases.all,
        rtp.control.cases.all,
        (*rtp.reports.cases.all, *rtp.robustness.cases.all[:6]),
        rtp.robustness.cases.all[6:],
    ]
    words = "listen", "--listen", "127.0.0.1:0", "--tone", "400"
    targets = [serving(*words).removeprefix("listening at ") for _ in groups]
    results = judged_at_once(rtp.SUITE, targets, *groups, timeout=20)
    assert {each.case for each in results} == set(rtp.SUITE.cases)
    assert unmet(results) == {}
    assert skipped(results) == set()
