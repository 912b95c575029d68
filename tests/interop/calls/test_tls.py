"""SIP over TLS with real phones: they check the gateway's certificate, register and call."""

import pytest
from support.certificates import certificate
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient
from support.peers.baresip import Baresip
from support.peers.peers import Kamailio
from support.peers.tones import tone_fraction, trimmed

DOMAIN = "phones.invalid"  # in no DNS: what is for it goes to the outbound proxy
SECONDS = 3
ALICE_HZ, BOB_HZ = 500, 900


@pytest.fixture
def secure(gateway, tmp_path):
    """A gateway with a listener for TLS, and its certificate."""
    made = certificate(tmp_path / "certificate")
    server = gateway(
        *("--users", users_file(tmp_path, "alice", "bob"), "--sip-t1", "20"),
        *("--sips", "127.0.0.1:0", "--tls-cert", str(made.file), "--tls-key", str(made.key)),
    )
    return server, made


@pytest.fixture
def phone(start, secure):
    """`phone("alice", 500, "tls")`: a phone that has registered with its password."""
    server, made = secure

    def run(user, hz, transport):
        registrar = server.sips if transport == "tls" else server.sip
        return start(
            Baresip,
            user,
            registrar=registrar,
            password=PASSWORD,
            hz=hz,
            transport=transport,
            ca=made.file,
        )

    return run


@pytest.mark.parametrize("other", ["tls", "udp"])
@pytest.mark.needs("baresip", "openssl")
def test_phones_call_each_other_by_tls(secure, phone, other):
    """Covers RFC 3261 §16.7: each side of the dialog keeps to the transport it has."""
    server, _ = secure
    alice, bob = phone("alice", ALICE_HZ, "tls"), phone("bob", BOB_HZ, other)
    server.wait_status({"registrations": 2, "transactions": 0})
    alice.dial(f"sip:bob@{server.sips};transport=tls")
    for each in (alice, bob):
        each.wait_event("CALL_ESTABLISHED")
    recording = next(bob.folder.glob("dump-*-dec.wav"))
    bob.wait_until(lambda: recording.stat().st_size > SECONDS * 16000, what="sound")
    bob.hangup()
    for each in (alice, bob):
        each.wait_event("CALL_CLOSED")
    for each, hz in ((alice, BOB_HZ), (bob, ALICE_HZ)):
        samples, rate = each.heard()
        assert tone_fraction(trimmed(samples, rate), rate, hz) > 0.95
    assert server.sip not in alice.output  # all by TLS, the BYE too
    server.wait_status({"calls": 0, "proxied_dialogs": 0})


@pytest.mark.needs("kamailio", "openssl")
def test_a_call_by_tls_through_kamailio(start, gateway, tmp_path):
    """Both ends register and call through an outbound proxy at which only TLS is used."""
    made = certificate(tmp_path / "certificate")
    users = {"alice": PASSWORD, "bob": PASSWORD}
    kamailio = start(Kamailio, users=users, domain=DOMAIN, tls=made)
    server = gateway(
        *("--sips", "127.0.0.1:0", "--tls-cert", str(made.file), "--tls-key", str(made.key)),
        *("--ca", str(made.file), "--outbound-proxy"),
        f"sip:127.0.0.1:{kamailio.port + 1};transport=tls",
    )
    alice = RichClient(server.rtmp, f"alice@{DOMAIN}", "alice", PASSWORD)
    bob = RichClient(server.rtmp, f"bob@{DOMAIN}", "bob", PASSWORD)
    alice.call("invite", f"sip:bob@{DOMAIN}")
    bob.expect("invited")
    assert alice.expect("ringing") == ("180 Ringing",)
    bob.call("accept")
    assert alice.expect("accepted") == () == bob.expect("accepted")
    assert "SIP/2.0/UDP" not in kamailio.output
    bob.call("bye")
    alice.expect("byed")
    alice.close()
    bob.close()
    server.wait_status({"calls": 0, "dialogs": 0, "lines": 0})
