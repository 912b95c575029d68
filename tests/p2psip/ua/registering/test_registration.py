"""A user agent's registration, with a real registrar at the other end."""

from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.rtmfp.link import Link, calm, storm
from support.sip.cores import TakesAll
from support.sip.elements import PORT, random_source
from support.sip.homes import BOB, HOME, Home, Member, store

from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Listener, Stack
from p2psip.ua.registering.registration import (
    MAX_EXPIRES,
    RETRY_MAX,
    RETRY_MIN,
    Registration,
    State,
)

AOR = Uri.parse("sip:bob@home")


def world(weather=None, *, users=("bob",), password="zanzibar", transport="UDP"):
    link = Link(weather or calm())
    home = Home(link, users=store(*users))
    return link, home, Member(link, BOB, "bob", password=password, transport=transport)


class Owner:
    """The owner of a registration, which has no questions."""

    def on_registered(self, registration, expires, now):
        pass

    def on_failed(self, registration, status, reason, now):
        pass


class Script(TakesAll, Home):
    """A home that answers each REGISTER with the next of `answers`: (status, headers) or None."""

    def __init__(self, link, *answers):
        super().__init__(link)
        self.answers, self.requests = list(answers), []
        self.stack.core = self

    def on_request(self, server, request, now):
        self.requests.append((now, request))
        answer = self.answers.pop(0) if self.answers else (200, ())
        if answer is not None:
            status, headers = answer
            server.respond(response_to(request, status, to_tag="t", headers=headers), now)

    @property
    def asked(self):
        """The Expires of each REGISTER."""
        return [request.expires for _, request in self.requests]


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
def test_a_registration_is_kept_alive_and_taken_back(transport):
    """Covers RFC 3261 §10.2.4 and §10.2.2 [removes-in-time]."""
    link, home, bob = world(transport=transport)
    registration = bob.register(link.now, expires=100)
    assert registration.state is State.TRYING and registration.pending
    link.run(until=1.0)
    assert bob.heard == [100] and registration.state is State.REGISTERED
    assert not registration.pending
    for _ in range(50):
        link.run(until=link.now + 20)
        assert home.registrar.count(link.now) == 1
    assert bob.heard == [100]  # told once
    registration.close(link.now)
    registration.close(link.now)
    link.run()
    assert home.registrar.count(link.now) == 0 and not registration.pending
    assert bob.idle and home.idle and bob.registrations.deadline is None


def test_a_new_address_of_ours_takes_the_place_of_the_old_one():
    """Covers RFC 3261 §10.2.2: one REGISTER adds a binding and removes another.

    Covers RFC 3261 §10.2.4 [own-binding-alone]: whatever else the answer tells of.
    """
    link = Link(calm())
    others = [("Contact", "<sip:bob@192.0.2.66>;expires=9")]
    home, bob = Script(link, *[(200, others)] * 4), Member(link, BOB, "bob")
    registration = bob.register(link.now)
    bob.registrations.move("203.0.113.7", 4242, link.now)  # while the first is under way
    link.run(until=1.0)
    registration.move("203.0.113.7", 4242, link.now)
    assert not registration.pending  # nothing has changed
    registration.move("203.0.113.9", 4242, link.now)
    link.run(until=2.0)
    registration.close(link.now)
    link.run()
    told = [
        [(each.uri.host, each.param("expires")) for each in request.contacts]
        for _, request in home.requests
    ]
    first = home.requests[0][1].contacts[0].uri.host
    assert told == [
        [(first, None)],
        [("203.0.113.7", None), (first, "0")],
        [("203.0.113.9", None), ("203.0.113.7", "0")],
        [("203.0.113.9", None)],
    ]
    assert home.asked[-1] == 0


def test_a_wrong_password_is_the_end_of_it():
    """Covers RFC 3261 §10.2.7: what was never granted is not asked for again."""
    link, home, bob = world(password="sesame")
    registration = bob.register(link.now)
    link.run()
    assert bob.heard == [-401] and registration.state is State.FAILED
    registration.close(link.now)
    link.run()
    assert bob.idle and home.idle and home.registrar.count(link.now) == 0


def test_a_registrar_that_is_silent_is_a_408():
    """Covers RFC 3261 §10.2.7."""
    link = Link()
    bob = Member(link, BOB, "bob")
    bob.register(link.now)
    link.run()
    assert bob.heard == [-408]


