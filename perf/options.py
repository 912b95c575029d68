"""What every measurement is told: how long, how often, how many, and on which cores."""

from dataclasses import dataclass

from load import Arrivals


@dataclass(frozen=True, slots=True)
class Options:
    """The options of bench.py."""

    seconds: float  # of the window
    runs: int  # of which the median counts
    calls: tuple[int, ...]
    players: tuple[int, ...]
    arrivals: tuple[Arrivals, ...]
    server_core: int
    audience: tuple[int, ...] = (500,)
    load_core: int = 0
    profile: str = ""  # a file for what cProfile saw of the gateway
    only: tuple[str, ...] = ()  # kinds of attacks, loads of workers; all
    hold: float = 0.25  # the part of a core that each worker may have
    small: bool = False  # a form of about a minute
