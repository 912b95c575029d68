"""A whole endpoint: in bad weather, under attack, and with much to do."""

from random import Random
from types import SimpleNamespace

import pytest
from support.rtmfp.endpoints import (
    CLIENT,
    SERVER,
    THIRD,
    PlainProfile,
    User,
    World,
    met,
    startup_datagram,
)
from support.rtmfp.link import calm, storm

from rtmplite.errors import LocalError
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.control_chunks import Fragment
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    RHelloCookieChange,
)

FOURTH = ("203.0.113.77", 1935)
URL = Epd(ancillary_data=b"rtmfp://example.com/live").encode()


def test_four_packets_and_a_session():
    """Covers RFC 7016 §3.5.1.1.1 [initiator-open], §3.5.1.1.2 [responder-open], §3.5 [states]."""
    figure = ["S_IHELLO_SENT", "S_KEYING_SENT", "S_OPEN", "S_OPEN_FAILED", "S_CLOSED"]
    assert [str(state) for state in OpeningState] == figure
    world, server, client, opening = met()
    kinds = [(source, type(chunk)) for _, source, _, _, chunk in world.startup()]
    assert kinds == [
        (CLIENT, InitiatorHello),
        (SERVER, ResponderHello),
        (CLIENT, InitiatorInitialKeying),
        (SERVER, ResponderInitialKeying),
    ]
    assert opening.state is OpeningState.OPEN
    near, far = client.session, server.session
    assert (near.near_id, near.far_id) == (far.far_id, far.near_id)
    assert (near.near_nonce, near.far_nonce) == (far.far_nonce, far.near_nonce)
    flow = near.open_flow(b"flow", world.link.now)
    flow.send(b"hello", world.link.now)
    world.run(1)
    assert server.heard() == [b"hello"]


@pytest.mark.parametrize("seed", range(12))
def test_a_handshake_in_a_storm(seed):
    """Covers RFC 7016 §3.5.1.1.2 [retransmission-answered], §3.5.1.1.1 [keying-backoff].

    A third of all packets is lost, a third doubled, all out of order: one session, two ends.
    """
    weather = storm(Random(seed), loss=0.33, duplicates=0.33, spread=1.0)
    world = World(weather)
    server = world.join(SERVER, b"server", slow=0.05)
    client = world.join(CLIENT, b"client", slow=0.05)
    opening = world.connect(client, b"server", SERVER)
    world.run(95)
    assert opening.state is OpeningState.OPEN
    assert len(client.user.sessions) == len(server.user.sessions) == 1
    assert [s.state for s in server.endpoint.sessions] == [State.OPEN]
    client.session.open_flow(b"flow", world.link.now).send(b"hello", world.link.now)
    world.run(30)
    assert server.heard() == [b"hello"]


def test_the_flash_profile_in_a_storm():
    """Covers RFC 7016 §3.5.1.1.1 [initiator-open]: with real keys."""
    drawn = Random(4).randbytes
    world = World(storm(Random(4)))
    server = world.join(SERVER, b"", FlashProfile.server(drawn))
    client = world.join(CLIENT, b"", FlashProfile.client(drawn, groups=(2,)))
    world.connect(client, URL, SERVER)
    world.run(60)
    client.session.open_flow(b"flow", world.link.now).send(b"hello", world.link.now)
    world.run(30)
    assert server.heard() == [b"hello"]
    assert server.session.far_certificate == client.endpoint.profile.certificate


def test_sessions_are_found_by_id_wherever_packets_come_from():
    """Covers RFC 7016 §3.3 [found-by-id]: here the client moves."""
    world, server, client, _ = met()
    del world.link.nodes[CLIENT]
    world.link.join(THIRD, client)
    client.session.open_flow(b"flow", world.link.now).send(b"hello", world.link.now)
    world.run(5)
    assert server.heard() == [b"hello"]
    assert server.session.address == THIRD
    assert server.user.listeners[server.session].moves == [(CLIENT, THIRD)]


def test_what_comes_for_a_session_is_told_from_what_strangers_say():
    """Covers RFC 7016 §3.3 [found-by-id]: without a look at what the packet holds."""
    world, server, client, _ = met()
    known = server.endpoint.sessions[0].near_id
    strange = [scramble(known ^ 1, bytes(32)), scramble(0, bytes(32)), b"short", b"sho", b""]
    datagrams = [(each, THIRD) for each in (scramble(known, bytes(32)), *strange)]
    others = [(each, THIRD) for each in strange]
    assert server.endpoint.receive_known(datagrams, world.link.now) == others
    assert server.endpoint.invalid == 1
    mine = scramble(client.session.near_id, bytes(32)), THIRD
    assert client.endpoint.receive_known([mine, mine], world.link.now) == []
    assert client.endpoint.invalid == 2


