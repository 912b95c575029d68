"""Enhanced RTMP with ffmpeg 8, which PyAV brings along: codecs by FourCC, several tracks."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from interop.streams.test_rtmp_live import JOINED, Own, Server, joined, media
from support.peers.process import Process
from support.peers.rtmp_peers import AV_PEER
from support.peers.rtmp_sources import av, encode, need_av

from rtmplite.flv import file, metadata
from rtmplite.flv.enhanced_audio import AudioFourCc, ExAudioTag
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc
from rtmplite.flv.video import is_key_frame

SHOWN = re.compile(r"s  (?:audio|video)  ")  # in a line of our player
RECORDING = Path("flv") / "enhanced_av1_opus_testsrc.flv"
CODECS = {
    "hevc-opus": ("libx265", "libopus"),
    "av1-flac": ("libsvtav1", "flac"),
    "vp9-ac3": ("libvpx-vp9", "ac3"),
    "tracks": ("libx265", "libsvtav1", "libopus", "flac"),
}


class Copy(Process):
    """ffmpeg 8 passing tags on as they are, to or from a server."""

    def __init__(self, folder, source, target, *how):
        """From a file or URL to a file or URL: at once, or `how` says otherwise."""
        words = [sys.executable, "-u", str(AV_PEER), "copy", source, target, *(how or ("0",))]
        super().__init__(folder, words)

    @classmethod
    def play(cls, folder, url):
        """Into `file` of its folder, to the end."""
        player = cls(folder, url, str(folder / "played.flv"))
        player.file = folder / "played.flv"
        return player


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A file of two seconds for each set of codecs, made when first asked for."""
    need_av()
    folder = tmp_path_factory.mktemp("sources")

    def source(name):
        path = folder / f"{name}.flv"
        if not path.exists():
            encode(path, *CODECS[name])
        return path

    return source


@pytest.fixture
def server(start):
    """A running server."""
    return start(Server)


@pytest.mark.parametrize("name", CODECS)
def test_tags_out_equal_tags_in(start, server, sources, name):
    """Published and played by ffmpeg 8: every tag, and all that decoders make of it."""
    source, url = sources(name), server.url(name)
    own, ffmpeg = start(Own, url), start(Copy.play, url)
    joined(server, 2)
    assert start(Copy, str(source), url).finish() == 0
    assert own.finish() == ffmpeg.finish() == 0
    assert media(own.file) == media(source)
    assert media(ffmpeg.file) == media(source)
    assert av("decode", ffmpeg.file) == av("decode", source)


def is_frame(tag):
    """Whether there is a picture in a tag."""
    return tag[0] == 9 and ExVideoTag.parse(tag[2]).packet_type in (1, 3)


@pytest.mark.parametrize("name", ["av1-flac", "tracks"])
def test_a_late_player_decodes_from_its_first_frame(start, server, sources, name):
    """Metadata, every header of every track and the colors first, then a key frame."""
    source, url = sources(name), server.url(name)
    early = start(Own, url)
    joined(server, 1)
    publish = start(Copy, str(source), url, "1", "loop")  # until the late ones have had enough
    once = sum(kind == 9 for kind, *_ in media(source))  # a key frame comes with each turn
    early.wait_until(lambda: early.output.count("video") > once + 5, what="the second turn")
    late, ffmpeg = start(Own, url), start(Copy.play, url)
    late.wait_until(lambda: late.output.count("video") > 30, what="some frames")
    joined(server, 4)
    shown = early.output.count("video")
    early.wait_until(lambda: early.output.count("video") > shown + 60, what="more for ffmpeg")
    publish.child.send_signal(signal.SIGINT)
    assert [each.finish() for each in (publish, early, late, ffmpeg)] == [0] * 4
    whole, got, half = media(early.file), media(late.file), len(media(source)) // 2
    assert whole[:half] == media(source)[:half]
    first = next(at for at, tag in enumerate(got) if is_frame(tag))
    assert is_key_frame(got[first][2]) and got[first][1] > 0
    heads = [tag[2] for tag in whole if not is_frame(tag) and tag[0] == 9]
    assert {tag[2] for tag in got[:first] if tag[0] == 9} <= set(heads)
    headers = [ExVideoTag.parse(tag[2]) for tag in got[:first] if tag[0] == 9]
    videos = {"av1-flac": 1, "tracks": 2}[name]
    starts = [tag.tracks[0].track_id for tag in headers if tag.packet_type == 0]
    assert starts == list(range(videos)) and headers[-1].packet_type == 4
    sounds = [ExAudioTag.parse(tag[2]) for tag in got[:first] if tag[0] == 8]
    assert [(tag.packet_type, tag.tracks[0].track_id) for tag in sounds] == [
        (kind, number) for number in range(videos) for kind in (0, 4)
    ]
    assert got[first:] == whole[-len(got[first:]) :]
    decoded, everything = sorted(av("decode", ffmpeg.file)), sorted(av("decode", early.file))
    for some, all_of_it in zip(decoded, everything, strict=True):
        (codec, count, size), (codec_too, most, size_too) = some.split(), all_of_it.split()
        assert (codec, size) == (codec_too, size_too) and 0 < int(count) < int(most)


