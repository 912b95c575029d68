"""Call flows one by one: the races of RFC 3261, and the sessions of RFC 3665."""

import pytest
from elements import Phone, Script
from link import Link

from p2psip.core.ua import CallState
from p2psip.errors import LocalError, RemoteError
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, parse_message
from p2psip.sip.uri import Uri

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
SDP = "application/sdp"


def ring(call, now):
    call.ring(now)


def pick_up(call, now):
    call.accept(b"answer", now)


def phones(answer=pick_up, weather=None, **options):
    link = Link(weather)
    return link, Phone(link, A, **options), Phone(link, B, answer, **options)


def drop(*unwanted):
    """Weather that loses one message for each of these beginnings."""
    wanted_away = list(unwanted)

    def weather(parcel, source, destination):
        for start in wanted_away:
            if parcel[1].startswith(start.encode()):
                wanted_away.remove(start)
                return ()
        return (0.01,)

    return weather


def names(link):
    """What was sent: who, and the method, or the status and the method that it answers."""
    found = []
    for _, source, _, (_, data) in link.sent:
        message = parse_message(data)
        what = message.method if isinstance(message, Request) else message.status
        about = "" if isinstance(message, Request) else f" {message.cseq.method}"
        found.append(f"{'ABC'[[A, B, C].index(source)]} {what}{about}")
    return found


def settle(link, *elements):
    """Hang up and let all time pass: nothing may be left."""
    for element in elements:
        for call in element.calls:
            call.bye(link.now)
    link.run()
    assert all(element.idle for element in elements)
    assert all(call.state is CallState.ENDED for element in elements for call in element.calls)


def established(**options):
    link, alice, bob = phones(**options)
    alice.dial(B, link.now)
    link.run(until=1.0)
    [call], [other] = alice.calls, bob.calls
    assert call.state is other.state is CallState.UP
    link.sent.clear(), alice.log.clear(), bob.log.clear()
    return link, alice, bob, call, other


# Sessions of RFC 3665 §3


def test_a_session_from_ring_to_bye():
    """The flow of RFC 3665 §3.1."""
    link, alice, bob = phones(ring)
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    bob.calls[0].accept(b"answer", link.now)
    link.run(until=2.0)
    assert call.state is bob.calls[0].state is CallState.UP
    assert (call.local_sdp, call.remote_sdp) == (b"offer", b"answer")
    assert bob.log == [("accepted", bob.calls[0], b"offer")] and call.id == bob.calls[0].id
    bob.calls[0].bye(link.now, reason='SIP;cause=200;text="tired"')
    link.run(until=3.0)
    assert names(link) == [
        "A INVITE",
        "B 180 INVITE",
        "B 200 INVITE",
        "A ACK",
        "B BYE",
        "A 200 BYE",
    ]
    assert [entry[0] for entry in alice.log] == ["ringing", "accepted", "ended"]
    assert b"Reason: SIP;cause=200" in link.sent[-2][3][1]
    settle(link, alice, bob)


def test_a_caller_who_loses_patience():
    """The flow of RFC 3665 §3.8."""
    link, alice, bob = phones(ring)
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    call.bye(link.now)
    link.run(until=2.0)
    assert names(link)[2:] == ["A CANCEL", "B 200 CANCEL", "B 487 INVITE", "A ACK"]
    assert bob.events() == ["cancelled"] and alice.events() == ["ringing"]
    settle(link, alice, bob)


def test_a_callee_who_is_busy():
    """The flow of RFC 3665 §3.9."""
    link, alice, bob = phones(lambda call, now: call.reject(486, "Busy Here", now))
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    assert names(link) == ["A INVITE", "B 486 INVITE", "A ACK"]
    assert alice.log == [("rejected", call, 486)] and bob.log == []
    settle(link, alice, bob)


def test_a_callee_who_is_not_there():
    """The flow of RFC 3665 §3.10."""
    link = Link()
    alice = Phone(link, A)
    call = alice.dial(B, 0.0)
    link.run()
    assert names(link) == ["A INVITE"] * 7 and alice.log == [("rejected", call, 408)]
    assert alice.idle


# Waiting, and what is lost


def test_nobody_answers_in_time():
    link, alice, bob = phones(ring, answer_timeout=30.0)
    bob.agent.answer_timeout = 60.0
    call = alice.dial(B, 0.0)
    link.run(until=40.0)
    assert alice.log[1:] == [("rejected", call, 480)] and bob.events() == ["cancelled"]
    assert alice.idle is bob.idle is False  # the transactions linger
    settle(link, alice, bob)


