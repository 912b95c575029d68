"""Recordings: what ffmpeg publishes is what a file has, even when the server is killed."""

import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from interop.streams.test_rtmp_live import Server, media
from interop.streams.test_vod import RtmpDump
from support.peers.peers import Ffmpeg, frame_hashes
from support.peers.process import require, wait_until

from rtmplite.flv import file, metadata

SEED = "seed_320x240_12fps_h264_speex16k_10s.flv"


class Recording(Server):
    """A server that records, and plays what it has recorded."""

    def __init__(self, folder: Path) -> None:
        """Below its own folder."""
        super().__init__(folder)
        self.films = folder / "films"
        self.argv += ["--record", str(self.films), "--vod", str(self.films)]


@pytest.fixture
def server(start):
    """A running server."""
    return start(Recording)


def probe(path, events=False):
    """What ffprobe says of a file, packets counted; nothing may be amiss.

    `events` of a call are data messages: a stream without a codec, as ffprobe finds worth a word.
    """
    program = require("ffprobe", "ffmpeg")
    words = ["-v", "warning", "-count_packets", "-show_streams", "-show_format", "-of", "json"]
    done = subprocess.run([program, *words, path], capture_output=True, text=True, timeout=100)
    no_codec = r"Unsupported codec with id 0 for input stream \d+\n" if events else "(?!)"
    assert done.returncode == 0 and re.sub(no_codec, "", done.stderr) == ""
    return json.loads(done.stdout)


def test_a_recording_equals_what_was_published(start, server, corpus):
    """Tag for tag, with a true duration; then it is played by name."""
    source = corpus / "flv" / SEED
    words = ("-re", "-i", source, "-t", "4", "-c", "copy", "-f", "flv", server.url("a/b"))
    assert start(Ffmpeg, *words).finish() == 0
    path = server.films / "live" / "a%2Fb.flv"
    said = wait_until(lambda: described(path), what="the description")
    published = [tag[2] for tag in media(path)]
    assert published[:-1] == [tag[2] for tag in media(source)][: len(published) - 1]
    found = probe(path)
    assert abs(float(found["format"]["duration"]) - said["duration"]) < 0.1
    assert said["width"] == 320.0 and said["filesize"] == path.stat().st_size
    assert {each["codec_name"] for each in found["streams"]} == {"h264", "speex"}
    dump = start(RtmpDump, server.url("a/b").replace("/live/", "/vod/live/"))
    assert dump.finish() == 0 and [t[2] for t in media(dump.file)] == published[:-1] + [
        data for data in published[-1:] if len(data) > 5
    ]


def told(path):
    """How many seconds a recording says that it has, by now."""
    if not path.is_file() or path.stat().st_size < 40_000:
        return 0
    return metadata.read(file.FlvReader().feed(path.read_bytes())[0].data)["duration"]


def described(path):
    """What a finished recording says of itself."""
    if not path.is_file():
        return None
    said = metadata.read(next(file.tags(path.read_bytes())).data)
    return said if "lasttimestamp" in said else None  # what is filled in last


def test_a_killed_server_leaves_a_file_that_plays(start, server, corpus):
    """SIGKILL in the middle: less than a second is lost, all frames decode, repair completes it."""
    source = corpus / "flv" / SEED
    words = ("-re", "-i", source, "-c", "copy", "-f", "flv", server.url("demo"))
    start(Ffmpeg, *words)
    path = server.films / "live" / "demo.flv"
    wait_until(lambda: told(path) > 0, what="some seconds")
    server.child.send_signal(signal.SIGKILL)
    assert server.finish() == -signal.SIGKILL
    assert described(path) is None  # and yet, within ten seconds:
    length = float(probe(path)["format"]["duration"])
    last = max(time for _, time, _ in media(path)) / 1000
    assert 0 < length <= last < length + 10
    packets = {each["codec_name"]: int(each["nb_read_packets"]) for each in probe(path)["streams"]}
    assert packets["h264"] > 20 and packets["speex"] > 100
    hashes = frame_hashes(path)
    assert hashes == frame_hashes(source)[: len(hashes)] and len(hashes) == packets["h264"]
    mend = [sys.executable, "-m", "rtmplite", "repair", path, "-o", path.with_name("mended.flv")]
    subprocess.run(mend, check=True, capture_output=True)
    mended = described(path.with_name("mended.flv"))
    assert mended["duration"] == max(time for _, time, _ in media(path)) / 1000
    assert frame_hashes(path.with_name("mended.flv")) == hashes
    assert float(probe(path.with_name("mended.flv"))["format"]["duration"]) > 2


def test_a_server_that_ends_completes_its_files(start, server, corpus):
    """SIGTERM while somebody publishes."""
    source = corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv"
    start(Ffmpeg, "-re", "-i", source, "-c", "copy", "-f", "flv", server.url("demo"))
    path = server.films / "live" / "demo.flv"
    wait_until(lambda: path.is_file() and path.stat().st_size > 300_000, what="some seconds")
    server.child.send_signal(signal.SIGTERM)
    assert server.finish() == 0
    said = described(path)
    assert said["filesize"] == path.stat().st_size and said["keyframes"]["times"]
    probe(path)


def test_a_recording_that_met_a_full_disk_goes_on(start, server, corpus):
    """The system refuses to let a file grow, then permits it: one file, true and playable."""
    source = corpus / "flv" / SEED
    pid, free = server.child.pid, resource.RLIM_INFINITY
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (60_000, free))
    words = ("-re", "-stream_loop", "3", "-i", source, "-c", "copy", "-f", "flv")
    start(Ffmpeg, *words, server.url("demo"))
    path = server.films / "live" / "demo.flv"
    server.wait_until(lambda: "is interrupted: File too large" in server.output, what="the word")
    said = wait_until(lambda: described(path), what="the description")
    assert said["filesize"] == path.stat().st_size <= 60_000
    assert said["duration"] == max(time for _, time, _ in media(path)) / 1000
    probe(path)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (free, free))
    server.wait_until(lambda: "demo.flv goes on" in server.output, what="that it goes on")
    wait_until(lambda: path.stat().st_size > 120_000, what="more of it")
    server.child.send_signal(signal.SIGTERM)
    assert server.finish() == 0
    said = described(path)
    assert said["filesize"] == path.stat().st_size > 120_000
    assert said["duration"] == max(time for _, time, _ in media(path)) / 1000
    assert probe(path)["format"]["nb_streams"] == 2
    assert len(frame_hashes(path)) == int(probe(path)["streams"][0]["nb_read_packets"])
