"""A challenge is answered once with each password, by the hash that the server wants."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sip.turn_servers import TurnServer

from p2psip.errors import RemoteError
from p2psip.nat.long_term import LongTermCredentials, features_of
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, long_term_key, write_error

MD5, SHA256, BOTH = bytes((0, 1, 0, 0)), bytes((0, 2, 0, 0)), bytes((0, 2, 0, 0, 0, 1, 0, 0))


def challenge(code, *, realm=b"example.org", nonce=b"n1", algorithms=None):
    listed = [(StunType.ERROR_CODE, write_error(code, ""))]
    listed += [(StunType.REALM, realm)] if realm else []
    listed += [(StunType.NONCE, nonce)] if nonce else []
    listed += [(StunType.PASSWORD_ALGORITHMS, algorithms)] if algorithms is not None else []
    return StunMessage.write(StunClass.ERROR, BINDING, bytes(12), listed)


def cookie(first, rest=b"xyz"):
    return b"obMatJos2" + base64.b64encode(bytes((first, 0, 0))) + rest


def test_a_challenge_is_answered_once_with_the_same_password():
    """Covers RFC 8489 §9.2.5 [retry-after-401] [same-credentials-once]."""
    user = LongTermCredentials("user1", "pass1")
    assert user.attributes == () and user.key is None
    assert user.challenged(challenge(401))
    assert dict(user.attributes) == {
        StunType.USERNAME: b"user1",
        StunType.REALM: b"example.org",
        StunType.NONCE: b"n1",
    }
    assert user.key == long_term_key("user1", "example.org", "pass1")
    assert not user.challenged(challenge(401, nonce=b"n2")), "the password is wrong"
    assert user.challenged(challenge(401, realm=b"elsewhere"))


def test_a_stale_nonce_is_replaced():
    """Covers RFC 8489 §9.2.5 [stale-nonce-is-replaced]."""
    user = LongTermCredentials("user1", "pass1")
    user.challenged(challenge(401))
    assert user.challenged(challenge(438, nonce=b"n2"))
    assert user.challenged(challenge(438, nonce=b"n3", realm=None))
    assert user.nonce == b"n3" and user.realm == "example.org"


def test_other_answers_are_no_challenge():
    user = LongTermCredentials("user1", "pass1")
    assert not user.challenged(challenge(400))
    assert not user.challenged(StunMessage.write(StunClass.SUCCESS, BINDING, bytes(12)))
    for broken in (challenge(401, nonce=None), challenge(401, realm=None)):
        with pytest.raises(RemoteError):
            user.challenged(broken)


def test_a_name_is_hashed_where_the_nonce_asks_for_that():
    """Covers RFC 8489 §9.2 [nonce-cookie], §9.2.5 [name-or-its-hash]."""
    user = LongTermCredentials("user1", "pass1")
    user.challenged(challenge(401, nonce=cookie(0x40)))
    hashed = hashlib.sha256(b"user1:example.org").digest()
    kinds = dict(user.attributes)
    assert kinds[StunType.USERHASH] == hashed and StunType.USERNAME not in kinds


def test_algorithms_are_returned_and_the_first_known_one_is_used():
    """Covers RFC 8489 §9.2.5 [returns-algorithms] [first-algorithm].

    And §9.2.5 [sha256-only-after-algorithms].
    """
    user = LongTermCredentials("user1", "pass1")
    unknown_first = bytes((0, 9, 0, 3)) + b"abc\0" + BOTH
    assert user.challenged(challenge(401, nonce=cookie(0x80), algorithms=unknown_first))
    kinds = dict(user.attributes)
    assert kinds[StunType.PASSWORD_ALGORITHMS] == unknown_first
    assert kinds[StunType.PASSWORD_ALGORITHM] == SHA256
    assert user.key == hashlib.sha256(b"user1:example.org:pass1").digest()
    assert user.digest == "sha256"
    other = LongTermCredentials("user1", "pass1")
    other.challenged(challenge(401, nonce=cookie(0x80), algorithms=MD5))
    assert other.key == long_term_key("user1", "example.org", "pass1")
    assert other.digest == "sha256"


@pytest.mark.parametrize("code", [401, 438])
def test_algorithms_that_were_taken_out_on_the_way_end_it(code):
    """Covers RFC 8489 §9.2.5 [bid-down], §9.2 [nonce-cookie]."""
    for nonce in (cookie(0x80), cookie(0xFF)):
        with pytest.raises(RemoteError):
            LongTermCredentials("a", "b").challenged(challenge(code, nonce=nonce))
    for nonce in (cookie(0), b"obMatJos2???", b"obMatJos2\xff\xff\xff\xff", b"gAAA"):
        assert LongTermCredentials("a", "b").challenged(challenge(code, nonce=nonce))


def test_algorithms_of_which_none_is_known_end_it():
    """Covers RFC 8489 §9.2.5 [no-known-algorithm]."""
    for algorithms in (b"", bytes((0, 9, 0, 0)), b"\0"):
        with pytest.raises(RemoteError):
            LongTermCredentials("a", "b").challenged(challenge(401, algorithms=algorithms))


@pytest.mark.parametrize("algorithms", [None, MD5, SHA256])
def test_an_answer_is_believed_by_the_hash_of_the_request_alone(algorithms):
    """Covers RFC 8489 §9.2.5 [unsigned-is-discarded] [sha256-only-after-algorithms]."""
    server, user = TurnServer(algorithms=algorithms), LongTermCredentials("ann", "secret")
    user.challenged(challenge(401, algorithms=algorithms))
    request = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), user.attributes)
    assert user.proves(StunMessage.parse(server.reply(request)))
    other = "sha1" if user.digest == "sha256" else "sha256"
    for key, digest in ((user.key, other), (b"guess", user.digest)):
        forged = StunMessage.write(
            StunClass.SUCCESS, BINDING, bytes(12), (), key=key, digest=digest
        )
        assert forged.integrity_holds(key) and not user.proves(forged)
    assert not user.proves(StunMessage.write(StunClass.SUCCESS, BINDING, bytes(12)))


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_challenge_is_met_or_refused(nonce, algorithms):
    user = LongTermCredentials("ann", "secret")
    try:
        user.challenged(challenge(401, nonce=nonce or b"n", algorithms=algorithms))
    except RemoteError:
        return
    assert 0 <= features_of(nonce) <= 255 and user.key


def test_the_password_is_in_no_text():
    assert "secret" not in repr(LongTermCredentials("ann", "secret"))
