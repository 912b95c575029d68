"""A STUN request is repeated on a schedule; a challenge is answered once."""

import pytest

from p2psip.errors import RemoteError
from p2psip.nat.stun import BINDING, Class, Message, Type, long_term_key, write_error
from p2psip.nat.stun_client import ClientTransaction, LongTerm

REQUEST = Message.write(Class.REQUEST, BINDING, b"0123456789ab")


def reply(kind, *attributes, method=BINDING, identifier=REQUEST.transaction_id):
    return Message.write(kind, method, identifier, attributes)


def challenge(code, *, realm=b"example.org", nonce=b"n1", more=()):
    listed = [(Type.ERROR_CODE, write_error(code, ""))]
    listed += [(Type.REALM, realm)] if realm else []
    listed += [(Type.NONCE, nonce)] if nonce else []
    return reply(Class.ERROR, *listed, *more)


def test_a_request_leaves_seven_times_and_fails_after_the_last_wait():
    """Covers RFC 8489 §6.2.1."""
    asked, sent = ClientTransaction(REQUEST, now=10.0), [0.0]
    while not asked.failed:
        now = asked.deadline
        assert not asked.tick(now - 0.001)
        if asked.tick(now):
            sent.append(now - 10.0)
    assert sent == [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5] and now == 49.5
    assert not asked.tick(1000.0)


def test_over_tcp_it_leaves_once():
    """Covers RFC 8489 §6.2.2."""
    asked = ClientTransaction(REQUEST, now=0.0, reliable=True)
    assert not asked.tick(39.4) and not asked.failed
    assert not asked.tick(39.5) and asked.failed


def test_a_response_is_known_by_method_and_transaction():
    """Covers RFC 8489 §6.3."""
    asked = ClientTransaction(REQUEST, now=0.0)
    assert asked.answers(reply(Class.SUCCESS)) and asked.answers(reply(Class.ERROR))
    assert not asked.answers(reply(Class.INDICATION)) and not asked.answers(REQUEST)
    assert not asked.answers(reply(Class.SUCCESS, method=3))
    assert not asked.answers(reply(Class.SUCCESS, identifier=bytes(12)))


def test_a_challenge_is_answered_once_with_the_same_password():
    """Covers RFC 8489 §9.2.5, §9.2.3.1, §9.2.3.2."""
    user = LongTerm("user1", "pass1")
    assert user.attributes == () and user.key is None
    assert user.challenged(challenge(401))
    assert dict(user.attributes) == {
        Type.USERNAME: b"user1",
        Type.REALM: b"example.org",
        Type.NONCE: b"n1",
    }
    assert user.key == long_term_key("user1", "example.org", "pass1")
    assert not user.challenged(challenge(401, nonce=b"n2")), "the password is wrong"
    assert user.challenged(challenge(401, realm=b"elsewhere"))


def test_a_stale_nonce_is_replaced():
    """Covers RFC 8489 §9.2.5."""
    user = LongTerm("user1", "pass1")
    user.challenged(challenge(401))
    assert user.challenged(challenge(438, nonce=b"n2"))
    assert user.challenged(challenge(438, nonce=b"n3", realm=None))
    assert user.nonce == b"n3" and user.realm == "example.org"


def test_other_errors_are_no_challenge():
    user = LongTerm("user1", "pass1")
    assert not user.challenged(challenge(400)) and not user.challenged(reply(Class.SUCCESS))
    for broken in (challenge(401, nonce=None), challenge(401, realm=None)):
        with pytest.raises(RemoteError):
            user.challenged(broken)


@pytest.mark.parametrize(
    ("nonce", "more", "again"),
    [
        (b"obMatJos2gAAAxyz", (), False),
        (b"obMatJos2gAAAxyz", ((Type.PASSWORD_ALGORITHMS, bytes(4)),), True),
        (b"obMatJos2AAAAxyz", (), True),
        (b"obMatJos2???", (), True),
        (b"obMatJos2\xff\xff\xff\xff", (), True),
    ],
)
def test_algorithms_that_were_taken_out_on_the_way_end_it(nonce, more, again):
    """Covers RFC 8489 §9.2.5."""
    assert LongTerm("a", "b").challenged(challenge(401, nonce=nonce, more=more)) is again


def test_the_password_is_in_no_text():
    assert "secret" not in repr(LongTerm("ann", "secret"))
