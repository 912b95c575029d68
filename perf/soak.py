"""A soak: calls of every kind for a long time, and what the gateway then holds.

    python perf/soak.py                      an hour, by hand
    python perf/soak.py --seconds 180        what continuous integration runs

Calls of the kinds in `soak_calls.py` come and go without a pause, several at once; meanwhile the
memory and the threads of the gateway are read. What it holds in the last minute is compared with
what it held from minute five on, in a soak of less than ten minutes from a third of it on: the
command fails if the memory has grown by more than a tenth, if there are more threads, if a call has
failed, or if there was none of a kind.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import NamedTuple

import gevent
from cpu import Server, raise_file_limit
from soak_calls import KINDS, Site

FOLDER = Path(__file__).resolve().parent / "results"
LISTEN = ("--rtmp", "127.0.0.1:0", "--rtmfp", "off")
BASELINE = 300.0  # s, unless the soak is shorter than twice that
WINDOW = 60.0  # s whose median counts: memory falls when the gateway collects its garbage
SPARE = 1  # thread that workers may still start, unless they had five minutes
MOST = 1.1  # times the memory
CALL_SECONDS = 4.0
PAUSE = 1.0  # s between two calls of a worker: what was published last is heard until then


class Sample(NamedTuple):
    """What the gateway holds at one moment."""

    seconds: float
    megabytes: float
    threads: int
    files: int
    calls: int  # that have ended since the beginning


class Verdict(NamedTuple):
    """The beginning and the end, as medians, and what is wrong."""

    before: Sample
    after: Sample
    faults: list[str]


def judge(samples: list[Sample], failed: Counter[str], ended: Counter[str]) -> Verdict:
    """Compare the end with minute five, or with an earlier one."""
    length = samples[-1].seconds
    is_long = length >= 2 * BASELINE
    at, width = (BASELINE, WINDOW) if is_long else (length / 3, min(WINDOW, length / 3))
    before = _typical([each for each in samples if at <= each.seconds <= at + width])
    after = _typical([each for each in samples if each.seconds >= length - width])
    faults = [f"{count} calls of {kind} failed" for kind, count in failed.items()]
    faults += [f"no call of {kind}" for kind in KINDS if not ended[kind]]
    if after.megabytes > MOST * before.megabytes:
        faults.append(f"memory grew from {before.megabytes:.1f} to {after.megabytes:.1f} MB")
    if after.threads > before.threads + (0 if is_long else SPARE):
        faults.append(f"threads grew from {before.threads} to {after.threads}")
    return Verdict(before, after, faults)


def _typical(samples: list[Sample]) -> Sample:
    return Sample(*(median(column) for column in zip(*samples, strict=True)))


class Soak:
    """The calls, and the samples of one gateway."""

    def __init__(self, site: Site, gateway: Server, workers: int) -> None:
        self.site, self._gateway = site, gateway
        self.samples, self.ended, self.failed = list[Sample](), Counter[str](), Counter[str]()
        self._start, self._stops = time.monotonic(), False
        self._workers = [
            gevent.spawn(self._work, kind, number) for kind in KINDS for number in range(workers)
        ]

    def _work(self, kind: str, number: int) -> None:
        while not self._stops:
            try:
                KINDS[kind](self.site, number)
                self.ended[kind] += 1
            except Exception as error:  # whatever it is, the others go on
                self.failed[kind] += 1
                print(f"{kind}: {error!r}", file=sys.stderr)
            gevent.sleep(PAUSE)

    def run(self, seconds: float, every: float) -> None:
        """Read what the gateway holds, `every` so many seconds."""
        task = Path(f"/proc/{self._gateway.process.pid}/task")
        while (now := time.monotonic() - self._start) < seconds:
            memory, files = self._gateway.resident_mb(), self._gateway.open_files()
            threads, calls = len(os.listdir(task)), self.ended.total()
            self.samples.append(Sample(round(now, 1), round(memory, 1), threads, files, calls))
            gevent.sleep(every)
        self._stops = True
        gevent.joinall(self._workers, timeout=60.0)


def main() -> None:
    """Soak, print a line a minute, and keep the curve."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--workers", type=int, default=1, help="calls of each kind at once")
    parser.add_argument(
        "--keep", default="", metavar="FILE", help="write the samples here, as JSON"
    )
    given = parser.parse_args()
    raise_file_limit()
    cores = sorted(os.sched_getaffinity(0))
    program, core = [sys.executable, "-m"], cores[0]
    sink = Server([*program, "rtmplite", "serve", *LISTEN], cores[-1])
    pushed = f"call/push*={_place(sink, 'rtmp', 'live')}"
    words = ["--sip", "127.0.0.1:0", "--http", "off", "--log-level", "warning", "--mix-calls"]
    words += ["--transcode-video", "320x180@10,200", "--room", "team", "--push", pushed]
    gateway = Server([*program, "siprtmp", *LISTEN, *words], core)
    with sink, gateway:
        place = _places(gateway)
        site = Site(place["rtmp"], place["sip"], _places(sink)["rtmp"], CALL_SECONDS)
        soak = Soak(site, gateway, given.workers)
        soak.run(given.seconds, 1.0)
        site.close()
    verdict = judge(soak.samples, soak.failed, soak.ended)
    print("seconds     MB  threads  files  calls")
    step = max(1, len(soak.samples) // 20)
    for each in soak.samples[::step]:
        print("{:7.0f} {:6.1f} {:8} {:6} {:6}".format(*each))
    print(f"before {verdict.before}\nafter  {verdict.after}\nended  {dict(soak.ended)}")
    print(f"heard  {site.heard}")
    if given.keep:
        Path(given.keep).write_text(json.dumps(soak.samples))
    sys.exit("\n".join(verdict.faults) or None)


def _places(server: Server) -> dict[str, str]:
    return dict(word.split("=", 1) for word in server.line.split()[1:])


def _place(server: Server, protocol: str, application: str) -> str:
    return f"{protocol}://{_places(server)[protocol]}/{application}"


if __name__ == "__main__":
    main()
