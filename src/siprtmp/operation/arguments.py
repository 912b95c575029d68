"""The values of options, from what stands on the command line or in the file.

Own design: all of these raise argparse.ArgumentTypeError, one line, which both places show.
"""

import argparse
from collections.abc import Callable
from typing import TypeVar

from siprtmp.operation.numbers import parse_port_range

T = TypeVar("T", str, int)


def port_range(text: str) -> tuple[int, int]:
    """Two ports: RFC 3550 §11."""
    return argument(parse_port_range, text)


def milliseconds(text: str) -> int:
    """Of a timer of SIP's: RFC 3261 §17.1.1.1."""
    return _bounded_int(text, 1, 60_000)


def merge(text: str) -> int:
    """Milliseconds to gather output for.  Own design."""
    return _bounded_int(text, 0, 1000)


def count(text: str) -> int:
    """So many, 0 included.  Own design."""
    return _bounded_int(text, 0, 1_000_000)


def _bounded_int(text: str, low: int, high: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
    return value


def seconds(text: str) -> float:
    """A time, not endless.  Own design."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text} seconds is out of range")
    return value


def argument(parse: Callable[[str], tuple[T, int]], text: str) -> tuple[T, int]:
    """What `parse` makes of it, a ValueError being the operator's mistake.  Own design."""
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
