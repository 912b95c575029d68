"""Recorded files, as rtmpdump, ffmpeg and our own player play them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest
from interop.streams.test_rtmp_live import Own, Server, media, without_end
from support.peers.peers import Ffmpeg, frame_hashes
from support.peers.process import Process, require
from support.peers.rtmp_peers import FfmpegPlayer

from rtmplite.flv import file

LONG = "h264_720p30_bf3_aac44k_30s"
AHEAD = 1.5  # s that a player may have in hand, and a bit


class Vod(Server):
    """A server that plays the files of a folder."""

    def __init__(self, folder: Path, films: Path) -> None:
        """`films` holds them."""
        super().__init__(folder)
        self.argv += ["--vod", str(films)]

    def url(self, name: str) -> str:
        """Where a file is played."""
        return f"rtmp://127.0.0.1:{self.port}/vod/{name}"


class RtmpDump(Process):
    """rtmpdump storing a recorded stream, as fast as it gets it."""

    def __init__(self, folder: Path, url: str, *words: str) -> None:
        """`words` are more options, such as --start."""
        program = require("rtmpdump", "rtmpdump")
        self.file = folder / "played.flv"
        super().__init__(folder, [program, "--rtmp", url, "-o", self.file, *words])


@pytest.fixture
def server(start, corpus):
    """A server with the corpus."""
    return start(Vod, corpus / "flv")


def stored(path: Path) -> list[tuple[int, int, bytes]]:
    """Every tag of a file but those which our server sends of its own: before, and at the end."""
    tags = ((tag.tag_type, tag.timestamp, tag.data) for tag in file.tags(path.read_bytes()))
    own = (b"|RtmpSampleAccess", b"onPlayStatus")
    return [tag for tag in tags if tag[0] != 18 or not any(word in tag[2] for word in own)]


def lasts(path: Path) -> float:
    """How long a file is, in seconds."""
    return max(tag.timestamp for tag in file.tags(path.read_bytes())) / 1000


def test_every_file_comes_out_tag_for_tag(start, server, corpus):
    """By ffmpeg, whose buffer takes each whole at once."""
    sources = sorted((corpus / "flv").glob("*.flv"))
    assert len(sources) > 20
    ahead = ("-rtmp_buffer", "36000000")
    players = [start(FfmpegPlayer, server.url(source.stem), *ahead) for source in sources]
    for source, player in zip(sources, players, strict=True):
        assert player.finish() == 0 and stored(player.file) == stored(source), source.name


def test_files_come_out_at_their_own_pace(start, server, corpus):
    """Our own player, all at once, of files of some seconds: none ends before its time."""
    sources = [each for each in sorted((corpus / "flv").glob("*.flv")) if 2 < lasts(each) < 6]
    begun = monotonic()
    players = [start(Own, server.url(source.stem)) for source in sources]
    assert len(players) > 5
    with ThreadPoolExecutor(len(players)) as pool:
        ends = list(pool.map(lambda player: (player.finish(), monotonic()), players))
    for source, player, (code, end) in zip(sources, players, ends, strict=True):
        assert code == 0 and stored(player.file) == stored(source), source.name
        assert end - begun > lasts(source) - AHEAD, source.name


def test_rtmpdump_takes_all_at_once(start, server, corpus):
    """Its buffer of ten hours is honoured: half a minute in a moment, the same tags."""
    dump = start(RtmpDump, server.url(LONG))
    assert dump.finish() == 0 and "Download complete" in dump.output
    assert media(dump.file) == without_end(media(corpus / "flv" / f"{LONG}.flv"))


def test_rtmpdump_starts_later_and_stops_early(start, server, corpus):
    """From the key frame before on."""
    whole = without_end(media(corpus / "flv" / f"{LONG}.flv"))
    dump = start(RtmpDump, server.url(LONG), "--start", "10")
    assert dump.finish() == 0
    bodies = [data for _, _, data in media(dump.file)]
    headers, rest = bodies[:2], bodies[2:]
    wanted = [data for _, time, data in whole if time >= 10_000]
    assert rest[-len(wanted) + 5 :] == wanted[5:] and len(rest) <= len(wanted)
    assert {data[:2] for data in headers} == {b"\x17\x00", b"\xaf\x00"}
    assert len(frame_hashes(dump.file)) > 590
    short = start(RtmpDump, server.url(LONG), "--start", "10", "--stop", "12")
    short.finish()
    times = [time for _, time, _ in media(short.file)]
    assert 1900 <= max(times) - min(times) <= 2100


def test_ffmpeg_plays_and_seeks(start, server, corpus):
    """To the end, by its own clock; then from a place in the middle."""
    source = corpus / "flv" / "h264_slices4_speex16k.flv"
    player = start(Ffmpeg.play, server.url(source.stem), to=Path("played.flv"))
    sought = start(
        *(Ffmpeg, "-ss", "20", "-i", server.url(LONG), "-t", "3", "-c", "copy", "sought.flv")
    )
    assert player.finish() == 0 and sought.finish() == 0
    played = player.folder / "played.flv"
    assert [tag[2] for tag in media(played)] == [tag[2] for tag in media(source)]
    assert frame_hashes(played) == frame_hashes(source)
    whole = [data for _, time, data in media(corpus / "flv" / f"{LONG}.flv") if time >= 19_000]
    bodies = [data for _, _, data in media(sought.folder / "sought.flv")]
    assert sum(data in set(whole) for data in bodies) > 80


def test_what_is_not_there(start, server):
    """Both say so and end."""
    dump, player = start(RtmpDump, server.url("none")), start(Ffmpeg, "-i", server.url("none"))
    assert dump.finish() != 0 and player.finish() != 0
    assert "StreamNotFound" in dump.output
