"""Who may publish and play, with the programs people use, and beside nginx-rtmp."""

from pathlib import Path

import pytest
from support.peers.hook_service import HookService
from support.peers.peers import ENDLESS, Ffmpeg, NginxRtmp
from support.peers.process import Process, require
from support.peers.rtmp_servers import Player, Server, Tool

from rtmplite.auth.credentials import user_lines

SOUND = ("-f", "lavfi", "-i", "sine=frequency=440", "-c:a", "aac", "-f", "flv")


class Gst(Process):
    """One pipeline of GStreamer that ends by itself."""

    def __init__(self, folder: Path, pipeline: str) -> None:
        """`pipeline` as for gst-launch-1.0."""
        program = require("gst-launch-1.0", "gstreamer1.0-tools gstreamer1.0-plugins-bad")
        super().__init__(folder, [program, *pipeline.split()])


class Dump(Process):
    """rtmpdump, which takes what it gets."""

    def __init__(self, folder: Path, url: str) -> None:
        """Until the publisher goes."""
        program = require("rtmpdump", "rtmpdump")
        words = ["-v", "-r", url, "-o", str(folder / "played.flv")]
        super().__init__(folder, [program, *words])


class HookedNginx(NginxRtmp):
    """nginx-rtmp that asks the same questions."""

    def __init__(self, folder: Path, url: str) -> None:
        """`url` is the service's."""
        super().__init__(folder)
        path = folder / "nginx.conf"
        hooks = f"on_publish {url}/publish; on_play {url}/play; on_done {url}/done;"
        text = path.read_text().replace(
            "application live {", f"on_connect {url}/connect; application live {{ {hooks}"
        )
        path.write_text(text)


def hooks(url):
    """The options that ask a service everything."""
    events = ("connect", "publish", "play", "done")
    return [word for event in events for word in (f"--on-{event}", f"{url}/{event}")]


def published(start, url, seconds=1):
    """ffmpeg's exit code after publishing for so long."""
    words = ("-re", *SOUND[:4], "-t", str(seconds), *SOUND[4:], url)
    return start(Ffmpeg, *words).finish()


@pytest.fixture
def users(tmp_path):
    """A file of users: ann, whose password is s3cret."""
    path = tmp_path / "users"
    path.write_text("\n".join(user_lines("ann", "example.org", "s3cret")))
    return path


@pytest.mark.parametrize(
    ("who", "works"),
    [("ann:s3cret@", True), ("ann:guess@", False), ("bob:s3cret@", False), ("", False)],
)
@pytest.mark.needs("ffmpeg")
def test_ffmpeg_answers_the_challenge(start, users, who, works):
    """Covers Field §"authmod=adobe": by user and password in its URL, as OBS has two fields."""
    server = start(Server, "--users", users)
    url = server.url("demo").replace("rtmp://", f"rtmp://{who}")
    assert (published(start, url) == 0) == works
    assert ("publishing" in server.output) == works


@pytest.mark.needs("gst-launch-1.0")
def test_gstreamer_answers_the_challenge(start, users):
    """Covers Field §"authmod=adobe": by rtmp2sink, whose properties have the names."""
    server = start(Server, "--users", users)
    words = (
        "audiotestsrc num-buffers=50 ! voaacenc ! flvmux streamable=true ! rtmp2sink username=ann"
    )
    for password, works in (("s3cret", True), ("guess", False)):
        as_encoder = "flash-version=FMLE/3.0"  # else it is taken for a player, and let in
        pipeline = f"{words} {as_encoder} password={password} location={server.url('demo')}"
        assert (start(Gst, pipeline).finish() == 0) == works
    assert server.output.count("publishing") == 1


@pytest.mark.needs("ffmpeg")
def test_keys_of_streams(start):
    """A stream key as OBS sends it, and rtmpdump with a key for playing."""
    server = start(Server, "--publish-key", "demo=k1", "--play-key", "demo=k2")
    assert published(start, server.url("demo?key=wrong")) != 0
    words = ("-re", *SOUND[:4], "-t", "60", *SOUND[4:], *ENDLESS)
    source = start(Ffmpeg, *words, server.url("demo?key=k1"))
    server.joined(1)
    dump = start(Dump, server.url("demo?key=k2"))
    server.joined(2)
    denied = start(Player, server.url("demo"))
    assert denied.finish() == 1 and "not by this key" in denied.output
    assert source.leave() and dump.finish() == 0


def test_the_questions_are_those_of_nginx_rtmp(start):
    """A service that was written for it can be asked by us: same names, same values."""
    heard = {}
    for kind in (HookedNginx, Server):
        with HookService() as service:
            words = hooks(service.url) if kind is Server else [service.url]
            server = start(kind, *words)
            source = start(
                Ffmpeg, "-re", *SOUND[:4], "-t", "60", *SOUND[4:], server.url("demo?key=1&x=a%20b")
            )
            server.wait_until(
                lambda service=service: any(path == "/publish" for path, _ in service.asked),
                what="a publisher",
            )
            dump = start(Dump, server.url("demo?k=2"))
            dump.wait_until(
                lambda dump=dump: "Starting Live Stream" in dump.output or "sec" in dump.output,
                what="a player",
            )
            assert source.leave()
            dump.finish()
            server.wait_until(
                lambda service=service: sum(path == "/done" for path, _ in service.asked) == 2,
                what="two ends",
            )
            heard[kind] = sorted(service.asked, key=lambda each: (each[0], each[1]["flashver"]))
    assert len(heard[Server]) == len(heard[HookedNginx]) == 6
    # Numbers of its own, times of its own, and a bug: it drops the last letters of flashver.
    own = {"clientid", "epoch", "tcurl", "flashver", "start", "duration", "reset"}
    for (path, ours), (their_path, theirs) in zip(heard[Server], heard[HookedNginx], strict=True):
        assert path == their_path
        assert {key: ours.get(key) for key in theirs.keys() - own} == {
            key: value for key, value in theirs.items() if key not in own
        }
        assert ours["flashver"].startswith(theirs["flashver"]) and set(theirs) - set(ours) <= {
            "epoch"
        }


@pytest.mark.needs("ffmpeg")
def test_a_service_denies_renames_and_sends_elsewhere(start):
    """ffmpeg publishes, our own tool follows."""
    other = start(Server)
    elsewhere = other.url("").rstrip("/")

    def answer(path, form):
        name = form.get("name")
        if path == "/connect" and form["flashver"].startswith("LNX"):
            return 302, elsewhere
        return {"denied": (403, ""), "secret-key": (302, "demo")}.get(name, (200, ""))

    with HookService(answer) as service:
        server = start(Server, *hooks(service.url))
        assert published(start, server.url("denied")) != 0
        assert published(start, server.url("secret-key")) == 0
        assert "publishing demo," in server.output and "publishing denied" not in server.output
        assert "may not publish denied, 127.0.0.1: Denied (403)." in server.output
        player = start(Player, server.url("demo"), "--seconds", "1")
        other.joined(1)
        assert published(start, other.url("demo"), 3) == 0
        assert player.finish() == 0


@pytest.mark.needs("ffmpeg")
def test_a_service_that_is_gone_lets_nobody_in(start):
    """And is asked no longer than configured."""
    with HookService() as service:
        url = service.url
    server = start(Server, "--on-publish", url, "--hook-timeout", "1")
    assert published(start, server.url("demo")) != 0
    assert "is denied" in server.output


def test_an_open_address_needs_a_guard(start):
    """One line on stderr, exit code 2."""
    tool = start(Tool, "serve", "--rtmp", "0.0.0.0:0")
    assert tool.finish() == 2 and "is open to all" in tool.output
