"""The files that a command line names, where `-` is standard input or standard output.

Own design: a reader of standard output may leave at any time, as `head` does, which is no error;
and a terminal may lack letters, even the section sign.
"""

import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rtclab.command_line.arguments import ConfigError

STANDARD: Final = "-"


def read_octets(name: str) -> bytes:
    """Read a whole file or standard input; raises ConfigError with the name and the reason."""
    if name == STANDARD:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}") from None


def title_of(name: str) -> str:
    """How messages name a file."""
    return "standard input" if name == STANDARD else name


def write_octets(name: str, data: bytes) -> None:
    """Write a whole file, or to standard output; raises ConfigError with the name and the reason.

    The data are text in UTF-8.
    """
    if name == STANDARD:
        print_lines([data.decode().removesuffix("\n")])
        return
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}") from None


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as far as they are read."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:  # what is left must not be written at the exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
