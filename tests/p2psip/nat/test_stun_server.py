"""A SIP port tells whoever asks by STUN which address it sees."""

import pytest
from hypothesis import given

from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, is_stun
from p2psip.nat.stun_server import answer
from p2psip.strategies.stun import addresses, messages, transaction_ids


@given(transaction_ids, addresses)
def test_a_binding_request_is_told_its_source(identifier, source):
    """Covers RFC 8489 §5 [same-transaction-id], §6.3.1.1, and RFC 5626 §8 [xor-mapped]."""
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
