"""Requests to us: how they are matched, answered, cancelled and forgotten."""

from support.sip.stacks import THEM, UDP, US, Server, incoming, lone_stack, sent

from p2psip.sip.message import Response
from p2psip.stack.stack import Flow


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


def test_all_answers_to_one_request_have_one_tag():
    """Covers RFC 3261 §8.2.6.2 [one-tag-for-all]: but a 100, which needs none."""
    stack = lone_stack(Server(100, 180, 183, 486))
    stack.receive(incoming(), UDP, 0.0)
    trying, *others = (message.to.tag for message, _ in sent(stack))
    assert trying is None and others == [others[0]] * 3 and others[0]


def test_only_an_invite_is_told_that_it_waits():
    """Covers RFC 3261 §8.2.6.1 [no-1xx-but-for-invite], §8.2.7 [no-1xx-without-memory]."""
    core = Server()
    core.statuses = ()
    stack = lone_stack(core)
    stack.receive(incoming("MESSAGE"), UDP, 0.0)
    stack.tick(30.0)
    assert sent(stack) == []
    core.statuses = (180,)
    stack.receive(incoming(), UDP, 31.0)
    assert [message.status for message, _ in sent(stack)] == [180] and stack.transactions == 2


def test_what_a_cancel_requires_is_no_reason_to_refuse_it():
    """Covers RFC 3261 §8.2.2.3 [ignored-in-what-follows]."""
    stack = lone_stack(Server(180))
    stack.receive(incoming(), UDP, 0.0)
    cancel = incoming("CANCEL").replace(b"\r\nTo:", b"\r\nRequire: x\r\nTo:")
    assert b"Require" in cancel
    stack.receive(cancel, UDP, 0.1)
    assert [message.status for message, _ in sent(stack)] == [180, 200, 487]


def test_old_clients_reach_their_transactions_by_other_means():
    """Covers RFC 3261 §17.2.3 [2543-invite] [2543-ack], RFC 6026 §6 [2543-ack-when-accepted].

    And RFC 6026 §8.7 [ack-up].
    """
    old = f"SIP/2.0/UDP {THEM}"
    for status, acks in ((486, 0), (200, 1)):
        core = Server(180, status)
        stack = lone_stack(core)
        stack.receive(incoming(via=old), UDP, 0.0)
        _, (response, _) = sent(stack)
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


def test_a_late_copy_of_a_refused_invite_is_not_acknowledged_by_the_ack_of_the_refusal():
    """Covers RFC 6026 §8.7 [ack-up]: of the 2xx, which the tag of the other ACK cannot mean."""
    core = Server(486)
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    [(busy, _)] = sent(stack)
    core.statuses = (200,)
    stack.receive(incoming(), UDP, 0.5)
    [(ok, _)] = sent(stack)
    assert busy.status == 486 and ok.status == 200 and stack.transactions == 1
    stack.receive(incoming("ACK", to=f";tag={busy.to.tag}"), UDP, 0.6)
    assert not core.acks
    stack.receive(incoming("ACK", to=f";tag={ok.to.tag}"), UDP, 0.7)
    assert len(core.acks) == 1


def test_the_ack_of_a_refusal_is_no_news_after_its_transaction():
    """Own design: a late copy of that ACK has the tag that the same request gets again."""
    core = Server(180, 486)
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    _, (busy, _) = sent(stack)
    for at in (0.1, 60.0):
        stack.receive(incoming("ACK", to=f";tag={busy.to.tag}"), UDP, at)
        while stack.deadline is not None:
            stack.tick(stack.deadline)
    assert stack.transactions == 0 and not core.acks


def test_cancel_ends_an_open_invite_and_nothing_else():
    """Covers RFC 3261 §9.2 [481-without-a-match] [same-to-tag].

    And §22.1 [cancel-not-challenged] [cancel-of-its-hop].
    """
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
    [(again, _)] = sent(stack)
    assert (again.status, again.to.tag) == (200, messages[0].to.tag)


