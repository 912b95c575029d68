"""The lite agent of ICE, asked by a peer that is full, and by strangers."""

from itertools import count

import pytest

from p2psip.nat.demultiplexing import DatagramKind, is_rtcp, kind_of
from p2psip.nat.ice_credentials import IceType
from p2psip.nat.ice_lite import CONSENT_SECONDS, MAX_SEEN, MAX_SOURCES, IceLite
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType

BROWSER, OTHER = ("192.0.2.7", 4000), ("192.0.2.7", 4001)
PASSWORD = "the password of the browser"
TRANSACTIONS = count()


def random(octets):
    return bytes(range(octets))


def check(agent, *more, name=None, key=None, fingerprint=True, kind=StunClass.REQUEST):
    """A check as a browser sends it."""
    name = f"{agent.ufrag}:theirs" if name is None else name
    attributes = [(StunType.USERNAME, name.encode()), (IceType.PRIORITY, b"\0\0\0\1"), *more]
    return StunMessage.write(
        kind, BINDING, next(TRANSACTIONS).to_bytes(12, "big"), attributes,
        key=agent.password.encode() if key is None else key, fingerprint=fingerprint,
    )  # fmt: skip


def nominate(agent):
    return check(agent, (IceType.USE_CANDIDATE, b""), (IceType.ICE_CONTROLLING, bytes(8)))


def asked(agent, source):
    """The request of ours for a source, read."""
    question = agent.question(source)
    return None if question is None else StunMessage.parse(question)


def reply(request, key=PASSWORD, kind=StunClass.SUCCESS, **changed):
    """What a browser answers to a request of ours."""
    transaction_id = changed.get("transaction_id", request.transaction_id)
    return StunMessage.write(kind, BINDING, transaction_id, key=key.encode(), fingerprint=True)


@pytest.fixture
def agent():
    agent = IceLite(random, 0.0)
    agent.theirs = "theirs", PASSWORD
    return agent


def test_a_check_is_answered_with_the_address_it_came_from(agent):
    """Covers RFC 8445 §7.3 [requests-are-authenticated] [username-of-two-values] [answers-at-once].

    Covers RFC 8445 §7.3 [responses-are-authenticated] [fingerprint-is-used].
    """
    answer = StunMessage.parse(agent.received(check(agent), BROWSER, 1.0))
    assert answer.kind is StunClass.SUCCESS and answer.mapped_address() == BROWSER
    assert answer.fingerprint_holds() and answer.integrity_holds(agent.password.encode())
    assert agent.sources == [BROWSER] and agent.remote == BROWSER


def test_strangers_get_no_answer_at_all(agent):
    """Covers RFC 8445 §7.3 [username-of-two-values] [fingerprint-is-used]."""
    strange = [
        check(agent, name="other:theirs"),
        check(agent, name=agent.ufrag),  # one value
        check(agent, name=""),
        check(agent, fingerprint=False),
        check(agent, kind=StunClass.INDICATION),
        StunMessage.write(StunClass.REQUEST, BINDING, bytes(12), fingerprint=True),
    ]
    assert [agent.received(each, OTHER, 1.0) for each in strange] == [None] * len(strange)
    assert agent.sources == [] and agent.remote is None


def test_a_wrong_password_gets_401_and_counts_for_nothing(agent):
    """Covers RFC 8445 §7.3 [requests-are-authenticated]."""
    answer = StunMessage.parse(agent.received(check(agent, key=b"guess"), OTHER, 1.0))
    assert answer.error()[0] == 401
    assert agent.sources == [] and agent.deadline == CONSENT_SECONDS


def test_an_answer_is_shorter_than_twice_what_asked_for_it(agent):
    """Own design: a forged source gains nothing, whatever the answer."""
    asked = [check(agent), check(agent, key=b"guess"), check(agent, (0x7777, b""))]
    asked.append(check(agent, (IceType.ICE_CONTROLLED, bytes(8))))
    for each in asked:
        assert len(agent.received(each, BROWSER, 1.0)) < 2 * len(each.data)


def test_an_unknown_attribute_that_must_be_understood_is_named(agent):
    """RFC 8489 §6.3.1.1."""
    answer = StunMessage.parse(agent.received(check(agent, (0x7777, b"")), BROWSER, 1.0))
    assert answer.error()[0] == 420
    assert answer.get(StunType.UNKNOWN_ATTRIBUTES) == b"\x77\x77"
    assert agent.remote is None


