"""How long a recording is, where it ends, and how much of a live stream is wanted: with players."""

import json
import subprocess
from pathlib import Path

import pytest
from support.peers.peers import Ffmpeg
from support.peers.process import Process, require
from support.peers.rtmp_servers import Player, Server, media

from rtmplite.flv import file

SOUND = ("-f", "lavfi", "-i", "sine=frequency=440", "-c:a", "aac", "-f", "flv")


class RtmpDump(Process):
    """rtmpdump storing a live stream."""

    def __init__(self, folder: Path, url: str, *words: str) -> None:
        """`words` are more options."""
        program = require("rtmpdump", "rtmpdump")
        self.file = folder / "played.flv"
        super().__init__(folder, [program, "--rtmp", url, "-o", self.file, *words])


@pytest.fixture
def films(start, corpus, tmp_path):
    """A server with a film that does not say how long it is."""
    source = corpus / "flv" / "audio_speex16k.flv"
    tags = [tag for tag in file.tags(source.read_bytes()) if tag.tag_type != 18]
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "film.flv").write_bytes(file.write_flv(tags))
    server = start(Server, "--vod", folder)
    return server.url("film").replace("/live/", "/vod/"), tags[-1].timestamp / 1000


def test_ffmpeg_knows_how_long_it_is(films):
    """Covers RTMP 1.0 §7.2.1.2: it asks getStreamLength, and tells its players."""
    url, seconds = films
    words = ["-v", "error", "-show_entries", "format=duration", "-of", "json", url]
    done = subprocess.run([require("ffprobe", "ffmpeg"), *words], capture_output=True, timeout=100)
    assert float(json.loads(done.stdout)["format"]["duration"]) == pytest.approx(seconds, abs=0.1)


@pytest.mark.parametrize(("start_at", "works"), [("12", True), ("99", False)])
def test_ffmpeg_seeks_where_there_is_something(start, films, start_at, works):
    """Covers RTMP 1.0 §7.2.2.7: beyond the end it is told so, and ends."""
    url, seconds = films
    words = ("-ss", start_at, "-i", url, "-f", "flv", "-c", "copy", "sought.flv")
    player = start(Ffmpeg, *words)
    player.finish()
    sought = player.folder / "sought.flv"
    got = [tag for tag in file.tags(sought.read_bytes()) if tag.tag_type == 8]
    assert bool(got) == works
    if works:
        assert got[-1].timestamp / 1000 == pytest.approx(seconds - 12, abs=0.5)


@pytest.mark.needs("rtmpdump")
def test_so_much_of_a_live_stream(start):
    """Covers RTMP 1.0 §7.2.2.1: rtmpdump says how long, and is told that this was all."""
    server = start(Server)
    url = server.url("demo")
    endless = ("-flvflags", "no_duration_filesize")  # or rtmpdump calls the rest incomplete
    source = start(Ffmpeg, "-re", *SOUND[:4], "-t", "6", *SOUND[4:], *endless, url)
    server.joined(1)
    dump = start(RtmpDump, url, "--live", "--stop", "2")
    whole = start(Player, url)
    assert dump.finish() == 0
    assert source.child.poll() is None  # while the publisher goes on
    times = [at for _, at, _ in media(dump.file)]
    assert times[-1] - times[0] == pytest.approx(2000, abs=100)
    assert source.finish() == whole.finish() == 0
    assert media(whole.file)[-1][1] > times[-1] + 1000
