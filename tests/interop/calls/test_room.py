"""Real phones and streams in one room: each hears all the others, and not itself."""

import pytest
from support.peers.baresip import Baresip
from support.peers.peers import LASTING, Ffmpeg, decode_audio
from support.peers.tones import clearest, trimmed

SECONDS = 5
PHONES = {"ann": 500, "bob": 800, "eve": 1300}
STREAM = 2100
TONES = (*PHONES.values(), STREAM)
EIGHT = (430, 610, 790, 1030, 1270, 1510, 1850, 2270)  # no two of them make a third
PRESENT = 20.0  # dB over what no tone accounts for


@pytest.mark.needs("baresip", "ffmpeg")
def test_phones_and_streams_hear_each_other(start, gateway, tmp_path):
    """Covers RFC 3261 §13.3.1.4 and RTMP 1.0 §7.2.2.6."""
    server = gateway("--room", "team", "--sip-t1", "50")
    idle = server.status()
    url = server.url("room", "team")
    phones = {name: start(Baresip, name, hz=hz) for name, hz in PHONES.items()}
    publisher = start(Ffmpeg.publish, url, hz=STREAM, seconds=LASTING)
    for phone in phones.values():
        phone.dial(f"sip:team@{server.sip}")
        phone.wait_event("CALL_ESTABLISHED")
    server.wait_status({"room_members": 4, "calls": 3})
    heard = tmp_path / "heard.flv"
    player = start(Ffmpeg.play, url, to=heard, seconds=SECONDS)
    player.finish()
    for phone in phones.values():
        phone.hangup()
        phone.wait_event("CALL_CLOSED")
    publisher.stop()
    server.wait_status(idle | {"sip_repeated": server.status()["sip_repeated"]})

    sounds = {name: phone.heard()[0] for name, phone in phones.items()}
    sounds["player"] = decode_audio(heard)
    for name, samples in sounds.items():
        others = {hz for hz in TONES if hz != PHONES.get(name)}
        at = clearest(trimmed(samples, 8000), 8000, TONES, others)
        assert {hz for hz in at if at[hz] > PRESENT} >= others, (name, at)
        assert name == "player" or at[PHONES[name]] < at[STREAM] - PRESENT, (name, at)
    assert server.output.count("room-enter") == 4  # three phones and the publisher


@pytest.mark.needs("baresip", "ffmpeg")
def test_eight_phones_hear_the_seven_others_and_not_themselves(start, gateway, tmp_path):
    """Own design: each has a mix of its own, as all talk at the same time."""
    server = gateway("--room", "team")
    phones = {hz: start(Baresip, f"phone{hz}", hz=hz, level=1 / len(EIGHT)) for hz in EIGHT}
    for phone in phones.values():
        phone.dial(f"sip:team@{server.sip}")
        phone.wait_event("CALL_ESTABLISHED")
    server.wait_status({"room_members": len(EIGHT)})
    heard = tmp_path / "heard.flv"
    player = start(Ffmpeg.play, server.url("room", "team"), to=heard, seconds=SECONDS)
    player.finish(timeout=SECONDS + 60)
    for phone in phones.values():
        phone.hangup()
        phone.wait_event("CALL_CLOSED")
    server.wait_status({"room_members": 0, "calls": 0})

    for own, phone in phones.items():
        samples, rate = phone.heard()
        others = [hz for hz in EIGHT if hz != own]
        at = clearest(trimmed(samples, rate), rate, EIGHT, others)
        least = min(at[hz] for hz in others)
        assert least > PRESENT and at[own] < least - PRESENT, (own, at)
    together = clearest(decode_audio(heard), 8000, EIGHT, EIGHT)
    assert min(together.values()) > PRESENT, together