def test_nobody_picks_up_in_time():
    link, alice, bob = phones(ring, answer_timeout=100.0)
    bob.agent.answer_timeout = 90.0
    call = alice.dial(B, 0.0)
    link.run(until=95.0)
    assert names(link)[:3] == ["A INVITE", "B 180 INVITE", "B 180 INVITE"]  # again every minute
    assert bob.log == [("rejected", bob.calls[0], 480)] and alice.log[-1] == ("rejected", call, 480)
    settle(link, alice, bob)


def test_the_callers_own_limit_is_kept():
    link, alice, bob = phones(ring)
    call = alice.dial(B, 0.0, headers=[("Expires", "5")])
    link.run(until=6.0)
    assert alice.log[-1] == ("rejected", call, 480)
    settle(link, alice, bob)


def test_a_lost_200_and_a_lost_ack_are_made_good():
    """Covers RFC 3261 §17.1.1.3 [2xx-ack-by-core]."""
    link, alice, bob = phones(weather=drop("SIP/2.0 200", "ACK"))
    alice.dial(B, 0.0)
    link.run(until=5.0)
    sent = [name for name in names(link) if name != "A INVITE"]
    assert sent == ["B 200 INVITE", "B 200 INVITE", "A ACK", "B 200 INVITE", "A ACK"]
    assert alice.events() == bob.events() == ["accepted"]
    settle(link, alice, bob)


def test_without_any_ack_the_callee_hangs_up():
    link, alice, bob = phones(weather=drop(*["ACK"] * 99))
    call = alice.dial(B, 0.0)
    link.run(until=40.0)
    assert bob.log == [("ended", bob.calls[0], "no ACK")] and bob.calls[0].local_sdp == b"answer"
    assert alice.log == [("accepted", call, b"answer"), ("ended", call, "BYE")]
    assert names(link).count("B 200 INVITE") == 11
    settle(link, alice, bob)


def test_a_callee_who_hangs_up_before_the_ack_waits_for_it():
    link, alice, bob = phones(weather=drop("ACK"))
    alice.dial(B, 0.0)
    link.run(until=0.1)
    bob.calls[0].bye(link.now)
    assert bob.calls[0].state is CallState.ENDING
    link.run(until=0.4)
    assert "B BYE" not in names(link)
    link.run(until=1.0)
    assert names(link)[-3:] == ["A ACK", "B BYE", "A 200 BYE"] and bob.events() == []
    settle(link, alice, bob)


# Races


def test_a_cancel_that_crosses_the_200_becomes_a_bye():
    link, alice, bob = phones(ring)
    call = alice.dial(B, 0.0)
    link.run(until=1.0)
    bob.calls[0].accept(b"answer", link.now)
    call.bye(link.now)
    link.run(until=2.0)
    assert [name for name in names(link)[2:] if "CANCEL" not in name] == [
        "B 200 INVITE",
        "A ACK",
        "A BYE",
        "B 200 BYE",
    ]
    assert "B 200 CANCEL" in names(link)
    assert alice.events() == ["ringing"] and bob.events() == ["accepted", "ended"]
    settle(link, alice, bob)


def test_two_byes_that_cross_end_one_call():
    link, alice, bob, call, other = established()
    call.bye(link.now)
    other.bye(link.now)
    link.run(until=2.0)
    assert sorted(names(link)) == ["A 200 BYE", "A BYE", "B 200 BYE", "B BYE"]
    assert alice.log == bob.log == []
    settle(link, alice, bob)


def test_a_bye_before_the_answer_cancels():
    """A caller may end an early dialog by BYE (RFC 3261 §15)."""
    link, script, bob, invite, ringing = called(ring)
    answer = script.say(within(invite, ringing, "BYE", 2), B)
    statuses = {message.cseq.method: message.status for message in script.heard[1:]}
    assert statuses == {"BYE": 200, "INVITE": 487} and answer.status == 487
    assert bob.events() == ["cancelled"]
    settle(link, bob)


# New offers


def test_hold_and_the_answer_to_it():
    link, alice, bob, call, other = established()
    call.reinvite(b"hold", link.now)
    link.run(until=2.0)
    assert names(link) == ["A INVITE", "B 200 INVITE", "A ACK"]
    assert bob.log == [("offer", other, b"hold")] and alice.log == [("answer", call, b"new answer")]
    assert call.local_sdp == other.remote_sdp == b"hold"
    assert call.remote_sdp == other.local_sdp == b"new answer"
    assert [parse_message(data).cseq.number for *_, (_, data) in link.sent] == [2, 2, 2]
    settle(link, alice, bob)


