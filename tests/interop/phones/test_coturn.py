"""A real server tells addresses, and calls go between them."""

import re
import socket
import subprocess
import sys
import time
from urllib.request import Request, urlopen

import gevent
import pytest
from support.gateway.whip_world import offer
from support.limits import patience
from support.peers.coturn import PASSWORD, USER, Coturn
from support.peers.peers import Ffmpeg
from support.peers.process import Process
from support.peers.tones import read_wav, tone, tone_fraction, trimmed, write_wav

from p2psip.agent import Agent
from p2psip.nat import ice_checklist, turn_client
from p2psip.net.clock import monotonic
from p2psip.net.media.relayed_ports import RelayedSocket
from p2psip.net.phone import phone_address
from p2psip.net.phone.settings import Account, NetworkSettings
from p2psip.net.udp import plain_socket
from rtclab.lint.command import lint
from rtclab.lint.packets import read_capture

pytestmark = pytest.mark.interop
SECONDS, HZ = 3, 600


def wait_for(condition):
    """Let other greenlets run until it is so."""
    with patience(20):
        while not condition():
            gevent.sleep(0.01)


class Phone(Process):
    """`python -m p2psip`, ready when it has printed `ready`; it waits `patience` s for servers."""

    def __init__(self, folder, *words, ready="", patience=8):
        program = (
            "import sys; from p2psip import __main__; from p2psip.net.phone import phone_address; "
            f"phone_address.PATIENCE = {patience}; sys.exit(__main__.main())"
        )
        super().__init__(folder, [sys.executable, "-c", program, *map(str, words)])
        self.ready = ready

    def is_ready(self):
        return self.ready in self.output

    @property
    def uri(self):
        """Where it listens, as it has said itself."""
        return self.output.partition("listening at ")[2].split()[0]


def call_with_a_tone(start, tmp_path, *options, **more):
    """One phone calls another, both with these options: what was heard, and both phones."""
    played = write_wav(tmp_path / "played.wav", tone(HZ, SECONDS))
    heard = tmp_path / "heard.wav"
    callee = start(
        Phone, "listen", "--calls", 1, "--record", heard, *options, ready="listening at ", **more
    )
    caller = start(Phone, "call", callee.uri, "--play", played, *options, **more)
    assert caller.finish(timeout=60) == 0, caller.output
    assert callee.finish(timeout=20) == 0, callee.output
    samples, rate = read_wav(heard)
    return trimmed(samples, rate), rate, caller, callee


@pytest.mark.needs("turnserver")
def test_phones_call_each_other_at_the_addresses_that_the_server_told(start, tmp_path):
    """Covers RFC 8489 §6.2.1 and §14.2: the answers of another implementation."""
    server = start(Coturn)
    samples, rate, *_ = call_with_a_tone(start, tmp_path, "--stun", server.address)
    assert tone_fraction(samples, rate, HZ) > 0.9 and len(samples) > 0.8 * SECONDS * rate


@pytest.mark.needs("turnserver")
def test_a_gateway_learns_its_address(start, gateway):
    server = start(Coturn)
    running = gateway("--stun", server.address)
    wanted = f"public-address address={running.sip} server={server.address}"
    running.wait_until(lambda: wanted in running.output, what="the address", timeout=20)


@pytest.fixture
def password(monkeypatch):
    monkeypatch.setenv("TURN_PASSWORD", PASSWORD)


def relayed(server):
    return "--turn", f"turn:{USER}@{server.address}?transport=udp"


@pytest.mark.needs("turnserver")
def test_a_call_goes_through_two_relays(start, tmp_path, password):
    """Covers RFC 8656 §12.5 and §12.6: sound by channels of another implementation."""
    server = start(Coturn)
    samples, rate, *_ = call_with_a_tone(start, tmp_path, *relayed(server))
    assert tone_fraction(samples, rate, HZ) > 0.9 and len(samples) > 0.8 * SECONDS * rate
    assert server.output.count("CHANNEL_BIND processed, success") >= 2


@pytest.mark.needs("turnserver", "ffmpeg")
def test_a_stream_calls_a_phone_through_a_relay(start, gateway, tmp_path, password):
    """What the relay carries is in the capture, and lint finds the call's sound in it."""
    server, heard, path = start(Coturn), tmp_path / "heard.wav", tmp_path / "relayed.pcap"
    phone = start(Phone, "listen", "--calls", 1, "--record", heard, ready="listening at ")
    running = gateway(*relayed(server), "--capture", str(path))
    server.wait_until(
        lambda: server.output.count("ALLOCATE processed, success") >= 8,
        what="addresses for four calls",
        timeout=20,
    )
    url = running.url("call", phone.uri.removeprefix("sip:"))
    start(Ffmpeg.publish, url, hz=HZ, seconds=SECONDS)
    assert phone.finish(timeout=40) == 0, phone.output
    samples, rate = read_wav(heard)
    sound = trimmed(samples, rate)
    assert tone_fraction(sound, rate, HZ) > 0.9 and len(sound) > 0.8 * SECONDS * rate
    assert "CHANNEL_BIND processed, success" in server.output
    running.stop()
    report = lint(read_capture(path.read_bytes()))
    assert report.findings == []
    [rows] = [each.arrows for each in report.diagrams if each.kind == "call"]
    assert sum("by TURN" in row.label for row in rows) == 2
    assert all(each.packets > 40 * SECONDS and not each.lost for each in report.streams)


