"""The full agent of ICE, two at a time, over a network that loses, delays and translates."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.nat.ice_network import Nat, Network

from p2psip.nat.ice import MAX_REMOTES, IceAgent, IceState
from p2psip.nat.ice_candidate import CandidateType, IceCandidate
from p2psip.nat.ice_checklist import PairState
from p2psip.nat.ice_credentials import IceCredentials, IceType
from p2psip.nat.ice_lite import IceLite
from p2psip.nat.stun import StunClass, StunMessage, StunType, write_error

KINDS = st.sampled_from(["any", "host", "port"])
PUBLIC = ("203.0.113.1", "203.0.113.2")
COMPLETED, FAILED = ("COMPLETED",) * 2, ("FAILED",) * 2


@st.composite
def networks(draw, kinds=KINDS, losses=(0.0, 0.05, 0.2, 0.4)):
    return Network(
        [Nat(host, draw(kinds), draw(KINDS)) if draw(st.booleans()) else None for host in PUBLIC],
        roles=(draw(st.booleans()), draw(st.booleans())),
        loss=draw(st.sampled_from(losses)),
        delays=(0.0, draw(st.sampled_from([0.01, 0.1, 0.7]))),
        seed=draw(st.integers(0, 1 << 32)),
    )


@given(networks(), st.sampled_from([0.0, 0.1, 3.0]), st.sampled_from([0.0, 0.1, 3.0]))
@settings(deadline=None)
def test_two_agents_agree_or_both_fail(network, early, late):
    """Covers RFC 8445 §8.1.1: whatever the network, the roles, and the time of the candidates."""
    network.connect(delays=(early, late))
    if network.states != COMPLETED:
        network.run(120.0)  # one that is left alone loses the consent of the other
    assert network.agree(), network.states


@given(networks(st.just("any"), (0.0, 0.05, 0.2)))
@settings(deadline=None, max_examples=20)
def test_where_there_is_a_way_it_is_found(network):
    """A NAT that gives each socket one address lets both in, however it filters."""
    network.connect()
    assert network.states == COMPLETED and network.agree()
    assert {agent.controlling for agent in network.agents} == {True, False}


def test_where_there_is_no_way_both_say_so():
    """Covers RFC 8445 §7.2.5.2.3 [silence-fails].

    Two NATs that give each destination another port, and let none in, need a relay.
    """
    network = Network([Nat(host, "port", "port") for host in PUBLIC])
    network.connect()
    assert network.states == FAILED and network.now < 60.0


def checks(network, side):
    """What a side sends, with its time, as it goes."""
    sent, send = [], network.send

    def spied(sender, data, base, to):
        if sender is side and data[:1] < b"\x04":
            sent.append((network.now, StunMessage.parse(data), to))
        send(sender, data, base, to)

    network.send = spied
    return sent


def requests(sent):
    return [(at, m, to) for at, m, to in sent if m.kind is StunClass.REQUEST]


def test_what_a_check_says():
    """Covers RFC 8445 §7.1.1 [priority-of-a-reflexive-one].

    Covers RFC 8445 §7.1.3 [controlling-says-so] [controlled-says-so].
    Covers RFC 8445 §7.2.2 [short-term-credentials], §7.2.4 [checks-have-a-fingerprint].
    """
    network = Network()
    both = [checks(network, network.left), checks(network, network.right)]
    network.connect()
    roles = IceType.ICE_CONTROLLING, IceType.ICE_CONTROLLED
    for sent, role, ours, theirs in zip(
        both, roles, network.agents, network.agents[::-1], strict=True
    ):
        asked = requests(sent)
        assert asked
        for _, message, _ in asked:
            name = f"{theirs.ours.ufrag}:{ours.ours.ufrag}".encode()
            assert message.get(StunType.USERNAME) == name
            assert message.integrity_holds(theirs.ours.key) and message.fingerprint_holds()
            rank = int.from_bytes(message.get(IceType.PRIORITY), "big")
            assert rank == 110 << 24 | 65535 << 8 | 255
        assert len({message.get(role) for _, message, _ in asked}) == 1
        assert asked[0][1].get(role) is not None


def test_one_pair_is_nominated_by_the_controlling_side():
    """Covers RFC 8445 §8.1.1 [one-pair-is-nominated] [no-second-nomination].

    Covers RFC 8445 §7.1.2 [nominates-by-use-candidate] [controlled-never-nominates].
    """
    network = Network([Nat(PUBLIC[0]), None], loss=0.3)
    both = [checks(network, network.left), checks(network, network.right)]
    network.connect()
    network.run(20.0)
    nominated = [
        {to for _, message, to in requests(sent) if message.get(IceType.USE_CANDIDATE) is not None}
        for sent in both
    ]
    assert nominated == [{network.right.base}, set()]


def test_checks_are_paced_and_sent_again():
    """Covers RFC 8445 §14.2 [ta-50-ms], §14.3 [rto-500-ms] [rto-by-number]."""
    network = Network([None, None])
    network.is_cut = True
    hosts = [f"192.0.2.{number}" for number in range(10, 40)]
    for host in hosts:
        network.right.candidates.append(network.right.agent.add_local((host, 5000)))
    sent = checks(network, network.left)
    network.left.reflect()
    network.signal()
    network.run(70.0)
    firsts, again = {}, {}
    for at, message, _ in sent:
        if message.transaction_id not in firsts:
            firsts[message.transaction_id] = at
        else:
            again.setdefault(message.transaction_id, at)
    assert len(firsts) == 31
    assert all(b - a >= 0.0499 for a, b in pairwise(sorted(firsts.values())))
    gaps = [again[each] - at for each, at in firsts.items()]
    assert min(gaps) >= 0.5 and max(gaps) == pytest.approx(31 * 0.05)
    assert network.left.agent.state is IceState.FAILED


@pytest.mark.parametrize("roles", [(True, True), (False, False)])
def test_a_conflict_of_roles_is_repaired(roles):
    """Covers RFC 8445 §7.3.1.1 [larger-tie-breaker-controls]."""
    network = Network(roles=roles)
    ties = [int.from_bytes(agent.role.tie_breaker, "big") for agent in network.agents]
    network.connect()
    assert network.states == COMPLETED and network.agree()
    by_role = {agent.controlling: tie for agent, tie in zip(network.agents, ties, strict=True)}
    assert by_role[True] == max(ties)


class Peer:
    """What a test says as the peer of one agent, pair by pair."""

    def __init__(self, controlling=True, host="192.0.2.2"):
        drawn = iter(range(1, 1 << 20))
        self.agent = IceAgent(
            lambda octets: next(drawn).to_bytes(octets, "big"), 0.0, controlling=controlling
        )
        self.base, self.at = ("192.0.2.1", 5000), (host, 6000)
        self.agent.add_local(self.base)
        self.ours = IceCredentials("peer", "the password of the peer")
        self.agent.begin(self.ours, 0.0)

    def candidate(self, host="192.0.2.2", port=6000, foundation="1", transport="UDP"):
        return IceCandidate(foundation, 1, transport, 1000, host, port, CandidateType.HOST)

    def asked(self, now):
        """The request that is due."""
        return [(StunMessage.parse(each.data), each.to) for each in self.agent.tick(now)]

    def answer(self, request, now, *, mapped=None, source=None, key=None, code=0):
        more = [(StunType.ERROR_CODE, write_error(code, ""))] if code else []
        if code:
            message = StunMessage.write(
                StunClass.ERROR, 1, request.transaction_id, more, key=key or self.ours.key,
                fingerprint=True,
            )  # fmt: skip
        else:
            data = self.ours.answer(request, mapped or self.base)
            message = StunMessage.parse(data)
        return self.agent.received(message, self.base, source or self.at, now)

    def check(self, *more, role=IceType.ICE_CONTROLLED, source=None, tie=bytes(8), rank=7777):
        request = self.agent.ours.check(
            self.ours.ufrag, next(Peer.ids).to_bytes(12, "big"),
            [(IceType.PRIORITY, rank.to_bytes(4, "big")), (role, tie), *more],
        )  # fmt: skip
        out = self.agent.received(request, self.base, source or self.at, 0.1)
        return StunMessage.parse(out[0].data) if out else None

    ids = iter(range(1 << 40, 1 << 41))

    @property
    def pair(self):
        return self.agent._checklist.find(self.base, self.at)


def connected():
    """A controlling agent with a nominated pair."""
    peer = Peer()
    peer.agent.add_remote(peer.candidate())
    ((request, _),) = peer.asked(0.0)
    peer.answer(request, 0.1)
    ((request, _),) = peer.asked(0.2)
    assert request.get(IceType.USE_CANDIDATE) == b""
    peer.answer(request, 0.3)
    assert peer.agent.state is IceState.COMPLETED
    return peer


def test_an_answer_from_elsewhere_fails_the_pair():
    """Covers RFC 8445 §7.2.5.2.1 [addresses-are-symmetric] [asymmetric-fails]."""
    peer = Peer()
    peer.agent.add_remote(peer.candidate())
    ((request, _),) = peer.asked(0.0)
    peer.answer(request, 0.1, source=("192.0.2.9", 6000))
    assert peer.pair.state is PairState.FAILED


def test_an_error_fails_the_pair_and_a_forged_one_does_not():
    """Covers RFC 8445 §7.2.5.2.4 [errors-fail]."""
    peer = Peer()
    peer.agent.add_remote(peer.candidate())
    ((request, _),) = peer.asked(0.0)
    peer.answer(request, 0.1, code=400, key=b"guess")
    assert peer.pair.state is PairState.IN_PROGRESS
    peer.answer(request, 0.1, code=400)
    assert peer.pair.state is PairState.FAILED


@pytest.mark.parametrize("controlling", [True, False])
def test_a_487_changes_role_and_tie_breaker_and_asks_again(controlling):
    """Covers RFC 8445 §7.2.5.1 [conflict-changes-the-tie-breaker] [conflict-is-checked-anew].

    Covers RFC 8445 §7.2.5.1 [conflict-switches-to-controlling] [conflict-switches-to-controlled].
    """
    roles = [IceType.ICE_CONTROLLED, IceType.ICE_CONTROLLING]
    peer = Peer(controlling=controlling)
    peer.agent.add_remote(peer.candidate())
    ((first, _),) = peer.asked(0.0)
    peer.answer(first, 0.1, code=487)
    assert peer.agent.controlling is not controlling and peer.pair.state is PairState.WAITING
    ((second, _),) = peer.asked(0.2)
    tie = second.get(roles[not controlling])
    assert tie is not None and len(tie) == 8 and tie != first.get(roles[controlling])


@pytest.mark.parametrize(
    ("controlling", "role", "tie", "refused"),
    [
        (True, IceType.ICE_CONTROLLING, b"\xff" * 8, False),
        (True, IceType.ICE_CONTROLLING, bytes(8), True),
        (False, IceType.ICE_CONTROLLED, b"\xff" * 8, True),
        (False, IceType.ICE_CONTROLLED, bytes(8), False),
        (True, IceType.ICE_CONTROLLED, b"\xff" * 8, False),
    ],
)
def test_the_larger_tie_breaker_controls(controlling, role, tie, refused):
    """Covers RFC 8445 §7.3.1.1 [larger-tie-breaker-controls]."""
    peer = Peer(controlling)
    answer = peer.check(role=role, tie=tie)
    assert (answer.error() or (0,))[0] == (487 if refused else 0)
    same = role is (IceType.ICE_CONTROLLING if controlling else IceType.ICE_CONTROLLED)
    assert peer.agent.controlling is (controlling if refused or not same else not controlling)


def test_of_equal_tie_breakers_the_controlling_one_stays():
    """Covers RFC 8445 §7.3.1.1 [larger-tie-breaker-controls]."""
    peer = Peer()
    answer = peer.check(role=IceType.ICE_CONTROLLING, tie=peer.agent.role.tie_breaker)
    assert (answer.error() or (0,))[0] == 487 and peer.agent.controlling


def test_a_check_has_its_pair_checked_at_once():
    """Covers RFC 8445 §7.3.1.4 [in-progress-is-checked-anew] [others-are-checked]."""
    peer = Peer()
    peer.agent.add_remote(peer.candidate("192.0.2.8"))
    peer.agent.add_remote(peer.candidate())
    ((request, to),) = peer.asked(0.0)
    assert to == ("192.0.2.8", 6000)
    peer.at = to
    peer.check()  # in progress: another request is sent, and neither is repeated
    assert peer.pair.state is PairState.WAITING
    ((again, to),) = peer.asked(0.2)
    assert to == peer.at and again.transaction_id != request.transaction_id
    later = [message.transaction_id for message, _ in peer.asked(0.6) + peer.asked(0.9)]
    assert again.transaction_id in later and request.transaction_id not in later
    peer.answer(request, 1.0)  # the one that was given up may still be answered
    assert peer.pair.state is PairState.SUCCEEDED
    peer.at = ("192.0.2.2", 6000)
    peer.pair.state = PairState.FAILED
    peer.check()
    assert peer.pair.state is PairState.WAITING and peer.asked(1.1)[0][1] == peer.at


def test_a_peer_is_learnt_from_its_check():
    """RFC 8445 §7.3.1.3: with the priority of its request; the peer may say so later."""
    peer = Peer()
    assert peer.check().mapped_address() == peer.at
    assert peer.pair.remote.type is CandidateType.PEER_REFLEXIVE
    assert peer.pair.remote.priority == 7777
    peer.agent.add_remote(peer.candidate())
    assert len(peer.agent._checklist.pairs) == 1


def test_an_address_that_only_the_peer_sees_is_ours():
    """Covers RFC 8445 §7.2.5.3.1 [mapped-address-is-looked-at]."""
    peer = Peer()
    peer.agent.add_remote(peer.candidate())
    ((request, _),) = peer.asked(0.0)
    peer.answer(request, 0.1, mapped=("203.0.113.1", 4321))
    candidate, base = peer.agent.locals[-1]
    assert candidate.address == ("203.0.113.1", 4321) and base == peer.base
    assert candidate.type is CandidateType.PEER_REFLEXIVE and candidate.related == peer.base


def test_checks_that_come_before_the_answer_wait_for_it():
    """Covers RFC 8445 §7.3 [answers-at-once]."""
    peer = Peer()
    peer.agent.theirs = IceCredentials("", "")
    answer = peer.check()
    assert answer.kind is StunClass.SUCCESS and answer.fingerprint_holds()
    assert answer.integrity_holds(peer.agent.ours.key) and peer.asked(0.1) == []
    peer.agent.begin(peer.ours, 0.2)
    assert [to for _, to in peer.asked(0.2)] == [peer.at]


def test_a_nomination_without_an_answer_fails():
    """Covers RFC 8445 §7.2.5.3.4 [nomination-without-answer-fails]."""
    peer = Peer()
    peer.agent.add_remote(peer.candidate())
    ((request, _),) = peer.asked(0.0)
    peer.answer(request, 0.1)
    now = 0.2
    while peer.agent.state is IceState.RUNNING:
        peer.asked(now)
        now = peer.agent.deadline or now
    assert peer.agent.state is IceState.FAILED and now < 45.0


def test_a_nominated_pair_without_an_answer_to_us_fails():
    """Covers RFC 8445 §7.3.1.5 [the-same]."""
    peer = Peer(controlling=False)
    peer.agent.add_remote(peer.candidate())
    peer.check((IceType.USE_CANDIDATE, b""), role=IceType.ICE_CONTROLLING)
    ((request, _),) = peer.asked(0.2)
    assert peer.pair.is_asked_for
    peer.answer(request, 0.3, code=400)
    assert peer.agent.state is IceState.FAILED


def test_of_several_nominated_pairs_the_best_is_used():
    """Covers RFC 8445 §8.1.1 [best-of-several-nominated], §8.1.2 [others-are-removed]."""
    peer, other = Peer(controlling=False), ("192.0.2.9", 6000)
    for source in (peer.at, other):
        peer.check((IceType.USE_CANDIDATE, b""), role=IceType.ICE_CONTROLLING, source=source)
    for now in (0.2, 0.3):
        for request, to in peer.asked(now):
            peer.answer(request, now, source=to)
    assert peer.agent.selected.remote.address == peer.at  # of equal ones the first
    assert peer.agent._checklist.pairs == [peer.agent.selected]
    best = ("192.0.2.10", 6000)
    peer.check((IceType.USE_CANDIDATE, b""), role=IceType.ICE_CONTROLLING, source=best, rank=8888)
    for request, to in peer.asked(0.4):
        peer.answer(request, 0.4, source=to)
    assert peer.agent.selected.remote.address == best
    peer.check(role=IceType.ICE_CONTROLLING, source=("192.0.2.11", 1))
    assert peer.agent._checklist.pairs == [peer.agent.selected]


def test_the_nominated_pair_is_answered_ever_after():
    """Covers RFC 8445 §8.1.2 [the-nominated-pair-goes-on]."""
    peer = connected()
    assert peer.check().kind is StunClass.SUCCESS
    assert peer.check(source=("192.0.2.77", 1)).kind is StunClass.SUCCESS
    assert peer.agent.selected.remote.address == peer.at and peer.asked(0.6) == []


def test_consent_is_asked_for_and_ends():
    """Covers RFC 7675 §5.1 [interval-is-drawn] [interval-of-5-s] [4-s-at-least].

    Covers RFC 7675 §5.1 [new-transaction-each] [consent-ends-after-30-s].
    """
    network = Network()
    network.connect()
    sent = checks(network, network.left)
    network.run(60.0)
    times = [at for at, message, to in requests(sent)]
    gaps = [b - a for a, b in pairwise(times)]
    assert 4.0 <= min(gaps) < max(gaps) <= 6.0 and len(gaps) >= 9
    assert len({message.transaction_id for _, message, _ in requests(sent)}) == len(times)
    network.is_cut, cut = True, network.now
    network.run(23.0)
    assert network.states == COMPLETED
    network.run(8.0)
    assert network.states == FAILED and network.left.agent.selected is None
    del sent[:]
    network.is_cut = False
    network.run(60.0)
    assert sent == [] and network.now == cut + 91.0


def test_only_the_peer_gives_consent_and_takes_it_back():
    """Covers RFC 7675 §5.1 [answers-give-consent] [lost-consent-forgets-its-requests].

    RFC 7675 §5.2: 403 takes it back at once.
    """
    peer = connected()
    now = peer.agent.deadline
    ((request, to),) = peer.asked(now)
    assert to == peer.at
    for forged in (b"guess", None):
        source = None if forged else ("192.0.2.66", 6000)
        peer.answer(request, now, code=403, key=forged, source=source)
    assert peer.agent.state is IceState.COMPLETED
    while now < 29.0:
        now = peer.agent.deadline
        last = peer.asked(now) or [(request, to)]
        peer.answer(last[0][0], now + 0.01)
    assert peer.agent._consent._until == pytest.approx(now + 30.01)
    now = peer.agent.deadline
    ((request, _),) = peer.asked(now)
    peer.answer(request, now, code=403)
    assert peer.agent.state is IceState.FAILED and not peer.agent._consent._open


def test_a_restart_finds_a_way_while_the_old_one_is_used():
    """Covers RFC 8445 §9 [restart-changes-both] [restart-keeps-the-role].

    Covers RFC 7675 §5.1 [consent-goes-on-in-a-restart].
    """
    network = Network([Nat(PUBLIC[0]), None])
    network.connect()
    before = [(agent.ours, agent.controlling) for agent in network.agents]
    old = [agent.selected for agent in network.agents]
    network.left.agent.restart(network.now)
    assert network.left.agent.state is IceState.RUNNING
    assert [agent.selected for agent in network.agents] == old
    sent = checks(network, network.right)
    network.run(20.0)
    kinds = [message.kind for _, message, _ in sent]
    assert kinds.count(StunClass.SUCCESS) >= 3  # of requests for consent, with the old credentials
    network.right.agent.restart(network.now)
    network.signal()
    for agent in network.agents:
        agent.gathered()
    network.run(30.0)
    assert network.states == COMPLETED and network.agree()
    for agent, (ours, role), pair in zip(network.agents, before, old, strict=True):
        assert agent.ours.ufrag != ours.ufrag and agent.ours.password != ours.password
        assert agent.controlling is role and agent.selected is not pair


def test_names_and_what_comes_after_the_end_are_left_out():
    """Covers RFC 8839 §5.1 [names-are-ignored], RFC 8838 §14 [none-after-the-end].

    Covers RFC 8445 §6.1.2.2 [link-local-with-link-local].
    """
    peer = Peer()
    for candidate in (
        peer.candidate("2f6b3a5c-5b9d.local"),
        peer.candidate(transport="TCP"),
        peer.candidate(port=0),
        peer.candidate("2001:db8::1"),
    ):
        peer.agent.add_remote(candidate)
    assert not peer.agent._checklist.pairs
    peer.agent.add_local(("fe80::1", 5000))
    assert not peer.agent._checklist.find(("fe80::1", 5000), ("2001:db8::1", 6000))
    peer.agent.add_remote(peer.candidate("fe80::2"))
    assert peer.agent._checklist.find(("fe80::1", 5000), ("fe80::2", 6000))
    peer.agent.end_of_candidates()
    peer.agent.add_remote(peer.candidate())
    assert peer.pair is None


def test_while_candidates_may_come_a_session_runs():
    """Covers RFC 8838 §8 [runs-while-candidates-may-come]."""
    peer = Peer()
    for end in (peer.agent.gathered, peer.agent.end_of_candidates):
        peer.asked(1.0)
        assert peer.agent.state is IceState.RUNNING
        end()
    assert peer.agent.deadline <= 1.0
    peer.asked(1.0)
    assert peer.agent.state is IceState.FAILED and peer.agent.deadline is None
    never = Peer()
    never.asked(never.agent.deadline)
    assert never.agent.state is IceState.FAILED


def test_candidates_are_ranked_and_grouped():
    """Covers RFC 8445 §5.1.2.1 [priority-by-formula] [local-preferences-are-unique].

    Covers RFC 8445 §5.1.2.1 [one-address-is-65535] [peer-reflexive-before-server-reflexive].
    Covers RFC 8445 §5.1.2.2 [type-preferences].
    """
    agent = IceAgent(bytes, 0.0, controlling=True)
    host, second = agent.add_local(("192.0.2.1", 1)), agent.add_local(("192.0.2.2", 1))
    again = agent.add_local(("192.0.2.1", 2))
    reflexive, relayed = CandidateType.SERVER_REFLEXIVE, CandidateType.RELAYED
    server = agent.add_local(("203.0.113.1", 9), reflexive, ("192.0.2.1", 1))
    relay = agent.add_local(("203.0.113.5", 9), relayed)
    assert host.priority == 2**24 * 126 + 2**8 * 65535 + 255
    assert server.priority == 2**24 * 100 + 2**8 * 65535 + 255
    assert relay.priority == 2**8 * 65535 + 255
    assert host.priority > second.priority > again.priority
    assert host.foundation == again.foundation
    assert len({each.foundation for each in (host, second, server, relay)}) == 4
    assert server.related == ("192.0.2.1", 1) and host.related is None


def test_a_peer_that_sprays_is_bounded():
    """Covers RFC 8445 §6.1.2.5 [pairs-are-limited] [limit-of-100]."""
    peer = Peer()
    peer.agent._checklist._most = 10
    for port in range(1000, 1000 + 2 * MAX_REMOTES):
        peer.check(source=("192.0.2.2", port))
        peer.agent.add_remote(peer.candidate(port=port + 5000))
    assert len(peer.agent._checklist.pairs) == 10 and len(peer.agent._remotes) == MAX_REMOTES


def test_a_lite_agent_is_found_by_a_full_one():
    """By RFC 8445 §6.1.1, the lite one is controlled."""
    peer = Peer()
    lite = IceLite(lambda octets: bytes(octets), 0.0)
    peer.agent.begin(IceCredentials(lite.ufrag, lite.password), 0.0)
    peer.agent.add_remote(peer.candidate())
    for step in range(20):
        for each in peer.agent.tick(step / 10):
            answer = lite.received(StunMessage.parse(each.data), peer.base, step / 10)
            peer.agent.received(StunMessage.parse(answer), peer.base, each.to, step / 10)
    assert peer.agent.state is IceState.COMPLETED and lite.remote == peer.base
