"""Command lines: the parser, the program's name, and the values that options take.

Own design: the functions that read a value raise argparse.ArgumentTypeError with one line for the
operator, so that the command line and the configuration file show the same text.
"""

import argparse
import difflib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

NAME: Final = "siprtmp"
OFF: Final = "off"
_UNKNOWN: Final = "unrecognized arguments: "  # how argparse begins
SHORTEST: Final = 0.001  # s
LONGEST: Final = 1e7  # s


_PICTURES: Final = re.compile(r"(?:([0-9]{2,4})x([0-9]{2,4}))?(?:@([1-9][0-9]?))?")


class VideoLimits(NamedTuple):
    """The limits of pictures for phones; 0 leaves a limit to the phone; see `video_limits`."""

    width: int = 0
    height: int = 0
    rate: int = 0
    kilobits: int = 0
    baseline: bool = False


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


def port_range(text: str) -> tuple[int, int]:
    """Read `LOW-HIGH`, two ports with room for one pair of RTP and RTCP: RFC 3550 §11."""
    low_text, dash, high_text = text.partition("-")
    if not (dash and text.isascii() and low_text.isdigit() and high_text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not LOW-HIGH")
    low, high = int(low_text), int(high_text)
    if not 1024 <= low < high <= 65535 or high < low + low % 2 + 1:
        raise argparse.ArgumentTypeError(
            f"{text!r}: ports must lie in 1024-65535 and hold an even-odd pair"
        )
    return low, high


def milliseconds(text: str) -> int:
    """Read the value of a SIP timer: RFC 3261 §17.1.1.1."""
    return _bounded_int(text, 1, 60_000)


def merge(text: str) -> int:
    """Read how many milliseconds output is merged for."""
    return _bounded_int(text, 0, 1000)


def count(text: str) -> int:
    """Read a whole number that may be 0."""
    return _bounded_int(text, 0, 1_000_000)


def packet_size(text: str) -> int:
    """Read how many octets the payload of an RTP packet may have: RFC 3550 §5.1."""
    return _bounded_int(text, 100, 9000)


def video_limits(text: str) -> VideoLimits | None:
    """Read `on`, `off`, or limits such as `640x360@15,500,baseline`, each of which may be left out.

    Size in pixels, pictures a second, and kilobits a second.
    """
    if text == OFF:
        return None
    limits = VideoLimits()
    for part in () if text == "on" else text.split(","):
        size = _PICTURES.fullmatch(part)
        if part == "baseline":
            limits = limits._replace(baseline=True)
        elif part.isascii() and part.isdigit():
            limits = limits._replace(kilobits=_bounded_int(part, 16, 100_000))
        elif part and size is not None:
            width, height, rate = (int(each or 0) for each in size.groups())
            if width and min(width, height) < 16:
                raise argparse.ArgumentTypeError(f"{part!r}: pictures have 16x16 pixels at least")
            limits = limits._replace(width=width, height=height, rate=rate)
        else:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not on, off, or limits such as 640x360@15,500,baseline"
            )
    return limits


def seconds(text: str, low: float = SHORTEST, high: float = LONGEST) -> float:
    """Read a time in seconds, from `low` to `high`."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text} s is not between {low:g} and {high:.0f}")
    return value


def _bounded_int(text: str, low: int, high: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
    return value
