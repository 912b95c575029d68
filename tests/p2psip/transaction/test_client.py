"""The non-INVITE client transaction keeps Figure 6's promises, whatever the network does."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from p2psip.errors import LocalError
from p2psip.transaction.client import FIGURE_6, T2, T4, Do, NonInviteClient, State

lateness = st.floats(0.0, 100.0)  # seconds the event loop overslept


def schedule(client):
    """When a client repeats its request, if nobody ever says a word; and when it gives up."""
    sent = []
    while client.deadline is not None:
        now = client.deadline
        todo = client.tick(now)
        if todo == (Do.SEND_REQUEST,):
            sent.append(now)
    assert todo == (Do.TIMED_OUT,)
    return sent, now


def test_gaps_double_up_to_t2_until_timer_f():
    """Covers RFC 3261 §17.1.2.2 [timer-e-doubles-to-t2] [t2-default] [timer-f-in-trying].

    Covers Field §"Requests without an answer".
    """
    sent, end = schedule(NonInviteClient.start(now=0.0)[0])
    assert sent == [0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5] and end == 32.0


def test_a_provisional_response_slows_down_and_does_not_hush():
    """Covers RFC 3261 §17.1.2.2 [timer-e-in-proceeding] [timer-e-at-t2].

    And §17.1.2.2 [timer-f-in-proceeding].
    """
    client, _ = NonInviteClient.start(now=0.0)
    client.receive(100, now=0.1)
    sent, end = schedule(client)
    assert sent[0] == 0.5 and {b - a for a, b in pairwise(sent)} == {T2} and end == 32.0


@given(st.lists(lateness, min_size=12, max_size=12))
def test_a_late_loop_never_bursts_and_always_gives_up(oversleeps):
    """Covers RFC 3261 §17.1.2.2 [timer-e-doubles-to-t2] [timer-f-starts]."""
    client, _ = NonInviteClient.start(now=0.0)
    sent, answer = [0.0], ()
    for late in oversleeps:
        if client.deadline is not None:
            now = client.deadline + late
            answer = client.tick(now)
            sent += [now] * answer.count(Do.SEND_REQUEST)
    assert answer == (Do.TIMED_OUT,) and now >= 32.0 > sent[-1]
    assert all(b - a > 0.999 * min(0.5 * 2**i, T2) for i, (a, b) in enumerate(pairwise(sent)))


def test_timers_match_arrows_and_every_box_is_reached():
    """Covers RFC 3261 §17.1.4 [figure-6], §17.1.2.2 [destroyed-at-once]."""
    timers = {}
    for path in ((), (100,), (100, 200)):
        client, _ = NonInviteClient.start(now=0.0)
        for status in path:
            client.receive(status, now=0.0)
        timers[client.state] = set(client._timers)
    for state, arrows in FIGURE_6.items():
        drawn = {event for event in arrows if event.startswith("Timer")}
        assert timers.get(state, set()) == drawn
    assert {target for row in FIGURE_6.values() for target, _ in row.values()} == set(State)


@pytest.mark.parametrize(
    ("path", "box", "todo"),
    [
        ([0.5], State.TRYING, Do.SEND_REQUEST),
        ([32.0], State.TERMINATED, Do.TIMED_OUT),
        (["unplug"], State.TERMINATED, Do.UNREACHABLE),
        ([100], State.PROCEEDING, Do.PASS_UP),
        ([200], State.COMPLETED, Do.PASS_UP),
        ([100, 0.5], State.PROCEEDING, Do.SEND_REQUEST),
        ([100, 32.0], State.TERMINATED, Do.TIMED_OUT),
        ([100, "unplug"], State.TERMINATED, Do.UNREACHABLE),
        ([100, 199], State.PROCEEDING, Do.PASS_UP),
        ([100, 486], State.COMPLETED, Do.PASS_UP),
        ([200, 199], State.COMPLETED, None),
        ([200, 200], State.COMPLETED, None),
        ([200, "unplug"], State.COMPLETED, None),
        ([200, 4.9], State.COMPLETED, None),
        ([200, 5.0], State.TERMINATED, None),
        ([200, 5.0, 200], State.TERMINATED, None),
    ],
)
def test_every_arrow_leads_somewhere(path, box, todo):
    """Covers RFC 3261 §17.1.4 [figure-6] [failure-ends], §17.1.2.2 [1xx-proceeds].

    And §17.1.2.2 [final-completes] [buffers-repeats] [timer-e-in-proceeding] [timer-e-starts]
    [timer-f-starts] [timer-f-in-trying] [timer-f-in-proceeding] [timer-k] [timer-k-ends]
    [timer-e-doubles-to-t2] [destroyed-at-once] [t4-default].
    """
    (client, done), now = NonInviteClient.start(now=0.0), 0.0
    for step in path:
        match step:
            case float(now):
                done = client.tick(now)
            case int(status):
                done = client.receive(status, now)
            case _:
                done = client.transport_failed(now)
    assert client.state is box and done == (() if todo is None else (todo,))


def test_a_status_that_no_parser_lets_through_is_our_own_bug():
    client, _ = NonInviteClient.start(now=0.0)
    for status in (99, 700):
        with pytest.raises(LocalError, match=str(status)):
            client.receive(status, now=0.0)


class AnyNetwork(RuleBasedStateMachine):
    """Responses, silence and broken sockets, in any order and at any pace."""

    @initialize(reliable=st.booleans(), t1=st.sampled_from([0.5, 2.0]))
    def ask(self, reliable, t1):
        """Covers RFC 3261 §17.1.2.2 [starts-trying] [sends-request] [timer-e-starts].

        And §17.1.2.2 [timer-f-starts].
        """
        self.now, self.reliable, self.t1, self.log = 0.0, reliable, t1, []
        self.client, todo = NonInviteClient.start(self.now, reliable=reliable, t1=t1)
        assert todo == (Do.SEND_REQUEST,) and self.client.state is State.TRYING
        assert self.client.deadline == (64 * t1 if reliable else t1)

    @rule(status=st.sampled_from([100, 199, 200, 299, 300, 486, 699]))
    def hear(self, status):
        """Covers RFC 3261 §17.1.2.2 [1xx-proceeds] [final-completes] [buffers-repeats].

        And §17.1.2.2 [timer-k] [t4-default].
        """
        before, todo = self.client.state, self.client.receive(status, self.now)
        self.log += todo
        open_still = before in (State.TRYING, State.PROCEEDING)
        assert todo == ((Do.PASS_UP,) if open_still else ())
        if open_still:
            after = State.PROCEEDING if status < 200 else State.COMPLETED
            assert self.client.state is after
        else:
            assert self.client.state is before
        if open_still and status >= 200:
            assert self.client.deadline == self.now + (0.0 if self.reliable else 5.0)

    @rule(late=lateness)
    def wait(self, late):
        """Covers RFC 3261 §17.1.2.2 [timer-k-ends] [timer-e-in-proceeding]."""
        if self.client.deadline is not None:
            self.now = max(self.now, self.client.deadline + late)
            before, todo = self.client.state, self.client.tick(self.now)
            self.log += todo
            assert not (self.reliable and Do.SEND_REQUEST in todo)
            if before is State.COMPLETED:
                assert todo == () and self.client.state is State.TERMINATED

    @rule()
    def unplug(self):
        """Covers RFC 3261 §17.1.4 [failure-ends]."""
        before, todo = self.client.state, self.client.transport_failed(self.now)
        self.log += todo
        assert (Do.UNREACHABLE in todo) == (before in (State.TRYING, State.PROCEEDING))
        assert Do.UNREACHABLE not in todo or self.client.state is State.TERMINATED

    @invariant()
    def there_is_one_outcome_and_then_silence(self):
        """Covers RFC 3261 §17.1.2.2 [destroyed-at-once] [timer-f-in-trying]."""
        bad_news = [do for do in self.log if do in (Do.TIMED_OUT, Do.UNREACHABLE)]
        assert bad_news == self.log[-1:] or not bad_news
        assert (self.client.deadline is None) == (self.client.state is State.TERMINATED)
        assert self.client.finished == (self.client.state is State.TERMINATED)

    def teardown(self):
        """Whatever happened, time alone ends it: T4 and 64*T1 are the longest it can last."""
        while hasattr(self, "client") and self.client.deadline is not None:
            self.client.tick(self.client.deadline)
            assert self.client.deadline is None or self.client.deadline < self.now + 128 * T4


TestAnyNetwork = AnyNetwork.TestCase
