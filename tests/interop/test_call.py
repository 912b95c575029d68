"""A stream becomes a phone call and a phone call a stream, with real tools at both ends."""

import hashlib

from interop.baresip import Baresip
from interop.peers import Ffmpeg, RtmpDump, decode_audio
from interop.tones import tone_fraction, trimmed

PASSWORD = "zanzibar"
SECONDS = 8


def users_file(tmp_path, *names, realm="127.0.0.1"):
    lines = []
    for name in names:
        text = f"{name}:{realm}:{PASSWORD}".encode()
        lines += [f"{name}:{realm}:{hashlib.sha256(text).hexdigest()}"]
        lines += [f"{name}:{realm}:{hashlib.md5(text).hexdigest()}"]
    path = tmp_path / "users"
    path.write_text("\n".join(lines))
    return str(path)


def test_ffmpeg_calls_a_registered_phone(start, gateway, tmp_path):
    server = gateway("--users", users_file(tmp_path, "bob"))
    idle = server.status()
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900)
    name = f"bob@{server.sip}"
    player = start(RtmpDump, server.url("call", name))
    publisher = start(Ffmpeg.publish, server.url("call", name), hz=440, seconds=SECONDS)
    phone.wait_event("CALL_ESTABLISHED")
    publisher.finish(timeout=SECONDS + 20)
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 440) > 0.95
    assert len(trimmed(samples, rate)) / rate > SECONDS - 0.5
    player.finish()
    assert tone_fraction(decode_audio(player.file), 8000, 900) > 0.95
    server.wait_status({"calls": 0, "media_legs": 0, "names": 0, "streams": 0})
