"""A registration with outbound: what it says, its keep-alives, and how it comes back."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmfp.link import Link
from support.sip.cores import TakesAll
from support.sip.elements import PORT
from support.sip.homes import BOB, CAROL, HOME, Home, Member, pong

from p2psip.nat.stun import (
    BINDING,
    StunClass,
    StunMessage,
    StunType,
    is_stun,
    write_error,
)
from p2psip.sip.build import response_to
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow
from p2psip.ua.registering.keep_alive import MAX_SECONDS, KeepAlives, retry_delay
from p2psip.ua.registering.registration import State

INSTANCE = "urn:uuid:00000000-0000-1000-8000-000a95a0e128"
OUTBOUND = ("Require", "outbound")


class Script(TakesAll, Home):
    """A home that answers each REGISTER with the next of `answers`: (status, headers)."""

    def __init__(self, link, *answers):
        super().__init__(link)
        self.answers, self.requests = list(answers), []
        self.stack.core = self

    def on_request(self, server, request, now):
        self.requests.append((now, request))
        status, headers = self.answers.pop(0) if self.answers else (200, ())
        server.respond(response_to(request, status, to_tag="t", headers=headers), now)

    @property
    def asked(self):
        """The Expires of each REGISTER."""
        return [request.expires for _, request in self.requests]


def world(*answers, transport="UDP", answered=lambda data: pong(data, BOB), **options):
    """A phone that registers; `answered` gives what comes back for a keep-alive, None for nothing.

    The keep-alives are listed as (time, flow, octets), and the connections that were given up.
    """
    link = Link()
    home = Script(link, *answers)
    bob = Member(link, BOB, "bob", transport=transport)
    pings = []

    def ping(flow, data):
        pings.append((link.now, flow, data))
        if (said := answered(data)) is not None:
            assert bob.registrations.heard(flow, said, link.now)

    bob.lost = []
    bob.registrations.ping, bob.registrations.lose = ping, bob.lost.append
    bob.registrations.follow(bob.stack)
    registration = bob.register(link.now, **options)
    return link, home, bob, registration, pings


def told(home):
    """(instance, reg-id, Supported) of each REGISTER."""
    return [
        (
            request.contacts[0].param("+sip.instance"),
            request.contacts[0].param("reg-id"),
            request.headers.all("Supported"),
        )
        for _, request in home.requests
    ]


def test_a_register_names_its_flow():
    """Covers RFC 5626 §4.2.1 [supports-outbound] [supports-path] [has-instance] [has-reg-id].

    Covers RFC 5626 §4.2.1 [same-reg-ids], §10 [reg-id-of-31-bits].
    """
    link, home, _, registration, _ = world((200, [("Expires", 100)]), instance=INSTANCE)
    link.run(until=90.0)
    registration.close(link.now)
    link.run(until=95.0)
    assert told(home) == [(f"<{INSTANCE}>", "1", ("path", "gruu", "outbound"))] * 3
    assert home.asked[-1] == 0


def test_an_instance_of_its_own_is_a_uuid():
    """Covers RFC 5626 §4.1 [uuid-is-the-instance]."""
    link, home, bob, *_ = world()
    bob.register(link.now)
    link.run(until=1.0)
    first, second = (instance for instance, *_ in told(home))
    assert first != second and first.startswith("<urn:uuid:") and len(first) == 47


def test_after_a_439_it_registers_without_outbound():
    """Covers RFC 5626 §4.2.1 [439-goes-without], once."""
    link, home, bob, *_ = world((439, ()), (439, ()))
    link.run(until=1.0)
    assert [(reg_id, supported) for _, reg_id, supported in told(home)] == [
        ("1", ("path", "gruu", "outbound")),
        (None, ("path", "gruu")),
    ]
    assert bob.heard == [-439]


@pytest.mark.parametrize(
    ("transport", "headers", "least", "most"),
    [
        ("UDP", [OUTBOUND], 24, 29),
        ("TCP", [OUTBOUND], 95, 120),
        ("TCP", [OUTBOUND, ("Flow-Timer", 50)], 40, 50),
    ],
)
def test_keep_alives_come_in_time_and_never_in_step(transport, headers, least, most):
    """Covers RFC 5626 §4.4 [within-flow-timer] [jitter], §4.4.1 [stream-interval].

    Covers RFC 5626 §8 [stun-where-it-is-known], §4.4.1 [new-number-each-time].
    Covers RFC 5626 §4.4.2 [datagram-interval].
    """
    link, _, bob, registration, pings = world((200, headers), transport=transport)
    link.run(until=1000.0)
    times = [0.0, *(at for at, *_ in pings)]
    gaps = [after - before for before, after in pairwise(times)]
    assert all(least <= gap <= most + 1 for gap in gaps) and len(gaps) >= 1000 // (most + 1)
    assert len({round(gap, 6) for gap in gaps}) > len(gaps) // 2
    assert {(flow.transport, flow.remote) for _, flow, _ in pings} == {(transport, (HOME, PORT))}
    registration.close(link.now)
    link.run()
    assert bob.registrations.deadline is None


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
def test_a_keep_alive_fits_the_transport(transport):
    """Covers RFC 5626 §4.4.1 [crlf-by-streams], §4.4.2 [stun-by-datagrams]."""
    link, home, _, _, pings = world((200, [OUTBOUND]), transport=transport)
    link.run(until=1000.0)
    assert {is_stun(data) for *_, data in pings} == {transport == "UDP"}
    if transport == "UDP":
        assert len({StunMessage.parse(data).transaction_id for *_, data in pings}) == len(pings)
    else:
        assert {data for *_, data in pings} == {b"\r\n\r\n"}
    assert len(home.requests) == 1  # each was answered


def test_a_connection_that_does_not_answer_is_formed_again():
    """Covers RFC 5626 §4.4.1 [no-pong-is-a-failure]: at once, where answers came before."""
    silent = [False, True, False, False, True]  # and so on
    answered = iter([b"", None, b"", b"", None])
    answers = [(200, [OUTBOUND])] * 9
    link, home, bob, _, pings = world(
        *answers, transport="TCP", answered=lambda data: next(answered)
    )
    while len(pings) < len(silent):
        link.run(until=link.now + 1.0)
    link.run(until=link.now + 11.0)
    lost = [at for (at, *_), was in zip(pings, silent, strict=True) if was]
    assert [at - 10.0 for at, _ in home.requests[1:]] == pytest.approx(lost, abs=0.1)
    assert {flow.remote for flow in bob.lost} == {(HOME, PORT)} and len(bob.lost) == 2
    assert bob.heard == [3600]


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
def test_a_flow_that_never_answers_is_formed_again_after_a_delay(transport):
    """Covers RFC 5626 §4.5 [waits-for-the-delay]: a registrar without STUN is not hammered."""
    answers = [(200, [OUTBOUND])] * 9
    link, home, _, _, pings = world(*answers, transport=transport, answered=lambda data: None)
    while len(home.requests) < 2:
        link.run(until=link.now + 1.0)
    again, first = home.requests[1][0], pings[0][0]
    patience = 10.0 if transport == "TCP" else 39.5
    assert patience + 30.0 <= again - first <= patience + 61.0
    assert len({data for *_, data in pings}) == 1  # repeated, by UDP alone
    assert len(pings) == 1 if transport == "TCP" else len(pings) >= 7


def test_a_datagram_may_be_lost():
    """Covers RFC 8489 §6.2.1: the request is repeated."""
    seen = []

    def answered(data):
        seen.append(data)
        return pong(data, BOB) if seen.count(data) == 3 else None

    link, home, _, _, pings = world((200, [OUTBOUND]), answered=answered)
    link.run(until=600.0)
    assert len(home.requests) == 1 and len(pings) == 3 * len(set(seen)) > 30


@pytest.mark.parametrize("last", [lambda data: pong(data, CAROL), lambda data: refusal(data)])
def test_another_address_is_registered_anew(last):
    """Covers RFC 5626 §4.4.2 [new-address-is-a-failure], and an error of the server too."""
    told, answers = iter([False, False, True]), [(200, [OUTBOUND])] * 2

    def answered(data):
        return last(data) if next(told, False) else pong(data, BOB)

    link, home, _, _, pings = world(*answers, answered=answered)
    link.run(until=120.0)
    assert [at for at, _ in home.requests[1:]] == pytest.approx([pings[2][0]], abs=0.1)


def refusal(data):
    identifier = StunMessage.parse(data).transaction_id
    code = ((StunType.ERROR_CODE, write_error(500, "")),)
    return StunMessage.write(StunClass.ERROR, BINDING, identifier, code).data


@given(st.binary() | st.binary(max_size=40).map(lambda tail: bytes([1, 1]) + tail))
def test_what_is_no_answer_is_not_taken_for_one(data):
    """Own design: only what was asked for counts, and nothing raises."""
    keep_alive = KeepAlives(bytes)
    assert not keep_alive.hear(data) and not keep_alive.hear(b"")
    keep_alive.begin(Flow("UDP", (HOME, PORT)), 0, 0.0)
    request = keep_alive.tick(30.0)
    assert not keep_alive.hear(data) and not keep_alive.hear(b"")
    assert keep_alive.hear(pong(request, BOB)) and not keep_alive.has_failed
    assert not keep_alive.hear(pong(request, BOB))


def test_no_keep_alive_where_nobody_wants_one():
    """Covers RFC 5626 §8 [stun-where-it-is-known]."""
    link, _, bob, _, pings = world((200, [("Flow-Timer", 30)]))
    link.run(until=1000.0)
    assert pings == [] and bob.heard == [3600]


def test_a_lost_flow_is_formed_again_at_once_and_then_ever_more_slowly():
    """Covers RFC 5626 §4.5 [same-reg-id] [waits-for-the-delay]."""
    refusals = [(500, ()), (500, ()), (503, [("Retry-After", 2000)])]
    link, home, bob, registration, _ = world((200, [OUTBOUND]), *refusals, transport="TCP")
    link.run(until=10.0)
    bob.stack.flow_failed(Flow("TCP", (HOME, PORT), (BOB, 40000)), link.now)
    link.run(until=3000.0)
    times = [at for at, _ in home.requests]
    assert len(times) == 5 and 10.0 <= times[1] < 11.0
    assert 30 <= times[2] - times[1] <= 61 and 60 <= times[3] - times[2] <= 121
    assert 2000 <= times[4] - times[3] <= 2001 and bob.heard == [3600, -500, 3600]
    assert {reg_id for _, reg_id, _ in told(home)} == {"1"}
    assert registration.state is State.REGISTERED


GRANTED = (200, [OUTBOUND, ("Expires", 100), ("Flow-Timer", 10)])  # and refreshed after 80 s
LATER = ("Retry-After", 400)


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
@pytest.mark.parametrize("refusal", [(503, [LATER]), (500, [LATER]), (480, ()), (486, [LATER])])
def test_a_passing_refusal_leaves_the_flow_as_it_is(refusal, transport):
    """Covers RFC 5626 §4.2.2 [kept-after-a-refusal] [kept-by-pongs]."""
    link, home, bob, registration, pings = world(GRANTED, refusal, transport=transport)
    link.run(until=109.0)
    assert len(home.requests) == 2 and registration.state is State.FAILED
    assert [at for at, *_ in pings if at > 82.0] and not bob.lost
    link.run(until=500.0)
    assert len(home.requests) >= 3 and registration.state is State.REGISTERED
    gaps = [after - before for (before, *_), (after, *_) in pairwise(pings) if after < 480.0]
    assert refusal[1] == () or max(gaps) <= 11.0


@pytest.mark.parametrize("status", [403, 404, 501])
def test_a_final_refusal_ends_the_keep_alives(status):
    """Covers RFC 5626 §4.2.2 [kept-by-pongs]."""
    link, home, _, registration, pings = world(GRANTED, (status, ()), transport="TCP")
    link.run(until=109.0)
    assert len(home.requests) == 2 and registration.state is State.FAILED
    assert pings and not [at for at, *_ in pings if at > 81.0]


@pytest.mark.parametrize("ends", ["lost", "silent"])
def test_a_flow_that_ends_after_a_refusal_waits_for_the_time_it_was_told(ends):
    """Covers RFC 5626 §4.5 [waits-for-the-delay]."""
    says = [b""]
    answers = GRANTED, (503, [LATER])
    link, home, bob, registration, pings = world(
        *answers, transport="TCP", answered=lambda data: says[0]
    )
    link.run(until=100.0)
    if ends == "lost":
        bob.stack.flow_failed(Flow("TCP", (HOME, PORT), (BOB, 40000)), link.now)
    says[0] = None
    link.run(until=470.0)
    assert len(home.requests) == 2 and len(bob.lost) == (ends == "silent")
    assert len([at for at, *_ in pings if at > 100.0]) <= (2 if ends == "silent" else 0)
    link.run(until=490.0)
    assert len(home.requests) == 3 and registration.state is State.REGISTERED


def test_the_loss_of_another_connection_means_nothing():
    link, home, bob, *_ = world((200, [OUTBOUND]), transport="TCP")
    link.run(until=10.0)
    bob.stack.flow_failed(Flow("TCP", ("10.0.0.99", PORT)), link.now)
    link.run(until=20.0)
    assert len(home.requests) == 1


@given(st.integers(1, 100), st.binary(min_size=4, max_size=4))
def test_the_delay_is_bounded(failures, drawn):
    """Covers RFC 5626 §4.5 [waits-for-the-delay]."""
    delay = retry_delay(failures, lambda count: drawn)
    assert 30.0 <= delay <= MAX_SECONDS and delay >= min(900.0, 15.0 * 2**failures)


@given(st.integers(1, 2**32), st.binary(min_size=4, max_size=4))
def test_the_flow_timer_is_never_passed(timer, drawn):
    """Covers RFC 5626 §4.4 [within-flow-timer] [jitter]."""
    keep_alive = KeepAlives(lambda count: drawn)
    keep_alive.begin(Flow("TCP", (HOME, PORT)), timer, 0.0)
    assert 0.8 * timer <= keep_alive.at <= timer


# Service-Route


def test_the_service_route_is_that_of_the_last_200():
    """Covers RFC 3608 §6.1 [route-is-replaced] [order-is-kept] [refused-clears-it] [route-is-used].

    A proxy of ours that it names again is passed once.
    """
    route = ("Service-Route", "<sip:p1;lr>, <sip:p2;lr>")
    answers = [(200, [route, ("Expires", 60)]), (500, ()), (200, [("Expires", 60), route])]
    link, _, _, registration, _ = world(*answers, (200, ()))
    p1, p2, mine = (Uri.parse(f"sip:{name};lr") for name in ("p1", "p2", "mine"))
    link.run(until=10.0)
    assert registration.route(()) == [p1, p2] and registration.route((mine,)) == [mine, p1, p2]
    assert registration.route((p1,)) == [p1, p2]
    link.run(until=50.0)
    assert registration.route((mine,)) == [mine]
    link.run(until=60.0)
    assert registration.route(()) == [p1, p2]
    link.run(until=130.0)
    assert registration.route(()) == []


@pytest.mark.parametrize("value", ["<tel:1>", "<sip:p1", '"x', "*", '<sip:p1;lr>, *, <sip::>, "x'])
def test_a_value_of_a_service_route_that_leads_nowhere_is_skipped(value):
    """Own design: those beside it stand."""
    link, _, bob, registration, _ = world((200, [("Service-Route", value)]))
    link.run(until=10.0)
    route = [Uri.parse("sip:p1;lr")] if "lr" in value else []
    assert registration.route(()) == route and bob.heard == [3600]


@pytest.mark.parametrize("transport", ["UDP", "TCP"])
def test_our_own_registrar_grants_it(transport):
    """Covers RFC 5626 §6 [require-in-200]: a real registrar, and a flow lost on both sides."""
    link = Link()
    home, bob = Home(link), Member(link, BOB, "bob", transport=transport)
    pings = []
    bob.registrations.ping = lambda flow, data: pings.append(
        bob.registrations.heard(flow, pong(data, BOB), link.now)
    )
    bob.registrations.follow(bob.stack)
    bob.register(link.now)
    link.run(until=100.0)
    [binding] = home.registrar.registered(Uri.parse("sip:bob@home"), link.now)
    assert binding.reg_id == 1
    link.run(until=400.0)
    assert pings and all(pings)
    flow = Flow("TCP", (BOB, PORT), (HOME, PORT))
    home.stack.flow_failed(flow, link.now)
    assert home.registrar.count(link.now) == (transport == "UDP")
    bob.stack.flow_failed(Flow("TCP", (HOME, PORT)), link.now)
    link.run(until=410.0)
    assert home.registrar.count(link.now) == 1
