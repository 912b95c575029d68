"""A user agent learns its GRUUs from the answers to its REGISTER, and knows when they are good."""

import pytest
from support.rtmfp.link import Link
from support.sip.cores import TakesAll
from support.sip.elements import PORT, random_source
from support.sip.homes import ALICE, BOB, HOME, Home, Member, request, store

from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener, Stack
from p2psip.ua.registering.own_gruus import OwnGruus

INSTANCE = "urn:uuid:00000000-0000-1000-8000-000a95a0e128"
PUBLIC, TEMPORARY = "sip:bob@home;gr=x", "sip:tgruu.1@home;gr"


class Script(TakesAll, Home):
    """A home that answers each REGISTER with the next of `answers`: (status, what is beside)."""

    def __init__(self, link, *answers, expires=1000):
        super().__init__(link)
        self.answers, self.requests, self.expires = list(answers), [], expires
        self.stack.core = self

    def on_request(self, server, request, now):
        self.requests.append((now, request))
        status, beside = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        contact = f'<{request.contacts[0].uri}>;+sip.instance="<{INSTANCE.upper()}>"{beside}'
        contact += f";expires={self.expires}"
        headers = [("Contact", '<sip:x@far>;+sip.instance="<other>";pub-gruu="sip:x@y;gr=1"')]
        headers += [("Contact", contact)] if status == 200 else []
        server.respond(response_to(request, status, to_tag="t", headers=headers), now)


def beside(public=PUBLIC, temporary=TEMPORARY):
    told = f';pub-gruu="{public}"' if public else ""
    return told + (f';temp-gruu="{temporary}"' if temporary else "")


def world(*answers, **options):
    link = Link()
    home = Script(link, *answers, **options)
    registration = Member(link, BOB, "bob").register(link.now, instance=INSTANCE)
    link.run(until=1.0)
    return link, home, registration


def texts(registration, now):
    both = (registration.gruu(now), registration.gruu(now, private=True))
    return tuple(each and str(each) for each in both)


@pytest.mark.parametrize(
    ("told", "public", "private"),
    [
        (beside(), PUBLIC, TEMPORARY),
        (beside(temporary=""), PUBLIC, None),
        (beside(public=""), TEMPORARY, TEMPORARY),
        ("", None, None),
        (beside("http://x;gr", "sip:no@home"), None, None),
        (beside('sip:b@home;gr=\\"q', "<"), None, None),
        (beside("sip:a%62c@home;gr=1;x=y;lr"), "sip:abc@home;gr=1;x=y;lr", TEMPORARY),
    ],
)
def test_there_may_be_both_either_or_none(told, public, private):
    """Covers RFC 5627 §4.2 [either-both-or-none], §4.4 [anonymous-is-temporary].

    Covers RFC 5627 §4.1 [supports-gruu] [names-its-instance] [suggests-no-gruu].
    """
    link, home, registration = world((200, told))
    assert texts(registration, link.now) == (public, private)
    [(_, asked)] = home.requests
    assert "gruu" in asked.headers.all("Supported")
    [contact] = asked.contacts
    assert contact.instance == INSTANCE and contact.param("pub-gruu") is None


def test_a_refresh_may_change_them_and_a_refusal_does_not():
    """Covers RFC 5627 §4.2 [public-may-change], and §4.1 [keeps-call-id] [same-call-id].

    And RFC 3261 §8.1.1.4 [one-name-for-registering].
    """
    other = beside("sip:bob@home;gr=y", "sip:tgruu.2@home;gr")
    link, home, registration = world((200, beside()), (200, other), (500, ""), (200, other))
    link.run(until=810.0)
    assert len(home.requests) == 2
    assert texts(registration, link.now) == ("sip:bob@home;gr=y", "sip:tgruu.2@home;gr")
    link.run(until=1605.0)
    assert len(home.requests) >= 3 and texts(registration, link.now)[0] == "sip:bob@home;gr=y"
    assert len({request.call_id for _, request in home.requests}) == 1


