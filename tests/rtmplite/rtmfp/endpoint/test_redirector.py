"""Introductions between peers, through translators too, and work left to other servers."""

from random import Random

import pytest
from support.rtmfp.endpoints import CLIENT, SERVER, THIRD, World, startup_datagram
from support.rtmfp.link import calm

from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint_listener import Forwarded
from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.address import Origin, SocketAddress
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello, ResponderHello, ResponderRedirect

PEER, ASKER = CLIENT, THIRD


def translated(*addresses):
    """A network where these are behind translators that let in only what answers.

    A datagram is let in if its source has been sent something from there before.
    """
    opened = set()

    def weather(data, source, destination):
        opened.add((source, destination))
        if destination in addresses and (destination, source) not in opened:
            return ()
        return (0.02,)

    return weather


class Introduction:
    """A server, a peer that has a session with it, and somebody who asks for that peer."""

    def __init__(self, weather=None, flash=False, **options):
        self.world = World(weather)
        drawn = Random(5).randbytes
        profiles = [None] * 3
        self.server_epd, self.peer_epd = b"server", b"peer"
        if flash:
            profiles = [FlashProfile.server(drawn)]
            profiles += [FlashProfile.client(drawn, groups=(2,)) for _ in range(2)]
            self.server_epd = Epd(ancillary_data=b"rtmfp://example.com/live").encode()
            self.peer_epd = Epd(fingerprint=profiles[1].peer_id).encode()
        self.server = self.world.join(SERVER, b"server", profiles[0], **options)
        self.peer = self.world.join(PEER, b"peer", profiles[1])
        self.asker = self.world.join(ASKER, b"asker", profiles[2])
        self.world.connect(self.peer, self.server_epd, SERVER)
        self.world.run(1)

    def ask(self, seconds=1.0):
        opening = self.world.connect(self.asker, self.peer_epd, SERVER)
        self.world.run(seconds)
        return opening

    def talk(self):
        """Send something from the asker to the peer."""
        flow = self.asker.session.open_flow(b"flow", self.world.link.now)
        flow.send(b"hello", self.world.link.now)
        self.world.run(1)
        return self.peer.heard()


@pytest.mark.parametrize("flash", [False, True])
@pytest.mark.parametrize("behind", [(), (PEER,), (ASKER,), (PEER, ASKER)])
def test_a_server_introduces_two_of_its_clients(behind, flash):
    """Covers RFC 7016 §3.5.1.6 [introduction] [public-address-told].

    Covers RFC 7016 §3.5.1.5 [fihello-sent], §3.5.1.4 [redirect-for-others]: with a translator
    before either of them, or both.
    """
    meeting = Introduction(translated(*behind), flash)
    opening = meeting.ask()
    assert opening.state is OpeningState.OPEN
    assert opening.address == PEER
    assert meeting.talk() == [b"hello"]
    assert len(meeting.server.endpoint.sessions) == 1


def test_what_both_are_told():
    """Covers RFC 7016 §3.5.1.5 [fihello-sent], §3.5.1.6 [public-address-told] [more-addresses].

    And §2.1.5 [origins].
    """
    meeting = Introduction()
    meeting.server.user.reported = [("10.0.0.7", 1935), ("nonsense", 1), ("2001:db8::7", 1935)]
    heard = []
    held = next(iter(meeting.peer.endpoint.table))
    answer = held.on_forwarded_hello
    held.on_forwarded_hello = lambda session, hello, now: (
        heard.append(hello),
        answer(session, hello, now),
    )
    opening = meeting.ask(0.1)
    ((_, to, redirect),) = meeting.world.sent(ResponderRedirect)
    assert (to, redirect.tag_echo) == (ASKER, opening.tag)
    assert redirect.redirect_destinations == (
        SocketAddress(*PEER, Origin.OBSERVED),
        SocketAddress("10.0.0.7", 1935, Origin.LOCAL),
        SocketAddress("2001:db8::7", 1935, Origin.LOCAL),
    )
    asked_from = SocketAddress(*ASKER, Origin.OBSERVED)
    assert heard == [ForwardedInitiatorHello(b"peer", asked_from, opening.tag)]
    assert meeting.server.user.asked == [(meeting.server.session, ASKER)]


