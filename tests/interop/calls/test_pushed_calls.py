"""A call that is pushed to two servers, of which one is gone for a while."""

import re
import signal

import pytest
from interop.streams.test_relay import is_tail
from support.certificates import certificate
from support.peers import numbered_frames
from support.peers.baresip import Baresip
from support.peers.peers import LASTING, Ffmpeg, NginxRtmp
from support.peers.process import free_port
from support.peers.rtmp_servers import Player, Server, media, without_end

ATTEMPTS = 4  # that fail: ten seconds, with a longer wait after each
PICTURES = 20


def sees(player, count):
    """Wait until our player has so many more pictures."""
    have = player.output.count("video") + count
    player.wait_until(lambda: player.output.count("video") >= have, what=f"{count} pictures")


@pytest.mark.needs("baresip", "ffmpeg", "nginx")
def test_a_call_is_pushed_to_two_servers_and_again_to_one_that_comes_back(start, gateway, tmp_path):
    """Covers RTMP 1.0 §7.2.2.6 and FLV 10.1 §E.4.3.1: first headers and a key frame."""
    made, port, films = certificate(tmp_path), free_port(), tmp_path / "films"
    words = ("--rtmps", f"127.0.0.1:{port}", "--tls-cert", made.file, "--tls-key", made.key)
    nginx, far = start(NginxRtmp), start(Server, *words)
    server = gateway(
        *("--sip-t1", "200", "--ca", str(made.file)),
        *("--push", f"call/*={nginx.url('{name}')}"),
        *("--push", f"call/*=rtmps://127.0.0.1:{port}/live"),
    )
    here = start(Player, server.url("call", "studio"))
    watched = {peer: tmp_path / f"{number}.flv" for number, peer in enumerate((nginx, far))}
    watching = [start(Ffmpeg.play, peer.url("studio"), to=to) for peer, to in watched.items()]
    start(Ffmpeg.publish, server.url("call", "studio"), seconds=LASTING)
    film = numbered_frames.film(tmp_path / "film.mp4", 1)
    phone = start(Baresip, "bob", hz=900, film=film)
    server.wait_status({"names": 1})
    phone.dial(f"sip:studio@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    sees(here, 2 * PICTURES)

    far.child.send_signal(signal.SIGKILL)
    failed = re.compile(r"relay url=rtmps://\S+ state=waiting")
    server.wait_until(
        lambda: len(failed.findall(server.output)) >= ATTEMPTS, what="failures", timeout=40
    )
    again = start(Server, *words, "--record", films)
    before = server.output.count("state=running")
    server.wait_until(
        lambda: server.output.count("state=running") > before, what="the push", timeout=40
    )
    late = start(Player, again.url("studio"))
    sees(late, PICTURES)
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    assert late.finish() == 0
    server.wait_status({"calls": 0})
    here.stop()
    watching[0].stop()

    whole, [stored] = without_end(media(here.file)), (films / "live").iterdir()
    copy = without_end(media(stored))
    assert is_tail([(kind, 0, body) for kind, _, body in copy],
                   [(kind, 0, body) for kind, _, body in whole])  # fmt: skip
    for path in watched.values():
        assert len(numbered_frames.numbers(path)) > PICTURES / 2, path
