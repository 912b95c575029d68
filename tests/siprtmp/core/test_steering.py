"""Which worker a SIP message is for: by marks, by Contacts, and by names once for each call."""

import pytest
from hypothesis import given

from p2psip.sip.message import parse_message
from p2psip.strategies.sip import requests, responses
from p2psip.transaction.flow import LOCAL, Flow
from siprtmp.calls.neighbours import Neighbours
from siprtmp.core import steering as module
from siprtmp.core.steering import Steering

PHONE = Flow("UDP", ("192.0.2.7", 5060), ("192.0.2.1", 5060))
TEXT = """\
{method} {uri} SIP/2.0
Via: SIP/2.0/UDP 192.0.2.7;branch={branch}
Max-Forwards: 70
From: <sip:bob@192.0.2.7>;tag=1
To: <sip:studio@192.0.2.1>{tag}
Call-ID: a
CSeq: 1 {method}
Content-Length: 0

"""


def request(method="INVITE", uri="sip:studio@192.0.2.1", branch="z9hG4bK1", tag=""):
    text = TEXT.format(method=method, uri=uri, branch=branch, tag=tag)
    return parse_message(text.replace("\n", "\r\n").encode())


def response(branch):
    text = str(bytes(request(branch=branch)), "ascii").partition("\r\n")[2]
    return parse_message(f"SIP/2.0 180 Ringing\r\n{text}".encode())


class World:
    """What the first of three workers knows: a name's worker, and what its proxy has forwarded."""

    def __init__(self):
        self.owner, self.asked, self.passing = 1, 0, False
        self.steering = Steering(
            Neighbours(0, 3),
            lambda uri: uri.host == "192.0.2.1",
            lambda request, flow: self.passing and flow.transport != LOCAL,
            self._decide,
        )

    def _decide(self, request, flow):
        self.asked += 1
        return self.owner

    def worker_of(self, message, flow=PHONE):
        return self.steering.worker_of(message, flow)


@pytest.fixture
def world():
    return World()


def test_a_response_is_for_the_worker_whose_mark_its_branch_has(world):
    for worker in range(3):
        branch = f"z9hG4bK{Neighbours(worker, 3).mark}c0ffee"
        assert world.worker_of(response(branch)) == worker
    for branch in ("z9hG4bKw3.1", "z9hG4bKw.1", "z9hG4bKw-1.1", "w1.1x", "z9hG4bKx1.1", "z9hG4bK"):
        assert world.worker_of(response(branch)) == (1 if branch == "w1.1x" else 0)


@pytest.mark.parametrize("method", ["BYE", "ACK", "INVITE", "CANCEL", "INFO", "OPTIONS"])
def test_a_request_to_a_contact_is_for_the_worker_that_it_names(world, method):
    """Nothing is kept for it; a registration names the registrar, which is the first worker's."""
    uri = "sip:studio@192.0.2.1;worker=2"
    assert world.worker_of(request(method, uri, tag=";tag=2")) == 2
    assert world.worker_of(request("REGISTER", uri)) == 0 and not world.asked
    for bad in ("192.0.2.1;worker=3", "192.0.2.1;worker=", "else;worker=1"):
        assert world.worker_of(request("BYE", f"sip:studio@{bad}", tag=";tag=2")) == 0


def test_what_our_proxy_has_forwarded_passes_it_again(world):
    """And goes on to the worker from there."""
    world.passing = True
    bye = request("BYE", "sip:studio@192.0.2.1;worker=1", tag=";tag=2")
    assert world.worker_of(bye) == 0
    assert world.worker_of(bye, Flow(LOCAL, ("192.0.2.1", 5060))) == 1


def test_a_call_is_decided_once(world):
    """Repetitions, its ACK and its CANCEL follow the INVITE, whoever has the name by then."""
    assert world.worker_of(request()) == 1
    world.owner = 2
    for method in ("INVITE", "CANCEL", "ACK"):
        assert world.worker_of(request(method)) == 1
    assert world.asked == 1
    assert world.worker_of(request(branch="z9hG4bK2")) == 2
    assert world.worker_of(request("CANCEL", branch="z9hG4bK3")) == 0


def test_what_was_decided_for_the_first_worker_stays_there(world):
    """A name that appears while an INVITE is repeated would take it twice."""
    world.owner = 0
    assert world.worker_of(request()) == 0
    world.owner = 1
    assert world.worker_of(request()) == 0


def test_a_worker_that_has_ended_gets_nothing_more(world):
    """The INVITE that it had not answered is decided anew when it is repeated."""
    assert world.worker_of(request()) == 1
    world.steering.lost(1)
    world.owner = 0
    assert world.worker_of(request()) == 0


def test_it_remembers_so_many_calls_and_no_more(world, monkeypatch):
    monkeypatch.setattr(module, "MAX_DECIDED", 10)
    for number in range(20):
        world.worker_of(request(branch=f"z9hG4bK{number}"))
    for number in reversed(range(10, 20)):
        world.worker_of(request(branch=f"z9hG4bK{number}"))
    assert world.asked == 20
    world.worker_of(request(branch="z9hG4bK9"))
    assert world.asked == 21


def test_a_host_that_calls_without_end_makes_it_forget_its_own_calls_only(world, monkeypatch):
    """The INVITE of another one, its ACK and its CANCEL still reach the worker that has it."""
    monkeypatch.setattr(module, "MAX_DECIDED", 10)
    flood = Flow("UDP", ("192.0.2.66", 5060), ("192.0.2.1", 5060))
    assert world.worker_of(request()) == 1
    for number in range(100):
        world.worker_of(request(branch=f"z9hG4bKx{number}"), flood)
    world.owner = 2
    assert world.worker_of(request()) == world.worker_of(request("CANCEL")) == 1
    assert world.worker_of(request(branch="z9hG4bKx0"), flood) == 2
    world.steering.lost(1)
    assert world.worker_of(request()) == 2


@given(requests() | responses())
def test_any_message_has_a_worker(message):
    assert World().worker_of(message) in range(3)
