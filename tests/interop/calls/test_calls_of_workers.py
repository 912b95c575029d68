"""Calls of a gateway with two workers: the phone's messages come to one, its stream to either."""

import os
import re
import signal
import urllib.request
from contextlib import suppress
from itertools import count

import gevent
import pytest
from support.attacks.hostile_sip import Callee, sdp
from support.gateway.gateway import Gateway
from support.gateway.richclient import AUDIO, RichClient, wait_for
from support.gateway.workers import TRIES, lines, one_at, worker_in, workers_of
from support.peers.baresip import Baresip
from support.peers.peers import G711_ALAW, LASTING, Ffmpeg, Kamailio, decode_audio
from support.peers.process import PATIENCE
from support.peers.tones import from_alaw, tone, tone_fraction
from support.sip.phones import answering

from p2psip.agent import Agent
from p2psip.net.phone.settings import Account
from p2psip.rtp.payload import g711
from rtmplite.flv import file
from rtmplite.net.client.rtmp_client import RtmpClient

SECONDS = 4
PAIRS = 8  # all of them at one worker once in 16,000 times


@pytest.fixture
def pair(start) -> Gateway:
    """A gateway with two workers."""
    return start(Gateway, "--workers", "2")


def phone_of(start, gateway, **options) -> Baresip:
    """A phone that has registered."""
    return start(Baresip, "bob", registrar=gateway.sip, codecs="PCMA/8000/1", **options)


def waiting_at(start, gateway, worker, name="studio", hz=600) -> Ffmpeg:
    """ffmpeg that publishes a tone for the phone that will call it, at one worker."""
    url = gateway.url("call", name)
    return one_at(
        *(gateway, worker, "call-wait"),
        lambda: start(Ffmpeg.publish, url, hz=hz, seconds=LASTING, codecs=G711_ALAW),
    )


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.needs("baresip", "ffmpeg")
def test_a_phone_calls_a_name_whose_publisher_is_at_either_worker(start, pair, tmp_path, worker):
    """Both directions are heard; the player may be at the other worker; all of it ends."""
    source = waiting_at(start, pair, worker)
    heard = tmp_path / "heard.flv"
    player = start(Ffmpeg.play, pair.url("call", "studio"), to=heard)
    phone = phone_of(start, pair, hz=900)
    pair.wait_status({"players": 1, "registrations": 1})
    phone.dial(f"sip:studio@{pair.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    pair.wait_until(lambda: lines(pair, "call-start"), what="the call")
    assert worker_in(lines(pair, "call-start")[0]) == worker
    phone.wait_until(lambda: f"[0:00:{SECONDS:02}]" in phone.output, what="some seconds of call")
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    player.finish()
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 600) > 0.95
    assert tone_fraction(decode_audio(heard), 8000, 900) > 0.95
    pair.wait_status({"calls": 0, "media_legs": 0, "dialogs": 0})
    assert source.child.poll() is None  # a waiting publisher waits for the next call


def client_at(gateway, worker) -> RtmpClient:
    """A client of `call` that has reached one worker; it has waited for a call once."""
    for _ in range(TRIES):
        known = len(lines(gateway, "call-wait"))
        client = RtmpClient.connect(gateway.url("call"))
        stream = client.create_stream()
        stream.publish("probe")
        wait_for(lambda: len(lines(gateway, "call-wait")) > known, what="the name")  # noqa: B023
        if worker_in(lines(gateway, "call-wait")[known]) == worker:
            stream.delete()
            return client
        client.close()
    pytest.fail(f"{TRIES} clients, and none has reached worker {worker}")


def speak(stream, hz) -> None:
    """Publish a tone for ever."""
    spoken = g711.encode_alaw(map(int, 32767 * tone(hz, 1)))
    for at in count():
        start = 160 * at % len(spoken)
        stream.write(AUDIO, 20 * at, b"\x72" + spoken[start : start + 160])
        gevent.sleep(0.02)


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.needs("baresip")
def test_a_stream_at_either_worker_calls_a_registered_phone(start, pair, worker):
    """Each hears the other; the stream hangs up."""
    phone = phone_of(start, pair, hz=900)
    client = client_at(pair, worker)
    stream = client.create_stream()
    stream.publish(f"bob@{pair.sip}")
    speaking = gevent.spawn(speak, stream, 440)
    phone.wait_until(lambda: f"[0:00:{SECONDS:02}]" in phone.output, what="some seconds of call")
    assert [worker_in(line) for line in lines(pair, "call-start")] == [worker]
    speaking.kill()
    client.close()
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 440) > 0.9
    pair.wait_status({"calls": 0, "media_legs": 0, "dialogs": 0, "proxied_dialogs": 0})


