"""A SIP port tells whoever asks by STUN which address it sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, is_stun
from p2psip.nat.stun_server import answer
from p2psip.strategies.stun import addresses, messages, transaction_ids

UDP_HEADER, IPV4_HEADER, IPV6_HEADER = 8, 20, 40  # octets


@given(transaction_ids, addresses)
def test_a_binding_request_is_told_its_source(identifier, source):
    """Covers RFC 8489 §5 [same-transaction-id], §6.3.1.1, and RFC 5626 §8 [xor-mapped].

    RFC 8489 §12 [binding] [no-credentials] [fingerprint-not-needed].
    """
    request = StunMessage.write(StunClass.REQUEST, BINDING, identifier)
    response = StunMessage.parse(answer(request.data, source))
    assert (response.kind, response.method) == (StunClass.SUCCESS, BINDING)
    assert response.transaction_id == identifier and response.mapped_address() == source


def test_a_repeated_request_gets_the_same_answer():
    """Covers RFC 8489 §6.3.1 [repeats-are-equal] [only-if-idempotent]."""
    request = StunMessage.write(StunClass.REQUEST, BINDING, b"0123456789ab").data
    first, again = (answer(request, ("192.0.2.1", 5060)) for _ in range(2))
    assert first == again and first is not None


@given(messages(), addresses)
def test_an_answer_is_little_longer_than_the_question(message, source):
    """Nobody gains by a forged source; only Binding requests are answered at all."""
    said = answer(message.data, source)
    if message.kind is not StunClass.REQUEST or message.method != BINDING:
        assert said is None
    else:
        assert len(said) <= len(message.data) + 24


def test_unknown_attributes_are_named():
    """Covers RFC 8489 §6.3.1.1 [error-code] [420-names-them], §14.8 [420-names-them]."""
    listed = [(0x0024, b""), (0x7FFF, b"x"), (0x8029, b"")]
    request = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), listed)
    response = StunMessage.parse(answer(request.data, ("192.0.2.1", 5060)))
    assert response.kind is StunClass.ERROR and response.error() == (420, "")
    assert response.get(StunType.UNKNOWN_ATTRIBUTES) == b"\x00\x24\x7f\xff"


@pytest.mark.parametrize("data", [b"", b"OPTIONS sip:a SIP/2.0\r\n\r\n", bytes(20), b"\r\n\r\n"])
def test_what_is_no_stun_is_not_answered(data):
    assert not is_stun(data) and answer(data, ("192.0.2.1", 5060)) is None


@given(st.lists(st.tuples(st.integers(0, 0xFFFF), st.binary(max_size=8)), max_size=30), addresses)
def test_a_forged_source_is_sent_less_than_one_and_a_half_times_the_octets(listed, source):
    """Own design: with the headers of IP and UDP, which the attacker's packet has as well."""
    request = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), listed).data
    outer = UDP_HEADER + (IPV6_HEADER if ":" in source.host else IPV4_HEADER)
    said = answer(request, source)
    assert 2 * (outer + len(said or b"")) < 3 * (outer + len(request))


@given(messages(), addresses)
def test_an_answer_is_never_answered(message, source):
    """Own design: two servers that are told of each other by a forged source stay silent."""
    said = answer(message.data, source)
    assert said is None or answer(said, source) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: data[:-4],
        lambda data: data[:19],
        lambda data: data + b"x",
        lambda data: data * 2,
        lambda data: data[:2] + b"\xff\xfc" + data[4:],
        lambda data: data[:4] + b"\x21\x12\xa4\x43" + data[8:],
        lambda data: b"\x40" + data[1:],
        lambda data: b"\x01" + data[1:],  # a success
        lambda data: b"\x00\x11" + data[2:],  # an indication
        lambda data: b"\x00\x03" + data[2:],  # an Allocate of TURN
        lambda data: data[:22] + b"\xff\xff" + data[24:],  # an attribute beyond the end
    ],
)
def test_what_is_broken_gets_nothing(spoil):
    """Covers RFC 8489 §6.3: not even an error."""
    whole = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), [(0x8022, b"name")]).data
    assert answer(whole, ("192.0.2.1", 5060)) is not None
    assert answer(spoil(whole), ("192.0.2.1", 5060)) is None
