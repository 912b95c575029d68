"""One stack: what it absorbs, what it sends to itself, what it cannot be made to do."""

import random as random_module

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations
from support.rtmfp.link import Link, calm, storm
from support.sip.elements import PORT, Element
from support.sip.stacks import (
    THEM,
    UDP,
    US,
    Asker,
    Server,
    incoming,
    lone_stack,
    pair,
    request,
    sent,
)

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import REFUSALS, Flow, Recipient, Send
from p2psip.strategies import sip


@given(st.randoms(use_true_random=False), st.sampled_from(["INVITE", "MESSAGE"]))
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


@pytest.mark.parametrize(("method", "status"), [("INVITE", 183), ("MESSAGE", 200)])
def test_a_message_goes_to_its_transaction_and_else_to_the_core(method, status):
    """Covers RFC 6026 §8.9 [match-is-passed-on], §8.10 [match-is-passed-on] [else-to-the-core]."""
    core, asker = Server(status), Asker()
    stack = lone_stack(core)
    for now, branch, requests in ((0.0, "x", 1), (0.1, "x", 1), (0.2, "y", 2)):
        via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{branch}"
        stack.receive(incoming(method, via=via), UDP, now)
        [(response, _)] = sent(stack)  # to a repetition from the transaction, which has it
        assert response.status == status and response.via.branch == f"z9hG4bK{branch}"
        assert len(core.requests) == requests
    stack.request(request(method), asker, 1.0)
    [(asked, _)] = sent(stack)
    stack.receive(bytes(response_to(asked, status, to_tag="b")), UDP, 1.1)
    assert asker.heard == [status]


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


def test_a_full_stack_refuses_and_keeps_count():
    core, asker = Server(180), Asker()
    stack = lone_stack(core, max_transactions=3)
    for n in range(5):
        via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"
        stack.receive(incoming(via=via), Flow("UDP", (f"192.0.2.{n}", PORT)), 0.0)
    statuses = [message.status for message, _ in sent(stack)]
    assert statuses == [180, 180, 180, 503, 503] and stack.counters.refused == 2
    for cseq in range(
        5
    ):  # what we ask has room of its own, so that a flood cannot keep us from BYE
        stack.request(request(cseq=cseq), asker, 1.0)
    stack.tick(1.0)
    assert asker.heard == [-503, -503] and len(sent(stack)) == 3 and stack.transactions == 6


def test_one_host_cannot_fill_a_stack():
    """Own design: whoever floods us is refused, and others are still served."""
    stack = lone_stack(Server(180), max_transactions=6)
    other = Flow("UDP", ("192.0.2.99", 5060))
    for n, flow in enumerate([UDP] * 5 + [other]):
        via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"
        stack.receive(incoming(via=via), flow, 0.0)
    messages = [message for message, _ in sent(stack)]
    assert [message.status for message in messages] == [180] * 3 + [503] * 2 + [180]
    assert stack.counters.refused == 2 and messages[3].headers.get("Retry-After") == "5"
    for handle in stack.core.handles:
        handle.reply(200, 0.5)
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    stack.take_orders()
    stack.receive(incoming(via=f"SIP/2.0/UDP {THEM};branch=z9hG4bKagain"), UDP, 1000.0)
    assert [message.status for message, _ in sent(stack)] == [180]
    assert dict(stack._kept.of_host) == {UDP.remote[0]: 1}