def answered(phone) -> set[str]:
    """The INVITEs whose answers are in a phone's trace, however often they were sent."""
    return set(re.findall(r"SIP/2\.0 200 OK\n(?:.+\n)*?CSeq: (\d+ INVITE)", phone.output))


def second(stream) -> bytes:
    """The next second of sound."""
    heard = b""
    while len(heard) < 8000:
        message = stream.read(timeout=PATIENCE)
        assert message is not None
        heard += message.payload[1:] if message.type_id == AUDIO else b""
    return heard


@pytest.mark.needs("baresip")
def test_a_phone_holds_the_call_of_another_worker_and_comes_back(start, pair):
    """It is heard as before, and hangs up."""
    phone = phone_of(start, pair, hz=900)
    client = client_at(pair, 1)
    name = f"bob@{pair.sip}"
    stream, played = client.create_stream(), client.create_stream()
    played.play(name)
    stream.publish(name)
    phone.wait_event("CALL_ESTABLISHED")
    known = len(answered(phone))
    phone.command("hold")
    phone.wait_until(lambda: len(answered(phone)) == known + 1, what="the answer to hold")
    assert "a=recvonly" in phone.output
    phone.command("resume")
    phone.wait_until(lambda: len(answered(phone)) == known + 2, what="the answer to resume")
    while played.read(timeout=0):  # what came before
        continue
    seconds = (second(played) for _ in range(10))
    assert any(tone_fraction(from_alaw(heard), 8000, 900) > 0.9 for heard in seconds)
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    client.close()
    pair.wait_status({"calls": 0, "media_legs": 0, "dialogs": 0, "proxied_dialogs": 0})


def test_rich_clients_at_any_workers_call_each_other(pair, corpus):
    """One who hangs up is heard; identities are those of all workers."""
    data = (corpus / "flv" / "audio_speex16k.flv").read_bytes()
    tags = [tag.data for tag in file.tags(data) if len(tag.data) == 71][:20]
    heard = [b"\xb2" + tag[1:] for tag in tags]
    for number in range(PAIRS):
        alice, bob = (
            RichClient(pair.rtmp, f"{name}{number}@127.0.0.1") for name in ("alice", "carol")
        )
        alice.call("invite", f"carol{number}@127.0.0.1", "wideband")
        bob.expect("invited")
        assert alice.expect("ringing") == ("180 Ringing",)
        bob.call("accept", "wideband")
        assert alice.expect("accepted") == bob.expect("accepted")
        alice.open_streams()
        bob.open_streams()
        for sender, listener in ((alice, bob), (bob, alice)):
            done = gevent.spawn(listener.heard, len(tags))
            for at, tag in enumerate(tags):
                sender.local.write(AUDIO, 20 * at, tag)
                gevent.sleep(0.02)  # as it is spoken
            assert done.get(timeout=PATIENCE) == heard
        (alice if number % 2 else bob).call("bye")
        assert (bob if number % 2 else alice).expect("byed") == ()
        again = RichClient(pair.rtmp, f"carol{number}@127.0.0.1")
        wait_for(lambda: bob.client.closed, "the first line of this identity to be closed")  # noqa: B023
        again.close()
        alice.close()
    assert {worker_in(line) for line in lines(pair, "call-start")} == {0, 1}
    pair.wait_status({"calls": 0, "lines": 0, "media_legs": 0, "dialogs": 0})


@pytest.mark.needs("baresip", "ffmpeg")
def test_a_worker_that_dies_takes_its_own_calls_only(start, pair):
    """The other call is heard on, and hung up as ever; a new one goes to the worker's successor."""
    for worker, name in enumerate(("near", "far")):
        waiting_at(start, pair, worker, name)
    phones = [phone_of(start, pair), start(Baresip, "carol", codecs="PCMA/8000/1")]
    for phone, name in zip(phones, ("near", "far"), strict=True):
        phone.dial(f"sip:{name}@{pair.sip}")
        phone.wait_event("CALL_ESTABLISHED")
    pair.wait_status({"calls": 2, "registrations": 1})
    os.kill(workers_of(pair)[1], signal.SIGKILL)
    pair.wait_until(lambda: len(workers_of(pair)) == 2, what="another one")
    pair.wait_status({"calls": 1, "registrations": 1, "workers_silent": 0})
    waiting_at(start, pair, 1, "again")
    third = start(Baresip, "dave", codecs="PCMA/8000/1")
    third.dial(f"sip:again@{pair.sip}")
    third.wait_event("CALL_ESTABLISHED")
    pair.wait_status({"calls": 2})
    phones[0].hangup()
    phones[0].wait_event("CALL_CLOSED")
    pair.wait_status({"calls": 1})


