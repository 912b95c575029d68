"""The responder: it keeps nothing until it must, and believes nobody without proof."""

from dataclasses import replace

import pytest
from support.rtmfp.endpoints import CLIENT, SERVER, THIRD
from support.rtmfp.endpoints import LoneResponder as Lone

from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.packet import scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    ResponderHello,
    ResponderInitialKeying,
    RHelloCookieChange,
)


def test_a_hello_is_answered_where_it_came_from():
    """Covers RFC 7016 §3.5.1.1.2 [rhello-sent]."""
    lone = Lone()
    hello = lone.hello(THIRD)
    assert (hello.tag_echo, hello.responder_certificate) == (b"tag", b"server")
    ((_, to, _),) = lone.world.sent(ResponderHello)
    assert to == THIRD and not lone.endpoint.ignored
    lone.hear(InitiatorHello(b"another", b"tag"))
    assert len(lone.sent(ResponderHello)) == 1


def test_a_keying_makes_a_session_and_is_answered_with_the_default_key():
    """Covers RFC 7016 §3.5.1.1.2 [rikeying-sent] [responder-open]."""
    lone = Lone()
    lone.key()
    (session,) = lone.sessions
    assert (session.far_id, session.address) == (7, CLIENT)
    assert (session.far_certificate, session.state) == (b"client", State.OPEN)
    assert (session.near_nonce, session.far_nonce) == (b"far", b"near")
    ((_, source, to, session_id, reply),) = [
        each for each in lone.world.startup() if isinstance(each[4], ResponderInitialKeying)
    ]
    assert (source, to, session_id) == (SERVER, CLIENT, 7)
    assert (reply.responder_session_id, reply.signature) == (session.near_id, b"signed")


def test_nobody_hears_of_a_session_before_the_far_end_has_shown_the_keys():
    """Own design: a certificate is no secret, and a session costs its user much."""
    lone = Lone()
    lone.key()
    (session,) = lone.sessions
    lone.node.receive(scramble(session.near_id, b"rubbish"), CLIENT, lone.now)
    assert lone.node.user.sessions == []
    lone.prove(session)
    lone.prove(session)
    assert lone.node.user.sessions == [(session, None, lone.now)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cookie_echo": b"forged"}, "cookie"),
        ({"cookie_echo": b""}, "cookie"),
        ({"initiator_session_id": 0}, "session ID"),
        ({"initiator_certificate": b"bad"}, "certificate or signature"),
        ({"signature": b"forged"}, "certificate or signature"),
        ({"session_key_initiator_component": b"bad"}, "keying component"),
        ({"initiator_certificate": bytes(5000)}, "long field"),
        ({"session_key_initiator_component": bytes(5000)}, "long field"),
    ],
)
def test_a_bad_keying_is_ignored(change, why):
    """Covers RFC 7016 §3.5.1.1.2 [bad-cookie-ignored] [keying-authentic], §5 [resources-bounded].

    Covers RFC 7016 §3.3 [zero-is-startup].
    """
    lone = Lone()
    good = replace(lone.keying, cookie_echo=lone.hello().cookie)
    lone.world.run(1)
    lone.hear(replace(good, **change))
    lone.world.run(1)
    assert (lone.sessions, dict(lone.endpoint.ignored)) == ([], {why: 1})
    assert len(lone.world.link.sent) == 1
    lone.hear(good)
    assert len(lone.sessions) == 1


def test_what_is_just_not_too_long_is_taken():
    """Covers RFC 7016 §5 [resources-bounded]: see `StartupLimits.field_bytes`."""
    lone = Lone()
    lone.hear(InitiatorHello(b"server", bytes(4096)))
    assert not lone.endpoint.ignored
    lone = Lone()
    keying = {"initiator_certificate": bytes(4096)}
    lone.key(session_key_initiator_component=bytes(4096), **keying)
    assert len(lone.sessions) == 1


def test_a_stale_cookie_is_ignored():
    """Covers RFC 7016 §3.5.1.1.2 [bad-cookie-ignored] [cookie-lifetime]."""
    lone = Lone()
    keying = replace(lone.keying, cookie_echo=lone.hello().cookie)
    lone.world.run(95)
    lone.hear(replace(keying, initiator_certificate=b"another"), CLIENT)
    assert len(lone.sessions) == 1
    lone.world.run(26)
    lone.hear(keying, CLIENT)
    assert lone.endpoint.ignored["cookie"] == 1


