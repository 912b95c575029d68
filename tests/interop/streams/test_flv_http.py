"""Live streams over HTTP and WebSocket, as ffmpeg and browsers play them."""

import json
import sys
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

import pytest
from interop.streams.test_rtmp_live import Server, media
from support.peers.browser_peer import Chromium, Page, page
from support.peers.hook_service import HookService
from support.peers.peers import AAC_H264, Ffmpeg, frame_hashes
from support.peers.process import Process, wait_until

from rtmplite.flv import file


class WebServer(Server):
    """The same with an HTTP listener."""

    def __init__(self, folder: Path, *options: str) -> None:
        """On a port that the ready line tells."""
        super().__init__(folder)
        self.argv += ["--http", "127.0.0.1:0", *options]

    def watch(self, name: str, scheme: str = "http") -> str:
        """Where a browser finds `name`."""
        address = self.output.split("http=")[1].split()[0]
        return f"{scheme}://{address}/live/{name}.flv"


class OldPublisher(Process):
    """Publishes a file as it would after 24.8 days and more, which no signed time can count."""

    def __init__(self, folder: Path, source: Path, url: str, start: int) -> None:
        """`start` in ms."""
        program = Path(__file__).parents[2] / "support" / "peers" / "old_publisher.py"
        super().__init__(folder, [sys.executable, program, source, url, str(start)])


def published(start, server, name, *words):
    """ffmpeg publishing, once it does."""
    publisher = start(Ffmpeg, *words, "-f", "flv", server.url(name))
    publisher.wait_until(lambda: f"publishing {name}" in server.output, what="publishing")
    return publisher


