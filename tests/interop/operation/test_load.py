"""`rtclab load` against servers of others and ours: what it counts, and the reasons it gives."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from string import Template

import pytest
from support.certificates import Certificate, certificate
from support.peers.peers import Kamailio, NginxRtmp, Sipp
from support.peers.process import Process, require
from support.peers.rtmp_servers import Server
from support.peers.webrtc_peers import WEBRTC, WebRtcServer, endpoint

from rtclab.load.figures.film import FPS, MadeFilm, Recording
from rtmplite.flv.file import write_flv
from rtmplite.flv.tag import Tag

# The machine may be busy.
PATIENT = ["--max-own-delay", "1e6", "--max-own-cpu", "1e6", "--max-delay", "any"]


class Load(Process):
    """One run, which ends by `end` or by its own course."""

    def __init__(self, folder: Path, url: str, *words: str | Path) -> None:
        """The machine that tests share is nobody's limit."""
        self.report = folder / "report.json"
        options = ["--summary", "0.5", "--interval", "0.01", "--json", self.report, *PATIENT]
        program = [sys.executable, "-u", "-m", "rtclab", "load"]
        super().__init__(folder, [*program, url, *options, *words])

    def shows(self, pattern: str) -> None:
        """Wait until a summary has this."""
        self.wait_until(lambda: re.search(pattern, self.output), what=f"{pattern} in a summary")

    def figures(self) -> dict:
        """What it has reported, once it has ended."""
        self.finish()
        return json.loads(self.report.read_text())

    def end(self) -> dict:
        """Stop it as Ctrl-C does."""
        self.child.send_signal(signal.SIGINT)
        return self.figures()


class SecureFront(NginxRtmp):
    """nginx as the proxy with TLS before the HTTP of a gateway."""

    config = Template("""\
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr notice;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxied;
    server {
        listen 127.0.0.1:$port ssl;
        ssl_certificate $certificate;
        ssl_certificate_key $key;
        location / { proxy_pass http://$behind; }
    }
}
""")

    def __init__(self, folder: Path, behind: str, made: Certificate) -> None:
        """`behind` is the host and the port of the gateway."""
        values = {"behind": behind, "certificate": made.file, "key": made.key}
        self.config = Template(self.config.safe_substitute(values))
        super().__init__(folder)

    def endpoint(self, kind: str, name: str) -> str:
        """Where a load publishes or plays a stream."""
        return f"{kind}s://127.0.0.1:{self.port}/live/{name}/{kind}"


class SmallNginx(NginxRtmp):
    """It may have few connections, its listener and one of its own included."""

    config = Template(
        NginxRtmp.config.template.replace("worker_connections 4096", "worker_connections 16")
    )


def heard(found, count):
    """Assert that all players hear all of a marked stream."""
    assert len(found["clients"]) == count
    assert {each["state"] for each in found["clients"]} == {"connected"}
    assert all(each["packets"] for each in found["clients"]) and found["summary"]["lost"] == 0
    assert found["verdict"]["word"] == "held", found["verdict"]


@pytest.mark.needs("nginx")
def test_players_of_nginx_see_marked_pictures_and_sound(start):
    nginx = start(NginxRtmp)
    load = start(Load, nginx.url("demo"), "--source", nginx.url("demo"), "-n", "4")
    load.shows(r"connected\(4\)(.*\n)+  video by its stamps: (.*\n)+  first picture")
    found = load.end()
    heard(found, 4)
    assert {"video", "audio", "set-up", "first picture", "first sound"} <= set(
        found["summary"]["delays_ms"]
    )
    assert all(each["frames"] and each["key_frames"] for each in found["clients"])


@pytest.mark.needs("nginx")
def test_a_ramp_says_where_nginx_breaks_and_why(start):
    """With 16 connections, nginx closes each beyond them as soon as it is open."""
    nginx = start(SmallNginx)
    load = start(Load, nginx.url("x"), "--publish", "-n", "4", "--ramp", "40/4", "--dwell", "0.5")
    assert load.finish() == 1
    found = load.figures()
    held, steps = found["verdict"]["held"], found["steps"]
    assert 8 <= held <= 16 and steps[-1]["clients"] == held + 4
    assert [each["verdict"] for each in steps] == ["held"] * (len(steps) - 1) + ["broke"]
    [reason] = found["verdict"]["reasons"]
    assert re.match(rf"\d of {held + 4} clients refused: ", reason)
    assert f"the most that was held: {held} clients; broke at {held + 4}" in load.output
    assert "worker_connections are not enough" in nginx.output  # which it tells no client