def test_offers_that_cross_are_refused_and_made_again():
    """RFC 3261 §14.1: 491 on both sides, then each in its turn."""
    link, alice, bob, call, other = established()
    call.reinvite(b"from alice", link.now)
    other.reinvite(b"from bob", link.now)
    link.run(until=1.5)
    assert names(link).count("A 491 INVITE") == names(link).count("B 491 INVITE") == 1
    link.run(until=10.0)
    assert names(link).count("A ACK") == names(link).count("B ACK") == 2
    assert not [event for event in alice.events() + bob.events() if "failed" in event]
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
    link, alice, bob, call, other = established()
    bob.reply_to_offer = RemoteError("Not Acceptable Here", 488)
    call.reinvite(b"video", link.now)
    link.run(until=2.0)
    assert alice.log == [("reoffer failed", call, 488)] and call.state is CallState.UP
    assert (call.local_sdp, other.remote_sdp) == (b"offer", b"offer")
    settle(link, alice, bob)


def test_an_offer_waits_for_the_ack_of_the_call_and_for_the_one_before():
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


def test_a_new_offer_that_gets_no_answer_loses_the_call():
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


def test_info_arrives_and_its_refusal_says_why():
    link, alice, bob, call, other = established()
    other.info("application/dtmf-relay", b"Signal=5", link.now)
    link.run(until=2.0)
    assert alice.log == [("info", call, "application/dtmf-relay", b"Signal=5")]
    assert names(link) == ["B INFO", "A 200 INFO"]

    def refuse(*_):
        raise RemoteError("Unsupported Media Type", 415)

    alice.on_info = refuse
    other.info("text/plain", b"", link.now)
    link.run(until=3.0)
    assert names(link)[-1] == "A 415 INFO" and other.state is CallState.UP
    settle(link, alice, bob)


def test_a_request_to_a_call_long_gone_ends_it():
    link, alice, bob, call, other = established()
    bob.agent.forget(other)
    call.info("text/plain", b"hello?", link.now)
    link.run(until=5.0)
    assert alice.log == [("ended", call, "481 Call/Transaction Does Not Exist")]
    assert names(link)[-2:] == ["A BYE", "B 481 BYE"] and call.state is CallState.ENDED
    settle(link, alice, bob)


# Forks


def calling():
    """A phone that calls a script: the INVITE has arrived."""
    link = Link()
    alice, script = Phone(link, A), Script(link, B)
    call = alice.dial(B, 0.0)
    link.run(until=0.1)
    [invite] = script.heard
    return link, alice, script, call, invite


def accept(invite, tag="t", status=200, body=b"answer", contact=B):
    headers = [("Contact", f"<sip:{contact}>")]
    return response_to(
        invite, status, to_tag=tag, headers=headers, body=body, content_type=SDP if body else None
    )


def test_the_second_phone_that_is_picked_up_is_hung_up():
    link, alice, script, call, invite = calling()
    other = Script(link, C)
    script.say(accept(invite, "one", 180, b""), A)
    script.say(accept(invite, "two", 183, b"early", C), A)
    assert alice.log == [("ringing", call, 180, None), ("ringing", call, 183, b"early")]
    assert alice.agent.dialogs == 2
    script.say(accept(invite, "one"), A)
    script.say(accept(invite, "two", contact=C), A)
    script.say(accept(invite, "two", contact=C), A)
    script.say(accept(invite, "one"), A)
    assert [m.method for m in script.heard[1:]] == ["ACK", "ACK"]
    assert [m.method for m in other.heard if m.method == "ACK"] == ["ACK", "ACK"]
    [bye] = {bytes(m): m for m in other.heard if m.method == "BYE"}.values()
    assert bye.to.tag == "two" and str(bye.uri) == f"sip:{C}"
    script.say(response_to(bye, 200), A)
    assert call.state is CallState.UP and alice.agent.dialogs == 1
    assert alice.events() == ["ringing", "ringing", "accepted"]
    settle(link, alice)


def test_a_flood_of_dialogs_is_not_remembered():
    link, alice, script, _call, invite = calling()
    for n in range(100):
        script.say(accept(invite, f"t{n}", 180, b""), A, wait=0.01)
    assert alice.agent.dialogs == 16
    for n in range(100):
        script.say(accept(invite, f"t{n}"), A, wait=0.01)
    link.run(until=link.now + 0.1)
    assert {m.to.tag for m in script.heard if m.method == "ACK"} == {f"t{n}" for n in range(64)}
    settle(link, alice)