def test_a_peer_that_would_be_controlled_is_told_of_the_conflict(agent):
    """Covers RFC 8445 §6.1.1 [lite-is-controlled]."""
    request = check(agent, (IceType.ICE_CONTROLLED, bytes(8)), (IceType.USE_CANDIDATE, b""))
    assert StunMessage.parse(agent.received(request, BROWSER, 1.0)).error()[0] == 487
    assert agent.remote is None


def test_the_nominated_way_is_used_and_the_latest_counts(agent):
    """Covers RFC 8445 §8.2 [nomination-is-accepted]."""
    agent.received(check(agent), BROWSER, 1.0)
    agent.received(check(agent), OTHER, 1.1)
    assert agent.remote == OTHER  # nothing is nominated yet
    agent.received(nominate(agent), BROWSER, 1.2)
    agent.received(check(agent), OTHER, 1.3)
    assert agent.remote == BROWSER
    agent.received(nominate(agent), OTHER, 1.4)
    agent.answered(reply(asked(agent, OTHER)), OTHER, 1.5)
    assert agent.remote == OTHER


def test_a_peer_that_moves_is_asked_where_it_says_that_it_is(agent):
    """Own design: a check that is played back, or whose source is forged, moves nothing."""
    agent.received(nominate(agent), BROWSER, 1.0)
    assert asked(agent, BROWSER) is None
    agent.received(nominate(agent), OTHER, 2.0)
    request = asked(agent, OTHER)
    assert agent.remote == BROWSER and request.integrity_holds(PASSWORD.encode())
    assert request.get(StunType.USERNAME) == f"theirs:{agent.ufrag}".encode()
    assert request.get(IceType.ICE_CONTROLLED) is not None and request.fingerprint_holds()
    wrong = [
        (reply(request, key="guess"), OTHER),
        (reply(request, transaction_id=b"a" * 12), OTHER),
        (reply(request, kind=StunClass.ERROR), OTHER),
        (reply(request), ("203.0.113.9", 9)),
    ]
    for answer, source in wrong:
        agent.answered(answer, source, 2.1)
    assert agent.remote == BROWSER
    agent.answered(reply(request), OTHER, 2.1)
    assert agent.remote == OTHER and asked(agent, OTHER) is None


def test_a_peer_whose_nat_forgets_is_asked_where_its_checks_come_from(agent):
    """Own design: it does not know, nominates nothing, and only its old address is silent."""
    agent.received(nominate(agent), BROWSER, 1.0)
    agent.received(check(agent), OTHER, 2.0)
    agent.received(check(agent), BROWSER, 5.0)
    agent.received(check(agent), OTHER, 12.9)
    assert agent.question(OTHER) is None
    agent.received(check(agent), OTHER, 13.1)
    assert agent.remote == BROWSER
    agent.answered(reply(asked(agent, OTHER)), OTHER, 13.2)
    assert agent.remote == OTHER


def test_each_move_is_asked_for_by_another_transaction(agent):
    drawn = count(1)
    agent._random = lambda octets: next(drawn).to_bytes(octets, "big")
    ids = []
    agent.received(nominate(agent), BROWSER, 1.0)
    for now, source in enumerate((OTHER, BROWSER, OTHER), 2):
        agent.received(nominate(agent), source, now)
        ids.append(asked(agent, source).transaction_id)
        agent.answered(reply(asked(agent, source)), source, now)
        assert agent.remote == source
    assert len(set(ids)) == 3


def test_a_check_counts_from_one_address_alone(agent):
    """Own design: from another it is a replay; from the same it was sent again and is answered."""
    seen = nominate(agent)
    agent.received(seen, BROWSER, 1.0)
    assert agent.received(seen, BROWSER, 2.0) is not None
    assert agent.received(seen, OTHER, 3.0) is None
    assert agent.sources == [BROWSER] and agent.question(OTHER) is None
    assert agent.deadline == 31.0  # a check that is sent again gives no new consent


def test_a_browser_that_is_known_stays_until_it_answers_elsewhere(agent):
    """Own design: DTLS has settled where it is, though it has nominated nothing."""
    agent.received(check(agent), BROWSER, 1.0)
    agent.settle()
    agent.received(check(agent), OTHER, 1.1)
    assert agent.remote == BROWSER and agent.question(OTHER) is None
    agent.received(nominate(agent), OTHER, 1.2)
    assert agent.remote == BROWSER and agent.question(OTHER) is not None