def test_an_interval_too_brief_is_lengthened():
    """Covers RFC 3261 §10.2.8 [asks-longer]."""
    link = Link()
    home = Script(link, (423, [("Min-Expires", 60)]))
    bob = Member(link, BOB, "bob")
    bob.register(link.now, expires=10)
    link.run(until=1.0)
    assert home.asked == [10, 60] and bob.heard == [60]


@pytest.mark.parametrize("minimum", ["5", "10", str(MAX_EXPIRES + 1)])
def test_a_423_that_makes_no_sense_is_a_refusal(minimum):
    """Covers RFC 3261 §10.2.8: no endless haggling."""
    link = Link()
    home = Script(link, (423, [("Min-Expires", minimum)]))
    bob = Member(link, BOB, "bob")
    bob.register(link.now, expires=10)
    link.run(until=1.0)
    assert home.asked == [10] and bob.heard == [-423]


def test_a_failed_refresh_is_tried_again_ever_more_slowly():
    """Covers RFC 3261 §10.2.7 [not-at-once].

    Covers RFC 3261 §10.2 [same-call-id] [cseq-by-one], §10.2.4 [same-call-id].
    """
    link = Link()
    home = Script(link, (200, ()), *[(500, ())] * 9)
    bob = Member(link, BOB, "bob")
    bob.register(link.now, expires=100)
    link.run(until=1500.0)
    assert bob.heard == [100, -500, 100]
    times = [at for at, _ in home.requests][1:11]
    gaps = [round(b - a) for a, b in pairwise(times)]
    assert gaps == [min(RETRY_MIN * 2**n, RETRY_MAX) for n in range(9)]
    cseqs = [request.cseq.number for _, request in home.requests]
    assert cseqs == list(range(1, len(cseqs) + 1))
    assert len({request.call_id for _, request in home.requests}) == 1


@pytest.mark.parametrize(
    ("headers", "granted"),
    [
        ([("Contact", f"<sip:bob@{BOB}:{PORT}>;expires=50"), ("Expires", 9)], 50),
        ([("Contact", f"<sip:x@y>;expires=7, <sip:bob@{BOB}:{PORT}>"), ("Expires", 60)], 60),
        ([("Contact", "*"), ("Expires", 70)], 70),
        ([("Contact", "<sip:bob@203.0.113.7:1024>;expires=40")], 40),
        ([("Contact", "<sip:x@y>;expires=7, <sip:z@y>;expires=8")], 100),
        ([("Contact", f"<sip:x@[y>;expires=7, <sip:bob@{BOB}:{PORT}>;expires=50")], 50),
        ([("Contact", f'<sip:bob@{BOB}:{PORT}>;expires=50, "x <sip:y@z>')], 50),
        ([("Contact", "<sip:x@[y>"), ("Contact", "<sip:z@y>;expires=8")], 100),
        ([("Contact", f"<sip:bob@{BOB}:{PORT}>;expires=50"), ("Require", '"')], 50),
        ([("Contact", "<sip:bob@y>;expires=0, <sip:bob@z>;expires=40, <sip:x@y>;expires=9")], 40),
        ([("Contact", "<sip:bob@y>;expires=30, <sip:bob@z>;expires=40")], 30),
        ([("Contact", "<sip:bob@y>;expires=30, <sip:bob@z>;expires=40"), ("Expires", 60)], 60),
        ([("Contact", "<sip:bob@y>;expires=300, <sip:bob@z>;expires=400")], 100),
        ([], 100),
    ],
)
def test_what_was_granted_is_said_in_one_of_three_ways(headers, granted):
    """Covers RFC 3261 §10.2.4, and Field §"Contacts that a registrar rewrites"."""
    link = Link()
    Script(link, (200, headers))
    bob = Member(link, BOB, "bob")
    registration = bob.register(link.now, expires=100)
    link.run(until=1.0)
    assert bob.heard == [granted]
    assert registration.deadline == pytest.approx(0.8 * granted, abs=0.1)


@pytest.mark.parametrize(
    ("reg_ids", "granted"), [(("1", "1"), 60), (("1", "2"), 40), (("2", "3"), 7)]
)
def test_of_several_contacts_the_one_of_our_instance_counts(reg_ids, granted):
    """Covers Field §"Contacts that a registrar rewrites": whatever address it has in the answer."""
    link = Link()
    name = "urn:uuid:00000000-0000-4000-8000-00000000000A"
    texts = ("<sip:bob@y>;expires=40", "<sip:bob@z>;expires=60")
    ours = [
        f'{text};reg-id={reg_id};+sip.instance="<{name.lower()}>"'
        for text, reg_id in zip(texts, reg_ids, strict=True)
    ]
    other = '<sip:bob@w>;expires=7;reg-id=1;+sip.instance="<urn:uuid:1>"'
    Script(link, (200, [("Contact", ", ".join([other, *ours]))]))
    bob = Member(link, BOB, "bob")
    bob.register(link.now, expires=100, instance=name)
    link.run(until=1.0)
    assert bob.heard == [granted]


