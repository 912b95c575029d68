"""The programs that publish and play FLV without a change: every tag, whatever is in it.

A publisher is made as `(folder, FLV file, URL)` and ends with its file; a player as
`(folder, URL)`, writes `file` and ends with the stream.  `MUXERS`, `as_sent` and `as_stored` say
exactly where what a peer sends or stores differs from what it was given.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from support.peers.process import Process, require
from support.peers.rtmp_servers import Player, Tags, Tool

from rtmplite.flv import file
from rtmplite.flv.tag import TagType

AV_PEER = Path(__file__).with_name("av_peer.py")
GST = ("gst-launch-1.0", "gstreamer1.0-tools gstreamer1.0-plugins-good gstreamer1.0-plugins-bad")
NOBODY = "65534"  # the user and group without rights


class FfmpegPublisher(Process):
    """ffmpeg 5.1 copying: libavformat's muxer and its own RTMP."""

    def __init__(self, folder: Path, source: Path, url: str, *options: str) -> None:
        """As fast as it can; `options` go before the URL."""
        words = ["-nostdin", "-loglevel", "info", "-i", source, "-map", "0", "-c", "copy"]
        super().__init__(folder, [require("ffmpeg", "ffmpeg"), *words, "-f", "flv", *options, url])


class LibrtmpPublisher(Process):
    """librtmp, through GStreamer's rtmpsink.

    The file is one buffer, for librtmp 2.4 writes beyond its memory where a tag is cut.
    """

    def __init__(self, folder: Path, source: Path, url: str, options: str = "") -> None:
        """`options` as librtmp has them after a URL."""
        words = ["filesrc", f"location={source}", "blocksize=16777216", "!", "rtmpsink"]
        location = f"location={url} {options}".rstrip()
        super().__init__(folder, [require(*GST), "-q", *words, location])


class Rtmp2Publisher(Process):
    """GStreamer's rtmp2sink, given one tag at a time, as it wants them."""

    def __init__(self, folder: Path, source: Path, url: str) -> None:
        """The tags lie beside each other in `folder`."""
        super().__init__(folder)
        raw = source.read_bytes()
        start = file.first_tag(raw)
        parts, at = [raw[:start]], start
        while at < len(raw):
            end = at + 11 + int.from_bytes(raw[at + 1 : at + 4], "big") + 4
            parts.append(raw[at:end])
            at = end
        for number, part in enumerate(parts):
            (folder / f"tag{number:06}").write_bytes(part)
        words = ["multifilesrc", f"location={folder}/tag%06d", "caps=video/x-flv", "!", "rtmp2sink"]
        self.argv = [require(*GST), "-q", *words, f"location={url}"]


class OwnPublisher(Tool):
    """`python -m rtmplite publish`."""

    def __init__(self, folder: Path, source: Path, url: str, speed: str = "0") -> None:
        """As fast as the server takes it, or at the `speed` 1."""
        super().__init__(folder, "publish", *(["--fast"] if speed == "0" else []), source, url)


class PyavPublisher(Process):
    """ffmpeg 8 copying, which knows enhanced RTMP."""

    def __init__(self, folder: Path, source: Path, url: str, speed: str = "0") -> None:
        """As fast as it can, or at a `speed`."""
        words = [sys.executable, "-u", AV_PEER, "copy", source, url, speed]
        super().__init__(folder, words)


class PyavPlayer(Process):
    """ffmpeg 8 playing, which says at connect which codecs of enhanced RTMP it knows."""

    def __init__(self, folder: Path, url: str, file: Path) -> None:
        """To the end of the stream."""
        super().__init__(folder, [sys.executable, "-u", AV_PEER, "copy", url, file, "0"])


class FfmpegPlayer(Process):
    """ffmpeg 5.1, storing what its RTMP gives to its demuxer, byte for byte."""

    def __init__(self, folder: Path, url: str, *options: str) -> None:
        """`options` go before the URL."""
        self.file = folder / "played.flv"
        words = ["-nostdin", "-loglevel", "info", "-y", "-f", "data", *options, "-i", url]
        program = require("ffmpeg", "ffmpeg")
        super().__init__(
            folder, [program, *words, "-map", "0", "-c", "copy", "-f", "data", self.file]
        )


