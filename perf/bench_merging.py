"""ZLMediaKit's measurement again: messages of one timestamp as one unit, and merge windows.

That article gathered the packets of one picture and sent them to each player together. Here eight
messages of one timestamp arrive together or apart, one every 2.5 ms, and leave to some players at
the end of the turn of the loop, or of a window of `--merge-ms`. The reference is the row that is
not merged: messages apart, without a window. nginx-rtmp is measured beside it.
"""

from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import load
import system_calls
from cpu import Usage
from gateway import Gateway
from load import Tally, drive
from nginx import Nginx
from options import Options
from results import LATENCY_LIMIT_MS, Figures
from rtmp_load import AVC_HEADER, VIDEO, VIDEO_STAMP, Player, Session, message

BATCH = 8  # messages of one timestamp, each as long as a packet
WINDOWS = (0, 20, 100, 350)  # ms
LENGTH = 1200  # bytes of a message
FEW = 10  # players, while each system call is stopped at
STREAM = "bench"


class Slices(Session):
    """Publishes eight messages of one timestamp every 20 ms, `at_once` with each `send`."""

    def __init__(self, url: str, name: str, at_once: int) -> None:
        super().__init__(url)
        self._at_once, self._number = at_once, 0
        self._stream = self.publish(name)
        self.socket.sendall(message(VIDEO, 0, self._stream, AVC_HEADER))
        self.run()

    def send(self) -> int:
        """The next messages, by one call."""
        self.socket.sendall(b"".join(self._next() for _ in range(self._at_once)))
        return self._at_once

    def _next(self) -> bytes:
        turn, place = divmod(self._number, BATCH)
        head = bytes.fromhex("27 01000000 000009bf41" if self._number else "17 01000000 000009bf65")
        self._number += 1
        body = load.stamp(head + bytes(LENGTH - len(head)), VIDEO_STAMP)
        return message(VIDEO, 20 * turn, self._stream, body, delta=0 if place else 20)


class Window(NamedTuple):
    """One run: what was taken, and what arrived."""

    usage: Usage
    tally: Tally


class Calls(NamedTuple):
    """System calls for each message and player: those that send, and all."""

    sends: float
    all: float


def measure(
    server: Gateway | Nginx, stream: str, arrivals: str, players: int, seconds: float
) -> Window:
    """One run, with the CPU clock read."""
    publisher, audience = _join(server, stream, arrivals, players)
    meter = server.meter()
    tally = _drive(publisher, audience, arrivals, seconds, meter.window)
    return Window(meter.usage, tally)


def count(server: Gateway | Nginx, arrivals: str, seconds: float) -> Calls | None:
    """One run, with the system calls counted; none where there is no strace."""
    if not system_calls.is_there():
        return None
    publisher, audience = _join(server, f"{STREAM}-counted", arrivals, FEW)
    with system_calls.Counted(server.process.pid, server.core) as counted:
        _drive(publisher, audience, arrivals, seconds, lambda begins: None)
    turns = int((load.WARM_UP + seconds) / load.INTERVAL)
    messages = turns * BATCH * FEW
    return Calls(counted.sends / messages, counted.calls.total() / messages)


def rows(options: Options) -> Iterator[Figures]:
    """A row for each window, messages apart and then together, and nginx at the end of each."""
    players = FEW if options.small else 5 * FEW
    reference: Figures | None = None
    for arrivals in ("apart", "together"):
        for merge in (*WINDOWS, None):
            server: Gateway | Nginx
            if merge is None:
                server = Nginx(options.server_core)
            else:
                server = Gateway(options.server_core, "--merge-ms", str(merge), "--sip", "off")
            with server:
                runs = [
                    measure(server, f"{STREAM}-{run}", arrivals, players, options.seconds)
                    for run in range(options.runs)
                ]
                calls = count(server, arrivals, min(options.seconds, 2.0))
            row = line(arrivals, players, merge, runs, calls, reference)
            reference = reference or row
            yield row


def line(
    arrivals: str,
    players: int,
    merge: int | None,
    runs: list[Window],
    calls: Calls | None,
    reference: Figures | None,
) -> Figures:
    """The row of these runs; `reference` is the row that is not merged, None for that one."""
    mhz = median(run.usage.taken for run in runs)
    p50, p99 = (median(run.tally.percentile_ms(part) for run in runs) for part in (50, 99))
    lost = sum(run.tally.lost for run in runs)
    subject = "nginx-rtmp" if merge is None else f"siprtmp, {merge} ms"
    figures: dict[str, float | None] = {
        "MHz": mhz,
        "ratio": _by(mhz, reference.figures["MHz"]) if reference else 1.0,
        "sends": calls.sends if calls else None,
        "calls": calls.all if calls else None,
        "fewer": 1.0 if calls else None,
        "p50 ms": p50,
        "p99 ms": p99,
        "lost": float(lost),
    }
    if calls and reference:
        unmerged = reference.figures["sends"]
        figures["fewer"] = _by(unmerged, calls.sends) if unmerged else None
    void = lost != 0 or p99 > (merge or 0) + LATENCY_LIMIT_MS
    return Figures(subject, f"messages {arrivals}", players, figures, void)


def _join(
    server: Gateway | Nginx, stream: str, arrivals: str, players: int
) -> tuple[Slices, list[Player]]:
    url = server.url(stream).rpartition("/")[0]
    publisher = Slices(url, stream, BATCH if arrivals == "together" else 1)
    return publisher, [Player(url, stream) for _ in range(players)]


def _drive(
    publisher: Slices,
    audience: list[Player],
    arrivals: str,
    seconds: float,
    on_window: Callable[[bool], None],
) -> Tally:
    legs = [publisher] if arrivals == "together" else [publisher] * BATCH
    tally = drive(legs, seconds, "spread", on_window, audience)
    for leg in (publisher, *audience):
        leg.close()
    return tally


def _by(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
