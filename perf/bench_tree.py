"""What a notification of the tree costs, how late it is, and what a held connection holds.

Two processes hold the connections, so that neither needs more descriptors than it may have. One
more client sends events, as NOTIFY, to all that have subscribed; each event has the time at which
it was sent. The server's CPU time in the window is told for each notification that came. The next
event is sent when all of the last one have come.
"""

import http.client
import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from cpu import Usage
from gateway import Gateway
from load import Tally
from options import Options
from results import Figures
from tree_load import PLACE, TreeClient

SIZES = ((1_001, 1_000), (10_000, 1_000))  # connections, and those of them that subscribe
SMALL_SIZES = ((21, 20), (100, 20))
PAUSE = 0.1  # s between events
LIMIT_MS = 20.0  # of the 99th percentile
PATIENCE = 60.0  # s until all must have come
LENGTH = 100  # letters of an event


class Holder:
    """A process that holds connections; `first` numbers its first address."""

    def __init__(self, gateway: Gateway, connections: int, subscribers: int, first: int) -> None:
        words = (gateway.http, connections, subscribers, first)
        program = Path(__file__).with_name("tree_load.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> None:
        """Wait until all its connections are open."""
        if self._line() != "ready\n":
            raise RuntimeError(f"a generator ended with {self._process.wait()}")

    def report(self) -> tuple[int, list[int]]:
        """How many connections are open, and how late the notifications since the last report."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        said = json.loads(self._line())
        return said["open"], said["late_ns"]

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def __enter__(self) -> Self:
        """It runs since it was made."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate()


def measure(
    gateway: Gateway, connections: int, subscribers: int, seconds: float
) -> tuple[Usage, Tally, float]:
    """One window; KB that each connection holds is the last."""
    host, _, port = gateway.http.rpartition(":")
    connected = http.client.HTTPConnection(host, int(port))
    connected.request("PUT", f"/tree{PLACE}?persistent=true", "0")
    assert connected.getresponse().status == http.HTTPStatus.CREATED
    connected.close()
    TreeClient((host, int(port)), "127.2.0.1").close()  # what the first one of all takes
    before = gateway.resident_mb()
    held = connections - 1
    each, some = held // 2, subscribers // 2
    with (
        Holder(gateway, each, some, 2) as one,
        Holder(gateway, held - each, subscribers - some, 102) as other,
    ):
        holders = one, other
        for holder in holders:
            holder.wait()
        kb = (gateway.resident_mb() - before) * 1024 / held
        author = TreeClient((host, int(port)), "127.2.0.1")
        tally = Tally()
        send(author, holders, subscribers, tally)  # the first, which finds all caches cold
        tally, meter, end = Tally(), gateway.meter(), time.monotonic() + seconds
        while time.monotonic() < end and not tally.lost:
            send(author, holders, subscribers, tally)
            time.sleep(PAUSE)
        usage = meter.read()
        still = sum(holder.report()[0] for holder in holders)
        author.close()
        if still != held:
            raise RuntimeError(f"{held - still} connections were lost")
    return usage, tally, kb


def send(author: TreeClient, holders: tuple[Holder, ...], subscribers: int, tally: Tally) -> None:
    """Send an event, and wait for it everywhere."""
    data = {"text": "x" * LENGTH, "at": time.monotonic_ns()}
    author.ask(method="NOTIFY", resource=PLACE, data=data)
    tally.sent += subscribers
    end = time.monotonic() + PATIENCE
    while tally.lost and time.monotonic() < end:
        if select.select([author], [], [], PAUSE)[0]:
            author.receive()  # a ping, perhaps
        for holder in holders:
            late = holder.report()[1]
            tally.received += len(late)
            tally.late_ns += late


def rows(options: Options) -> Iterator[Figures]:
    """A row for each number of connections."""
    for connections, subscribers in SMALL_SIZES if options.small else SIZES:
        with Gateway(options.server_core, "--http", "127.0.0.1:0", "--sip", "off") as gateway:
            found = measure(gateway, connections, subscribers, options.seconds)
        yield line(connections, subscribers, *found)


def line(connections: int, subscribers: int, usage: Usage, tally: Tally, kb: float) -> Figures:
    """The row of one window."""
    p50, p99 = (tally.percentile_ms(part) for part in (50, 99))
    figures: dict[str, float | None] = {
        "events": tally.sent / subscribers,
        "us each": usage.cpu * 1e6 / max(tally.received, 1),
        "p50 ms": p50,
        "p99 ms": p99,
        "lost": float(tally.lost),
        "waited": usage.waited / usage.seconds,
        "KB each": kb,
    }
    void = tally.lost != 0 or p99 > LIMIT_MS
    return Figures("siprtmp", f"to {subscribers:,} subscribers", connections, figures, void)
