"""What odd encoders send is played by ffmpeg as if they had kept to the format.

The films are ffmpeg's own, with their tags rearranged as such encoders have them; pictures are
compared by what comes out of a decoder.
"""

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from interop.streams.test_rtmp_live import Own, Server, joined, media
from support.peers.peers import Ffmpeg, frame_hashes
from support.peers.process import Process, require
from support.peers.rtmp_sources import av, need_av

from rtmplite.flv import file
from rtmplite.flv.avc import AvcConfig, join_units, split_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoPacketType
from rtmplite.flv.index import load_index
from rtmplite.flv.tag import Tag
from rtmplite.flv.video import FrameType, is_key_frame, is_sequence_header

RATE, GROUP = 10, 10  # pictures a second, and between key frames


class Publish(Process):
    """Our own client, which sends tags as they are."""

    def __init__(self, folder: Path, source: Path, url: str, *how: str) -> None:
        """Publish a file at its pace."""
        words = ["-m", "rtmplite", "publish", *how, str(source), url]
        super().__init__(folder, [sys.executable, *words])


class Recorder(Server):
    """A server that records all, and plays its recordings."""

    def __init__(self, folder: Path) -> None:
        """Record into a folder."""
        super().__init__(folder)
        self.records = folder / "records"
        self.records.mkdir()
        self.argv += ["--record", str(self.records), "--vod", str(self.records)]


def film(path: Path, size: str, seconds: int = 3) -> list[Tag]:
    """Pictures of four slices each by x264, as ffmpeg writes them."""
    words = ["-f", "lavfi", "-i", f"testsrc=size={size}:rate={RATE}", "-t", str(seconds)]
    words += ["-c:v", "libx264", "-g", str(GROUP), "-bf", "0", "-x264-params", "slices=4"]
    program = require("ffmpeg", "ffmpeg")
    subprocess.run([program, "-loglevel", "error", *words, path], check=True, timeout=60)
    tags = [tag for tag in file.read_flv(path.read_bytes())[1] if tag.tag_type == 9]
    return [tag for tag in tags if tag.data[1] < 2]  # without the end of the sequence


def units_of(tag: Tag) -> list[bytes]:
    """The NAL units of a picture, without what is no slice."""
    return [unit for unit in split_units(tag.data[5:]) if unit[0] & 0x1F in (1, 5)]


def without_header(tags: list[Tag], form: str) -> list[Tag]:
    """The sets in a message of their own, or in the key frame; with slices in a message each."""
    config = AvcConfig.parse(tags[0].data[5:])
    sets, out = [*config.sps, *config.pps], []
    for tag in tags[1:]:
        units = units_of(tag)
        if is_key_frame(tag.data) and form == "apart":
            out.append(Tag(9, tag.timestamp, tag.data[:5] + join_units(sets)))
        elif is_key_frame(tag.data):
            units = [*sets, *units]
        parts = [[*units[:-3]], *([each] for each in units[-3:])] if form == "slices" else [units]
        out += [Tag(9, tag.timestamp, tag.data[:5] + join_units(part)) for part in parts]
    return out


def until_the_late_have_seen(start, own: Own, source: Path, url: str) -> Own:
    """Publish in a loop until a player who came behind the first group has seen a group."""
    publish = start(Publish, source, url, "--loop")
    own.wait_until(lambda: own.output.count("  video  ") > GROUP + 4, what="the second group")
    late = start(Own, url)
    late.wait_until(lambda: late.output.count("  video  ") > GROUP + 4, what="a group for the late")
    publish.child.send_signal(signal.SIGINT)
    publish.finish()
    return late


@pytest.fixture
def server(start):
    """A running server."""
    return start(Server)


