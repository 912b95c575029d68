"""Our agent and baresip: sound, hold, keys, transfers, messages."""

import socket
from array import array

import gevent
import pytest
from support.peers.baresip import Baresip
from support.peers.process import wait_until
from support.peers.tones import from_s16, tone, tone_fraction, trimmed

from p2psip.agent import Agent
from p2psip.net.phone.settings import Account, CallSettings, NetworkSettings
from p2psip.net.phone.wav import Recording
from p2psip.rtp.payload import g711

OURS, THEIRS = 440, 900  # Hz
PACKET = 160  # samples
ENOUGH = 8000  # samples of sound, one second
PATIENCE = 20  # s
pytestmark = pytest.mark.needs("baresip")


@pytest.fixture
def agents():
    """Bob and Carol, who answer; their calls are in `taken`, the keys they hear in `keys`."""
    found = [Agent(Account(name)) for name in ("bob", "carol")]
    for agent in found:
        agent.taken, agent.keys, agent.sound = [], [], Recording()

        def on_call(call, agent=agent):
            call.on_audio = agent.sound.add
            call.on_digit = lambda digit, seconds: agent.keys.append((digit, seconds))
            call.on_transfer = lambda target: True
            call.on_transferred = agent.taken.append
            call.answer(PATIENCE)
            agent.taken.append(call)

        agent.on_call = on_call
    yield found
    for agent in found:
        agent.close()


def uri(agent, transport):
    host, port = agent.address
    return f"sip:{agent.user}@{host}:{port};transport={transport}"


def until(condition, what):
    wait_until(condition, what=what, timeout=PATIENCE)


def speak(call):
    """Send a tone in the call until it ends, in a greenlet."""
    samples = array("h", (int(20000 * each) for each in tone(OURS, 1)))

    def run():
        while not call.is_over:
            for at in range(0, len(samples), PACKET):
                call.send_audio(g711.encode_ulaw(samples[at : at + PACKET]))
                gevent.sleep(0.02)

    return gevent.spawn(run)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_call_with_all_that_a_phone_does_in_it(start, agents, transport):
    """Covers RFC 3264 §8.4, RFC 4733 §2.5, RFC 3428 §4, RFC 3261 §11 with a peer's phone."""
    bob, _ = agents
    phone = start(Baresip, "alice", hz=THEIRS, transport=transport)
    phone.dial(uri(bob, transport))
    phone.wait_event("CALL_ESTABLISHED", PATIENCE)
    until(lambda: bob.taken, "the call")
    [call] = bob.taken
    speech = speak(call)
    until(lambda: len(bob.sound.samples) > ENOUGH, "sound")
    phone.command("sndcode", "12#")
    until(lambda: len(bob.keys) == 6, "keys")
    assert [digit for digit, seconds in bob.keys if seconds is not None] == ["1", "2", "#"]
    assert call.send_digits("45*")
    for digit in "45*":
        assert phone.wait_event("CALL_DTMF_START", PATIENCE)["param"] == digit
    for command, held in (("hold", True), ("resume", False)):
        phone.command(command)
        until(lambda held=held: call.is_held is held, command)
    call.hold(timeout=PATIENCE)
    call.resume(timeout=PATIENCE)
    assert bob.message(f"{phone.uri};transport={transport}", "good morning").status == 200
    phone.wait_until(lambda: "good morning" in phone.output, what="the message")
    assert bob.options(f"{phone.uri};transport={transport}").status == 200
    until(lambda: len(phone.heard()[0]) > ENOUGH, "sound since the call was resumed")
    phone.hangup()
    phone.wait_event("CALL_CLOSED", PATIENCE)
    assert call.wait_ended(PATIENCE) and call.reason == "BYE"
    speech.join(PATIENCE)
    heard = from_s16(bob.sound.samples.tobytes())
    assert tone_fraction(trimmed(heard, 8000), 8000, THEIRS) > 0.95
    samples, rate = phone.heard()
    assert tone_fraction(trimmed(samples, rate), rate, OURS) > 0.9


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_blind_transfers_both_ways(start, agents, transport):
    """Covers RFC 3515 §2.4.2, §2.4.4 and §2.4.5 with a peer at either side."""
    bob, carol = agents
    phone = start(Baresip, "alice", transport=transport)
    call = bob.call(f"{phone.uri};transport={transport}", timeout=PATIENCE)
    call.transfer(uri(carol, transport), timeout=PATIENCE)  # the phone calls carol
    until(lambda: carol.taken, "the phone's call")
    assert carol.taken[0].remote.uri.user == "alice"
    call.hangup()
    phone.command("transfer", uri(bob, transport))  # and carol calls bob
    until(lambda: len(carol.taken) == 2 and bob.taken, "carol's call")
    assert carol.taken[1].is_up and bob.taken[0].remote.uri.user == "carol"
    assert carol.taken[0].wait_ended(PATIENCE)