def test_a_grant_of_nothing_is_not_renewed_without_pause():
    link = Link()
    home = Script(link, *[(200, [("Expires", 0)])] * 100)
    Member(link, BOB, "bob").register(link.now)
    link.run(until=60.0)
    assert len(home.requests) <= 60 / RETRY_MIN + 1


@pytest.mark.parametrize(("status", "expected"), [(200, [3600, 0]), (403, [3600])])
def test_closing_waits_for_the_answer_under_way(status, expected):
    """Covers RFC 3261 §10.2: no second REGISTER before the first is answered; §10.2.2."""
    link = Link()
    home = Script(link, (status, ()))
    bob = Member(link, BOB, "bob")
    registration = bob.register(link.now)
    registration.close(link.now)
    bob.registrations.discard(registration)
    assert len(bob.registrations) == 0 and registration.pending
    link.run()
    assert home.asked == expected and bob.heard == [] and not registration.pending


def test_closing_waits_for_a_refresh_under_way():
    """Covers RFC 3261 §10.2."""
    link = Link()
    home = Script(link)
    bob = Member(link, BOB, "bob")
    registration = bob.register(link.now, expires=100)
    link.run(until=1.0)
    link.run(until=registration.deadline)
    assert registration.pending and home.asked == [100]
    registration.close(link.now)
    link.flush()
    sent = [data for _, source, _, (_, data) in link.sent if source == BOB]
    assert [parse_message(data).expires for data in sent] == [100, 100]
    link.run()
    assert home.asked == [100, 100, 0]


def test_the_lifetime_runs_from_the_question_not_from_the_answer():
    """Covers RFC 3261 §10.2.4: an answer that is late does not make the binding last longer."""
    link = Link(lambda data, source, destination: (10.0 if source == HOME else 0.01,))
    home = Script(link)
    bob = Member(link, BOB, "bob")
    bob.register(link.now, expires=100)
    link.run(until=81.0)
    assert bob.heard == [100] and len(home.requests) == 2


@given(st.randoms(use_true_random=False), st.integers(0, 400))
def test_whatever_the_weather_the_two_ends_agree_in_the_end(random, until):
    """Covers RFC 3261 §10.2.2: after closing nothing stays behind, unless nobody could tell."""
    link, home, bob = world(storm(random, loss=0.3))
    registration = bob.register(link.now, expires=60)
    link.run(until=until / 2)
    state = registration.state
    event(f"{state} when closed")
    if state is State.REGISTERED:
        assert home.registrar.count(link.now) == 1 or registration.pending
    could_tell = not registration.pending and bob.heard[-1:] != [-408]
    registration.close(link.now)
    link.weather = calm()
    link.run()
    assert home.registrar.count(link.now) == 0 or not could_tell
    assert bob.idle and home.idle and bob.deadline is None and home.deadline is None


def test_a_register_looks_as_it_should():
    """Covers RFC 3261 §10.2 [mandatory-fields] [no-action]: and From equal to To."""
    link, _home, bob = world()
    bob.register(link.now)
    link.flush()
    [(_, _, to, (transport, data))] = link.sent
    message = parse_message(data)
    assert (to, transport, str(message.uri)) == (HOME, "UDP", "sip:home")
    assert message.from_.uri == message.to.uri == AOR
    assert message.to.tag is None and message.from_.tag
    assert str(message.contacts[0].uri) == f"sip:bob@{BOB}:{PORT}"
    assert [name for name, _ in message.contacts[0].params] == ["+sip.instance", "reg-id"]
    assert message.call_id and message.cseq == (1, message.method) == (1, "REGISTER")
    assert (message.max_forwards, message.expires) == (70, 3600)


def test_a_refresh_waits_for_the_answer_under_way():
    """Covers RFC 3261 §10.2 [one-at-a-time]: our address has changed just before it falls due."""
    link = Link()
    home, bob = Script(link, (200, ()), None), Member(link, BOB, "bob")
    registration = bob.register(link.now, expires=100)
    link.run(until=79.0)
    bob.tick(link.now)  # its look-ups know the time by that
    registration.move("203.0.113.7", 4242, link.now)
    link.run(until=110.0)
    assert registration.pending
    assert {request.cseq.number for _, request in home.requests} == {1, 2}
    link.run(until=130.0)
    assert bob.heard == [100, -408, 100]


