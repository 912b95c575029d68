"""The non-INVITE server transaction keeps Figure 8's promises, whatever both sides do."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from p2psip.errors import LocalError
from p2psip.transaction.server import FIGURE_8, Do, NonInviteServer, State


def test_timers_match_arrows_and_every_box_is_reached():
    """Covers RFC 3261 §17.2.3 [figure-8], §17.2.2 [destroyed-at-once]."""
    for state, arrows in FIGURE_8.items():
        server, _ = NonInviteServer.start(now=0.0)
        server._enter(state, now=0.0)
        assert set(server._timers) == {event for event in arrows if event.startswith("Timer")}
        assert server.finished == (state is State.TERMINATED)
    reached = {target for row in FIGURE_8.values() for target, _ in row.values()}
    assert reached | {State.TRYING} == set(State)


def test_a_status_that_no_codec_writes_is_our_own_bug():
    server, _ = NonInviteServer.start(now=0.0)
    for status in (99, 700):
        with pytest.raises(LocalError, match=str(status)):
            server.respond(status, now=0.0)


class AnyQuestion(RuleBasedStateMachine):
    """Repeated requests, answers in any order, silence and broken sockets."""

    @initialize(reliable=st.booleans(), t1=st.sampled_from([0.5, 2.0]))
    def be_asked(self, reliable, t1):
        """Covers RFC 3261 §17.2.2 [starts-trying] [request-up]."""
        self.now, self.reliable, self.t1 = 0.0, reliable, t1
        self.server, todo = NonInviteServer.start(self.now, reliable=reliable, t1=t1)
        assert todo == (Do.PASS_UP,) and self.server.state is State.TRYING
        assert self.server.deadline is None

    @rule(status=st.sampled_from([100, 199, 200, 299, 300, 486, 699]))
    def answer(self, status):
        """Covers RFC 3261 §17.2.2 [1xx-proceeds] [more-1xx-sent] [final-completes] [timer-j].

        And §17.2.2 [first-final-stands].
        """
        before, todo = self.server.state, self.server.respond(status, self.now)
        if before in (State.TRYING, State.PROCEEDING):
            assert todo == (Do.SEND_RESPONSE,)
            after = State.PROCEEDING if status < 200 else State.COMPLETED
            assert self.server.state is after
            if status >= 200:
                wait = 0.0 if self.reliable else 64 * self.t1
                assert self.server.deadline == self.now + wait
        else:
            assert todo == () and self.server.state is before

    @rule()
    def hear_it_again(self):
        """Covers RFC 3261 §17.2.2 [trying-drops-repeats] [repeat-gets-latest-1xx].

        And §17.2.2 [repeat-gets-final].
        """
        before, todo = self.server.state, self.server.receive(self.now)
        answered = before in (State.PROCEEDING, State.COMPLETED)
        assert todo == ((Do.SEND_RESPONSE,) if answered else ()) and self.server.state is before

    @rule(late=st.floats(0.0, 100.0))
    def wait(self, late):
        """Covers RFC 3261 §17.2.2 [timer-j-ends]."""
        if self.server.deadline is not None:
            self.now = max(self.now, self.server.deadline + late)
            assert self.server.tick(self.now) == () and self.server.state is State.TERMINATED

    @rule()
    def unplug(self):
        """Covers RFC 6026 §8.8 [failure-told]."""
        before, todo = self.server.state, self.server.transport_failed(self.now)
        sending = before in (State.PROCEEDING, State.COMPLETED)
        assert todo == ((Do.FAILED,) if sending else ()) and self.server.state is before

    @invariant()
    def only_completed_waits(self):
        """Covers RFC 3261 §17.2.2 [timer-j] [destroyed-at-once]."""
        assert (self.server.deadline is not None) == (self.server.state is State.COMPLETED)
        assert self.server.finished == (self.server.state is State.TERMINATED)


TestAnyQuestion = AnyQuestion.TestCase