def test_what_one_datagram_breaks_does_not_stop_the_others():
    """Own design: a bug costs what met it."""
    bugs = []
    world, server, _, _ = met()
    known = server.endpoint.sessions[0].near_id
    server.endpoint._on_bug = bugs.append
    server.endpoint.table.by_id[known ^ 1] = SimpleNamespace(session=None)
    datagrams = [(scramble(each, bytes(32)), THIRD) for each in (known ^ 1, 0)]
    assert server.endpoint.receive_known(datagrams, world.link.now) == datagrams[1:]
    assert len(bugs) == 1


def test_two_sessions_between_the_same_ports():
    """Covers RFC 7016 §3.3 [found-by-id]: hellos and sessions do not get in each other's way."""
    world, server, client, _ = met()
    third = world.join(THIRD, b"third")
    world.connect(third, b"server", SERVER)
    world.run(1)
    assert len({session.near_id for session in server.endpoint.sessions}) == 2
    for node in (client, third):
        node.session.open_flow(b"flow", world.link.now).send(node.endpoint.profile.certificate, 2.0)
    world.run(1)
    heard = [listener.receivers[b"flow"].messages for listener in server.user.listeners.values()]
    assert heard == [[b"client"], [b"third"]]


class Alias:
    """Another address at which a node hears, and from which it does not send."""

    deadline = None

    def __init__(self, node):
        self.receive = node.receive

    def tick(self, now):
        pass

    def take(self):
        return []


def test_the_cookie_changes_on_the_way():
    """Covers RFC 7016 §3.5.1.2 [cookie-change-sent] [adopts-new-cookie].

    As in the spec's example, the initiator sends its IIKeying from another of its addresses.
    """
    world = World()
    server, client = world.join(SERVER, b"server"), world.join(CLIENT, b"client")
    world.connect(client, b"server", SERVER)
    world.run(0.03)  # the RHello is on its way
    world.link.join(CLIENT, Alias(client))
    world.link.join(THIRD, client)
    world.run(5)
    assert server.session.address == THIRD
    assert client.session.address == SERVER
    assert len(world.sent(RHelloCookieChange)) == 1
    assert len(world.sent(InitiatorInitialKeying)) == 2


def test_a_hello_in_fragments_is_answered():
    """Covers RFC 7016 §3.4 [fragments-concatenated]."""
    world = World()
    server = world.join(SERVER, b"server")
    whole = Packet(Mode.STARTUP, (InitiatorHello(b"server", b"tag"),)).encode()
    for number, at in enumerate(range(0, len(whole), 4)):
        piece = Fragment(9, number, whole[at : at + 4], at + 4 < len(whole))
        server.receive(startup_datagram(piece), CLIENT, 0.0)
    world.run(1)
    assert len(world.sent(ResponderHello)) == 1


def test_large_certificates_travel_in_fragments():
    """Covers RFC 7016 §3.4 [only-unavoidable] [startup-only] [rate-limited]."""
    world = World()
    server = world.join(SERVER, b"server" + bytes(3000))
    client = world.join(CLIENT, b"client" + bytes(3000))
    opening = world.connect(client, b"server", SERVER)
    world.run(5)
    assert opening.state is OpeningState.OPEN
    assert len(server.user.sessions) == 1
    assert max(len(data) for _, _, _, data in world.link.sent) <= 1192
    assert len(world.sent(Fragment)) == 6


def test_messages_are_divided_by_their_flows():
    """Covers RFC 7016 §3.4 [not-for-user-data] [startup-only]."""
    world, server, client, _ = met()
    begun = len(world.link.sent)
    client.session.open_flow(b"flow", world.link.now).send(bytes(50_000), world.link.now)
    world.run(5)
    assert server.heard() == [bytes(50_000)]
    keying = world.sent(InitiatorInitialKeying)[0][2].session_key_initiator_component
    answer = world.sent(ResponderInitialKeying)[0][2].session_key_responder_component
    for _, _, _, data in world.link.sent[begun:]:
        encrypted = unscramble(data)[1]
        assert encrypted.startswith(keying + answer)
        chunks = Packet.parse(encrypted[len(keying + answer) :]).chunks
        assert not any(isinstance(chunk, Fragment) for chunk in chunks)


def test_only_a_few_chunks_of_one_packet_are_heeded():
    """Own design: a packet of 64 KB holds thousands of hellos."""
    world = World()
    server = world.join(SERVER, b"server")
    hellos = tuple(InitiatorHello(b"another", bytes((n,))) for n in range(100))
    packet = Packet(Mode.STARTUP, hellos).encode()
    server.receive(scramble(0, b"ours" + packet), CLIENT, 0.0)
    assert server.endpoint.ignored == {"hello to somebody else": 4}