@pytest.mark.parametrize("form", ["apart", "within", "slices"])
@pytest.mark.needs("ffmpeg")
def test_pictures_without_a_header_are_seen(start, server, tmp_path, form):
    """Sets among the pictures alone: from the first picture on, by who is there and who is late."""
    tags = film(tmp_path / "whole.flv", "160x120")
    odd, url = tmp_path / "odd.flv", server.url(form)
    odd.write_bytes(file.write_flv(without_header(tags, form)))
    own, ffmpeg = start(Own, url), start(Ffmpeg.play, url, to=Path("ff.flv"))
    joined(server, 2)
    late = until_the_late_have_seen(start, own, odd, url)
    assert own.finish() == ffmpeg.finish() == late.finish() == 0
    expected = frame_hashes(tmp_path / "whole.flv") * 30
    skipped = GROUP if form == "slices" else 0  # the first picture shows that there are slices
    for path in (own.file, ffmpeg.folder / "ff.flv"):
        seen = frame_hashes(path)
        first = seen.index(expected[skipped])
        assert first in range(skipped, skipped + 2) and len(seen) > first + GROUP
        assert seen[first:] == expected[skipped:][: len(seen) - first]
    video = [data for kind, _, data in media(late.file) if kind == 9]
    assert is_sequence_header(video[0]) and is_key_frame(video[1])
    seen = frame_hashes(late.file)
    begin = expected.index(seen[0])
    assert not begin % GROUP and seen == expected[begin:][: len(seen)]


@pytest.mark.needs("ffmpeg", "rtmpdump")
def test_a_size_that_changes_is_recorded_and_found(start, tmp_path):
    """Sets of another size among the pictures: in a recording, also for who begins behind them."""
    small, large = film(tmp_path / "a.flv", "160x120"), film(tmp_path / "b.flv", "320x240")
    tags = list(small)
    tags += [Tag(9, 3000 + tag.timestamp, tag.data) for tag in without_header(large, "within")]
    odd, server = tmp_path / "odd.flv", start(Recorder)
    odd.write_bytes(file.write_flv(tags))
    assert start(Publish, odd, server.url("sizes"), "--fast").finish() == 0
    [record] = server.records.rglob("*.flv")
    server.wait_until(lambda: load_index(file.MemoryFile(record.read_bytes())).members.get(
        "headerpositions"), what="the end of the recording")  # fmt: skip
    expected = frame_hashes(tmp_path / "b.flv")
    played = tmp_path / "played.flv"
    url = f"rtmp://127.0.0.1:{server.port}/vod/live/sizes"
    words = [require("rtmpdump", "rtmpdump"), "--rtmp", url, "--start", "4.5", "-o", played]
    done = subprocess.run(words, capture_output=True, timeout=60, text=True)
    assert done.returncode == 0, done.stderr
    assert frame_hashes(played) == expected[GROUP:]


@pytest.mark.needs("ffmpeg")
def test_hevc_by_number_is_seen_by_the_late_too(start, server, tmp_path):
    """As cameras send it: header first, then a key frame, and every picture by a decoder."""
    need_av()
    source = tmp_path / "hevc.flv"
    av("film", "libx265", source, "4")
    tags = [tag for tag in file.read_flv(source.read_bytes())[1] if tag.tag_type == 9]
    numbered = [Tag(9, tag.timestamp, by_number(tag.data)) for tag in tags]
    odd, url = tmp_path / "odd.flv", server.url("hevc")
    odd.write_bytes(file.write_flv([each for each in numbered if each.data]))
    own = start(Own, url)
    joined(server, 1)
    late = until_the_late_have_seen(start, own, odd, url)
    assert own.finish() == late.finish() == 0
    got = media(own.file)[: len(media(odd))]
    assert got == media(odd)[: len(got)]
    video = [data for kind, _, data in media(late.file) if kind == 9]
    assert video[0] == numbered[0].data and is_key_frame(video[1])
    for path in (own.file, late.file):
        codec, found = av("numbers", path)
        shown = [int(number) for number in found.split()]
        assert codec == "hevc" and len(shown) > GROUP and not shown[0] % 30
        assert all(two in (one + 1, 0) for one, two in pairwise(shown))


def by_number(body: bytes) -> bytes:
    """A tag of HEVC with the number 12 in place of its FourCC; nothing for colors and the end."""
    tag = ExVideoTag.parse(body)
    if tag.packet_type in (VideoPacketType.SEQUENCE_END, VideoPacketType.METADATA):
        return b""
    [track] = tag.tracks
    packet = tag.packet_type != VideoPacketType.SEQUENCE_START
    time = track.composition_time.to_bytes(3, "big", signed=True)
    kind = FrameType.KEY if tag.frame_type == FrameType.KEY else FrameType.INTER
    return bytes((kind << 4 | 12, packet)) + time + track.data
