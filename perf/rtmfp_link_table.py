"""How fast a reliable RTMFP flow is on links of many kinds: kB/s in ten seconds of virtual time.

    python perf/rtmfp_link_table.py [--seconds 10] [--seeds 3] [--only LOSS RTT RATE]
    PEER_RTMFP_CPP=/path/to/program python perf/rtmfp_link_table.py --pairs

Rows are the share of datagrams lost and the round trip, columns the rate. It needs no idle machine
and gives the same figures on any. With `--pairs` the same is done by the RTMFP author's library,
and between the two, if somebody has built a program around it: it is called with `send` and a UDP
port, or `receive`, and takes turns over its standard input and output, all numbers little-endian.

    to it    now: f64, count: u32, datagrams
    from it  deadline: f64, bytes delivered: u64, count: u32, datagrams

A datagram is its port, of the source or of the destination: u16, its length: u16, and its bytes.
"""

import argparse
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from statistics import median
from struct import Struct

from rtmfp_link import HOST, RECEIVER, Datagrams, End, Line, Link, Ours

LOSSES = 0.0, 0.01, 0.05
ROUND_TRIPS = 0.01, 0.05, 0.1, 0.2  # s
RATES = 1.0, 10.0, 100.0  # Mb/s
PROGRAM = "PEER_RTMFP_CPP"
_TO, _FROM, _DATAGRAM = Struct("<dI"), Struct("<dQI"), Struct("<HH")


class Theirs:
    """An endpoint in a program of its own, which has its turns over pipes."""

    def __init__(self, program: str, *, opens: bool) -> None:
        words = [program, "send", str(RECEIVER[1])] if opens else [program, "receive"]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.delivered = 0
        self.deadline: float | None = 0.0

    def __enter__(self) -> "Theirs":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def turn(self, datagrams: Datagrams, now: float) -> Datagrams:
        """Have the program take its turn."""
        parts = [_TO.pack(now, len(datagrams))]
        for datagram, source in datagrams:
            parts += _DATAGRAM.pack(source[1], len(datagram)), datagram
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(parts))
        self._process.stdin.flush()
        self.deadline, self.delivered, count = _FROM.unpack(self._read(_FROM.size))
        sent = []
        for _ in range(count):
            port, size = _DATAGRAM.unpack(self._read(_DATAGRAM.size))
            sent.append((self._read(size), (HOST, port)))
        return sent

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise ConnectionError("the program has ended")
        return data


def measure(line: Line, seconds: float, pair: str = "ours ours", program: str = "") -> float:
    """The kB/s that arrive on a link, the time to open the session included."""
    with ExitStack() as stack:
        ends: list[End] = []
        for name, opens in zip(pair.split(), (True, False), strict=True):
            if name == "ours":
                ends.append(Ours(opens=opens, seed=2 * line.seed + opens))
            else:
                ends.append(stack.enter_context(Theirs(program, opens=opens)))
        Link(line, *ends).run(seconds)
        return ends[1].delivered / seconds / 1000


def lines(only: Sequence[float], seed: int) -> Iterator[Line]:
    """The links of the table, or the only one wanted."""
    if only:
        yield Line(only[2], only[1], only[0], seed)
        return
    for loss in LOSSES:
        for round_trip in ROUND_TRIPS:
            for rate in RATES:
                yield Line(rate, round_trip, loss, seed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3, help="runs with loss; the median is given")
    parser.add_argument("--only", type=float, nargs=3, metavar=("LOSS", "RTT", "RATE"), default=[])
    parser.add_argument("--pairs", action="store_true", help=f"also those with {PROGRAM}")
    options = parser.parse_args()
    pairs, program = ["ours ours"], os.environ.get(PROGRAM, "")
    if options.pairs:
        if not program:
            parser.error(f"{PROGRAM} names no program")
        pairs += ["ours theirs", "theirs ours", "theirs theirs"]
    print("loss   rtt ms   Mb/s  " + "".join(f"{pair:>15}" for pair in pairs), flush=True)
    for line in lines(options.only, 1):
        seeds = range(1, 1 + (options.seeds if line.loss else 1))
        figures = [
            median(
                measure(Line(line.rate, line.round_trip, line.loss, seed), options.seconds, *how)
                for seed in seeds
            )
            for how in ((pair, program) for pair in pairs)
        ]
        print(
            f"{line.loss:4.0%} {line.round_trip * 1000:8.0f} {line.rate:6.0f}  "
            + "".join(f"{figure:15,.0f}" for figure in figures),
            flush=True,
        )


if __name__ == "__main__":
    main()
