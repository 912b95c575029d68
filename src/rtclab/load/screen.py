"""The figures while the load runs: plain lines, or a live screen by rich where there is one.

Own design: a screen is drawn on a terminal alone; all else gets lines that a program can read.
"""

import sys
from typing import Any, Final

from rtclab.command_line.files import print_lines
from rtclab.load.figures.health import Health
from rtclab.load.figures.totals import UP, Totals
from rtclab.load.report import summary_lines
from rtclab.load.run import Screen

try:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    AVAILABLE = True
except ImportError:  # without the extra `load` there are plain lines
    AVAILABLE = False


class PlainScreen:
    """A summary now and then, line by line."""

    def show(self, seconds: float, aim: int, totals: Totals, health: Health) -> None:
        """Print the summary so far."""
        print_lines(summary_lines(seconds, totals, health))

    def close(self) -> None:
        """Do nothing."""


class SilentScreen(PlainScreen):
    """Shows nothing, where standard output is for a report."""

    def show(self, seconds: float, aim: int, totals: Totals, health: Health) -> None:
        """Do nothing."""


class LiveScreen:
    """The last summary, which stays in its place, with a bar for the clients that are up."""

    def __init__(self, console: Any = None) -> None:
        self._bar = Progress(
            TextColumn("{task.completed:.0f} of {task.total:.0f} clients"),
            BarColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._bar.add_task("clients", total=1)
        self._live = Live(self._bar, console=console, auto_refresh=False)
        self._live.start()

    def show(self, seconds: float, aim: int, totals: Totals, health: Health) -> None:
        """Draw the summary again."""
        up = sum(totals.states[each] for each in UP)
        self._bar.update(self._task, completed=up, total=max(1, aim))
        text = Text("\n".join(summary_lines(seconds, totals, health)))
        self._live.update(Group(self._bar, text), refresh=True)

    def close(self) -> None:
        """Leave the last picture, and give the cursor back."""
        self._live.stop()


EACH: Final = 1.0  # s between two pictures


def screen_for(*, silent: bool) -> Screen:
    """The best screen there is."""
    if silent:
        return SilentScreen()
    return LiveScreen() if AVAILABLE and sys.stdout.isatty() else PlainScreen()