def reports_of(call):
    """What a call has sent and heard of RTCP: whether the phone reported, and the round trip."""
    session = call._audio._session
    return session.last_heard is not None and session.rtt is not None


@pytest.mark.parametrize("is_caller", [True, False])
def test_sound_and_reports_share_one_port_with_a_phone(start, is_caller):
    """Covers RFC 5761 §5.1.1 both ways: reports come by it, and ours are answered."""
    phone = start(Baresip, "alice", hz=THEIRS, rtcp_mux=True)
    sound = Recording()
    with Agent(Account("bob"), calls=CallSettings(rtcp_mux=True)) as bob:
        if is_caller:
            call = bob.call(phone.uri, timeout=PATIENCE, on_audio=sound.add)
        else:
            taken = []

            def on_call(call):
                call.on_audio = sound.add
                call.answer(PATIENCE)
                taken.append(call)

            bob.on_call = on_call
            phone.dial(uri(bob, "udp"))
            until(lambda: taken, "the call")
            [call] = taken
        speech = speak(call)
        audio = call._audio
        port = audio._transport._port
        assert port.rtcp_mux and port.remote_rtcp == port.remote
        until(lambda: reports_of(call), "reports both ways")
        until(lambda: len(sound.samples) > ENOUGH, "sound")
        assert audio._session.invalid == 0
        call.hangup()
        speech.join(PATIENCE)
    heard = from_s16(sound.samples.tobytes())
    assert tone_fraction(trimmed(heard, 8000), 8000, THEIRS) > 0.95


@pytest.fixture
def own_address():
    """An address of this machine that is not of loopback: baresip has no candidates else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.254", 9))
        except OSError:
            pytest.skip("this machine has no address but that of loopback")
        return probe.getsockname()[0]


@pytest.mark.parametrize("is_caller", [True, False])
def test_a_phone_by_ice_finds_a_way_and_another_one(start, own_address, is_caller):
    """Covers RFC 8839 §4.3.1 [offer-has-candidates] and §4.3.2 [answer-has-candidates].

    Covers RFC 5763 §5 [active-begins].

    As the caller with two ports, since this phone shares none; as the callee with one, and with
    keys by DTLS.
    """
    has_dtls = not is_caller
    if has_dtls:
        pytest.importorskip("p2psip.net.dtls")
    options = {"rtcp_mux": has_dtls, "srtp": "dtls_srtp" if has_dtls else ""}
    phone = start(Baresip, "alice", hz=THEIRS, account=";medianat=ice", **options)
    sound, taken = Recording(), []
    network = NetworkSettings(listen=(own_address, 0), ice=True)
    with Agent(Account("bob"), network, CallSettings(dtls=has_dtls)) as bob:

        def on_call(call):
            call.on_audio = sound.add
            call.answer(PATIENCE)
            taken.append(call)

        bob.on_call = on_call
        if is_caller:
            taken.append(bob.call(phone.uri, timeout=PATIENCE, on_audio=sound.add))
        else:
            phone.dial(uri(bob, "udp"))
        until(lambda: taken and taken[0].is_ready, "a way")
        [call] = taken
        assert call.is_by_ice and call.is_encrypted is has_dtls
        assert "ice: audio: connectivity check is complete" in phone.output
        speech = speak(call)
        until(lambda: len(sound.samples) > ENOUGH, "sound")
        call.hold(timeout=PATIENCE)
        call.resume(timeout=PATIENCE)
        call.restart_ice(timeout=PATIENCE)
        more = len(sound.samples) + ENOUGH
        until(lambda: len(sound.samples) > more, "sound after a restart")
        until(lambda: reports_of(call), "reports both ways")
        call.hangup()
        speech.join(PATIENCE)
    phone.wait_event("CALL_CLOSED", PATIENCE)
    heard = from_s16(sound.samples.tobytes())
    assert tone_fraction(trimmed(heard, 8000), 8000, THEIRS) > 0.95
    samples, rate = phone.heard()
    assert tone_fraction(trimmed(samples, rate), rate, OURS) > 0.9
