"""Both sides of a real call as one stream, recorded and pushed as any other, and each alone."""

import subprocess

import pytest
from interop.calls.test_video import publish
from interop.streams.test_record import probe
from support.gateway.accounts import PASSWORD, users_file
from support.peers import numbered_frames
from support.peers.baresip import Baresip
from support.peers.peers import LASTING, Ffmpeg, decode_audio
from support.peers.process import require
from support.peers.rtmp_servers import Player, Server
from support.peers.tones import levels

SAID, HEARD = 600, 1300
FRAMES = 140  # of AAC: three seconds
PICTURES, OFFSET = 60, 4096  # of the mix, and the first number of the phone's
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
        *("--mix-calls", "--record", str(here)),
        *("--push", f"mixed/*={far.url('{name}')}"),
    )
    publisher = start(Ffmpeg.publish, server.url("call", "studio"), hz=SAID, seconds=LASTING)
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
    assert tones(here / "said" / "studio.flv") == {SAID}


def streams(path):
    """The codecs of a file, and its length."""
    found = probe(path, events=True)
    codecs = {each["codec_name"] for each in found["streams"] if each["codec_type"] != "data"}
    return codecs - {"text"}, float(found["format"]["duration"])  # that is its metadata anew


def halves(path):
    """The numbers of all pictures of both, in the left half and in the right one."""
    entries = ["-v", "error", "-select_streams", "v", "-show_entries", "frame=width", "-of", "csv"]
    program = require("ffprobe", "ffmpeg")
    done = subprocess.run([program, *entries, path], capture_output=True, text=True, timeout=100)
    assert "frame,1280" in done.stdout
    alone = done.stdout.split().count("frame,320")  # one side before the other had any
    shape = "scale=1280:360,crop=480:360"
    both = [numbered_frames.numbers(path, f"{shape}:{left}:0,") for left in (80, 720)]
    return [each[alone:] for each in both]


@pytest.mark.needs("baresip", "ffmpeg")
def test_both_pictures_are_seen_side_by_side_and_each_side_is_recorded(start, gateway, tmp_path):
    """Covers FLV 10.1 §E.4.3.1: the publisher's numbers on the left, the phone's on the right."""
    pytest.importorskip("av")
    here, users = tmp_path / "here", users_file(tmp_path, "bob")
    server = gateway(
        *("--mix-calls", "--record", str(here), "--transcode-video", "640x360"),
        *("--users", users, "--sip-t1", "200"),
    )
    film = numbered_frames.film(tmp_path / "film.mp4", OFFSET, 20)
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=HEARD, film=film)
    name = f"bob@{server.sip}"
    player = start(Player, server.url("mixed", name))
    publisher = start(publish, server.url("call", name), seconds=LASTING)
    phone.wait_event("CALL_ESTABLISHED")
    player.wait_until(lambda: player.output.count("video") > PICTURES, what="pictures")
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    server.wait_status({"calls": 0, "recordings": 0})
    publisher.stop()
    assert player.finish() == 0

    [mixed] = (here / "mixed").iterdir()
    for stored in (player.file, mixed):
        left, right = halves(stored)
        assert left == sorted(left) and left[-1] < OFFSET, left
        assert right == sorted(right) and right[0] >= OFFSET, right
        assert len(set(left)) > 10 and len(set(right)) > 10, (left, right)
    sides = {path.parent.name: streams(path) for path in here.glob("*/*.flv")}
    assert {name: codecs for name, (codecs, _) in sides.items()} == {
        "mixed": {"h264", "aac"},
        "call": {"h264", "pcm_mulaw"},
        "said": {"h264", "aac"},
    }
    assert min(seconds for _, seconds in sides.values()) > 2.0, sides
