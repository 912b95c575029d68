"""The audio of two phones with ICE: offers, answers, restarts, and peers without ICE."""

import re

import pytest
from support.sip.audio_ends import LOOPBACK, AudioEnd, closed, converse, exchange
from support.sip.phones import FRAMES, wait_for

from p2psip.nat import ice_consent
from p2psip.nat.ice import IceState
from p2psip.net.media.ice_port import IcePlaces
from p2psip.net.media.port_pool import PortPool, PublicPorts

PUBLIC = "203.0.113.5"


class Mapped(PortPool):
    """Ports behind a router, whose address outside leads nowhere here."""

    def open(self, ip):
        return super().open(ip)._replace(public=PublicPorts(PUBLIC, 4000, 4001))


class End(AudioEnd):
    """One that is told of reports and of new addresses too."""

    def __init__(self, *, ice=True, pool=None, tcp=False):
        pool = pool or PortPool()
        super().__init__(pool, ice=IcePlaces([(LOOPBACK, pool)], tcp=tcp) if ice else None)
        self.reports, self.moved = [], []
        self.port = self.stream._transport._port
        self.stream.when_moved(lambda: self.moved.append(1))

    @property
    def agents(self):
        return [each.agent for each in self.port._components]


@pytest.fixture
def end():
    yield from closed(End)


def greet(ours, theirs):
    """Audio goes both ways, of a source that the other has not heard before."""
    wait_for(lambda: ours.stream.is_ready and theirs.stream.is_ready)
    for sender, hearer in ((ours, theirs), (theirs, ours)):
        hearer.heard.clear()
        wait_for(
            lambda sender=sender, hearer=hearer: sender.stream.send(FRAMES[0]) and hearer.heard
        )
        assert set(hearer.heard) == {FRAMES[0]}


def values(sdp, name):
    return re.findall(rf"^a={name}:(.*)\r$", sdp, re.M)


def default(sdp):
    """The default destination of a description."""
    host = re.findall(r"^c=IN IP4 (\S+)\r$", sdp, re.M)[-1]
    return host, int(re.search(r"^m=audio (\d+)", sdp, re.M)[1])


def without(*names):
    """What takes attributes out of a description."""
    return lambda sdp: re.sub(rb"(?m)^a=(%b)\b.*\r\n" % "|".join(names).encode(), b"", sdp)


ALL = without("ice-ufrag", "ice-pwd", "ice-options", "candidate", "remote-candidates")


def test_two_phones_find_a_way_and_tell_it_in_later_offers(end):
    """Covers RFC 8839 §4.3.1 [offer-has-candidates] [offer-has-credentials].

    Covers RFC 8839 §4.3.2 [answer-has-candidates] [answer-has-credentials].
    Covers RFC 8839 §4.3.4 [later-offers-tell-it], §4.4.3.1 [completed-stays].
    """
    alice, bob = end(), end()
    for said in exchange(alice, bob):
        assert [len(values(said, name)) for name in ("ice-ufrag", "ice-pwd")] == [1, 1]
        assert values(said, "ice-options") == ["ice2"]
        host, port = default(said)
        assert f" 1 UDP 2130706431 {host} {port} typ host" in values(said, "candidate")[0]
    converse(alice, bob)
    assert alice.stream.is_by_ice and bob.stream.is_by_ice
    pair, ours = alice.agents[0].selected, [agent.ours for agent in (*alice.agents, *bob.agents)]
    offer, answer = exchange(alice, bob)
    assert default(offer) == pair.local.address and default(answer) == pair.remote.address
    assert len(values(offer, "candidate")) == len(values(answer, "candidate")) == 1
    host, port = pair.remote.address
    assert values(offer, "remote-candidates") == [f"1 {host} {port}"]
    assert values(answer, "remote-candidates") == []
    assert [agent.ours for agent in (*alice.agents, *bob.agents)] == ours
    assert alice.agents[0].selected is pair
    assert {agent.state for agent in (*alice.agents, *bob.agents)} == {IceState.COMPLETED}
    converse(bob, alice)


