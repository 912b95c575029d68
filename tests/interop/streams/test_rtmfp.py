"""RTMFP through the whole gateway: calls to phones, streams that everybody plays."""

import gevent
import numpy as np
import pytest
from interop.calls.test_sip_api import call_and_compare, speex
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import FlashClient, RichClient, wait_for
from support.peers.baresip import Baresip
from support.peers.peers import Ffmpeg, RtmpDump, decode_audio
from support.peers.tones import from_ulaw, tone_fraction, trimmed

from rtmplite.flv import file
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.net.client.rtmp_client import RtmpClient
from siprtmp.demo.tones import Tone

FLASH = "--rtmfp", "127.0.0.1:0"
SECONDS, MARGIN = 4, 1
CLIENT_HZ, PHONE_HZ = 440, 900
MULAW = b"\x82"  # of an audio tag: G.711 mu-law

__all__ = ["speex"]  # the fixture


def lasting(figures, *names):
    """The figures that return at once to what they were, but for those of `names`."""
    passing = {"rtmfp_closing", "rtmfp_ignored", "rtmfp_invalid", *names}
    return {name: value for name, value in figures.items() if name not in passing}


@pytest.mark.needs("baresip")
def test_a_client_calls_a_phone(start, gateway, tmp_path):
    """Invited by RTMFP, answered by SIP: both hear each other's tone."""
    server = gateway("--users", users_file(tmp_path, "alice", "bob"), "--sip-t1", "50", *FLASH)
    idle = server.status()
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=PHONE_HZ)
    flash = server.listeners["rtmfp"]
    alice = FlashClient(flash, "alice@127.0.0.1", "alice", PASSWORD, "Alice")
    alice.call("invite", "bob@127.0.0.1", "pcmu")
    while (said := alice.calls.get(timeout=30))[0] == "ringing":
        pass
    assert said[0] == "accepted"
    alice.open_streams()
    heard = gevent.spawn(alice.heard, 50 * SECONDS)
    tone = Tone(CLIENT_HZ)
    for number in range(50 * (SECONDS + MARGIN)):
        alice.local.write(8, 20 * number, MULAW + tone.frame(number))
        gevent.sleep(0.02)
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    assert alice.expect("byed") == ()
    samples = from_ulaw(b"".join(tag[1:] for tag in heard.get(timeout=30)))
    assert tone_fraction(trimmed(np.asarray(samples), 8000), 8000, PHONE_HZ) > 0.95
    samples, rate = phone.heard()
    assert tone_fraction(trimmed(samples, rate), rate, CLIENT_HZ) > 0.95
    assert len(trimmed(samples, rate)) / rate > 0.8 * SECONDS
    alice.close()
    phone.stop()
    server.wait_status(lasting(idle, "registrations", "sip_repeated"))


@pytest.mark.parametrize("kinds", [(FlashClient, FlashClient), (FlashClient, RichClient)])
def test_clients_of_both_kinds_call_each_other(gateway, tmp_path, speex, kinds):
    """The `sip` application by RTMFP and by RTMP, Speex passed bit by bit."""
    users = users_file(tmp_path, "alice", "bob")
    server = gateway("--users", users, *FLASH)
    at = [server.listeners["rtmfp" if kind is FlashClient else "rtmp"] for kind in kinds]
    alice = kinds[0](at[0], "alice@127.0.0.1", "alice", PASSWORD, "Alice")
    bob = kinds[1](at[1], "bob@localhost", "bob", PASSWORD, "Bob")
    call_and_compare(alice, bob, "bob@127.0.0.1", speex[:30])
    alice.close()
    bob.close()


@pytest.mark.needs("baresip", "ffmpeg", "rtmpdump")
def test_what_is_published_by_rtmfp_is_called_by_phones(start, gateway, tmp_path):
    """The `call` application: a name with `@` is dialled when it is published."""
    server = gateway("--users", users_file(tmp_path, "bob"), *FLASH)
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=PHONE_HZ)
    name = f"bob@{server.sip}"
    player = start(RtmpDump, server.url("call", name))
    client = RtmfpClient.connect(f"rtmfp://{server.listeners['rtmfp']}/call")
    stream = client.create_stream()
    stream.publish(name, timeout=20)
    tone = Tone(CLIENT_HZ)
    for number in range(50 * SECONDS):
        stream.write(8, 20 * number, MULAW + tone.frame(number))
        gevent.sleep(0.02)
    stream.delete()
    client.close()
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(trimmed(samples, rate), rate, CLIENT_HZ) > 0.95
    player.finish()
    assert tone_fraction(decode_audio(player.file), 8000, PHONE_HZ) > 0.95


def test_ffmpeg_plays_what_is_published_by_rtmfp(start, gateway, tmp_path, corpus):
    """And a client over RTMFP plays what ffmpeg publishes."""
    server = gateway(*FLASH)
    flash = f"rtmfp://{server.listeners['rtmfp']}/live"
    played = tmp_path / "played.flv"
    player = start(Ffmpeg.play, server.url("live", "demo"), to=played)
    server.wait_status({"players": 1})
    tags = list(file.tags((corpus / "flv" / "ruffle_aac_mono_44100hz.flv").read_bytes()))
    client = RtmfpClient.connect(flash)
    stream = client.create_stream()
    stream.publish("demo")
    for tag in tags:
        stream.write(tag.tag_type, tag.timestamp, tag.data)
    stream.delete()
    wait_for(lambda: player.child.poll() is not None, "ffmpeg sees the end")
    assert player.finish() == 0
    sent = [tag.data for tag in tags if tag.tag_type == 8]
    heard = [tag.data for tag in file.tags(played.read_bytes()) if tag.tag_type == 8]
    assert heard == sent
    listener = client.create_stream()
    listener.play("tone")
    publisher = start(Ffmpeg.publish, server.url("live", "tone"), hz=600, seconds=2)
    count = 0
    while (message := listener.read(timeout=30)) is not None:
        count += message.type_id == 8
    assert listener.ended and count > 50
    assert publisher.finish() == 0
    client.close()


def test_nothing_remains_when_clients_are_gone(gateway):
    """Figures return to where they were, whoever says good-bye."""
    server = gateway(*FLASH)
    idle = server.status()
    clients = [
        RtmfpClient.connect(f"rtmfp://{server.listeners['rtmfp']}/live"),
        RtmpClient.connect(server.url("live")),
    ]
    clients[0].create_stream().play("demo")
    wait_for(lambda: server.status()["rtmp_connections"] == 2, "both are there")
    for client in clients:
        client.close()
    server.wait_status(lasting(idle))
