"""A phone behind a router tells others the address that a STUN server sees, and sound arrives."""

import re

import pytest
from support.sip.phones import FRAMES, answering, talk, uri, wait_for
from support.sip.stun_servers import OUTSIDE, StunServer, outside

from p2psip.net.phone import phone_address

FAR = "198.51.100.9"


@pytest.fixture
def server():
    running = StunServer()
    yield running
    running.close()


@pytest.fixture
def alice(make, server, monkeypatch):
    monkeypatch.setattr(phone_address, "SERVER_SECONDS", 20)
    return make("alice", stun=[server.address])


def offered(agent, peer):
    """Host, port and RTCP port of a first offer to a peer, and the port it is for."""
    stream = agent._open_audio(peer, lambda *_: None, lambda *_: None)
    text = stream.offer().decode()
    host = re.search(r"^c=IN IP4 (\S+)", text, re.M)[1]
    port = int(re.search(r"^m=audio (\d+)", text, re.M)[1])
    rtcp = re.search(r"^a=rtcp:(\d+)", text, re.M)
    own = stream._transport._port.rtp_port
    stream.close()
    return host, port, int(rtcp[1]) if rtcp else port + 1, own


def test_peers_outside_are_told_the_address_that_the_server_sees(alice):
    """Covers RFC 8866 §5.14: a port for RTCP that is not the next one is named."""
    assert alice.contact.host == OUTSIDE and alice.contact.port == outside(alice.address[1])
    host, port, rtcp, own = offered(alice, FAR)
    assert (host, port, rtcp) == (OUTSIDE, outside(own), outside(own + 1))
    assert offered(alice, "sip.example")[0] == OUTSIDE  # the next pair may not be ready


def test_peers_inside_are_told_the_address_of_this_machine(alice, make):
    host, port, _, own = offered(alice, "192.168.1.20")
    assert (host, port) == ("127.0.0.1", own)
    bob, heard = make("bob"), []
    taken = answering(bob, heard)
    call = alice.call(uri(bob), timeout=5)
    wait_for(lambda: taken)
    contact = taken[0]._signalling.dialog.target
    assert (contact.host, contact.port) == alice.address
    talk(call)
    wait_for(lambda: len(heard) == len(FRAMES))


def test_without_an_answer_calls_go_on_with_the_own_address(make, server, monkeypatch):
    server.host = None
    monkeypatch.setattr(phone_address, "SERVER_SECONDS", 0.01)
    alice, heard = make("alice", stun=[server.address]), []
    bob = make("bob")
    answering(bob, heard)
    assert alice.contact.host == "127.0.0.1"
    call = alice.call(uri(bob), timeout=5)
    talk(call)
    wait_for(lambda: len(heard) == len(FRAMES))
