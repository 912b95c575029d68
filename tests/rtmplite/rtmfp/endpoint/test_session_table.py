"""Sessions found by ID, address and identity, and forgotten in all three."""

from random import Random

import pytest
from support.rtmfp.endpoints import CLIENT, SERVER, THIRD, World

from rtmplite.rtmfp.endpoint.session_table import ALL_IDS, SessionEntry, Table
from rtmplite.rtmfp.session.session import State


class Owner:
    """An endpoint that lets nobody listen."""

    def __init__(self):
        self.heard = []

    def announce(self, held, now):
        self.heard.append("announced")

    def on_closed(self, held, now):
        self.heard.append("closed")

    def on_moved(self, held, former):
        self.heard.append("moved")

    def on_forwarded_hello(self, held, hello, now):
        self.heard.append("hello")


class Session:
    """As much of a session as a table looks at."""

    def __init__(self, near_id, address, far_certificate):
        self.near_id, self.address = near_id, address
        self.far_certificate = far_certificate
        self.state = State.OPEN


def held(near_id, address=CLIENT, certificate=b"client#1"):
    one = SessionEntry(Owner())
    one.session = Session(near_id, address, certificate)
    return one


def table(**options):
    def name(certificate):
        return certificate.partition(b"#")[0]

    return Table(
        Random(1).randbytes, lambda certificate: b"epd " + name(certificate), name, **options
    )


@pytest.mark.sources  # its sessions are not real ones
def test_all_ways_to_find_a_session():
    """Own design: packets ask for the ID, the startup for the address and the identity."""
    sessions, one, two = table(), held(1), held(2, THIRD, b"client#2")
    for each in (one, two):
        sessions.add(each)
    assert (len(sessions), list(sessions)) == (2, [one, two])
    assert sessions.by_id == {1: one, 2: two}
    assert (sessions.at(CLIENT), sessions.at(THIRD), sessions.at(SERVER)) == ([one], [two], [])
    assert sessions.canonical(b"epd client") == [one, two]
    assert sessions.canonical(b"epd") == []
    assert list(sessions.unproven) == [one, two]


@pytest.mark.sources  # its sessions are not real ones
def test_ids_are_drawn_until_one_is_free():
    """Covers RFC 7016 §3.5.1.1.2 [unique-near-id], §3.3 [zero-is-startup]."""
    sessions = table()
    sessions.add(held(5))
    drawn = [0, 5, 6, 7]
    sessions._random = lambda size: drawn.pop(0).to_bytes(size, "big")
    assert sessions.new_id({6}) == 7


@pytest.mark.sources  # its sessions are not real ones
def test_ids_are_drawn_from_the_share_of_a_process():
    """Covers RFC 7016 §3.5.1.1.2 [unique-near-id]: no other one at the address has such an ID."""
    sessions = table(ids=ALL_IDS[1::3])
    assert {sessions.new_id(()) % 3 for _ in range(100)} == {1}
    sessions._random = lambda size: b"\xff" * size
    assert sessions.new_id(()) <= ALL_IDS[-1]
    sessions = table(ids=ALL_IDS[0::3])
    drawn = [0, 2]
    sessions._random = lambda size: drawn.pop(0).to_bytes(size)
    assert sessions.new_id(()) == 6


@pytest.mark.sources  # its sessions are not real ones
def test_only_the_proven_and_open_are_reachable():
    """Own design: and of these the latest."""
    sessions, one, two = table(), held(1), held(2, THIRD)
    for each in (one, two):
        sessions.add(each)
    assert sessions.reachable(b"client") is None
    sessions.prove(two)
    sessions.prove(one)
    assert sessions.reachable(b"client") is one
    one.session.state = State.NEARCLOSE
    assert sessions.reachable(b"client") is two
    assert list(sessions.unproven) == []


@pytest.mark.sources  # its sessions are not real ones
def test_nothing_stays_of_what_is_discarded():
    """Covers RFC 7016 §5: nor does memory fill with what is over."""
    sessions, one, two = table(), held(1), held(2, THIRD)
    sessions.add(one)
    sessions.add(two)
    sessions.prove(two)
    one.session.address = SERVER
    sessions.move(one, CLIENT)
    assert (sessions.at(CLIENT), sessions.at(SERVER)) == ([], [one])
    sessions.discard(one)
    sessions.discard(two)
    indexes = (sessions._by_address, sessions._by_canonical, sessions._by_fingerprint)
    assert (sessions.by_id, sessions.unproven, *indexes) == ({}, {}, {}, {}, {})


@pytest.mark.sources  # its sessions are not real ones
def test_events_reach_the_endpoint_and_then_the_user():
    """Own design: where nobody listens, flows are refused."""
    one = held(1)
    assert one.on_flow(one.session, None, 0.0) is None
    one.on_forwarded_hello(one.session, None, 0.0)
    one.on_address_change(one.session, CLIENT, 0.0)
    one.on_closed(one.session, 0.0)
    assert one._owner.heard == ["announced", "hello", "moved", "closed"]


def test_a_moved_session_is_known_at_its_new_address():
    """Covers RFC 7016 §3.3 [found-by-id]: a client begins anew where it has moved to."""
    world = World()
    server, client = world.join(SERVER, b"server"), world.join(CLIENT, b"client")
    world.connect(client, b"server", SERVER)
    world.run(1)
    world.link.join(THIRD, world.link.nodes.pop(CLIENT))
    client.session.open_flow(b"flow", world.link.now).send(b"moved", world.link.now)
    world.run(3)
    (old,) = server.endpoint.sessions
    anew = world.join(THIRD, b"client")
    world.connect(anew, b"server", SERVER)
    world.run(3)
    (new,) = server.endpoint.sessions
    assert old is not new
