"""One stack: what it sends where, what it absorbs, what it forgets."""

import random as random_module

from elements import PORT, Element, random_source
from hypothesis import event, given
from hypothesis import strategies as st
from link import Link, calm, storm
from mutations import mutations

from p2psip.core.stack import Flow, Listener, Locate, Send, Stack
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response, parse_message
from p2psip.sip.uri import Uri
from p2psip.strategies import sip

US, THEM = "10.0.0.1", "10.0.0.2"


class Server:
    """A core that answers at once with `status`, after a 1xx if there is one in `statuses`."""

    def __init__(self, *statuses):
        self.statuses = statuses or (200,)
        self.requests, self.acks, self.handles = [], [], []
        self.cancelled, self.ended = [], []

    def on_request(self, server, request, now):
        self.requests.append(request)
        self.handles.append(server)
        server.user = self
        for status in self.statuses:
            server.reply(status, now)

    def on_ack(self, request, flow, now):
        self.acks.append(request)

    def on_cancel(self, handle, now):
        self.cancelled.append(handle)
        handle.reply(487, now)

    def on_transaction_end(self, handle, now):
        self.ended.append(handle)


class Asker:
    """A user of client transactions that writes down what it hears."""

    def __init__(self):
        self.heard = []

    def on_response(self, handle, response, now):
        self.heard.append(response.status)

    def on_failure(self, handle, status, now):
        self.heard.append(-status)


def request(method="OPTIONS", uri=f"sip:{THEM}", cseq=1, *more, body=b""):
    headers = Headers(
        [
            ("Max-Forwards", 70),
            ("From", "<sip:alice@a.com>;tag=a"),
            ("To", "<sip:bob@b.com>"),
            ("Call-ID", "call"),
            ("CSeq", f"{cseq} {method}"),
            *more,
        ]
    )
    return Request(method, Uri.parse(uri), headers, body)


def incoming(method="INVITE", via=f"SIP/2.0/UDP {THEM};branch=z9hG4bKx", cseq=1, to=""):
    return bytes(request(method, f"sip:{US}", cseq, ("Via", via)).replace()).replace(
        b"<sip:bob@b.com>", b"<sip:bob@b.com>" + to.encode()
    )


def lone_stack(core=None, **options):
    listeners = [Listener("UDP", US, PORT), Listener("TCP", US, PORT)]
    stack = Stack(random=random_source("x"), listeners=listeners, **options)
    stack.core = core or Server()
    return stack


def pair(core, weather=None, **options):
    link = Link(weather)
    client, server = Element(link, US, **options), Element(link, THEM)
    client.stack.core = server.stack.core = core
    return link, client, server


def sent(stack):
    """The messages among a stack's orders, each with its flow."""
    return [(parse_message(order.data), order.flow) for order in stack.take_orders()]


UDP = Flow("UDP", (THEM, PORT))


# Transactions over a network


@given(st.randoms(use_true_random=False), st.sampled_from(["INVITE", "OPTIONS"]))
def test_a_request_has_one_outcome_whatever_the_weather(random, method):
    """Covers RFC 6026 §8.9 [match-is-passed-on], §8.10 [match-is-passed-on] [else-to-the-core].

    And RFC 3261 §17.1.2.2 [final-completes].
    """
    core, asker = Server(180, 486) if method == "INVITE" else Server(200), Asker()
    link, client, server = pair(core, storm(random, loss=0.3))
    client.stack.request(request(method), asker, link.now)
    link.run()
    assert len(core.requests) <= 1
    finals = [status for status in asker.heard if not 100 <= status < 200]
    assert finals in ([486], [200], [-408])
    assert client.stack.transactions == server.stack.transactions == 0
    assert client.deadline is None and server.deadline is None
    assert len(core.ended) == len(core.requests)


