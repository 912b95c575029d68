"""Subscriptions to a phone: who is served, and in which type of body."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import Phone, Script
from support.sip.flows import A, B, first_request

from p2psip.net.phone.phone_core import EXTENSIONS, PhoneCore
from p2psip.net.phone.serving import Serving
from p2psip.sip.message import Request


def served_phone():
    """A script, and a phone that tells whoever asks of its calls and messages."""
    link = Link()
    bob, script = Phone(link, B), Script(link, A)
    bob.agent.core.extensions = EXTENSIONS
    serving = Serving(bob.agent, bob.contact, lambda: [])
    serving.may_watch = lambda package, sender: True
    bob.stack.core = PhoneCore(
        bob.agent, "bob", print, print, serving.on_subscribe, print, lambda server: None
    )

    def subscribe(event, **changes):
        fields = {"Event": event, "Expires": "60", **changes}
        script.say(first_request("SUBSCRIBE", b"", **fields), B)
        answer = next(each for each in script.heard if not isinstance(each, Request))
        told = [each.content_type for each in script.heard if isinstance(each, Request)]
        return answer, set(told)

    return bob, serving, subscribe


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("dialog", "application/dialog-info+xml"),
        ("message-summary", "application/simple-message-summary"),
    ],
)
@pytest.mark.parametrize("accept", [None, "{}", "text/html, {};q=0.5", "application/*", "*/*", ""])
def test_a_watcher_gets_what_it_accepts(event, kind, accept):
    """Covers RFC 6665 §3.2.1 [body-as-accepted]."""
    _bob, _serving, subscribe = served_phone()
    answer, told = subscribe(event, Accept=accept and accept.format(kind))
    assert answer.status == 200 and told == {kind}


@pytest.mark.parametrize("event", ["dialog", "message-summary"])
def test_a_watcher_that_accepts_other_bodies_alone_is_refused(event):
    """Covers RFC 6665 §3.2.1 [body-as-accepted]."""
    bob, _serving, subscribe = served_phone()
    answer, told = subscribe(event, Accept="text/html, application/pidf+xml, application/*;q=0")
    assert (answer.status, told, bob.agent.dialogs) == (406, set(), 0)
    assert "Warning" in answer.headers


def test_a_stranger_is_refused_whatever_it_accepts():
    """Covers RFC 6665 §4.2.1.3 [403-without-leave]."""
    _bob, serving, subscribe = served_phone()
    serving.may_watch = lambda package, sender: False
    answer, told = subscribe("dialog", Accept="text/html")
    assert (answer.status, told) == (403, set())


def test_a_package_that_nobody_serves_is_refused_with_those_that_are_there():
    _bob, _serving, subscribe = served_phone()
    answer, _told = subscribe("presence")
    assert (answer.status, answer.headers["Allow-Events"]) == (489, "dialog, message-summary")
