"""New offers within a call: hold, glare, refusals, and those that nobody answers."""

from support.sip.flows import A, B, accept, back, calling, drop, established, names, phones, settle

from p2psip.errors import RemoteError
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, parse_message
from p2psip.ua.ua import CallState


def test_hold_and_the_answer_to_it():
    """Covers RFC 3261 §12.2.1.1 [refresh-has-a-contact] [same-contact], §14.2
    [follows-the-change].
    """
    link, alice, bob, call, other = established()
    call.reinvite(b"hold", link.now)
    link.run(until=2.0)
    assert names(link) == ["A INVITE", "B 200 INVITE", "A ACK"]
    assert bob.log == [("offer", other, b"hold")] and alice.log == [("answer", call, b"new answer")]
    assert call.local_sdp == other.remote_sdp == b"hold"
    assert call.remote_sdp == other.local_sdp == b"new answer"
    invite, _, ack = (parse_message(data) for *_, (_, data) in link.sent)
    assert invite.cseq.number == ack.cseq.number == 2
    assert [each.uri for each in invite.contacts] == [alice.contact]
    settle(link, alice, bob)


def test_offers_that_cross_are_refused_and_made_again():
    """491 on both sides, then each in its turn.

    Covers RFC 3261 §14.1 [491-waits] [491-tries-again], §14.2 [491-for-glare].
    Covers RFC 3311 §5.3 [491-waits] [491-tries-again].
    """
    link, alice, bob, call, other = established()
    call.reinvite(b"from alice", link.now)
    other.reinvite(b"from bob", link.now)
    link.run(until=1.5)
    assert names(link).count("A 491 INVITE") == names(link).count("B 491 INVITE") == 1
    link.run(until=10.0)
    assert names(link).count("A ACK") == names(link).count("B ACK") == 2
    assert not [event for event in alice.events() + bob.events() if "failed" in event]
    tries = [at for at, source, _, (_, data) in link.sent if (source, data[:6]) == (A, b"INVITE")]
    assert tries[1] - tries[0] > 2.1  # s, the least wait of the side that chose the Call-ID
    # Bob is first, for Alice chose the Call-ID; so Alice's offer has to be written anew.
    assert bob.log[0][0] == "answer" and ("offer", call, b"from bob") in alice.log
    assert ("offer", call, None) in alice.log and alice.log[-1][0] == "answer"
    assert (call.local_sdp, call.remote_sdp) == (other.remote_sdp, other.local_sdp)
    settle(link, alice, bob)


def test_a_new_offer_that_nobody_can_write_is_given_up():
    link, alice, bob, call, other = established()
    call.reinvite(b"from alice", link.now)
    other.reinvite(b"from bob", link.now)
    link.run(until=3.05)
    alice.reply_to_offer = RemoteError("Not Now", 488)
    link.run(until=10.0)
    assert alice.log[-1] == ("reoffer failed", call, 488)
    settle(link, alice, bob)


def test_an_offer_refused_changes_nothing():
    """Covers RFC 3261 §14.1 [refusal-changes-nothing], §14.2 [warning-says-why]."""
    link, alice, bob, call, other = established()
    bob.reply_to_offer = RemoteError("Not Acceptable Here", 488)
    call.reinvite(b"video", link.now)
    link.run(until=2.0)
    assert alice.log == [("reoffer failed", call, 488)] and call.state is CallState.UP
    assert (call.local_sdp, other.remote_sdp) == (b"offer", b"offer")
    [refusal] = [data for *_, (_, data) in link.sent if data.startswith(b"SIP/2.0 488")]
    assert b"\r\nWarning: 399 p2psip " in refusal
    bob.reply_to_offer = b"sound"
    call.reinvite(b"sound alone", link.now)
    link.run(until=3.0)
    assert (call.local_sdp, call.remote_sdp) == (b"sound alone", b"sound")
    settle(link, alice, bob)


def test_an_offer_waits_for_the_ack_of_the_call_and_for_the_one_before():
    """Covers RFC 3261 §14.1 [one-invite-at-a-time] [waits-for-our-own] [waits-for-theirs]."""
    link, alice, bob = phones(weather=drop("ACK"))
    alice.dial(B, 0.0)
    link.run(until=0.1)
    bob.calls[0].reinvite(b"too early", link.now)
    link.run(until=0.2)
    assert "B INVITE" not in names(link)
    bob.calls[0].reinvite(b"first", link.now)  # takes the place of the other
    link.run(until=0.535)
    bob.calls[0].reinvite(b"second", link.now)
    link.run(until=2.0)
    offers = [about for name, _, *about in alice.log if name == "offer"]
    assert offers == [[b"first"], [b"second"]] and names(link).count("B INVITE") == 2
    assert alice.calls[0].remote_sdp == b"second"
    settle(link, alice, bob)


def test_an_offer_waits_for_the_ack_of_the_peers_offer():
    """Covers RFC 3261 §14.1 [waits-for-theirs]: not before the server transaction is confirmed."""
    link, alice, bob, call, other = established()
    link.weather = drop("ACK")
    call.reinvite(b"hold", link.now)
    link.run(until=1.1)
    other.reinvite(b"me too", link.now)
    link.run(until=1.4)
    assert names(link) == ["A INVITE", "B 200 INVITE", "A ACK"]
    link.run(until=3.0)
    assert names(link)[3:] == ["B 200 INVITE", "A ACK", "B INVITE", "A 200 INVITE", "B ACK"]
    settle(link, alice, bob)


def test_a_new_offer_that_gets_no_answer_loses_the_call():
    """Covers RFC 3261 §12.2.1.2 [silence-ends-the-dialog] [gone-ends-the-dialog]."""
    link, alice, bob, call, _other = established()
    del link.nodes[B]
    call.reinvite(b"anybody?", link.now)
    link.run()
    assert alice.log == [("ended", call, "408 Request Timeout")] and alice.idle
    link.join(B, bob)
    settle(link, alice, bob)


def test_a_new_offer_left_undecided_is_withdrawn():
    link, alice, script, call, invite = calling()
    dialog = script.say(accept(invite), A)
    assert dialog.method == "ACK"
    call.reinvite(b"well?", link.now)
    link.run(until=link.now + 1)
    again = script.heard[-1]
    script.say(response_to(again, 100), A, wait=70.0)
    assert script.heard[-1].method == "CANCEL"
    script.say(response_to(script.heard[-1], 200), A)
    script.say(response_to(again, 487), A)
    assert alice.log[-1] == ("reoffer failed", call, 487) and call.state is CallState.UP
    settle(link, alice)


def test_a_call_that_ends_withdraws_its_open_offer():
    for ended_by_peer in (True, False):
        link, alice, script, call, invite = calling()
        script.say(accept(invite), A)
        call.reinvite(b"well?", link.now)
        link.run(until=link.now + 0.3)
        again = script.heard[-1]
        script.say(response_to(again, 100), A)
        if ended_by_peer:
            script.say(back(invite, accept(invite), "BYE", 1), A)
        else:
            call.bye(link.now)
            link.run(until=link.now + 0.1)
        last = [message.method for message in script.heard if isinstance(message, Request)][3:]
        assert last == (["CANCEL"] if ended_by_peer else ["CANCEL", "BYE"])
        settle(link, alice)