def links_of(running, name, token=""):
    """The servers that the answer to an offer names."""
    url = f"http://{running.listeners['http']}/live/{name}/whip"
    headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {token}"}
    asked = Request(url, offer("audio", "h264"), headers)
    with urlopen(asked, timeout=20) as answer:
        return answer.headers.get_all("Link") or []


@pytest.mark.needs("turnserver", "turnutils_uclient")
def test_a_browser_gets_a_login_that_the_server_takes(start, gateway, monkeypatch):
    """Field §"Logins of a TURN server that end"."""
    monkeypatch.setenv("TURN_SECRET", "north")
    server = start(Coturn, "--use-auth-secret", "--static-auth-secret=north")
    options = *relayed(server), "--stun", server.address, "--webrtc", "127.0.0.1:0"
    running = gateway(*options, "--publish-key", "cam=secret")
    server.wait_until(  # the gateway's own sockets, by a login of the same kind
        lambda: "ALLOCATE processed, success" in server.output, what="an address", timeout=20
    )
    stun, turn = links_of(running, "cam", "secret")
    assert stun == f'<stun:{server.address}>; rel="ice-server"'
    user, password = re.findall(r'(?:username|credential)="([^"]+)"', turn)
    assert int(user.partition(":")[0]) > time.time() and turn.startswith(f"<turn:{server.address}?")
    words = ["-u", user, "-w", password, "-p", str(server.port), "-y", "-c", "-n", "1", "127.0.0.1"]
    talk = subprocess.run(["turnutils_uclient", *words], capture_output=True, text=True, timeout=60)
    assert talk.returncode == 0 and "Total lost packets 0 (0.000000%)" in talk.stdout
    assert f"<{user}>" in server.output and password not in running.output


@pytest.mark.needs("turnserver")
def test_a_wrong_password_is_named_and_the_call_goes_without_a_relay(start, tmp_path, monkeypatch):
    """Covers RFC 8489 §9.2.5."""
    monkeypatch.setenv("TURN_PASSWORD", "not-the-password")
    samples, rate, caller, callee = call_with_a_tone(
        start, tmp_path, *relayed(start(Coturn)), patience=1
    )
    assert tone_fraction(samples, rate, HZ) > 0.9
    for phone in (caller, callee):
        assert "refuses user and password (401)" in phone.output
        assert "not-the-password" not in phone.output


@pytest.mark.needs("turnserver")
def test_an_expired_nonce_is_replaced(start):
    """Covers RFC 8489 §9.2.5 [stale-nonce-is-replaced]."""
    server = start(Coturn, "--stale-nonce=1")
    opened = plain_socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.bind(("127.0.0.1", 0))
    relay = RelayedSocket(opened, lambda: None, ("127.0.0.1", server.port), (USER, PASSWORD))
    try:
        wait_for(lambda: relay.public)
        first = relay._allocation._login.nonce

        def refreshed():
            relay._allocation._refresh_at = 0.0
            relay.tick(monotonic())
            gevent.sleep(0.05)
            return relay._allocation._login.nonce != first

        wait_for(refreshed)
        relay.permit(["127.0.0.1"])
        wait_for(lambda: relay._allocation._permitted["127.0.0.1"])
        assert not relay.failed
    finally:
        relay.close()


@pytest.mark.needs("turnserver")
def test_a_call_by_ice_goes_through_the_server_where_nothing_else_works(start, monkeypatch):
    """RFC 8656 §11.4: the checks of ICE, and audio after them, by a relayed address at each end."""
    monkeypatch.setattr(phone_address, "SERVER_SECONDS", 20)
    monkeypatch.setattr(ice_checklist, "suit", by_relays)
    turn, heard = (relayed(start(Coturn))[1], PASSWORD), []
    settings = NetworkSettings(turn=turn, ice=True)
    with Agent(Account("bob"), settings) as bob, Agent(Account("alice"), settings) as alice:

        def on_call(call):
            call.on_audio = lambda payload, timestamp: heard.append(payload)
            call.answer()

        bob.on_call = on_call
        call = alice.call(str(bob.contact), timeout=20)
        wait_for(lambda: call.is_ready and bob.calls and bob.calls[0].is_ready)
        pair = call._audio._transport._port._rtp.agent.selected
        assert {pair.local.type, pair.remote.type} == {"relay"}
        assert call.send_audio(bytes(160))
        wait_for(lambda: heard == [bytes(160)])


def by_relays(local, remote, suit=ice_checklist.suit):
    """As where firewalls let nothing through but what goes by a server."""
    return local.type == remote.type == "relay" and suit(local, remote)


@pytest.mark.needs("turnserver")
def test_a_call_ends_when_its_server_was_restarted(start, monkeypatch):
    """Covers RFC 8656 §5 [437-means-gone]."""
    monkeypatch.setattr(turn_client, "REFRESH", 0.2)
    monkeypatch.setattr(phone_address, "SERVER_SECONDS", 20)
    server = start(Coturn)
    with (
        Agent(Account("bob")) as bob,
        Agent(Account("alice"), NetworkSettings(turn=(relayed(server)[1], PASSWORD))) as alice,
    ):
        bob.on_call = lambda call: call.answer()
        call = alice.call(str(bob.contact), timeout=20)
        assert call.is_up and call._audio._transport._port.public is not None
        server.stop()
        start(Coturn, port=server.port)
        assert call.wait_ended(20)
        wait_for(lambda: not bob.calls)
