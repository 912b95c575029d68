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
