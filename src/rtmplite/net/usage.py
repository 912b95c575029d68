"""Shared by the commands of `rtmplite`: options that several have, and the text of errors."""

import argparse
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

BAD_USAGE: Final = 2  # exit code
NAME: Final = "rtmplite"


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one line, with a suggestion for a mistyped option."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"add_help": False})
        self.add_argument("-h", "--help", action="help", help="Show this help.")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse unknown words: only the parser of a command knows its options."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            kind = "option" if word.startswith("-") else "argument"
            self.error(
                f"there is no {kind} {word}{did_you_mean(word, self._option_string_actions)}"
            )
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and a line on standard error."""
        self.exit(BAD_USAGE, f"{self.prog.removeprefix('python -m ')}: {message}\n")


def program() -> str:
    """The words that started this program: `rtmplite`, or `python -m rtmplite`."""
    return NAME if Path(sys.argv[0]).stem == NAME else f"python -m {NAME}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the known word most like it, if there is one."""
    found = get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def sentence(words: str) -> str:
    """The line of a command in a list, as the sentence that begins its own help."""
    return f"{words[0].upper()}{words[1:]}."


def seconds(text: str) -> float:
    """Read a time in seconds that is positive and not endless.  Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def add_timeout(add: Callable[..., Any]) -> None:
    """Add the option for how long a client waits for each answer."""
    add(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="Wait S seconds for each answer of the server (10).",
    )


def in_words(error: Exception) -> str:
    """The text of an error, without the system's number of it."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
