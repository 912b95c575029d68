"""What conform finds in FLV that ffmpeg writes: the table of docs/6-conformance/flv-peers.md."""

import re
from pathlib import Path

import pytest
from support.conform import unmet
from support.peers.peers import AAC_H264, Ffmpeg

from rtclab.conform.flv import SUITE
from rtclab.conform.runner import run

PAGE = Path(__file__).resolve().parents[3] / "docs" / "6-conformance" / "flv-peers.md"
ROWS = re.findall(r"^\| `(.+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
SOUND = ("-f", "lavfi", "-i", "sine=frequency=440")
PICTURE = ("-f", "lavfi", "-i", "testsrc=size=320x240:rate=12")


@pytest.mark.needs("ffmpeg")
@pytest.mark.parametrize(("options", "said"), ROWS)
def test_what_ffmpeg_writes(start, options, said):
    words = AAC_H264 if "libx264" in options else options.split()
    source = (*SOUND, *PICTURE) if "libx264" in options else SOUND
    writer = start(Ffmpeg, *source, "-t", "3", *words, Path("it.flv"))
    assert writer.finish() == 0
    results = run(SUITE, str(writer.folder / "it.flv"), SUITE.cases, 20)
    assert set(unmet(results)) == set(re.findall(r"`(\w+)`", said))
