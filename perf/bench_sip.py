"""Calls a second: the user agent as callee at a fixed rate, and how many a proxy carries.

SIPp places calls that are answered and hung up at once.  A rate is clean if no call failed and
nothing had to be sent twice.  The proxies climb by a quarter until a rate is not clean; the row
has the last clean one.
"""

import csv
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from options import Options
from results import SipRow
from sip_servers import Kamailio, Proxy, Uas, free_port, register

HERE = Path(__file__).resolve().parent
RATE, MINUTE = 100, 60.0  # calls a second to the user agent, and for how long at least
FIRST = 50  # to a proxy; the next rates are a quarter higher each
HIGHEST = 5000
GIVING_UP = 20.0  # s after the window


def load(
    port: int,
    rate: int,
    seconds: float,
    options: Options,
    scenario: str = "sipp_caller.xml",
) -> dict[str, float]:
    """Let SIPp call for so long, or play another scenario, and read what it counted."""
    with tempfile.TemporaryDirectory() as folder:
        statistics = Path(folder) / "statistics.csv"
        calls = max(1, round(rate * seconds))
        words = [
            "sipp",
            "-sf",
            str(HERE / scenario),
            f"127.0.0.1:{port}",
            "-i",
            "127.0.0.1",
        ]
        words += ["-p", str(free_port()), "-r", str(rate), "-m", str(calls), "-nostdin"]
        words += ["-trace_stat", "-stf", str(statistics), "-fd", "3600"]
        words += ["-timeout", f"{seconds + GIVING_UP:.0f}"]
        words = ["taskset", "-c", str(options.load_core), *words]
        subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        *_, last = csv.DictReader(statistics.read_text().splitlines(), delimiter=";")
    hours, minutes, seconds, *rest = last["ResponseTimeanswer(C)"].split(":")
    answer = (int(hours) * 60 + int(minutes)) * 60 + float(seconds)
    if rest:
        answer += float(rest[0]) / 1e6
    return {
        "calls": calls,
        "made": float(last["SuccessfulCall(C)"]),
        "repeated": float(last["Retransmissions(C)"]),
        "answer_ms": 1000 * answer,
    }


def row(subject: str, rate: int, told: dict[str, float], share: float | None) -> SipRow:
    """The row of one rate."""
    return SipRow(
        subject=subject,
        rate=rate,
        calls=int(told["calls"]),
        failed=int(told["calls"] - told["made"]),
        repeated=int(told["repeated"]),
        answer_ms=told["answer_ms"],
        share=share,
    )


def callee(options: Options, least: float = MINUTE) -> SipRow:
    """The user agent as callee, for `least` seconds or more."""
    with Uas(options.server_core) as server:
        meter = server.meter()
        told = load(server.port, RATE, max(least, options.seconds), options)
        return row("callee", RATE, told, meter.read().share)


def proxied(subject: str, made: type[Proxy] | type[Kamailio], options: Options) -> SipRow:
    """The highest clean rate of a proxy, between two SIPps."""
    best: SipRow | None = None
    rate, port = float(FIRST), free_port()
    words = ["taskset", "-c", str(options.load_core), "sipp", "-nostdin"]
    words += ["-sf", str(HERE / "sipp_callee.xml"), "-i", "127.0.0.1", "-p", str(port)]
    answering = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while rate <= HIGHEST:
            with made(options.server_core) as server:
                register(server.port, port)
                meter = server.meter() if isinstance(server, Proxy) else None
                told = load(server.port, round(rate), options.seconds, options)
                share = meter.read().share if meter else None
            found = row(subject, round(rate), told, share)
            if found.void:
                return best or found
            best, rate = found, rate * 1.25
    finally:
        answering.kill()
        answering.wait()
    assert best is not None
    return best


def rows(options: Options) -> Iterator[SipRow]:
    """The user agent, then the two proxies in turns, as often as there are runs."""
    yield callee(options)
    for _ in range(options.runs):
        yield proxied("p2psip", Proxy, options)
        yield proxied("kamailio", Kamailio, options)
