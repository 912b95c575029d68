"""Two ends that open, give up and close sessions at any time, in any weather.

Whatever has happened, each opening is answered to its user once, and two ends that are left alone
agree on the sessions there are.
"""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from support.rtmfp.endpoints import CLIENT, SERVER, Node, PlainProfile
from support.sip.lossy import SHORT, Lossy

from rtmplite.rtmfp.session.session import State

ENDS = st.sampled_from((0, 1))
NAMES, PLACES = (b"a", b"b"), (SERVER, CLIENT)
OUTCOME = 400.0  # s: longer than every opening, and every session of which nothing is heard


class Openings(Lossy):
    """Endpoints `a` and `b`; an opening is asked for, and its user hears how it ends."""

    def join(self):
        slow, _, _ = self.variant
        self.ends = []
        for name, place in zip(NAMES, PLACES, strict=True):
            profile = PlainProfile(name, Random(name).randbytes)
            node = Node(self, profile, slow=0.3 if slow else 0.0)
            self.link.join(place, node)
            self.ends.append(node)
        self.asked, self.given_up = ([], []), []

    @rule(end=ENDS)
    def open(self, end):
        far = 1 - end
        node = self.ends[end]
        opening = node.endpoint.connect(NAMES[far], (PLACES[far],), self.link.now)
        self.asked[end].append(opening)

    @rule(end=ENDS, at=st.integers(0, 3))
    def give_up(self, end, at):
        if at < len(openings := self.ends[end].endpoint.openings):
            self.given_up.append(openings[at])
            openings[at].cancel(self.link.now)

    @rule(end=ENDS)
    def close(self, end):
        for session in self.ends[end].endpoint.sessions[:]:
            session.close(self.link.now)

    @rule(seconds=st.sampled_from((10.0, 100.0)))
    def hear_nothing(self, seconds):
        self.silence(seconds)

    def outcomes(self, end):
        """How often the user heard of each opening, those aside that the user gave up."""
        user = self.ends[end].user
        served = [opening for _, opening, _ in user.sessions if opening is not None]
        ended = served + [opening for opening, _, _ in user.failed]
        asked = [each for each in self.asked[end] if each not in self.given_up]
        return [sum(each is opening for each in ended) for opening in asked]

    @invariant()
    def answered_once_at_most(self):
        """Own design: an opening has one outcome; others of the same pair are told which."""
        if hasattr(self, "ends"):
            assert all(max(self.outcomes(end), default=0) <= 1 for end in (0, 1))

    def teardown(self):
        """Covers RFC 7016 §3.5.1.3 [one-session]: and each end knows what the other knows."""
        if not hasattr(self, "ends"):
            return
        self.settle(OUTCOME)
        for end, node in enumerate(self.ends):
            assert node.endpoint.openings == [] and set(self.outcomes(end)) <= {1}
        near, far = (
            {each for each in node.endpoint.sessions if each.state is State.OPEN}
            for node in self.ends
        )
        assert len(near) == len(far) <= 1
        self.open(0)
        self.settle(OUTCOME)
        (session,) = self.ends[0].endpoint.sessions
        session.open_flow(b"flow", self.link.now).send(b"still here", self.link.now)
        self.settle(1.0)
        heard = self.ends[1].user.listeners.values()
        told = [each.receivers[b"flow"].messages for each in heard if b"flow" in each.receivers]
        assert told == [[b"still here"]]


TestOpenings = Openings.TestCase
TestOpenings.settings = settings(SHORT, max_examples=40)
