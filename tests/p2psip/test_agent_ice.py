"""Two agents with ICE: a call from its beginning to its end, and what STUN servers tell."""

import re

import pytest
from support.sip.phones import FRAMES, answering, talk, uri, wait_for
from support.sip.stun_servers import OUTSIDE, StunServer

from p2psip.nat import ice_consent
from p2psip.net.clock import monotonic
from p2psip.net.phone import phone_address


@pytest.fixture
def call(make):
    """A call of two agents by ICE: at the caller, at the callee, and what the callee hears."""
    alice, bob = make("alice", ice=True), make("bob", ice=True, srtp=True)
    heard = []
    taken = answering(alice, heard)
    made = bob.call(uri(alice), timeout=20)
    wait_for(lambda: taken and made.is_ready and taken[0].is_ready)
    return made, taken[0], heard


def hears(call, heard):
    heard.clear()
    talk(call)
    wait_for(lambda: len(heard) == len(FRAMES))


def test_a_call_by_ice_is_held_and_finds_another_way(call):
    """Covers RFC 8839 §4.4.1.1.1 [hold-is-no-address], §7.5 [no-offer-restarts].

    Covers RFC 8839 §7.5 [old-addresses-are-offered].
    """
    made, taken, heard = call
    assert made.is_by_ice and taken.is_by_ice and made.is_encrypted
    hears(made, heard)
    made.hold()
    wait_for(lambda: taken.is_held)
    assert b"0.0.0.0" not in taken._signalling.remote_sdp
    made.resume()
    hears(made, heard)
    before = made._signalling.local_sdp
    made.restart_ice()
    after = made._signalling.local_sdp
    assert words(before, b"ice-ufrag") != words(after, b"ice-ufrag")
    agent = made._audio._transport._port._rtp.agent
    wait_for(lambda: agent.state.name == "COMPLETED")
    hears(made, heard)
    asked = made._signalling.handler.on_offer(made._signalling, None, monotonic())
    assert words(asked, b"ice-pwd") != words(after, b"ice-pwd")
    assert set(words(before, b"candidate")) <= set(words(asked, b"candidate"))


def words(sdp, name):
    return re.findall(rb"(?m)^a=%b:(.*)\r$" % name, sdp)


def test_a_call_ends_when_its_peer_consents_no_more(call, monkeypatch):
    """RFC 7675 §5.1: the call is nothing without its audio."""
    made, taken, _ = call
    monkeypatch.setattr(ice_consent, "EXPIRY", 0.5)
    monkeypatch.setattr(ice_consent, "INTERVAL", 0.05)
    made.restart_ice()  # from the next pair on with these times
    ways = [each._audio._transport._port._rtp.agent for each in (made, taken)]
    wait_for(lambda: all(agent.state.name == "COMPLETED" for agent in ways))
    taken._audio.close()
    assert made.wait_ended(20) and taken.wait_ended(20)


def test_an_offer_names_the_address_that_a_server_sees(make, monkeypatch):
    """RFC 8445 §5.1, beside that of this machine; peers without ICE are told it alone."""
    monkeypatch.setattr(phone_address, "SERVER_SECONDS", 20)
    server = StunServer()
    try:
        alice = make("alice", stun=[server.address], ice=True)
        for peer, first in (("198.51.100.9", OUTSIDE), ("192.168.1.20", "127.0.0.1")):
            stream = alice._open_audio(peer, lambda *_: None, lambda *_: None)
            offer = stream.offer()
            hosts = [each.split()[4].decode() for each in words(offer, b"candidate")]
            assert hosts == ["127.0.0.1", OUTSIDE] * 2
            assert re.search(rb"(?m)^c=IN IP4 (\S+)", offer)[1].decode() == first
            stream.close()
            alice._address._prepared.ready.wait(20)
    finally:
        server.close()
