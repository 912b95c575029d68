"""Two agents over a link that loses, doubles and reorders: whoever does what when, they agree."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from support.sip.elements import Phone
from support.sip.flows import A, B
from support.sip.lossy import SHORT, Lossy

from p2psip.errors import RemoteError
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import CALL_METHODS
from p2psip.ua.ua import CallState

SIDES = st.sampled_from([A, B])
RINGING = 100.0  # s, longer than any call rings
MOST = 4  # calls of one run
ACTS = st.sampled_from(["bye", "accept", "early"])


class Talker(Phone):
    """A phone whose descriptions are all different, and which may refuse new offers."""

    def __init__(self, link, address, **options):
        super().__init__(link, address, self.on_call, **options)
        self.reaction, self.refuses, self.count = "answer", False, 0

    def description(self):
        self.count += 1
        return f"{self.address} {self.count}".encode()

    def on_call(self, call, now):
        match self.reaction:
            case "answer":
                call.accept(self.description(), now)
            case "early":
                call.ring(now, 183, self.description())
            case "ring":
                call.ring(now)
            case "reject":
                call.reject(486, "Busy Here", now)

    def on_offer(self, call, sdp, now):
        if self.refuses:
            raise RemoteError("Not Acceptable Here", 488)
        return self.description()


class Two(Lossy):
    """Alice and Bob, who may both call."""

    def join(self):
        self.phones = {at: Talker(self.link, at) for at in (A, B)}

    def other(self, at):
        return self.phones[B if at == A else A]

    def connect(self):
        """Alice calls Bob in fair weather."""
        alice = self.phones[A]
        alice.dial(B, self.link.now, alice.description())
        self.settle(1.0)
        assert all(phone.calls[0].is_up for phone in self.phones.values())
        self.link.weather = self.storm

    def refuse(self, at, refuses):
        """Let a phone refuse offers, also the first one, if its INVITE had none."""
        self.phones[at].refuses = refuses

    def pairs(self):
        """The calls of each Call-ID, at one side or both.

        A callee that is asked by a stranger refuses without a transaction.  If that gets lost, the
        INVITE that is sent again is another call, which it may answer: the last one counts.
        """
        found = {}
        for phone in self.phones.values():
            for call in phone.calls:
                of_both = found.setdefault(call.id, {})
                assert phone not in of_both or of_both[phone].state is CallState.ENDED
                of_both[phone] = call
        return [list(of_both.values()) for of_both in found.values()]

    def agree(self):
        """Both sides of each call are up with the same session, or both are over."""
        for calls in self.pairs():
            assert {call.state for call in calls} in ({CallState.UP}, {CallState.ENDED})
            if calls[0].is_up:
                one, two = (call.leg.session for call in calls)
                assert one.is_settled and two.is_settled
                assert (one.local, one.remote) == (two.remote, two.local)
        for phone in self.phones.values():
            for call in phone.calls:
                events = phone.events(call)
                assert events.count("accepted") <= 1
                assert sum(events.count(end) for end in ("ended", "rejected", "cancelled")) <= 1

    def teardown(self):
        if not hasattr(self, "phones"):
            return
        self.settle(RINGING)
        self.agree()
        for phone in self.phones.values():
            for call in phone.calls:
                call.bye(self.link.now)
        self.link.run()
        self.agree()
        assert all(phone.idle for phone in self.phones.values())


class Dialogs(Two):
    """Calls are made, answered, refused, given up and ended, at any time by either side."""

    @rule(at=SIDES, reaction=st.sampled_from(["answer", "early", "ring", "reject"]))
    def reacts(self, at, reaction):
        self.phones[at].reaction = reaction

    refuse = rule(at=SIDES, refuses=st.booleans())(Two.refuse)

    @precondition(lambda self: sum(len(phone.calls) for phone in self.phones.values()) < 2 * MOST)
    @rule(at=SIDES)
    def dial(self, at):
        phone = self.phones[at]
        phone.dial(self.other(at).address, self.link.now, phone.description())

    @precondition(lambda self: sum(len(phone.calls) for phone in self.phones.values()) < 2 * MOST)
    @rule(at=SIDES)
    def dial_without_offer(self, at):
        self.phones[at].dial(self.other(at).address, self.link.now, b"")

    @rule(at=SIDES, number=st.integers(0, 2 * MOST))
    def update(self, at, number):
        """A new offer, by UPDATE before the answer if that is possible (RFC 3311 §5.1)."""
        phone = self.phones[at]
        calls = [call for call in phone.calls if call.state is not CallState.ENDED]
        if calls:
            calls[number % len(calls)].reinvite(phone.description(), self.link.now)

    @precondition(lambda self: any(phone.calls for phone in self.phones.values()))
    @rule(
        at=SIDES, number=st.integers(0, 2 * MOST), act=st.sampled_from(["bye", "accept", "early"])
    )
    def act(self, at, number, act):
        phone, now = self.phones[at], self.link.now
        calls = [call for call in phone.calls if call.state is not CallState.ENDED]
        if not calls:
            return
        call = calls[number % len(calls)]
        if act == "bye":
            call.bye(now)
        elif call.direction == "in" and call.state is CallState.RINGING:
            if act == "accept":
                call.accept(phone.description(), now)
            else:
                call.ring(now, 183, phone.description())


class Negotiations(Two):
    """In a call that is up both sides make offers, some of which are refused or cross."""

    def join(self):
        super().join()
        self.connect()

    refuse = rule(at=SIDES, refuses=st.booleans())(Two.refuse)

    @rule(at=SIDES)
    def offer(self, at):
        phone = self.phones[at]
        phone.calls[0].reinvite(phone.description(), self.link.now)

    @rule(at=SIDES)
    def ask(self, at):
        self.phones[at].calls[0].ask(self.link.now)


class SessionTimers(Two):
    """With a session timer a call that one side has lost ends at the other side as well."""

    def join(self):
        super().join()
        short, one_sided, update = self.variant
        self.interval = 90 if short else 200
        methods = CALL_METHODS if update else tuple(set(CALL_METHODS) - {"UPDATE"})
        for at, phone in self.phones.items():
            options = ("100rel",) if one_sided and at == B else ("100rel", "timer")
            phone.agent.core.extensions = Extensions(methods=methods, options=options)
            phone.agent.core.session_interval = self.interval
        self.connect()

    @rule(seconds=st.sampled_from([20.0, 50.0, 100.0, 300.0]))
    def pass_by(self, seconds):
        self.wait(seconds)

    @rule(seconds=st.sampled_from([1.0, 20.0, 40.0, 100.0, 400.0]))
    def lose_all(self, seconds):
        self.silence(seconds)

    @rule(at=SIDES)
    def bye(self, at):
        self.phones[at].calls[0].bye(self.link.now)

    def agree(self):
        """Unless both know timers there is none (RFC 4028 §7.2): either may not hear of the end."""
        states = {phone.calls[0].state for phone in self.phones.values()}
        if not self.variant[1] or states != {CallState.UP, CallState.ENDED}:
            super().agree()

    def teardown(self):
        if hasattr(self, "phones"):
            self.settle(3 * self.interval)
        super().teardown()


TestDialogs = Dialogs.TestCase
TestNegotiations = Negotiations.TestCase
TestSessionTimers = SessionTimers.TestCase
TestDialogs.settings = TestNegotiations.settings = TestSessionTimers.settings = SHORT
