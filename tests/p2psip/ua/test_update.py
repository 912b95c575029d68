"""New offers before a call is answered, by UPDATE."""

import pytest
from support.sip.flows import B, drop, names, phones, settle

from p2psip.sip.message import parse_message
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from p2psip.ua.ua import CallState

WITHOUT = Extensions(methods=tuple(each for each in CALL_METHODS if each != "UPDATE"))


def early(call, now):
    call.ring(now, 183, b"answer")


def ring(call, now):
    call.ring(now)


def in_early_dialog(answer=early, **options):
    link, alice, bob = phones(answer, **options)
    alice.dial(B, link.now)
    link.run(until=1.0)
    [call], [other] = alice.calls, bob.calls
    assert (call.state, other.state) == (CallState.CALLING, CallState.RINGING)
    return link, alice, bob, call, other


def agreed(call, other, local, remote):
    assert (call.local_sdp, call.remote_sdp) == (local, remote)
    assert (other.remote_sdp, other.local_sdp) == (local, remote)


@pytest.mark.parametrize("is_caller", [True, False])
def test_a_session_of_early_media_is_changed_by_update(is_caller):
    """Covers RFC 3311 §5.1 [settled-before-update] [by-either-side] [one-contact].

    Covers RFC 3261 §12.2.1.2 [2xx-moves-the-target] and RFC 3311 §4 [invite-allows-update].
    """
    link, alice, bob, call, other = in_early_dialog()
    agreed(call, other, b"offer", b"answer")
    who, peer = (call, other) if is_caller else (other, call)
    peer.contact = peer.contact.replace(user="moved")
    who.reinvite(b"hold", link.now)
    link.run(until=2.0)
    agreed(who, peer, b"hold", b"new answer")
    sender = alice if is_caller else bob
    assert ("answer", who, b"new answer") in sender.log and who.dialog.target == peer.contact
    other.accept(b"not sent", link.now)
    link.run(until=3.0)
    assert call.is_up and other.is_up
    agreed(who, peer, b"hold", b"new answer")
    told = [parse_message(data) for _, source, _, (_, data) in link.sent if source == B]
    contacts = {str(each.contacts[0]) for each in told if each.contacts}
    assert contacts == {f"<{bob.contact}>", f"<{other.contact}>"}  # one each, the old and the new
    sent = [each for each in names(link) if "UPDATE" in each]
    assert "B 200 INVITE" in names(link)
    assert sent == (["A UPDATE", "B 200 UPDATE"] if is_caller else ["B UPDATE", "A 200 UPDATE"])
    settle(link, alice, bob)


@pytest.mark.parametrize("answer", [early, ring])
def test_an_offer_that_update_cannot_have_waits_for_the_answer(answer):
    """Covers RFC 3311 §5.1 [settled-before-update] [reinvite-once-up].

    There is no session yet, or a peer without UPDATE.
    """
    link, alice, bob, call, other = in_early_dialog(ring)
    if answer is early:
        bob.agent.core.extensions = WITHOUT
        early(other, link.now)
    for each in (call, other):
        each.reinvite(b"too early", link.now)
    link.run(until=2.0)
    assert not any("A UPDATE" in each for each in names(link))
    other.accept(b"answer", link.now)
    link.run(until=10.0)
    assert call.is_up and names(link).count("A INVITE") > 1
    assert (call.local_sdp, call.remote_sdp) == (other.remote_sdp, other.local_sdp)
    settle(link, alice, bob)


@pytest.mark.parametrize("lost", ["SIP/2.0 200", "UPDATE"])
def test_an_answer_of_the_call_waits_for_that_to_an_update(lost):
    """Covers RFC 3311 §5.1: the 200 of the INVITE comes after it, from the side that asked."""
    link, alice, bob, call, other = in_early_dialog()
    link.weather = drop(lost)
    other.reinvite(b"hold", link.now)
    other.accept(b"not sent", link.now)
    assert other.state is CallState.ANSWERED
    link.run(until=4.0)
    assert call.is_up and other.is_up
    agreed(other, call, b"hold", b"new answer")
    after = names(link)
    assert after.index("A 200 UPDATE") < after.index("B 200 INVITE")
    settle(link, alice, bob)


def test_the_call_is_answered_while_the_callers_update_is_on_its_way():
    """Covers RFC 3311 §5.1: the 200 is no answer to it."""
    link, alice, bob, call, other = in_early_dialog()
    call.reinvite(b"hold", link.now)
    other.accept(b"not sent", link.now)
    link.run(until=6.0)
    assert call.is_up and other.is_up
    assert (call.local_sdp, call.remote_sdp) == (other.remote_sdp, other.local_sdp)
    settle(link, alice, bob)


@pytest.mark.parametrize("is_caller", [True, False])
def test_a_peer_that_is_gone_ends_the_call(is_caller):
    """Covers RFC 3261 §12.2.1.2 [silence-ends-the-dialog]: also before the answer."""
    link, alice, bob, call, other = in_early_dialog()
    who = call if is_caller else other
    link.weather = lambda parcel, source, destination: ()
    who.reinvite(b"hold", link.now)
    link.run(until=link.now + 40.0)
    assert ("rejected", who) in [entry[:2] for entry in (alice if is_caller else bob).log]
    link.weather = drop()
    settle(link, alice, bob)
