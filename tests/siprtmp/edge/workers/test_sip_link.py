"""SIP messages that another worker takes from the first one."""

import socket as plain
from types import SimpleNamespace

import pytest
from support.sockets import Echo, options_request, until

from p2psip.sip.message import parse_message
from p2psip.transaction.flow import Flow
from siprtmp.calls.neighbours import Neighbours
from siprtmp.edge.workers.sip_link import FIRST, SipBranch

FLOODING, ALONE = "127.0.0.2", "127.0.0.3"


@pytest.fixture
def team():
    """What a worker that hears nobody has of the others; `offered` is what it sends."""
    offered = []
    bus = SimpleNamespace(offer=lambda *what: offered.append(what))
    return SimpleNamespace(bus=bus, handlers={}, on_lost=[], offered=offered)


@pytest.fixture
def serving(team):
    """A driver that answers what its worker is given."""
    echo = Echo()
    SipBranch(team, Neighbours(1, 2)).serve(echo.driver, None)
    yield echo.driver
    echo.driver.close()


@pytest.fixture
def hosts():
    """A socket that hears all answers to this machine, whatever the host."""
    with plain.socket(plain.AF_INET, plain.SOCK_DGRAM) as opened:
        opened.bind(("0.0.0.0", 0))
        opened.setblocking(False)
        yield opened


def given(team, host, port, name):
    """Give the worker a request that the first one has received."""
    where = ["UDP", [host, port], ["127.0.0.1", 5060], "", ""]
    data = options_request(name, host=host).decode("ascii")
    message = {"do": "sip", "data": data, "flow": where, "known": [False, False]}
    team.handlers["sip"](FIRST, message)


def test_a_host_that_sends_much_keeps_nobody_waiting(team, serving, hosts):
    """As at the listeners of the first worker: the other host is answered among the first."""
    port, answered = hosts.getsockname()[1], []
    for number in range(100):
        given(team, FLOODING, port, f"many{number}")
    given(team, ALONE, port, "alone")

    def read():
        try:
            answered.append(parse_message(hosts.recv(9999)).call_id)
        except BlockingIOError:
            return False
        return len(answered) == 101

    assert until(read)
    assert next(at for at, call_id in enumerate(answered) if "alone" in call_id) <= 4


def test_what_comes_when_all_is_closed_is_forgotten(team, serving, hosts):
    serving.close()
    given(team, ALONE, hosts.getsockname()[1], "late")
    assert serving._queues._of_host == {}


def test_what_it_sends_may_be_lost(team):
    """A peer decides how much there is to be sent."""
    branch = SipBranch(team, Neighbours(1, 2))
    assert branch.carry(b"\xff", Flow("UDP", (ALONE, 5060)))
    message, worker = team.offered[0]
    assert worker == FIRST and message["data"].encode("latin-1") == b"\xff"
