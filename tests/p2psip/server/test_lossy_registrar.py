"""Phones and a registrar over a link that loses, doubles and reorders: they agree at last."""

from hypothesis import strategies as st
from hypothesis.stateful import rule
from support.sip.homes import ALICE, BOB, Home, Member, store
from support.sip.lossy import SHORT, Lossy

from p2psip.ua.registering.keep_alive import MAX_SECONDS
from p2psip.ua.registering.registration import State

LONGEST = 600  # s that a registration lasts
USERS = st.sampled_from(["alice", "bob"])


class Registering(Lossy):
    """Two users register, stay away, come back; all their messages may be lost for a while."""

    def join(self):
        self.home = Home(self.link, users=store("alice", "bob"))
        places = {"alice": ALICE, "bob": BOB}
        self.phones = {user: Member(self.link, at, user) for user, at in places.items()}
        self.current = {}

    def bound(self, user):
        aor = self.phones[user].home.replace(user=user)
        bindings = self.home.registrar.registered(aor, self.link.now)
        return [str(binding.contact.uri) for binding in bindings]

    @rule(user=USERS, expires=st.sampled_from([60, LONGEST]))
    def register(self, user, expires):
        before = self.current.get(user)
        if before is None or (before.state is State.CLOSED and not before.pending):
            self.current[user] = self.phones[user].register(self.link.now, expires=expires)

    @rule(user=USERS)
    def close(self, user):
        if user in self.current:
            self.current[user].close(self.link.now)

    @rule(seconds=st.sampled_from([20.0, 500.0, 2000.0]))
    def pass_by(self, seconds):
        self.wait(seconds)

    @rule(seconds=st.sampled_from([20.0, 40.0, 700.0]))
    def lose_all(self, seconds):
        self.silence(seconds)

    def agree(self):
        for user, registration in self.current.items():
            is_bound = registration.state is State.REGISTERED
            assert self.bound(user) == [str(self.phones[user].contact)] * is_bound
            assert is_bound == (registration.deadline is not None)

    def teardown(self):
        if not hasattr(self, "current"):
            return
        self.settle(MAX_SECONDS + LONGEST + 100.0)  # of a phone whose registrar wants outbound
        self.agree()
        for registration in self.current.values():
            registration.close(self.link.now)
        self.settle(100.0)
        self.agree()
        assert not self.home.registrar.count(self.link.now) and self.home.idle
        assert all(phone.idle for phone in self.phones.values())


TestRegistering = Registering.TestCase
TestRegistering.settings = SHORT
