"""`live` with the programs people use: ffmpeg, rtmpdump and GStreamer against our server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.peers.peers import AAC_H264, ENDLESS, LASTING, Ffmpeg, RtmpDump, frame_hashes
from support.peers.process import Process, free_port, require, tcp_answers

from rtmplite.flv import file
from rtmplite.flv.video import is_key_frame, is_sequence_header

# a line of our server
JOINED = re.compile(r"^\S+Z \S+-start [0-9a-f]+ (?:playing|publishing) ", re.MULTILINE)


class Server(Process):
    """`python -m rtmplite serve` on a free port."""

    def __init__(self, folder: Path) -> None:
        """Pick the port."""
        self.port = free_port()
        words = ["-m", "rtmplite", "serve", "--rtmp", f"127.0.0.1:{self.port}"]
        super().__init__(folder, [sys.executable, *words])

    def url(self, name: str) -> str:
        """Where `name` is published and played."""
        return f"rtmp://127.0.0.1:{self.port}/live/{name}"

    def is_ready(self) -> object:
        """Truthy once it said so."""
        return "ready rtmp=" in self.output


class Gst(Process):
    """One pipeline of GStreamer."""

    def __init__(self, folder: Path, pipeline: str) -> None:
        """`pipeline` as for gst-launch-1.0; -e sends an end of stream when it is stopped."""
        program = require("gst-launch-1.0", "gstreamer1.0-tools gstreamer1.0-plugins-bad")
        super().__init__(folder, [program, "-e", *pipeline.split()])


class Own(Process):
    """Our own player, whose file has every message as it came."""

    def __init__(self, folder: Path, url: str) -> None:
        """Play `url` to the end."""
        self.file = folder / "played.flv"
        words = ["-m", "rtmplite", "dump", url, "-o", str(self.file)]
        super().__init__(folder, [sys.executable, "-u", *words])


def media(path: Path) -> list[tuple[int, int, bytes]]:
    """Type, time and body of the audio and video tags of a file, in order."""
    tags = file.read_flv(path.read_bytes())[1]
    return [(tag.tag_type, tag.timestamp, tag.data) for tag in tags if tag.tag_type != 18]


def without_end(tags: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Leave out the mark at the end of H.264, five bytes that librtmp throws away."""
    return [tag for tag in tags if not (tag[0] == 9 and len(tag[2]) <= 5)]


@pytest.fixture
def server(start):
    """A running server."""
    return start(Server)


def joined(server: Server, count: int) -> None:
    """Wait until so many are playing or publishing."""
    server.wait_until(lambda: len(JOINED.findall(server.output)) >= count, what=f"{count} streams")


def play_three(start, server, name):
    """The players that matter, all there before anything is published."""
    url = server.url(name)
    players = start(RtmpDump, url), start(Own, url), start(Ffmpeg.play, url, to=Path("ff.flv"))
    joined(server, 3)
    return players


def test_tags_out_equal_tags_in(start, server, corpus):
    """ffmpeg copies a recording with B-frames and AAC; three kinds of players get its tags."""
    source = corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv"
    rtmpdump, own, ffmpeg = play_three(start, server, "copy")
    publish = start(
        Ffmpeg, "-re", "-i", source, "-t", "4", "-c", "copy", "-f", "flv", server.url("copy")
    )
    assert publish.finish() == rtmpdump.finish() == own.finish() == ffmpeg.finish() == 0
    sent, got = media(source), media(own.file)
    assert len(got) > 250 and {kind for kind, _, _ in got} == {8, 9}
    assert set(without_end(got)) <= set(sent)
    assert [tag for tag in sent if tag in set(got)] == sorted(
        without_end(got), key=lambda tag: sent.index(tag)
    )
    assert media(rtmpdump.file) == without_end(got)
    copied = {(kind, data) for kind, _, data in media(ffmpeg.folder / "ff.flv")}
    assert {(kind, data) for kind, _, data in without_end(got)} - copied == set()


