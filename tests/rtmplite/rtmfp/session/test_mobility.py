"""Proofs that the far end has moved."""

import pytest

from rtmplite.rtmfp.session.mobility import SECRET_BYTES, Mobility

HERE = ("192.0.2.1", 1935)


@pytest.mark.parametrize(("secret", "moves"), [(b"a", True), (b"b", False)])
def test_a_proof_is_good_for_the_session_that_asked(secret, moves):
    """Covers RFC 7016 §3.5.4.2 [own-secret]: another secret makes another proof."""
    assert SECRET_BYTES * 8 >= 128
    question = Mobility(b"a" * SECRET_BYTES).question(HERE, 0.0)
    assert Mobility(secret * SECRET_BYTES).is_answer(question, HERE, 1.0) is moves


def test_a_new_address_is_asked_once_a_second():
    """Covers RFC 7016 §3.5.4.2 [check-new-address]."""
    checks = Mobility(b"a" * SECRET_BYTES)
    asked = [checks.question(HERE, at) is not None for at in (5.0, 5.99, 6.0, 6.5)]
    assert asked == [True, False, True, False]


def test_an_answer_is_young_and_newer_than_the_last_one():
    """Covers RFC 7016 §3.5.4.2 [answer-moves], §3.5.3 [verify-before-moving]."""
    checks = Mobility(b"a" * SECRET_BYTES)
    first, second, third = (checks.question(HERE, at) for at in (0.0, 1.0, 2.0))
    assert not checks.is_answer(first, HERE, 120.01)
    assert not checks.is_answer(second, ("192.0.2.2", 1935), 121.0)
    assert checks.is_answer(second, HERE, 121.0)
    assert not checks.is_answer(second, HERE, 121.0)
    assert not checks.is_answer(first, HERE, 3.0)
    assert checks.is_answer(third, HERE, 3.0)
