"""Whom a server introduces, and what those cost who ask without end."""

import tracemalloc
from random import Random

import pytest
from support.rtmfp.endpoints import THIRD
from support.rtmfp.peer_world import SERVER, PeerWorld

from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.p2p.introducer import PER_SECOND
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderRedirect
from rtmplite.rtmp.application import LiveApplication

ALICE, BOB = ("198.51.100.1", 40000), ("203.0.113.2", 50000)
STRANGER = THIRD


class Asking:
    """A server with two clients, and hellos that ask for Alice; the server's answers."""

    def __init__(self, app="live", own=(), **options):
        self.world = PeerWorld(**options)
        self.world.user.applications["other"] = LiveApplication()
        self.alice = self.world.client(ALICE, own=own)
        self.bob = self.world.client(BOB, app)
        self.server, self.number = self.world.server.endpoint, 0
        self.cipher = self.server.profile.default_cipher()
        del self.world.link.nodes[BOB]
        self.size_in = 0

    def ask(self, source, peer_id=None, at=None):
        self.number += 1
        epd = Epd(fingerprint=peer_id or self.alice.peer_id).encode()
        hello = InitiatorHello(epd, self.number.to_bytes(16))
        datagram = scramble(0, self.cipher.seal(Packet(Mode.STARTUP, (hello,)).encode()))
        self.size_in += len(datagram)
        now = self.world.now if at is None else at
        self.server.receive(datagram, source, now)
        return self.server.take(now)

    def redirects(self, datagrams):
        found = []
        for datagram, to in datagrams:
            session_id, encrypted = unscramble(datagram)
            if not session_id:
                chunks = Packet.parse(self.cipher.open(encrypted)).chunks
                found += [(to, each) for each in chunks if isinstance(each, ResponderRedirect)]
        return found


def test_clients_of_an_application_are_introduced():
    """Covers RFC 7016 §3.5.1.6 [introduction] [more-addresses]: with what setPeerInfo has told."""
    asking = Asking(own=[("10.0.0.7", 40000)])
    datagrams = asking.ask(BOB)
    ((to, redirect),) = asking.redirects(datagrams)
    assert to == BOB
    told = [(each.ip, each.port) for each in redirect.redirect_destinations]
    assert told == [ALICE, ("10.0.0.7", 40000)]
    assert [destination for _, destination in datagrams].count(ALICE) == 1


@pytest.mark.parametrize("who", ["stranger", "unaccepted", "elsewhere", "off", "oneself"])
def test_nobody_else_is(who, monkeypatch):
    """Covers RFC 7016 §3.5.1.6 [introduction]: nor do they learn whether that peer is here."""
    asking = Asking("other" if who == "elsewhere" else "live", introduces=who != "off")
    if who == "unaccepted":
        session = asking.world.user.sessions_at(BOB)[0]
        monkeypatch.setattr(asking.world.user.by_session[session], "state", "asking")
    source = {"stranger": STRANGER, "oneself": ALICE}.get(who, BOB)
    assert asking.ask(source) == []


@pytest.mark.parametrize(("apps", "count"), [(["other", "live"], 1), (["other"], 0), ([], 0)])
def test_a_client_of_another_process_is_introduced_to_its_application(apps, count):
    """Covers RFC 7016 §3.5.1.6 [introduction]: that process vouches for what it has accepted."""
    asking = Asking(own=[("10.0.0.7", 40000)])
    introducer, now = asking.world.user.introducer, asking.world.now
    hello = InitiatorHello(Epd(fingerprint=asking.alice.peer_id).encode(), b"tag")

    def judge(session):
        return introducer.addresses_for(session, STRANGER, apps, now)

    asking.server.hellos.introduce(hello, STRANGER, judge, now)
    datagrams = asking.server.take(now)
    assert [to for to, _ in asking.redirects(datagrams)] == [STRANGER] * count
    assert len(datagrams) == 2 * count
    assert introducer.apps_of(BOB) == ["live"] and introducer.apps_of(STRANGER) == []


