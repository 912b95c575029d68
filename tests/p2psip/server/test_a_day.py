"""24 hours of two phones and their domain: registered, in a call, watching; nothing is left."""

from collections import Counter

from support.rtmfp.link import Link
from support.sip.homes import ALICE, BOB, Home, Member, store
from support.sip.watchers import Watcher

from p2psip.dialog.subscription import State
from p2psip.sip.message import Request, parse_message

DAY = 24 * 3600.0


class Worker(Watcher, Member):
    """A user of the domain who calls, watches and is watched."""

    def __init__(self, link, address, user):
        Member.__init__(self, link, address, user)
        methods = (*self.agent.extensions.methods, "SUBSCRIBE", "NOTIFY")
        self.agent.core.extensions = type(self.agent.extensions)(methods=methods)
        self.heard, self.served, self.state = [], [], b"here"


def requests(link):
    """How often each phone has sent each method, without repetitions."""
    sent = {data for _, source, _, (_, data) in link.sent if source in (ALICE, BOB)}
    messages = [parse_message(data) for data in sent]
    return Counter(m.method for m in messages if isinstance(m, Request))


def test_a_day_of_refreshes():
    """Covers RFC 3261 §10.2.4, RFC 4028 §10 and RFC 6665 §4.1.2.2 over a day.

    Registrations of an hour, of which each refresh is one REGISTER or two, where the nonce was too
    old; a session of half an hour, refreshed after the half; a subscription of an hour.
    """
    link = Link()
    home = Home(link, users=store("alice", "bob"))
    alice, bob = Worker(link, ALICE, "alice"), Worker(link, BOB, "bob")
    registrations = [phone.register(0.0) for phone in (alice, bob)]
    link.run(until=1.0)
    call = alice.call("bob", link.now)
    watch = alice.subscribe(BOB, link.now, expires=3600)
    link.run(until=2.0)
    assert call.is_up and bob.calls[0].is_up and watch.state is State.ACTIVE
    link.run(until=DAY)
    assert call.is_up and bob.calls[0].is_up and watch.state is State.ACTIVE
    assert home.registrar.count(link.now) == 2
    assert home.agent.dialogs == 0 and home.stack.transactions < 20
    counted = requests(link)
    assert counted == {"REGISTER": 122, "UPDATE": 95, "SUBSCRIBE": 31, "NOTIFY": 30} | {
        "INVITE": 2,  # the second with the proof that the first was asked for
        "ACK": 2,
    }
    watch.end(link.now)
    call.bye(link.now)
    link.run(until=link.now + 40.0)
    for registration in registrations:
        registration.close(link.now)
    link.run(until=link.now + 100.0)
    assert home.registrar.count(link.now) == 0 and home.idle and alice.idle and bob.idle
    assert not alice.stack.transactions and link.deadline is None
