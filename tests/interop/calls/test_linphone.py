"""Speex at both rates, with a phone that encodes and decodes it by itself."""

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient
from support.peers.baresip import Baresip
from support.peers.linphone import Linphone
from support.peers.peers import LASTING, Ffmpeg, RtmpDump, decode_audio
from support.peers.tones import tone_fraction, trimmed

SECONDS = 5
SPEEX = ("-c:a", "libspeex", "-ar", "16000", "-ac", "1")  # wideband, as Flash Player's always is
OURS, THEIRS = 440, 600  # Hz, which Speex keeps; much above, linphonec's encoder loses the tone

RATES = pytest.mark.parametrize("rate", [16000, 8000])


@pytest.fixture
def server(gateway, tmp_path):
    return gateway("--users", users_file(tmp_path, "bob"))


@pytest.fixture
def phone(start, server, rate):
    codec = f"speex/{rate}"
    return start(Linphone, "bob", codec=codec, registrar=server.sip, password=PASSWORD, hz=THEIRS)


def well_heard(phone, file, watch):
    """Both ends have heard the other's tone for the whole call."""
    samples, rate = phone.heard()
    heard = decode_audio(file)
    assert tone_fraction(trimmed(samples, rate), rate, OURS) > phone.enough(watch)
    assert tone_fraction(heard, 8000, THEIRS) > 0.95
    assert len(samples) / rate > 0.9 * SECONDS and len(heard) / 8000 > 0.9 * SECONDS


def test_the_phone_itself(start, watch):
    """What is said of linphonec here holds without the gateway: another phone calls it."""
    phone = start(Linphone, "bob", codec="PCMU/8000", hz=THEIRS)
    caller = start(Baresip, "alice", hz=OURS)
    caller.dial(f"sip:bob@127.0.0.1:{phone.port}")
    caller.wait_event("CALL_ESTABLISHED")
    size = 2 * 8000 * SECONDS  # in octets
    phone.wait_until(lambda: phone.recording.stat().st_size > size, what="sound")
    caller.hangup()
    caller.wait_event("CALL_CLOSED")
    phone.wait_for("LinphoneCallReleased")
    ends = (phone.heard(), OURS, phone.enough(watch)), (caller.heard(), THEIRS, 0.95)
    for (samples, rate), hz, enough in ends:
        assert tone_fraction(trimmed(samples, rate), rate, hz) > enough


@pytest.mark.alone  # this phone drops sound when it has to wait for a core
@RATES
@pytest.mark.needs("ffmpeg", "linphonec", "rtmpdump")
def test_ffmpeg_calls_a_speex_phone(start, server, phone, watch, rate):
    """Covers RFC 5574 §3.3: a narrowband phone gets what it can decode of a wideband sound."""
    url = server.url("call", f"bob@{server.sip}")
    player = start(RtmpDump, url)
    publisher = start(Ffmpeg.publish, url, hz=OURS, seconds=SECONDS, codecs=SPEEX)
    assert publisher.finish() == 0
    phone.wait_for("LinphoneCallReleased")
    player.finish()
    well_heard(phone, player.file, watch)
    server.wait_status({"calls": 0, "dialogs": 0, "media_legs": 0})


@pytest.mark.alone  # this phone drops sound when it has to wait for a core
@RATES
@pytest.mark.needs("ffmpeg", "linphonec", "rtmpdump")
def test_a_speex_phone_calls_a_waiting_name(start, server, phone, watch, rate):
    """Covers RFC 5574 §3.3."""
    url = server.url("call", "studio")
    publisher = start(Ffmpeg.publish, url, hz=OURS, seconds=LASTING, codecs=SPEEX)
    player = start(RtmpDump, url)
    server.wait_status({"names": 1, "players": 1})
    phone.command(f"call sip:studio@{server.sip}")
    phone.wait_for("LinphoneCallStreamsRunning")
    size = 2 * rate * SECONDS  # in octets
    phone.wait_until(lambda: phone.recording.stat().st_size > size, what="sound")
    phone.command("terminate")
    phone.wait_for("LinphoneCallReleased")
    player.finish()
    well_heard(phone, player.file, watch)
    publisher.stop()
    server.wait_status({"calls": 0, "dialogs": 0, "names": 0})


@pytest.mark.parametrize("rate", [16000])
@pytest.mark.needs("linphonec")
def test_a_phone_holds_and_comes_back(server, phone, rate):
    """Covers RFC 3264 §8.4 with a peer's re-INVITEs."""
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    alice.call("invite", "bob@127.0.0.1")
    assert alice.expect("ringing") == ("180 Ringing",)
    alice.expect("accepted")
    alice.open_streams()
    alice.heard(10)
    for times in (1, 2):
        phone.command("pause")
        assert alice.expect("holded") == (True,)
        phone.wait_for("LinphoneCallPaused", times)
        phone.command("resume")
        assert alice.expect("holded") == (False,)
        phone.wait_for("LinphoneCallStreamsRunning", times + 1)
    alice.heard(10)
    phone.command("terminate")
    alice.expect("byed")
    alice.close()
    server.wait_status({"calls": 0, "dialogs": 0, "lines": 0})


@pytest.mark.parametrize("rate", [16000])
@pytest.mark.needs("linphonec")
def test_keys_by_the_clock_of_the_sound(server, phone, rate):
    """Covers Field §"Events by one clock or the other": this phone has no others."""
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    alice.call("invite", "bob@127.0.0.1", "wideband", "dtmf")
    assert alice.expect("ringing") == ("180 Ringing",)
    alice.expect("accepted")
    phone.wait_for("LinphoneCallStreamsRunning")
    alice.call("sendDTMF", "1")
    phone.wait_until(lambda: "Receiving tone 1 from" in phone.output, what="our key")
    phone.command("7")
    assert alice.expect("dtmf") == ("7",)
    alice.call("bye")
    phone.wait_for("LinphoneCallReleased")
    alice.close()
    server.wait_status({"calls": 0, "dialogs": 0, "lines": 0})