def test_who_is_not_accepted_yet_is_not_introduced_to_others(monkeypatch):
    """Own design: the other way round."""
    asking = Asking()
    session = asking.world.user.sessions_at(ALICE)[0]
    monkeypatch.setattr(asking.world.user.by_session[session], "state", "asking")
    assert asking.ask(BOB) == []


def test_a_client_without_connect_is_none():
    """Own design: a session alone is not enough."""
    asking = Asking()
    node = asking.bob.node
    asking.world.link.nodes[STRANGER] = node
    node.endpoint.connect(Epd(ancillary_data=b"rtmfp://h/x").encode(), [SERVER], asking.world.now)
    asking.world.user.on_session = EndpointListener().on_session
    asking.world.run()
    assert asking.ask(STRANGER) == []


def test_a_flood_of_introductions():
    """Covers RFC 7016 §5 [resources-bounded]: measured.

    A client asks 3,000 times in three seconds, for a peer that is here and for some that are not.
    """
    asking = Asking(own=[(f"10.0.0.{number}", 40000) for number in range(40)])
    start, answers, asked = asking.world.now, [], 3_000
    asking.ask(BOB)
    asking.size_in = 0
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    sizes = {BOB: 0, ALICE: 0}
    for number in range(asked):
        wanted = asking.alice.peer_id if number % 2 else bytes((number & 0xFF,)) * 32
        datagrams = asking.ask(BOB, wanted, start + 1 + number / 1000)
        for datagram, to in datagrams:
            sizes[to] += len(datagram)
        answers += datagrams
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del answers
    assert 0 < sizes[ALICE] + sizes[BOB] < 0.25 * asking.size_in
    assert sizes[ALICE] < 4 * PER_SECOND * 160
    assert kept < 2_000_000
    assert len(asking.server.table) == 2 and asking.server.openings == []


def test_what_one_introduction_costs():
    """Covers RFC 7016 §5 [resources-bounded].

    However many addresses a peer lists: all answers together are a few times the hello, and go to
    nobody who has not shown to be where they go.
    """
    asking = Asking(own=[(f"2001:db8::{number:x}", 40000) for number in range(60)])
    datagrams = asking.ask(BOB)
    assert {to for _, to in datagrams} == {ALICE, BOB}
    out = sum(len(datagram) for datagram, _ in datagrams)
    assert 1 < out / asking.size_in < 6
    asking.size_in = 0
    assert asking.ask(BOB, bytes(32)) == []
    assert asking.ask(STRANGER) == []


def test_those_who_may_not_ask_use_up_nothing():
    """Own design: the share of a peer is for those who may meet it."""
    asking = Asking()
    for number in range(200):
        assert asking.ask(("203.0.113.200", number + 1)) == []
    assert len(asking.redirects(asking.ask(BOB))) == 1


def test_a_peer_hears_of_each_asker():
    """Covers RFC 7016 §3.5.1.5 [fihello-sent]: with the address that we have seen."""
    asking = Asking()
    heard = []
    held = next(iter(asking.alice.node.endpoint.table))
    held.on_forwarded_hello = lambda session, hello, now: heard.append(hello)
    for datagram, to in asking.ask(BOB):
        if to == ALICE:
            asking.alice.node.receive(datagram, SERVER, asking.world.now)
    (hello,) = heard
    assert isinstance(hello, ForwardedInitiatorHello)
    assert (hello.reply_address.ip, hello.reply_address.port) == BOB


def test_profiles_of_relay_endpoints_are_asked_for_by_fingerprint_alone():
    """Covers RFC 7425 §4.4.3 [ancillary-accepted]: no URL selects one."""
    profile = FlashProfile(Random(1).randbytes, accepts_ancillary_data=False)
    assert not profile.selects(Epd(ancillary_data=b"rtmfp://host/live").encode())
    assert profile.selects(Epd(fingerprint=profile.peer_id).encode())
