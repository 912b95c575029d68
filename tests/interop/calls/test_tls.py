"""SIP over TLS with real phones: they check the gateway's certificate, register and call."""

import subprocess
import sys

import pytest
from gevent.queue import Queue
from support.certificates import certificate
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient
from support.peers.baresip import Baresip
from support.peers.linphone import Linphone
from support.peers.peers import Kamailio
from support.peers.process import Process, free_port, require, tcp_answers
from support.peers.tones import tone_fraction, trimmed

from p2psip import Account, Agent, NetworkSettings, TlsContexts, client_context
from rtmplite.errors import RemoteError

DOMAIN = "phones.invalid"  # in no DNS: what is for it goes to the outbound proxy
SECONDS = 3
ALICE_HZ, BOB_HZ = 500, 900


@pytest.fixture
def secure(gateway, tmp_path):
    """A gateway with a listener for TLS, and its certificate."""
    made = certificate(tmp_path / "certificate")
    server = gateway(
        *("--users", users_file(tmp_path, "alice", "bob"), "--sip-t1", "50"),
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


@pytest.mark.needs("baresip", "linphonec", "openssl")
def test_linphone_is_called_by_tls_and_calls(start, secure, phone):
    """Covers RFC 3261 §16.7: it hangs up once itself, and once it is hung up."""
    server, made = secure
    registrar = server.sips.replace("127.0.0.1", "localhost")  # it compares names alone
    bob = start(
        Linphone,
        "bob",
        codec="PCMU/8000",
        registrar=registrar,
        password=PASSWORD,
        transport="tls",
        ca=made.file,
    )
    alice = phone("alice", ALICE_HZ, "udp")
    server.wait_status({"registrations": 2, "transactions": 0})
    alice.dial(f"sip:bob@{server.sip}")
    alice.wait_event("CALL_ESTABLISHED")
    alice.hangup()
    alice.wait_event("CALL_CLOSED")
    bob.wait_for("LinphoneCallReleased")
    bob.command(f"call sip:alice@{registrar};transport=tls")
    alice.wait_event("CALL_ESTABLISHED")
    bob.command("terminate")
    alice.wait_event("CALL_CLOSED")
    bob.wait_for("LinphoneCallReleased", 2)
    server.wait_status({"calls": 0, "proxied_dialogs": 0})


@pytest.mark.needs("baresip", "linphonec", "openssl")
def test_a_phone_is_told_the_name_that_the_certificate_has(start, gateway, tmp_path):
    """Covers RFC 3261 §26.2.2 and §16.7: it was given a name, and its certificate has no other.

    Both by the route of a call through the proxy, and by the Contact of a call to a stream.
    """
    made = certificate(tmp_path / "certificate", "DNS:localhost")
    (tmp_path / "routes.toml").write_text('[[route]]\nmatch = "news@127.0.0.1"\nstream = "show"\n')
    server = gateway(
        *("--config", str(tmp_path / "routes.toml"), "--sip-t1", "50"),
        *("--users", users_file(tmp_path, "alice", "bob")),
        *("--sips", "127.0.0.1:0", "--tls-cert", str(made.file), "--tls-key", str(made.key)),
    )
    named = server.sips.replace("127.0.0.1", "localhost")
    account = {"registrar": named, "password": PASSWORD, "transport": "tls", "ca": made.file}
    bob = start(Linphone, "bob", codec="PCMU/8000", **account)
    alice = start(Baresip, "alice", registrar=server.sip, password=PASSWORD, hz=ALICE_HZ)
    server.wait_status({"registrations": 2, "transactions": 0})
    bob.command(f"call sip:alice@{named};transport=tls")
    alice.wait_event("CALL_ESTABLISHED")
    bob.command("terminate")
    alice.wait_event("CALL_CLOSED")
    bob.wait_for("LinphoneCallReleased")
    alice.dial(f"sip:bob@{server.sip}")
    alice.wait_event("CALL_ESTABLISHED")
    bob.command("terminate")
    alice.wait_event("CALL_CLOSED")
    bob.wait_for("LinphoneCallReleased", 2)
    server.wait_status({"calls": 0, "proxied_dialogs": 0})
    bob.command(f"call sip:news@{named};transport=tls")
    server.wait_status({"calls": 1})
    bob.wait_for("LinphoneCallStreamsRunning", 3)
    bob.command("terminate")
    server.wait_status({"calls": 0})
    told = {line for line in bob.trace.splitlines() if f"<sip:{named};transport=tls;lr>" in line}
    assert any(line.startswith("Record-Route:") for line in told)
    assert any(line.startswith("Route:") for line in told)  # of its BYE
    assert (
        f"@{named};transport=tls" in bob.trace and f"{server.sips};transport=tls" not in bob.trace
    )


def agent(user, kamailio, transport, made):
    """An agent that has registered through kamailio."""
    port = kamailio.port + (transport == "tls")
    found = Agent(
        Account(
            user, DOMAIN, password=PASSWORD, registrar=f"sip:127.0.0.1:{port};transport={transport}"
        ),
        NetworkSettings(tls=TlsContexts(client_context(made.file)) if transport == "tls" else None),
    )
    found.register(20)
    return found


@pytest.mark.parametrize("transport", ["udp", "tcp", "tls"])
@pytest.mark.needs("kamailio", "openssl")
def test_agents_call_each_other_through_kamailio(start, tmp_path, transport):
    """Covers RFC 3261 §8.1.2 and §12.2.1.1: a proxy of others on the way, also within a call."""
    made = certificate(tmp_path / "certificate")
    kamailio = start(Kamailio, users={"a": PASSWORD, "b": PASSWORD}, domain=DOMAIN, tls=made)
    with agent("a", kamailio, transport, made) as a, agent("b", kamailio, transport, made) as b:
        taken, heard = Queue(), Queue()
        b.on_call, b.on_message = lambda call: (call.answer(20), taken.put(call)), heard.put
        call = a.call("b", 20)
        there = taken.get(timeout=20)
        for each in (call, there):
            each.hold(timeout=20)
            each.resume(timeout=20)
        assert a.message("b", "good morning").status == 200
        assert heard.get(timeout=20).text == "good morning"
        there.hangup()
        assert call.wait_ended(20) and call.reason == "BYE"


@pytest.mark.parametrize("transport", ["udp", "tls"])
@pytest.mark.needs("kamailio", "openssl")
def test_rich_clients_call_each_other_through_kamailio(start, gateway, tmp_path, transport):
    """Both ends register and call through an outbound proxy; with TLS nothing else is used."""
    made = certificate(tmp_path / "certificate")
    users = {"alice": PASSWORD, "bob": PASSWORD}
    kamailio = start(Kamailio, users=users, domain=DOMAIN, tls=made)
    secure = ["--sips", "127.0.0.1:0", "--tls-cert", str(made.file), "--tls-key", str(made.key)]
    place = f"sip:127.0.0.1:{kamailio.port + (transport == 'tls')};transport={transport}"
    options = [*secure, "--ca", str(made.file)] if transport == "tls" else []
    server = gateway(*options, "--outbound-proxy", place)
    alice = RichClient(server.rtmp, f"alice@{DOMAIN}", "alice", PASSWORD)
    bob = RichClient(server.rtmp, f"bob@{DOMAIN}", "bob", PASSWORD)
    alice.call("invite", f"sip:bob@{DOMAIN}")
    bob.expect("invited")
    assert alice.expect("ringing") == ("180 Ringing",)
    bob.call("accept")
    assert alice.expect("accepted") == () == bob.expect("accepted")
    bob.call("bye")
    alice.expect("byed")
    alice.close()
    bob.close()
    server.wait_status({"calls": 0, "dialogs": 0, "lines": 0})


def s_client(address, *words):
    """What `openssl s_client` says of a server, and whether it was content."""
    program = require("openssl", "openssl")
    done = subprocess.run(
        [program, "s_client", "-connect", address, "-verify_return_error", "-brief", *words],
        **{"input": b"", "capture_output": True, "timeout": 100, "check": False},
    )
    return done.returncode == 0, done.stderr.decode()


@pytest.mark.needs("openssl")
def test_what_openssl_says_of_the_listener(secure):
    """It proves its name to those who trust its certificate, and old versions are refused."""
    server, made = secure
    trust = ("-CAfile", str(made.file))
    good, said = s_client(server.sips, *trust, "-verify_ip", "127.0.0.1")
    assert good and "Verification: OK" in said and "TLSv1.3" in said
    for words in (
        (*trust, "-verify_hostname", "other.example"),
        ("-CApath", str(made.file.parent / "none"), "-no-CAfile", "-no-CAstore"),
        (*trust, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"),
    ):
        assert not s_client(server.sips, *words)[0]


@pytest.mark.parametrize("wrong", ["authority", "name", "expired"])
@pytest.mark.needs("openssl")
def test_a_server_that_proves_nothing_is_not_called(start, gateway, tmp_path, wrong):
    """Covers RFC 3261 §26.2.2 with `openssl s_server` as the outbound proxy."""
    ours = certificate(tmp_path / "ours")
    names = "DNS:other.example" if wrong == "name" else "IP:127.0.0.1"
    theirs = certificate(tmp_path / "theirs", names, expired=wrong == "expired")
    proxy = start(SServer, theirs)
    server = gateway(
        *("--sips", "127.0.0.1:0", "--tls-cert", str(ours.file), "--tls-key", str(ours.key)),
        *("--ca", str((ours if wrong == "authority" else theirs).file)),
        *("--outbound-proxy", f"sip:127.0.0.1:{proxy.port};transport=tls"),
    )
    with pytest.raises(RemoteError, match="503 Not Reachable"):
        RichClient(server.rtmp, f"alice@{DOMAIN}", "alice", PASSWORD)
    assert "TLS with 127.0.0.1 fails: the certificate is not trusted" in server.output


class SServer(Process):
    """`openssl s_server`, which would answer something to whatever it was sent."""

    def __init__(self, folder, made):
        program = require("openssl", "openssl")
        self.port = free_port()
        words = ["s_server", "-accept", f"127.0.0.1:{self.port}", "-rev"]
        files = ["-cert", str(made.file), "-key", str(made.key)]
        super().__init__(folder, [program, *words, *files])

    def is_ready(self):
        return tcp_answers(self.port)


@pytest.mark.needs("openssl")
def test_our_own_phone_registers_by_tls(secure, tmp_path, monkeypatch):
    """`python -m p2psip register`, which checks the certificate against --ca."""
    server, made = secure
    monkeypatch.setenv("SIP_PASSWORD", PASSWORD)
    words = ["-m", "p2psip", "register", "alice@127.0.0.1", "--seconds", "0.1"]
    words += ["--registrar", f"sip:{server.sips};transport=tls"]
    for trust, status in ((["--ca", str(made.file)], 0), ([], 1)):
        done = subprocess.run([sys.executable, *words, *trust], capture_output=True, timeout=60)
        assert done.returncode == status, done.stderr
