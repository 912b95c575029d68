"""Requests of ours: where they go, who is tried next, and how they are given up."""

from support.sip.elements import PORT, random_source
from support.sip.stacks import THEM, UDP, US, Asker, lone_stack, request, sent

from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.clients import MAX_SILENT
from p2psip.stack.stack import Flow, Listener, Locate, Stack


def test_the_ack_of_a_refusal_follows_its_invite():
    """Covers RFC 6026 §8.4 [ack-goes-the-same-way], RFC 3261 §13.2.2.3 [later-finals-ignored].

    And RFC 3261 §17.1.1.3 [ack-copies] [ack-to] [ack-via] [ack-cseq] [ack-route] [ack-no-body],
    RFC 5393 §4.2.1.

    Covers RFC 3263 §4 [same-server].
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
    assert ack.headers["Max-Forwards"] == "70"
    assert str(ack.cseq) == "7 ACK" and ack.body == b"" and "Content-Type" not in ack.headers
    stack.receive(bytes(refusal), UDP, 2.0)
    assert sent(stack) == [(ack, way)] and asker.heard == [486]


def test_our_cancel_waits_for_a_provisional_and_then_not_for_ever():
    """Covers RFC 3261 §9.1 [waits-for-a-provisional] [same-destination]
    [over-after-64-t1] [forgets-the-invite] [invite-only] [cancel-copies].

    Covers RFC 5393 §4.2.1 [follow-ups-have-its-branch] and RFC 3263 §4 [cancel-goes-there].
    """
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
    assert asker.heard == [180, 180, -408] and handle.done and 32.19 < now < 32.6
    assert stack.transactions == 0


def test_a_ringing_invite_is_cancelled_at_once():
    """Covers RFC 3261 §9.1 [looks-for-a-response]: and one without any response is not."""
    for rings in (True, False):
        stack, asker = lone_stack(), Asker()
        handle = stack.request(request("INVITE"), asker, 0.0)
        [(invite, _)] = sent(stack)
        if rings:
            stack.receive(bytes(response_to(invite, 180, to_tag="t")), UDP, 0.1)
        handle.cancel(0.2)
        assert [message.method for message, _ in sent(stack)] == ["CANCEL"] * rings


def test_an_answered_invite_is_not_cancelled():
    """Covers RFC 3261 §9.1 [none-after-the-answer]."""
    stack, asker = lone_stack(), Asker()
    handle = stack.request(request("INVITE"), asker, 0.0)
    [(invite, _)] = sent(stack)
    stack.receive(bytes(response_to(invite, 180, to_tag="t")), UDP, 0.1)
    stack.receive(bytes(response_to(invite, 486, to_tag="t")), UDP, 0.2)
    assert [message.method for message, _ in sent(stack)] == ["ACK"]
    handle.cancel(0.3)
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    assert sent(stack) == [] and not handle.cancelled and asker.heard == [180, 486]


def test_only_an_open_invite_can_be_cancelled():
    """Covers RFC 3261 §9.1 [invite-only]."""
    stack, asker = lone_stack(), Asker()
    handle = stack.request(request("OPTIONS"), asker, 0.0)
    handle.cancel(0.1)
    [(options, _)] = sent(stack)
    stack.receive(bytes(response_to(options, 100)), UDP, 0.2)
    stack.receive(bytes(response_to(options, 200, to_tag="t")), UDP, 0.3)
    assert stack.take_orders() == [] and not handle.cancelled and asker.heard == [100, 200]


def test_an_accepted_invite_hears_every_2xx_until_timer_m_and_is_forgotten_then():
    """Covers RFC 6026 §7.2 [destroyed-at-once], §7.3 [response-is-looked-up].

    And §6 [response-is-looked-up], §7.3 [strays-not-forwarded].
    """
    stack, asker = lone_stack(), Asker()
    stack.request(request("INVITE"), asker, 0.0)
    [(invite, _)] = sent(stack)
    for now, tag in ((1.0, "t"), (2.0, "u"), (32.9, "v")):
        stack.receive(bytes(response_to(invite, 200, to_tag=tag)), UDP, now)
    assert asker.heard == [200] * 3 and stack.transactions == 1
    stack.tick(33.0)
    assert stack.transactions == 0 and stack.deadline is None
    stack.receive(bytes(response_to(invite, 200, to_tag="t")), UDP, 33.1)
    assert asker.heard == [200] * 3 and stack.counters.stray == 1 and stack.take_orders() == []


def test_a_response_whose_via_is_not_ours_is_a_stray():
    """Covers RFC 6026 §8.9 [strays-dropped], RFC 3261 §18.1.2 [foreign-sent-by-dropped]."""
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


def test_a_response_with_more_vias_than_ours_is_a_stray():
    """Covers RFC 3261 §8.1.3.3 [one-via-comes-back]: it was for somebody below us."""
    stack, asker = lone_stack(), Asker()
    stack.request(request(), asker, 0.0)
    below = ("Via", "SIP/2.0/UDP 10.0.0.9;branch=z9hG4bKbelow")
    stack.request(request("OPTIONS", f"sip:{THEM}", 2, below), asker, 0.0)  # as a proxy sends it
    ours, forwarded = (message for message, _ in sent(stack))
    response = response_to(ours, 200, to_tag="t")
    more = response.replace(headers=response.headers.append(*below))
    stack.receive(bytes(more), UDP, 0.1)
    odd = response.replace(headers=response.headers.append("Via", "SIP/2.0/UDP [::"))
    stack.receive(bytes(odd), UDP, 0.1)
    assert asker.heard == [] and stack.counters.stray == 2
    stack.receive(bytes(response), UDP, 0.2)
    stack.receive(bytes(response_to(forwarded, 200, to_tag="t")), UDP, 0.3)
    assert asker.heard == [200, 200]


def test_no_way_is_secure_enough_for_a_sips_target():
    """Covers RFC 3261 §8.1.2 [other-places-by-tls] and RFC 7118 §9.2 [sips-by-wss]."""
    stack, asker = lone_stack(), Asker()
    for flow in (UDP, Flow("TCP", (THEM, PORT)), Flow("WS", (THEM, PORT))):
        stack.request(request("OPTIONS", f"sips:{THEM}"), asker, 0.0, flows=[flow])
        stack.tick(0.0)
    assert asker.heard == 3 * [-503] and sent(stack) == []


def test_names_are_looked_up_and_servers_tried_in_order():
    """Covers RFC 3263 §4 [once-a-transaction], §4.2 [first-first] [then-the-next].

    And RFC 3263 §4.3 [another-branch], RFC 3261 §8.1.1.7 [branch-of-its-own], §8.1.2 [found-by-dns]
    [tries-each] and §21.5.4 [503-tries-the-next].
    Covers RFC 3261 §16.6 [servers-in-order] [transaction-per-server] [branch-per-server].
    And RFC 3261 §16.6 [route-or-target-is-the-hop].
    """
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
    """Covers RFC 3261 §19.1.5 [other-transports-refused]."""
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
    assert asker.heard == [] and stack.deadline == 0.1  # never within the call
    stack.tick(0.1)
    assert asker.heard == [-487]
    stack.located(1, [UDP], 1.0)
    assert asker.heard == [-487] and stack.take_orders() == [] and stack.transactions == 0


def test_a_large_request_goes_by_tcp_and_by_udp_where_nobody_listens():
    """Covers RFC 3261 §18.1.1 [large-by-tcp] [via-follows] [back-to-udp].

    Covers Field §"Requests too long for UDP".
    """
    stack, asker = lone_stack(), Asker()
    stack.request(request(body=b"x" * 1300), asker, 0.0)
    [(large, way)] = sent(stack)
    assert way == Flow("TCP", (THEM, PORT)) and large.via.transport == "TCP"
    stack.flow_failed(way, 1.0)
    [(large, way)] = sent(stack)
    assert way == UDP and large.via.transport == "UDP" and len(large.vias) == 1
    stack.receive(bytes(response_to(large, 200, to_tag="t")), UDP, 2.0)
    assert asker.heard == [200]


def test_a_request_that_short_names_make_fit_goes_by_udp():
    """RFC 3261 §7.3.3: the names alone are shorter, and each repetition is the same."""
    stack, asker = lone_stack(), Asker()
    room = 1300 - len(bytes(request(body=b"x" * 1000)))
    whole = request(body=b"x" * (1000 + room))  # without our Via
    stack.request(whole.replace(body=whole.body[:-60]), asker, 0.0)
    [order] = stack.take_orders()
    assert order.flow == UDP and len(order.data) <= 1300
    assert b"\r\nv: SIP/2.0/UDP" in order.data and b"\r\nFrom:" not in order.data
    read = parse_message(order.data)
    assert len(bytes(read)) > 1300 and (read.from_, read.body) == (whole.from_, whole.body[:-60])


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


def test_what_is_sent_once_is_one_datagram_to_one_server():
    """No repetition, no failover, no connection to where a name leads; the answer counts."""
    stack, asker = lone_stack(), Asker()
    servers = [Flow("TCP", (THEM, PORT)), UDP, Flow("UDP", ("10.0.0.9", PORT))]
    stack.request(request(uri="sip:bob@b.com"), asker, 0.0, once=True)
    [locate] = stack.take_orders()
    stack.located(locate.token, servers, 0.0)
    big = ("X-Big", "x" * 1400)  # above 1300 octets it would go by TCP first: RFC 3261 §18.1.1
    stack.request(
        request("OPTIONS", f"sip:{THEM}", 2, big), asker, 0.0, flows=servers[1:], once=True
    )
    first, second = sent(stack)
    assert first[1].remote == second[1].remote == (THEM, PORT)
    assert {flow.transport for _, flow in (first, second)} == {"UDP"}
    stack.receive(bytes(response_to(second[0], 503, to_tag="t")), UDP, 0.1)
    while stack.deadline is not None:
        stack.tick(stack.deadline)
        assert sent(stack) == []
    assert asker.heard == [503, -408] and stack.transactions == 0


def test_a_request_is_repeated_where_it_was_sent():
    """Covers RFC 3263 §4 [same-server] [once-a-transaction]."""
    stack, asker = lone_stack(), Asker()
    stack.request(request(uri="sip:bob@b.com"), asker, 0.0)
    stack.take_orders()
    first = Flow("UDP", ("10.0.0.3", PORT))
    stack.located(1, [first, UDP], 0.0)
    stack.tick(stack.deadline)
    (_, way), (_, again) = sent(stack)
    assert way == again == first


def test_a_place_that_is_silent_gets_so_many_requests_and_no_more():
    """Own design: whoever registers it may have strangers call it, and each is repeated."""
    stack, asker = lone_stack(), Asker()
    for number in range(MAX_SILENT + 5):
        stack.request(request("MESSAGE", f"sip:bob@{THEM}", number + 1), asker, 0.0)
    stack.tick(0.0)
    out = sent(stack)
    assert len(out) == MAX_SILENT and asker.heard == [-503] * 5
    stack.receive(bytes(response_to(out[0][0], 100)), UDP, 0.1)
    stack.request(request("MESSAGE", f"sip:bob@{THEM}", 999), asker, 0.1)
    assert any(message.cseq.number == 999 for message, _ in sent(stack))
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    assert stack.transactions == 0 and not stack._clients._silent
