"""The RTMP and RTMFP programs of examples/, as somebody would run them, one behind the other."""

import re
import sys
from pathlib import Path

from support.peers.process import Process, free_port

from rtmplite import Tag, TagType, metadata, read_flv, write_flv

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


class Example(Process):
    """One of the programs, ready when it says so."""

    def __init__(self, folder, program, *words, ready):
        super().__init__(folder, [sys.executable, EXAMPLES / program, *map(str, words)])
        self.ready = ready

    def is_ready(self):
        return self.ready in self.output

    def ends_well(self):
        assert self.finish() == 0, self.tail()
        return self.output


def film():
    """Half a second of pictures and sound, two key frames, and a description."""
    yield Tag(TagType.SCRIPT, 0, metadata.build(width=320, height=240))
    yield Tag(TagType.VIDEO, 0, bytes.fromhex("1700000000") + b"avcC")
    for at in range(0, 500, 20):
        first = b"\x17" if at % 240 == 0 else b"\x27"
        yield Tag(TagType.VIDEO, at, first + b"\1\0\0\0picture")
        yield Tag(TagType.AUDIO, at, b"\xb2sound")


def media(tags):
    """Pictures and sound; flows of RTMFP keep the order of each, not that between them."""
    tags = list(tags)
    kinds = TagType.VIDEO, TagType.AUDIO
    return [[tag.data for tag in tags if tag.tag_type == kind] for kind in kinds]


def test_all_programs_of_the_folder_are_here():
    tested = set(re.findall(r'"(rt\w+\.py)"', Path(__file__).read_text()))
    programs = [*EXAMPLES.glob("rtm*.py")]
    assert {path.name for path in programs} == tested
    for path in programs:
        assert len(path.read_text().splitlines()) < 40, path.name


def test_a_film_goes_through_all_of_them(start, tmp_path):
    """From RTMP over the relay to RTMFP; nothing is lost, and only the description is another."""
    path = tmp_path / "film.flv"
    path.write_bytes(write_flv(film()))
    server = start(Example, "rtmp_viewers.py", "127.0.0.1", port := free_port(), ready="ready")
    there = f"127.0.0.1:{port}/live"
    words = f"rtmfp://{there}/marked", "marked.flv"
    player = start(Example, "rtmfp_play.py", *words, ready="playing marked")
    words = f"rtmp://{there}/plain", f"rtmfp://{there}/marked", "seen by us"
    relay = start(Example, "rtmp_watermark.py", *words, ready="relaying")
    words = path, f"rtmp://{there}/plain"
    publisher = start(Example, "rtmp_publish.py", *words, ready="publishing")
    assert "0.5 s published" in publisher.ends_well()
    relay.ends_well()
    assert "0.5 s" in player.ends_well()
    _, tags = read_flv((player.folder / "marked.flv").read_bytes())
    assert media(tags) == media(film())
    said = [metadata.read(tag.data) or {} for tag in tags if tag.tag_type == TagType.SCRIPT]
    assert ("seen by us", 320.0) in [(each.get("watermark"), each.get("width")) for each in said]
    server.child.terminate()
    server.ends_well()
    for name in ("plain", "marked"):
        assert f"{name}: on air" in server.output
        assert f"{name}: 1 viewers, 1 at most" in server.output
        assert f"{name}: 0 viewers, 1 at most" in server.output
