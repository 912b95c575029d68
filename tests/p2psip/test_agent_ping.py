"""An agent pings a peer: it is told whether the peer is there, and of changes alone."""

from itertools import pairwise

import pytest
from support.sip.phones import uri, wait_for

from p2psip.agent import Agent
from p2psip.errors import LocalError, RemoteError
from p2psip.net.phone.ping import Ping
from p2psip.net.phone.settings import Account, NetworkSettings


def test_each_change_is_told_once():
    """Covers RFC 3261 §11: a refusal comes from somebody who is there, 408 and 503 do not.

    Covers Field §"Answers to OPTIONS".
    """
    answers = [None, RemoteError("no", 404), RemoteError("x", 408), TimeoutError()]
    answers += [RemoteError("x", 503), RemoteError("no", 486), None]
    told, asked = [], []

    def ask():
        asked.append(1)
        result = answers.pop(0) if answers else None
        if result is not None:
            raise result

    ping = Ping(ask, 0.0, told.append)
    wait_for(lambda: len(asked) >= 8)
    assert told == [True, False, True] and ping.alive is True
    ping.close()
    ping.close()
    wait_for(ping._greenlet.ready)


def test_a_phone_that_leaves_and_comes_back(make):
    """Covers RFC 3261 §11.1 and §11.2."""
    alice, bob = make("alice"), make("bob")
    place, told = bob.address, []
    ping = alice.ping(uri(bob), told.append, every=0.02, timeout=0.5)
    wait_for(lambda: ping.alive)
    bob.close(0.5)
    wait_for(lambda: ping.alive is False)
    with Agent(Account("bob"), NetworkSettings(listen=place)):
        wait_for(lambda: ping.alive)
    assert all(before != after for before, after in pairwise(told)) and len(told) >= 3
    with pytest.raises(LocalError):
        alice.ping("sip:<", told.append)
    alice.close(0.5)
    wait_for(ping._greenlet.ready)
