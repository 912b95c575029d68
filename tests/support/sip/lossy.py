"""The link of stateful tests: whatever is lost, doubled or late on it, both ends agree at last."""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from support.rtmfp.link import Link, calm, storm

SHORT = settings(stateful_step_count=20)
MERCY = 3  # times in a row that one message may be lost
NOTHING = staticmethod(lambda parcel, source, destination: ())


class Lossy(RuleBasedStateMachine):
    """A link whose weather is drawn, and whose nodes `join` makes.

    `variant` are three choices for a subject to use.  `silence` has every message lost for a while;
    `settle` brings fair weather.
    """

    @initialize(
        seed=st.integers(0, 2**32),
        loss=st.sampled_from([0.0, 0.2, 0.5]),
        variant=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    )
    def begin(self, seed, loss, variant):
        self.variant = variant
        self.storm = storm(Random(seed), loss, duplicates=0.3, spread=0.8, mercy=MERCY)
        self.link = Link(self.storm)
        self.join()

    def join(self):
        raise NotImplementedError

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.5, 5.0]))
    def wait(self, seconds):
        self.link.run(until=self.link.now + seconds)

    def silence(self, seconds):
        self.link.weather = NOTHING
        self.wait(seconds)
        self.link.weather = self.storm

    def settle(self, seconds):
        self.link.weather = calm()
        self.link.run(until=self.link.now + seconds)
