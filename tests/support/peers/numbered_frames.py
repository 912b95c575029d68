"""Pictures that carry their own number, as a strip of black and white columns."""

import subprocess
from pathlib import Path

from support.peers.process import require

WIDTH, HEIGHT, BITS = 320, 240, 16
COLUMN = WIDTH // BITS


def source(rate: int = 15, first: int = 0) -> list[str]:
    """The words for ffmpeg that make these pictures; column k is bit k of the number."""
    white = f"mod(floor((N+{first})/pow(2\\,floor(X/{COLUMN})))\\,2)"
    picture = f"geq=lum='if({white}\\,235\\,16)':cb=128:cr=128"
    return ["-f", "lavfi", "-i", f"color=size={WIDTH}x{HEIGHT}:rate={rate},{picture}"]


def film(path: Path, first: int, seconds: int = 60, tone: int = 0) -> Path:
    """A file of such pictures, from the number `first` on, with a tone if it has a frequency."""
    words = ["-nostdin", "-loglevel", "error", *source(first=first)]
    if tone:
        words += ["-f", "lavfi", "-i", f"sine=frequency={tone}:sample_rate=48000"]
    words += ["-t", str(seconds)]
    words += ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", path]
    subprocess.run([require("ffmpeg", "ffmpeg"), *words], check=True)
    return path


def numbers(path: Path, part: str = "") -> list[int]:
    """The number of each picture of a recording, in the order of decoding.

    `part` are filters of ffmpeg that leave the part of the picture with the number.
    """
    program = require("ffmpeg", "ffmpeg")
    words = ["-nostdin", "-loglevel", "error", "-i", path, "-map", "0:v", "-vsync", "passthrough"]
    words += ["-vf", f"{part}scale={WIDTH}:{HEIGHT}", "-pix_fmt", "gray", "-f", "rawvideo", "-"]
    done = subprocess.run([program, *words], capture_output=True, timeout=600)
    assert done.returncode == 0, f"ffmpeg cannot decode {path.name}: {done.stderr.decode()}"
    size, row = WIDTH * HEIGHT, WIDTH * (HEIGHT // 2)
    found = []
    for at in range(0, len(done.stdout), size):
        middles = (done.stdout[at + row + COLUMN * bit + COLUMN // 2] for bit in range(BITS))
        found.append(sum((light > 125) << bit for bit, light in enumerate(middles)))
    return found
