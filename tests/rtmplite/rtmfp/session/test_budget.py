"""The memory that all sessions of an endpoint may take, and which of them are closed."""

from random import Random

import pytest
from support.rtmfp.endpoints import SERVER, World
from support.rtmfp.link import storm

from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.session.limits import LOOK_SECONDS, SessionBudget
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.flow_chunks import UserData

LIMIT = 400_000


class Taking:
    """A session that takes `size` bytes."""

    def __init__(self, host, size):
        self.address, self.counted = (host, 1), size


def test_the_host_that_takes_the_most_has_to_go():
    """Own design: also if it divides its memory among many sessions; a /64 of IPv6 is one host."""
    budget = SessionBudget(800)
    large = Taking("192.0.2.1", 300)
    others = [Taking(f"192.0.2.{number}", 100) for number in (2, 3)]
    many = [Taking(f"2001:db8:1:2::{number}", 50 + number) for number in range(1, 8)]
    budget.used = sum(each.counted for each in (large, *others, *many))
    assert budget.is_over
    for each in (large, *others, *many):
        budget.add(each)
    chosen = budget.excess(0.0)
    assert chosen == [many[6], many[5], large]
    assert budget.used - sum(each.counted for each in chosen) <= 700


def test_there_is_no_more_to_close_than_there_is():
    """Own design: no session holds anything, and yet the limit is passed."""
    budget = SessionBudget(0)
    budget.used = 1
    assert budget.excess(0.0) == []


def test_one_host_alone_makes_nobody_s_windows_small():
    """Own design: not more than a quarter for each, when more than half is used."""
    budget = SessionBudget(800)
    greedy = [Taking("192.0.2.1", size) for size in (100, 90, 60)]
    others = [Taking(f"192.0.2.{number}", 130) for number in (2, 3)]
    for each in (*greedy, *others):
        budget.add(each)
    budget.used = 510
    assert budget.excess(0.0) == greedy[:1]
    assert budget.excess(1.0) == []  # to look takes time
    assert budget.excess(LOOK_SECONDS) == greedy[:1]
    budget.used = 400
    assert budget.excess(2 * LOOK_SECONDS) == []


class Crowd:
    """A server that may hold `LIMIT` bytes, and clients; `sessions` are the server's, in order."""

    def __init__(self, count, weather=None):
        self.world = World(weather)
        limits = StartupLimits(buffered_bytes=LIMIT)
        self.server = self.world.join(SERVER, b"server", limits=limits)
        self.clients = [self.join(number) for number in range(count)]

    def join(self, number):
        node = self.world.join((f"198.51.100.{number}", 40000), b"client %d" % number)
        node.opening = self.world.connect(node, b"server", SERVER)
        self.world.run(2.0)
        return node

    @property
    def endpoint(self):
        return self.server.endpoint

    @property
    def budget(self):
        return self.endpoint.budget

    @property
    def sessions(self):
        return [session for session, _, _ in self.server.user.sessions]

    def check(self):
        assert self.budget.used == sum(each.memory for each in self.endpoint.sessions)
        assert self.budget.used <= LIMIT

    def silence(self):
        self.world.link.weather = lambda *_: ()

    def send(self, session, size):
        now = self.world.link.now
        session.open_flow(b"flow", now).send(bytes(size), now)
        self.world.run(0.1)
        self.check()

    def hold(self):
        """Suspend all receiving flows of the server."""
        for listener in self.server.user.listeners.values():
            listener.setup = lambda flow: flow.suspend()

    def fill(self, messages):
        """Have each client send to suspended flows; return these flows of the server."""
        self.hold()
        now = self.world.link.now
        for client in self.clients:
            flow = client.session.open_flow(b"flow", now)
            for _ in range(messages):
                flow.send(bytes(1000), now)
        self.world.run(20)
        self.check()
        return [flow for session in self.sessions for flow in session.recv_flows.values()]


def test_who_does_not_take_what_we_send_loses_the_session():
    """RFC 7016 §5: the largest session is closed, and all its memory is free again."""
    crowd = Crowd(4)
    crowd.silence()
    for session, size in zip(crowd.sessions, (60_000, 200_000, 90_000, 60_000), strict=True):
        crowd.send(session, size)
    states = [session.state for session in crowd.sessions]
    assert states == [State.OPEN, State.CLOSED, State.OPEN, State.OPEN]
    assert crowd.sessions[1].reason == "it takes too much memory"
    assert crowd.budget.evicted == 1
    for session in crowd.sessions:
        session.close(crowd.world.link.now)
    crowd.world.run(100)
    assert crowd.endpoint.sessions == [] and crowd.budget.used == 0