@pytest.mark.parametrize("has_tcp", [False, True])
def test_reports_at_a_port_of_their_own_have_a_way_of_their_own(end, has_tcp):
    """Covers RFC 8839 §4.2.2 [rtcp-has-candidates], §5.2 [value-for-each].

    Covers RFC 8839 §4.4.1.2.2 [default-is-nominated] [one-candidate] [remote-candidates-are-told].
    Covers RFC 8839 §4.4.2 [no-remote-candidates-back], §5.2 [controlling-completed-alone].
    """
    alice, bob = end(tcp=has_tcp), end(tcp=has_tcp)
    said = exchange(alice, bob, in_offer=without("rtcp-mux"))
    for each in said:
        numbers = [int(value.split()[1]) for value in values(each, "candidate")]
        assert numbers == ([1, 1, 1, 2, 2, 2] if has_tcp else [1, 2])
        assert values(each, "remote-candidates") == []
    converse(alice, bob)
    agents = *alice.agents, *bob.agents
    wait_for(lambda: all(agent.state is IceState.COMPLETED for agent in agents))
    assert len({agent.selected.base for agent in agents}) == 4
    bob.stream._transport._on_rtcp = lambda compound, now: bob.reports.append(compound)
    alice.stream._transport.send_rtcp(b"\x80\xc9\x00\x01four")
    wait_for(lambda: bob.reports == [b"\x80\xc9\x00\x01four"])
    offer, answer = exchange(alice, bob)
    used = [agent.selected for agent in alice.agents]
    assert default(offer) == used[0].local.address
    told = [f"{number} {' '.join(map(str, e.remote.address))}" for number, e in enumerate(used, 1)]
    assert values(offer, "remote-candidates") == [" ".join(told)]
    assert len(values(offer, "candidate")) == len(values(answer, "candidate")) == 2
    assert values(answer, "remote-candidates") == []
    offer, _ = exchange(bob, alice)  # by the controlled one
    assert values(offer, "remote-candidates") == []


@pytest.mark.parametrize("who", ["offerer", "answerer"])
def test_a_peer_without_ice_has_plain_rtp(end, who):
    """Covers RFC 8839 §4.3.2 [no-ice-unasked] [no-attributes-unasked].

    Covers RFC 8839 §4.3.3 [unsupported-ends-ice].
    """
    ours, theirs = end(), end(ice=False)
    if who == "offerer":
        exchange(ours, theirs)
    else:
        _, answer = exchange(theirs, ours)
        assert "candidate" not in answer and "a=ice" not in answer
    converse(ours, theirs)
    assert not ours.stream.is_by_ice and ours.agents == []
    first = default(ours.stream.offer().decode())
    offer, _ = exchange(ours, theirs)
    assert default(offer) == first and "a=ice" not in offer and "candidate" not in offer
    converse(theirs, ours)


def moved(sdp):
    """The same, as a middlebox leaves it that knows nothing of ICE."""
    return re.sub(rb"(?m)^(a=candidate:\S+ 1 UDP \d+ \S+) \d+", rb"\1 9", sdp)


def test_an_offer_whose_address_was_changed_on_the_way_is_answered_without_ice(end):
    """Covers RFC 8839 §4.2.5 [mismatch-has-no-candidates] [mismatch-is-heard]."""
    alice, bob = end(), end()
    _, answer = exchange(alice, bob, in_offer=moved)
    assert "a=ice-mismatch\r" in answer and "candidate" not in answer and "ufrag" not in answer
    converse(alice, bob)
    assert not alice.stream.is_by_ice and not bob.stream.is_by_ice


def test_an_answer_whose_address_was_changed_on_the_way_ends_ice(end):
    """Covers RFC 8839 §4.3.3 [mismatch-ends-ice]."""
    alice, bob = end(), end()
    exchange(alice, bob, in_answer=moved)
    assert not alice.stream.is_by_ice and bob.stream.is_by_ice


def test_a_restart_is_by_other_credentials_and_audio_goes_on(end):
    """Covers RFC 8839 §4.4.1.1.1 [restart-changes-both], §4.4.2.1 [answer-changes-both].

    Covers RFC 8839 §4.4.3.1 [restarts-as-offered].
    Covers RFC 8839 §4.4.3.1.1 [remembers-its-pair] [lists-are-flushed].
    """
    alice, bob = end(), end()
    before = exchange(alice, bob)
    converse(alice, bob)
    pairs = [each.agents[0].selected for each in (alice, bob)]
    after = exchange(alice, bob, restarts=True)
    for old, new in zip(before, after, strict=True):
        for name in ("ice-ufrag", "ice-pwd"):
            assert values(old, name) != values(new, name)
    for each, pair in zip((alice, bob), pairs, strict=True):
        assert each.agents[0].state is IceState.RUNNING and each.agents[0].selected is pair
        assert pair not in each.agents[0]._checklist.pairs
    converse(alice, bob)
    wait_for(lambda: all(e.agents[0].state is IceState.COMPLETED for e in (alice, bob)))
    assert [each.agents[0].selected for each in (alice, bob)] != pairs
    converse(bob, alice)


