"""Calls, registrations and handshakes of TLS a second, each beside another implementation.

Own design: SIPp's rate rises until a rate is not clean, as in bench_sip.py, and the row has the
last clean one. `us each` is the CPU time of all processes of the server for one call, registration
or handshake, which a busy load generator changes less than the rate; `ratio` compares that.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, Protocol

from bench_sip import load
from cpu import Usage
from options import Options
from results import Figures
from sip_servers import HERE, Answering, Kamailio, Openssl, Proxy, Uas, free_port, register
from tls_load import KINDS, handshakes
from tls_load import certificate as made_certificate

FIRST, STEP, HIGHEST = 50.0, 1.25, 20_000.0  # a second
SMALL_FIRST, SMALL_STEP, SMALL_HIGHEST = 20.0, 2.0, 40.0
REGISTRATIONS, SMALL_REGISTRATIONS = 5000, 200  # by a user agent
AT_ONCE = 16  # of these, as in sip_registering.py
_LAST_WORDS = "granted "


class MeterLike(Protocol):
    """What tells the CPU time of a window."""

    def read(self) -> Usage:
        """The window so far."""


class Measured(Protocol):
    """A server on a port, whose CPU time can be read."""

    port: int

    def meter(self) -> MeterLike:
        """A new window."""


Start = Callable[[], AbstractContextManager[Measured]]


class Rate(NamedTuple):
    """One window: how many a second, how many of them failed or were repeated, what it took."""

    rate: float
    wrong: int
    us_each: float
    answer_ms: float | None = None

    @property
    def is_clean(self) -> bool:
        """Whether nothing failed and nothing was sent twice."""
        return self.wrong == 0


def climb(window: Callable[[float], Rate], first: float, step: float, highest: float) -> Rate:
    """The last rate that was clean, or the first one if even that was not."""
    best, rate = window(first), first * step
    while best.is_clean and rate <= highest:
        found = window(rate)
        if not found.is_clean:
            break
        best, rate = found, rate * step
    return best


def served(start: Start, rate: float, options: Options, scenario: str, callee: int = 0) -> Rate:
    """One window of SIPp; `callee` is the port of the phone that is called by a proxy."""
    with start() as server:
        if scenario == "sipp_registration.xml" or callee:
            register(server.port, callee or 9)  # it serves once it has answered this
        meter = server.meter()
        told = load(server.port, round(rate), options.seconds, options, scenario)
        usage = meter.read()
    wrong = int(told["calls"] - told["made"] + told["repeated"])
    return Rate(rate, wrong, 1e6 * usage.cpu / told["calls"], told["answer_ms"])


def agent(registrar: int, options: Options) -> Rate:
    """Registrations that our user agent makes, by its own clock."""
    count = SMALL_REGISTRATIONS if options.small else REGISTRATIONS
    words = [sys.executable, str(HERE / "sip_registering.py"), f"127.0.0.1:{registrar}", str(count)]
    pinned = ["taskset", "-c", str(options.server_core), *words]
    done = subprocess.run(pinned, stdout=subprocess.PIPE, text=True, check=True)
    granted, wall, cpu = done.stdout.rpartition(_LAST_WORDS)[2].split()
    return Rate(int(granted) / float(wall), count - int(granted), 1e6 * float(cpu) / count)


def sipp_agent(registrar: int, options: Options) -> Rate:
    """The same number by SIPp, as fast as the answers come, by the CPU time of its process."""
    count = SMALL_REGISTRATIONS if options.small else REGISTRATIONS
    words = ["taskset", "-c", str(options.server_core), "sipp", "-nostdin", "-i", "127.0.0.1"]
    words += ["-sf", str(HERE / "sipp_registration.xml"), f"127.0.0.1:{registrar}"]
    words += ["-p", str(free_port()), "-m", str(count), "-l", str(AT_ONCE), "-r", "100000"]
    wall, cpu = time.monotonic(), _children()
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, cpu = time.monotonic() - wall, _children() - cpu
    return Rate(count / wall, 0 if done.returncode == 0 else count, 1e6 * cpu / count)


def _children() -> float:
    """The CPU seconds of children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shaken(start: Start, options: Options) -> Rate:
    """Whole handshakes by several clients at once."""
    seconds = max(1, round(options.seconds))
    with start() as server:
        handshakes(server.port, 1, options.load_core, 1)  # it serves, and its code is loaded
        meter = server.meter()
        count = handshakes(server.port, seconds, options.load_core)
        usage = meter.read()
    return Rate(count / seconds, 0 if count else 1, 1e6 * usage.cpu / max(count, 1))


