"""What `rtmplite serve` has, in the gateway: guards, relays, RTMPT, limits; with real programs."""

import socket
import urllib.error
import urllib.request

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.hook_service import HookService
from support.peers.peers import AAC_H264, Ffmpeg, NginxRtmp
from support.peers.process import wait_until
from support.peers.rtmp_servers import Player, Server, Tool, media, without_end

from rtmplite.flv import file

SOUND = ("-f", "lavfi", "-i", "sine=frequency=440", "-c:a", "aac", "-f", "flv")


def publisher(start, url, seconds=2):
    """ffmpeg publishing sound at its own pace."""
    return start(Ffmpeg, "-re", *SOUND[:4], "-t", str(seconds), *SOUND[4:], url)


def heard(answer):
    """Whether an HTTP answer has sound."""
    tags = file.FlvReader().feed(answer.read(4000))
    return any(tag.tag_type == 8 for tag in tags)


def test_publishing_needs_a_user(gateway, start, tmp_path, corpus):
    """By ffmpeg's challenge, or by the query, in both spellings; playing does not."""
    server = gateway("--users", users_file(tmp_path, "alice"))
    url = server.url("live", "demo")
    mine = server.url("live", f"demo?user=alice&password={PASSWORD}")  # asked too late of ffmpeg
    for refused in (url, mine):
        assert publisher(start, refused, 1).finish() != 0
    publish = start(Tool, "publish", corpus / "flv" / "ruffle_alaw.flv", mine)
    assert publish.finish() == 0
    assert publisher(start, url.replace("//", "//alice:guess@"), 1).finish() != 0
    for good in (
        url.replace("//", f"//alice:{PASSWORD}@"),
        server.url(f"live?user=alice&password={PASSWORD}", "demo"),
        server.url(f"live?user=alice&pass={PASSWORD}", "demo"),
    ):
        player = start(Player, url)
        server.wait_status({"players": 1})
        assert publisher(start, good, 1).finish() == player.finish() == 0
        assert len(media(player.file)) > 20
    assert PASSWORD not in server.output and "alice:" not in server.output
    refused = [line for line in server.output.splitlines() if " login-refused " in line]
    assert len(refused) == 1 and "Wrong user or password." in refused[0]
    assert server.stop() == 0
    refused = [line for line in server.output.splitlines() if " refused " in line]
    assert len(refused) == 2  # of those that named nobody, and not of the first step of a login
    assert all("The client named no user." in line for line in refused)


def test_only_users_come_in(gateway, start, tmp_path, corpus):
    """With --users-only players need to be one as well, by RTMP and by HTTP, and for files."""
    films = corpus / "flv"
    server = gateway("--users", users_file(tmp_path, "alice"), "--users-only", "--vod", str(films))
    proof = f"?user=alice&password={PASSWORD}"
    publisher(start, server.url(f"live{proof}", "demo"), 60)  # until all have come
    server.wait_status({"streams": 1})
    for app, name in (("live", "demo"), ("vod", "ruffle_alaw")):
        refused = start(Player, server.url(app, name), "--seconds", "1")
        assert refused.finish() == 1 and "need auth" in refused.output
        assert start(Player, server.url(app, name) + proof, "--seconds", "0.2").finish() == 0
    web = f"http://{server.listeners['http']}/live/demo.flv"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(web, timeout=20)
    with urllib.request.urlopen(web + proof, timeout=20) as answer:
        assert heard(answer)


@pytest.mark.needs("ffmpeg")
def test_keys_and_signed_links(gateway, start, tmp_path):
    """One stream with a key for those who play, all with links for those who publish."""
    (tmp_path / "key").write_text("0123456789abcdef")
    server = gateway("--sign-key", str(tmp_path / "key"), "--play-key", "demo=k2")
    link = start(Tool, "sign", "publish", "demo", "--key", tmp_path / "key")
    assert link.finish() == 0
    url = server.url("live", "demo")
    assert publisher(start, url, 1).finish() != 0
    source = publisher(start, server.url("live", link.output.strip()), 60)
    server.wait_status({"streams": 1})
    denied = start(Player, f"{url}?key=guess")
    assert denied.finish() == 1 and "not by this key" in denied.output
    assert "wants=play app=live name=demo" in server.output and "guess" not in server.output
    player = start(Player, f"{url}?key=k2")
    player.wait_until(lambda: player.file.exists() and media(player.file), what="media")
    assert source.leave() and player.finish() == 0