def test_windows_shrink_as_memory_is_used_up():
    """Covers RFC 7016 §3.6.3.5 [window]: a client that obeys them keeps its session."""
    crowd = Crowd(8)
    flows = crowd.fill(100)
    assert len(flows) == 8
    assert LIMIT / 2 < crowd.budget.used < LIMIT
    assert all(flow.blocks_available < flow.capacity // 4096 for flow in flows)
    assert crowd.budget.evicted == 0
    for flow in flows:
        flow.resume(crowd.world.link.now)
    crowd.world.run(120)
    heard = [each.receivers[b"flow"].messages for each in crowd.server.user.listeners.values()]
    assert heard == [[bytes(1000)] * 100] * 8
    crowd.check()
    assert {flow.blocks_available for flow in flows} == {1024}


def test_nobody_new_is_let_in_when_it_is_tight():
    """Covers RFC 7016 §5 [resources-bounded]: a new client is answered when there is room again."""
    crowd = Crowd(4)
    weather = crowd.world.link.weather
    crowd.silence()
    for session in crowd.sessions:
        crowd.send(session, 62_500)
    assert crowd.budget.is_tight and not crowd.budget.is_over
    crowd.world.link.weather = lambda data, source, to: (
        () if any(each.address in (source, to) for each in crowd.sessions) else (0.02,)
    )
    late = crowd.join(7)
    assert late.opening.state is OpeningState.IHELLO_SENT
    assert crowd.endpoint.ignored["load"] > 0
    crowd.world.link.weather = weather
    crowd.world.run(20)
    assert late.opening.state is OpeningState.OPEN


def test_one_host_alone_keeps_nobody_out():
    """Covers RFC 7016 §5 [resources-bounded]: it loses what is more than its share."""
    crowd = Crowd(1)
    weather = crowd.world.link.weather
    address = crowd.sessions[0].address
    for port in range(1, 8):
        client = crowd.world.join((address[0], port), b"greedy %d" % port)
        crowd.world.connect(client, b"server", SERVER)
    crowd.world.run(2.0)
    crowd.silence()
    for session in crowd.sessions:
        crowd.send(session, 35_000)
        crowd.world.run(LOOK_SECONDS)
    assert not crowd.budget.is_tight
    crowd.world.link.weather = weather
    assert crowd.join(9).opening.state is OpeningState.OPEN


def test_a_keying_that_comes_late_is_not_let_in_either():
    """Covers RFC 7016 §5 [resources-bounded]."""
    crowd = Crowd(1)
    late = crowd.world.join(("198.51.100.9", 1), b"late")
    crowd.world.connect(late, b"server", SERVER)
    crowd.world.run(0.05)  # its keying is on its way
    crowd.budget.used = LIMIT
    crowd.world.run(0.5)
    assert len(crowd.sessions) == 1 and crowd.endpoint.ignored["load"] == 1


def test_what_comes_out_of_turn_is_not_kept_when_it_is_tight():
    """Covers RFC 7016 §3.6.3.5 [window]: a client that ignores windows gains nothing."""
    crowd = Crowd(1)
    (flow,) = crowd.fill(1)
    crowd.budget.used = LIMIT * 7 // 8
    held = flow.buffered
    flow.take(50, 1, 0, bytes(1000), crowd.world.link.now)
    assert flow.buffered == held and 50 not in flow.seen


@pytest.mark.parametrize("seed", range(3))
def test_the_count_is_true_in_any_weather(seed):
    """Own design: the count equals what sessions hold, whatever happens to them."""
    random = Random(seed)
    crowd = Crowd(6, storm(random, loss=0.2, spread=0.1))
    for _ in range(60):
        session = random.choice(crowd.sessions)
        now = crowd.world.link.now
        if session.state is State.OPEN:
            session.open_flow(b"flow", now).send(bytes(random.randrange(60_000)), now)
            for client in crowd.clients[:3]:
                client.session.queue_chunk(UserData(9, random.randrange(2, 500), 1, bytes(900)))
            if random.random() < 0.05:
                session.close(now)
        crowd.world.run(random.random())
        crowd.check()
    for session in crowd.sessions:
        session.close(crowd.world.link.now)
    crowd.world.run(400)
    assert crowd.budget.used == 0


def test_endpoints_may_share_it():
    """Own design: the largest session is closed in whichever endpoint it is."""
    world, budget = World(), SessionBudget(LIMIT)
    ports = (1935, 1936)
    servers = [world.join((SERVER[0], port), b"server", budget=budget) for port in ports]
    for port in ports:
        client = world.join(("198.51.100.1", port), b"client")
        world.connect(client, b"server", (SERVER[0], port))
    world.run(2.0)
    world.link.weather = lambda *_: ()
    for server, size in zip(servers, (200_000, 150_000), strict=True):
        server.session.open_flow(b"flow", world.link.now).send(bytes(size), world.link.now)
    world.run(0.1)
    assert [server.session.state for server in servers] == [State.CLOSED, State.OPEN]
    assert budget.used == servers[1].session.memory > 0
    world.run(0.1)
    assert servers[0].endpoint.sessions == [] and budget.evicted == 1


def test_gaps_and_flows_count():
    """RFC 7016 §5: gaps and empty flows take memory, too."""
    crowd = Crowd(1)
    client = crowd.clients[0].session
    before = crowd.budget.used
    for number in range(3, 300, 2):
        client.queue_chunk(UserData(1, number, number, abandon=True))
        crowd.world.run(0.05)
    crowd.check()
    assert crowd.budget.used > before + 149 * 50


def test_flows_that_we_open_count():
    """RFC 7016 §5: they linger, and the far end can make us open them."""
    crowd = Crowd(1)
    (session,) = crowd.sessions
    before = crowd.budget.used
    now = crowd.world.link.now
    for number in range(50):
        flow = session.open_flow(b"flow %d" % number, now)
        flow.send(b"x", now)
        flow.close(now)
    crowd.world.run(5)
    crowd.check()
    assert crowd.budget.used > before + 50 * 1000