def test_closing_is_polite_and_final():
    """Covers RFC 7016 §3.5 [states]: sessions leave no trace."""
    world, server, client, _ = met()
    pending = world.connect(client, b"nobody", THIRD)
    client.endpoint.close(world.link.now)
    world.run(30)
    assert pending.state is OpeningState.CLOSED
    assert server.user.listeners[server.session].closed[0][1] == "closed there"
    assert client.endpoint.sessions == server.endpoint.sessions == []
    assert world.link.deadline is None
    assert client.user.failed == []


def test_aborting_is_one_word():
    """Covers RFC 7016 §3.5 [states]."""
    world, server, client, _ = met()
    client.endpoint.abort(world.link.now)
    world.link.flush()
    assert client.endpoint.sessions == []
    world.run(1)
    assert server.endpoint.sessions == []
    assert world.link.deadline is None


def test_a_session_that_falls_silent_is_forgotten():
    """Covers RFC 7016 §5 [resources-bounded]."""
    world, server, _, _ = met()
    del world.link.nodes[CLIENT]
    world.run(400)
    assert server.endpoint.sessions == []
    assert server.endpoint.deadline is None
    assert "silent" in server.user.listeners[server.session].closed[0][1]


def test_flows_may_come_before_anything_else():
    """Own design: then the user hears of the session just in time."""
    world = World()
    server, client = world.join(SERVER, b"server"), world.join(CLIENT, b"client")
    listen = client.user.on_session

    def eager(session, opening, now):
        session.open_flow(b"flow", now).send(b"first words", now)
        return listen(session, opening, now)

    client.user.on_session = eager
    world.connect(client, b"server", SERVER)
    world.run(1)
    assert server.heard() == [b"first words"]


def test_a_user_who_wants_nobody_gets_no_flows_either():
    """Own design: see `EndpointListener`, which wants nobody."""
    world = World()
    server, client = world.join(SERVER, b"server"), world.join(CLIENT, b"client")
    quiet = EndpointListener()
    server.endpoint.listener = quiet
    listen = client.user.on_session

    def eager(session, opening, now):
        session.open_flow(b"flow", now).send(b"first words", now)
        return listen(session, opening, now)

    client.user.on_session = eager
    world.connect(client, b"server", SERVER)
    world.run(1)
    assert server.endpoint.sessions == client.endpoint.sessions == []
    quiet.on_open_failed(None, "", 0.0)
    assert list(quiet.on_introduction(None, THIRD, 0.0)) == []
    assert list(quiet.addresses_of(b"epd", 0.0)) == []


def test_the_edge_is_told_once_that_there_is_work():
    """Own design: one call, whatever happens until the next `take`."""
    called = []
    user = User()
    profile = PlainProfile(b"client", Random(1).randbytes)
    endpoint = Endpoint(
        profile, Random(1).randbytes, 5.0, listener=user, on_work=lambda: called.append(1)
    )
    endpoint.connect(b"server", [SERVER], 5.0)
    opening = endpoint.connect(b"another", [SERVER], 5.0)
    assert len(called) == 1
    assert len(endpoint.take()) == 2
    endpoint.receive(startup_datagram(ResponderHello(opening.tag, b"c", b"another")), SERVER, 5.1)
    assert len(called) == 2
    (job,) = endpoint.take_jobs()
    endpoint.take()
    job.run()
    endpoint.finish(job, 5.2)
    assert len(called) == 3
    assert len(endpoint.take(5.2)) == 1
    assert endpoint.take_jobs() == []
    endpoint.tick(6.5)
    assert len(called) == 4
    assert [to for _, to in endpoint.take()] == [SERVER]


def test_an_opening_needs_an_address_and_a_short_wish():
    """Own design: these are our caller's bugs."""
    world = World()
    node = world.join(SERVER, b"server")
    with pytest.raises(LocalError):
        world.connect(node, b"x")
    with pytest.raises(LocalError):
        world.connect(node, bytes(5000), SERVER)


def test_many_sessions_each_have_their_alarms():
    """Own design: see `schedule`; here a hundred clients are asked whether they are there."""
    world = World(calm(0.01))
    server = world.join(SERVER, b"server")
    for number in range(100):
        client = world.join((f"198.51.100.{number}", 1), b"client %d" % number)
        world.connect(client, b"server", SERVER)
    world.run(100)
    assert len(server.user.sessions) == 100
    assert len(server.endpoint.sessions) == 100
    assert len(server.endpoint._schedule) <= 101
