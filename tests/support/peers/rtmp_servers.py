"""Our RTMP server and its command line as processes, for tests of transports and relays."""

import re
import sys
from pathlib import Path

from support.peers.process import PATIENCE, Process

from rtmplite.flv import file

JOINED = re.compile(r"^\S+Z \S+-start [0-9a-f]+ (?:playing|publishing) ", re.MULTILINE)

Tags = list[tuple[int, int, bytes]]


class Tool(Process):
    """`python -m rtmplite`, any command."""

    def __init__(self, folder: Path, *words: str | Path) -> None:
        """`words` as on the command line."""
        super().__init__(folder, [sys.executable, "-u", "-m", "rtmplite", *words])


class Player(Tool):
    """Our own player, whose file has every message as it came."""

    def __init__(self, folder: Path, url: str, *words: str | Path) -> None:
        """Play `url` to the end."""
        self.file = folder / "played.flv"
        super().__init__(folder, "dump", url, "-o", self.file, *words)


class Server(Tool):
    """`python -m rtmplite serve` with plain RTMP on a free port, and what `words` ask for."""

    def __init__(self, folder: Path, *words: str | Path, rtmp: str = "127.0.0.1:0") -> None:
        """`rtmp` may name a port."""
        super().__init__(folder, "serve", "--rtmp", rtmp, *words)

    def is_ready(self) -> object:
        """Truthy once it said so."""
        return re.search("^ready .*\n", self.output, re.MULTILINE)

    def url(self, name: str, scheme: str = "rtmp") -> str:
        """Where `name` is published and played, by any of its listeners."""
        found = re.search(rf"^ready .*\b{scheme}=(\S+)", self.output, re.MULTILINE)
        assert found, self.output
        return f"{scheme}://{found[1]}/live/{name}"

    def joined(self, count: int) -> None:
        """Wait until so many have begun to play or publish."""
        what = f"{count} streams"
        self.wait_until(lambda: len(JOINED.findall(self.output)) >= count, what=what)

    def says(self, words: str, timeout: float = PATIENCE) -> None:
        """Wait until it has printed this."""
        self.wait_until(lambda: words in self.output, what=repr(words), timeout=timeout)


def media(path: Path) -> Tags:
    """Type, time and body of the audio and video tags of a file, in order."""
    tags = file.read_flv(path.read_bytes())[1]
    return [(tag.tag_type, tag.timestamp, tag.data) for tag in tags if tag.tag_type != 18]


def without_end(tags: Tags) -> Tags:
    """Leave out the mark at the end of H.264, five bytes that librtmp throws away."""
    return [tag for tag in tags if not (tag[0] == 9 and len(tag[2]) <= 5)]
