"""Phones of others, our agents, and our registrar and proxy between them, by each transport.

`FEATURES` is the table: a phone of each kind does by each transport, one after the other, all that
is listed there.  `CANNOT` has what a phone is not able to, with the reason as it was seen.
"""

from contextlib import closing

import pytest
from gevent.queue import Queue
from support.certificates import certificate
from support.gateway.accounts import PASSWORD
from support.peers.alices_phones import ALICE, BOB, CAROL, DOMAIN, PATIENCE, PHONES, until
from support.peers.sip_server import SipServer

from p2psip.agent import Agent
from p2psip.net.phone.settings import Account, NetworkSettings
from p2psip.net.phone.wav import Recording
from p2psip.net.tls import TlsContexts, client_context

ENOUGH = 2000  # samples of sound, a quarter of a second


class Friend(Agent):
    """An agent that answers, follows transfers, and lets its calls be replaced."""

    def __init__(self, user, place, transport, ca):
        tls = TlsContexts(client_context(ca)) if transport == "tls" else None
        at = f"sip:{place};transport={transport}"
        account = Account(user, DOMAIN, password=PASSWORD, registrar=at)
        super().__init__(account, NetworkSettings(tls=tls))
        self._taken, self.keys, self.messages = Queue(), Queue(), Queue()
        self.on_message, self.on_call = self.messages.put, self._answer
        self.on_replace = lambda call, sender: True

    def _answer(self, call):
        self.follow(call)
        call.answer(PATIENCE)
        self._taken.put(call)

    def follow(self, call):
        call.on_digit = lambda key, seconds: seconds is None and self.keys.put(key)
        call.on_transfer = lambda target: True
        call.on_transferred = self._taken.put

    def taken(self):
        """The next call that was answered, or that took the place of another one."""
        return self._taken.get(timeout=PATIENCE)


class Stage:
    """Alice's phone, Bob and Carol, and the call between Alice and Bob if there is one."""

    def __init__(self, start, kind, transport, folder):
        made = certificate(folder / "certificate")
        names = ("alice", "bob", "carol")
        server = start(SipServer, DOMAIN, users=names, certificate=made)
        place = server.places[transport]
        self.bob, self.carol = (Friend(user, place, transport, made.file) for user in names[1:])
        for friend in (self.bob, self.carol):
            friend.register(PATIENCE)
        self.phone, self.call = kind(start, place, transport, made.file), None

    def bob_calls(self):
        """Bob calls Alice, and then Carol if asked to."""
        self.call = self.bob.call(ALICE, PATIENCE)
        self.bob.follow(self.call)
        self.phone.is_up()
        return self.call

    def close(self):
        for friend in (self.bob, self.carol):
            friend.close(timeout=0.5)


def over(*calls):
    for call in calls:
        call.hangup()
        assert call.wait_ended(PATIENCE)


# -- the rows of the table -----------------------------------------------------------------


def registers(stage):
    """Covers RFC 3261 §10.2 and §22.2: phone and agents have proved their passwords."""
    assert stage.bob.registered and stage.carol.registered
    assert stage.phone.trace.count("Unauthorized")


def calls(stage):
    stage.phone.calls(BOB)
    stage.call = stage.bob.taken()
    heard = Recording("PCMU")
    stage.call.on_audio = heard.add
    until(lambda: len(heard.samples) > ENOUGH, "sound")
    assert max(heard.samples) > 5000 and stage.call.remote.uri.user == "alice"


def has_a_session_timer(stage):
    """Covers RFC 4028 §9 with a peer's phone."""
    assert stage.call._signalling.refresher.is_on


def presses_keys(stage):
    stage.phone.presses("1#")
    assert [stage.bob.keys.get(timeout=PATIENCE) for _ in "1#"] == ["1", "#"]


def hears_keys(stage):
    assert stage.call.send_digits("5*")
    stage.phone.hears_keys("5*")


def holds_and_resumes(stage):
    stage.phone.holds()
    until(lambda: stage.call.is_held, "the hold")
    stage.phone.resumes()
    until(lambda: not stage.call.is_held, "the end of the hold")