def test_a_cookie_of_another_address_is_exchanged():
    """Covers RFC 7016 §3.5.1.1.2 [other-address], §3.5.1.2 [cookie-change-sent].

    Covers RFC 7016 §2.3.6 [cookie-changed].
    """
    lone = Lone()
    keying = replace(lone.keying, cookie_echo=lone.hello(CLIENT).cookie)
    lone.hear(keying, THIRD)
    assert lone.sessions == []
    ((_, _, to, session_id, change),) = [
        each for each in lone.world.startup() if isinstance(each[4], RHelloCookieChange)
    ]
    assert (to, session_id, change.old_cookie) == (THIRD, 7, keying.cookie_echo)
    lone.hear(replace(keying, cookie_echo=change.new_cookie), THIRD)
    assert [session.address for session in lone.sessions] == [THIRD]


def test_a_keying_that_comes_again_gets_the_same_answer():
    """Covers RFC 7016 §3.5.1.1.2 [retransmission-known] [retransmission-answered]."""
    lone = Lone()
    keying = lone.key()
    lone.hear(keying)
    lone.prove(lone.sessions[0])
    lone.world.run(100)
    lone.hear(keying)
    assert len(lone.sessions) == 1
    first, *others = lone.sent(ResponderInitialKeying)
    assert others == [first, first]
    assert len(lone.node.user.sessions) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"initiator_session_id": 8},
        {"initiator_certificate": b"other"},
        {"session_key_initiator_component": b"skic2"},
    ],
)
def test_what_differs_is_no_retransmission(change):
    """Covers RFC 7016 §3.5.1.1.2 [retransmission-known]: all three are the same in one."""
    lone = Lone()
    keying = lone.key()
    lone.hear(replace(keying, **change))
    assert len(set(lone.sent(ResponderInitialKeying))) == (1 + (b"other" not in change.values()))


def test_a_keying_that_comes_again_while_it_is_computed_is_computed_once():
    """Own design: Diffie-Hellman is dear, and copies are cheap."""
    lone = Lone(slow=0.2)
    keying = lone.key()
    lone.hear(keying)
    lone.hear(replace(keying, session_key_initiator_component=b"another"))
    assert len(lone.node.jobs) == lone.endpoint.keyings_in_work == 1
    assert lone.endpoint.ignored["keying in work"] == 2
    lone.world.run(1)
    assert len(lone.sessions) == 1
    assert lone.endpoint.keyings_in_work == 0


def test_a_keying_of_a_session_that_is_closing_is_not_begun_again():
    """Own design: an old packet is no new wish."""
    lone = Lone()
    keying = lone.key()
    lone.sessions[0].close(lone.now)
    lone.hear(keying)
    assert len(lone.sessions) == len(lone.sent(ResponderInitialKeying)) == 1


def test_another_identity_does_not_end_a_session():
    """Covers RFC 7016 §3.5.1.1.2 [no-override-ignored]."""
    lone = Lone()
    lone.key()
    lone.world.run(1)
    lone.key(initiator_certificate=b"intruder")
    assert [session.far_certificate for session in lone.sessions] == [b"client"]
    assert lone.endpoint.ignored["another session there"] == 1
    lone.key(THIRD, initiator_certificate=b"intruder")
    assert len(lone.sessions) == 2


def test_the_same_identity_that_begins_anew_ends_its_former_session():
    """Covers RFC 7016 §3.5.1.1.2 [override-closes]."""
    lone = Lone()
    lone.key()
    (old,) = lone.sessions
    lone.prove(old)
    flow = old.open_flow(b"flow", lone.now)
    lone.world.run(1)
    lone.key(initiator_session_id=8, session_key_initiator_component=b"new")
    (new,) = lone.sessions
    assert (old.state, new.far_id) == (State.CLOSED, 8)
    assert lone.node.user.listeners[old].closed == [(lone.now, "the far end has begun anew")]
    assert flow.flow_id not in old.send_flows
    lone.prove(new)
    assert [session for session, _, _ in lone.node.user.sessions] == [old, new]


def test_a_recorded_keying_does_not_end_a_later_session():
    """Own design: its cookie is older than the session it would end."""
    lone = Lone()
    recorded = lone.key()
    lone.world.run(1)
    lone.key(initiator_session_id=8, session_key_initiator_component=b"new")
    lone.world.run(1)
    lone.hear(recorded)
    assert [session.far_id for session in lone.sessions] == [8]
    assert lone.endpoint.ignored["replay"] == 1


