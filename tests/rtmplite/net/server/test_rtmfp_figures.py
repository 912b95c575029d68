"""The figures of an RTMFP endpoint: each counts what it says."""

from support.rtmfp.endpoints import CLIENT, SERVER, THIRD, World, startup_datagram
from support.rtmfp.peer_world import PeerWorld

from rtmplite.net.server.rtmfp_listener import FIGURES, NO_FIGURES, RtmfpListener, figures
from rtmplite.rtmfp.netconnection.messages import RELAY_COMMAND
from rtmplite.rtmfp.session.limits import SessionBudget
from rtmplite.rtmfp.wire.control_chunks import Fragment
from rtmplite.rtmfp.wire.packet import scramble
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderInitialKeying


class Watched:
    """A server that is watched, and a client of its."""

    def __init__(self, **options):
        self.world = World()
        self.server = self.world.join(SERVER, b"server", **options)
        self.client = self.world.join(CLIENT, b"client")

    def connect(self):
        self.world.connect(self.client, b"server", SERVER)
        self.world.run(1.0)

    def changed(self):
        """What is not zero."""
        return {name: value for name, value in figures(self.server.endpoint).items() if value}

    def hear(self, data):
        self.server.receive(data, THIRD, self.world.link.now)
        self.world.link.flush()


def test_at_rest_all_is_zero():
    assert figures(Watched().server.endpoint) == NO_FIGURES
    assert tuple(NO_FIGURES) == FIGURES


def test_a_session_from_its_keying_to_its_end():
    watched = Watched(slow=0.1)
    watched.world.connect(watched.client, b"server", SERVER)
    watched.world.run(0.07)
    assert watched.changed() == {"keyings": 1}
    dropped = []
    weather = watched.world.link.weather
    watched.world.link.weather = lambda data, source, to: (
        () if source == SERVER and not dropped.append(data) else weather(data, source, to)
    )
    watched.world.run(0.2)
    assert watched.changed() == {"sessions": 1, "unproven": 1}
    watched.world.link.weather = weather
    watched.world.run(5.0)
    assert len(watched.world.sent(ResponderInitialKeying)) > 1
    assert watched.changed() == {"sessions": 1}
    session, now = watched.server.session, watched.world.link.now
    session.open_flow(b"flow", now).send(bytes(500), now)
    watched.world.link.flush()
    busy = watched.changed()
    assert busy.pop("buffered") > 500
    assert busy == {"sessions": 1, "flows": 1}
    watched.world.run(1.0)
    watched.client.session.close(watched.world.link.now)
    watched.world.run(1.0)
    assert watched.changed() == {"closing": 1}
    watched.world.run(100.0)
    assert figures(watched.server.endpoint) == NO_FIGURES


def test_what_strangers_send():
    watched = Watched()
    watched.connect()
    watched.hear(b"no packet at all")
    watched.hear(scramble(0, b"something else"))
    watched.hear(startup_datagram(InitiatorHello(b"nobody", b"tag")))
    watched.hear(startup_datagram(Fragment(1, 0, b"the first of", more_fragments=True)))
    watched.hear(scramble(watched.server.session.near_id, b"forged"))
    assert watched.changed() == {"sessions": 1, "ignored": 3, "reassemblies": 1, "invalid": 1}
    watched.server.session.abort(watched.world.link.now)
    watched.world.run(61.0)
    assert watched.changed() == {"ignored": 3, "invalid": 1}


def test_what_is_opened_from_here():
    watched = Watched()
    watched.world.connect(watched.server, b"nobody", THIRD)
    assert watched.changed() == {"openings": 1}


def test_who_took_too_much():
    watched = Watched(budget=SessionBudget(100_000))
    watched.connect()
    watched.world.link.weather = lambda *_: ()
    now = watched.world.link.now
    watched.server.session.open_flow(b"flow", now).send(bytes(200_000), now)
    watched.world.run(0.1)
    assert watched.changed() == {"evicted": 1}


def test_a_server_tells_for_how_many_it_stands_in():
    world = PeerWorld(relays=True)
    bob, alice = (world.client((f"198.51.100.{number}", 1)) for number in (1, 2))
    assert world.user.peer_relays.clients == 0
    bob.machine.call(RELAY_COMMAND, alice.peer_id.hex())
    world.run()
    assert world.user.peer_relays.clients == 1
    server = RtmfpListener("127.0.0.1", 0, lambda address: None)
    assert server.figures == NO_FIGURES