def is_held_and_resumed(stage):
    stage.call.hold(timeout=PATIENCE)
    stage.phone.is_held(True)
    stage.call.resume(timeout=PATIENCE)
    stage.phone.is_held(False)


def hangs_up(stage):
    stage.phone.hangs_up()
    assert stage.call.wait_ended(PATIENCE) and stage.call.reason == "BYE"


def is_called_and_hung_up(stage):
    over(stage.bob_calls())
    stage.phone.is_over()


def writes_a_message(stage):
    stage.phone.writes("good evening")
    assert stage.bob.messages.get(timeout=PATIENCE).text == "good evening"


def reads_a_message(stage):
    assert stage.bob.message("alice", "good morning", PATIENCE).status == 200
    stage.phone.reads("good morning")


def transfers(stage):
    """Covers RFC 3515 §2.4.2: Bob is asked to call Carol."""
    first = stage.bob_calls()
    stage.phone.transfers(CAROL)
    second = stage.bob.taken()
    assert second.is_up and second.remote.uri.user == "carol"
    over(first, second, stage.carol.taken())
    stage.phone.is_over()


def is_transferred(stage):
    """Covers RFC 3515 §2.4.4: the phone is asked to call Carol."""
    first = stage.bob_calls()
    first.transfer(CAROL, PATIENCE)
    second = stage.carol.taken()
    assert second.remote.uri.user == "alice"
    over(first, second)
    stage.phone.is_over(2)


def transfers_attended(stage):
    """Covers RFC 3891 §4: Bob is asked to take the phone's place at Carol's."""
    stage.phone.calls(BOB)
    first = stage.bob.taken()
    stage.phone.transfers_to_call(CAROL)
    with_phone, instead, at_bob = stage.carol.taken(), stage.carol.taken(), stage.bob.taken()
    assert with_phone.reason == "replaced" and at_bob.remote.uri.user == "carol"
    stage.phone.is_over(2)
    over(first, instead, at_bob)


def follows_attended(stage):
    """Covers RFC 3891 §3: the phone is asked to take Bob's place at Carol's."""
    first, second = stage.bob_calls(), stage.bob.call(CAROL, PATIENCE)
    first.transfer(second, PATIENCE)
    with_bob, instead = stage.carol.taken(), stage.carol.taken()
    assert with_bob.reason == "replaced" and instead.remote.uri.user == "alice"
    over(first, second, instead)
    stage.phone.is_over(2)


def is_replaced(stage):
    """Covers RFC 3891 §3: Carol is asked to take Bob's place at the phone."""
    first, second = stage.bob_calls(), stage.bob.call(CAROL, PATIENCE)
    with_bob = stage.carol.taken()
    second.transfer(first, PATIENCE)
    instead = stage.carol.taken()
    assert first.wait_ended(PATIENCE) and instead.is_up
    over(second, with_bob, instead)
    stage.phone.is_over(2)


TRANSPORTS = ("udp", "tcp", "tls")
FEATURES = (
    *(
        registers,
        calls,
        has_a_session_timer,
        presses_keys,
        hears_keys,
        holds_and_resumes,
        is_held_and_resumed,
        hangs_up,
    ),
    *(is_called_and_hung_up, writes_a_message, reads_a_message, transfers, is_transferred),
    *(transfers_attended, follows_attended, is_replaced),
)
CANNOT = {  # baresip 1.0.0
    ("baresip", has_a_session_timer): "it knows none",
    ("baresip", transfers_attended): "it has no command for it",
    ("baresip", follows_attended): "it sends the Replaces in the Request-URI, which gets a 400",
    ("baresip", is_replaced): "it takes an INVITE with Replaces for one more call",
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.needs(kind, "openssl")) for kind in PHONES]
)
def test_all_that_a_phone_can(start, tmp_path, kind, transport):
    """Covers RFC 3261 §16 between phones of others and ours, by the transport that was chosen."""
    with closing(Stage(start, PHONES[kind], transport, tmp_path)) as stage:
        for feature in FEATURES:
            if (kind, feature) not in CANNOT:
                feature(stage)
    others = {"UDP", "TCP", "TLS"} - {transport.upper()}
    assert not any(f"SIP/2.0/{other} " in stage.phone.trace for other in others)