def test_the_ack_of_a_refusal_follows_its_invite():
    """Covers RFC 6026 §8.4 [ack-goes-the-same-way].

    And RFC 3261 §17.1.1.3 [ack-copies] [ack-to] [ack-via] [ack-cseq] [ack-route] [ack-no-body].
    """
    stack, asker = lone_stack(), Asker()
    route = ("Route", f"<sip:{THEM};lr>")
    stack.request(request("INVITE", "sip:bob@b.com", 7, route, body=b"x"), asker, 0.0)
    [(invite, flow)] = sent(stack)
    refusal = response_to(invite, 486, to_tag="t")
    stack.receive(bytes(refusal), Flow("UDP", ("10.0.0.9", 9)), 1.0)
    [(ack, way)] = sent(stack)
    assert (ack.method, way) == ("ACK", flow) and flow.remote == (THEM, PORT)
    assert (ack.uri, ack.call_id, ack.from_) == (invite.uri, invite.call_id, invite.from_)
    assert ack.to == refusal.to and ack.vias == (invite.via,) and ack.routes == invite.routes
    assert str(ack.cseq) == "7 ACK" and ack.body == b"" and "Content-Type" not in ack.headers
    stack.receive(bytes(refusal), UDP, 2.0)
    assert sent(stack) == [(ack, way)] and asker.heard == [486]


def test_a_slow_core_is_covered_by_a_100_without_a_tag():
    """Covers RFC 3261 §17.2.1 [sends-100] [100-without-tag] [repeat-gets-latest-1xx]."""
    core = Server()
    core.statuses = ()
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    assert sent(stack) == [] and stack.deadline == 0.2
    stack.tick(0.2)
    [(trying, _)] = sent(stack)
    assert trying.status == 100 and trying.to.tag is None
    stack.receive(incoming(), UDP, 0.5)
    assert sent(stack) == [(trying, UDP)] and len(core.requests) == 1
    core.handles[0].reply(180, 0.6)
    [(ringing, _)] = sent(stack)
    assert ringing.to.tag == core.handles[0].to_tag
    stack.receive(incoming(), UDP, 0.7)
    assert sent(stack) == [(ringing, UDP)]


def test_a_repeated_invite_gets_its_100_before_the_clock_says_so():
    """Covers RFC 3261 §17.2.1 [repeat-gets-latest-1xx]."""
    core = Server()
    core.statuses = ()
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    stack.receive(incoming(), UDP, 0.1)
    assert [message.status for message, _ in sent(stack)] == [100] and stack.deadline is None


def test_old_clients_reach_their_transactions_by_other_means():
    """Covers RFC 3261 §17.2.3 [2543-invite] [2543-ack], RFC 6026 §6 [2543-ack-when-accepted].

    And RFC 6026 §8.7 [ack-up].
    """
    old = f"SIP/2.0/UDP {THEM}"
    for status, acks in ((486, 0), (200, 1)):
        core = Server(status)
        stack = lone_stack(core)
        stack.receive(incoming(via=old), UDP, 0.0)
        [(response, _)] = sent(stack)
        stack.receive(incoming(via=old), UDP, 0.1)
        assert len(core.requests) == 1
        stack.take_orders()
        ack = incoming("ACK", via=old, to=f";tag={response.to.tag}")
        stack.receive(ack, UDP, 0.2)
        stack.receive(incoming("ACK", via=old, to=";tag=other"), UDP, 0.3)
        assert len(core.acks) == acks + 1  # the one with a foreign tag matches nothing
        while stack.deadline is not None:
            stack.tick(stack.deadline)
        assert stack.transactions == 0 and stack.take_orders() == []


def test_cancel_ends_an_open_invite_and_nothing_else():
    core = Server(180)
    stack = lone_stack(core)
    stack.receive(incoming("CANCEL"), UDP, 0.0)
    assert [message.status for message, _ in sent(stack)] == [481]
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    stack.receive(incoming("CANCEL"), UDP, 0.1)
    messages = [message for message, _ in sent(stack)]
    assert [(m.status, m.cseq.method) for m in messages] == [
        (180, "INVITE"),
        (200, "CANCEL"),
        (487, "INVITE"),
    ]
    assert len({m.to.tag for m in messages}) == 1 and core.cancelled == core.handles[-1:]
    stack.receive(incoming("CANCEL", via=f"SIP/2.0/UDP {THEM};branch=z9hG4bKx;x"), UDP, 0.2)
    assert len(core.cancelled) == 1  # a repetition


def test_a_cancelled_invite_that_nobody_took_is_answered_by_the_stack():
    core = Server(180)
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    core.handles[0].user = None
    stack.receive(incoming("CANCEL"), UDP, 0.1)
    assert [message.status for message, _ in sent(stack)] == [180, 200, 487]


