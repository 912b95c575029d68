"""A forked INVITE, whatever its phones and its caller do, in whatever order.

The model knows what RFC 3261 §16.7 promises to the caller and to the phones, and nothing of how the
proxy keeps it.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.sip.homes import ALICE, Home, register, request

from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response

PHONES = ("10.0.1.1", "10.0.1.2", "10.0.1.3")
RANKS = st.sampled_from(("1", "0.5", "0.1"))
REFUSALS = st.sampled_from((302, 404, 408, 480, 486, 487, 500, 503, 600, 603))
MOMENTS = st.sampled_from((0.1, 1.0, 5.0, 21.0, 33.0))
LIFETIME = 32.0  # s: 64*T1
LONG = 1000.0  # s: more than all timers together


class Phone:
    """One phone that may ring, and what it was sent and has said."""

    def __init__(self, address):
        self.address, self.invite, self.said = address, None, []
        self.cancelled = False
        self.forgotten_at = None  # when the proxy waits for it no longer: timers B, M and of CANCEL

    @property
    def final(self):
        return next((status for status in self.said if status >= 200), None)

    @property
    def rings(self):
        return self.invite is not None and self.final is None


class Forking(RuleBasedStateMachine):
    """Three phones of Bob's, ranked or not, and Alice, who calls and may give up."""

    @initialize(ranks=st.lists(RANKS, min_size=1, max_size=len(PHONES)))
    def call(self, ranks):
        self.home, self.now = Home(), 0.0
        self.phones = {at: Phone(at) for at, _ in zip(PHONES, ranks, strict=False)}
        self.ranks = dict(zip(PHONES, map(float, ranks), strict=False))
        for number, (address, rank) in enumerate(self.ranks.items()):
            contact = f"<sip:bob@{address}>;q={rank}"
            self.home.hear(register(contact=contact, cseq=number + 1), source=address)
        self.home.wait(0.0)
        self.answered_at = None  # timer L, RFC 6026 §7.1
        self.got, self.gave_up, self.closed = [], False, False  # what Alice was sent
        self.take(self.home.hear(request()))

    def take(self, sent):
        """Note what the proxy has sent, as the phones and Alice see it."""
        for message, to, _ in sent:
            if isinstance(message, Response):
                if to == ALICE and message.cseq.method == "INVITE":
                    self.hear_answer(message)
            elif to in self.phones:
                self.hear_request(self.phones[to], message)

    def hear_answer(self, response):
        repeated = response.status >= 300 and response.status in self.got
        if (response.status > 100 or self.got) and not repeated:  # a 100 of the proxy's comes first
            self.got.append(response.status)
            if self.answered_at is None and response.status == 200:
                self.answered_at = self.now
            if response.status >= 300:
                self.home.hear(self.ack(response), now=self.now)

    def ack(self, response):
        headers = request().headers.with_("To", response.headers["To"]).with_("CSeq", "1 ACK")
        return Request("ACK", request().uri, headers)

    def hear_request(self, phone, message):
        if message.method == "INVITE":
            assert phone.invite or not self.closed
            assert phone.invite in (None, message), "one branch for a phone, repeated at most"
            if phone.invite is None:
                phone.invite, phone.forgotten_at = message, self.now + LIFETIME
        if message.method == "CANCEL":
            # RFC 3261 §9.1: not before a provisional response, not after a final one
            assert phone.said and phone.final is None
            if not phone.cancelled:
                phone.cancelled, phone.forgotten_at = True, self.now + LIFETIME
            self.home.hear(
                response_to(message, 200, to_tag="c"), source=phone.address, now=self.now
            )

    def say(self, phone, status):
        """Let a phone answer, and give what Alice hears of it at once."""
        before = len(self.got)
        if status >= 200 and phone.final is None:
            phone.forgotten_at = self.now + LIFETIME
        elif status < 200 and not phone.cancelled:
            phone.forgotten_at = None
        phone.said.append(status)
        if 200 <= status < 300 or status >= 600:
            self.closed = True
        answer = response_to(phone.invite, status, to_tag=phone.address.replace(".", ""))
        self.take(self.home.hear(answer, source=phone.address, now=self.now))
        return self.got[before:]

    @rule(at=st.sampled_from(PHONES), status=st.sampled_from((100, 180, 183)))
    def ring(self, at, status):
        """Covers RFC 3261 §16.7 [progress-at-once] [100-stays]."""
        phone = self.can_speak(at)
        if phone and phone.rings:
            is_open = not any(each >= 200 for each in self.got)
            assert self.say(phone, status) == ([status] if status != 100 and is_open else [])

    @rule(at=st.sampled_from(PHONES))
    def answer(self, at):
        """Covers RFC 3261 §16.7 [progress-at-once] [later-2xx-at-once]."""
        phone = self.can_speak(at)
        if phone and phone.final in (None, 200):
            assert self.say(phone, 200) == ([200] if not self.failed else [])

    @rule(at=st.sampled_from(PHONES), status=REFUSALS)
    def refuse(self, at, status):
        """Covers RFC 3261 §16.7 [others-wait] [6xx-cancels]."""
        phone = self.can_speak(at)
        if phone and phone.rings:
            told = self.say(phone, status)
            if any(map(self.is_open, self.phones.values())) or 200 in self.got:
                assert told == []
            elif told:
                assert told == [self.best()]

    @precondition(lambda self: not self.gave_up)
    @rule()
    def cancel(self):
        """Covers RFC 3261 §16.10 [cancels-all]."""
        if not any(status >= 200 for status in self.got):
            self.gave_up = self.closed = True
            headers = request().headers.with_("CSeq", "1 CANCEL")
            self.take(self.home.hear(Request("CANCEL", request().uri, headers), now=self.now))

    @rule(seconds=MOMENTS)
    def wait(self, seconds):
        until = self.now + seconds
        while self.home.deadline is not None and self.home.deadline <= until:
            self.now = self.home.deadline
            self.take(self.home.wait(self.now))
        self.now = until

    def can_speak(self, at):
        """The phone, if it was called and the proxy still waits for what it says."""
        phone = self.phones.get(at)
        return phone if phone and phone.invite and not self.is_late(phone) else None

    def is_late(self, phone):
        """Whether the proxy has given up the phone, or repeats an answer to Alice no longer."""
        times = (
            phone.forgotten_at,
            None if self.answered_at is None else self.answered_at + LIFETIME,
        )
        return any(at is not None and self.now >= at for at in times)

    def is_open(self, phone):
        """Whether its branch has no final response, not even the proxy's own 408."""
        return phone.rings and not self.is_late(phone)

    @property
    def failed(self):
        return any(status >= 300 for status in self.got)

    def best(self):
        """The choice of RFC 3261 §16.7 step 6: any 6xx, else the lowest class; 503 becomes 500."""
        called = [phone for phone in self.phones.values() if phone.invite]
        finals = [phone.final or 408 for phone in called if phone.final or self.is_late(phone)]
        classes = [status // 100 for status in finals]
        wanted = 6 if 6 in classes else min(classes)
        among = {500 if status == 503 else status for status in finals if status // 100 == wanted}
        if 487 in among:
            among.add(480)  # of a phone that has rung for its time: nobody answered
        told = self.got[-1]
        return told if told in among else min(among)

    @invariant()
    def one_failure_or_answers(self):
        """Covers RFC 3261 §16.7 [always-a-final]: Alice hears of one failure, or of answers."""
        finals = [status for status in self.got if status >= 200]
        assert set(finals) == {200} or len(finals) <= 1
        first = next((at for at, status in enumerate(self.got) if status >= 200), len(self.got))
        assert all(status >= 200 for status in self.got[first:])

    @invariant()
    def none_rings_for_nothing(self):
        """Covers RFC 3261 §16.7 [final-cancels-the-rest]."""
        if self.closed:
            for phone in self.phones.values():
                assert phone.cancelled or not (phone.rings and phone.said)

    @invariant()
    def better_ranks_ring_first(self):
        """Covers RFC 3261 §16.6: a lower rank rings when all better ones have ended."""
        waiting = [self.ranks[at] for at, phone in self.phones.items() if phone.invite is None]
        rung = [self.ranks[at] for at, phone in self.phones.items() if phone.invite is not None]
        assert not waiting or not rung or max(waiting) < min(rung)

    def teardown(self):
        """Covers RFC 3261 §16.7 [always-a-final]: silence ends it, and nothing is left."""
        if not hasattr(self, "home"):
            return
        self.wait(LONG)
        assert any(status >= 200 for status in self.got) and self.home.idle


TestForking = Forking.TestCase
TestForking.settings = settings(max_examples=60, stateful_step_count=20)
