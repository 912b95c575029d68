"""The share of packets that stay in C, a minute of each kind of call: `python perf/shares.py`.

By the rig of the tests, which sends each packet through the pump and through Python, and has both
do the same; no time passes, so that a busy machine changes nothing.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests"
PACKETS, PICTURES = 3000, 1500  # of a minute
REPORTS = 5.0  # s between reports of the phone
HOLD = 12.0  # s from a hold, or its end, to the next one


def rigs() -> tuple[Any, Any, Any]:
    """The tests that have the traffic, and the sides that take it."""
    for package in ("p2psip", "rtmplite", "siprtmp"):  # or folders of tests stand for them
        importlib.import_module(package)
    sys.path += str(TESTS), str(TESTS / "siprtmp" / "pump")
    names = "test_same_as_python", "test_pictures", "support.pump.side"
    return tuple(importlib.import_module(name) for name in names)  # type: ignore[return-value]


def sound(kind: str, *, nat: bool = False, lost: int = 0, holds: bool = False) -> tuple[float, ...]:
    """From the phone and to it; of so many packets one is lost."""
    pair = rigs()[0].Pair(kind, nat)
    for number in range(1, PACKETS + 1):
        if lost and number % lost == 0:
            pair.phone.packet()
        pair.usual(1)
        if number % int(REPORTS * 50) == 0:
            pair.do("rtcp", "sender")
        if holds and number % int(HOLD * 50) == 0:
            pair.do("answer", "hold" if number // int(HOLD * 50) % 2 else 5004)
    pair.compare()
    pump, sent = pair.pump, pair.sent
    made = pair.sides[1].stream.sent
    pair.close()
    return pump.passed / (pump.passed + pump.handed), sent / max(made, 1)


def pictures(lost: int = 0) -> tuple[float, ...]:
    """From the phone; lost packets are not sent again, nor asked for."""
    pair = rigs()[1].Pair(() if lost else ("nack", "nack pli"))
    for number in range(1, PICTURES + 1):
        is_due = lost and number % lost == 0
        pair.show("key" if number % 50 == 0 else "long", octets=500, lost=[1] if is_due else [])
        if number % int(REPORTS * 25) == 0:
            pair.do("rtcp", "sender")
    pair.compare()
    pumps = pair.pumps
    pair.close()
    return (pumps.passed / (pumps.passed + pumps.handed),)


SCENARIOS: dict[str, Callable[[], tuple[float, ...]]] = {
    "Speex": lambda: sound("speex"),
    "G.711": lambda: sound("pcmu"),
    "Opus": lambda: sound("opus"),
    "G.711, NAT": lambda: sound("pcmu", nat=True),
    "G.711, hold": lambda: sound("pcmu", holds=True),
    "G.711, 1% lost": lambda: sound("pcmu", lost=100),
    "G.711, 5% lost": lambda: sound("pcmu", lost=20),
    "H.264": pictures,
    "H.264, 1% lost": lambda: pictures(lost=11),  # of nine packets each
}


def main() -> None:
    """Print a line for each."""
    print(f"{'in C':16}{'from the phone':>16}{'to the phone':>14}")
    for title, run in SCENARIOS.items():
        cells = [f"{share:.1%}" for share in run()]
        print(f"{title:16}{cells[0]:>16}{(cells[1:] or ['-'])[0]:>14}", flush=True)


if __name__ == "__main__":
    main()
