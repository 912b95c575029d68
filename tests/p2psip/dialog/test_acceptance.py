"""A 2xx is repeated until its ACK comes, and not for ever."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from p2psip.dialog.acceptance import Acceptance, Do, State, glare_delay
from p2psip.transaction.client import T2

lateness = st.floats(0.0, 100.0)  # seconds the event loop overslept


@given(st.lists(lateness, min_size=12, max_size=12))
def test_a_late_loop_never_bursts_and_always_gives_up(oversleeps):
    """Covers RFC 6026 §8.1 [2xx-repeats] [gaps-double-to-t2], and the end after 64*T1."""
    accepted, todo = Acceptance.start(now=0.0)
    sent = [0.0]
    for late in oversleeps:
        if accepted.deadline is not None:
            now = accepted.deadline + late
            todo = accepted.tick(now)
            sent += [now] * todo.count(Do.SEND_2XX)
    assert todo == (Do.UNHEARD,) and now >= 32.0 > sent[-1]
    assert all(b - a > 0.999 * min(0.5 * 2**i, T2) for i, (a, b) in enumerate(pairwise(sent)))


def test_a_punctual_loop_keeps_the_gaps():
    """Covers RFC 6026 §8.1 [2xx-repeats] [gaps-double-to-t2].

    Covers RFC 3261 §13.3.1.4 [ends-without-an-ack].
    """
    accepted, _ = Acceptance.start(now=0.0)
    heard = []
    while (now := accepted.deadline) is not None:
        heard += [(now, do) for do in accepted.tick(now)]
    at = [0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5]
    assert heard == [*((now, Do.SEND_2XX) for now in at), (32.0, Do.UNHEARD)]


class AnyAck(RuleBasedStateMachine):
    """ACKs, late or repeated or never."""

    @initialize(t1=st.sampled_from([0.02, 0.5]))
    def accept(self, t1):
        self.now, self.log = 0.0, []
        self.accepted, todo = Acceptance.start(self.now, t1=t1)
        assert todo == (Do.SEND_2XX,) and self.accepted.deadline == t1

    @rule()
    def hear_ack(self):
        """Covers RFC 6026 §8.1 [ack-hushes]."""
        waiting = self.accepted.state is State.WAITING
        todo = self.accepted.acknowledge(self.now)
        assert todo == ((Do.CONFIRMED,) if waiting else ())
        assert not waiting or self.accepted.state is State.ACKNOWLEDGED
        self.log += todo

    @rule(late=lateness)
    def wait(self, late):
        if self.accepted.deadline is not None:
            self.now = max(self.now, self.accepted.deadline + late)
            self.log += self.accepted.tick(self.now)

    @invariant()
    def there_is_one_verdict_and_then_silence(self):
        verdicts = [do for do in self.log if do is not Do.SEND_2XX]
        assert verdicts == self.log[-1:] or not verdicts
        assert self.accepted.finished == bool(verdicts) == (self.accepted.deadline is None)


TestAnyAck = AnyAck.TestCase


@given(st.binary(min_size=4, max_size=4), st.booleans())
def test_the_sides_of_a_glare_wait_apart(octets, owner):
    """Covers RFC 3261 §14.1 [491-waits].

    2.1 to 4 s for who chose the Call-ID, 0 to 2 s for the other.
    """
    delay = glare_delay(lambda n: octets[:n], owner)
    assert (2.1 <= delay <= 4.0) if owner else (0.0 <= delay <= 2.0)
    assert abs(delay * 100 - round(delay * 100)) < 1e-9
    assert glare_delay(lambda n: b"\xff" * n, owner) == (4.0 if owner else 2.0)
    assert glare_delay(lambda n: b"\0" * n, owner) == (2.1 if owner else 0.0)
