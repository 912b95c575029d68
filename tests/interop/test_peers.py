"""The peers themselves, each against another real one: what they find later is then the gateway's.

Also the `Gateway` class against a stand-in that prints a ready line and serves a /status.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.gateway.gateway import Gateway
from support.peers import tones
from support.peers.baresip import Baresip
from support.peers.nursery import Nursling, Overheard
from support.peers.peers import (
    AAC_H264,
    G711_ULAW,
    Ffmpeg,
    Kamailio,
    NginxRtmp,
    RtmpDump,
    Sipp,
    decode_audio,
    frame_hashes,
)
from support.peers.process import Growing, require, wait_until

pytestmark = pytest.mark.interop


def test_two_phones_hear_each_other_through_a_digest_proxy(start):
    proxy = start(Kamailio, users={"bob": "secret", "alice": "other"})
    bob = start(Baresip, "bob", registrar=proxy.address, password="secret", hz=800, name="bob")
    alice = start(Baresip, "alice", registrar=proxy.address, password="other", hz=440, name="alice")
    alice.dial("sip:bob@127.0.0.1")
    bob.wait_event("CALL_ESTABLISHED")
    begin = time.monotonic()
    alice.wait_until(lambda: time.monotonic() - begin > 2.5, what="2.5 s of talk")
    alice.hangup()
    for phone, hz in ((bob, 440), (alice, 800)):
        phone.wait_event("CALL_CLOSED")
        heard, rate = phone.heard()
        call = tones.trimmed(heard, rate)
        assert len(call) > 1.5 * rate
        assert tones.tone_fraction(call, rate, hz) > 0.95


def test_a_wrong_password_is_refused(start, tmp_path):
    proxy = start(Kamailio, users={"bob": "secret"})
    bob = Baresip(tmp_path / "bob", "bob", registrar=proxy.address, password="wrong")
    with pytest.raises(pytest.fail.Exception, match="ready"):
        bob.start(timeout=1.0)
    assert bob.stop() == 0 and "401 Unauthorized" in bob.output


def test_a_manual_phone_rings_until_told(start):
    bob = start(Baresip, "bob", answer="manual", name="bob")
    alice = start(Baresip, "alice", name="alice")
    alice.dial(bob.uri)
    bob.wait_event("CALL_INCOMING")
    alice.wait_event("CALL_RINGING")
    bob.accept()
    alice.wait_event("CALL_ESTABLISHED")
    bob.hangup()
    alice.wait_event("CALL_CLOSED")
    alice.dial(bob.uri)
    bob.wait_event("CALL_INCOMING")
    bob.hangup()
    assert "486" in alice.wait_event("CALL_CLOSED")["param"]


@pytest.mark.parametrize("codec", ["speex/16000", "speex/8000", "PCMU/8000"])
def test_sipp_calls_sipp(start, codec):
    uas = start(Sipp.uas, codec=codec)
    uac = start(
        Sipp.uac, f"127.0.0.1:{uas.port}", calls=50, at_once=50, per_second=100, codec=codec
    )
    counted = uac.expect_success()
    assert (counted.created, counted.successful, counted.failed) == (50, 50, 0)
    assert counted.retransmissions == 0
    wait_until(lambda: uas.calls().successful == 50, what="the answering side to count 50 calls")


def test_sipp_counts_calls_that_fail(start):
    uac = start(Sipp.uac, "127.0.0.1:9", calls=2, at_once=2, timeout=1)
    assert uac.finish() != 0


def test_ffmpeg_to_nginx_to_rtmpdump(start):
    nginx = start(NginxRtmp)
    url = nginx.url("tone")
    player = start(RtmpDump, url)
    publisher = start(Ffmpeg.publish, url, hz=600, seconds=2, codecs=G711_ULAW)
    player.finish()
    assert tones.tone_fraction(decode_audio(player.file), 8000, 600) > 0.95
    assert publisher.finish() == 0


def test_ffmpeg_plays_the_pictures_that_ffmpeg_publishes(start, tmp_path):
    nginx = start(NginxRtmp)
    url, file = nginx.url("show"), tmp_path / "show.flv"
    player = start(Ffmpeg.play, url, to=file, seconds=3)  # the first frames may lack
    start(Ffmpeg.publish, url, hz=600, seconds=4, codecs=AAC_H264, video=True)
    player.finish()
    assert len(set(frame_hashes(file))) >= 12
    assert tones.tone_fraction(decode_audio(file), 8000, 600) > 0.9


STAND_IN = """
import http.server, json, os, signal, sys
class Status(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{"calls": 0}')
server = http.server.HTTPServer(("127.0.0.1", 0), Status)
signal.signal(signal.SIGTERM, lambda *_: os._exit(int(os.environ.get("STAND_IN_EXIT", "0"))))
print(f"ready rtmp=127.0.0.1:1 sip=127.0.0.1:2 http=127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


def test_gateway_reads_the_ready_line_and_the_status(start):
    gateway = start(Gateway, program=(sys.executable, "-c", STAND_IN))
    assert (gateway.rtmp, gateway.sip) == ("127.0.0.1:1", "127.0.0.1:2")
    assert gateway.url("call", "bob@x") == "rtmp://127.0.0.1:1/call/bob@x"
    gateway.wait_status({"calls": 0})
    with pytest.raises(pytest.fail.Exception, match="'calls': \\(0, 1\\)"):
        gateway.wait_status({"calls": 1}, timeout=0.1)


def test_gateway_that_ends_badly_fails_the_test(tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN_EXIT", "3")
    gateway = Gateway(tmp_path / "gateway", program=(sys.executable, "-c", STAND_IN))
    with pytest.raises(AssertionError, match="ended with 3"), gateway:
        assert gateway.status() == {"calls": 0}


def test_our_own_programs_are_overheard_to_their_last_word():
    """What they print of errors comes apart; asked again, they have said nothing more."""
    wrong = Overheard([sys.executable, "-m", "siprtmp", "--nonsense"])
    out, err = wrong.communicate(timeout=60)
    assert (out, wrong.returncode) == ("", 2) and err.startswith("siprtmp: there is no option")
    assert wrong.communicate() == ("", "")
    told = Overheard([sys.executable, "-m", "p2psip", "call", "--help"])
    assert told.stdout.readline().startswith("usage: python -m p2psip call")
    assert "--play" in told.communicate(timeout=60)[0] and told.returncode == 0


def test_our_own_programs_are_forked_and_still_themselves(start, tmp_path):
    """Their folder, arguments, output, signals and exit code are those of a start."""
    gateway = start(Gateway)
    assert isinstance(gateway.child, Nursling)
    there = Path("/proc", str(gateway.child.pid))
    assert (there / "cwd").readlink() == gateway.folder
    assert os.getsid(gateway.child.pid) == gateway.child.pid
    with pytest.raises(subprocess.TimeoutExpired):
        gateway.child.wait(0.01)
    wrong = Gateway(tmp_path / "wrong", "--nonsense")
    wrong.launch(subprocess.DEVNULL)
    assert wrong.finish() == 2 and wrong.output.startswith("siprtmp: there is no option --nonsense")
    wrong.child.kill()  # which is too late for it, and nobody else's
    killed = Gateway(tmp_path / "killed").start()
    assert killed.stop() == 0 and gateway.child.poll() is None


def test_a_missing_peer_skips_but_fails_in_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install no-such-package"):
        require("no-such-binary", "no-such-package")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-package"):
        require("no-such-binary", "no-such-package")


def test_what_a_program_writes_is_read_once_and_whole(tmp_path):
    """In whatever pieces it comes, and after its file was emptied."""
    file = tmp_path / "log"
    growing = Growing(file)
    assert growing.text == ""
    written, said = b"", "a\r\nsch\xf6n\n".encode()
    for octet in said:
        written += bytes([octet])
        file.write_bytes(written)
        assert "a\nschön\n".startswith(growing.text)
    assert growing.text == file.read_text() == "a\nschön\n"
    file.write_text("b")
    assert growing.text == "b"
    file.write_bytes(b"\xff")
    os.truncate(file, 0)
    assert growing.text == ""
