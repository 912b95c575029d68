"""Reference for calls: a C relay that makes a call's system calls and does nothing else."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from cpu import Meter, Server, Usage
from load import SPEEX_8K, SPEEX_16K, Arrivals, Leg, Phone, RelayClient, Tally, drive
from options import Options
from results import Row

HERE = Path(__file__).resolve().parent
LOADS = {"speex 8 kHz": SPEEX_8K, "speex 16 kHz": SPEEX_16K}


def build() -> Path:
    """Compile the relay when its source is newer."""
    source, program = HERE / "reference_relay.c", HERE / "build" / "reference_relay"
    if not program.is_file() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-o", program, source], check=True)
    return program


def legs(ready: str, frame: bytes) -> list[Leg]:
    """Both directions of every call that the ready line names."""
    words = dict(word.split("=") for word in ready.split()[1:])
    made: list[Leg] = []
    for port in words["udp"].split(","):
        made.append(Phone(("127.0.0.1", int(port)), frame))
        made.append(RelayClient(int(words["tcp"]), frame))
    return made


def measure(calls: int, frame: bytes, arrivals: Arrivals, options: Options) -> tuple[Usage, Tally]:
    """One run."""
    with Server([str(build()), str(calls)], options.server_core) as relay:
        sides = legs(relay.line, frame)
        meter: Meter = relay.meter()
        usage: list[Usage] = []

        def on_window(begins: bool) -> None:
            if begins:
                meter.restart()
            else:
                usage.append(meter.read())

        tally = drive(sides, options.seconds, arrivals, on_window)
        return usage[0], tally


def rows(options: Options) -> Iterator[Row]:
    """A row per rate, number of calls and way of arriving."""
    for load, frame in LOADS.items():
        for calls in options.calls:
            for arrivals in options.arrivals:
                runs = [measure(calls, frame, arrivals, options) for _ in range(options.runs)]
                yield Row.of("relay", load, calls, arrivals, runs)
