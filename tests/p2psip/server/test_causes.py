"""A 480, 500 or 503 of this element says why, and only to those who may know."""

import pytest
from support.sip.elements import PORT
from support.sip.homes import (
    BOB,
    CAROL,
    HOME,
    OUTSIDER,
    Home,
    answer_to,
    register,
    request,
    signed,
    store,
)
from support.sip.stacks import Asker, lone_stack
from support.sip.stacks import request as bare

from p2psip.server.response_context import best_response
from p2psip.sip.build import response_to
from p2psip.stack.clients import MAX_SILENT
from p2psip.stack.stack import Flow, Locate
from p2psip.transaction.flow import LOCAL

INVITE = ("INVITE", "sip:bob@home")


def phrase(sent):
    return answer_to(sent).reason


def cause_in_log(home, message):
    """What `on_final` may learn besides the response."""
    heard = []

    class Spy:
        def on_request(self, server, asked, now):
            server.on_final = lambda handle, response, now: heard.append(handle.cause)

        def on_dispatched(self, server, asked):
            pass

    home.endpoint.observer = Spy()
    sent = home.hear(message)
    return phrase(sent), *heard


def test_a_user_without_a_registration():
    """Covers RFC 3261 §21.4.18."""
    assert phrase(Home().hear(request(*INVITE, OUTSIDER))) == "Not Registered"


def test_a_contact_that_has_not_answered_yet():
    """Covers RFC 3261 §21.4.18."""
    home = Home()
    home.hear(register(contact=f"<sip:bob@{CAROL}>"), source=BOB)
    assert phrase(home.hear(request(*INVITE, OUTSIDER))) == "Contact Not Confirmed"


def test_a_contact_of_this_element_that_leads_to_nobody():
    """Covers RFC 3261 §21.4.18."""
    home = Home()
    line = register(contact=f"<sip:bob@{HOME}:5060;line=1>")
    home.hear(line, source=HOME, transport=LOCAL)
    assert phrase(home.hear(request(*INVITE, OUTSIDER))) == "Contact Gone"


@pytest.mark.parametrize(("user", "cause"), [("bob", "Not Registered"), ("zoe", "No Such User")])
def test_a_stranger_is_not_told_who_lives_here(user, cause):
    """Covers RFC 3261 §21.4.18: the log is told, users of ours are, and nobody else."""
    home = Home(users=store("alice", "bob"))
    uri = f"sip:{user}@home"
    stranger = request("INVITE", uri, OUTSIDER, call=f"s{user}")
    assert cause_in_log(home, stranger) == ("Temporarily Unavailable", cause)
    challenge = answer_to(home.hear(mine := request("INVITE", uri, call=user)))
    assert cause_in_log(home, signed(mine, challenge, cseq=2)) == (cause, cause)


def test_a_contact_whose_connection_breaks():
    """Covers RFC 3261 §16.9: the 503 of the next hop is a 500, and keeps its cause."""
    home = Home()
    home.hear(register(), source=BOB, transport="TCP")
    home.hear(request(*INVITE, OUTSIDER))
    home.stack.flow_failed(Flow("TCP", (BOB, PORT), (HOME, PORT)), 0.1)
    answer = answer_to(home.said())
    assert (answer.status, answer.reason) == (500, "Not Reachable")


def test_a_503_without_a_cause_becomes_a_plain_500():
    """Covers RFC 3261 §16.7."""
    plain = best_response([response_to(bare("INVITE"), 503)])
    assert (plain.status, plain.reason) == (500, "Server Internal Error")


class Listener(Asker):
    def on_failure(self, handle, status, now):
        self.heard.append((status, handle.cause))


def failure(uri, found=(), before=lambda stack: None, **options):
    stack, asker = lone_stack(**options), Listener()
    before(stack)
    stack.request(bare("INVITE", uri), asker, 0.0)
    for order in stack.take_orders():
        if isinstance(order, Locate):
            stack.located(order.token, found, 0.0)
    stack.tick(0.0)
    return asker.heard


def crowd(stack):
    for _ in range(MAX_SILENT):
        stack.request(bare(), Asker(), 0.0)


@pytest.mark.parametrize(
    ("uri", "cause", "options"),
    [
        ("sip:bob@nowhere.example", "Not Found in DNS", {}),
        ("sip:bob@10.0.0.2;transport=sctp", "Transport Not Supported", {}),
        ("sip:bob@10.0.0.2", "Too Many Requests Waiting", {"max_transactions": 0}),
        ("sip:bob@10.0.0.2", "Too Many Requests Waiting", {"before": crowd}),
    ],
)
def test_why_a_request_has_no_way_to_go(uri, cause, options):
    """Covers RFC 3261 §8.1.3.1."""
    assert failure(uri, **options) == [(503, cause)]


def test_why_a_request_was_lost():
    """Covers RFC 3261 §8.1.3.1: what was sent, and failed."""
    stack, asker = lone_stack(), Listener()
    stack.request(bare("INVITE", "sip:bob@10.0.0.2;transport=tcp"), asker, 0.0)
    [order] = stack.take_orders()
    stack.flow_failed(order.flow, 0.1)
    assert asker.heard == [(503, "Not Reachable")]