def test_a_cancel_after_the_answer_changes_nothing():
    core = Server(200)
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    stack.receive(incoming("CANCEL"), UDP, 0.1)
    assert [message.status for message, _ in sent(stack)] == [200, 200] and not core.cancelled


def test_our_cancel_waits_for_a_provisional_and_then_not_for_ever():
    stack, asker = lone_stack(), Asker()
    handle = stack.request(request("INVITE"), asker, 0.0)
    handle.cancel(0.1)
    handle.cancel(0.1)
    [(invite, _)] = sent(stack)
    assert invite.method == "INVITE"
    stack.receive(bytes(response_to(invite, 180, to_tag="t")), UDP, 0.2)
    [(cancel, way)] = sent(stack)
    assert cancel.method == "CANCEL" and cancel.via == invite.via and way == UDP
    stack.receive(bytes(response_to(invite, 180, to_tag="t")), UDP, 0.3)
    assert [message.method for message, _ in sent(stack)] == []
    stack.receive(bytes(response_to(cancel, 200, to_tag="t")), UDP, 0.4)
    while stack.deadline is not None:
        now = stack.deadline
        stack.tick(now)
    assert asker.heard == [180, 180, -408] and handle.done and 32.0 < now < 33.0
    assert stack.transactions == 0


def test_only_an_open_invite_can_be_cancelled():
    stack, asker = lone_stack(), Asker()
    handle = stack.request(request("OPTIONS"), asker, 0.0)
    handle.cancel(0.1)
    [(options, _)] = sent(stack)
    stack.receive(bytes(response_to(options, 100)), UDP, 0.2)
    stack.receive(bytes(response_to(options, 200, to_tag="t")), UDP, 0.3)
    assert stack.take_orders() == [] and not handle.cancelled and asker.heard == [100, 200]


# Where things go


def test_the_top_via_learns_where_a_request_really_came_from():
    core = Server()
    stack = lone_stack(core)
    vias = [
        f"SIP/2.0/UDP {THEM};branch=z9hG4bK1",
        "SIP/2.0/UDP b.com;branch=z9hG4bK2",
        f"SIP/2.0/UDP {THEM};branch=z9hG4bK3;rport",
        "SIP/2.0/UDP 192.168.0.1:5070;branch=z9hG4bK4",
    ]
    for via in vias:
        stack.receive(incoming("OPTIONS", via=via), Flow("UDP", (THEM, 7777)), 0.0)
    assert [str(seen.via) for seen in core.requests] == [
        vias[0],
        f"{vias[1]};received={THEM}",
        f"SIP/2.0/UDP {THEM};branch=z9hG4bK3;rport=7777;received={THEM}",
        f"{vias[3]};received={THEM}",
    ]
    assert [flow.remote[1] for _, flow in sent(stack)] == [PORT, PORT, 7777, 5070]


def test_over_tcp_the_response_takes_the_connection_back():
    stack = lone_stack()
    flow = Flow("TCP", (THEM, 40000))
    stack.receive(incoming("OPTIONS", via="SIP/2.0/TCP b.com;branch=z9hG4bK1"), flow, 0.0)
    assert [way for _, way in sent(stack)] == [flow]
    assert stack.transactions == 0  # timer J is zero


def test_a_response_whose_via_is_not_ours_is_a_stray():
    """Covers RFC 6026 §8.9 [strays-dropped]."""
    stack, asker = lone_stack(), Asker()
    stack.request(request(), asker, 0.0)
    [(options, _)] = sent(stack)
    response = bytes(response_to(options, 200, to_tag="t"))
    stack.receive(response.replace(US.encode(), b"10.9.9.9"), UDP, 0.1)
    stack.receive(response.replace(b"z9hG4bK", b"z9hG4bKz"), UDP, 0.2)
    stack.receive(response.replace(b"1 OPTIONS", b"1 INVITE"), UDP, 0.3)
    stack.receive(response.replace(b"Call-ID", b"Other"), UDP, 0.4)
    assert asker.heard == [] and stack.counters.stray == 3 and stack.counters.malformed == 1
    stack.receive(response, UDP, 0.5)
    assert asker.heard == [200] and stack.take_orders() == []


