"""Contacts at a foreign place are asked once, and get nothing else before they have answered."""

import pytest
from support.sip.elements import PORT
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    HOME,
    OUTSIDER,
    Home,
    finals,
    forwarded,
    register,
    request,
    signed,
    store,
)

from p2psip.server import contact_probe
from p2psip.server.registrar import UNPROVEN_EXPIRES
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow

AOR = Uri.parse("sip:bob@home")


def bound(home, now=0.0):
    return [str(binding.contact.uri) for binding in home.registrar.bindings(AOR, now)]


def asked(sent):
    """[(request, address, transport)] of what was asked of contacts."""
    return [each for each in sent if isinstance(each[0], Request)]


def enrol(home, contact, cseq=1, source=BOB, now=0.0, user="bob"):
    """Register by UDP; what is sent."""
    message = register(user, contact, cseq=cseq, call=user)
    via = f"SIP/2.0/UDP {source};rport;branch=z9hG4bK{user}{cseq}"
    message = message.replace(headers=message.headers.with_("Via", via))
    return home.hear(message, source=source, now=now)


@pytest.mark.parametrize("status", [200, 404, 486, 501])
def test_a_foreign_contact_is_called_once_it_has_answered(status):
    home = Home()
    sent = enrol(home, f"<sip:bob@{CAROL}>")
    [(question, to, how)] = asked(sent)
    assert (question.method, to, how) == ("OPTIONS", CAROL, "UDP")
    assert finals(sent) == [200] and bound(home) == []
    assert finals(home.hear(request("INVITE", "sip:bob@home", OUTSIDER))) == [480]
    home.hear(response_to(question, status, to_tag="x"), source=CAROL, now=1.0)
    assert bound(home, 1.0) == [f"sip:bob@{CAROL}"]
    message = request("INVITE", "sip:bob@home", OUTSIDER, call="2")
    assert forwarded(home.hear(message, now=1.0)) == [(f"sip:bob@{CAROL}", CAROL, "UDP")]


def test_the_question_is_never_repeated():
    home = Home()
    enrol(home, f"<sip:bob@{CAROL}>")
    assert asked(home.wait(1000.0)) == []
    assert home.told == [("contact-silent", f"sip:bob@{CAROL}")] and home.idle
    assert home.registrar.count(32.0) == 0


def test_a_contact_that_has_not_answered_is_bound_for_a_minute():
    """So that a phone whose question was lost is asked again soon."""
    home = Home()
    [response] = [m for m, _, _ in enrol(home, f"<sip:bob@{CAROL}>") if isinstance(m, Response)]
    assert response.contacts[0].param("expires") == str(UNPROVEN_EXPIRES)
    home.wait(45.0)
    [(question, _, _)] = asked(enrol(home, f"<sip:bob@{CAROL}>", 2, now=45.0))
    home.hear(response_to(question, 200, to_tag="x"), source=CAROL, now=46.0)
    sent = enrol(home, f"<sip:bob@{CAROL}>", 3, now=90.0)
    assert asked(sent) == [] and sent[0][0].contacts[0].param("expires") == "3600"
    assert bound(home, 3600.0) == [f"sip:bob@{CAROL}"]


def test_only_the_answer_to_its_own_branch_counts():
    home = Home()
    [(question, _, _)] = asked(enrol(home, f"<sip:bob@{CAROL}>"))
    for text in ("z9hG4bKguess", question.via.branch[:-1] + "!"):
        via = question.via.with_param("branch", text)
        forged = question.replace(headers=question.headers.with_("Via", via))
        home.hear(response_to(forged, 200, to_tag="x"), source=BOB)
    home.hear(response_to(question, 100), source=CAROL)  # somebody is looking for it
    assert bound(home) == []
    assert len(question.via.branch) >= 24


@pytest.mark.parametrize(
    "contact",
    [
        f"<sip:bob@{BOB};maddr={CAROL}>",
        f"<sip:bob@{BOB};maddr={FAR};transport=udp>",
        "<sip:bob@far>",
        f"<sip:bob@[::ffff:{CAROL}]>",
    ],
)
def test_foreign_is_where_the_request_would_go(contact):
    home = Home()
    sent = enrol(home, contact)
    assert bound(home) == [] and len(asked(sent)) == 1
    assert finals(home.hear(request("INVITE", "sip:bob@home", OUTSIDER))) == [480]