def test_what_has_happened_while_a_key_was_computed_counts():
    """Covers RFC 7016 §3.5.1.3 [near-prevails]: an opening begun meanwhile is glare too."""
    lone = Lone(slow=0.2)
    lone.key(initiator_certificate=b"zzz")
    opening = lone.world.connect(lone.node, b"zzz", CLIENT)
    lone.world.run(1)
    assert lone.sessions == []
    assert lone.endpoint.ignored["glare"] == 1
    assert opening.state is OpeningState.IHELLO_SENT


def test_keyings_in_work_are_limited():
    """Covers RFC 7016 §5 [resources-bounded]."""
    lone = Lone(slow=0.2, limits=StartupLimits(keyings=3))
    for port in range(5):
        lone.key((CLIENT[0], 40_000 + port))
    assert len(lone.node.jobs) == lone.endpoint.keyings_in_work == 3
    assert lone.endpoint.ignored["load"] == 2
    lone.world.run(1)
    assert len(lone.sessions) == 3


def test_keyings_of_a_host_are_limited():
    """Covers RFC 7016 §5 [resources-bounded]: another host is not in the way."""
    lone = Lone(limits=StartupLimits(keyings_per_second=3))
    for port in range(5):
        lone.key((CLIENT[0], 40_000 + port))
    lone.key(THIRD)
    assert len(lone.sessions) == 4
    assert lone.endpoint.ignored["keyings of a host"] == 2


def test_hellos_of_a_host_are_limited():
    """Covers RFC 7016 §5 [resources-bounded]: nobody's address can be flooded through us."""
    lone = Lone(limits=StartupLimits(hellos_per_second=10))
    for port in range(20):
        lone.hear(InitiatorHello(b"server", b"tag"), (CLIENT[0], 40_000 + port))
    for _ in range(20):
        lone.hear(InitiatorHello(b"server", b"tag"), THIRD)
    assert len(lone.sent(ResponderHello)) == 10 + 4
    assert lone.endpoint.ignored == {"hellos of a host": 20, "hellos of an address": 6}
    lone.world.run(1)
    lone.hear(InitiatorHello(b"server", b"tag"))
    assert len(lone.sent(ResponderHello)) == 15


def test_sessions_are_limited():
    """Covers RFC 7016 §5 [resources-bounded]."""
    lone = Lone(limits=StartupLimits(sessions=2))
    cookies = [lone.hello((CLIENT[0], port)).cookie for port in range(1, 4)]
    for port, cookie in enumerate(cookies, 1):
        lone.hear(replace(lone.keying, cookie_echo=cookie), (CLIENT[0], port))
    assert len(lone.sessions) == 2
    lone.hear(InitiatorHello(b"server", b"tag"))
    assert lone.endpoint.ignored == {"load": 2}


def test_sessions_of_which_nothing_is_heard_make_room_for_others():
    """Covers RFC 7016 §5 [resources-bounded]: the oldest goes first, what is proven stays."""
    lone = Lone(limits=StartupLimits(unproven=3))
    for port in range(1, 3):
        lone.key((CLIENT[0], port), initiator_session_id=port)
    lone.prove(lone.sessions[0])
    for port in range(3, 7):
        lone.key((CLIENT[0], port), initiator_session_id=port)
    assert [session.far_id for session in lone.sessions] == [1, 4, 5, 6]
    assert lone.node.user.failed == []


def test_a_session_that_somebody_here_waits_for_makes_no_room_for_strangers():
    """Own design: or a crowd of them could keep us from whom we ask for."""
    lone = Lone(limits=StartupLimits(unproven=3))
    lone.key(initiator_certificate=b"aa")
    opening = lone.world.connect(lone.node, b"aa", CLIENT)
    lone.hear(ResponderHello(opening.tag, b"cookie", b"aa"))
    for port in range(1, 5):
        lone.key((CLIENT[0], port), initiator_session_id=port)
    assert [session.far_id for session in lone.sessions] == [7, 3, 4]
    assert lone.node.user.failed == []


def test_a_user_who_wants_no_session_ends_it():
    """Own design: with a word to the far end."""
    lone = Lone()
    lone.node.user.accepts = False
    lone.key()
    (session,) = lone.sessions
    lone.prove(session)
    assert (session.state, session.reason) == (State.CLOSED, "nobody wants it")
    assert lone.sessions == []
    last = lone.world.link.sent[-1][3]
    assert unscramble(last)[0] == 7