def test_a_loose_and_a_strict_route_go_where_they_should():
    stack, asker = lone_stack(), Asker()
    loose = ("Route", "<sip:10.0.0.3;lr>, <sip:p2.com;lr>")
    stack.request(request("OPTIONS", "sip:bob@b.com", 1, loose), asker, 0.0)
    strict = ("Route", "<sip:10.0.0.4;x=y>, <sip:p2.com;lr>")
    stack.request(request("OPTIONS", "sip:bob@b.com", 2, strict), asker, 0.0)
    (a, way_a), (b, way_b) = sent(stack)
    assert way_a.remote[0] == "10.0.0.3" and str(a.uri) == "sip:bob@b.com" and len(a.routes) == 2
    assert way_b.remote[0] == "10.0.0.4" and str(b.uri) == "sip:10.0.0.4;x=y"
    assert [str(route.uri) for route in b.routes] == ["sip:p2.com;lr", "sip:bob@b.com"]


def test_names_are_looked_up_and_servers_tried_in_order():
    stack, asker = lone_stack(), Asker()
    handle = stack.request(request(uri="sip:bob@b.com"), asker, 0.0)
    [locate] = stack.take_orders()
    assert locate == Locate(1, Uri.parse("sip:bob@b.com")) and handle.flow is None
    first, second, third = (Flow("UDP", (f"10.0.0.{n}", PORT)) for n in (3, 4, 5))
    stack.located(1, [first, second, third], 1.0)
    [(options, way)] = sent(stack)
    assert way == first == handle.flow
    stack.flow_failed(first, 2.0)
    [(again, way)] = sent(stack)
    assert way == second and again.via.branch != options.via.branch and len(again.vias) == 1
    stack.receive(bytes(response_to(again, 503, to_tag="t")), second, 3.0)
    [(last, way)] = sent(stack)
    assert way == third
    stack.receive(bytes(response_to(again, 503, to_tag="t")), second, 3.0)  # late and unwanted
    stack.receive(bytes(response_to(last, 200, to_tag="t")), third, 4.0)
    assert asker.heard == [200] and handle.done


def test_a_lost_acknowledgement_is_no_news():
    """RFC 3261 §17.1.4: the ACK of a refusal could not be sent; the user has its answer."""
    stack, asker = lone_stack(), Asker()
    others = [UDP, Flow("UDP", ("10.0.0.3", PORT))]
    stack.request(request("INVITE"), asker, 0.0, flows=others)
    waiting = [message for message, _ in sent(stack)]
    for flow, status in zip(others, (503, 486), strict=True):
        invite = waiting.pop()
        stack.receive(bytes(response_to(invite, status, to_tag="t")), flow, 0.1)
        ack, *waiting = [message for message, _ in sent(stack)]
        assert ack.method == "ACK"
        stack.flow_failed(flow, 0.2)
    assert asker.heard == [486] and stack.take_orders() == [] and stack.transactions == 0


def test_no_server_is_a_503_and_so_is_no_transport():
    stack, asker = lone_stack(), Asker()
    stack.request(request(uri="sip:bob@b.com"), asker, 0.0)
    stack.located(1, [], 1.0)
    assert asker.heard == [-503]
    stack.located(1, [UDP], 1.0)  # told twice
    stack.request(request(uri="sips:bob@b.com"), asker, 2.0)
    assert asker.heard == [-503] and stack.deadline == 2.0
    stack.tick(2.0)
    assert asker.heard == [-503, -503] and stack.transactions == 0


def test_what_is_cancelled_while_being_located_is_never_sent():
    stack, asker = lone_stack(), Asker()
    handle = stack.request(request("INVITE", "sip:bob@b.com"), asker, 0.0)
    handle.cancel(0.1)
    stack.take_orders()
    stack.located(1, [UDP], 1.0)
    assert asker.heard == [-503] and stack.take_orders() == [] and stack.transactions == 0