def test_many_hosts_together_leave_room_for_the_next():
    """Own design: twenty floods, and there is room for the calls of an honest host."""
    stack, refused = lone_stack(Server(180), max_transactions=2000), 0
    for n in range(4000):
        flow = Flow("UDP", (f"192.0.2.{n % 20}", PORT))
        stack.receive(incoming(via=f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"), flow, 0.0)
        refused += [message.status for message, _ in sent(stack)] != [180]
    assert refused > 2000
    for n in range(40):
        stack.receive(incoming(via=f"SIP/2.0/UDP {THEM};branch=z9hG4bKh{n}"), UDP, 0.1)
        assert [message.status for message, _ in sent(stack)] == [180]


def test_what_is_up_has_room_when_others_have_none():
    """Own design: a BYE of a call, and what renews a registration; a stranger hears a 503."""
    stack = lone_stack(Server(200), max_transactions=16)
    stack.core.knows = lambda request: request.to.tag == "up" or request.method == "REGISTER"

    def ask(n, method, to=""):
        flow = Flow("UDP", (f"192.0.2.{n}", PORT))
        via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"
        stack.receive(incoming(method, via=via, to=to), flow, 0.0)
        return [message.status for message, _ in sent(stack)]

    assert [ask(n, "INVITE") for n in range(15)] == [[200]] * 14 + [[503]]
    assert ask(20, "BYE", ";tag=up") == ask(21, "REGISTER") == [200]
    assert ask(22, "BYE", ";tag=unknown") == [503]
    assert stack.transactions == 16


def test_a_flood_is_not_told_each_time_that_it_is_one():
    """Own design: so many 503 a second, and silence for the rest (RFC 3261 §21.5.4)."""
    stack = lone_stack(Server(180), max_transactions=0)
    for second in (0.0, 1.0):
        for n in range(REFUSALS + 50):
            via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"
            stack.receive(incoming(via=via), UDP, second)
        assert len(stack.take_orders()) == REFUSALS


def test_a_refusal_at_once_leaves_nothing():
    """Covers RFC 3261 §8.2.7 [no-repeats-without-memory] [ack-without-memory].

    Covers RFC 3261 §26.3.2.4 [refuses-once]: the same each time; its ACK is no news.

    And RFC 3261 §8.2.7 [tag-without-memory]: one answer each time, the same; its ACK is no news.
    What the core has kept longer is repeated until its ACK comes, as §17.2.1 says.
    """
    for status in (401, 403, 404, 407, 416, 480, 482, 488, 500, 503):
        core = Server(status)
        stack = lone_stack(core)
        for at in (0.0, 0.5):
            stack.receive(incoming(), UDP, at)
        first, again = sent(stack)
        assert first == again and first[0].status == status and first[0].to.tag
        stack.receive(incoming("ACK", to=f";tag={first[0].to.tag}"), UDP, 0.6)
        assert stack.transactions == 0 and stack.deadline is None and core.ended == core.handles
        assert stack.take_orders() == [] and not core.acks
        stack.receive(incoming("ACK", to=";tag=other"), UDP, 0.7)
        assert len(core.acks) == 1  # it might have been for a dialog of ours


def test_an_answer_that_changes_nothing_leaves_nothing():
    """Covers RFC 3261 §11: asked again, an OPTIONS is answered again; a REGISTER is not."""
    for method, kept in (("OPTIONS", 0), ("REGISTER", 1), ("MESSAGE", 1)):
        stack = lone_stack(Server(200))
        for at in (0.0, 0.5):
            stack.receive(incoming(method), UDP, at)
        first, again = sent(stack)
        assert first == again and stack.transactions == kept
        assert len(stack.core.requests) == 2 - kept


def test_within_a_dialog_a_refusal_is_remembered():
    """Covers RFC 3261 §17.2.2: its CSeq counts once, whatever the answer was."""
    stack = lone_stack(Server(488))
    stack.core.knows = lambda request: request.to.tag == "up"
    for method in ("INFO", "INVITE"):
        for at in (0.0, 0.1):
            stack.receive(incoming(method, to=";tag=up"), UDP, at)
    assert len(stack.core.requests) == 2 == stack.transactions


def test_a_core_decides_once_who_gets_a_request():
    """Covers RFC 6026 §8.10 [else-to-the-core]: a copy of the request asks nobody again."""
    asked, core = [], Server(180)

    def recipient(request, flow, now):
        asked.append(request.method)
        return Recipient(core.on_request)

    core.recipient = recipient
    stack = lone_stack(core)
    for at in (0.0, 0.1):
        stack.receive(incoming(), UDP, at)
    assert asked == ["INVITE"] and len(core.requests) == 1


@pytest.mark.parametrize(("error", "status"), [(RemoteError("What", 415), 415), (KeyError(), 500)])
def test_a_core_that_cannot_decide_answers_with_its_error(error, status):
    """Own design: as if the recipient had raised it, and nothing is left."""
    told, core = [], Server()

    def recipient(request, flow, now):
        raise error

    core.recipient = recipient
    stack = lone_stack(core)
    stack.on_error = told.append
    stack.receive(incoming("OPTIONS"), UDP, 0.0)
    assert [message.status for message, _ in sent(stack)] == [status]
    assert told == ([] if status == 415 else [error]) and stack.transactions == 0


def test_an_error_of_a_core_is_answered_and_leaves_nothing():
    """Covers RFC 3261 §21.5.1: 500, whatever it had done before; and the others go on."""

    class Faulty(Server):
        def on_request(self, server, request, now):
            super().on_request(server, request, now)
            raise ZeroDivisionError

        def on_ack(self, request, flow, now):
            raise ZeroDivisionError

        def on_transaction_end(self, handle, now):
            super().on_transaction_end(handle, now)
            raise ZeroDivisionError

    def told(error):
        errors.append(type(error))

    for statuses in ((), (180,), (480,), (180, 480)):
        core, errors = Faulty(), []
        core.statuses = statuses
        stack = lone_stack(core)
        stack.on_error = told
        stack.receive(incoming(), UDP, 0.0)
        final = next(m for m, _ in sent(stack) if m.status >= 200)
        assert final.status == (480 if 480 in statuses else 500)
        assert len(core.cancelled) == 1  # whatever it keeps for that call, it lets go
        stack.receive(incoming("ACK", to=f";tag={final.to.tag}"), UDP, 0.1)
        while stack.deadline is not None:
            stack.tick(stack.deadline)
        assert stack.transactions == 0 and len(core.ended) == 1
        assert set(errors) == {ZeroDivisionError}


def test_an_error_of_who_asked_is_told_and_leaves_nothing():
    """Own design: the asker then hears that it failed; a CANCEL is answered all the same."""

    class Faulty(Asker):
        def on_response(self, handle, response, now):
            raise ZeroDivisionError

    class Uncancellable(Server):
        def on_cancel(self, handle, now):
            raise ZeroDivisionError

    stack, asker, errors = lone_stack(Uncancellable(180)), Faulty(), []
    stack.on_error = errors.append
    stack.request(request(), asker, 0.0)
    [(asked, _)] = sent(stack)
    stack.receive(bytes(response_to(asked, 200, to_tag="t")), UDP, 0.1)
    stack.receive(incoming(), UDP, 0.2)
    stack.receive(incoming("CANCEL"), UDP, 0.3)
    assert asker.heard == [-500] and len(errors) == 2
    assert [message.status for message, _ in sent(stack)] == [180, 200, 487]
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    assert stack.transactions == 0


def test_all_addresses_of_a_prefix_are_one_host():
    """Own design: who has one address of IPv6 has 2**64, each of them good for a share."""
    stack = lone_stack(Server(180), max_transactions=6)
    for n, place in enumerate(["2::1", "2::2", "2::ffff:1", "2::4", "2:0:0:1::1"]):
        via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"
        stack.receive(incoming(via=via), Flow("UDP", (place, 5060)), 0.0)
    assert [message.status for message, _ in sent(stack)] == [180] * 3 + [503, 180]
    for handle in stack.core.handles:
        handle.reply(486, 0.5)
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    assert not stack._kept.of_host and not stack._held.of_host


def test_what_counts_as_repeated_is_what_was_sent_twice():
    stack = lone_stack(Server(180, 486))
    stack.receive(incoming(), UDP, 0.0)
    stack.receive(incoming(), UDP, 0.5)
    assert stack.counters.repeated == 1
    stack.receive(incoming("ACK"), UDP, 0.6)  # each refusal has one, and nothing got lost
    assert stack.counters.repeated == 1


def test_large_requests_fill_a_stack_before_many_do():
    """Own design: what is kept is counted in bytes as well, and none is left at the end."""
    core = Server(180)
    stack = lone_stack(core, max_bytes=120_000)
    for n in range(6):
        via = f"SIP/2.0/UDP {THEM};branch=z9hG4bK{n}"
        large = incoming(via=via).replace(b"\r\n\r\n", b"\r\nX: " + bytes(30_000) + b"\r\n\r\n")
        flow = Flow("UDP", (f"192.0.2.{n}", PORT))
        stack.receive(large.replace(b"\0", b"x"), flow, 0.0)
    statuses = [message.status for message, _ in sent(stack)]
    assert statuses == [180] * 3 + [503] * 3 and stack.counters.refused == 3
    assert 90_000 < stack._held.used <= 120_000
    for handle in core.handles:
        handle.reply(486, 0.5)
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    assert stack.transactions == 0 and stack._held.used == 0


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
    """Covers RFC 3261 §8.2.7 [tag-without-memory], §18.3 [short-request-400].

    Covers RFC 3261 §18.3 [short-response-dropped].
    """
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
    assert first.status == 400  # its body is too short
    short = bytes(response_to(parse_message(good), 200)).replace(b"Length: 0", b"Length: 9")
    for silent in (
        b"",
        b"\r\n\r\n",
        b"garbage",
        short,
        good.replace(b"Via", b"Vie"),
        incoming("ACK").replace(b"Call-ID", b"Call"),
    ):
        stack.receive(silent, UDP, 0.0)
        assert stack.take_orders() == []
    assert stack.transactions == 0


any_datagram = mutations(sip.messages() | sip.broken_requests().map(lambda pair: pair[0]))


@given(st.lists(any_datagram, max_size=6))
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
    assert stack.transactions == stack._held.used == 0 and asker.heard == []


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
