"""Two sides that offer whenever they may, over a network that delivers in any order."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from p2psip.dialog.negotiation import Negotiation, State
from p2psip.errors import RemoteError

SIDES = st.sampled_from((0, 1))


class TwoSides(RuleBasedStateMachine):
    """Each message is on its way until a rule delivers it: (to, what, SDP)."""

    @initialize()
    def begin(self):
        self.sides, self.flying, self.made = (Negotiation(), Negotiation()), [], 0

    def sdp(self):
        self.made += 1
        return b"%d" % self.made

    @rule(side=SIDES)
    def offer(self, side):
        """Covers RFC 3264 §4 [one-offer-at-a-time]: only who waits for nothing may offer."""
        if self.sides[side].is_stable:
            sdp = self.sdp()
            self.sides[side].we_offer(sdp)
            self.flying.append((1 - side, "offer", sdp))

    @rule(side=SIDES, accept=st.booleans())
    def decide(self, side, accept):
        """Answer the peer's offer, or refuse it, which leaves the session as it was."""
        mine = self.sides[side]
        if mine.state is not State.THEY_OFFERED:
            return
        before = mine.local, mine.remote
        if accept:
            sdp = self.sdp()
            mine.we_answer(sdp)
            self.flying.append((1 - side, "answer", sdp))
        else:
            mine.refused()
            assert not mine.was_settled or (mine.local, mine.remote) == before
            self.flying.append((1 - side, "refusal", None))

    @rule(at=st.integers(0, 3))
    def deliver(self, at):
        if at >= len(self.flying):
            return
        to, what, sdp = self.flying.pop(at)
        mine = self.sides[to]
        if what == "offer":
            self.hear_offer(to, mine, sdp)
        elif what == "answer":
            mine.they_answer(sdp)
        else:
            mine.refused()

    def hear_offer(self, to, mine, sdp):
        """Covers RFC 3311 §5.2 [491-for-glare]: a refused offer is no event."""
        state, before = mine.state, (mine.local, mine.remote)
        try:
            mine.they_offer(sdp)
        except RemoteError as refusal:
            assert refusal.status == {State.WE_OFFERED: 491, State.THEY_OFFERED: 500}[state]
            assert (mine.state, mine.local, mine.remote) == (state, *before)
            self.flying.append((1 - to, "refusal", None))
        else:
            assert state is State.STABLE

    @invariant()
    def an_offer_is_known_to_both_or_on_its_way(self):
        """Covers RFC 3264 §4: one exchange, which one side has begun."""
        if not hasattr(self, "sides"):
            return
        for side, mine in enumerate(self.sides):
            about = [what for to, what, _ in self.flying if to != side and what == "offer"]
            back = [what for to, what, _ in self.flying if to == side and what != "offer"]
            theirs = self.sides[1 - side].state is State.THEY_OFFERED
            waits = mine.state is State.WE_OFFERED
            assert waits == bool(about or back or theirs)

    @invariant()
    def at_rest_both_have_the_same_session(self):
        """Covers RFC 3264 §4, §8: what is local here is remote there."""
        if hasattr(self, "sides") and not self.flying:
            one, other = self.sides
            if one.is_stable and other.is_stable:
                assert (one.local, one.remote) == (other.remote, other.local)
                assert one.is_settled == other.is_settled


TestTwoSides = TwoSides.TestCase