def test_private_addresses_help_behind_one_translator():
    """Covers RFC 7016 §3.5.1.6 [more-addresses]: where nobody can be reached from outside."""
    home = ("10.0.0.7", 1935)

    def weather(data, source, destination):
        inside = {ASKER, home, PEER}
        return () if destination == PEER and source in inside else (0.02,)

    meeting = Introduction(weather)
    meeting.world.link.join(home, meeting.peer)
    del meeting.world.link.nodes[PEER]
    meeting.server.user.reported = [home]
    opening = meeting.ask(3.0)
    assert opening.state is OpeningState.OPEN
    assert opening.address == home


def test_hellos_are_asked_for_again_until_they_arrive():
    """Covers RFC 7016 §3.5.1.6 [introduction]: a translator may drop the first answer."""
    losses = iter([True] * 4)

    def weather(data, source, destination):
        lost = {source, destination} == {PEER, ASKER} and next(losses, False)
        return () if lost else (0.02,)

    assert Introduction(weather).ask(20.0).state is OpeningState.OPEN


@pytest.mark.parametrize("epd", [b"nobody", b"", b"pee"])
def test_nothing_is_said_of_strangers(epd):
    """Own design: nor whether we know them; who asks on and on learns nothing."""
    meeting = Introduction()
    meeting.peer_epd = epd
    opening = meeting.ask(10)
    assert opening.state is OpeningState.IHELLO_SENT
    assert meeting.world.sent(ResponderRedirect) == []
    assert meeting.server.endpoint.ignored["hello to somebody else"] == 4


def test_an_application_may_know_where_strangers_are():
    """Covers RFC 7016 §3.5.1.4 [redirect-for-others]: like a name server."""
    meeting = Introduction()
    meeting.server.user.known[b"friend"] = [("203.0.113.40", 7)]
    friend = meeting.world.join(("203.0.113.40", 7), b"friend")
    meeting.peer_epd = b"friend"
    assert meeting.ask().state is OpeningState.OPEN
    assert len(friend.user.sessions) == 1


def test_an_application_may_refuse_an_introduction():
    """Own design: privacy is the application's."""
    meeting = Introduction()
    meeting.server.user.reported = None
    assert meeting.ask().state is OpeningState.IHELLO_SENT
    assert meeting.world.sent(ResponderRedirect) == []
    assert meeting.world.sent(ResponderHello, PEER) == []


def test_a_session_that_has_ended_is_not_introduced():
    """RFC 7016 §3.5.1.5: only one in S_OPEN."""
    meeting = Introduction()
    meeting.server.session.close(meeting.world.link.now)
    assert meeting.ask(0.03).state is OpeningState.IHELLO_SENT
    assert meeting.server.session.state is State.NEARCLOSE
    assert meeting.server.endpoint.ignored["hello to somebody else"] == 1
    assert meeting.world.sent(ResponderRedirect) == []


def test_the_latest_session_of_an_identity_is_introduced():
    """Own design: a client that has come back from elsewhere is there now."""
    meeting = Introduction()
    elsewhere = meeting.world.join(("203.0.113.41", 8), b"peer#2")
    meeting.world.connect(elsewhere, b"server", SERVER)
    meeting.world.run(1)
    meeting.ask(0.1)
    ((_, _, redirect),) = meeting.world.sent(ResponderRedirect)
    assert redirect.redirect_destinations[0].ip == "203.0.113.41"


def test_only_who_has_proved_to_be_somebody_is_introduced_as_that():
    """Own design: an intruder who knows the peer's certificate gets none of its callers."""
    meeting = Introduction()
    meeting.server.session.abort(meeting.world.link.now)
    meeting.world.run(1)
    intruder = meeting.world.join(("203.0.113.66", 6), b"peer")
    agree = intruder.endpoint.profile.initiate

    def without_key(certificate):
        agreement = agree(certificate)
        agreement.agree = lambda far: type(agreement).agree(agreement, far + b"guessed")
        return agreement

    intruder.endpoint.profile.initiate = without_key
    meeting.world.connect(intruder, b"server", SERVER)
    meeting.world.run(1)
    assert len(meeting.server.endpoint.sessions) == 1
    meeting.ask()
    assert meeting.world.sent(ResponderRedirect) == []


def test_a_peer_that_moves_is_found_where_it_is():
    """Covers RFC 7016 §3.5.1.6 [public-address-told]: DESTADDR, as it is now."""
    meeting = Introduction()
    moved = ("198.51.100.200", 3)
    meeting.world.link.nodes[moved] = meeting.world.link.nodes.pop(PEER)
    now = meeting.world.link.now
    meeting.peer.session.open_flow(b"flow", now).send(b"here now", now)
    meeting.world.run(2)
    assert meeting.server.session.address == moved
    assert meeting.ask().address == moved


