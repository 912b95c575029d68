"""Pictures between streams and phones: each says its own number, at both ends."""

import subprocess
from itertools import pairwise

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers import numbered_frames
from support.peers.baresip import Baresip
from support.peers.obs_peer import FPS, Obs, Xvfb
from support.peers.peers import Ffmpeg, decode_audio
from support.peers.process import require
from support.peers.tones import tone_fraction

SECONDS = 8
OBS = ("-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "30", "-pix_fmt", "yuv420p")
AAC = ("-c:a", "aac", "-ar", "44100", "-ac", "2")


def publish(folder, url, *, seconds=SECONDS, video=OBS, audio=AAC):
    """ffmpeg as OBS sends: H.264 with B-frames, AAC at 44.1 kHz, in real time."""
    words = ["-re", *numbered_frames.source(), "-re", "-f", "lavfi"]
    words += ["-i", "sine=frequency=440:sample_rate=44100", "-t", str(seconds)]
    return Ffmpeg(folder, *words, *video, *audio, "-f", "flv", url)


@pytest.mark.needs("baresip", "ffmpeg")
def test_a_stream_is_seen_and_heard_by_a_phone_and_comes_back(start, gateway, tmp_path):
    """A publisher like OBS calls a video phone that mirrors what it sees."""
    server = gateway("--users", users_file(tmp_path, "bob"), "--sip-t1", "200")
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900, mirror=True)
    url, film = server.url("call", f"bob@{server.sip}"), tmp_path / "film.flv"
    player = start(Ffmpeg.play, url, to=film)
    publisher = start(publish, url)
    phone.wait_event("CALL_ESTABLISHED")
    assert publisher.finish() == 0
    phone.wait_event("CALL_CLOSED")
    player.finish()
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 440) > 0.95  # AAC made into G.711
    seen = numbered_frames.numbers(film)
    assert len(set(seen)) > 0.8 * 15 * (SECONDS - 2), seen
    in_order = sum(after > before for before, after in pairwise(seen))
    assert in_order > 0.99 * (len(seen) - 1) - 1, seen
    assert tone_fraction(decode_audio(film), 8000, 900) > 0.95


@pytest.mark.needs("baresip", "ffmpeg")
def test_a_phone_that_has_vp8_alone_sees_a_stream_and_is_seen(start, gateway, tmp_path):
    """With --transcode-video: H.264 with B-frames becomes VP8, and the phone's VP8 H.264."""
    users = users_file(tmp_path, "bob")
    server = gateway("--users", users, "--sip-t1", "200", "--transcode-video", "640x360,500")
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, mirror=True, video="VP8")
    url, film = server.url("call", f"bob@{server.sip}"), tmp_path / "film.flv"
    player = start(Ffmpeg.play, url, to=film)
    large = ("-vf", "scale=1280:720", *OBS[:4], "-bf", "2", "-g", "30", "-pix_fmt", "yuv420p")
    publisher = start(publish, url, seconds=4, video=large)
    phone.wait_event("CALL_ESTABLISHED")
    assert publisher.finish() == 0
    phone.wait_event("CALL_CLOSED")
    player.finish()
    seen = numbered_frames.numbers(film)
    # Where this machine is busy, pictures are left out on either way.
    assert len(set(seen)) > 5 and seen == sorted(seen), seen


def colours(path):
    """The mean red, green and blue of each picture of a file."""
    words = ["-nostdin", "-loglevel", "error", "-i", path, "-map", "0:v", "-vsync", "passthrough"]
    words += ["-vf", "scale=1:1", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"]
    done = subprocess.run([require("ffmpeg", "ffmpeg"), *words], capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return [tuple(done.stdout[at : at + 3]) for at in range(0, len(done.stdout), 3)]


@pytest.mark.needs("baresip", "ffmpeg", "obs", "Xvfb")
def test_obs_calls_a_phone(start, gateway, tmp_path):
    """Its server is the gateway and its key the phone, which sees red and sends that back."""
    server = gateway("--users", users_file(tmp_path, "bob"), "--sip-t1", "200")
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900, mirror=True)
    name, film = f"bob@{server.sip}", tmp_path / "film.flv"
    player = start(Ffmpeg.play, server.url("call", name), to=film, seconds=3)
    screen = start(Xvfb)
    obs = start(Obs, screen.display, server.url("call", "").rstrip("/"), name)
    phone.wait_event("CALL_ESTABLISHED")
    player.finish()
    assert obs.leave() == 0
    phone.wait_event("CALL_CLOSED")
    seen = colours(film)
    assert len(seen) > FPS
    assert all(red > 200 and green < 50 and blue < 50 for red, green, blue in seen), seen
    samples, rate = phone.heard()
    assert len(samples) > 2 * rate and abs(samples).max() < 0.01  # OBS has no microphone here
    assert tone_fraction(decode_audio(film), 8000, 900) > 0.95