@pytest.mark.parametrize("contact", [f"<sip:x@{BOB}:9>", f"<sip:x@[::ffff:{BOB}]>"])
def test_the_source_itself_is_not_asked(contact):
    home = Home()
    assert asked(enrol(home, contact)) == [] and len(bound(home)) == 1


def test_where_the_flow_is_the_way_nobody_is_asked():
    """Covers RFC 5626 §5.3: a connection, or with --nat the source of the datagram."""
    home = Home(nat=True)
    assert asked(enrol(home, f"<sip:bob@{CAROL}>")) == [] and len(bound(home)) == 1
    home = Home()
    sent = home.hear(register(contact=f"<sip:bob@{CAROL}>"), source=BOB, transport="TCP")
    assert asked(sent) == [] and len(bound(home)) == 1
    sent = enrol(home, f"<sip:bob@{CAROL}>", 2)  # by UDP now, and that proves nothing
    assert len(asked(sent)) == 1 and bound(home) == []


@pytest.mark.parametrize("contact", [f"<sip:bob@{CAROL};transport=tcp>", "<sip:bob@tcp.far>"])
def test_no_connection_is_opened_to_a_stranger(contact):
    """The system would repeat its SYN."""
    home = Home()
    message = register(contact=contact)
    home.stack.receive(bytes(message), Flow("UDP", (BOB, PORT), (HOME, PORT)), 0.0)
    for order in home.stack.take_orders():
        if hasattr(order, "token"):
            home.stack.located(order.token, [Flow("TCP", (CAROL, PORT))], 0.0)
    assert asked(home.said()) == [] and bound(home) == []


def test_a_long_contact_is_asked_by_one_datagram():
    """A request above 1300 octets would go by TCP (RFC 3261 §18.1.1)."""
    home = Home()
    [(_, to, how)] = asked(enrol(home, f"<sip:bob@{CAROL};x={'y' * 900}>"))
    assert (to, how) == (CAROL, "UDP") and asked(home.wait(100.0)) == []


def test_an_answer_is_called_where_it_came_from_whatever_the_name_means_later():
    home = Home()
    [(question, _, _)] = asked(enrol(home, "<sip:bob@far>"))
    home.hear(response_to(question, 200, to_tag="x"), source=FAR)
    home.hosts["far"] = [ALICE]
    sent = home.hear(request("INVITE", "sip:bob@home", OUTSIDER))
    assert [to for _, to, _ in forwarded(sent)] == [FAR]


def test_one_question_for_a_register_and_the_next_after_an_answer():
    home = Home()
    contacts = ", ".join(f"<sip:bob@10.0.7.{n}>" for n in range(10))
    [(question, to, _)] = asked(enrol(home, contacts))
    for _ in range(9):
        [(question, after, _)] = asked(home.hear(response_to(question, 200, to_tag="x"), source=to))
        assert after != to
        to = after
    home.hear(response_to(question, 200, to_tag="x"), source=to)
    assert len(bound(home)) == 10


def test_ten_silent_victims_are_sent_less_than_the_attacker_sends():
    """Every REGISTER, whatever is in it, costs others one datagram at most, and shorter ones."""
    home = Home(users=store("bob"))
    first = register()
    challenged = next(m for m, _, _ in home.hear(first, source=BOB) if isinstance(m, Response))
    spent = [0, 0]
    drawn = {}
    for number in range(200):
        contacts = ", ".join(f"<sip:{'u' * 40}{n}@10.0.8.{n % 10}>" for n in range(10))
        message = signed(register(contact=contacts), challenged, nc=number + 1, cseq=number + 2)
        sent = home.hear(message, source=BOB, now=number / 10)
        sent += home.hear(request("INVITE", "sip:bob@home", OUTSIDER, call=f"i{number}"))
        spent = [spent[0] + 1, spent[1] + len(bytes(message))]
        for out, to, _ in asked(sent):
            assert out.method == "OPTIONS"
            packets, octets = drawn.get(to, (0, 0))
            drawn[to] = packets + 1, octets + len(bytes(out))
    packets, octets = map(sum, zip(*drawn.values(), strict=True))
    assert packets <= spent[0] and octets <= spent[1]
    assert len(home.registrar._probes) <= contact_probe.MAX_OF_USER


def test_a_host_is_asked_so_many_questions_at_a_time_and_no_more():
    home = Home()
    for number in range(3 * contact_probe.MAX_OF_HOST):
        enrol(home, f"<sip:u@{CAROL}:{2000 + number}>", user=f"u{number}")
    assert len(home.registrar._probes) == contact_probe.MAX_OF_HOST
    home.wait(100.0)
    assert not len(home.registrar._probes) and not home.registrar._probes._of_host
    assert asked(enrol(home, f"<sip:u@{CAROL}>", user="late", now=100.0))


