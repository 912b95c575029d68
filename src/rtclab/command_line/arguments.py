"""Command lines: the parser, the program's name, its complaints, and the values that options take.

Own design: the functions that read a value raise argparse.ArgumentTypeError with one line for the
user.  The gateway's command line forwards to these commands, which then speak in its name.
"""

import argparse
import difflib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NoReturn

NAME: Final = "rtclab"
GATEWAY: Final = "siprtmp"  # whose command line forwards to ours
_UNKNOWN: Final = "unrecognized arguments: "  # how argparse begins
SHORTEST: Final = 0.001  # s
LONGEST: Final = 1e7  # s


class ConfigError(Exception):
    """An argument or a file that can't be used; the message is one line for the user.

    The command turns it into exit code 2.
    """


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one line instead of a page of usage.

    A mistyped option gets a suggestion.  Raises ConfigError.
    """

    def error(self, message: str) -> NoReturn:
        """Raise the message, so that the command prints it in its own way."""
        if message.startswith(_UNKNOWN):
            word = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
            message = f"there is no {'option' if word.startswith('-') else 'argument'} {word}"
            message += did_you_mean(word, self._option_string_actions)
        raise ConfigError(message)


def program() -> str:
    """The words that started this program: `rtclab`, `python -m rtclab`, or the gateway's."""
    started = Path(sys.argv[0])
    is_module = started.stem == "__main__"
    name = started.parent.name if is_module else started.stem
    if name not in (NAME, GATEWAY):
        return f"python -m {NAME}"
    return f"python -m {name}" if is_module else name


def complain(text: str) -> None:
    """Print one line on standard error, after the name of the program."""
    print(f"{program().split()[-1]}: {text}", file=sys.stderr)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the known word most like it, if there is one."""
    found = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def count(text: str) -> int:
    """Read a whole number that may be 0."""
    return _bounded_int(text, 0)


def positive(text: str) -> int:
    """Read a whole number that is not 0."""
    return _bounded_int(text, 1)


def seconds(text: str) -> float:
    """Read a time in seconds."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not SHORTEST <= value <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text} s is not between {SHORTEST:g} and {LONGEST:.0f}")
    return value


def _bounded_int(text: str, low: int, high: int = 1_000_000) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
    return value