@pytest.mark.needs("nginx")
def test_workers_share_the_publishers(start):
    nginx = start(NginxRtmp)
    load = start(Load, nginx.url("x_{}"), "--publish", "-n", "4", "--workers", "2")
    load.shows(r"connected\(4\)(.*\n)+  packets: total [1-9]")
    found = load.end()
    heard(found, 4)
    assert {each["name"] for each in found["clients"]} == {f"client_{n}" for n in range(4)}
    assert {each["frames"] > 0 for each in found["clients"]} == {True}


def test_nobody_there_is_no_broken_server(start):
    load = start(Load, "rtmp://127.0.0.1:9/live/x", "--life", "1")
    assert load.finish() == 3
    assert "nobody answers: 1 x " in load.output and "refused" in load.output


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Our server with all its listeners, and its certificate."""
    folder = tmp_path_factory.mktemp("stage")
    made = certificate(folder / "tls")
    words = ["--rtmfp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    words += [
        "--rtmpt",
        "127.0.0.1:0",
        "--rtmps",
        "127.0.0.1:0",
        "--tls-cert",
        made.file,
        "--tls-key",
        made.key,
    ]
    with Server(folder / "server", *words) as server:
        yield server


@pytest.mark.parametrize("scheme", ["rtmps", "rtmpt", "rtmfp", "http", "ws"])
def test_players_reach_our_server_by_each_of_its_protocols(start, stage, scheme):
    name = f"by_{scheme}"
    url = stage.url(name, scheme if scheme != "ws" else "http")
    if scheme in ("http", "ws"):
        url = url.replace("http:", f"{scheme}:") + ".flv"
    load = start(Load, url, "--source", stage.url(name), "-n", "2", "--insecure")
    load.shows(r"connected\(2\)(.*\n)+  video by its stamps: ")
    heard(load.end(), 2)


@pytest.mark.parametrize(("scheme", "said"), [("http", "404"), ("ws", "404"), ("rtmp", "")])
def test_a_stream_that_is_not_there(start, stage, scheme, said):
    """By HTTP that is a refusal; an RTMP player waits for it, as for a publisher who is late."""
    url = stage.url("nothing", "rtmp" if scheme == "rtmp" else "http")
    load = start(Load, url.replace("http:", f"{scheme}:"), "--life", "1")
    assert load.finish() in ((0,) if scheme == "rtmp" else (3,))
    assert said in load.output


def test_a_recording_is_published_again_and_again(start, stage, corpus):
    source = corpus / "flv" / "h264_slices4_speex16k.flv"
    load = start(Load, stage.url("file"), "--source", stage.url("file"), "--file", source)
    load.shows(r"connected\(1\)(.*\n)+  first picture: ")
    found = load.end()
    assert found["clients"][0]["key_frames"] and "video" not in found["summary"]["delays_ms"]


@pytest.mark.needs("sipp")
def test_an_echo_of_sipp_tells_delay_and_loss(start):
    """Two callers share an agent; each hangs up after a second, and calls again."""
    sipp = start(Sipp.uas, echo=True, codec="PCMU/8000")
    load = start(Load, f"sip:service@127.0.0.1:{sipp.port}", "-n", "2", "--hold", "1")
    load.shows(r"connected\(2\)(.*\n)+  audio by its stamps: ")
    sipp.wait_until(lambda: sipp.statistics.exists() and sipp.calls().successful > 2, what="calls")
    found = load.end()
    assert found["summary"]["delays_ms"]["set-up"]["p50"] > 0 and found["summary"]["lost"] == 0
    assert found["verdict"]["word"] == "held", found["verdict"]


@pytest.mark.needs("kamailio")
@pytest.mark.parametrize("transport", ["udp", "tcp", "ws", "wss"])
def test_phones_register_at_kamailio(start, tmp_path, transport, monkeypatch):
    monkeypatch.setenv("SIP_PASSWORD", "secret")
    by_web, tls = transport in ("ws", "wss"), None
    if transport == "wss":
        tls = certificate(tmp_path / "tls")
    kamailio = start(Kamailio, {f"user{n}": "secret" for n in range(3)}, tls=tls, web=by_web)
    port = kamailio.port + (transport == "wss")
    url = f"sip:user{{}}@127.0.0.1:{port};transport={transport}"
    load = start(Load, url, "--register", "-n", "4", "--insecure")
    load.shows(r"completed\(3\).* failed\(1\)")
    found = load.end()
    assert [each["state"] for each in found["clients"]] == ["completed"] * 3 + ["failed"]
    assert re.match("40[13] ", found["clients"][3]["reason"])
    assert found["verdict"]["word"] == "broke"


def test_our_gateway_answers_options(start, gateway):
    load = start(Load, f"sip:{gateway().sip}", "--options", "-n", "2", "--hold", "0.05")
    load.shows(r"completed\(2\)(.*\n)+  set-up: ")
    found = load.end()
    assert found["verdict"]["word"] == "held", found["verdict"]


def test_ffmpeg_decodes_all_made_pictures(tmp_path):
    film, turns = MadeFilm(300_000), 3 * 50
    items = [*film.start(), *(item for turn in range(turns) for item in film.at(turn, turn))]
    octets = write_flv([Tag(each.kind, each.time_ms, each.body) for each in items])
    (tmp_path / "film.flv").write_bytes(octets)
    program = require("ffmpeg", "ffmpeg")
    words = [program, "-v", "warning", "-i", "film.flv", "-f", "framecrc", "-map", "0:v", "-"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    frames = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert len(frames) == 3 * FPS
    size = 3 * 300_000 / 8 + turns * 161  # of pictures and of sounds
    assert sum(len(item.body) for item in items) == pytest.approx(size, rel=0.05)
    again = Recording(octets)
    first = [item for turn in range(turns) for item in again.at(turn, 0)]
    assert [item.body for item in first] == [item.body for item in items]


# -- WebRTC -----------------------------------------------------------------------------------


def test_viewers_by_whep_of_our_gateway_come_and_go(start, gateway):
    """What they count comes by RTP; when they end, so do their sessions."""
    running = gateway(*WEBRTC)
    url = endpoint(running, "cam", "whep").replace("http:", "whep:")
    load = start(Load, url, "--source", running.url("live", "cam"), "-n", "3", "--workers", "2")
    all_run = r"connected\(3\)(.*\n)+  FPS: .* min [1-9]"
    load.shows(all_run + r"(.*\n)+  jitter: (.*\n)+  first packet: (.*\n)+  first picture: ")
    running.wait_status({"browsers": 3})
    found = load.end()
    heard(found, 3)
    assert all(each["frames"] and each["running"] for each in found["clients"])
    running.wait_status({"browsers": 0})
    assert running.output.count('reason="ended by the client"') >= 3


def test_a_viewer_of_a_stream_that_is_not_there_is_refused_by_status(start, gateway):
    running = gateway(*WEBRTC)
    url = endpoint(running, "nothing", "whep").replace("http:", "whep:")
    load = start(Load, url)
    load.shows(r"failed\(1\)")
    load.end()
    assert load.finish() == 3
    assert "nobody answers: 1 x 409 Conflict: Nobody publishes that." in load.output


def test_viewers_by_whep_of_aiortc(start):
    """A full agent of ICE that begins DTLS itself, and VP8 or H.264 of a real encoder."""
    server = start(WebRtcServer)
    load = start(Load, f"whep://{server.address}/whep", "-n", "2")
    load.shows(r"connected\(2\)(.*\n)+  first picture: (.*\n)+  first sound: ")
    found = load.end()
    heard(found, 2)
    assert len(server.told("begun")) == len(server.told("ended")) == 2


@pytest.mark.needs("nginx")
def test_publishers_and_viewers_by_tls_meet_at_our_gateway(start, gateway, tmp_path):
    """Each publisher has a stream of its own; both kinds end their sessions by TLS, too."""
    running = gateway(*WEBRTC)
    front = start(SecureFront, running.listeners["http"], certificate(tmp_path / "tls"))
    words = ["-n", "2", "--insecure", "--bit-rate", "100k"]
    publish = start(Load, front.endpoint("whip", "cam{}"), *words, "--workers", "2")
    publish.shows(r"connected\(2\)(.*\n)+  packets: total [1-9]")
    play = start(Load, front.endpoint("whep", "cam{}"), *words)
    play.shows(r"connected\(2\)(.*\n)+  first picture: (.*\n)+  first sound: ")
    running.wait_status({"browsers": 4})
    heard(play.end(), 2)
    found = publish.end()
    heard(found, 2)
    assert all(each["frames"] and each["key_frames"] for each in found["clients"])
    running.wait_status({"browsers": 0})
    assert running.output.count('reason="ended by the client"') == 4


def test_a_publisher_by_whip_is_decoded_by_aiortc(start):
    """Each made picture is one, and half a second of sound is heard again and again."""
    server = start(WebRtcServer)
    load = start(Load, f"whip://{server.address}/whip", "-n", "1")
    load.shows(r"connected\(1\)")
    pictures, sounds = FPS, 2
    server.wait_until(lambda: len(server.told("number")) > pictures, what="decoded pictures")
    server.wait_until(lambda: len(server.told("pitch")) > sounds, what="decoded sound")
    heard(load.end(), 1)
    assert len(server.told("begun")) == len(server.told("ended")) == 1
