"""Both sides of a real call as one stream, recorded and pushed as any other."""

import pytest
from support.peers.baresip import Baresip
from support.peers.peers import Ffmpeg, decode_audio
from support.peers.rtmp_servers import Player, Server
from support.peers.tones import levels

SAID, HEARD = 600, 1300
FRAMES = 140  # of AAC: three seconds
FAINT = 25.0  # dB below the loudest tone


def tones(path):
    """The tones that are nearly the loudest."""
    sound = decode_audio(path, 16_000)
    found = levels(sound, 16_000, (SAID, HEARD))
    return {hz for hz in found if found[hz] > max(found.values()) - FAINT}


@pytest.mark.needs("baresip", "ffmpeg")
def test_both_sides_are_recorded_and_pushed(start, gateway, tmp_path):
    """Covers FLV 10.1 §E.4.2.1 and RTMP 1.0 §7.2.2.6."""
    pytest.importorskip("av")
    here, far = tmp_path / "here", start(Server)
    player = start(Player, far.url("studio"))
    far.joined(1)
    server = gateway(
        *("--mix-calls", "--record", str(here), "--sip-t1", "20"),
        *("--push", f"mixed/*={far.url('{name}')}"),
    )
    publisher = start(Ffmpeg.publish, server.url("call", "studio"), hz=SAID, seconds=60)
    phone = start(Baresip, "bob", hz=HEARD)
    server.wait_status({"names": 1})
    phone.dial(f"sip:studio@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    player.wait_until(lambda: player.output.count("audio") > FRAMES, what="some seconds of call")
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    server.wait_status({"calls": 0, "recordings": 0})
    assert player.finish() == 0
    publisher.stop()

    for stored in (here / "mixed" / "studio.flv", player.file):
        assert tones(stored) == {SAID, HEARD}, stored
    assert tones(here / "call" / "studio.flv") == {HEARD}
