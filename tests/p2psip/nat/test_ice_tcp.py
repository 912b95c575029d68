"""Agents of ICE by TCP, two at a time, where no UDP comes through and connections fail and end."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.nat.ice_network import Nat
from support.nat.ice_tcp_network import BOTH, TcpNetwork

from p2psip.errors import LocalError
from p2psip.nat.ice import IceAgent, IceState
from p2psip.nat.ice_candidate import (
    CandidateType,
    IceCandidate,
    TcpBase,
    TcpType,
    priority,
    tcp_preference,
)
from p2psip.nat.ice_checklist import PairState
from p2psip.nat.ice_connections import (
    GREETING_SECONDS,
    MAX_OPENING,
    MAX_STRANGERS,
    IceClose,
    IceOctets,
    IceOpen,
)
from p2psip.nat.ice_credentials import IceCredentials, IceType
from p2psip.nat.stream_framing import FrameReader, framed
from p2psip.nat.stun import StunClass, StunMessage, StunType, write_error

ACTIVE, PASSIVE = (TcpType.ACTIVE,), (TcpType.PASSIVE,)
COMPLETED, FAILED = ("COMPLETED",) * 2, ("FAILED",) * 2
NOISE = [b"", b"\0\5GET /", b"\xff\xff" + bytes(60), framed(b"\x16\xfe\xfd" + bytes(60))]


@st.composite
def networks(draw, directions=(ACTIVE, PASSIVE, BOTH), nats=True, udp=False):
    hosts = ("203.0.113.1", "203.0.113.2")
    network = TcpNetwork(
        (draw(st.sampled_from(directions)), draw(st.sampled_from(directions))),
        udp=udp and draw(st.booleans()),
        piece=draw(st.sampled_from([1, 40, 2000])),
        nats=[Nat(host) if nats and draw(st.booleans()) else None for host in hosts],
        roles=(draw(st.booleans()), draw(st.booleans())),
        delays=(0.0, draw(st.sampled_from([0.01, 0.1, 0.7]))),
        seed=draw(st.integers(0, 1 << 32)),
    )
    return network


class TwoAgents(RuleBasedStateMachine):
    """What users, networks and strangers do to two agents with connections."""

    @initialize(drawn=networks(udp=True), early=st.sampled_from([0.0, 0.1, 3.0]), data=st.data())
    def begin(self, drawn, early, data):
        self.network, self.spoken, self.count = drawn, set(), 0
        for side in drawn.sides:
            side.reach = data.draw(st.sampled_from(["open", "open", "refused", "silent"]))
            side.reflect()
        drawn.signal(delays=(early, 0.0))

    @rule(seconds=st.sampled_from([0.01, 0.1, 1.0, 7.0, 40.0]))
    def time_passes(self, seconds):
        self.network.run(seconds)

    @rule(left=st.booleans())
    def connections_end(self, left):
        (self.network.left if left else self.network.right).cut()

    @rule(left=st.booleans(), reach=st.sampled_from(["open", "refused", "silent"]))
    def the_way_changes(self, left, reach):
        (self.network.left if left else self.network.right).reach = reach

    @rule()
    def udp_comes_or_goes(self):
        self.network.is_cut = not self.network.is_cut

    @rule(left=st.booleans(), said=st.sampled_from(NOISE), count=st.sampled_from([1, 20]))
    def strangers_connect(self, left, said, count):
        for _ in range(count):
            self.network.intrude(self.network.left if left else self.network.right, said)

    @rule(left=st.booleans())
    def media_is_sent(self, left):
        side = self.network.left if left else self.network.right
        if side.agent.selected is not None:
            self.count += 1
            self.spoken.add(b"\x80%d" % self.count)
            side.speak(b"\x80%d" % self.count)

    @precondition(lambda self: self.network.states == COMPLETED)
    @rule()
    def ice_restarts(self):
        for side in self.network.sides:
            side.agent.restart(self.network.now)
            side.agent.gathered()
            side.send([])
        self.network.signal()

    @invariant()
    def all_is_bounded(self):
        """Covers RFC 6544 §12 [five-attempts-at-a-time]."""
        for side in self.network.sides:
            assert side.most <= MAX_OPENING
            assert {said for said, _, _ in side.heard} <= self.spoken
            of_strangers = [to for _, to in side.wires if to[0] == "198.51.100.66"]
            assert len(of_strangers) <= MAX_STRANGERS
            if side.agent.state is IceState.FAILED:
                assert not side.wires

    def teardown(self):
        """Covers RFC 6544 §8 [others-are-closed]."""
        self.network.run(150.0)
        assert self.network.agree(), self.network.states
        for side in self.network.sides:
            used = side.agent.selected
            assert set(side.wires) <= ({(used.base, used.remote.address)} if used else set())


TwoAgents.TestCase.settings = settings(deadline=None, max_examples=40, stateful_step_count=12)
TestTwoAgents = TwoAgents.TestCase


@given(networks((BOTH,), nats=False))
@settings(deadline=None, max_examples=15)
def test_without_udp_agents_meet_by_tcp(network):
    """Covers RFC 6544 §3 [active-with-passive], §7.2 [connections-are-accepted]."""
    network.connect()
    assert network.states == COMPLETED and network.agree()
    assert all(isinstance(agent.selected.base, TcpBase) for agent in network.agents)
    assert [len(side.wires) for side in network.sides] == [1, 1]


@pytest.mark.parametrize("directions", [(ACTIVE, ACTIVE), (PASSIVE, PASSIVE)])
def test_where_nobody_or_everybody_waits_both_fail(directions):
    """Covers RFC 6544 §6.2 [passive-pairs-are-pruned]: nobody connects, or only to nowhere."""
    network = TcpNetwork(directions)
    network.connect()
    assert network.states == FAILED and network.dialled == 0 and network.now < 41.0


@pytest.mark.parametrize("directions", [(ACTIVE, PASSIVE), (PASSIVE, ACTIVE)])
@pytest.mark.parametrize("roles", [(True, False), (False, True)])
def test_a_lost_connection_is_opened_again(directions, roles):
    """Covers RFC 6544 §11.1 [active-reopens] [reopened-is-checked] [reopened-is-triggered].

    Covers RFC 6544 §11.1 [passive-waits]: by the side that connects, in either role.
    """
    network = TcpNetwork(directions, roles=roles)
    network.connect()
    asked = network.dialled
    network.left.cut()
    for side in network.sides:
        side.speak(b"\x80 lost")
    network.run(2.0)
    assert network.dialled == asked + 1 and network.states == COMPLETED
    assert [side.heard for side in network.sides] == [[], []] and network.agree()
    for side in network.sides:
        side.reach = "refused"
    network.left.cut()
    network.run(9.0)
    assert 3 <= network.dialled - asked <= 4  # at once, and then as often as consent is due
    for side in network.sides:
        side.reach = "open"
    network.run(9.0)
    assert network.agree() and network.states == COMPLETED


def test_a_restart_keeps_its_connection_and_closes_the_old_one():
    """Covers RFC 6544 §9.2 [restart-keeps-its-connection] [old-connection-is-closed].

    Covers RFC 6544 §11.1 [selected-stays-open]: media goes on meanwhile.
    """
    network = TcpNetwork((ACTIVE, PASSIVE))
    network.connect()
    (old,) = network.left.wires
    network.intrude(network.right, b"")  # one that is not in use is closed at once
    assert len(network.right.wires) == 2
    for side in network.sides:
        side.agent.restart(network.now)
        side.agent.gathered()
        side.send([])
    assert list(network.left.wires) == [old] and len(network.right.wires) == 1
    network.left.speak(b"\x80 meanwhile")
    network.run(1.0)
    assert [said for said, _, _ in network.right.heard] == [b"\x80 meanwhile"]
    network.is_cut = False  # there is a better way now
    network.signal()
    network.run(5.0)
    assert network.states == COMPLETED and network.agree()
    assert [side.wires for side in network.sides] == [{}, {}]


def test_udp_is_preferred_where_it_works():
    """Covers RFC 6544 §4.2 [udp-before-tcp] [all-of-udp-before-tcp] [types-of-tcp-are-lower].

    Covers RFC 6544 §8 [others-are-closed].
    """
    network = TcpNetwork(udp=True, delays=(0.0, 0.01))
    network.connect()
    assert network.states == COMPLETED and network.dialled
    assert not any(isinstance(agent.selected.base, TcpBase) for agent in network.agents)
    network.run(1.0)
    assert [side.wires for side in network.sides] == [{}, {}]


def test_of_many_addresses_five_are_tried_at_a_time():
    """Covers RFC 6544 §12 [five-attempts-at-a-time], §7.1 [no-connection-fails].

    Their ends make room for others, and those who never answer are given up.
    """
    network = TcpNetwork((ACTIVE, ()))
    for port in range(1, 13):
        made = network.right.agent.add_tcp(TcpType.PASSIVE, ("192.0.2.77", port))
        network.right.candidates.append(replace(made, foundation=str(port)))
    network.connect(20.0)
    assert network.left.most == MAX_OPENING and network.dialled == 10
    network.run(40.0)
    assert network.dialled == 12 and network.left.agent.state is IceState.FAILED


def test_strangers_are_closed():
    """Covers RFC 6544 §7.2 [connections-are-accepted]: 16 may wait, for five seconds."""
    network = TcpNetwork()
    strangers = [network.intrude(network.left, said) for _ in range(10) for said in NOISE]
    assert len(network.left.wires) == MAX_STRANGERS
    network.run(1.0)
    assert 0 < len(network.left.wires) <= MAX_STRANGERS  # those that are silent
    network.run(GREETING_SECONDS)
    assert not network.left.wires and all(each.heard == [] for each in strangers)
    network.connect()
    assert network.states == COMPLETED and network.agree()


class TcpPeer:
    """What a test says as the peer of one agent, on one connection."""

    THERE = "192.0.2.2", 6000

    def __init__(self, direction=TcpType.ACTIVE, *, controlling=True):
        drawn = iter(range(1, 1 << 20))
        self.agent = IceAgent(
            lambda octets: next(drawn).to_bytes(octets, "big"), 0.0, controlling=controlling
        )
        self.ours = IceCredentials("peer", "the password of the peer")
        self.candidate = self.agent.add_tcp(direction, ("192.0.2.1", 5000))
        self.flow = TcpBase("192.0.2.1", self.candidate.port, direction), self.THERE
        self.agent.begin(self.ours, 0.0)
        if direction is TcpType.ACTIVE:
            for port in (6000, 6001):
                self.agent.add_remote(
                    IceCandidate(
                        "1", 1, "TCP", 9000 - port, "192.0.2.2", port, CandidateType.HOST,
                        more=(("tcptype", "passive"),),
                    )
                )  # fmt: skip

    def orders(self):
        return self.agent.connections.orders()

    def said(self):
        """The messages that the agent has sent."""
        octets = b"".join(e.data for e in self.orders() if isinstance(e, IceOctets))
        return [StunMessage.parse(packet) for packet in FrameReader(9000).put(octets)]

    def say(self, data, now=0.2):
        return self.agent.octets(framed(data), *self.flow, now)

    def check(self, *more):
        """A check of the peer by this connection."""
        role = IceType.ICE_CONTROLLED if self.agent.controlling else IceType.ICE_CONTROLLING
        request = self.agent.ours.check(
            "peer", bytes(12), [(IceType.PRIORITY, bytes(4)), (role, bytes(8)), *more]
        )
        return self.say(request.data)

    @property
    def pair(self):
        return self.agent._checklist.find(*self.flow)


def test_a_check_is_sent_once_in_a_frame_of_a_connection_from_its_host():
    """Covers RFC 6544 §7.1 [framed-from-the-start] [checks-are-sent-once].

    Covers RFC 6544 §10.1 [media-by-the-connection] [media-is-framed].
    Covers RFC 6544 §10.2 [media-is-unframed], §11.1 [media-once-valid].
    """
    peer = TcpPeer()
    assert peer.agent.tick(0.0) == [] and peer.orders() == [IceOpen(*peer.flow)]
    peer.agent.connected(*peer.flow)
    (request,) = peer.said()
    assert request.kind is StunClass.REQUEST and request.fingerprint_holds()
    peer.agent.connections.send_media(b"\x80early", *peer.flow)
    peer.agent.tick(1.0)
    peer.agent.tick(9.0)
    assert [e for e in peer.orders() if e[-1] == peer.THERE] == []
    assert peer.say(peer.ours.answer(request, ("192.0.2.1", 40_000))) == []
    assert peer.pair.state is PairState.SUCCEEDED
    mapped, base = peer.agent.locals[-1]
    assert (mapped.address, mapped.tcp_type, base) == (
        ("192.0.2.1", 40_000), TcpType.ACTIVE, peer.flow[0]
    )  # fmt: skip
    assert peer.say(b"\x80media") == [b"\x80media"]
    peer.agent.connections.send_media(b"\x80media", *peer.flow)
    assert peer.orders()[-1] == IceOctets(b"\0\6\x80media", *peer.flow)


def test_a_check_without_an_answer_fails_after_39_5_seconds():
    """Covers RFC 6544 §7.1 [checks-are-sent-once]."""
    peer = TcpPeer()
    peer.agent.tick(0.0)
    peer.agent.connected(*peer.flow)
    peer.agent.tick(39.4)
    assert peer.pair.state is PairState.IN_PROGRESS
    peer.orders()
    peer.agent.tick(39.6)
    assert peer.pair.state is PairState.FAILED and IceClose(*peer.flow) in peer.orders()


def test_what_answers_otherwise_is_not_the_peer():
    """Covers RFC 6544 §7.1 [other-answers-close]."""
    for said in (b"\x80RTP", b"HTTP/1.1 400", b"\0\1 neither"):
        peer = TcpPeer()
        peer.agent.tick(0.0)
        peer.agent.connected(*peer.flow)
        peer.orders()
        assert peer.say(said) == [] and peer.orders() == [IceClose(*peer.flow)]
        states = {e.remote.port: e.state for e in peer.agent._checklist.pairs}
        assert states == {6000: PairState.FAILED, 6001: PairState.FROZEN}


def test_a_connection_that_is_not_opened_fails_its_pair():
    """Covers RFC 6544 §7.1 [no-connection-fails]: refused, or without an answer."""
    refused, silent = TcpPeer(), TcpPeer()
    refused.agent.tick(0.0)
    refused.agent.disconnected(*refused.flow, 0.1)
    assert refused.pair.state is PairState.FAILED
    refused.agent.tick(0.1)
    valid = TcpPeer()
    valid.agent.tick(0.0)
    valid.agent.connected(*valid.flow)
    (request,) = valid.said()
    valid.say(valid.ours.answer(request, ("192.0.2.1", 40_000)))
    valid.agent.disconnected(*valid.flow, 0.3)  # before it was nominated
    assert valid.pair.state is PairState.FAILED
    silent.agent.tick(0.0)
    assert silent.agent.connections.deadline == 10.0
    silent.agent.tick(10.0)
    assert silent.pair.state is PairState.FAILED and IceClose(*silent.flow) in silent.orders()
    silent.agent.connected(*silent.flow)  # too late: nobody wants it
    assert silent.orders() == [IceClose(*silent.flow)]


def test_a_peer_that_connects_is_learnt_from_its_check():
    """Covers RFC 6544 §7.2 [framed-for-its-life], §11.1 [checks-come-by-any-connection].

    Covers RFC 6544 §7.2 [connections-are-accepted], §11.1 [passive-waits].
    """
    peer = TcpPeer(TcpType.PASSIVE)
    peer.agent.accepted(*peer.flow, 0.1)
    peer.check()
    (answer,) = peer.said()
    assert answer.kind is StunClass.SUCCESS
    assert tuple(answer.mapped_address()) == peer.THERE
    remote = peer.pair.remote
    assert (remote.type, remote.tcp_type) == (CandidateType.PEER_REFLEXIVE, TcpType.ACTIVE)
    peer.agent.tick(0.2)
    (request,) = peer.said()
    for piece in framed(peer.ours.answer(request, peer.flow[0][:2])):
        peer.agent.octets(bytes((piece,)), *peer.flow, 0.3)
    peer.agent.tick(0.7)
    (nominating,) = peer.said()
    assert nominating.get(IceType.USE_CANDIDATE) == b"" and peer.agent.selected is None
    peer.say(peer.ours.answer(nominating, peer.flow[0][:2]), 0.8)
    assert peer.agent.selected is peer.pair
    nobody = peer.flow[0], ("192.0.2.9", 1)
    peer.agent.connections.send(b"to one that has not connected", *nobody, 0.9)
    assert peer.orders() == []
    peer.check()  # later, too
    assert peer.said()[0].kind is StunClass.SUCCESS


def test_one_pair_is_nominated_by_a_check_of_its_own():
    """Covers RFC 6544 §8 [regular-nomination]."""
    peer = TcpPeer()
    peer.agent.tick(0.0)
    peer.agent.connected(*peer.flow)
    (request,) = peer.said()
    assert request.get(IceType.USE_CANDIDATE) is None
    peer.say(peer.ours.answer(request, ("192.0.2.1", 40_000)))
    peer.agent.tick(0.6)
    (nominating,) = peer.said()
    assert nominating.get(IceType.USE_CANDIDATE) == b""


def test_an_error_closes_the_connection_of_its_pair():
    """Own design: nothing more is to come by it."""
    peer = TcpPeer()
    peer.agent.tick(0.0)
    peer.agent.connected(*peer.flow)
    (request,) = peer.said()
    peer.say(
        StunMessage.write(
            StunClass.ERROR, 1, request.transaction_id,
            [(StunType.ERROR_CODE, write_error(400, ""))], key=peer.ours.key, fingerprint=True,
        ).data
    )  # fmt: skip
    assert peer.pair.state is PairState.FAILED and peer.orders() == [IceClose(*peer.flow)]


def test_candidates_of_tcp_are_ranked_and_written():
    """Covers RFC 6544 §4.1 [active-placeholders], §4.5 [active-has-its-address].

    Covers RFC 6544 §4.5 [active-port-is-9] [transport-is-tcp].
    Covers RFC 6544 §4.2 [same-formula] [direction-is-in-the-preference] [relays-come-last].
    """
    agent = IceAgent(bytes, 0.0, controlling=True)
    active = agent.add_tcp(TcpType.ACTIVE, ("192.0.2.1", 6000))
    passive = agent.add_tcp(TcpType.PASSIVE, ("192.0.2.1", 6000))
    assert str(active).endswith("TCP 1625292799 192.0.2.1 9 typ host tcptype active")
    assert str(passive).endswith("TCP 1621098495 192.0.2.1 6000 typ host tcptype passive")
    assert active.priority == 2**24 * 96 + 2**8 * (2**13 * 6 + 8191) + 255
    assert passive.priority == 2**24 * 96 + 2**8 * (2**13 * 4 + 8191) + 255
    udp = agent.add_local(("192.0.2.1", 6000))
    server = agent.add_local(("203.0.113.1", 9), CandidateType.SERVER_REFLEXIVE, ("192.0.2.1", 1))
    relay = agent.add_local(("203.0.113.5", 9), CandidateType.RELAYED)
    assert udp.priority > server.priority > active.priority > passive.priority > relay.priority
    assert active.foundation == passive.foundation != udp.foundation
    assert IceCandidate.parse(str(active)) == active
    types = [priority(kind, 0, is_tcp=True) >> 24 for kind in CandidateType]
    assert types == [96, 80, 70, 0]


def test_the_rest_of_a_preference_tells_addresses_apart():
    """Covers RFC 6544 §4.2 [other-preference-is-unique] [one-address-has-8191].

    Covers RFC 6544 §4.2 [directions-by-type] [directions-from-0-to-7] [others-from-0-to-8191].
    """
    agent, public = IceAgent(bytes, 0.0, controlling=True), CandidateType.SERVER_REFLEXIVE
    made = [agent.add_tcp(TcpType.PASSIVE, (f"192.0.2.{n}", 6000)) for n in (1, 2, 3)]
    base = "192.0.2.1", 6000
    made += [agent.add_tcp(e, ("203.0.113.1", 70), public, base) for e in ACTIVE + PASSIVE]
    preferences = [divmod(each.priority >> 8 & 0xFFFF, 1 << 13) for each in made]
    assert preferences == [(4, 8191), (4, 8190), (4, 8189), (4, 8191), (2, 8191)]
    assert made[-1].related == base and made[-2].related == ("192.0.2.1", 9)
    assert tcp_preference(CandidateType.HOST, TcpType.PASSIVE, -7) == 4 << 13
    kinds = CandidateType.HOST, CandidateType.RELAYED, public
    table = [[tcp_preference(kind, each, 0) >> 13 for each in TcpType] for kind in kinds]
    assert table == [[6, 4, 2], [6, 4, 2], [4, 2, 6]]


def test_simultaneous_open_and_unknown_directions_are_left_out():
    """Covers RFC 6544 §6.2 [passive-pairs-are-pruned]; we offer no `so`, and pair none."""
    peer = TcpPeer()
    before = len(peer.agent._checklist.pairs)
    for more in ((("tcptype", "so"),), (("tcptype", "active"),), (("tcptype", "x"),), ()):
        peer.agent.add_remote(
            IceCandidate("1", 1, "TCP", 9, "192.0.2.3", 6000, CandidateType.HOST, more=more)
        )
    assert len(peer.agent._checklist.pairs) == before
    with pytest.raises(LocalError, match="simultaneous open"):
        peer.agent.add_tcp(TcpType.SIMULTANEOUS_OPEN, ("192.0.2.1", 6000))
    waiting = TcpPeer(TcpType.PASSIVE)
    waiting.agent.accepted(*waiting.flow, 0.0)
    waiting.check()
    waiting.agent.add_tcp(TcpType.PASSIVE, ("192.0.2.9", 6000))
    assert len(waiting.agent._checklist.pairs) == 1  # the one that the peer has begun
