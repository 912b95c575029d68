"""Command lines: the parser, the program's name, and times in seconds.

Own design: a mistake is told in one line.
"""

import argparse
import difflib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NoReturn

NAME: Final = "siprtmp"
_UNKNOWN: Final = "unrecognized arguments: "  # how argparse begins


class ConfigError(Exception):
    """A setting that can't be served; the message is one line for the operator.

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
    """The words that started this program: `siprtmp`, or `python -m siprtmp`."""
    return NAME if Path(sys.argv[0]).stem == NAME else f"python -m {NAME}"


def needs_extra(what: str, extra: str) -> str:
    """Say that something needs an extra that is not installed, and how to install it."""
    return f"{what} needs the extra {extra}: pip install '{NAME}[{extra}]'"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the known word most like it, if there is one."""
    found = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def seconds(text: str, low: float, high: float) -> float:
    """Read a time in seconds, from `low` to `high`."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text} s is not between {low:g} and {high:.0f}")
    return value
