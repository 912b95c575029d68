"""Peers that publish and play by WebRTC: aiortc in a process of its own, and a page in Chromium."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from support.gateway.gateway import Gateway
from support.limits import Clock
from support.peers.browser_peer import FOLDER, Page, page
from support.peers.numbered_frames import source
from support.peers.process import Process, require

AIORTC = Path(__file__).with_name("aiortc_ends")
PAGE = FOLDER / "webrtc.html"
WEBRTC = ("--sip", "off", "--webrtc", "127.0.0.1:0")
ENOUGH = 20  # pictures in a row
AT_ONCE = 5.0  # s, much more than a browser with a core takes to connect


def endpoint(gateway: Gateway, name: str, kind: str) -> str:
    """Where browsers publish ("whip") or play ("whep") a stream."""
    return f"http://{gateway.listeners['http']}/live/{name}/{kind}"


def rising(numbers: Sequence[int]) -> int:
    """How many pictures at the end show a number that is higher than the one before."""
    count = 0
    for before, after in pairwise(numbers):
        count = count + 1 if before < after <= before + 8 else 0
    return count


def hears(pitches: Sequence[float], tone: float) -> bool:
    """Whether the last pitch is that of a tone."""
    return bool(pitches) and abs(pitches[-1] - tone) < 10


class Seen(Process):
    """A process that prints lines of JSON about what it plays."""

    def told(self, what: str) -> list[Any]:
        """What it has said of this so far."""
        lines = [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]
        return [line[what] for line in lines if what in line]


class WebRtcPeer(Seen):
    """aiortc, or `rtmp` for ffmpeg 8 playing: `webrtc_peer.py` says what the words mean."""

    def __init__(self, folder: Path, *words: str) -> None:
        """Begin at once."""
        super().__init__(folder, [sys.executable, str(AIORTC / "webrtc_peer.py"), *words])


class WebRtcServer(Seen):
    """aiortc as a server of WHEP and WHIP: `webrtc_server.py` says what it does."""

    def __init__(self, folder: Path) -> None:
        """On a free loopback port."""
        super().__init__(folder, [sys.executable, str(AIORTC / "webrtc_server.py")])

    @property
    def address(self) -> str:
        """Where it listens, once it says so."""
        self.wait_until(lambda: self.told("listens"), what="the address of a server")
        return f"127.0.0.1:{self.told('listens')[0]}"


class NumberedPublisher(Process):
    """ffmpeg as OBS is set at first, without its B-frames: numbered frames, and a tone in AAC."""

    def __init__(
        self, folder: Path, url: str, tone: int = 660, audio: str = "aac", b_frames: int = 0
    ) -> None:
        """A key frame each second, and no end."""
        words = ["-nostdin", "-loglevel", "error", "-re", *source(), "-re"]
        words += ["-f", "lavfi", "-i", f"sine=frequency={tone}:sample_rate=48000"]
        words += ["-c:v", "libx264", "-preset", "ultrafast", "-bf", str(b_frames), "-g", "15"]
        words += ["-pix_fmt", "yuv420p", "-c:a", audio, "-f", "flv", url]
        super().__init__(folder, [require("ffmpeg", "ffmpeg"), *words])


class WebRtcPage(Page):
    """Serves the page that publishes and plays; keeps what it says."""

    def __init__(self) -> None:
        """On a free loopback port."""
        super().__init__()
        self.files = {"/": (PAGE.read_bytes(), "text/html")}

    def at(self, **asked: str) -> str:
        """The page with these words: whip or whep, and codec or token."""
        return f"http://127.0.0.1:{self.server_address[1]}/?{urlencode(asked)}"

    def plays(self, tone: float) -> bool:
        """Whether the numbers in what it plays rise, and it hears the tone."""
        is_seen = rising(self.last.get("numbers", ())) >= ENOUGH
        return is_seen and hears([self.last.get("pitch", 0)], tone)


@contextmanager
def webrtc_page() -> Iterator[WebRtcPage]:
    """A running server of the page.

    Its browser connects at once, but where it, or the gateway, had no core for that.
    """
    clock = Clock()
    with page(WebRtcPage, PAGE) as server:
        yield server
        if server.last.get("tries", 0) > 1:
            assert clock.wall - clock.own() > AT_ONCE, server.last
