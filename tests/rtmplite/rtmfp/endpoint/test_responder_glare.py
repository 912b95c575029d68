"""Glare: both ends open a session to each other, and one of the two comes to be."""

import pytest
from support.rtmfp.endpoints import CLIENT, SERVER, THIRD, World
from support.rtmfp.endpoints import LoneResponder as Lone

from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.wire.startup_chunks import ResponderHello


class Glare:
    """Two ends that open sessions to each other; `a` prevails."""

    def __init__(self, a=b"a", b=b"b"):
        self.world = World()
        self.a, self.b = self.world.join(SERVER, a), self.world.join(CLIENT, b)

    def open(self, after=0.0):
        self.of_a = self.world.connect(self.a, b"b", CLIENT)
        self.world.run(after)
        self.of_b = self.world.connect(self.b, b"a", SERVER)
        self.world.run(10)

    def swapped(self, after):
        self.of_b = self.world.connect(self.b, b"a", SERVER)
        self.world.run(after)
        self.of_a = self.world.connect(self.a, b"b", CLIENT)
        self.world.run(10)


@pytest.mark.parametrize("after", [0.0, 0.01, 0.03, 0.05])
@pytest.mark.parametrize("order", ["open", "swapped"])
def test_glare_leaves_one_session(after, order):
    """Covers RFC 7016 §3.5.1.3 [near-prevails] [far-prevails] [one-session].

    Whoever begins, and wherever the keyings cross: the session of the one that prevails.
    """
    glare = Glare()
    getattr(glare, order)(after)
    (a,), (b,) = glare.a.endpoint.sessions, glare.b.endpoint.sessions
    assert (a.near_id, a.far_id) == (b.far_id, b.near_id)
    users = glare.a.user, glare.b.user
    assert [opening for _, opening, _ in users[0].sessions] == [glare.of_a]
    assert [opening for _, opening, _ in users[1].sessions] == [glare.of_b]
    assert users[0].failed == users[1].failed == []
    assert (glare.of_a.state, glare.of_b.state) == (OpeningState.OPEN, OpeningState.CLOSED)
    assert glare.a.endpoint.ignored.keys() <= {"glare", "session ID"}


def test_glare_with_another_identity_than_the_one_asked_for():
    """Covers RFC 7016 §3.5.1.3 [far-prevails]: our own opening goes on then.

    Somebody at an address we ask at may be there by chance, as a redirector is.
    """
    glare = Glare()
    opening = glare.world.connect(glare.b, b"c", SERVER)
    glare.world.connect(glare.a, b"b", CLIENT)
    glare.world.run(10)
    assert len(glare.a.endpoint.sessions) == len(glare.b.endpoint.sessions) == 1
    assert opening.state is OpeningState.IHELLO_SENT
    assert glare.b.user.sessions[0][1] is None


def test_glare_in_the_midst_of_keying_with_another_certificate():
    """Covers RFC 7016 §3.5.1.3 [far-prevails]: in S_KEYING_SENT the certificate is known."""
    for certificate, given_up in ((b"aa#1", True), (b"aa#2", False)):
        lone = Lone()
        opening = lone.world.connect(lone.node, b"aa", CLIENT)
        lone.hear(ResponderHello(opening.tag, b"cookie", b"aa#1"))
        assert opening.state is OpeningState.KEYING_SENT
        lone.key(initiator_certificate=certificate)
        assert len(lone.sessions) == 1
        assert (opening.state is OpeningState.CLOSED) is given_up


def test_an_opening_given_up_in_vain_has_failed():
    """Own design: whoever asked for a session hears of it, one way or the other."""
    lone = Lone()
    opening = lone.world.connect(lone.node, b"aa", CLIENT)
    lone.key(initiator_certificate=b"aa")
    (session,) = lone.sessions
    lone.world.run(300)
    assert lone.sessions == []
    assert [(each, why) for each, why, _ in lone.node.user.failed] == [(opening, session.reason)]


def test_a_keying_is_glare_only_at_an_address_that_is_asked():
    """Covers RFC 7016 §3.5.1.3 [one-session]: and only while it is asked."""
    lone = Lone()
    opening = lone.world.connect(lone.node, b"zz", CLIENT)
    lone.key(THIRD, initiator_certificate=b"zz")
    assert len(lone.sessions) == 1
    opening.cancel(lone.now)
    lone.key(CLIENT, initiator_certificate=b"zz")
    assert len(lone.sessions) == 2