def test_a_route_that_was_recorded_is_none_of_ours():
    """Covers RFC 3261 §10.2 [no-route-set]."""
    link = Link()
    home = Script(link, (200, [("Record-Route", "<sip:away;lr>")]))
    bob = Member(link, BOB, "bob")
    bob.register(link.now, expires=100, route=[Uri.parse(f"sip:{HOME};lr")])
    link.run(until=100.0)
    routes = [[str(each.uri) for each in request.routes] for _, request in home.requests]
    assert len(routes) == 2 and routes[1] == routes[0] == [f"sip:{HOME};lr"]


def test_a_refresh_goes_to_the_server_that_granted():
    """Covers RFC 3261 §10.2.4 [same-server]: the next in line has its turn when that one fails."""
    stack = Stack(
        random=random_source("bob"), listeners=[Listener("UDP", BOB, PORT)], trusting=True
    )
    one, two = (Flow("UDP", (f"10.0.8.{number}", PORT)) for number in (1, 2))
    handler, me = Owner(), Address(AOR)
    registration = Registration(stack, me, stack.contact("bob"), AOR, handler, random_source("r"))
    registration.start(0.0)

    def ask(now, *found):
        """The flow that a REGISTER takes, once its servers are found; and the REGISTER."""
        [locate] = stack.take_orders()
        stack.located(locate.token, found, now)
        [sent] = stack.take_orders()
        return sent.flow, parse_message(sent.data)

    flow, message = ask(0.0, two, one)
    assert flow == two
    stack.receive(bytes(response_to(message, 200, to_tag="t")), two, 0.0)
    registration.tick(3000.0)
    flow, message = ask(3000.0, one, two)
    assert flow == two
    stack.flow_failed(two, 3000.0)
    [sent] = stack.take_orders()
    assert sent.flow == one
    stack.receive(bytes(response_to(parse_message(sent.data), 200, to_tag="t")), one, 3000.0)
    registration.tick(6000.0)
    assert ask(6000.0, two, one)[0] == one


@pytest.mark.parametrize("scheme", ["sip", "sips"])
def test_a_registration_has_one_contact_of_the_scheme_of_its_name(scheme):
    """Covers RFC 5630 §5.1.1.1 [contact-tells-our-wish] [aor-as-its-contact] [one-version]."""
    stack = Stack(random=random_source("bob"), listeners=[Listener("TLS", BOB, 5061)])
    contact, aor = stack.contact("bob", "TLS"), Uri.parse(f"{scheme}:bob@10.0.0.1:5061")
    route = [Uri.parse("sips:10.0.0.1;lr")]
    new = Registration(stack, Address(aor), contact, aor, Owner(), random_source("r"), route=route)
    new.start(0.0)
    [sent] = stack.take_orders()
    message = parse_message(sent.data)
    [told] = message.contacts
    assert {each.uri.scheme for each in (told, message.from_, message.to)} == {scheme}


def test_a_secure_name_has_a_secure_contact():
    """Covers RFC 3261 §10.2.1 [sips-contact], §10.2 [no-user-in-request-uri]."""
    stack = Stack(random=random_source("bob"), listeners=[Listener("TLS", BOB, 5061)])
    contact, aor = stack.contact("bob", "TLS"), Uri.parse("sips:bob:secret@home")
    route = [Uri.parse("sips:10.0.0.1;lr")]
    Registration(stack, Address(aor), contact, aor, Owner(), random_source("r"), route=route).start(
        0.0
    )
    [sent] = stack.take_orders()
    message = parse_message(sent.data)
    assert str(message.uri) == "sips:home"
    assert str(message.contacts[0].uri) == f"sips:bob@{BOB}:5061"


def test_a_persistent_registration_begins_again_after_a_refusal():
    """A trunk whose provider is down at the start is registered when it is back."""
    link = Link(calm())
    home, bob = Script(link, (503, ()), (503, ())), Member(link, BOB, "bob")
    registration = bob.register(link.now, persistent=True)
    link.run(until=RETRY_MIN - 1)
    assert registration.state is State.FAILED and len(home.requests) == 1
    link.run(until=4 * RETRY_MIN)
    assert registration.state is State.REGISTERED and len(home.requests) == 3
    assert bob.heard == [-503, 3600]
