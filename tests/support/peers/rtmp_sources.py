"""One recording for each codec that RTMP carries, from the corpus or made on the spot."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.peers.process import require
from support.peers.rtmp_peers import AV_PEER

# What can be made by ffmpeg 8 within PyAV, by its encoders.
ENCODED = {
    "HEVC + Opus": ("libx265", "libopus"),
    "AV1 + Opus": ("libsvtav1", "libopus"),
    "VP9 + FLAC": ("libvpx-vp9", "flac"),
    "H.264 + AC-3": ("libx264", "ac3"),
    "H.264 + E-AC-3": ("libx264", "eac3"),
    "two video, two audio": ("libx265", "libsvtav1", "libopus", "flac"),
}
RECORDED = {
    "H.264 + Speex": "h264_slices4_speex16k",
    "FLV1 (Sorenson)": "video_sorenson_h263",
    "FLV1 + MP3": "gnash_square_h263_mp3",
    "VP6": "red5_vp6",
    "Screen video": "video_screen_v1",
    "G.711 A-law": "audio_alaw8k",
    "MP3": "audio_mp3_22k",
    "Nellymoser": "audio_nelly16k",
}
# By ffmpeg 5.1: with B-frames, cut, since what it copies from another muxer differs a little.
AAC = ("-i", "h264_720p30_bf3_aac44k_30s.flv", "-t", "3", "-c", "copy")
ULAW = ("-f", "lavfi", "-i", "sine=frequency=440", "-t", "3", "-c:a", "pcm_mulaw", "-ar", "8000")
MADE = {"H.264 + AAC": AAC, "G.711 mu-law": ULAW}
VP8 = "VP8"  # ffmpeg encodes it and has no FLV for it: its frames, and tags of ours
CODECS = (*MADE, *RECORDED, *ENCODED, VP8)
# What a publisher cannot send: 5.1 knows no enhanced RTMP, and PyAV's 8 dies at Speex.
UNABLE = {"ffmpeg 5.1": (*ENCODED, VP8), "ffmpeg 8 (PyAV)": ("H.264 + Speex", VP8)}


def takes(publisher: str, codec: str) -> bool:
    """Whether a publisher can send this codec at all."""
    return codec not in UNABLE.get(publisher, ())


def need_av() -> None:
    """Skip without PyAV, or fail where CI is set."""
    if importlib.util.find_spec("av") is None:
        missing = "PyAV is not installed: pip install .[test]"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


def av(*words: object) -> list[str]:
    """Run a command of the PyAV peer; what it printed."""
    done = subprocess.run(
        [sys.executable, str(AV_PEER), *map(str, words)],
        capture_output=True,
        timeout=600,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def encode(path: Path, *codecs: str) -> None:
    """Two seconds by PyAV's encoders.

    It is a copy of them, since what ffmpeg copies differs a little from what it encodes, in what
    it knows of the colors for example; a copy of a copy is the same.
    """
    need_av()
    encoded = path.with_name(f"{path.stem}-encoded.flv")
    av("encode", encoded, *codecs)
    av("copy", encoded, path, 0)


class Sources:
    """The file of each codec, made when first asked for."""

    def __init__(self, folder: Path, corpus: Path) -> None:
        """`folder` takes what has to be made."""
        self.folder, self.corpus = folder, corpus

    def __call__(self, codec: str) -> Path:
        """The FLV file."""
        if codec in RECORDED:
            return self.corpus / "flv" / f"{RECORDED[codec]}.flv"
        path = self.folder / f"{CODECS.index(codec)}.flv"
        if not path.exists():
            self._make(codec, path)
        return path

    def _make(self, codec: str, path: Path) -> None:
        if codec in MADE:
            words = [require("ffmpeg", "ffmpeg"), "-nostdin", "-loglevel", "error", *MADE[codec]]
            subprocess.run([*words, path], cwd=self.corpus / "flv", check=True, timeout=600)
        elif codec == VP8:
            need_av()
            av("vp8", path)
        else:
            encode(path, *ENCODED[codec])