def test_a_recording_of_the_authors(start, server, corpus):
    """AV1 and Opus as the people behind the text recorded it, by our publisher, end to end."""
    need_av()
    source, url = corpus / RECORDING, server.url("lab")
    own, ffmpeg = start(Own, url), start(Copy.play, url)
    joined(server, 2)
    words = [sys.executable, "-m", "rtmplite", "publish", "--fast", str(source), url]
    assert subprocess.run(words, capture_output=True, timeout=100).returncode == 0
    assert own.finish() == ffmpeg.finish() == 0
    assert media(own.file) == media(source)
    assert av("decode", ffmpeg.file) == av("decode", source)
    told = metadata.read(file.read_flv(own.file.read_bytes())[1][0].data)
    assert (told["videocodecid"], told["audiocodecid"]) == (VideoFourCc.AV1, AudioFourCc.OPUS)


def test_a_codec_that_nobody_knows(start, server, sources, tmp_path):
    """Relayed untouched, with its headers, to the early and the late."""
    source, url = tmp_path / "unknown.flv", server.url("unknown")
    source.write_bytes(sources("hevc-opus").read_bytes().replace(b"hvc1", b"zzzz"))
    own, sent = start(Own, url), media(source)
    joined(server, 1)
    words = [sys.executable, "-m", "rtmplite", "publish", "--loop", str(source), url]
    publish = start(Process, words)  # until the late one has seen enough, whenever it comes
    own.wait_until(lambda: own.output.count("video") > 15, what="some frames")
    late = start(Own, url)
    late.wait_until(lambda: late.output.count("video") > 15, what="it")
    own.wait_until(lambda: len(SHOWN.findall(own.output)) >= len(sent), what="the whole file")
    publish.child.send_signal(signal.SIGINT)
    assert [each.finish() for each in (publish, own, late)] == [0] * 3
    assert media(own.file)[: len(sent)] == sent
    video = [tag[2][:5] for tag in media(late.file) if tag[0] == 9]
    headers, key = [b"\x90zzzz", b"\xd4zzzz"], video.index(b"\x91zzzz")
    assert video[:2] == headers and set(video[:key]) == set(headers)


class Leaving(Server):
    """A server that sends its clients elsewhere when it is stopped."""

    def __init__(self, folder, elsewhere):
        """To `elsewhere`, and gives them five seconds."""
        super().__init__(folder)
        self.argv += ["--drain", "5", "--reconnect-to", elsewhere]


def test_a_server_hands_its_clients_over(start, server, sources):
    """Our publisher and our player follow, and not a frame is damaged; then it exits with 0."""
    leaving = start(Leaving, server.url("").rstrip("/"))
    source, player = sources("hevc-opus"), start(Own, leaving.url("moved"))
    joined(leaving, 1)
    words = [sys.executable, "-m", "rtmplite", "publish", "--loop", "2", str(source)]
    publish = start(Process, [*words, leaving.url("moved")])
    player.wait_until(lambda: player.output.count("video") > 10, what="some frames")
    leaving.process.terminate()
    assert leaving.finish() == publish.finish() == player.finish() == 0
    got, sent = media(player.file), {tag[2] for tag in media(source)}
    assert {tag[2] for tag in got} <= sent and got[-1][1] > 3900
    assert len(JOINED.findall(server.output)) == 2
