"""Two real phones, registered at the gateway with passwords, call each other through its proxy."""

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.tones import tone_fraction, trimmed

SECONDS = 4
ALICE_HZ, BOB_HZ = 500, 900


def settled(idle):
    """The figures that must come back."""
    return {name: value for name, value in idle.items() if name != "sip_repeated"}


@pytest.fixture
def phones(start, gateway, tmp_path):
    """`phones(answer, transports)`: the gateway, its figures at rest, two phones registered."""

    def run(answer="auto", transports=("udp", "udp")):
        server = gateway("--users", users_file(tmp_path, "alice", "bob"), "--sip-t1", "50")
        pair = [
            start(
                Baresip,
                user,
                registrar=server.sip,
                password=PASSWORD,
                hz=hz,
                transport=transport,
                answer=answer,
            )
            for user, hz, transport in zip(
                ("alice", "bob"), (ALICE_HZ, BOB_HZ), transports, strict=True
            )
        ]
        server.wait_status({"registrations": 2, "transactions": 0})
        return server, server.status(), *pair

    return run


def heard_well(phone, hz):
    """Whether the tone of the other side is what the phone heard, from answer to end."""
    samples, rate = phone.heard()
    assert tone_fraction(trimmed(samples, rate), rate, hz) > 0.95
    assert len(trimmed(samples, rate)) / rate > 0.8 * SECONDS
    return True


@pytest.mark.parametrize(
    ("transports", "first_to_hang_up"),
    [
        (("udp", "udp"), "alice"),
        (("udp", "udp"), "bob"),
        (("tcp", "udp"), "bob"),
        (("udp", "tcp"), "alice"),
        (("tcp", "tcp"), "bob"),
    ],
)
@pytest.mark.needs("baresip")
def test_a_call_with_a_tone_each_way(phones, transports, first_to_hang_up):
    """Covers RFC 3261 §16.6, §16.7, §16.11 with a peer's dialogs."""
    server, idle, alice, bob = phones(transports=transports)
    alice.dial(f"sip:bob@{server.sip};transport={transports[0]}")
    for phone in (alice, bob):
        phone.wait_event("CALL_ESTABLISHED")
    recording = next(bob.folder.glob("dump-*-dec.wav"))
    bob.wait_until(lambda: recording.stat().st_size > SECONDS * 16000, what="sound")
    {"alice": alice, "bob": bob}[first_to_hang_up].hangup()
    for phone in (alice, bob):
        phone.wait_event("CALL_CLOSED")
    assert heard_well(alice, BOB_HZ) and heard_well(bob, ALICE_HZ)
    server.wait_status(settled(idle))


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.needs("baresip")
def test_calls_that_do_not_come_about(phones, transport):
    """Covers RFC 3261 §16.7 and §16.10: the refusal comes back, the CANCEL goes on."""
    server, idle, alice, bob = phones("manual", (transport, transport))
    alice.dial(f"sip:bob@{server.sip};transport={transport}")
    bob.wait_event("CALL_INCOMING")
    bob.hangup()
    assert "486" in alice.wait_event("CALL_CLOSED")["param"]
    bob.wait_event("CALL_CLOSED")
    alice.dial(f"sip:bob@{server.sip};transport={transport}")
    bob.wait_event("CALL_INCOMING")
    alice.wait_event("CALL_RINGING")
    alice.hangup()
    bob.wait_event("CALL_CLOSED")
    server.wait_status(settled(idle), timeout=40)  # timer D lasts 32 s, whatever T1 is


@pytest.mark.needs("baresip")
def test_who_can_be_called(phones):
    """Covers RFC 3261 §16.5: 480 for who is not there, known or not."""
    server, idle, alice, bob = phones()
    alice.dial(f"sip:carol@{server.sip}")
    assert "480" in alice.wait_event("CALL_CLOSED")["param"]
    bob.dial("sip:alice@127.0.0.1")  # without a port: our domain, wherever we listen
    alice.wait_event("CALL_ESTABLISHED")
    bob.hangup()
    alice.wait_event("CALL_CLOSED")
    server.wait_status(settled(idle))
