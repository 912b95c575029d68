"""Requests to us: how they are matched, answered, cancelled and forgotten."""

from stacks import THEM, UDP, Server, incoming, lone_stack, sent

from p2psip.core.stack import Flow
from p2psip.sip.message import Response


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


def test_over_tcp_the_response_takes_the_connection_back():
    stack = lone_stack()
    flow = Flow("TCP", (THEM, 40000))
    stack.receive(incoming("OPTIONS", via="SIP/2.0/TCP b.com;branch=z9hG4bK1"), flow, 0.0)
    assert [way for _, way in sent(stack)] == [flow]
    assert stack.transactions == 0  # timer J is zero


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
