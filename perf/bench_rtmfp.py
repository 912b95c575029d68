"""What a byte over RTMFP costs each end: two endpoints, two processes, one reliable flow.

Small messages are a packet each; a large one fills many. The figure is MB per second of CPU, so it
does not matter which of the two ends is the slower one.
"""

import mmap
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from cpu import Server, Usage
from load import WARM_UP
from options import Options
from results import ThroughputRow
from rtmfp_peer import COUNTS

FOLDER = Path(__file__).resolve().parent
PROTECTIONS = "checksum", "hmac"  # the second one with session sequence numbers
SIZES = 1_100, 100_000  # bytes of a message
MB = 1e6


class Peer(Server):
    """A process of rtmfp_peer.py; `profile` is where to write what cProfile saw."""

    def __init__(self, core: int, *arguments: str, profile: str = "") -> None:
        """Start it."""
        program = [str(FOLDER / "rtmfp_peer.py"), *arguments]
        if profile:
            program = [str(FOLDER / "profiled.py"), profile, *program]
        super().__init__([sys.executable, *program], core, ready="ready")


class Run(NamedTuple):
    """What both took, and how many messages and bytes arrived, and messages out of their turn."""

    sender: Usage
    receiver: Usage
    messages: int
    total: int
    wrong: int


def measure(protection: str, size: int, options: Options) -> Run:
    """One run, in steady state."""
    profiles = [f"{options.profile}.{end}" if options.profile else "" for end in ("out", "in")]
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(COUNTS.size)
        with (
            mmap.mmap(file.fileno(), COUNTS.size) as counts,
            Peer(
                options.server_core, "receive", file.name, protection, profile=profiles[1]
            ) as receiver,
            Peer(
                options.load_core,
                *("send", file.name, protection, receiver.line.split()[1], str(size)),
                profile=profiles[0],
            ) as sender,
        ):
            time.sleep(WARM_UP)
            meters, before = [sender.meter(), receiver.meter()], COUNTS.unpack_from(counts)
            time.sleep(options.seconds)
            usages, after = [meter.read() for meter in meters], COUNTS.unpack_from(counts)
    messages, total, wrong = (end - begin for begin, end in zip(before, after, strict=True))
    return Run(usages[0], usages[1], messages, total, wrong)


def rows(options: Options) -> Iterator[ThroughputRow]:
    """A row per way of protection and size of messages."""
    for protection in PROTECTIONS:
        for size in SIZES:
            runs = [measure(protection, size, options) for _ in range(options.runs)]
            yield ThroughputRow(
                load=protection,
                size=size,
                sender=median(run.total / MB / run.sender.cpu for run in runs),
                receiver=median(run.total / MB / run.receiver.cpu for run in runs),
                rate=median(run.total / MB / run.sender.seconds for run in runs),
                sender_share=median(run.sender.share for run in runs),
                receiver_share=median(run.receiver.share for run in runs),
                messages=sum(run.messages for run in runs),
                wrong=sum(run.wrong for run in runs),
                waiting=median(
                    max(run.sender.waited, run.receiver.waited) / run.sender.seconds for run in runs
                ),
            )
