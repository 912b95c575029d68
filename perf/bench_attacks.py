"""What honest peers notice of a flood: ten calls and a pair of ffmpegs, strangers beside them.

The first row is without a flood; compare with that. Each row has a gateway of its own.
"""

import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Self

from gateway import Gateway
from load import SPEEX_8K, WARM_UP, drive
from options import Options
from results import AttackRow

from p2psip.sip.auth import ha1

CALLS = 10
RATE = 2000.0  # a second
RATES = {"none": 0.0, "slow": RATE / 10}  # those are 50 kB each
RATES |= {"crlf": 1e6, "pings": 2e5, "rtmp": 1e5}  # more than one connection takes
KINDS = ("none", "options", "invite", "register", "bye", "garbage", "passwords", "slow")
KINDS += ("tcp", "http", "crlf", "stream", "pings", "rtmp", "get")
HASHES = ("SHA-256", "MD5")
FLOOD = Path(__file__).resolve().parent / "flood.py"
PUBLISH = (
    "ffmpeg -v error -re -f lavfi -i testsrc=size=160x120:rate=50 -f lavfi -i sine"
    " -c:v flv1 -g 50 -c:a aac -flush_packets 1 -max_interleave_delta 100000 -f flv"
)
PLAY = "ffmpeg -v error -fflags nobuffer -probesize 5000 -analyzeduration 300000 -i"
LINES = "-map 0 -c copy -flush_packets 1 -max_interleave_delta 1 -f framecrc -"
_PACKET = re.compile(rb"(\d), +(-?\d+), +(-?\d+), +(\d+),")


class Pair:
    """ffmpeg publishes sound and picture in real time, and ffmpeg plays them."""

    def __init__(self, url: str) -> None:
        """Start both; packets are noted as the player writes them."""
        self._publisher = subprocess.Popen([*PUBLISH.split(), url.replace("//", "//alice:secret@")])
        self._player = subprocess.Popen(
            [*PLAY.split(), url, *LINES.split()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._came: list[tuple[int, float, int, int]] = []  # stream, when, dts, duration in ms
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, seconds: float = 15.0) -> None:
        """Until something has been played."""
        end = time.monotonic() + seconds
        while len(self._came) < 50:
            if time.monotonic() > end:
                raise RuntimeError("the ffmpeg pair does not play")
            time.sleep(0.05)

    def _read(self) -> None:
        assert self._player.stdout is not None
        for line in self._player.stdout:
            if found := _PACKET.match(line):
                stream, dts, _, duration = map(int, found.groups())
                self._came.append((stream, time.monotonic(), dts, duration))

    def judge(self, begin: float, end: float) -> tuple[int, int, float]:
        """Packets that came from `begin` to `end`, those lost, and the 99th percentile late, ms.

        Late against the earliest of its stream; lost is where the times of a stream leap.
        """
        came = lost = 0
        late: list[float] = []
        for stream in (0, 1):
            rows = [row for row in list(self._came) if row[0] == stream and begin <= row[1] < end]
            if not rows:
                continue
            earliest = min(at * 1000 - dts for _, at, dts, _ in rows)
            late += [at * 1000 - dts - earliest for _, at, dts, _ in rows]
            came += len(rows)
            usual = sorted(b[2] - a[2] for a, b in pairwise(rows))
            step = max(1, usual[len(usual) // 2] if usual else 1)
            for a, b in pairwise(rows):
                lost += max(0, round((b[2] - a[2]) / step) - 1)
        late.sort()
        return came, lost, late[min(int(len(late) * 0.99), len(late) - 1)] if late else 0.0

    def __enter__(self) -> Self:
        """They run since they were made."""
        return self

    def __exit__(self, *_: object) -> None:
        """End both."""
        for each in (self._player, self._publisher):
            each.kill()
            each.wait()


def users(folder: str) -> str:
    """A users file with alice in it."""
    file = Path(folder) / "users"
    realm = "127.0.0.1"
    lines = [f"alice:{realm}:{ha1('alice', realm, 'secret', name)}\n" for name in HASHES]
    file.write_text("".join(lines))
    return str(file)


def measure(kind: str, options: Options, calls: int = CALLS, pair: bool = True) -> AttackRow:
    """One row: set up the honest, let loose the flood, and see."""
    rate = RATES.get(kind, RATE)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        given = ("--http", "127.0.0.1:0", "--ws", "127.0.0.1:0")
        given += ("--users", users(folder), "--log-level", "error")
        gateway = stack.enter_context(Gateway(options.server_core, *given, profile=options.profile))
        ffmpegs = stack.enter_context(Pair(gateway.url("pair"))) if pair else None
        if ffmpegs:
            ffmpegs.wait()
        legs = gateway.call_legs(calls, SPEEX_8K)
        memory, times = [gateway.resident_mb()], [0.0, 0.0]
        meter, flood = gateway.meter(), None
        if rate:
            homes = dict.fromkeys(("http", "get"), gateway.http)
            homes |= {"pings": gateway.ws, "rtmp": gateway.rtmp}
            last = str(WARM_UP + options.seconds + 0.5)
            argv = [sys.executable, str(FLOOD), kind, homes.get(kind, gateway.sip), str(rate), last]
            flood = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
            assert flood.stdout is not None
            if flood.stdout.readline() != "ready\n":
                raise RuntimeError(f"the flood of {kind} did not begin")

        def window(begins: bool) -> None:
            meter.window(begins)
            times[0 if begins else 1] = time.monotonic()
            memory.append(gateway.resident_mb())

        tally = drive(legs, options.seconds, "bunched", window)
        sent = answered = 0
        if flood is not None:
            said, _ = flood.communicate(timeout=30)
            sent, answered = map(int, said.split())
        memory.append(gateway.resident_mb())
        came, lost, late = ffmpegs.judge(*times) if ffmpegs else (0, 0, 0.0)
        for leg in legs:
            leg.close()
    return AttackRow(
        attack=kind,
        rate=rate,
        sent=sent,
        answered=answered,
        calls=calls,
        frames=tally.sent,
        lost=tally.lost,
        p50_ms=tally.percentile_ms(50),
        p99_ms=tally.percentile_ms(99),
        max_ms=tally.percentile_ms(100),
        pair_packets=came,
        pair_lost=lost,
        pair_p99_ms=late,
        share=meter.usage.share,
        waiting=meter.usage.waited / meter.usage.seconds,
        memory=tuple(memory),
    )


def rows(options: Options) -> Iterator[AttackRow]:
    """A row without a flood, then one for each kind, or those of `--only`."""
    for kind in options.only or KINDS:
        yield measure(kind, options)
