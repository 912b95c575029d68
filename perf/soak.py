"""A soak: calls of every kind for a long time, and what the gateway then holds.

    python perf/soak.py                      an hour, by hand
    python perf/soak.py --seconds 180        what continuous integration runs

Calls of the kinds in `soak_calls.py` come and go without a pause, several at once; meanwhile the
memory and the threads of the gateway are read. What it holds in the last minute is compared with
what it held from minute five on, in a soak of less than ten minutes from a third of it on: the
command fails if the memory has grown by more than a tenth (a short soak: three tenths), if there
are more threads, if a call has failed, or if there was none of a kind.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import gevent
from cpu import Server, raise_file_limit
from soak_calls import KINDS, Site

LISTEN = ("--rtmp", "127.0.0.1:0", "--rtmfp", "off")
OPTIONS = ["--sip", "127.0.0.1:0", "--http", "off", "--log-level", "warning", "--room", "team"]
OPTIONS += ["--mix-calls", "--transcode-video", "320x180@10,200"]
BASELINE = 300.0  # s, unless the soak is shorter than twice that
WINDOW = 60.0  # s whose median counts: memory falls when the gateway collects its garbage
SPARE = 1  # thread that workers may still start, unless they had five minutes
MOST = 1.1  # times the memory
MOST_SOON = 1.3  # the same within three minutes, where a run went from 150 MB to 210 and back
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
    if after.megabytes > (MOST if is_long else MOST_SOON) * before.megabytes:
        faults.append(f"memory grew from {before.megabytes:.1f} to {after.megabytes:.1f} MB")
    if after.threads > before.threads + (0 if is_long else SPARE):
        faults.append(f"threads grew from {before.threads:g} to {after.threads:g}")
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

    def run(self, seconds: float) -> None:
        """Read what the gateway holds once a second, and let the last calls end."""
        task = Path(f"/proc/{self._gateway.process.pid}/task")
        while (now := time.monotonic() - self._start) < seconds:
            memory, files = self._gateway.resident_mb(), self._gateway.open_files()
            threads, calls = len(os.listdir(task)), self.ended.total()
            self.samples.append(Sample(round(now, 1), round(memory, 1), threads, files, calls))
            gevent.sleep(1.0)
        self._stops = True
        gevent.joinall(self._workers)


@contextmanager
def soaking(call_seconds: float = CALL_SECONDS, workers: int = 1) -> Iterator[Soak]:
    """A gateway with calls of every kind, and a server that it pushes to."""
    cores = sorted(os.sched_getaffinity(0))
    program = [sys.executable, "-m"]
    with Server([*program, "rtmplite", "serve", *LISTEN], cores[-1]) as sink:
        pushed = f"call/push*=rtmp://{_places(sink)['rtmp']}/live"
        with Server(
            [*program, "siprtmp", *LISTEN, *OPTIONS, "--push", pushed], cores[0]
        ) as gateway:
            place = _places(gateway)
            site = Site(place["rtmp"], place["sip"], _places(sink)["rtmp"], call_seconds)
            yield Soak(site, gateway, workers)
            site.close()


def main() -> None:
    """Soak, print the curve, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--workers", type=int, default=1, help="calls of each kind at once")
    parser.add_argument("--keep", metavar="FILE", help="write the samples here, as JSON")
    given = parser.parse_args()
    raise_file_limit()
    with soaking(workers=given.workers) as soak:
        soak.run(given.seconds)
    verdict = judge(soak.samples, soak.failed, soak.ended)
    print("seconds     MB  threads  files  calls")
    for each in soak.samples[:: max(1, len(soak.samples) // 24)]:
        print("{:7.0f} {:6.1f} {:8} {:6} {:6}".format(*each))
    print(f"before {verdict.before}\nafter  {verdict.after}\ncalls  {dict(soak.ended)}")
    if given.keep:
        Path(given.keep).write_text(json.dumps(soak.samples))
    sys.exit("\n".join(verdict.faults) or None)


def _places(server: Server) -> dict[str, str]:
    return dict(word.split("=", 1) for word in server.line.split()[1:])


if __name__ == "__main__":
    main()
