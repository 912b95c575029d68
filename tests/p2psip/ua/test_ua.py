"""Two user agents over a network that does its worst: no call is ever left half open."""

import random as random_module

from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from support.rtmfp.link import Link, storm
from support.sip.elements import Phone

from p2psip.ua.ua import CallState

A, B = "10.0.0.1", "10.0.0.2"
LAST_WORDS = {"rejected", "cancelled", "ended"}
OPEN = [state for state in CallState if state is not CallState.ENDED]
pauses = st.sampled_from([0.0, 0.02, 0.1, 0.3, 1.0, 5.0, 25.0])  # s
AGES = 400.0  # s after which everything undecided has timed out


class TwoPhones(RuleBasedStateMachine):
    """Calls, answers, hang-ups, new offers and INFO from both sides, at any moment.

    Covers RFC 3261 §17.1.1.3 [2xx-ack-by-core].
    """

    @initialize(seed=st.integers(0, 2**32), loss=st.sampled_from([0.0, 0.2, 0.5]))
    def wire(self, seed, loss):
        """Begin with one call that is most likely up."""
        random = random_module.Random(seed)
        self.link = Link(storm(random, loss=loss, duplicates=loss, mercy=2))
        options = {"answer": lambda call, now: None, "answer_timeout": 20.0}
        self.phones = [Phone(self.link, A, **options), Phone(self.link, B, **options)]
        self.offers = 0
        self.left = set()  # calls that were hung up or refused by their own user
        self.dial(0, 1.0, "accept")

    def sdp(self):
        """A description that no other offer or answer equals."""
        self.offers += 1
        for phone in self.phones:
            phone.reply_to_offer = f"answer {phone.address} {self.offers}".encode()
        return f"offer {self.offers}".encode()

    def calls(self, *states):
        """The calls of both phones in one of these states."""
        return [call for phone in self.phones for call in phone.calls if call.state in states]

    def pick(self, data, *states):
        """One of these calls; preconditions see to it that there is one."""
        return data.draw(st.sampled_from(self.calls(*states)))

    def pause(self, seconds):
        self.link.run(until=self.link.now + seconds)

    @rule(who=st.integers(0, 1), patience=pauses, answer=st.sampled_from(["ring", "accept", ""]))
    def dial(self, who, patience, answer):
        """Call, with a callee who picks up at once, or rings, or does nothing yet."""
        self.phones[1 - who].answer = {
            "ring": lambda call, now: call.ring(now),
            "accept": lambda call, now: call.accept(self.sdp(), now),
        }.get(answer, lambda call, now: None)
        self.phones[who].dial((B, A)[who], self.link.now, self.sdp())
        self.pause(patience)

    @precondition(lambda self: self.calls(CallState.RINGING))
    @rule(data=st.data(), early=st.booleans(), patience=pauses)
    def ring(self, data, early, patience):
        call = self.pick(data, CallState.RINGING)
        call.ring(self.link.now, *((183, b"early") if early else ()))
        self.pause(patience)

    @precondition(lambda self: self.calls(CallState.RINGING))
    @rule(data=st.data(), patience=pauses)
    def pick_up(self, data, patience):
        call = self.pick(data, CallState.RINGING)
        call.accept(self.sdp(), self.link.now)
        self.pause(patience)

    @precondition(lambda self: self.calls(CallState.RINGING))
    @rule(data=st.data(), patience=pauses)
    def refuse(self, data, patience):
        call = self.pick(data, CallState.RINGING)
        call.reject(486, "Busy Here", self.link.now)
        self.left.add(call)
        self.pause(patience)

    @precondition(lambda self: self.calls(*OPEN))
    @rule(data=st.data(), patience=pauses, both=st.booleans())
    def hang_up(self, data, patience, both):
        call = self.pick(data, *OPEN)
        for one in [call, *(self.others(call) if both else ())]:
            event(f"hung up while {one.state}")
            self.left.add(one)
            one.bye(self.link.now)
        self.pause(patience)

    @precondition(lambda self: self.calls(CallState.UP, CallState.ANSWERED))
    @rule(data=st.data(), patience=pauses, both=st.booleans())
    def offer_anew(self, data, patience, both):
        call = self.pick(data, CallState.UP, CallState.ANSWERED)
        for one in [call, *(self.others(call) if both else ())]:
            event(f"a new offer while {one.state}{', both at once' if both else ''}")
            one.reinvite(self.sdp(), self.link.now)
        self.pause(patience)

    @precondition(lambda self: self.calls(CallState.UP))
    @rule(data=st.data(), patience=pauses)
    def inform(self, data, patience):
        call = self.pick(data, CallState.UP)
        call.info("text/plain", b"psst", self.link.now)
        self.pause(patience)

    def let_the_dust_settle(self):
        """Time alone makes both ends agree, on whether they talk and on what they said."""
        self.link.run(until=self.link.now + AGES)
        for call in self.calls(*CallState):
            assert call.state in (CallState.UP, CallState.ENDED)
            others = self.others(call)
            if call.state is CallState.UP:
                [other] = others
                event("a call survived")
                assert other.state is CallState.UP
                assert (call.local_sdp, call.remote_sdp) == (other.remote_sdp, other.local_sdp)
            assert len(others) <= 1

    def others(self, call):
        """What the other phone knows of this call."""
        return [
            other
            for phone in self.phones
            for other in phone.calls
            if other.id == call.id and other is not call
        ]

    def teardown(self):
        """Once all have hung up, nothing is left, and everybody was told once how it ended."""
        if not hasattr(self, "link"):
            return
        self.let_the_dust_settle()
        for phone in self.phones:
            for call in phone.calls:
                if call.state in (CallState.UP, CallState.CALLING, CallState.ANSWERED):
                    self.left.add(call)
                call.bye(self.link.now)
        self.link.run()
        for phone in self.phones:
            assert phone.idle
            for call in phone.calls:
                assert call.state is CallState.ENDED
                words = phone.events(call)
                assert words.count("accepted") <= 1
                said = [word for word in words if word in LAST_WORDS]
                assert said == words[-1:] if said else True
                assert len(said) <= 1 and (said or call in self.left or call.direction == "in")


TestTwoPhones = TwoPhones.TestCase
TestTwoPhones.settings = settings(stateful_step_count=30)