def test_a_peer_is_not_flooded_by_those_who_ask():
    """Covers RFC 7016 §5 [resources-bounded]."""
    meeting = Introduction(limits=StartupLimits(forwards_per_second=5))
    for number in range(20):
        source = (f"203.0.113.{number}", 1)
        meeting.server.endpoint.receive(
            startup_datagram(InitiatorHello(b"peer", b"tag")), source, meeting.world.link.now
        )
    assert len(meeting.world.sent(ResponderRedirect)) == 0
    meeting.world.link.flush()
    assert len(meeting.world.sent(ResponderRedirect)) == 5
    assert len(meeting.server.user.asked) == 20


OTHERS = [("203.0.113.10", 1935), ("203.0.113.11", 1935)]


def pool(**options):
    world = World()
    first = world.join(SERVER, b"server one", others=OTHERS, **options)
    servers = [world.join(address, b"server other") for address in OTHERS]
    return world, first, servers


def test_who_asks_a_server_that_refers_finds_another():
    """Covers RFC 7016 §3.5.1.7 [referred]: a session with the first one that answers."""
    world, first, servers = pool()
    first.endpoint.hellos.refers = lambda: True
    openings = [
        world.connect(world.join((f"198.51.100.{n}", 1), b"client"), b"server", SERVER)
        for n in range(8)
    ]
    world.run(1)
    assert {opening.state for opening in openings} == {OpeningState.OPEN}
    assert first.endpoint.sessions == []
    assert sum(len(server.user.sessions) for server in servers) == 8
    firsts = {chunk.redirect_destinations[0].ip for _, _, chunk in world.sent(ResponderRedirect)}
    assert firsts == {ip for ip, _ in OTHERS}


def test_a_full_server_refers():
    """Covers RFC 7016 §3.5.1.7 [referred], §5 [resources-bounded]."""
    world, first, servers = pool(limits=StartupLimits(sessions=2))
    for n in range(5):
        world.connect(world.join((f"198.51.100.{n}", 1), b"client"), b"server", SERVER)
        world.run(1)
    assert len(first.endpoint.sessions) == 2
    assert sum(len(server.user.sessions) for server in servers) == 3
    first.user.sessions[0][0].close(world.link.now)
    world.run(1)
    world.connect(world.join(("198.51.100.9", 1), b"client"), b"server", SERVER)
    world.run(1)
    assert len(first.user.sessions) == 3


def test_of_many_servers_each_asker_is_told_a_few():
    """Own design: a Redirect fits one packet, and all of them have their turn."""
    world = World()
    others = [("203.0.113.10", port) for port in range(1, 41)]
    server = world.join(SERVER, b"server", others=others)
    server.endpoint.hellos.refers = lambda: True
    for n in range(60):
        source = (f"198.51.100.{n}", 1)
        hello = startup_datagram(InitiatorHello(b"server", bytes((n,))))
        server.endpoint.receive(hello, source, 0.0)
    world.run(0)
    told = [chunk.redirect_destinations for _, _, chunk in world.sent(ResponderRedirect)]
    assert {len(each) for each in told} == {12}
    assert {address.port for each in told for address in each} == set(range(1, 41))


def test_an_initiator_asks_many_and_takes_the_quickest():
    """Covers RFC 7016 §3.5.1.7 [quickest-answer], §3.5.1.1.1 [first-rhello]."""
    far, near, dead = ("203.0.113.20", 1), ("203.0.113.21", 1), ("203.0.113.22", 1)

    def weather(data, source, destination):
        return (0.3 if far in (source, destination) else 0.02,)

    world = World(weather)
    slow, quick = world.join(far, b"server far"), world.join(near, b"server near")
    asker = world.join(CLIENT, b"client")
    opening = world.connect(asker, b"server", far, dead, near)
    world.run(2)
    assert opening.address == near
    assert (len(slow.endpoint.sessions), len(quick.endpoint.sessions)) == (0, 1)
    del world.link.nodes[near]
    again = world.connect(world.join(THIRD, b"client 2"), b"server", far, dead, near)
    world.run(5)
    assert again.address == far


@pytest.mark.parametrize("forwarded", list(Forwarded))
def test_every_answer_to_a_forwarded_hello_will_do(forwarded):
    """Covers RFC 7016 §3.5.1.1.2 [fihello-answered]: as the asker hears of the peer anyway."""
    meeting = Introduction(calm(0.02))
    meeting.peer.endpoint.hellos.forwarded = forwarded
    assert meeting.ask(3).state is OpeningState.OPEN