@pytest.mark.needs("ffmpeg", "rtmpdump")
def test_encoded_live_h264_and_aac(start, server):
    """Fresh from the encoders, for two players of each kind at once."""
    url = server.url("live")
    players = [start(RtmpDump, url) for _ in range(2)] + [start(Own, url) for _ in range(2)]
    joined(server, 4)
    publish = start(Ffmpeg.publish, url, seconds=3, codecs=AAC_H264, video=True)
    assert publish.finish() == 0 and [player.finish() for player in players] == [0] * 4
    got = [without_end(media(player.file)) for player in players]
    assert got[0] == got[1] == got[2] == got[3] and len(got[0]) > 150
    assert len(frame_hashes(players[0].file)) == 36


@pytest.mark.needs("ffmpeg", "rtmpdump")
def test_a_late_player_decodes_from_its_first_frame(start, server):
    """Metadata and codec headers first, then a key frame: not a picture is damaged."""
    url = server.url("late")
    early = start(Own, url)
    joined(server, 1)
    publish = start(Ffmpeg.publish, url, seconds=LASTING, codecs=(*AAC_H264, *ENDLESS), video=True)
    early.wait_until(lambda: early.output.count("video") > 15, what="some frames")
    late = [start(RtmpDump, url), start(Own, url)]
    ffmpeg = start(Ffmpeg.play, url, to=Path("ff.flv"))
    joined(server, 5)
    shown = early.output.count("video")
    early.wait_until(lambda: early.output.count("video") > shown + 36, what="more for the late")
    assert publish.leave() and [each.finish() for each in (early, *late, ffmpeg)] == [0] * 4
    whole = frame_hashes(early.file)
    for path in [each.file for each in late] + [ffmpeg.folder / "ff.flv"]:
        video = [data for kind, _, data in media(path) if kind == 9]
        assert is_sequence_header(video[0]) and is_key_frame(video[1])
        pictures = frame_hashes(path)
        assert 12 < len(pictures) < len(whole) and pictures == whole[-len(pictures) :]


@pytest.mark.parametrize("sink", ["rtmp2sink", "rtmpsink"])
@pytest.mark.needs("ffmpeg", "gst-launch-1.0")
def test_gstreamer_publishes(start, server, sink):
    """Its own implementation, and librtmp."""
    own = start(Own, server.url(sink))
    joined(server, 1)
    video = "videotestsrc num-buffers=30 ! video/x-raw,framerate=30/1,width=160,height=120"
    encode = "x264enc tune=zerolatency key-int-max=10 ! h264parse ! flvmux streamable=true"
    publish = start(Gst, f"{video} ! {encode} ! {sink} location={server.url(sink)}")
    assert publish.finish() == 0 and own.finish() == 0
    assert len(frame_hashes(own.file)) == 30


def test_gstreamer_plays(start, server, corpus, tmp_path):
    """rtmp2src; and our own client publishes.

    It stops at StreamEOF, and may drop the one message before that which it has not passed on.
    """
    url, target = server.url("gst"), tmp_path / "gst.flv"
    play = start(Gst, f"rtmp2src location={url} ! filesink location={target}")
    joined(server, 1)
    source = corpus / "flv" / "ruffle_aac_mono_44100hz.flv"
    words = [sys.executable, "-m", "rtmplite", "publish", str(source), url]
    assert subprocess.run(words, capture_output=True, timeout=100).returncode == 0
    assert play.finish() == 0
    sent = media(source)
    assert media(target) in (sent, sent[:-1])


def test_without_re_nothing_is_lost(start, server, corpus):
    """As fast as ffmpeg can: a recording of 15.7 s in less than ten, all there."""
    source, url = corpus / "flv" / "audio_speex16k.flv", server.url("fast")
    own, rtmpdump = start(Own, url), start(RtmpDump, url)
    joined(server, 2)
    publish = start(Ffmpeg, "-i", source, "-c", "copy", "-f", "flv", url)
    assert publish.finish() == own.finish() == rtmpdump.finish() == 0
    assert media(own.file) == media(rtmpdump.file) == media(source)


@pytest.mark.needs("ffmpeg")
def test_the_server_outlives_all_this(start, server):
    """A publisher that is killed is unpublished; its name is free again."""
    url = server.url("again")
    publish = start(Ffmpeg.publish, url, seconds=LASTING)
    joined(server, 1)
    publish.child.kill()
    publish.child.wait()
    again = start(Ffmpeg.publish, url, seconds=1)
    assert again.finish() == 0 and tcp_answers(server.port)
