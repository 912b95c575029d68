"""`python -m rtmplite repair`: make a proper file of what a crash left behind."""

import argparse
import os
from pathlib import Path
from typing import Any

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.repair import repair
from rtmplite.net.server.files import FileSource


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    mend = commands.add_parser("repair", help="mend an FLV file: sizes, index, a cut end")
    mend.add_argument("file", type=Path, help="what to mend; it stays as it is")
    mend.add_argument("-o", "--output", type=Path, help="a new file; FILE.repaired.flv if missing")
    mend.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the mended file, and tell what was found."""
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