def line(subject: str, what: str, runs: list[Rate], reference: Figures | None) -> Figures:
    """A row: medians of the runs."""
    us_each = median(run.us_each for run in runs)
    answers = [run.answer_ms for run in runs if run.answer_ms is not None]
    other = reference.figures["us each"] if reference else us_each
    figures = {
        "a second": median(run.rate for run in runs),
        "us each": us_each,
        "ratio": us_each / other if other else None,
        "answer ms": median(answers) if answers else None,
    }
    wrong = any(not run.is_clean for run in runs)
    return Figures(subject, what, len(runs), figures, void=wrong)


def beside(
    what: str, kinds: Mapping[str, Callable[[], Rate]], options: Options
) -> Iterator[Figures]:
    """The rows of several implementations, which took turns; the first is the reference."""
    found: dict[str, list[Rate]] = {name: [] for name in kinds}
    for _ in range(options.runs):
        for name, measure in kinds.items():
            found[name].append(measure())
    reference: Figures | None = None
    for name, runs in found.items():
        row = line(name, what, runs, reference)
        reference = reference or row
        yield row


def rows(options: Options) -> Iterator[Figures]:
    """Calls and registrations of proxies, calls and registrations of user agents, then TLS."""
    step, first = (SMALL_STEP, SMALL_FIRST) if options.small else (STEP, FIRST)
    highest = SMALL_HIGHEST if options.small else HIGHEST
    core = options.server_core

    def climbing(start: Start, scenario: str, callee: int = 0) -> Callable[[], Rate]:
        def window(rate: float) -> Rate:
            return served(start, rate, options, scenario, callee)

        return lambda: climb(window, first, step, highest)

    with Answering(options.load_core) as phone:
        proxies: dict[str, Start] = {
            "kamailio": lambda: Kamailio(core),
            "p2psip": lambda: Proxy(core),
        }
        for what, scenario, callee in (
            ("calls by a proxy", "sipp_caller.xml", phone.port),
            ("registrations taken", "sipp_registration.xml", 0),
        ):
            kinds = {name: climbing(start, scenario, callee) for name, start in proxies.items()}
            yield from beside(what, kinds, options)
    agents = {
        "SIPp": climbing(lambda: Answering(core), "sipp_caller.xml"),
        "p2psip": climbing(lambda: Uas(core), "sipp_caller.xml"),
    }
    yield from beside("calls answered", agents, options)
    with Kamailio(options.load_core) as registrar:
        port = registrar.port
        register(port, 9)
        makers = {"SIPp": lambda: sipp_agent(port, options), "p2psip": lambda: agent(port, options)}
        yield from beside("registrations made", makers, options)
    for kind in KINDS:
        yield from _tls(kind, options)


def _tls(kind: str, options: Options) -> Iterator[Figures]:
    core = options.server_core
    with tempfile.TemporaryDirectory() as folder:
        pem = made_certificate(kind, Path(folder))
        servers: dict[str, Start] = {
            "openssl": lambda: Openssl(core, pem),
            "kamailio": lambda: Kamailio(core, pem),
            "p2psip": lambda: Proxy(core, pem),
        }
        kinds = {name: partial(shaken, start, options) for name, start in servers.items()}
        yield from beside(f"TLS handshakes, {kind}", kinds, options)
