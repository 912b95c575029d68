"""The INVITE server transaction keeps Figure 7's promises, whatever caller and callee do."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from p2psip.errors import LocalError
from p2psip.transaction.client import T2
from p2psip.transaction.invite_server import FIGURE_7, Do, InviteServer, State

lateness = st.floats(0.0, 100.0)  # seconds the event loop overslept


@given(st.lists(lateness, min_size=13, max_size=13))
def test_an_unheard_refusal_is_repeated_without_bursts_and_given_up(oversleeps):
    """Covers RFC 3261 §17.2.1 [timer-g-doubles-to-t2] [timer-h-starts] [timer-h-gives-up]."""
    call, _ = InviteServer.start(now=0.0)
    assert call.respond(486, now=0.0) == (Do.SEND_RESPONSE,)
    sent, answer = [0.0], ()
    for late in oversleeps:
        if call.deadline is not None:
            now = call.deadline + late
            answer = call.tick(now)
            sent += [now] * answer.count(Do.SEND_RESPONSE)
    assert answer == (Do.FAILED,) and now >= 32.0 > sent[-1]
    assert all(b - a > 0.999 * min(0.5 * 2**i, T2) for i, (a, b) in enumerate(pairwise(sent)))


def test_timers_match_arrows_and_every_box_is_reached():
    """Covers RFC 6026 §8.6 [figure-7], §8.7 [destroyed-at-once]."""
    for state, arrows in FIGURE_7.items():
        call, _ = InviteServer.start(now=0.0)
        call._enter(state, now=0.0)
        drawn = {event for event in arrows if event.startswith(("Timer", "TU won't"))}
        assert set(call._timers) == drawn
        assert call.finished == (state is State.TERMINATED)
    assert {target for row in FIGURE_7.values() for target, _ in row.values()} == set(State)


@pytest.mark.parametrize(
    ("path", "box", "todo"),
    [
        ([0.1], State.PROCEEDING, None),
        ([0.2], State.PROCEEDING, Do.SEND_100),
        (["INVITE"], State.PROCEEDING, Do.SEND_RESPONSE),
        (["ACK"], State.PROCEEDING, None),
        ([180], State.PROCEEDING, Do.SEND_RESPONSE),
        (["unplug"], State.PROCEEDING, Do.FAILED),
        ([200], State.ACCEPTED, Do.SEND_RESPONSE),
        ([486], State.COMPLETED, Do.SEND_RESPONSE),
        ([486, "INVITE"], State.COMPLETED, Do.SEND_RESPONSE),
        ([486, 0.5], State.COMPLETED, Do.SEND_RESPONSE),
        ([486, 0.5, 1.4], State.COMPLETED, None),
        ([486, 0.5, 1.5], State.COMPLETED, Do.SEND_RESPONSE),
        ([486, 0.5, 1.5, 3.4], State.COMPLETED, None),
        ([486, 0.5, 1.5, 3.5], State.COMPLETED, Do.SEND_RESPONSE),
        ([486, 32.0], State.TERMINATED, Do.FAILED),
        ([486, "unplug"], State.COMPLETED, Do.FAILED),
        ([486, "ACK"], State.CONFIRMED, None),
        ([486, "ACK", "ACK"], State.CONFIRMED, None),
        ([486, "ACK", 4.9], State.CONFIRMED, None),
        ([486, "ACK", 5.0], State.TERMINATED, None),
        ([200, "INVITE"], State.ACCEPTED, None),
        ([200, 299], State.ACCEPTED, Do.SEND_RESPONSE),
        ([200, 486], State.ACCEPTED, None),
        ([200, "ACK"], State.ACCEPTED, Do.ACK_UP),
        ([200, "unplug"], State.ACCEPTED, Do.FAILED),
        ([200, 31.9], State.ACCEPTED, None),
        ([200, 32.0], State.TERMINATED, None),
        ([200, 32.0, "INVITE"], State.TERMINATED, None),
    ],
)
def test_every_arrow_leads_somewhere(path, box, todo):
    """Covers RFC 6026 §8.6 [figure-7], §8.5 [2xx-sent] [2xx-accepts], §8.8 [failure-told].

    And §8.7 [absorbs-invites] [more-2xx-sent] [ack-up] [timer-l] [timer-l-ends]
    [destroyed-at-once]; §7.1 [no-2xx-of-its-own]; RFC 3261 §17.2.1 [sends-100] [1xx-sent]
    [repeat-gets-latest-1xx] [failure-completes] [repeat-in-completed] [timer-g-starts]
    [timer-g-resends] [timer-g-doubles-to-t2] [timer-h-starts] [timer-h-gives-up] [ack-confirms]
    [absorbs-acks] [timer-i] [timer-i-ends]; RFC 6026 §6 [2xx-keeps-state] [failure-keeps-state],
    RFC 6026 §7.1 [2xx-accepts] [more-2xx-sent] [ack-up] [timer-l-ends] [failure-keeps-state]
    [failure-changes-nothing].
    """
    (call, done), now = InviteServer.start(now=0.0), 0.0
    for step in path:
        match step:
            case float(now):
                done = call.tick(now)
            case int(status):
                done = call.respond(status, now)
            case "unplug":
                done = call.transport_failed(now)
            case method:
                done = call.receive(method, now)
    assert call.state is box and done == (() if todo is None else (todo,))


def test_over_tcp_nothing_is_repeated_and_no_ack_comes_late():
    """Covers RFC 3261 §17.2.1 [timer-i] [timer-h-starts] [timer-h-gives-up]."""
    call, _ = InviteServer.start(now=0.0, reliable=True)
    call.respond(486, now=0.0)
    assert call.tick(31.9) == () and call.deadline == 32.0
    call.receive("ACK", now=31.9)
    assert call.deadline == 31.9
    unheard, _ = InviteServer.start(now=0.0, reliable=True)
    unheard.respond(486, now=0.0)
    assert unheard.tick(32.0) == (Do.FAILED,)


def test_what_no_caller_may_pass_is_refused():
    call, _ = InviteServer.start(now=0.0)
    for status in (99, 700):
        with pytest.raises(LocalError, match=str(status)):
            call.respond(status, now=0.0)
    with pytest.raises(LocalError):
        call.receive("BYE", now=0.0)


class AnyCall(RuleBasedStateMachine):
    """Repeated INVITEs, ACKs, answers in any order, silence and broken sockets."""

    @initialize(reliable=st.booleans(), t1=st.sampled_from([0.5, 2.0]))
    def be_called(self, reliable, t1):
        """Covers RFC 3261 §17.2.1 [starts-proceeding] [request-up] [sends-100]."""
        self.now, self.reliable, self.t1, self.log, self.spoken = 0.0, reliable, t1, [], False
        self.call, todo = InviteServer.start(self.now, reliable=reliable, t1=t1)
        assert todo == (Do.PASS_UP,) and self.call.state is State.PROCEEDING
        assert self.call.deadline == 0.2

    @rule(status=st.sampled_from([100, 180, 199, 200, 299, 300, 486, 699]))
    def answer(self, status):
        """Covers RFC 3261 §17.2.1 [1xx-sent] [failure-completes] [timer-g-starts].

        And §17.2.1 [timer-h-starts], RFC 6026 §8.5 [2xx-sent] [2xx-accepts],
        RFC 6026 §8.7 [more-2xx-sent] [timer-l].
        """
        before, todo = self.call.state, self.call.respond(status, self.now)
        self.log += todo
        again = before is State.ACCEPTED and 200 <= status < 300
        assert todo == ((Do.SEND_RESPONSE,) if before is State.PROCEEDING or again else ())
        if before is State.PROCEEDING:
            self.spoken = True
            after = {1: before, 2: State.ACCEPTED}.get(status // 100, State.COMPLETED)
            assert self.call.state is after
            if after is State.COMPLETED:
                wait = 64 * self.t1 if self.reliable else self.t1
                assert self.call.deadline == self.now + wait
            elif after is State.ACCEPTED:
                assert self.call.deadline == self.now + 64 * self.t1
            else:
                assert self.call.deadline is None  # no 100 is needed any more
        else:
            assert self.call.state is before

    @rule()
    def hear_invite_again(self):
        """Covers RFC 3261 §17.2.1 [repeat-gets-latest-1xx] [repeat-in-completed].

        And RFC 6026 §8.7 [absorbs-invites].
        """
        before, todo = self.call.state, self.call.receive("INVITE", self.now)
        self.log += todo
        answered = before in (State.PROCEEDING, State.COMPLETED)
        assert todo == ((Do.SEND_RESPONSE,) if answered else ()) and self.call.state is before

    @rule()
    def hear_ack(self):
        """Covers RFC 3261 §17.2.1 [ack-confirms] [absorbs-acks].

        And RFC 6026 §8.7 [ack-up].
        """
        before, todo = self.call.state, self.call.receive("ACK", self.now)
        self.log += todo
        assert todo == ((Do.ACK_UP,) if before is State.ACCEPTED else ())
        if before is State.COMPLETED:
            assert self.call.state is State.CONFIRMED
            assert self.call.deadline == self.now + (0.0 if self.reliable else 5.0)
        else:
            assert self.call.state is before

    @rule(late=lateness)
    def wait(self, late):
        """Covers RFC 3261 §17.2.1 [timer-g-resends] [timer-i-ends] [sends-100].

        And RFC 6026 §7.1 [no-2xx-of-its-own], §8.7 [timer-l-ends].
        """
        if self.call.deadline is not None:
            self.now = max(self.now, self.call.deadline + late)
            before, todo = self.call.state, self.call.tick(self.now)
            self.log += todo
            if before is State.PROCEEDING:
                assert todo == (Do.SEND_100,) and not self.spoken
                assert self.call.deadline is None
            elif before is State.COMPLETED:
                assert todo in ((Do.SEND_RESPONSE,), (Do.FAILED,))
                assert not (self.reliable and Do.SEND_RESPONSE in todo)
            else:
                assert todo == () and self.call.state is State.TERMINATED

    @rule()
    def unplug(self):
        """Covers RFC 6026 §8.8 [failure-told], §7.1 [failure-changes-nothing]."""
        before, todo = self.call.state, self.call.transport_failed(self.now)
        sending = before in (State.PROCEEDING, State.COMPLETED, State.ACCEPTED)
        assert todo == ((Do.FAILED,) if sending else ()) and self.call.state is before

    @invariant()
    def only_an_open_invitation_waits_for_ever(self):
        """Covers RFC 3261 §17.2.1 [timer-h-gives-up], RFC 6026 §8.7 [destroyed-at-once]."""
        undecided = (State.PROCEEDING, State.TERMINATED)
        assert self.call.deadline is not None or self.call.state in undecided
        if Do.FAILED in self.log:
            assert self.log[-1] is Do.FAILED and self.call.finished


TestAnyCall = AnyCall.TestCase
