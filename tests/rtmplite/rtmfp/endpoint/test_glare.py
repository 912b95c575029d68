"""Two ends that want a session with each other at about the same time get one, and lose nothing."""

from random import Random

import pytest
from support.rtmfp.endpoints import CLIENT, SERVER, THIRD, World
from support.rtmfp.endpoints import LoneResponder as Lone
from support.rtmfp.link import storm
from support.rtmfp.peer_world import PeerWorld, media

from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.startup_chunks import InitiatorInitialKeying, ResponderHello

WEATHERS = [  # longest delay, time between the beginnings, loss, and what a keying takes: seconds
    (0.5, 0.5, 0.0, 0.0),
    (0.5, 0.5, 0.1, 0.0),
    (0.1, 0.3, 0.1, 0.3),
    (2.0, 2.0, 0.0, 0.1),
]


def apart(random, most, *calls):
    """The calls in any order, each with its time."""
    return sorted(((random.uniform(0, most), call) for call in calls), key=lambda each: each[0])


class Both:
    """Two endpoints that open sessions to each other, whose users say a word in each they get."""

    def __init__(self, seed, delay, between, loss, slow):
        random = Random(seed)
        self.world = World(storm(random, loss=loss, duplicates=0.0, delay=0.0, spread=delay))
        self.a = self.world.join(SERVER, b"a", slow=slow)
        self.b = self.world.join(CLIENT, b"b", slow=slow)
        for node in (self.a, self.b):
            node.user.on_session = self.speaking(node)
        self.openings = {}
        asks = [(self.a, b"b", CLIENT), (self.b, b"a", SERVER)]
        for at, (node, epd, address) in apart(random, between, *asks):
            self.world.link.run(at)
            self.openings[node] = self.world.connect(node, epd, address)
        self.world.run(60)

    def speaking(self, node):
        on_session = node.user.on_session

        def speak(session, opening, now):
            listener = on_session(session, opening, now)
            session.open_flow(b"flow", now).send(node.endpoint.profile.certificate, now)
            return listener

        return speak

    def is_well(self, node, far):
        """Whether there is one session, in which the far end was heard, for whoever asked."""
        (session, opening, _), *others = node.user.sessions
        if others or session.state is not State.OPEN or len(node.endpoint.sessions) != 1:
            return False
        served = [each.instead for each, _, _ in node.user.failed]
        served += [session] if opening is self.openings[node] else []
        return node.heard() == [far.endpoint.profile.certificate] and served == [session]


@pytest.mark.parametrize("weather", WEATHERS)
def test_one_session_and_no_word_lost(weather):
    """Covers RFC 7016 §3.5.1.1.1 [duplicate-aborted], §3.5.1.3 [one-session]."""
    bad = []
    for seed in range(150):
        both = Both(seed, *weather)
        if not both.is_well(both.a, both.b) or not both.is_well(both.b, both.a):
            bad.append(seed)
    assert bad == []


def play_from_each_other(seed):
    """What two clients heard that began to play from each other in bad weather."""
    random = Random(seed)
    world = PeerWorld()
    alice, bob = (world.client((f"198.51.100.{n}", 40000)) for n in (1, 2))
    lives = [each.peers.publish("song", world.now) for each in (alice, bob)]
    world.link.weather = storm(random, loss=0.05, duplicates=0.0, delay=0.0, spread=0.5)
    start, streams = world.now, []
    for at, (one, other) in apart(random, 0.5, (alice, bob), (bob, alice)):
        world.link.run(start + at)
        streams.append(one.play(other.peer_id, "song"))
    world.run(20)
    for live in lives:
        live.write(18, 0, b"\x02\x00\x02hi", world.now)
    world.run(20)
    heard = [payload for each in streams for _, _, payload in media(each.events())]
    return heard, [len(each.peers.sessions) for each in (alice, bob)]


def test_clients_that_play_from_each_other():
    """RFC 7425 §5.4: whichever keying wins, both streams go on in the session there is."""
    bad = [seed for seed in range(150) if not _is_mutual(*play_from_each_other(seed))]
    assert bad == []


def _is_mutual(heard, sessions):
    return heard.count(b"\x02\x00\x02hi") == 2 and sessions == [1, 1]


