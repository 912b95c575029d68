"""`python -m rtmplite repair`: write a proper copy of an FLV file that a crash has cut off."""

import argparse
import os
from pathlib import Path
from typing import Any

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.repair import repair
from rtmplite.net.server.files import FileSource
from rtmplite.net.usage import sentence


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    said = "write a proper copy of an FLV file that a crash has cut off"
    command = commands.add_parser("repair", help=said, description=sentence(said))
    command.add_argument("file", type=Path, metavar="FILE", help="The file; it stays as it is.")
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="COPY",
        help="Write to this new file (FILE with the ending .repaired.flv).",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the copy, and print the faults found."""
    target = options.output or options.file.with_suffix(".repaired.flv")
    with options.file.open("rb") as source:
        try:
            output = target.open("xb")
        except FileExistsError:
            raise LocalError(f"{target} exists") from None
        try:
            with output:
                report = repair(FileSource(source.fileno()), output.write)
        except RemoteError as error:
            os.unlink(target)
            raise LocalError(f"{options.file}: {error.description}") from None
        except BaseException:
            os.unlink(target)
            raise
    print(
        f"{target}: {report.duration / 1000:.3f} s, {report.tags} tags; "
        f"{report.wrong_sizes} wrong sizes, {report.lost} bytes dropped"
    )
    return 0