class RtmpdumpPlayer(Process):
    """rtmpdump, playing live."""

    def __init__(self, folder: Path, url: str, *options: str) -> None:
        """`options` are more of its own."""
        self.file = folder / "played.flv"
        program = require("rtmpdump", "rtmpdump")
        super().__init__(folder, [program, "--live", "-r", url, "-o", self.file, *options])


class Rtmp2Player(Process):
    """GStreamer's rtmp2src."""

    def __init__(self, folder: Path, url: str) -> None:
        """To the end."""
        self.file = folder / "played.flv"
        words = ["rtmp2src", f"location={url}", "!", "filesink", f"location={self.file}"]
        super().__init__(folder, [require(*GST), "-q", *words])


class Vlc(Process):
    """VLC 3 without a window; what it writes to its standard output is `file`.

    It refuses to be root, so that it becomes nobody, who could not open a file of ours.
    """

    def __init__(self, folder: Path, url: str, *options: str) -> None:
        """Without `options` it stores what its access module reads, byte for byte."""
        self.file = folder / "played.flv"
        become = [require("setpriv", "util-linux"), "--reuid", NOBODY, "--regid", NOBODY]
        words = [*become, "--clear-groups"] if os.geteuid() == 0 else []
        words += [require("cvlc", "vlc-bin vlc-plugin-base"), "-I", "dummy", "--no-media-library"]
        options = options or ("--demux", "demuxdump", "--demuxdump-file", "-")
        words += ["--play-and-exit", *options, url, "vlc://quit"]
        shell = 'cd / && HOME=/nonexistent exec "$@" > "$FILE"'
        super().__init__(folder, ["env", f"FILE={self.file}", "sh", "-c", shell, "vlc", *words])


class OwnPlayer(Player):
    """`python -m rtmplite dump`."""

    def __init__(self, folder: Path, url: str) -> None:
        """To the end."""
        super().__init__(folder, url)


Publisher = Callable[[Path, Path, str], Process]

PUBLISHERS: dict[str, Publisher] = {
    "ffmpeg 5.1": FfmpegPublisher,
    "librtmp (rtmpsink)": LibrtmpPublisher,
    "GStreamer rtmp2sink": Rtmp2Publisher,
    "ffmpeg 8 (PyAV)": PyavPublisher,
    "rtmplite publish": OwnPublisher,
}
PLAYERS: dict[str, Callable[[Path, str], Process]] = {
    "ffmpeg 5.1": FfmpegPlayer,
    "librtmp (rtmpdump)": RtmpdumpPlayer,
    "GStreamer rtmp2src": Rtmp2Player,
    "VLC 3": Vlc,
    "rtmplite dump": OwnPlayer,
}
MUXERS = ("ffmpeg 5.1", "ffmpeg 8 (PyAV)")  # the metadata that they send is their own
# rtmpdump says 2 if it was promised a longer duration, be it by a few ms.
GOOD_ENDS = {name: (0, 2) if "rtmpdump" in name else (0,) for name in PLAYERS}


def as_sent(publisher: str, tags: Tags) -> Tags:
    """What a publisher sends of `tags`, metadata aside: ffmpeg 5.1 begins at 0."""
    if publisher != "ffmpeg 5.1" or not tags:
        return tags
    start = min(time for _, time, _ in tags)
    return [(kind, time - start, body) for kind, time, body in tags]


def as_stored(player: str, tags: Tags) -> list[Tags]:
    """What a player may store of `tags`.

    librtmp and rtmp2src throw away audio of no more than one byte and video of no more than five;
    rtmp2src may drop the last message, which it has not passed on when the stream ends.
    """
    if player not in ("librtmp (rtmpdump)", "GStreamer rtmp2src"):
        return [tags]
    least = {TagType.AUDIO: 1, TagType.VIDEO: 5}
    kept = [tag for tag in tags if len(tag[2]) > least.get(TagType(tag[0]), 0)]
    return [kept, kept[:-1]] if player == "GStreamer rtmp2src" else [kept]