def test_a_large_request_goes_by_tcp_and_by_udp_where_nobody_listens():
    stack, asker = lone_stack(), Asker()
    stack.request(request(body=b"x" * 1300), asker, 0.0)
    [(large, way)] = sent(stack)
    assert way == Flow("TCP", (THEM, PORT)) and large.via.transport == "TCP"
    stack.flow_failed(way, 1.0)
    [(large, way)] = sent(stack)
    assert way == UDP and large.via.transport == "UDP" and len(large.vias) == 1
    stack.receive(bytes(response_to(large, 200, to_tag="t")), UDP, 2.0)
    assert asker.heard == [200]


def test_without_tcp_a_large_request_takes_the_risk():
    stack = Stack(random=random_source("x"), listeners=[Listener("UDP", US, PORT)])
    stack.request(request(body=b"x" * 1300), Asker(), 0.0)
    assert [way for _, way in sent(stack)] == [UDP]


def test_silence_from_one_server_leads_to_the_next():
    stack, asker = lone_stack(), Asker()
    stack.request(request(), asker, 0.0, flows=[UDP, Flow("UDP", ("10.0.0.3", PORT))])
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    ways = [order.flow.remote[0] for order in stack.take_orders()]
    assert ways == [THEM] * 11 + ["10.0.0.3"] * 11 and asker.heard == [-408]


def test_the_ack_of_a_2xx_looks_for_its_own_way():
    stack = lone_stack()
    ack = request("ACK", "sip:bob@b.com")
    stack.send_ack(ack, 0.0)
    [locate] = stack.take_orders()
    assert stack.transactions == 1
    stack.located(locate.token, [UDP], 0.1)
    stack.send_ack(ack, 0.2, flows=[UDP])
    first, second = sent(stack)
    assert first == second and first[0].via.branch.startswith("z9hG4bK") and first[1] == UDP
    stack.send_ack(request("ACK", "sip:carol@b.com"), 0.3)
    [locate] = stack.take_orders()
    stack.located(locate.token, [], 0.4)
    assert stack.transactions == 0 and stack.take_orders() == []


# Ourselves


def test_what_is_for_ourselves_touches_no_socket():
    stack, asker = lone_stack(Server(100, 200), hosts=["me.com"]), Asker()
    stack.request(request(uri="sip:bob@me.com"), asker, 0.0)
    assert asker.heard == [] and stack.deadline == 0.0  # never within the call
    assert stack.take_orders() == [] and asker.heard == [100, 200]
    assert stack.transactions == 0 and stack.deadline is None
    stack.request(request(uri="sip:bob@elsewhere.com"), asker, 1.0)
    [locate] = stack.take_orders()
    stack.located(locate.token, [Flow("UDP", (US, PORT))], 1.1)  # a look-up may lead home as well
    assert stack.take_orders() == [] and asker.heard == [100, 200, 100, 200]


def test_who_we_are():
    stack = Stack(
        random=random_source("x"),
        listeners=[Listener("UDP", "0.0.0.0", 5070), Listener("TCP", "0.0.0.0", 5070)],
        advertised="203.0.113.1",
        hosts=["Example.com"],
    )
    ours = ["sip:203.0.113.1:5070", "sip:x@example.com:5070", "sip:localhost:5070"]
    assert all(stack.is_ours(Uri.parse(uri)) for uri in ours)
    others = [
        "sip:203.0.113.1",
        "sip:10.0.0.1:5070",
        "tel:123",
        "sip:example.com:5070;maddr=1.2.3.4",
    ]
    assert not any(stack.is_ours(Uri.parse(uri)) for uri in others)
    assert stack.is_own_address("127.0.0.1", 5070) and not stack.is_own_address("127.0.0.1", None)
    assert str(stack.contact("bob")) == "sip:bob@203.0.113.1:5070"
    assert str(stack.contact(transport="TCP")) == "sip:203.0.113.1:5070;transport=tcp"


def test_a_wildcard_listener_signs_with_the_address_it_sends_from():
    stack = Stack(random=random_source("x"), listeners=[Listener("UDP", "0.0.0.0", PORT)])
    flow = Flow("UDP", (THEM, PORT), ("10.0.0.7", PORT))
    stack.request(request(), Asker(), 0.0, flows=[flow])
    assert [message.via.host for message, _ in sent(stack)] == ["10.0.0.7"]


# Limits and garbage