def test_who_connects_and_hangs_up_again_and_again_takes_no_more_than_a_share():
    """The host is the attacker's own; the room for questions is everybody's."""
    home = Home()
    for number in range(3 * contact_probe.VOUCHED_OF_HOST):
        flow = Flow("TCP", (BOB, 40000 + number), (HOME, PORT))
        message = register(f"u{number // 20}", f"<sip:u@{BOB}:{number + 1}>", call=f"c{number}")
        home.stack.receive(bytes(message), flow, 0.0)
        home.stack.flow_failed(flow, 0.0)
        home.said()
    assert len(home.registrar._probes) == contact_probe.VOUCHED_OF_HOST
    assert max(home.registrar._probes._of_user.values()) == contact_probe.VOUCHED_OF_USER
    assert home.registrar.count(0.0) <= contact_probe.VOUCHED_OF_HOST
    assert asked(enrol(home, f"<sip:bob@{CAROL}>"))


@pytest.mark.sources
def test_a_user_and_all_of_them_may_ask_so_much(monkeypatch):
    monkeypatch.setattr(contact_probe, "MAX_QUESTIONS", 5)
    home = Home()
    for number in range(20):
        enrol(home, f"<sip:u@10.0.5.{number}>", number + 1)
    assert len(home.registrar._probes) == contact_probe.MAX_OF_USER
    for number in range(20):
        enrol(home, f"<sip:u@10.0.6.{number}>", user=f"u{number}")
    assert len(home.registrar._probes) == 5


def test_a_register_that_asks_for_everything_draws_no_more_than_thrice_its_size():
    """The source of a datagram may be forged: RFC 3261 §10.3 step 8 has no limit."""
    home = Home()
    flow = Flow("TCP", (BOB, PORT), (HOME, PORT))
    for number in range(10):
        message = register(contact=f"<sip:{'u' * 900}@{number}>", cseq=number + 1)
        home.stack.receive(bytes(message), flow, 0.0)
    home.said()
    query = register(contact=None, cseq=20)
    [(whole, _, _)] = home.hear(query, source=BOB, transport="TCP")
    assert len(whole.contacts) == 10
    query = register(contact=None, cseq=21)
    [(short, _, _)] = home.hear(query, source=CAROL)
    assert short.status == 200 and len(bytes(short)) < 3 * len(bytes(query))


# Whose place it is


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
@pytest.mark.parametrize(
    "contact",
    [f"sip:+15551234@{HOME}:5060", "sip:alice@home", f"sip:{HOME};transport=tcp"],
)
def test_nobody_is_bound_to_our_own_place(transport, contact):
    """Covers RFC 3261 §10.3 step 4: all of the REGISTER is refused."""
    home = Home()
    text = f"<sip:bob@{BOB}>, <{contact}>"
    sent = home.hear(register(contact=text), source=BOB, transport=transport)
    assert finals(sent) == [403] and home.registrar.count(0.0) == 0


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
def test_a_users_own_address_is_kept_and_never_called(transport):
    """Covers RFC 3261 §10.3 step 8 and RFC 4475 §3.3.14: not even by the question of a probe."""
    home = Home()
    contact = "<sip:bob@home?Route=%3Csip:sip.example.com%3E>"
    [(kept, _, _)] = home.hear(register(contact=contact), source=BOB, transport=transport)
    assert [str(each.uri) for each in kept.contacts] == [contact[1:-1]]
    home.stack.flow_failed(Flow("TCP", (BOB, 5060), (HOME, 5060)), 0.1)
    assert finals(home.hear(request("INVITE", "sip:bob@home", OUTSIDER))) == [480]
    assert home.said() == []


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
def test_another_users_contact_is_no_claim_to_that_users_calls(transport):
    home = Home()
    enrol(home, f"<sip:bob@{BOB}>")
    message = register("eve", f"<sip:bob@{BOB}>", call="e")
    home.hear(message, source=CAROL, transport=transport)
    sent = home.hear(request("INVITE", "sip:bob@home", OUTSIDER))
    assert [to for _, to, _ in forwarded(sent)] == [BOB]
    sent = home.hear(request("INVITE", "sip:eve@home", OUTSIDER, call="2"))
    assert [to for _, to, _ in forwarded(sent)] == ([CAROL] if transport == "TCP" else [])
