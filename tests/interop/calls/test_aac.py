"""AAC between two gateways, as it is: by RTP, and no sound is decoded on the way."""

import pytest
from support.gateway.gateway import Gateway
from support.gateway.richclient import RichClient
from support.peers.peers import Ffmpeg, decode_audio
from support.peers.tones import tone_fraction

from rtmplite.flv import file
from rtmplite.flv.tag import TagType

SECONDS = 4
AUDIO = 8
AAC = ("-c:a", "aac", "-ar", "44100", "-ac", "2")


@pytest.mark.needs("ffmpeg")
@pytest.mark.parametrize("rate", ["44100", "48000"])
def test_a_tone_of_one_stream_is_heard_in_another(start, tmp_path, rate):
    """Covers RFC 3640 §3.3.6: ffmpeg publishes at one gateway and plays at the other."""
    near, far = start(Gateway), start(Gateway)
    heard = tmp_path / "heard.flv"
    player = start(Ffmpeg.play, far.url("call", "studio"), to=heard)
    far.wait_status({"players": 1})
    url = near.url("call", f"studio@{far.sip}") + "?codecs=aac"
    codecs = (*AAC[:2], "-ar", rate, "-ac", "2")
    publisher = start(Ffmpeg.publish, url, hz=620, seconds=SECONDS, codecs=codecs)
    assert publisher.finish() == 0
    player.finish()
    for server in (near, far):
        assert "codec=aac" in server.output and "transcoding" not in server.output
    tags = file.read_flv(heard.read_bytes())[1]
    sounds = [tag.data for tag in tags if tag.tag_type == TagType.AUDIO]
    assert len(sounds) > 0.8 * SECONDS * int(rate) / 1024
    samples = decode_audio(heard)
    assert len(samples) > 8000 * (SECONDS - 1) and tone_fraction(samples, 8000, 620) > 0.95


@pytest.mark.needs("ffmpeg")
def test_two_clients_that_name_it_hear_each_other(start):
    """Own design: by names of the client's API, and `accepted` says aac."""
    near, far = start(Gateway), start(Gateway)
    bob = RichClient(far.rtmp, "bob@127.0.0.1")
    alice = RichClient(near.rtmp, "alice@127.0.0.1")
    alice.call("invite", f"sip:bob@{far.sip}", "aac")
    bob.expect("invited")
    bob.call("accept", "aac")
    alice.expect("ringing")
    assert alice.expect("accepted") == ("aac", None) == bob.expect("accepted")
    alice.open_streams()
    bob.open_streams()
    header, frames = b"\xaf\x00\x11\x90", [b"\xaf\x01" + bytes([n]) * 3000 for n in range(20)]
    alice.local.write(AUDIO, 0, header)
    for number, frame in enumerate(frames):
        alice.local.write(AUDIO, number * 21, frame)
    assert bob.heard(8) == [header, *frames[:7]]  # each in three packets
    alice.call("bye")
    bob.expect("byed")
    alice.close()
    bob.close()