def test_a_cancelled_invite_that_nobody_took_is_answered_by_the_stack():
    """Covers RFC 3261 §9.2 [487-for-the-invite]."""
    core = Server(180)
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    core.handles[0].user = None
    stack.receive(incoming("CANCEL"), UDP, 0.1)
    assert [message.status for message, _ in sent(stack)] == [180, 200, 487]


def test_a_cancel_of_an_invite_refused_at_once_has_the_tag_of_the_refusal():
    """Covers RFC 3261 §9.2 [same-to-tag]: also where nothing is kept of the INVITE."""
    stack = lone_stack(Server(486))
    stack.receive(incoming(), UDP, 0.0)
    stack.receive(incoming("CANCEL"), UDP, 0.1)
    (refused, _), (cancelled, _) = sent(stack)
    assert (refused.status, cancelled.status) == (486, 481)
    assert refused.to.tag == cancelled.to.tag is not None


def test_a_cancel_after_the_answer_changes_nothing():
    """Covers RFC 3261 §9.2 [200-for-the-cancel]."""
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


def test_a_response_whose_connection_is_gone_takes_another():
    """Covers RFC 3261 §18.2.2: to where the client listens, at the address it came from."""
    core = Server(180)
    stack = lone_stack(core)
    flow = Flow("TCP", (THEM, 40000), (US, 5060))
    for branch, sent_by in (("1", "b.com:5070"), ("2", "b.com")):
        stack.receive(incoming(via=f"SIP/2.0/TCP {sent_by};branch=z9hG4bK{branch}"), flow, 0.0)
    assert [way for _, way in sent(stack)] == [flow, flow]
    stack.flow_failed(flow, 1.0)
    assert sent(stack) == []  # there is no hurry with what is no answer
    for handle in core.handles:
        handle.reply(200, 2.0)
    ways = [Flow("TCP", (THEM, port)) for port in (5070, 5060)]
    assert [way for _, way in sent(stack)] == ways
    stack.flow_failed(ways[0], 3.0)
    assert [handle.failed for handle in core.handles] == [True, False]  # RFC 6026 §8.8


def test_a_refusal_that_may_be_lost_with_its_connection_is_said_again():
    """Covers RFC 3261 §18.2.2; a 2xx is said again by who gave it."""
    flow = Flow("TCP", (THEM, 40000), (US, 5060))
    for status, again in ((486, 1), (200, 0)):
        stack = lone_stack(Server(180, status))
        via = "SIP/2.0/TCP b.com:5070;branch=z9hG4bK1"
        stack.receive(incoming(via=via), flow, 0.0)
        _, (first, _) = sent(stack)
        stack.flow_failed(flow, 0.1)
        stack.flow_failed(flow, 0.1)
        assert sent(stack) == [(first, Flow("TCP", (THEM, 5070)))] * again
        ack = incoming("ACK", via=via, to=f";tag={first.to.tag}")
        stack.receive(ack, Flow("TCP", (THEM, 40001), (US, 5060)), 0.2)
        assert stack.transactions == (status == 200)


def test_unanswered_responses_are_reported_and_forgotten():
    """Covers RFC 3261 §17.2.1 [timer-h-gives-up], RFC 6026 §8.8 [failure-told].

    And RFC 6026 §7.1 [destroyed-at-once], §8.3 [late-response-discarded].
    """
    core = Server(180, 486)
    stack = lone_stack(core)
    stack.receive(incoming(), UDP, 0.0)
    stack.flow_failed(UDP, 0.1)
    [handle] = core.handles
    assert handle.failed and stack.transactions == 1 and handle.final == 486
    while stack.deadline is not None:
        stack.tick(stack.deadline)
    assert core.ended == [handle] and stack.transactions == 0
    kept = handle.size
    handle.respond(Response(200, "OK", handle.request.headers), 99.0)
    assert len(stack.take_orders()) == 12 and handle.size == kept


def test_what_keeps_a_router_open_is_no_malformed_message():
    """Covers Field §"Keep-alives of other kinds"."""
    stack = lone_stack(Server())
    for data in (b"", b"\r\n", b"\r\n\r\n", b"\0\0\0\0", b"\r\n\0", b" \r\n"):
        stack.receive(data, UDP, 0.0)
    assert sent(stack) == [] and stack.counters.malformed == 0
