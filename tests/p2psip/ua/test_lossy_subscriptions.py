"""A watcher and a notifier over a link that loses, doubles and reorders: they agree at last."""

from hypothesis import strategies as st
from hypothesis.stateful import rule
from support.sip.flows import A, B
from support.sip.lossy import SHORT, Lossy
from support.sip.watchers import KIND, Watcher

from p2psip.dialog.subscription import State

LONG = 3000.0  # s, longer than any subscription lasts without a refresh
MOST = 4


class Recorder(Watcher):
    """A watcher that keeps what each subscription has told last."""

    def __init__(self, link, address):
        super().__init__(link, address)
        self.last, self.over, self.count = {}, [], 0

    def on_notify(self, subscription, content_type, body, now):
        self.last[subscription] = body

    def on_over(self, subscription, status, reason, now):
        assert subscription not in self.over
        self.over.append(subscription)


class Subscriptions(Lossy):
    """Alice watches Bob, whose state changes, and who may end what he serves."""

    def join(self):
        self.alice, self.bob = Recorder(self.link, A), Recorder(self.link, B)
        self.asked = []

    @rule(expires=st.sampled_from([60, 600, 1000]))
    def subscribe(self, expires):
        if len(self.asked) < MOST:
            self.asked.append(self.alice.subscribe(B, self.link.now, expires))

    @rule()
    def tell(self):
        self.bob.count += 1
        self.bob.state = b"state %d" % self.bob.count
        self.bob.tell(self.link.now)

    @rule(number=st.integers(0, MOST))
    def unsubscribe(self, number):
        if self.asked:
            self.asked[number % len(self.asked)].end(self.link.now)

    @rule(number=st.integers(0, MOST))
    def refuse(self, number):
        if self.bob.served:
            served = self.bob.served[number % len(self.bob.served)]
            served.tell(KIND, self.bob.state, self.link.now, last="deactivated")

    @rule(seconds=st.sampled_from([50.0, 500.0]))
    def pass_by(self, seconds):
        self.wait(seconds)

    @rule(seconds=st.sampled_from([20.0, 40.0, 700.0]))
    def lose_all(self, seconds):
        self.silence(seconds)

    def agree(self):
        up = [each for each in self.asked if each.state is not State.TERMINATED]
        assert len(up) == len(self.bob.served) == len(self.asked) - len(self.alice.over)
        assert {self.alice.last[each] for each in up} <= {self.bob.state}

    def teardown(self):
        if not hasattr(self, "asked"):
            return
        self.settle(LONG)
        self.agree()
        for each in self.asked:
            each.end(self.link.now)
        self.link.run()
        self.agree()
        assert not self.bob.served and self.alice.idle and self.bob.idle


TestSubscriptions = Subscriptions.TestCase
TestSubscriptions.settings = SHORT