@pytest.mark.needs("baresip", "ffmpeg")
def test_the_call_of_another_worker_outlives_the_first_one(start, pair):
    """Its phone is heard on, and hangs up by the successor, which knows the way."""
    waiting_at(start, pair, 1)
    phone = start(Baresip, "carol", codecs="PCMA/8000/1", hz=900)
    phone.dial(f"sip:studio@{pair.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    os.kill(workers_of(pair)[0], signal.SIGKILL)
    pair.wait_until(lambda: lines(pair, "worker-died"), what="its death")
    pair.wait_until(lambda: len(workers_of(pair)) == 2, what="another one")
    pair.wait_status({"calls": 1, "workers_silent": 0})
    phone.wait_until(lambda: f"[0:00:{SECONDS:02}]" in phone.output, what="some seconds of call")
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 600) > 0.9
    pair.wait_status({"calls": 0, "media_legs": 0, "dialogs": 0})
    [ended] = lines(pair, "call-end")
    assert worker_in(ended) == 1 and "reason=BYE" in ended


def with_trunk(start, tmp_path, more, *, at, server) -> Gateway:
    """A gateway with two workers, which registers a trunk."""
    config = tmp_path / "siprtmp.toml"
    trunk = f'name = "berlin"\naddress = "sip:{at}"\nserver = "sip:{server}"\n'
    config.write_text(f'[[trunk]]\n{trunk}numbers = ["+49*"]\npassword = "zanzibar"\n{more}')
    config.chmod(0o600)
    words = "--config", str(config), "--workers", "2", "--sip-t1", "100", "--domain", "gw.invalid"
    return start(Gateway, *words)


@pytest.mark.needs("kamailio")
def test_a_trunk_that_one_worker_registers_serves_the_calls_of_another(start, tmp_path):
    """With its password, and by its server."""
    provider = start(Kamailio, users={"us": "zanzibar", "+4930123": "zanzibar"})
    gateway = with_trunk(start, tmp_path, "", at="us@127.0.0.1", server=provider.address)
    gateway.wait_status({"trunks": 1, "trunks_registered": 1})
    at = {"registrar": provider.address, "password": "zanzibar"}
    with Agent(Account("+4930123", "127.0.0.1", **at)) as phone:
        calls = answering(phone)
        phone.register(timeout=20)
        client = client_at(gateway, 1)
        stream = client.create_stream()
        stream.publish("tel:+49-30-123")
        speaking = gevent.spawn(speak, stream, 440)
        wait_for(lambda: calls, "the call")
        wait_for(lambda: calls[0].statistics.packets_received > 50, "its sound")
        speaking.kill()
        client.close()
        wait_for(lambda: calls[0].is_over, "the end of the call")
    assert [worker_in(line) for line in lines(gateway, "call-start")] == [1]
    gateway.wait_status({"calls": 0, "trunks": 1, "trunks_registered": 1})


def test_a_provider_calls_a_name_at_another_worker(start, tmp_path):
    """By its own domain, from where the trunk is registered, and for a route's stream."""
    provider = Callee(start(Gateway))
    route = '[[route]]\nmatch = "us@gw.invalid"\nstream = "show"\n'
    at = "us@provider.example"
    gateway = with_trunk(start, tmp_path, route, at=at, server=f"127.0.0.1:{provider.port}")
    provider.gateway = Callee(gateway).gateway
    provider.settle(provider.heard())
    gateway.wait_status({"trunks_registered": 1})
    client = client_at(gateway, 1)
    client.create_stream().publish("show")
    uri, body = f"sip:{at}", sdp()
    assert provider.ask("INVITE", uri, body=body, Content_Type="application/sdp") == 200
    provider.drain()
    assert [worker_in(line) for line in lines(gateway, "call-start")] == [1]
    client.close()


@pytest.mark.needs("baresip", "ffmpeg")
def test_no_counter_falls_when_a_worker_dies(start, pair):
    """Its calls that have ended are counted while it is away, and by its successor."""
    waiting_at(start, pair, 1)
    phone = start(Baresip, "carol", codecs="PCMA/8000/1")
    phone.dial(f"sip:studio@{pair.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    phone.hangup()
    ended = 'siprtmp_calls_ended_total{direction="in",outcome="answered"} 1\n'

    def page() -> str:
        with urllib.request.urlopen(f"http://{pair.listeners['http']}/metrics") as answer:
            text: str = answer.read().decode()
        return text

    pair.wait_until(lambda: ended in page(), what="the end of the call")
    os.kill(workers_of(pair)[1], signal.SIGKILL)
    pair.wait_until(lambda: lines(pair, "worker-died"), what="its death")
    seen = []
    while not seen or "\nsiprtmp_workers_silent 0\n" not in seen[-1]:
        with suppress(OSError):  # what the one that died had accepted
            seen.append(page())
    assert [text for text in seen if ended not in text] == []