def test_a_restart_does_not_let_a_peer_move_unasked(agent):
    """Covers RFC 9725 §4.3.3 [restart-keeps-the-rest]: media stays where the browser is known."""
    agent.received(nominate(agent), BROWSER, 1.0)
    new = agent.restarted(("new", PASSWORD), lambda octets: bytes(reversed(range(octets))), 2.0)
    assert new.sources == [BROWSER]  # what comes from there is still this browser's
    new.received(nominate(new), OTHER, 3.0)
    assert new.remote == BROWSER
    request = asked(new, OTHER)
    assert request.get(StunType.USERNAME) == f"new:{new.ufrag}".encode()
    new.answered(reply(request), OTHER, 3.1)
    assert new.remote == OTHER


def test_without_the_password_of_the_peer_nobody_moves(agent):
    agent.theirs = None
    agent.received(nominate(agent), BROWSER, 1.0)
    agent.received(nominate(agent), OTHER, 2.0)
    agent.answered(reply(check(agent)), OTHER, 2.0)
    assert agent.question(OTHER) is None and agent.remote == BROWSER


def test_what_is_remembered_of_a_peer_has_an_end(agent):
    """Own design: transactions, sources and questions, the source in use excepted."""
    agent.received(nominate(agent), BROWSER, 1.0)
    for port in range(MAX_SEEN + 9):
        agent.received(nominate(agent), ("192.0.2.7", 5000 + port), 2.0)
    assert len(agent._seen) == MAX_SEEN
    assert len(agent.sources) == MAX_SOURCES and len(agent._asked) < MAX_SOURCES
    assert agent.remote == BROWSER and BROWSER in agent.sources


def test_no_more_than_some_addresses_of_one_peer_are_kept(agent):
    """Own design: the latest are those that count."""
    for port in range(MAX_SOURCES + 3):  # none is nominated, so that the latest is in use
        agent.received(check(agent), ("192.0.2.7", port), 1.0)
    assert agent.sources == [("192.0.2.7", port) for port in range(3, MAX_SOURCES + 3)]


def test_a_peer_that_checks_no_more_has_gone(agent):
    """Covers RFC 7675 §5.1 [consent-ends-after-30-s]."""
    agent.received(check(agent), BROWSER, 5.0)
    assert agent.deadline == 35.0
    agent.received(check(agent, key=b"guess"), BROWSER, 20.0)
    assert agent.deadline == 35.0


def test_user_name_and_password_are_drawn_and_long_enough():
    """Covers RFC 8445 §5.3 [credentials-are-random].

    Covers RFC 8839 §5.4 [drawn-at-the-beginning] [ufrag-of-32-at-most].
    """
    drawn = []
    agent = IceLite(lambda octets: drawn.append(octets) or bytes(octets), 0.0)
    assert drawn[0] * 8 >= 24 and drawn[1] * 8 >= 128
    assert 4 <= len(agent.ufrag) <= 32 and 22 <= len(agent.password) <= 256
    assert IceLite(random, 0.0).ufrag != agent.ufrag


def test_the_first_octet_tells_what_a_datagram_is():
    """Covers RFC 7983 §7 [others-are-dropped]: at each border of a range."""
    kinds = {0: "STUN", 3: "STUN", 4: None, 16: None, 19: None, 20: "DTLS", 63: "DTLS", 64: None,
             79: None, 127: None, 128: "RTP", 191: "RTP", 192: None, 255: None}  # fmt: skip
    assert {first: kind_of(bytes((first, 0))) for first in kinds} == {
        first: None if kind is None else DatagramKind[kind] for first, kind in kinds.items()
    }
    assert kind_of(b"") is None


def test_rtcp_is_told_from_rtp_by_its_second_octet():
    """Covers RFC 5761 §4 [told-by-the-second-octet]."""
    assert [is_rtcp(bytes((0x80, second))) for second in (96, 111, 191, 192, 200, 206, 223, 224)] \
        == [False, False, False, True, True, True, True, False]  # fmt: skip
    assert not is_rtcp(b"\x80")


def test_an_address_whose_connection_has_ended_is_forgotten(agent):
    """Own design: the next check tells where the peer is, also after a handshake."""
    agent.received(nominate(agent), BROWSER, 1.0)
    agent.settle()
    agent.received(check(agent), OTHER, 1.1)
    agent.lost(OTHER)
    agent.lost(OTHER)
    assert agent.sources == [BROWSER] and agent.remote == BROWSER
    agent.lost(BROWSER)
    assert agent.sources == [] and agent.remote is None
    agent.received(check(agent), OTHER, 1.2)
    assert agent.remote == OTHER
