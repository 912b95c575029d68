"""`python -m rtmplite`, as a user runs it."""

import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from interop.process import Process

from rtmplite.flv import file
from rtmplite.net.tool import main


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
    time.sleep(0.7)  # both have joined; a late one would start later, which is another test
    began = time.monotonic()
    publish = Tool(tmp_path / "publish", "publish", source, url).start()
    assert [each.finish(20) for each in (publish, play, dump)] == [0, 0, 0]
    assert time.monotonic() - began > 1.0  # its last tag is at 1021 ms
    assert media(played) == media(dumped) == media(source)
    assert len(dump.output.splitlines()) == len(media(source))
    assert "audio" in dump.output and "onMetaData" in dump.output
    assert f"{len(media(source))} messages" in publish.output


def test_fast_and_for_so_many_seconds(server, tmp_path, corpus):
    """`--fast` does not wait for time, `--seconds` does not wait for the end."""
    source, url = corpus / "flv" / "audio_speex16k.flv", server.url("demo")
    played = tmp_path / "played.flv"
    play = Tool(tmp_path / "play", "play", url, "-o", played, "--seconds", "3").start()
    time.sleep(0.7)
    began = time.monotonic()
    publish = Tool(tmp_path / "publish", "publish", "--fast", source, url).start()
    assert publish.finish(10) == play.finish(10) == 0
    assert time.monotonic() - began < 8.0  # of 15.7 s
    assert media(played) == [each for each in media(source) if each[1] <= 3000]


def test_stdout_is_a_file_too(server, tmp_path, corpus):
    """For a pipe into ffplay or ffprobe."""
    url = server.url("demo")
    words = [sys.executable, "-m", "rtmplite", "play", url]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as play:
        time.sleep(0.7)
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