def test_a_call_refused_after_early_media_leaves_no_dialog():
    link, alice, script, _call, invite = calling()
    script.say(accept(invite, "one", 183), A)
    script.say(response_to(invite, 603, to_tag="one"), A)
    assert alice.events() == ["ringing", "rejected"] and alice.agent.dialogs == 0
    settle(link, alice)


def test_what_a_callee_asks_too_early_is_put_off():
    link, alice, script, call, invite = calling()
    early = accept(invite, "t", 183, b"")
    script.say(early, A)
    expected = {"BYE": 481, "INVITE": 491, "UPDATE": 200, "OPTIONS": 200, "INFO": 200}
    for number, (method, status) in enumerate(expected.items(), 1):
        assert script.say(back(invite, early, method, number), A).status == status
    assert script.say(back(invite, early, "UPDATE", 9, b"sdp"), A).status == 491
    assert call.state is CallState.CALLING
    settle(link, alice)


# What a peer may ask within a call


def called(answer=pick_up, **more):
    """A script that calls a phone: the INVITE, and the first response to it."""
    link = Link()
    script, bob = Script(link, A), Phone(link, B, answer)
    invite = first_request(**more)
    return link, script, bob, invite, script.say(invite, B)


def first_request(method="INVITE", body=b"offer", branch="1", extra=(), **changes):
    fields = {
        "Via": f"SIP/2.0/UDP {A};branch=z9hG4bK{branch}",
        "Max-Forwards": 70,
        "From": "<sip:alice@a.com>;tag=a",
        "To": "<sip:bob@b.com>",
        "Call-ID": "call",
        "CSeq": f"1 {method}",
        "Contact": f"<sip:{A}>",
    }
    if body:
        fields["Content-Type"] = SDP
    fields |= {name.replace("_", "-"): value for name, value in changes.items()}
    fields = {name: value for name, value in fields.items() if value is not None}
    return Request(method, Uri.parse(f"sip:bob@{B}"), Headers([*fields.items(), *extra]), body)


def within(invite, response, method, cseq, body=b"", **changes):
    """A request of the caller within the dialog."""
    changes = {"To": response.headers["To"], "CSeq": f"{cseq} {method}"} | changes
    return first_request(method, body, f"{method}{cseq}{body.hex()}", **changes)


def back(invite, response, method, cseq, body=b""):
    """A request of the callee within the dialog."""
    changes = {"From": response.headers["To"], "To": response.headers["From"]}
    changes |= {"Call-ID": invite.call_id, "CSeq": f"{cseq} {method}"}
    changes["Via"] = f"SIP/2.0/UDP {B};branch=z9hG4bKback{cseq}{method}"
    return first_request(method, body, **changes)


def ack(invite, response, cseq=1, body=b""):
    return within(invite, response, "ACK", cseq, body)


def test_an_offer_of_the_callee_is_answered_in_the_ack():
    link, script, bob, invite, response = called(body=b"")
    assert response.body == b"answer" and bob.log == []  # here it is the offer
    assert script.say(within(invite, response, "INVITE", 2, b"x"), B).status == 491
    script.say(ack(invite, response, 1, b"the answer"), B)
    assert bob.log == [("accepted", bob.calls[0], b"the answer")]
    script.say(ack(invite, response, 1, b"the answer"), B)
    assert len(bob.log) == 1
    # The same within the call.
    response = script.say(within(invite, response, "INVITE", 3), B)
    assert response.body == b"new answer" and bob.log[1] == ("offer", bob.calls[0], None)
    script.say(ack(invite, response, 3, b"again"), B)
    assert bob.log[2] == ("answer", bob.calls[0], b"again")
    assert bob.calls[0].remote_sdp == b"again"
    settle(link, bob)


def test_a_new_offer_proves_that_the_200_arrived():
    link, script, bob, invite, response = called()
    answer = script.say(within(invite, response, "INVITE", 2, b"hold"), B)
    assert answer.status == 200 and bob.events() == ["accepted", "offer"]
    script.say(ack(invite, response, 1), B)  # too late to mean anything
    script.say(ack(invite, response, 2), B)
    assert bob.calls[0].state is CallState.UP
    script.heard.clear()
    link.run(until=link.now + 9)
    assert script.heard == []
    settle(link, bob)


def test_a_second_invite_while_the_first_is_open():
    """RFC 3261 §14.2: 500 with Retry-After."""
    link, script, bob, invite, response = called(ring)
    again = script.say(within(invite, response, "INVITE", 2, b"x"), B)
    assert again.status == 500 and 0 <= int(again.headers["Retry-After"]) <= 10
    update = script.say(within(invite, response, "UPDATE", 3, b"x"), B)
    assert update.status == 500 and "Retry-After" in update.headers
    settle(link, bob)


