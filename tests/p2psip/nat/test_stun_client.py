"""A STUN request is repeated on a schedule, and only its own response ends it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, write_address, write_error
from p2psip.nat.stun_client import INTERVAL, TI, BindingClient, ClientTransaction
from p2psip.strategies.stun import addresses, messages

REQUEST = StunMessage.write(StunClass.REQUEST, BINDING, b"0123456789ab")
HOME, AWAY = ("203.0.113.7", 40000), ("203.0.113.8", 40001)


def reply(request, *attributes, kind=StunClass.SUCCESS, method=BINDING, identifier=None):
    identifier = identifier or StunMessage.parse(request).transaction_id
    return StunMessage.write(kind, method, identifier, attributes).data


def told(request, address):
    identifier = StunMessage.parse(request).transaction_id
    return reply(request, (StunType.XOR_MAPPED_ADDRESS, write_address(address, identifier)))


def counting():
    """Octets that differ each time, as those of a good source do."""
    numbers = iter(range(1, 1 << 30))
    return lambda size: next(numbers).to_bytes(size)


def test_a_request_leaves_seven_times_and_fails_after_the_last_wait():
    """Covers RFC 8489 §6.2.1 [rto-500-ms] [gap-doubles] [rc-7] [rm-16] [gives-up]."""
    asked, sent = ClientTransaction(REQUEST, now=10.0), [0.0]
    for _ in range(7):
        now = asked.deadline
        assert not asked.tick(now - 0.001)
        if asked.tick(now):
            sent.append(now - 10.0)
    assert sent == [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5] and now == 49.5
    assert asked.failed and not asked.tick(1000.0)


def test_a_response_is_known_by_class_method_and_transaction():
    """Covers RFC 8489 §6.3."""
    asked = ClientTransaction(REQUEST, now=0.0)

    def answers(**changed):
        return asked.answers(StunMessage.parse(reply(REQUEST.data, **changed)))

    assert answers() and answers(kind=StunClass.ERROR)
    assert not answers(kind=StunClass.INDICATION) and not answers(kind=StunClass.REQUEST)
    assert not answers(method=3) and not answers(identifier=bytes(12))


def test_the_address_is_asked_for_again_and_a_new_one_is_taken():
    """Covers RFC 8489 §5 [random-transaction-id] [new-id-for-new-transaction]."""
    client = BindingClient(counting(), 0.0)
    first = client.tick(0.0)
    assert client.tick(0.1) is None and client.mapped is None
    assert client.tick(0.5) == first
    assert client.receive(told(first, HOME), 0.6) and client.mapped == HOME
    assert client.deadline == 0.6 + INTERVAL and client.tick(INTERVAL) is None
    second = client.tick(client.deadline)
    assert StunMessage.parse(second).transaction_id != StunMessage.parse(first).transaction_id
    assert client.receive(told(second, AWAY), 30.0) and client.mapped == AWAY


def test_a_silent_server_is_asked_again_later_and_the_old_address_is_kept():
    """Covers RFC 8489 §6.2.1 [gives-up]."""
    client = BindingClient(counting(), 0.0)
    client.receive(told(client.tick(0.0), HOME), 0.0)
    requests = [client.tick(client.deadline) for _ in range(8)]
    assert client.silent and requests[-1] is None and len(set(requests[:-1])) == 1
    assert client.mapped == HOME
    again = client.tick(client.deadline)
    assert client.receive(told(again, AWAY), 100.0) and not client.silent


@pytest.mark.parametrize(
    "attributes",
    [
        [],
        [(0x0024, b"1234"), (StunType.XOR_MAPPED_ADDRESS, bytes(8))],
        [(StunType.ERROR_CODE, write_error(420, ""))],
        [
            (StunType.ERROR_CODE, write_error(300, "")),
            (StunType.ALTERNATE_SERVER, write_address(AWAY)),
        ],
        [(StunType.ERROR_CODE, write_error(500, ""))],
    ],
    ids=["empty", "unknown attribute", "420", "300", "500"],
)
def test_an_answer_without_an_address_ends_the_question(attributes):
    """Covers RFC 8489 §6.3.4 [redirections-are-failures] [few-resends]."""
    client = BindingClient(counting(), 0.0)
    request = client.tick(0.0)
    is_error = any(kind == StunType.ERROR_CODE for kind, _ in attributes)
    answer = reply(request, *attributes, kind=StunClass.ERROR if is_error else StunClass.SUCCESS)
    assert client.receive(answer, 0.1) and client.silent and client.mapped is None
    assert client.deadline == 0.1 + INTERVAL and client.tick(1.0) is None


def test_an_address_of_no_known_family_is_ignored():
    """Covers RFC 8489 §6.3.3 [other-families-ignored]."""
    client = BindingClient(counting(), 0.0)
    request = client.tick(0.0)
    assert not client.receive(
        reply(request, (StunType.XOR_MAPPED_ADDRESS, b"\0\3" + bytes(6))), 0.1
    )
    assert client.mapped is None and client.receive(told(request, HOME), 0.2)


@given(st.binary(max_size=64) | messages().map(lambda message: message.data))
def test_datagrams_of_other_transactions_change_nothing(data):
    """Covers RFC 8489 §6.3: who cannot see the request cannot forge its response."""
    client = BindingClient(counting(), 0.0)
    request = client.tick(0.0)
    if StunMessage.parse(request).transaction_id in data:
        return
    assert not client.receive(data, 0.1)
    assert client.mapped is None and client.deadline == 0.5


class Asking(RuleBasedStateMachine):
    """Requests and responses may be lost, late or repeated: the last answer is what is believed."""

    def __init__(self):
        super().__init__()
        self.now, self.client = 0.0, BindingClient(counting(), 0.0)
        self.sent, self.believed = [], None

    @rule()
    def wait(self):
        self.now = max(self.now, self.client.deadline)
        if data := self.client.tick(self.now):
            self.sent.append(data)

    @rule(share=st.floats(0, 0.9))
    def wait_a_little(self, share):
        """Before the deadline nothing leaves."""
        self.now += max(0.0, self.client.deadline - self.now) * share
        before = self.client.deadline
        if self.now < before:
            assert self.client.tick(self.now) is None and self.client.deadline == before

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), address=addresses)
    def answer(self, data, address):
        request = data.draw(st.sampled_from(self.sent))
        if self.client.receive(told(request, address), self.now):
            assert request == self.sent[-1]
            self.believed = address

    @invariant()
    def the_last_answer_counts(self):
        assert self.client.mapped == self.believed


TestAsking = Asking.TestCase


def test_a_request_by_tcp_is_sent_once():
    """Covers RFC 8489 §6.2.2 [once-by-tcp] [ti-39-5-s]."""
    for ti in (TI, 5.0):
        asked = ClientTransaction(REQUEST, now=10.0, ti=ti)
        assert not asked.tick(10.0 + ti - 0.1) and not asked.failed
        assert asked.deadline == 10.0 + ti and not asked.tick(10.0 + ti) and asked.failed
    assert TI == 39.5