def awaiting(address=CLIENT):
    """A responder asked by CLIENT, of which nothing else was heard, that asks at `address`."""
    lone = Lone()
    lone.key(initiator_certificate=b"aa")
    (lone.unproven,) = lone.sessions
    lone.opening = lone.world.connect(lone.node, b"aa", address)
    lone.hear(ResponderHello(lone.opening.tag, b"cookie", b"aa"), address)
    return lone


def test_a_session_that_the_far_end_opens_serves_the_opening_there():
    """Covers RFC 7016 §3.5.1.1.1 [duplicate-aborted]: nothing is keyed, and the user has it."""
    lone = awaiting()
    assert lone.opening.state is OpeningState.CLOSED
    assert lone.sent(InitiatorInitialKeying) == []
    lone.prove(lone.unproven)
    ((session, opening, _),) = lone.node.user.sessions
    assert (session, opening) == (lone.unproven, lone.opening)
    assert lone.node.user.failed == []


def test_an_opening_that_waits_for_nothing_has_failed():
    """Own design: whoever asked hears of it."""
    lone = awaiting()
    lone.world.run(300)
    assert [opening for opening, _, _ in lone.node.user.failed] == [lone.opening]
    assert lone.sessions == lone.endpoint.openings == []


def test_a_second_opening_is_served_by_what_the_first_waits_for():
    """Own design: who asks twice hears that the first will do."""
    lone = awaiting()
    again = lone.world.connect(lone.node, b"aa", CLIENT)
    lone.hear(ResponderHello(again.tag, b"cookie", b"aa"))
    assert [(opening, opening.instead) for opening, _, _ in lone.node.user.failed] == [
        (again, lone.opening)
    ]


def test_what_was_cancelled_serves_nobody():
    """Own design: who asks again waits for the session, as if nobody had asked before."""
    lone = awaiting()
    lone.opening.cancel(lone.now)
    again = lone.world.connect(lone.node, b"aa", CLIENT)
    lone.hear(ResponderHello(again.tag, b"cookie", b"aa"))
    assert lone.node.user.failed == []
    lone.prove(lone.unproven)
    assert [opening for _, opening, _ in lone.node.user.sessions] == [again]


def test_a_session_that_is_waited_for_is_asked_for_a_word():
    """Own design: its initiator may have said one that was lost, and has nothing more to say."""
    world = World()
    a, b = world.join(SERVER, b"a"), world.join(CLIENT, b"b")
    weather = world.link.weather
    world.connect(b, b"a", SERVER)
    world.run(0.07)
    world.link.weather = lambda data, source, to: () if source == CLIENT else (0.02,)
    world.run(1.0)
    assert b.session.state is State.OPEN and a.user.sessions == []
    world.link.weather = weather
    opening = world.connect(a, b"b", CLIENT)
    world.run(1.0)
    assert [found for _, found, _ in a.user.sessions] == [opening]


def test_nor_is_what_gave_way_to_the_far_end_s_keying_cancelled():
    """RFC 7016 §3.5.1.3: who asks again hears that the first opening will do."""
    lone = Lone()
    first = lone.world.connect(lone.node, b"aa", CLIENT)
    lone.key(initiator_certificate=b"aa")
    assert first.state is OpeningState.CLOSED
    again = lone.world.connect(lone.node, b"aa", CLIENT)
    lone.hear(ResponderHello(again.tag, b"cookie", b"aa"))
    assert [(opening, opening.instead) for opening, _, _ in lone.node.user.failed] == [
        (again, first)
    ]


@pytest.mark.parametrize("case", ["elsewhere", "other", "closed", "not selected"])
def test_what_only_knows_a_certificate_keeps_nobody_from_anybody(case):
    """RFC 7016 §5: certificates are no secrets, so whoever has one may be anywhere else."""
    lone = awaiting(THIRD) if case == "elsewhere" else Lone()
    if case != "elsewhere":
        lone.key(initiator_certificate=b"ab" if case == "other" else b"aa")
        if case == "closed":
            lone.sessions[0].close(lone.now)
        wanted = b"aa#2" if case == "not selected" else b"aa"
        lone.opening = lone.world.connect(lone.node, wanted, CLIENT)
        lone.hear(ResponderHello(lone.opening.tag, b"cookie", wanted))
    assert lone.opening.state is OpeningState.KEYING_SENT
