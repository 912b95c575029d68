"""Publishing a file: once, over and over, and what it says of a file that is none."""

import pytest

from rtmplite.cli import publish
from rtmplite.errors import LocalError
from rtmplite.flv import file
from rtmplite.flv.tag import Tag, TagType


def test_times_go_on_from_round_to_round():
    """The step between rounds is that between the last two tags."""
    tags = [Tag(TagType.AUDIO, time, b"\xb2") for time in (0, 0, 20, 40, 60)]
    times = [time for time, _ in publish._rounds(tags, 3)]
    assert times == [0, 0, 20, 40, 60, 80, 80, 100, 120, 140, 160, 160, 180, 200, 220]
    assert [time for time, _ in publish._rounds(tags[:1], 3)] == [0, 40, 80]
    endless = publish._rounds(tags, publish.FOREVER)
    assert [next(endless)[0] for _ in range(50)][-1] == 9 * 80 + 60


def test_files_that_are_none(tmp_path):
    """Empty, or something else."""
    path = tmp_path / "x.flv"
    path.write_bytes(file.write_flv([]))
    with pytest.raises(LocalError, match="empty"):
        publish.load(path)
    path.write_bytes(b"no")
    with pytest.raises(LocalError, match=r"x\.flv: "):
        publish.load(path)


def test_script_data_in_amf3_is_sent_as_every_server_takes_it(tmp_path):
    """Covers RTMP Errata §8.1.1: as type 18, and not at all in a format that nobody knows."""
    path = tmp_path / "x.flv"
    path.write_bytes(
        file.write_flv([Tag(15, 0, b"\0said"), Tag(15, 0, b"\1said"), Tag(8, 0, b"\xb2")])
    )
    assert publish.load(path) == [Tag(18, 0, b"said"), Tag(8, 0, b"\xb2")]
