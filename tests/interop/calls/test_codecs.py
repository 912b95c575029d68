"""A stream of AAC and a phone of another codec hear each other."""

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.peers import Ffmpeg, decode_audio
from support.peers.tones import tone_fraction, trimmed

AAC = ("-c:a", "aac", "-ar", "44100", "-ac", "2", "-f", "flv")


def publish(folder, url):
    """ffmpeg as OBS sends its sound, in real time."""
    source = "sine=frequency=440:sample_rate=44100"
    return Ffmpeg(folder, "-re", "-f", "lavfi", "-i", source, "-t", "6", *AAC, url)


@pytest.mark.needs("baresip", "ffmpeg")
@pytest.mark.parametrize(("codec", "rate"), [("opus/48000/2", 48000), ("G722/16000/1", 16000)])
def test_a_stream_and_a_phone_hear_each_other(start, gateway, tmp_path, codec, rate):
    """Covers RFC 7587 §4 and RFC 3551 §4.5.2, by another program's codecs."""
    pytest.importorskip("av")
    server = gateway("--users", users_file(tmp_path, "bob"), "--sip-t1", "200")
    options = {"registrar": server.sip, "password": PASSWORD, "codecs": codec, "rate": rate}
    phone = start(Baresip, "bob", hz=900, **options)
    url, film = server.url("call", f"bob@{server.sip}"), tmp_path / "film.flv"
    player = start(Ffmpeg.play, url, to=film)
    publisher = start(publish, url)
    phone.wait_event("CALL_ESTABLISHED")
    assert publisher.finish() == 0
    phone.wait_event("CALL_CLOSED")
    player.finish()
    samples, heard_rate = phone.heard()
    assert tone_fraction(trimmed(samples, heard_rate), heard_rate, 440) > 0.95
    assert tone_fraction(trimmed(decode_audio(film), 8000), 8000, 900) > 0.95