def test_a_refresh_that_brings_none_takes_them_away():
    """Covers RFC 5627 §4.2 [either-both-or-none] [public-may-change]."""
    link, _, registration = world((200, beside()), (200, ""))
    assert texts(registration, link.now) == (PUBLIC, TEMPORARY)
    link.run(until=810.0)
    assert texts(registration, link.now) == (None, None)


def test_the_last_moment_of_a_registration_is_its_end():
    """Covers RFC 5627 §4.4 [active-registration] [none-of-a-lapsed-one]."""
    gruus = OwnGruus(INSTANCE)
    contact = f'<sip:bob@far>;+sip.instance="<{INSTANCE}>"{beside()}'
    gruus.learn(Response(200, "OK", Headers([("Contact", contact)])), 1000.0)
    assert str(gruus.usable(999.9, private=False)) == PUBLIC
    assert gruus.usable(1000.0, private=False) is None


def test_none_is_used_once_the_registration_has_lapsed():
    """Covers RFC 5627 §4.4 [active-registration] [none-of-a-lapsed-one]."""
    link, _, registration = world((200, beside()), (500, ""))
    assert texts(registration, 999.0) == (PUBLIC, TEMPORARY)
    assert texts(registration, 1000.1) == (None, None)
    registration.close(link.now)
    assert texts(registration, link.now) == (None, None)


@pytest.mark.parametrize(
    ("expires", "told", "at"),
    [
        (3600, beside(), 2880),
        (100, beside(), 68),
        (80, beside(), 48),
        (60, beside(), 30),
        (100, beside(temporary=""), 80),
    ],
)
def test_it_is_refreshed_long_enough_before_its_end(expires, told, at):
    """Covers RFC 5627 §4.2 [refreshed-in-time] [halfway-if-short]."""
    link, home, _ = world((200, told), expires=expires)
    link.run(until=at + 1.0)
    first, second, *_ = (when for when, _ in home.requests)
    assert second - first == pytest.approx(at, abs=0.5)


@pytest.mark.parametrize("transport", ["TCP", "TLS", "UDP"])
def test_a_gruu_is_a_contact_as_it_is(transport):
    """Covers RFC 5627 §4.2 [gruu-stays-as-it-is] [no-parameters-of-ours]."""
    listeners = [Listener(name, HOME, PORT) for name in ("UDP", "TCP", "TLS")]
    stack = Stack(random=random_source("x"), listeners=listeners)
    gruu = Uri.parse(PUBLIC.replace("home", HOME))
    assert stack.contact_by(gruu, transport) is gruu
    assert stack.contact_by(stack.contact("bob"), "TCP").param("transport") == "tcp"


def test_two_phones_at_one_registrar():
    """Covers RFC 5627 §4.4: what the registrar gives leads back."""
    link = Link()
    Home(link, users=store("alice", "bob"))
    alice, bob = Member(link, ALICE, "alice"), Member(link, BOB, "bob")
    registration = bob.register(link.now)
    link.run(until=1.0)
    gruu = registration.gruu(link.now)
    bob.contact = gruu
    call = alice.agent.invite(
        Address(gruu),
        Address(alice.home.replace(user="alice")),
        alice.contact,
        b"offer",
        alice,
        link.now,
        credentials=alice.login,
    )
    link.run(until=2.0)
    assert call.is_up and str(call.dialog.target) == str(gruu)
    call.bye(link.now)
    link.run(until=3.0)
    assert bob.events()[-1] == "ended"


def test_a_gruu_is_reached_by_its_domain_whatever_connection_there_is():
    """Covers RFC 5627 §4.5 [no-mending]."""
    stack = Stack(random=random_source("x"), listeners=[Listener("TCP", HOME, PORT)])
    by = [Flow("TCP", (BOB, 40001), (HOME, PORT))]
    for uri, ways in ((f"sip:bob@{BOB}", by), (PUBLIC, None)):
        found = stack.dialog_flows(request("BYE", uri), by, by, lambda request: True)
        assert (found and found[:1]) == ways