def test_a_peer_that_keeps_its_credentials_has_not_restarted(end):
    """Own design: some phones answer a restart as any other offer."""
    alice, bob = end(), end()
    _, answer = exchange(alice, bob)
    converse(alice, bob)
    pair = alice.agents[0].selected
    alice.stream.offer(restarts=True)
    alice.stream.conclude(answer.encode())
    assert alice.agents[0].selected is pair and alice.agents[0].state is IceState.COMPLETED
    converse(bob, alice)


@pytest.mark.parametrize("who", ["offerer", "answerer"])
def test_a_peer_that_leaves_ice_out_has_plain_rtp_until_it_has_it_again(end, who):
    """Covers RFC 8839 §4.4.3.1 [falls-back] [next-offer-restarts]."""
    alice, bob = end(), end()
    first, _ = exchange(alice, bob)
    converse(alice, bob)
    media_server = end(ice=False)
    if who == "offerer":
        exchange(alice, media_server)
    else:
        exchange(media_server, alice)
    assert not alice.stream.is_by_ice
    greet(alice, media_server)
    again = end()
    offer, _ = exchange(alice, again)
    assert values(offer, "ice-ufrag") != values(first, "ice-ufrag")
    greet(alice, again)
    assert alice.stream.is_by_ice and alice.lost == []


@pytest.mark.parametrize("is_old", [True, False])
def test_a_peer_by_the_old_rules_is_told_the_pair_in_use(end, is_old):
    """Covers RFC 8839 §4.3.4 [tells-the-nominated]."""
    alice, bob = end(pool=Mapped()), end()
    change = without("ice-options") if is_old else bytes
    offer, _ = exchange(alice, bob, in_answer=change)
    assert default(offer) == (PUBLIC, 4000)
    assert [each.split()[7] for each in values(offer, "candidate")] == ["host", "srflx"] * 2
    converse(alice, bob)
    assert alice.moved == [1] * is_old and bob.moved == []
    offer, _ = exchange(alice, bob, in_answer=change)
    assert default(offer) == alice.agents[0].selected.base
    converse(alice, bob)
    assert alice.moved == [1] * is_old


def test_a_peer_that_has_gone_is_noticed(end, monkeypatch):
    """RFC 7675 §5.1: without consent nothing is sent, and the owner is told."""
    monkeypatch.setattr(ice_consent, "EXPIRY", 0.5)
    monkeypatch.setattr(ice_consent, "INTERVAL", 0.05)
    alice, bob = end(), end()
    exchange(alice, bob)
    converse(alice, bob)
    bob.stream.close()
    wait_for(lambda: alice.lost)
    assert alice.agents[0].state is IceState.FAILED and not alice.stream.is_ready


def test_ice_says_nowhere_and_audio_flows(end):
    """Covers RFC 8839 §4.2.5 [nowhere-is-no-mismatch]: a line of no address is no hold."""
    alice, bob = end(), end()

    def nowhere(sdp):
        sdp = re.sub(rb"(?m)^c=IN IP4 \S+", b"c=IN IP4 0.0.0.0", sdp)
        return re.sub(rb"(?m)^m=audio \d+", b"m=audio 9", sdp)

    exchange(alice, bob, in_offer=nowhere, in_answer=nowhere)
    assert not alice.stream.held and not bob.stream.held
    converse(alice, bob)


def test_the_second_callee_of_a_forked_call_takes_the_place_of_the_first(end):
    """RFC 8839 §7.3 apart: the latest answer counts, as it does without ICE."""
    alice, first, second = end(), end(), end()
    exchange(alice, first)
    converse(alice, first)
    answer = second.stream.answer(bytes(alice.stream._offered))
    second.stream.connect()
    alice.stream.conclude(answer)
    greet(alice, second)
