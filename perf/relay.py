"""Reference for calls: a C relay that makes a call's system calls and does nothing else."""

import subprocess
from pathlib import Path

from cpu import Server
from load import Leg, Phone, RelayClient

HERE = Path(__file__).resolve().parent


def build() -> Path:
    """Compile the relay when its source is newer."""
    source, program = HERE / "reference_relay.c", HERE / "build" / "reference_relay"
    if not program.is_file() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-o", program, source], check=True)
    return program


class Relay(Server):
    """The relay with room for `calls`, pinned to `core`."""

    def __init__(self, calls: int, core: int) -> None:
        """Start it and wait until it is ready."""
        super().__init__([str(build()), str(calls)], core)

    def legs(self, frame: bytes) -> list[Leg]:
        """Both directions of every call, in the order in which the relay pairs them."""
        words = dict(word.split("=") for word in self.line.split()[1:])
        made: list[Leg] = []
        for port in words["udp"].split(","):
            made.append(Phone(frame, target=("127.0.0.1", int(port))))
            made.append(RelayClient(int(words["tcp"]), frame))
        return made
