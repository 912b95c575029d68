"""Offers and answers: which may follow which, and what is in force meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.dialog.negotiation import Event, Negotiation, State
from p2psip.errors import LocalError, RemoteError

ACTS = {
    Event.WE_OFFER: lambda session, sdp: session.we_offer(sdp),
    Event.THEY_OFFER: lambda session, sdp: session.they_offer(sdp),
    Event.WE_ANSWER: lambda session, sdp: session.we_answer(sdp),
    Event.THEY_ANSWER: lambda session, sdp: session.they_answer(sdp),
    Event.REFUSED: lambda session, sdp: session.refused(),
}
LEGAL = {
    (State.STABLE, Event.WE_OFFER): State.WE_OFFERED,
    (State.STABLE, Event.THEY_OFFER): State.THEY_OFFERED,
    (State.WE_OFFERED, Event.THEY_ANSWER): State.STABLE,
    (State.WE_OFFERED, Event.REFUSED): State.STABLE,
    (State.THEY_OFFERED, Event.WE_ANSWER): State.STABLE,
    (State.THEY_OFFERED, Event.REFUSED): State.STABLE,
}
WAYS = {
    State.STABLE: (),
    State.WE_OFFERED: (Event.WE_OFFER,),
    State.THEY_OFFERED: (Event.THEY_OFFER,),
}


def at(state):
    session = Negotiation()
    for event in WAYS[state]:
        ACTS[event](session, b"offer")
    assert session.state is state
    return session


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_every_event_in_every_state(state, event):
    """Covers RFC 3311 §5.2 [491-for-glare] [500-for-a-second].

    And RFC 3264 §4 [one-offer-at-a-time] [none-before-our-answer].
    """
    session, target = at(state), LEGAL.get((state, event))
    if target is not None:
        ACTS[event](session, b"x")
        assert session.state is target
        return
    refusals = {State.WE_OFFERED: 491, State.THEY_OFFERED: 500}
    error = RemoteError if event is Event.THEY_OFFER else LocalError
    with pytest.raises(error) as refusal:
        ACTS[event](session, b"x")
    if event is Event.THEY_OFFER:
        assert refusal.value.status == refusals[state]
    assert session.state is state


def test_what_is_refused_changes_nothing():
    """Covers RFC 3311 §5.3 [failure-changes-nothing]."""
    session = Negotiation()
    session.they_offer(b"a")
    assert (session.local, session.remote, session.is_settled) == (None, b"a", False)
    session.refused()
    assert (session.local, session.remote, session.is_settled) == (None, None, False)
    session.we_offer(b"a")
    session.they_answer(b"b")
    for offer in (session.we_offer, session.they_offer):
        offer(b"c")
        assert (session.local, session.remote, session.is_settled) == (b"a", b"b", False)
        session.refused()
        assert (session.local, session.remote, session.is_settled) == (b"a", b"b", True)


def test_an_answer_that_is_missing_leaves_the_peers_side_as_it_was():
    session = Negotiation()
    session.they_offer(b"a")
    session.we_answer(b"b")
    session.we_offer(b"c")
    session.they_answer(None)
    assert (session.local, session.remote) == (b"c", b"a")


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=30))
def test_two_sides_agree_whatever_crosses_or_is_refused(rounds):
    """Each round one side or both offer; an offer that crosses another is refused by both."""
    ann, bob = Negotiation(), Negotiation()
    for number, (by_ann, crossed, refused) in enumerate(rounds):
        first, second = (ann, bob) if by_ann else (bob, ann)
        offer, answer = b"offer %d" % number, b"answer %d" % number
        first.we_offer(offer)
        if crossed:
            second.we_offer(b"crossing")
            for side in (first, second):
                with pytest.raises(RemoteError, match="491"):
                    side.they_offer(b"other")
            first.refused(), second.refused()
            continue
        second.they_offer(offer)
        if refused:
            first.refused(), second.refused()
        else:
            second.we_answer(answer)
            first.they_answer(answer)
            assert first.local == offer and first.remote == answer
        assert (ann.local, ann.remote) == (bob.remote, bob.local)
        assert ann.is_stable and bob.is_stable