def test_ffmpeg_plays_what_is_published(start, corpus):
    """From a key frame on, every tag to the end, as they were."""
    source = corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv"
    server = start(WebServer)
    publisher = published(start, server, "demo", "-re", "-i", source, "-t", "6", "-c", "copy")
    player = start(Ffmpeg.play, server.watch("demo"), to=Path("played.flv"))
    assert publisher.finish() == 0 and player.finish() == 0
    played, whole = media(player.folder / "played.flv"), media(source)
    assert len(played) > 200
    bodies = [data for _, _, data in whole]
    at = next(n for n, (_, time, _) in enumerate(whole) if time >= 5000)
    last = [data for _, _, data in played if data in set(bodies[at:])]
    assert len(last) > 20 and [data for data in bodies if data in set(last)] == last
    assert len(frame_hashes(player.folder / "played.flv")) > 60


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.needs("ffmpeg")
def test_a_browser_decodes_it(start, scheme):
    """mpegts.js in Chromium: pictures of the right size and sound, joined late."""
    server = start(WebServer)
    with page(Page) as shown:
        tone = ["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]
        picture = ["-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=12"]
        published(start, server, "demo", *tone, *picture, "-t", "60", *AAC_H264)
        browser = start(Chromium, shown.url(server.watch("demo", scheme)))

        def decoded():
            assert "error" not in shown.last, shown.last
            return shown.last.get("frames", 0) >= 24 and shown.last["audio"] > 1000

        wait_until(decoded, what="decoded pictures", timeout=40, log=browser.log)
        assert (shown.last["width"], shown.last["height"]) == (320, 240)
        assert shown.last["time"] > 0


@pytest.mark.parametrize("begin", [(1 << 31) - 3000, (1 << 32) - 3000])
def test_an_old_stream_plays(start, corpus, begin):
    """In a browser, and by ffmpeg, whose times go on over the end of signed and of all numbers."""
    server = start(WebServer)
    source = corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv"
    with page(Page) as shown:
        publisher = start(OldPublisher, source, server.url("demo"), begin)
        publisher.wait_until(lambda: "publishing demo" in server.output, what="publishing")
        player = start(Ffmpeg, "-i", server.watch("demo"), "-c", "copy", "-t", "8", "played.flv")
        browser = start(Chromium, shown.url(server.watch("demo")))

        def decoded():
            assert "error" not in shown.last, shown.last
            return shown.last.get("time", 0) >= 6 and shown.last["frames"] >= 150

        wait_until(decoded, what="decoded pictures", timeout=40, log=browser.log)
        assert player.finish() == 0
    played = media(player.folder / "played.flv")
    times = [at for kind, at, _ in played if kind == 9]
    steps = {later - earlier for earlier, later in pairwise(times)}
    assert len(times) > 200 and steps == {0, 33, 34}  # 0 behind the codec's header
    assert "DTS" not in player.output


def test_a_stream_is_pulled_for_a_viewer(start, corpus):
    """As it is for a player by RTMP; and the pull ends with the viewer."""
    far = start(WebServer)
    here = start(WebServer, "--pull", f"live/*=rtmp://127.0.0.1:{far.port}/live")
    source = corpus / "flv" / "seed_320x240_12fps_h264_speex16k_10s.flv"
    publisher = published(start, far, "demo", "-re", "-i", source, "-t", "6", "-c", "copy")
    player = start(Ffmpeg.play, here.watch("demo"), to=Path("played.flv"))
    other = start(Ffmpeg.play, here.watch("other"), to=Path("played.flv"))
    assert publisher.finish() == 0 and player.finish() == 0
    assert len(frame_hashes(player.folder / "played.flv")) > 30
    here.wait_until(lambda: "live/demo: idle" in here.output, what="the pull's end")
    assert other.finish() != 0 and "404" in other.output
    here.wait_until(lambda: "live/other: idle" in here.output, what="the other pull's end")


@pytest.mark.needs("ffmpeg")
def test_a_web_service_hears_of_viewers(start):
    """One question and one end for each, as for players by RTMP."""
    with HookService() as service:
        hooks = ("--on-play", f"{service.url}/play", "--on-done", f"{service.url}/done")
        server = start(WebServer, *hooks)
        tone = ("-re", "-f", "lavfi", "-i", "sine=frequency=440", "-t", "4", "-c:a", "aac")
        publisher = published(start, server, "demo", *tone)
        player = start(Ffmpeg.play, server.watch("demo") + "?key=k", to=Path("played.flv"))
        assert publisher.finish() == 0 and player.finish() == 0

        def told():
            return [form for path, form in service.asked if form.get("was", "play") == "play"]

        server.wait_until(lambda: len(told()) == 2, what="an end")
        asked, done = told()
    assert (asked["call"], done["call"]) == ("play", "done")
    for form in (asked, done):
        assert (form["name"], form["key"], form["addr"]) == ("demo", "k", "127.0.0.1")


def test_a_viewer_ends_with_the_stream(start, corpus, tmp_path):
    """ffprobe and friends come to an end; who asks for nothing gets 404."""
    server = start(WebServer)
    source = corpus / "flv" / "seed_320x240_12fps_h264_speex16k_10s.flv"
    publisher = published(start, server, "demo", "-re", "-i", source, "-t", "3", "-c", "copy")
    player = start(Ffmpeg, "-i", server.watch("demo"), "-c", "copy", "whole.flv")
    assert publisher.finish() == 0 and player.finish() == 0
    assert len(file.read_flv((player.folder / "whole.flv").read_bytes())[1]) > 50
    nobody = start(Ffmpeg, "-i", server.watch("none"), "-c", "copy", "none.flv")
    assert nobody.finish() != 0 and "404" in nobody.output


def test_the_gateway_does_it_too(start, gateway, corpus, tmp_path):
    """Beside /status, on the same address; recorded and played from files as well."""
    films = str(tmp_path / "films")
    server = gateway("--record", films, "--vod", films)
    source = corpus / "flv" / "seed_320x240_12fps_h264_speex16k_10s.flv"
    words = ("-re", "-i", source, "-t", "4", "-c", "copy", "-f", "flv")
    publisher = start(Ffmpeg, *words, server.url("live", "demo"))
    wait_until(lambda: server.status()["streams"] == 1, what="publishing")
    web = f"http://{server.listeners['http']}"
    player = start(Ffmpeg, "-i", f"{web}/live/demo.flv", "-c", "copy", "whole.flv")
    wait_until(lambda: server.status()["players"] == 1, what="a viewer")
    wait_until(lambda: server.status()["recordings"] == 1, what="the first message")
    assert publisher.finish() == 0 and player.finish() == 0
    assert len(file.read_flv((player.folder / "whole.flv").read_bytes())[1]) > 50
    wait_until(lambda: server.status()["recordings"] == 0, what="the recording's end")
    with urlopen(f"{web}/status", timeout=20) as answer:
        assert json.load(answer)["players"] == 0
    vod = start(Ffmpeg, "-i", server.url("vod", "live/demo"), "-c", "copy", "vod.flv")
    assert vod.finish() == 0
    recorded = tmp_path / "films" / "live" / "demo.flv"
    assert [t[2] for t in media(vod.folder / "vod.flv")] == [t[2] for t in media(recorded)]
