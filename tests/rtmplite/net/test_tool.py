"""`python -m rtmplite`, as a user runs it."""

import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from interop.process import Process

from rtmplite.flv import file
from rtmplite.flv.tag import Tag
from rtmplite.net.tool import _from_zero, main


class Tool(Process):
    """One run of the command line."""

    def __init__(self, folder, *words):
        super().__init__(folder, [sys.executable, "-m", "rtmplite", *words])


class Serve(Tool):
    """The server, on a free port."""

    def __init__(self, folder, *words):
        super().__init__(folder, "serve", "--rtmp", "127.0.0.1:0", *words)

    def is_ready(self):
        return "ready rtmp=" in self.output

    def joined(self, count):
        """Wait until so many play."""
        self.wait_until(lambda: self.output.count(" playing ") >= count, what=f"{count} players")

    def url(self, name):
        """Where `name` is published and played."""
        address = self.output.split("rtmp=")[1].split()[0]
        return f"rtmp://{address}/live/{name}"


@pytest.fixture
def server(tmp_path):
    """A running server."""
    with Serve(tmp_path / "serve") as running:
        yield running


def media(path):
    """Type, time and body of all tags of a file."""
    return [(tag.tag_type, tag.timestamp, tag.data) for tag in file.read(path.read_bytes())[1]]


def test_what_goes_in_comes_out(server, tmp_path, corpus):
    """Publish at its own pace, play and dump at once; the same tags in both files."""
    source, url = corpus / "flv" / "ruffle_aac_mono_44100hz.flv", server.url("demo")
    played, dumped = tmp_path / "played.flv", tmp_path / "dumped.flv"
    play = Tool(tmp_path / "play", "play", url, "-o", played).start()
    dump = Tool(tmp_path / "dump", "dump", url, "-o", dumped, "--digest").start()
    server.joined(2)  # a late one would start later, which is another test
    began = time.monotonic()
    publish = Tool(tmp_path / "publish", "publish", source, url).start()
    assert [each.finish(20) for each in (publish, play, dump)] == [0, 0, 0]
    assert time.monotonic() - began > 1.0  # its last tag is at 1021 ms
    assert media(played) == media(dumped) == media(source)
    assert len(dump.output.splitlines()) == len(media(source))
    assert "audio" in dump.output and "onMetaData" in dump.output
    assert f"{len(media(source))} messages" in publish.output


def test_what_goes_in_by_rtmfp_comes_out(tmp_path, corpus):
    """Published, played and looked at by rtmfp URLs, and by an rtmp one beside them."""
    source = corpus / "flv" / "ruffle_aac_mono_44100hz.flv"
    with Serve(tmp_path / "serve", "--rtmfp", "127.0.0.1:0") as server:
        address = server.output.split("rtmfp=")[1].split()[0]
        url = f"rtmfp://{address}/live/demo"
        files = [tmp_path / "played.flv", tmp_path / "dumped.flv", tmp_path / "old.flv"]
        play = Tool(tmp_path / "play", "play", url, "-o", files[0]).start()
        dump = Tool(tmp_path / "dump", "dump", url, "-o", files[1]).start()
        old = Tool(tmp_path / "old", "play", server.url("demo"), "-o", files[2]).start()
        probe = Tool(tmp_path / "probe", "probe", url, "--seconds", "3").start()
        server.joined(4)
        publish = Tool(tmp_path / "publish", "publish", source, url).start()
        done = (publish, play, dump, old, probe)
        assert [each.finish(20) for each in done] == [0] * len(done)
        assert [media(each) for each in files] == [media(source)] * 3
        assert "audio" in dump.output and "AAC" in probe.output.upper()


def test_fast_and_for_so_many_seconds(server, tmp_path, corpus):
    """`--fast` does not wait for time, `--seconds` does not wait for the end."""
    source, url = corpus / "flv" / "audio_speex16k.flv", server.url("demo")
    played = tmp_path / "played.flv"
    play = Tool(tmp_path / "play", "play", url, "-o", played, "--seconds", "3").start()
    server.joined(1)
    began = time.monotonic()
    publish = Tool(tmp_path / "publish", "publish", "--fast", source, url).start()
    assert publish.finish(10) == play.finish(10) == 0
    assert time.monotonic() - began < 8.0  # of 15.7 s
    assert media(played) == [each for each in media(source) if each[1] <= 3000]


def test_a_file_begins_at_0(server, tmp_path, corpus):
    """Covers FLV 10.1 §E.4.1: whatever the time of the stream is when somebody comes to watch."""
    source, url = corpus / "flv" / "audio_speex16k.flv", server.url("demo")
    with Tool(tmp_path / "publish", "publish", source, url) as publish:
        publish.wait_until(lambda: "1.5 s" in publish.output, what="a second")
        files = [tmp_path / "played.flv", tmp_path / "dumped.flv"]
        words = [
            (name, url, "-o", file) for name, file in zip(("play", "dump"), files, strict=True)
        ]
        players = [Tool(tmp_path / each[0], *each, "--seconds", "1").start() for each in words]
        assert [player.finish(20) for player in players] == [0, 0]
    played, dumped = ([tag for tag in media(file) if tag[0] == 8] for file in files)
    assert played[0][1] == 0 and 900 < played[-1][1] <= 1000
    assert dumped[0][1] >= 1500  # as it came
    tags = [Tag(kind, at, b"x") for kind, at in ((18, 7), (9, 5000), (18, 0), (8, 4990), (9, 5040))]
    assert [tag.timestamp for tag in _from_zero(iter(tags))] == [0, 0, 0, 0, 40]


def test_stdout_is_a_file_too(server, tmp_path, corpus):
    """For a pipe into ffplay or ffprobe."""
    url = server.url("demo")
    words = [sys.executable, "-m", "rtmplite", "play", url]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as play:
        server.joined(1)
        assert main(["publish", "--fast", str(corpus / "flv" / "ruffle_alaw.flv"), url]) == 0
        data = play.communicate(timeout=10)[0]
    assert Counter(tag.tag_type for tag in file.tags(data))[8] == 8


def test_sigterm_is_a_proper_end(server):
    """Exit 0."""
    server.child.send_signal(signal.SIGTERM)
    assert server.finish(5) == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["serve", "--rtmp", "nonsense"], 2),
        (["serve", "--rtmp", "192.0.2.1:1"], 2),
        (["play", "rtmp://127.0.0.1/live"], 2),
        (["play", "http://127.0.0.1/live/x"], 2),
        (["push", "rtmfp://127.0.0.1/live/x", "rtmp://127.0.0.1/live/x"], 2),
        (["publish", "/no/such/file", "rtmp://127.0.0.1/live/x"], 1),
        (["play", "rtmp://127.0.0.1:1/live/x", "--timeout", "1"], 1),
    ],
)
def test_one_clear_line_and_a_code(words, code, capsys):
    """2 for what is wrong here, 1 for what is wrong there."""
    assert main(words) == code
    error = capsys.readouterr().err
    assert error.startswith("rtmplite: ") and error.count("\n") == 1


def test_unknown_options_are_refused(capsys):
    """By argparse, with its own code for that."""
    with pytest.raises(SystemExit) as caught:
        main(["serve", "--no-such-option"])
    assert caught.value.code == 2
