"""Calls that we make: the sessions of RFC 3665 §3, CANCEL and its race, forks."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script, random_source
from support.sip.flows import A, B, C, accept, back, calling, names, phones, ring, settle
from support.sip.stacks import sent

from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import check_request, parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Listener, Stack
from p2psip.ua.ua import CallHandler, CallState, UserAgent


def test_a_session_from_ring_to_bye():
    """The flow of RFC 3665 §3.1.

    Covers RFC 3261 §15 [bye-ends-the-session], §15.1.2 [bye-ends-the-session] [2xx-for-the-bye]
    and §13.2.1 [offer-comes-first].
    Covers RFC 3326 §2 [reason-of-a-bye] [one-reason-per-protocol].
    """
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
    assert alice.log[-1] == ("ended", call, "BYE")
    bye = parse_message(link.sent[-2][3][1])
    assert bye.headers.values("Reason") == ('SIP;cause=200;text="tired"',)
    settle(link, alice, bob)


def test_a_caller_who_loses_patience():
    """The flow of RFC 3665 §3.8.

    Covers RFC 3261 §9.2 [487-for-the-invite] and §15 [only-in-a-dialog].
    """
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


def test_what_an_invite_says():
    """Covers RFC 3261 §13.2.1 [says-allow] [says-info] [says-supported], §12.1.2
    [contact-in-the-request].

    And §20 [mandatory-are-written], §20.15 [type-with-a-body], §20.37 [standard-tags-only],
    §20.42 [branch-has-the-cookie]; RFC 3311 §4 [invite-allows-update].
    """
    link, alice, _, call, invite = calling()
    assert {"ACK", "CANCEL", "BYE", "INFO"} < set(invite.headers.all("Allow"))
    assert "100rel" in invite.headers.all("Supported") and invite.body == b"offer"
    assert [each.uri for each in invite.contacts] == [alice.contact]
    assert alice.stack.is_ours(alice.contact) and alice.contact.scheme == "sip"
    assert call.local_sdp == b"offer" and invite.content_type == "application/sdp"
    check_request(invite)
    assert (
        invite.method == "INVITE"
        and invite.max_forwards == 70
        and invite.via.branch.startswith("z9hG4bK")
    )
    assert set(invite.headers.all("Supported")) == {"100rel", "timer"}  # RFC 3262, RFC 4028
    assert "Require" not in invite.headers  # Field §"Extensions that are required in vain"
    settle(link, alice)


class Owner(CallHandler):
    """The owner of a call, which does nothing."""


@pytest.mark.parametrize(
    ("to", "route", "secure"),
    [
        ("sip:bob@10.0.0.9", (), False),
        ("sips:bob@10.0.0.9", (), True),
        ("sip:bob@10.0.0.9", ("sips:10.0.0.8;lr",), True),
        ("sip:bob@10.0.0.9", ("sip:10.0.0.8;lr", "sips:10.0.0.7;lr"), False),
    ],
)
def test_a_secure_call_has_a_secure_contact(to, route, secure):
    """Covers RFC 3261 §12.1.2 [sips-for-sips], §12.2.1.1 [sips-stays-sips].

    Covers RFC 5630 §5.1.1 [sips-contact-for-sips], §5.1.1.2 [sip-contact-for-sip]
    [refresh-stays-sips].
    """
    stack = Stack(random=random_source(A), listeners=[Listener("TLS", A, 5061)])
    agent = UserAgent(stack, random=random_source(A))
    bob, handler = Address(Uri.parse(to)), Owner()
    ways = [Uri.parse(each) for each in route]
    call = agent.invite(bob, bob, stack.contact("a"), b"x", handler, 0.0, route=ways)
    [contact] = call.invite.contacts
    assert contact.uri.scheme == ("sips" if secure else "sip") and stack.is_ours(contact.uri)
    [(invite, flow)] = sent(stack)
    answer = accept(invite, contact="10.0.0.9;transport=tls")
    stack.receive(bytes(answer), flow, 0.1)
    call.reinvite(b"hold", 0.2)
    [again] = [message for message, _ in sent(stack) if message.method == "INVITE"]
    assert [each.uri for each in again.contacts] == [contact.uri]


def test_a_program_has_its_own_name():
    """Covers RFC 3261 §20.41 [name-is-a-choice]."""
    link = Link()
    alice, script = Phone(link, A, user_agent="desk phone"), Script(link, B)
    alice.dial(B, 0.0)
    link.run(until=0.1)
    assert script.heard[0].headers["User-Agent"] == "desk phone"
    settle(link, alice)


def test_after_a_refusal_no_other_answer_counts():
    """Covers RFC 3261 §13.2.2.3 [later-finals-ignored]."""
    link, alice, script, call, invite = calling()
    for answer in (response_to(invite, 486, to_tag="t"), response_to(invite, 603, to_tag="t")):
        script.say(answer, A)
    script.say(accept(invite, "u"), A)
    assert alice.log == [("rejected", call, 486)] and call.state is CallState.ENDED
    assert [each.method for each in script.heard] == ["INVITE", "ACK", "ACK"]
    settle(link, alice)


def test_how_a_call_begins():
    """Covers RFC 3261 §8.1.1.8 [one-contact] and §8.1.1.9 [says-what-it-can]."""
    _link, alice, _script, _call, invite = calling()
    [contact] = invite.contacts
    assert alice.stack.is_ours(contact.uri) and contact.uri.scheme == "sip"
    assert invite.headers.all("Supported") == ("100rel", "timer")


def test_progress_of_any_kind():
    """Covers RFC 3261 §8.1.3.2 [unknown-is-183] [knows-100-and-183]."""
    _link, alice, script, call, invite = calling()
    for status in (100, 183, 187):
        script.say(accept(invite, status=status), A)
    assert [event[2] for event in alice.log] == [183, 187] and call.state is CallState.CALLING


def test_an_answer_of_any_kind():
    """Covers RFC 3261 §8.1.3.2 [unknown-is-x00] [knows-x00] and §21.5.1 [500-is-shown]."""
    for status in (200, 299):
        _link, _alice, script, call, invite = calling()
        assert script.say(accept(invite, status=status), A).method == "ACK" and call.is_up
    for status in (400, 499, 500, 599, 600, 699):
        _link, alice, script, call, invite = calling()
        script.say(accept(invite, status=status, body=b""), A)
        assert alice.log == [("rejected", call, status)]


def test_a_connection_that_breaks_is_no_way():
    """Covers RFC 3261 §8.1.3.1 [no-way-is-503]."""
    link, alice, _script, call, _invite = calling()
    alice.stack.flow_failed(call._exchange_of_invite.sent_to, link.now)
    assert alice.log == [("rejected", call, 503)]


def test_a_callee_who_is_not_there():
    """The flow of RFC 3665 §3.10.  Covers RFC 3261 §8.1.3.1 [silence-is-408]."""
    link = Link()
    alice = Phone(link, A)
    call = alice.dial(B, 0.0)
    link.run()
    assert names(link) == ["A INVITE"] * 7 and alice.log == [("rejected", call, 408)]
    assert alice.idle


def test_nobody_answers_in_time():
    link, alice, bob = phones(ring, answer_timeout=30.0)
    bob.agent.core.answer_timeout = 60.0
    call = alice.dial(B, 0.0)
    link.run(until=40.0)
    assert alice.log[1:] == [("rejected", call, 480)] and bob.events() == ["cancelled"]
    assert not alice.idle  # its transaction lingers
    settle(link, alice, bob)


def test_a_cancel_that_crosses_the_200_becomes_a_bye():
    """Covers RFC 3261 §13.2.2.4 [bye-if-unwanted]."""
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


def test_the_second_phone_that_is_picked_up_is_hung_up():
    """Covers RFC 3261 §13.2.2.4 [new-dialog-of-a-2xx] [ack-for-each] [ack-again]
    [bye-if-unwanted].

    Covers Field §"Early media of another callee".
    """
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


def test_an_answer_after_the_cancel_ends_all_dialogs():
    link, alice, script, call, invite = calling()
    for tag in ("one", "two"):
        script.say(accept(invite, tag, 180, b""), A)
    call.bye(link.now)
    script.say(accept(invite, "one"), A)
    assert [message.method for message in script.heard[1:4]] == ["CANCEL", "ACK", "BYE"]
    assert alice.agent.dialogs == 1
    settle(link, alice)


def test_a_call_refused_after_early_media_leaves_no_dialog():
    link, alice, script, _call, invite = calling()
    script.say(accept(invite, "one", 183), A)
    script.say(response_to(invite, 603, to_tag="one"), A)
    assert alice.events() == ["ringing", "rejected"] and alice.agent.dialogs == 0
    settle(link, alice)


def test_what_a_callee_asks_too_early_is_put_off():
    """Covers RFC 3261 §14.2 [491-for-glare]: also for an INVITE without an offer."""
    link, alice, script, call, invite = calling()
    early = accept(invite, "t", 183, b"")
    script.say(early, A)
    expected = {"BYE": 481, "INVITE": 491, "UPDATE": 200, "OPTIONS": 200, "INFO": 200}
    for number, (method, status) in enumerate(expected.items(), 1):
        assert script.say(back(invite, early, method, number), A).status == status
    assert script.say(back(invite, early, "UPDATE", 9, b"sdp"), A).status == 491
    assert call.state is CallState.CALLING
    settle(link, alice)
