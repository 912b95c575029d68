"""An allocation is made, kept and used; nothing but its server and its peers is listened to."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.sip.turn_servers import RELAYED, TurnServer, indication

from p2psip.nat.long_term import LongTermCredentials
from p2psip.nat.stun import StunClass, StunMessage, StunType
from p2psip.nat.turn import TurnMethod, TurnType, channel_data, read_lifetime
from p2psip.nat.turn_client import MAX_PEERS, PERMISSION, REFRESH, Allocation, AllocationState
from p2psip.strategies.stun import messages

PEER, OTHER, STRANGER = ("192.0.2.9", 4000), ("192.0.2.9", 4002), ("192.0.2.66", 4000)


class World:
    """An allocation and its server; `pass_on` carries all that is to be sent, and the answers."""

    def __init__(self, server=None, *, password="secret"):
        self.server, self.now = server or TurnServer(), 0.0
        numbers = itertools.count(1)
        login = LongTermCredentials("ann", password)
        self.client = Allocation(login, lambda size: next(numbers).to_bytes(size), self.now)

    def pass_on(self):
        heard = []
        while out := self.client.take():
            for datagram in out:
                answer = self.server.answer(datagram)
                if answer is not None:
                    heard.append(self.client.receive(answer, self.now))
        assert heard == [None] * len(heard)  # no answer is data
        return self

    def run(self, until):
        while self.client.deadline is not None and self.client.deadline <= until:
            self.now = self.client.deadline
            self.client.tick(self.now)
            self.pass_on()
        self.now = until

    def send(self, data, peer=PEER):
        wrapped = self.client.send(data, peer, self.now)
        if wrapped is not None:
            assert self.server.answer(wrapped) is None
        return wrapped

    def methods(self):
        return [TurnMethod(request.method) for request in self.server.requests]


def test_an_address_is_asked_for_without_a_password_first():
    """Covers RFC 8656 §7.1 [requested-transport], §7.3 [families-are-checked].

    RFC 8656 §8 [refreshed-often].
    RFC 8489 §9.2.3.1 [first-request-bare], §9.2.5 [copies-realm] [copies-nonce],
    §9.2.3.2 [cached-values] [signs-again].
    """
    world = World().pass_on()
    first, second = world.server.requests
    assert first.get(StunType.USERNAME) is None and first.get(StunType.MESSAGE_INTEGRITY) is None
    assert first.get(TurnType.REQUESTED_TRANSPORT) == b"\x11\0\0\0"
    kinds = [kind for kind, _ in second.attributes]
    assert kinds.count(TurnType.REQUESTED_ADDRESS_FAMILY) == 1
    assert second.text(StunType.REALM) == "example.org" and second.get(StunType.NONCE) == b"n1"
    assert second.text(StunType.USERNAME) == "ann" and second.get(StunType.MESSAGE_INTEGRITY)
    assert world.client.relayed == RELAYED and world.client.state is AllocationState.READY
    world.run(REFRESH)
    third = world.server.requests[-1]
    assert third.method == TurnMethod.REFRESH and third.get(StunType.NONCE) == b"n1"
    assert third.integrity_holds(world.server.login().key)


def test_an_ipv6_socket_gets_an_ipv6_address():
    """Covers RFC 8656 §7.1 [one-family]."""
    client = Allocation(LongTermCredentials("ann", "secret"), bytes, 0.0, ipv6=True)
    [request] = client.take()
    assert StunMessage.parse(request).get(TurnType.REQUESTED_ADDRESS_FAMILY) == b"\2\0\0\0"


def test_a_packet_waits_for_a_permission_and_soon_has_a_channel():
    """Covers RFC 8656 §10.1 [at-least-one-peer], §11.1 [needs-permission] [peer-and-data].

    §12 [number-stays] [prepared-at-once].
    """
    world = World().pass_on()
    assert world.send(b"0") is None
    world.client.permit([PEER[0], PEER[0]], world.now)
    world.client.permit([PEER[0]], world.now)
    assert world.send(b"0") is None  # the server has not consented
    world.pass_on()
    assert world.methods().count(TurnMethod.CREATE_PERMISSION) == 1
    assert StunMessage.parse(world.send(b"1")).kind is StunClass.INDICATION
    assert world.client.receive(channel_data(0x4000, b"at once"), 0.0) == (b"at once", PEER)
    assert StunMessage.parse(world.send(b"2")).kind is StunClass.INDICATION
    world.pass_on()
    assert world.methods().count(TurnMethod.CHANNEL_BIND) == 1
    assert world.send(b"3") == channel_data(0x4000, b"3")
    world.send(b"4", OTHER)
    world.pass_on()
    assert world.send(b"5", OTHER) == channel_data(0x4001, b"5")
    assert world.server.sent == [
        (b"1", PEER), (b"2", PEER), (b"3", PEER), (b"4", OTHER), (b"5", OTHER)
    ]  # fmt: skip


def test_only_permitted_peers_are_heard():
    """Covers RFC 8656 §11.4 [only-permitted-peers], §12.6 [needs-permission]."""
    world = World().pass_on()
    client = world.client
    client.permit([PEER[0]], 0.0)
    world.pass_on()
    assert client.receive(indication(PEER, b"x"), 0.0) == (b"x", PEER)
    assert client.receive(indication(OTHER, b"x"), 0.0) == (b"x", OTHER)
    assert client.receive(indication(STRANGER, b"x"), 0.0) is None
    assert client.receive(channel_data(0x4000, b"x"), 0.0) is None  # bound to nobody
    world.send(b"bind")
    assert client.receive(channel_data(0x4000, b"x"), 0.0) == (b"x", PEER)
    assert (
        client.receive(StunMessage.write(StunClass.INDICATION, TurnMethod.SEND, bytes(12)).data, 0)
        is None
    )
    assert (
        client.receive(StunMessage.write(StunClass.INDICATION, TurnMethod.DATA, bytes(12)).data, 0)
        is None
    )


def test_permissions_and_channels_are_renewed_before_they_expire():
    """Covers RFC 8656 §9 [five-minutes]."""
    world = World().pass_on()
    world.client.permit([PEER[0]], 0.0)
    world.pass_on()
    world.send(b"x")
    world.pass_on()
    world.run(2 * PERMISSION + 1)
    assert PERMISSION < 300
    assert world.methods().count(TurnMethod.CREATE_PERMISSION) == 3
    assert world.methods().count(TurnMethod.CHANNEL_BIND) == 3
    assert world.client.state is AllocationState.READY and not world.client.trouble


def test_a_short_lifetime_is_refreshed_in_time():
    """Covers RFC 8656 §8 [refreshed-in-time]."""
    server = TurnServer()
    server.lifetime = 10
    world = World(server).pass_on()
    world.run(21.0)
    assert world.methods().count(TurnMethod.REFRESH) == 4


def test_a_stale_nonce_is_replaced_also_for_two_requests_at_once():
    """Covers RFC 8489 §9.2.5 [stale-nonce-is-replaced]."""
    world = World().pass_on()
    world.server.nonce = b"n2"
    world.client.permit([PEER[0]], REFRESH)
    world.client.tick(REFRESH)
    world.pass_on()
    assert world.client.state is AllocationState.READY
    assert (
        world.server.requests[-1].get(StunType.NONCE) == b"n2" and PEER[0] in world.server.permitted
    )


def test_a_server_that_challenges_without_end_is_left():
    world = World()
    nonces = itertools.count()
    for _ in range(20):
        world.server.nonce = b"n%d" % next(nonces)
        for datagram in world.client.take():
            answer = StunMessage.parse(world.server.answer(datagram))
            world.client.receive(answer.data, 0.0)
    assert world.client.state is AllocationState.FAILED
    assert len(world.server.requests) <= 5


def test_a_wrong_password_is_the_end():
    """Covers RFC 8489 §9.2.5 [same-credentials-once] and RFC 8656 §7.4 [hopeless-401].

    Covers RFC 8489 §9.2.5 [stale-nonce-is-replaced]: and not the nonce that was used.
    """
    world = World(password="wrong").pass_on()
    assert world.client.state is AllocationState.FAILED and world.client.is_hopeless
    assert "401" in world.client.error and len(world.server.requests) == 2


@pytest.mark.parametrize(
    ("code", "hopeless"),
    [
        (400, True),
        (440, True),
        (403, True),
        (437, False),
        (441, True),
        (442, True),
        (486, False),
        (508, False),
        (300, False),
    ],
)
def test_a_refused_allocation_tells_whether_to_try_again(code, hopeless):
    """Covers RFC 8656 §7.4 [hopeless-400] [hopeless-403] [hopeless-441] [hopeless-442].

    And §7.4 [440-is-final].
    """
    server = TurnServer()
    server.refusals[TurnMethod.ALLOCATE] = [code]
    client = World(server).pass_on().client
    assert client.state is AllocationState.FAILED and client.is_hopeless is hopeless
    assert client.is_taken is (code == 437)
    assert str(code) in client.error and client.deadline is None and client.take() == []


@pytest.mark.parametrize("method", [TurnMethod.REFRESH, TurnMethod.CREATE_PERMISSION])
def test_an_address_that_the_server_has_lost_is_lost(method):
    """Covers RFC 8656 §5 [437-means-gone]."""
    world = World().pass_on()
    world.server.is_up = False
    if method is TurnMethod.CREATE_PERMISSION:
        world.client.permit([PEER[0]], 0.0)
        world.pass_on()
    world.run(REFRESH)
    assert world.client.state is AllocationState.FAILED and "437" in world.client.error
    assert world.client.relayed is None and world.send(b"x") is None
    assert not world.client.is_taken


def test_a_peer_that_may_not_be_reached_is_told_of():
    world = World().pass_on()
    world.server.refusals[TurnMethod.CREATE_PERMISSION] = [403]
    world.client.permit([PEER[0]], 0.0)
    world.pass_on()
    assert world.client.trouble == "403 no" and world.send(b"x") is None
    assert world.client.state is AllocationState.READY


def test_a_channel_that_is_not_renewed_is_done_without():
    world = World().pass_on()
    world.client.permit([PEER[0]], 0.0)
    world.pass_on()
    world.send(b"first"), world.pass_on()
    assert world.send(b"second") == channel_data(0x4000, b"second")
    world.server.refusals[TurnMethod.CHANNEL_BIND] = [400]
    world.run(PERMISSION)
    world.server.channels.clear()
    assert world.client.trouble == "400 no" and world.client.state is AllocationState.READY
    assert StunMessage.parse(world.send(b"third")).method == TurnMethod.SEND
    assert world.server.sent[-1] == (b"third", PEER)
    world.run(2 * PERMISSION)
    assert world.methods().count(TurnMethod.CHANNEL_BIND) == 2
    assert world.client.receive(channel_data(0x4000, b"late"), world.now) == (b"late", PEER)


def test_a_permission_that_is_not_renewed_is_gone_for_that_host_alone():
    """Covers RFC 8656 §11.1 [needs-permission]."""
    world, far = World().pass_on(), ("192.0.2.77", 4000)
    world.client.permit([far[0], PEER[0]], 0.0)
    world.pass_on()
    world.server.refusals[TurnMethod.CREATE_PERMISSION] = [403, 403]  # for both, then for the first
    world.run(PERMISSION)
    assert not world.client.permits(far[0]) and world.send(b"x", far) is None
    assert world.client.permits(PEER[0]) and world.send(b"x") is not None
    world.run(2 * PERMISSION)
    assert world.client.permits(far[0])  # asked for again with the others


@pytest.mark.parametrize("at_once", [True, False])
def test_an_address_without_any_time_left_is_over(at_once):
    server = TurnServer()
    server.lifetime = 0 if at_once else 600
    world = World(server).pass_on()
    server.lifetime = 0
    world.run(REFRESH + 1.0)
    assert world.client.state is AllocationState.FAILED and not world.client.is_hopeless
    assert world.client.relayed is None and world.client.deadline is None
    assert world.methods().count(TurnMethod.REFRESH) == (not at_once)


def test_a_server_that_is_silent_is_given_up():
    """Covers RFC 8489 §6.2.1 [gives-up]."""
    world = World().pass_on()
    world.server.answer = lambda datagram: None
    world.run(200.0)
    assert world.client.state is AllocationState.FAILED and "not answer" in world.client.error


def test_answers_that_are_not_signed_are_told_from_silence():
    """Covers RFC 8489 §9.2.5 [violation-is-told]."""
    world = World().pass_on()
    reply = world.server.reply
    world.server.reply = lambda *rest, **more: reply(*rest, key=b"guess")
    world.run(200.0)
    assert world.client.state is AllocationState.FAILED and "sign" in world.client.error


def test_a_closed_address_is_given_back():
    """Covers RFC 8656 §8 [deleted-when-done]."""
    world = World().pass_on()
    world.client.close(0.0)
    world.client.close(0.0)
    world.pass_on()
    assert not world.server.is_up and world.client.deadline is None
    assert read_lifetime(world.server.requests[-1].get(TurnType.LIFETIME)) == 0


@pytest.mark.parametrize("forged", ["key", "unsigned", "identifier", "method"])
def test_forged_answers_are_dropped(forged):
    """Covers RFC 8489 §9.2.5 [unsigned-is-discarded] and §6.3."""
    world = World()
    world.client.receive(world.server.answer(world.client.take()[0]), 0.0)
    [datagram] = world.client.take()
    request = StunMessage.parse(datagram)
    right = StunMessage.parse(world.server.answer(datagram))
    listed = [each for each in right.attributes if each.type != StunType.MESSAGE_INTEGRITY]
    key = (
        None if forged == "unsigned" else b"guess" if forged == "key" else world.server.login().key
    )
    identifier = bytes(12) if forged == "identifier" else request.transaction_id
    method = TurnMethod.REFRESH if forged == "method" else request.method
    answer = StunMessage.write(StunClass.SUCCESS, method, identifier, listed, key=key)
    assert world.client.receive(answer.data, 0.0) is None
    assert world.client.relayed is None and world.client.state is AllocationState.ASKING
    assert world.client.receive(right.data, 0.0) is None and world.client.relayed == RELAYED


@given(st.binary(max_size=80) | messages().map(lambda message: message.data))
def test_no_datagram_breaks_it_or_is_heard_without_permission(datagram):
    world = World().pass_on()
    assert world.client.receive(datagram, 0.0) is None
    assert world.client.state is AllocationState.READY and world.client.relayed == RELAYED


class Relaying(RuleBasedStateMachine):
    """Whatever is lost or late: what is sent goes to that peer, and what is heard was permitted."""

    def __init__(self):
        super().__init__()
        self.world, self.late, self.wanted = World(), [], set()

    @rule(lost=st.booleans())
    def carry(self, lost):
        for datagram in self.world.client.take():
            answer = self.world.server.answer(datagram)
            if answer is not None and not lost:
                self.late.append(answer)

    @rule(data=st.data())
    def hear(self, data):
        if self.late:
            answer = data.draw(st.sampled_from(self.late))
            self.world.client.receive(answer, self.world.now)

    @rule(host=st.integers(1, 2 * MAX_PEERS))
    def permit(self, host):
        self.wanted.add(f"192.0.2.{host}")
        self.world.client.permit([f"192.0.2.{host}"], self.world.now)

    @rule(host=st.integers(1, 2 * MAX_PEERS), port=st.integers(1, 3))
    def send(self, host, port):
        before = len(self.world.server.sent)
        if self.world.send(b"sound", (f"192.0.2.{host}", port)) is not None:
            sent = self.world.server.sent[before:]
            assert sent == [(b"sound", (f"192.0.2.{host}", port))]
            assert f"192.0.2.{host}" in self.wanted

    @rule()
    def tick(self):
        deadline = self.world.client.deadline
        if deadline is not None:
            self.world.now = max(self.world.now, deadline)
            self.world.client.tick(self.world.now)

    @invariant()
    def is_bounded(self):
        client = self.world.client
        assert len(client._permitted) <= MAX_PEERS and len(client._peers) <= MAX_PEERS


TestRelaying = Relaying.TestCase
