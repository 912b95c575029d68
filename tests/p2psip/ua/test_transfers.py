"""Transfers: asked for, followed, refused; and an INVITE that takes the place of a call."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone
from support.sip.flows import (
    A,
    B,
    C,
    ack,
    called,
    first_request,
    names,
    settle,
    within,
)

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, parse_message
from p2psip.sip.uri import Uri
from p2psip.ua.replaces import Replaces
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from p2psip.ua.transfers import status_of
from p2psip.ua.ua import CallState

D = "10.0.0.4"
ALL = Extensions(
    methods=(*CALL_METHODS, "REFER", "NOTIFY", "SUBSCRIBE"), options=("100rel", "timer", "replaces")
)


class Desk(Phone):
    """A phone that follows transfers if it may, and lets itself be replaced if it may."""

    def __init__(self, link, address, *, follows=True, yields=True, **options):
        super().__init__(link, address, **options)
        self.agent.core.extensions = ALL
        self.follows = follows
        self.agent.may_replace = lambda call, request: yields
        self.referral = None

    def on_refer(self, call, referral, now):
        self.log.append(("refer", call, str(referral.target.uri)))
        if not self.follows:
            raise RemoteError("Decline", 603)
        self.referral = referral
        me = Address(Uri("sip", "user", None, self.address))
        self.calls.append(
            self.agent.invite(
                referral.target, me, self.contact, b"offer", self, now, headers=referral.headers
            )
        )

    def on_transfer(self, call, status, reason, now):
        self.log.append(("transfer", call, status))

    def on_ringing(self, call, status, reason, sdp, now):
        super().on_ringing(call, status, reason, sdp, now)
        self._tell(call, status, reason, now)

    def on_accepted(self, call, sdp, now):
        super().on_accepted(call, sdp, now)
        self._tell(call, 200, "OK", now)

    def on_rejected(self, call, status, reason, now):
        super().on_rejected(call, status, reason, now)
        self._tell(call, status, reason, now)

    def _tell(self, call, status, reason, now):
        if self.referral is not None and call is self.calls[-1]:
            self.referral.progress(status, reason, now)


def desks(**options):
    """Alice and Bob in a call, and Carol."""
    link = Link()
    alice, bob, carol = (Desk(link, at, **options) for at in (A, B, C))
    alice.dial(B, 0.0)
    link.run(until=1.0)
    link.sent.clear(), alice.log.clear(), bob.log.clear()
    return link, alice, bob, carol


def target(host):
    return Uri("sip", "user", None, host)


def requests(link, method):
    sent = [parse_message(data) for *_, (_, data) in link.sent]
    return [m for m in sent if isinstance(m, Request) and m.method == method]


def test_a_blind_transfer():
    """Covers RFC 3515 §2 [by-the-route] [one-contact], §3.4 [longer-than-it-rings].

    Covers RFC 3891 §8 [says-who-asked].

    Covers RFC 3515 §2.4.1 [one-refer-to], §2.4.2 [asks-the-user] [202-in-time]
    [subscribes-the-peer], §2.4.4 [tells-by-notify] [event-refer] [a-sipfrag], §2.4.5 [a-sipfrag]
    [begins-with-the-status], §2.4.6 [id-of-the-refer] and §2.4.7 [ends-with-noresource].
    Covers RFC 6665 §4.5.2 [id-in-notify], §8.3.1 [202-is-200].
    Covers RFC 3891 §6.2 [requires-replaces]: and other calls do not.
    """
    link, alice, bob, carol = desks()
    [call] = alice.calls
    call.refer(target(C), link.now)
    with pytest.raises(LocalError):
        call.refer(target(C), link.now)  # one at a time
    link.run(until=5.0)
    assert [e for e in alice.log if e[0] == "transfer"] == [
        ("transfer", call, 100),
        ("transfer", call, 200),
    ]
    assert bob.calls[-1].is_up and carol.calls[-1].is_up and call.is_up
    [refer] = requests(link, "REFER")
    assert len(refer.headers.values("Refer-To")) == 1 and "Referred-By" in refer.headers
    assert (refer.call_id, refer.to.tag) == (call.id, call.dialog.remote.tag)
    assert refer.uri == call.dialog.target and len(refer.contacts) == 1
    notifies = requests(link, "NOTIFY")
    assert {m.headers["Event"] for m in notifies} == {f"refer;id={refer.cseq.number}"}
    assert {m.content_type for m in notifies} == {"message/sipfrag"}
    assert notifies[0].body == b"SIP/2.0 100 Trying\r\n"
    expires = notifies[0].headers["Subscription-State"].partition("expires=")[2]
    assert int(expires) == 3 * bob.agent.core.answer_timeout
    assert notifies[-1].headers["Subscription-State"] == "terminated;reason=noresource"
    assert "B 202 REFER" in names(link)
    invite = requests(link, "INVITE")[-1]
    assert invite.headers["Referred-By"] == refer.headers["Referred-By"]
    assert "Require" not in invite.headers
    call.bye(link.now)
    link.run(until=8.0)
    assert alice.calls[0].state is CallState.ENDED and bob.calls[-1].is_up
    settle(link, alice, bob, carol)


@pytest.mark.parametrize("is_in_a_call", [True, False])
def test_a_refer_is_accepted_at_once_and_its_progress_told(is_in_a_call):
    """Covers RFC 3515 §2.4.2 [202-in-time] [subscribes-the-peer].

    Covers RFC 3261 §12.1.1 [adds-a-contact].
    """
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    bob.agent.core.extensions = ALL
    bob.on_refer = lambda call, referral, now: None
    allow = bob.log.append
    bob.on_request = lambda server, request, now: bob.agent.referred(
        server, bob.contact, allow, now
    )
    extra = [("Refer-To", f"<sip:x@{C}>")]
    refer = first_request("REFER", b"", "refer", extra, **{"Call-ID": "other"})
    if is_in_a_call:
        refer = within(invite, response, "REFER", 2)
        refer = refer.replace(headers=refer.headers.append(*extra[0]))
    script.heard.clear()
    script.say(refer, B)
    link.run(until=link.now + 0.1)
    accepted = next(m for m in script.heard if not isinstance(m, Request))
    assert accepted.status == 202 and accepted.contacts[0].uri == bob.contact
    told = next(m for m in script.heard if isinstance(m, Request))
    assert told.method == "NOTIFY" and told.body == b"SIP/2.0 100 Trying\r\n"


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"", b"\r\nTo: <sip:x@y>\r\n"])
def test_a_sipfrag_ends_in_any_way(end):
    """Covers Field §"Line feeds in a sipfrag"."""
    assert status_of("message/sipfrag", b"SIP/2.0 100 Trying" + end) == (100, "Trying")


def test_a_transfer_outlives_its_call():
    """RFC 5057 §4: the subscription keeps the dialog after the BYE."""
    link, alice, bob, carol = desks()
    carol.answer = lambda call, now: call.ring(now)
    [call] = alice.calls
    call.refer(target(C), link.now)
    link.run(until=2.0)
    call.bye(link.now)
    link.run(until=4.0)
    assert call.state is CallState.ENDED and alice.agent.dialogs == 1
    carol.calls[0].accept(b"answer", link.now)
    link.run(until=6.0)
    assert alice.log[-1] == ("transfer", call, 200) and alice.agent.dialogs == 0
    settle(link, alice, bob, carol)


def test_a_transfer_is_refused_unless_the_owner_allows_it():
    """Covers RFC 3515 §2.4.2 [asks-the-user]."""
    link, alice, bob, carol = desks(follows=False)
    alice.calls[0].refer(target(C), link.now)
    link.run(until=3.0)
    assert alice.log == [("transfer", alice.calls[0], 603)] and len(bob.calls) == 1
    assert not requests(link, "NOTIFY") and not carol.calls
    settle(link, alice, bob, carol)


def test_a_transfer_that_fails_says_why():
    link, alice, bob, carol = desks()
    carol.answer = lambda call, now: call.reject(486, "Busy Here", now)
    alice.calls[0].refer(target(C), link.now)
    link.run(until=3.0)
    assert alice.log[-1] == ("transfer", alice.calls[0], 486)
    settle(link, alice, bob, carol)


def test_a_transfer_without_a_result_has_failed():
    link, alice, bob, carol = desks()
    alice.calls[0].refer(target(C), link.now)
    bob.on_refer = lambda call, referral, now: None  # says 100, and nothing more
    link.run(until=300.0)
    assert alice.log[-1][0::2] == ("transfer", 408)
    settle(link, alice, bob, carol)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ((), 400),
        ((f"<sip:x@{C}>", f"<sip:y@{C}>"), 400),
        (("<http://x.example>",), 603),
        ((f"<sip:x@{C};method=BYE>",), 603),
        (("<",), 400),
        ((f"<sip:x@{C}?Replaces=a>",), 400),
        ((f"<sip:x@{C}?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2%0D%0AX-Evil:%201>",), 400),
        ((f"<sip:x@{C}>",), 202),
    ],
)
def test_a_refer_that_cannot_be_followed(fields, status):
    """Covers RFC 3515 §2.4.2 [400-unless-one] [sip-only]."""
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    bob.agent.core.extensions = ALL
    bob.on_refer = lambda call, referral, now: bob.log.append(("refer", call))
    refer = within(invite, response, "REFER", 2)
    headers = refer.headers
    for value in fields:
        headers = headers.append("Refer-To", value)
    script.heard.clear()
    script.say(refer.replace(headers=headers), B)
    assert next(m.status for m in script.heard if not isinstance(m, Request)) == status
    assert (("refer", bob.calls[0]) in bob.log) == (status == 202)
    if status == 202:  # and a second one while it is open
        again = within(invite, response, "REFER", 3)
        again = again.replace(headers=again.headers.append("Refer-To", fields[0]))
        assert script.say(again, B).status == 491
    settle(link, bob)


def test_a_notify_with_something_else_is_refused():
    link, alice, bob, _carol = desks()
    call = alice.calls[0]
    call.refer(target(C), link.now)
    link.run(until=1.05)
    watching = call._transfers
    with pytest.raises(RemoteError, match="415"):
        watching.on_notify(None, "text/plain", b"SIP/2.0 200 OK", link.now)
    with pytest.raises(RemoteError, match="400"):
        watching.on_notify(None, "message/sipfrag", b"HTTP/1.1 200 OK", link.now)
    settle(link, alice, bob)


def test_an_attended_transfer():
    """Covers RFC 3891 §3 and §6.1 [one-of-each-tag], §6.2 [requires-replaces]."""
    link, alice, bob, carol = desks()
    alice.dial(C, link.now)
    link.run(until=2.0)
    first, second = alice.calls
    first.refer(target(C), link.now, Replaces.of(second.dialog))
    link.run(until=6.0)
    assert ("transfer", first, 200) in alice.log
    assert [call.state for call in carol.calls] == [CallState.ENDED, CallState.UP]
    assert second.state is CallState.ENDED and bob.calls[-1].is_up
    calls = second, bob.calls[-1]
    assert [call.invite.headers.get("Require") for call in calls] == [None, "replaces"]
    first.bye(link.now)
    settle(link, alice, bob, carol)


def stranger(bob, script, dialog, **changes):
    """An INVITE that wants to take the place of a call at bob's."""
    name = Replaces(dialog.call_id, dialog.local.tag, dialog.remote.tag)
    fields = {"Replaces": str(name), "Call-ID": "other", "From": "<sip:eve@e.com>;tag=e"}
    return first_request(branch="other", **{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "extra", "yields", "status"),
    [
        ({}, (), True, 200),
        ({}, (), False, 403),
        ({}, (("Replaces", "a;to-tag=b;from-tag=c"),), True, 400),
        ({"Replaces": "call;to-tag=x;from-tag=y"}, (), True, 481),
        ({"Replaces": "call"}, (), True, 400),
        ({"Require": "replaces"}, (), False, 403),
    ],
)
def test_who_may_take_the_place_of_a_call(changes, extra, yields, status):
    """Covers RFC 3891 §3 [only-who-may] [400-for-two] [no-match-for-two] [left-unchanged].

    Covers RFC 3891 §6.1 [one-of-each-tag].
    """
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    bob.agent.core.extensions = ALL
    bob.agent.may_replace = lambda call, request: yields
    dialog = bob.calls[0].dialog
    script.heard.clear()
    script.say(stranger(bob, script, dialog, extra=extra, **changes), B)
    assert next(m.status for m in script.heard if not isinstance(m, Request)) == status
    assert (bob.calls[0].state is CallState.ENDING) == (status == 200)
    settle(link, bob)


def test_early_only_and_calls_that_are_over():
    """Covers RFC 3891 §3 [603-when-over]."""
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    bob.agent.core.extensions, bob.agent.may_replace = ALL, lambda call, request: True
    dialog = bob.calls[0].dialog
    early = stranger(bob, script, dialog)
    value = early.headers["Replaces"] + ";early-only"
    assert (
        script.say(early.replace(headers=early.headers.with_("Replaces", value)), B).status == 486
    )
    bob.calls[0].bye(link.now)
    link.run(until=link.now + 0.1)
    over = stranger(bob, script, dialog, Via=f"SIP/2.0/UDP {A};branch=z9hG4bKover")
    assert script.say(over, B).status == 603
    settle(link, bob)


def test_without_the_option_the_header_means_nothing():
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    dialog = bob.calls[0].dialog
    assert script.say(stranger(bob, script, dialog), B).status == 200
    assert bob.calls[0].is_up and len(bob.calls) == 2
    settle(link, bob)


def test_a_refer_is_not_among_the_methods_of_every_agent():
    link, script, bob, invite, response = called()
    script.say(ack(invite, response), B)
    assert script.say(within(invite, response, "REFER", 2), B).status == 405
    settle(link, bob)