def test_a_full_stack_refuses_and_keeps_count():
    core, asker = Server(180), Asker()
    stack = lone_stack(core, max_transactions=3)
    for n in range(5):
        via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"
        stack.receive(incoming(via=via), UDP, 0.0)
    statuses = [message.status for message, _ in sent(stack)]
    assert statuses == [180, 180, 180, 503, 503] and stack.counters.refused == 2
    for cseq in range(
        5
    ):  # what we ask has room of its own, so that a flood cannot keep us from BYE
        stack.request(request(cseq=cseq), asker, 1.0)
    stack.tick(1.0)
    assert asker.heard == [-503, -503] and len(sent(stack)) == 3 and stack.transactions == 6


def test_what_a_core_cannot_read_it_need_not_answer():
    class Puzzled(Server):
        def on_request(self, server, request, now):
            raise RemoteError("What", 415)

        def on_ack(self, request, flow, now):
            raise RemoteError("What")

    stack = lone_stack(Puzzled())
    stack.receive(incoming(), UDP, 0.0)
    [(response, _)] = sent(stack)
    assert (response.status, response.reason) == (415, "What") and response.to.tag
    stack.receive(incoming("ACK", via=f"SIP/2.0/UDP {THEM};branch=z9hG4bKy"), UDP, 0.0)
    assert stack.counters.malformed == 1


def test_broken_requests_are_answered_if_anybody_can_be():
    stack = lone_stack()
    good = incoming("OPTIONS")
    for broken in (
        good.replace(b"Call-ID: call", b"Call-ID: "),
        good.replace(b"SIP/2.0\r\n", b"SIP/7.0\r\n", 1),
        good.replace(b"sip:10", b"http:10"),
        good.replace(b"Content-Length: 0", b"Content-Length: 9"),
    ):
        stack.receive(broken, UDP, 0.0)
        stack.receive(broken, UDP, 0.0)
        (first, way), second = sent(stack)
        assert first.status in (400, 416, 505) and way == UDP
        assert second == (first, way)  # the same tag each time: there is no transaction
    for silent in (
        b"",
        b"\r\n\r\n",
        b"garbage",
        good.replace(b"Via", b"Vie"),
        incoming("ACK").replace(b"Call-ID", b"Call"),
    ):
        stack.receive(silent, UDP, 0.0)
        assert stack.take_orders() == []
    assert stack.transactions == 0


@given(st.lists(mutations(sip.messages() | sip.broken_requests().map(lambda pair: pair[0]))))
def test_nothing_that_arrives_can_break_the_stack_or_stay_in_it(datagrams):
    core, asker = Server(200), Asker()
    stack = lone_stack(core, max_transactions=5)
    now = 0.0
    for data in datagrams:
        stack.receive(data, UDP, now)
        event("transactions" if stack.transactions else "none")
        assert stack.transactions <= 5
        for order in stack.take_orders():
            assert isinstance(order, Send) and parse_message(order.data)
    while stack.deadline is not None:
        now = stack.deadline
        stack.tick(now)
    assert stack.transactions == 0 and asker.heard == []


def test_unanswered_responses_are_reported_and_forgotten():
    """Covers RFC 3261 §17.2.1 [timer-h-gives-up], RFC 6026 §8.8 [failure-told]."""
    core = Server(486)
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    stack.flow_failed(UDP, 0.1)
    [handle] = core.handles
    assert handle.failed and stack.transactions == 1 and handle.final == 486
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    assert core.ended == [handle] and stack.transactions == 0
    handle.respond(Response(200, "OK", handle.request.headers), 99.0)
    assert len(stack.take_orders()) == 11


def test_many_calls_at_once_leave_nothing():
    link = Link(calm())
    core, asker = Server(180, 200), Asker()
    client, server = Element(link, US), Element(link, THEM)
    client.stack.core = server.stack.core = core
    order = random_module.Random(1)
    for n in range(200):
        asked = request("INVITE", f"sip:{n}@{THEM}", 1, ("Contact", Address(Uri(host=US))))
        client.stack.request(asked, asker, link.now)
        link.run(until=link.now + order.random() / 50)
    link.run()
    assert sorted(asker.heard) == [180] * 200 + [200] * 200
    assert client.stack.transactions == server.stack.transactions == 0
    assert len(link.sent) == 600
