"""Calls at 1 to 1,600: where each kind breaks, and what breaks first.

Own design: the number grows until frames are lost or late.  The cause is judged by what is full:
the reference at the same number (then the load generator was full), a core that other programs
had, the server's descriptors, or its core; a call that cannot be set up lacks ports or was
refused.  The last line of a kind has the first number that was too many.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import bench_rtmfp_players
from bench_calls import WARM_UP
from bench_workers import MANY
from cpu import Server
from gateway import Gateway
from load import SPEEX_8K, Leg, drive
from options import Options
from relay import Relay
from results import LATENCY_LIMIT_MS, Figures

HERE = Path(__file__).resolve().parent
COUNTS, SMALL_COUNTS = (1, 10, 50, 100, 200, 400, 800, 1600), (1, 10)
FULL = 0.9  # of a core, or of the descriptors, from which on that is the cause
DISTURBED = 0.05  # of the window without a core, from which on other programs are the cause
PARTS = 4  # of a run of transcoding.py, of which the last one counts


class Window(NamedTuple):
    """What one window has shown; `files` are open descriptors, `limit` how many there may be."""

    loss: float  # per cent of the frames
    p99_ms: float
    share: float  # of a core
    waiting: float = 0.0
    files: int = 0
    limit: int = 0
    megabytes: float = 0.0
    fault: str = ""  # why calls could not be set up

    @property
    def is_good(self) -> bool:
        """Whether all frames arrived, and in time."""
        return not self.fault and self.loss == 0 and self.p99_ms <= LATENCY_LIMIT_MS


Measure = Callable[[int], Window]


def cause(found: Window, reference: Window | None) -> str:
    """What broke first."""
    if found.fault:
        return found.fault
    if reference is not None and not reference.is_good:
        return "generator"
    if found.waiting >= DISTURBED:
        return "machine"
    if found.limit and found.files >= FULL * found.limit:
        return "descriptors"
    if found.share >= FULL:
        return "CPU"
    return "loss" if found.loss else "delay"


def line(subject: str, load: str, count: int, found: Window, reference: Window | None) -> Figures:
    """A row; `ratio` compares the CPU time with that of the reference."""
    figures = {
        "loss %": found.loss,
        "p99 ms": found.p99_ms,
        "share %": 100 * found.share,
        "ratio": found.share / reference.share if reference and reference.share else None,
        "waiting %": 100 * found.waiting,
        "files": float(found.files),
        "MB": found.megabytes,
    }
    return Figures(subject, load, count, figures, void=not found.is_good)


def climb(
    load: str, counts: Sequence[int], ours: Measure, reference: tuple[str, Measure] | None
) -> Iterator[Figures]:
    """The rows of one kind until it breaks, and the line that tells by what."""
    for count in counts:
        beside = None
        if reference is not None:
            beside = reference[1](count)
            yield line(reference[0], load, count, beside, None)
        found = ours(count)
        yield line("siprtmp", load, count, found, beside)
        if not found.is_good:
            yield line("siprtmp", f"{load}: {cause(found, beside)}", count, found, beside)
            return


def calls(
    start: Callable[[], Server], legs: Callable[[Server], list[Leg]], seconds: float
) -> Window:
    """A window of calls with Speex at 8 kHz, each way, evenly spread."""
    with start() as server:
        try:
            made = legs(server)
        except (OSError, RuntimeError, AssertionError):
            return Window(100.0, 0.0, 0.0, files=server.open_files(), fault="ports")
        meter = server.meter()
        tally = drive(made, seconds, "spread", meter.window, warm_up=WARM_UP)
        files, megabytes, limit = server.open_files(), server.resident_mb(), most_files(server)
        for leg in made:
            leg.close()
    usage = meter.usage
    return Window(
        100 * tally.lost / max(tally.sent, 1),
        tally.percentile_ms(99),
        usage.share,
        usage.waited / usage.seconds,
        files,
        limit,
        megabytes,
    )


def most_files(server: Server) -> int:
    """How many descriptors the process may have."""
    text = Path(f"/proc/{server.process.pid}/limits").read_text()
    (words,) = (row.split() for row in text.splitlines() if row.startswith("Max open files"))
    return int(words[3])


def players(count: int, by_rtmfp: bool, options: Options) -> Window:
    """A window of players of sound."""
    usage, tally = bench_rtmfp_players.measure(count, by_rtmfp, options)
    loss = 100 * tally.lost / max(tally.sent, 1)
    return Window(loss, tally.percentile_ms(99), usage.share, usage.waited / usage.seconds)


def transcoded(count: int, options: Options) -> Window:
    """Calls of AAC and Opus by transcoding.py, without a network: the delay is that of the loop."""
    words = [
        "taskset",
        "-c",
        str(options.server_core),
        sys.executable,
        str(HERE / "transcoding.py"),
    ]
    words += ["--calls", str(count), "--seconds", str(PARTS * options.seconds)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    _, share, *_, p99, _, megabytes = done.stdout.splitlines()[-1].split()
    return Window(0.0, float(p99), float(share) / 100, megabytes=float(megabytes))


def rows(options: Options) -> Iterator[Figures]:
    """Plain calls beside the relay, players by RTMFP beside RTMP, and transcoded calls."""
    core, seconds = options.server_core, options.seconds
    counts = SMALL_COUNTS if options.small else COUNTS

    def relayed(count: int) -> Window:
        def legs(server: Server) -> list[Leg]:
            assert isinstance(server, Relay)
            return server.legs(SPEEX_8K)

        return calls(lambda: Relay(count, core), legs, seconds)

    def plain(count: int) -> Window:
        def legs(server: Server) -> list[Leg]:
            assert isinstance(server, Gateway)
            return server.call_legs(count, SPEEX_8K)

        return calls(lambda: Gateway(core, *MANY), legs, seconds)

    yield from climb("plain", counts, plain, ("relay", relayed))
    few = tuple(n for n in counts if n <= bench_rtmfp_players.MOST)
    yield from climb(
        "RTMFP players",
        few,
        lambda count: players(count, True, options),
        ("siprtmp, RTMP", lambda count: players(count, False, options)),
    )
    yield from climb("transcoded", counts, lambda count: transcoded(count, options), None)
