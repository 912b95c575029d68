"""What the commands of `python -m rtmplite` have in common: how they are read and what they say."""

import argparse
from typing import Final, NoReturn

BAD_USAGE: Final = 2  # exit code


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, instead of a page of usage and then the line."""

    def error(self, message: str) -> NoReturn:
        """End with that line."""
        self.exit(BAD_USAGE, f"{self.prog.removeprefix('python -m ')}: {message}\n")


def seconds(text: str) -> float:
    """A time that can be waited for.  Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def in_words(error: Exception) -> str:
    """An error without the number that systems have for it."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