@pytest.mark.needs("ffmpeg")
def test_a_service_is_asked_of_all_applications(gateway, start):
    """By nginx-rtmp's questions; of a call, too, before anybody's phone rings."""

    def answer(path, form):
        return (403 if form.get("name") in ("denied", "carol@127.0.0.1") else 200), ""

    with HookService(answer) as service:
        hooks = [
            word
            for event in ("connect", "publish", "play", "done")
            for word in (f"--on-{event}", f"{service.url}/{event}?token=t0ken")
        ]
        server = gateway(*hooks)
        assert publisher(start, server.url("live", "denied"), 1).finish() != 0
        assert publisher(start, server.url("live", "demo"), 1).finish() == 0
        assert publisher(start, server.url("call", "carol@127.0.0.1"), 1).finish() != 0
        wait_until(lambda: any("/done" in path for path, _ in service.asked), what="the end")
        asked = [(path[1:8], form["app"], form.get("name", "")) for path, form in service.asked]
        assert ("publish", "call", "carol@127.0.0.1") in asked and "call-start" not in server.output
        assert [each for each in asked if each[2] == "demo"] == [
            ("publish", "live", "demo"),
            ("done?to", "live", "demo"),
        ]
    assert publisher(start, server.url("live", "demo"), 1).finish() != 0  # nobody answers
    assert "is denied" in server.output and "t0ken" not in server.output


def test_it_pushes_and_pulls(gateway, start):
    """To and from nginx-rtmp; what comes out there is what came in here."""
    nginx, other = start(NginxRtmp), start(Server)
    far = other.url("").rstrip("/")
    server = gateway(
        *("--push", f"live/demo={nginx.url('{name}-copy')}", "--pull", f"live/far={far}?key=s3cret")
    )
    there = start(Player, nginx.url("demo-copy"))
    here = start(Player, server.url("live", "demo"))
    server.wait_status({"players": 1})
    words = {"seconds": 4, "codecs": AAC_H264, "video": True}
    source = start(Ffmpeg.publish, server.url("live", "demo"), **words)
    server.wait_status({"relays": 1, "relays_running": 1})
    assert source.finish() == there.finish() == here.finish() == 0
    sent, came = without_end(media(here.file)), without_end(media(there.file))
    assert len(came) > 40 and came[-40:] == sent[-40:]
    server.wait_status({"relays": 0})
    pulled = start(Player, server.url("live", "far"))
    other.joined(1)
    assert publisher(start, other.url("far"), 2).finish() == pulled.finish() == 0
    assert media(pulled.file)
    lines = [line for line in server.output.splitlines() if " relay " in line]
    assert any(f"url={far}/far state=running" in line for line in lines)
    assert "s3cret" not in server.output


@pytest.mark.needs("ffmpeg")
def test_rtmpt(gateway, start):
    """ffmpeg publishes and plays through HTTP."""
    server = gateway("--rtmpt", "127.0.0.1:0")
    tunnel = f"rtmpt://{server.listeners['rtmpt']}/live/demo"
    played = start(Ffmpeg, "-i", tunnel, "-c", "copy", "-f", "flv", "played.flv")
    server.wait_status({"players": 1})
    assert publisher(start, tunnel, 3).finish() == played.finish() == 0
    assert len(media(played.folder / "played.flv")) > 60


def test_limits_count_all_listeners(gateway, start):
    """Two from one address, be it by RTMP or through HTTP."""
    words = ("--rtmpt", "127.0.0.1:0", "--max-per-address", "2", "--idle", "1")
    server = gateway(*words)
    host, port = server.rtmp.rsplit(":", 1)
    open_ = urllib.request.Request(f"http://{server.listeners['rtmpt']}/open/1", b"\0")
    with urllib.request.urlopen(open_, timeout=20) as answer:
        assert answer.status == 200
    with (
        socket.create_connection((host, int(port)), timeout=20),
        socket.create_connection((host, int(port)), timeout=20) as third,
    ):
        assert third.recv(1) == b""
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(open_, timeout=20)
    assert "connections of its own" in server.output
    server.wait_status({"rtmp_connections": 1})