@pytest.mark.parametrize(
    ("method", "changes", "status", "header"),
    [
        ("OPTIONS", {}, 200, "Accept"),
        ("UPDATE", {}, 200, "Contact"),
        ("UPDATE", {"body": b"offer 2"}, 200, "Content-Type"),
        ("SUBSCRIBE", {}, 405, "Allow"),
        ("DANCE", {}, 405, "Allow"),
        ("INVITE", {"body": b"x", "Content_Type": "text/plain"}, 415, "Accept"),
        ("INFO", {"Require": "teleport"}, 420, "Unsupported"),
        ("BYE", {"CSeq": "0 BYE"}, 500, "Allow"),
        ("BYE", {"To": "<sip:bob@b.com>;tag=other"}, 481, "To"),
    ],
)
def test_requests_within_a_call(method, changes, status, header):
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    answer = script.say(within(invite, response, method, 2, **changes), B)
    assert answer.status == status and header in answer.headers
    assert bob.calls[0].state is CallState.UP
    if changes.get("body") == b"offer 2":
        assert answer.body == b"new answer" and bob.calls[0].remote_sdp == b"offer 2"
    settle(link, bob)


def test_a_peer_that_moves_is_followed():
    """RFC 3261 §12.2.2: the Contact of a re-INVITE or UPDATE."""
    for method, body in (("INVITE", b"x"), ("UPDATE", b"")):
        link, script, bob, invite, response = called()
        moved = Script(link, C)
        script.say(ack(invite, response), B)
        answer = script.say(within(invite, response, method, 2, body, Contact=f"<sip:{C}>"), B)
        assert answer.status == 200
        bob.calls[0].bye(link.now)
        link.run(until=link.now + 0.1)
        assert [message.method for message in moved.heard] == ["BYE"]
        settle(link, bob)


def test_a_call_that_ends_takes_no_new_offers():
    link, script, bob, invite, response = called()
    bob.calls[0].bye(link.now)
    answer = script.say(within(invite, response, "INVITE", 2, b"x"), B)
    assert answer.status == 481
    script.say(ack(invite, response), B)
    assert [m.method for m in script.heard if isinstance(m, Request)][-1] == "BYE"
    assert script.say(within(invite, response, "UPDATE", 3, b"x"), B).status == 491
    settle(link, bob)


@pytest.mark.parametrize(
    ("changes", "status", "header"),
    [
        ({"Require": "100rel"}, 420, "Unsupported"),
        ({"Content_Type": "text/plain"}, 415, "Accept"),
        ({"Contact": None}, 400, "To"),
    ],
)
def test_an_invite_that_cannot_be_a_call(changes, status, header):
    link, _script, bob, _invite, response = called(**changes)
    assert response.status == status and header in response.headers and response.to.tag
    assert bob.calls == []
    settle(link, bob)


def test_an_invite_that_comes_twice_on_two_paths():
    """RFC 3261 §8.2.2.2: the merged request gets 482."""
    link, script, bob, _invite, _response = called(ring)
    assert script.say(first_request(branch="2"), B).status == 482 and len(bob.calls) == 1
    settle(link, bob)


def test_a_bye_and_an_ack_for_nobody():
    link = Link()
    script, bob = Script(link, A), Phone(link, B)
    stray = first_request("BYE", b"", To="<sip:bob@b.com>;tag=x")
    assert script.say(stray, B).status == 481
    script.say(first_request("ACK", b"", "2", To="<sip:bob@b.com>;tag=x"), B)
    assert len(script.heard) == 1
    settle(link, bob)


# What an owner may not do, or may do in vain


def test_only_a_ringing_call_can_be_accepted():
    link, alice, bob, _call, other = established()
    with pytest.raises(LocalError):
        other.accept(b"again", link.now)
    other.reject(486, "Busy Here", link.now)
    other.ring(link.now)
    link.run(until=3.0)
    assert names(link) == []
    settle(link, alice, bob)
    other.reinvite(b"after the end", link.now)
    other.info("text/plain", b"", link.now)
    link.run()
    assert alice.idle and bob.idle


def test_a_call_to_ourselves_needs_no_network():
    link = Link()
    alice = Phone(link, A, pick_up)
    call = alice.dial(A, 0.0)
    link.run(until=1.0)
    other = alice.calls[1]
    assert call.state is other.state is CallState.UP and alice.agent.dialogs == 2
    call.reinvite(b"hold", link.now)
    link.run(until=2.0)
    assert other.remote_sdp == b"hold"
    other.bye(link.now)
    settle(link, alice)
    assert link.sent == []
