"""`rtclab`, or `python -m rtclab`: the command line.

Own design: the first word chooses a command, which is imported when it is called.  A mistake of
the user's is one line on standard error and exit code 2.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from rtclab import __version__
from rtclab.command_line.arguments import ConfigError, complain, did_you_mean, program
from rtmplite.net.redaction import public

USAGE: Final = """\
usage: {program} COMMAND [OPTION...]

Tools for those who write SIP, RTP, RTMP or RTMFP.

commands:
  explain [FILE|HEX]     Print every field of a packet, message, file or capture.
  lint FILE              Find what breaks a rule in a capture, and draw its calls.
  oracle COMMAND         Test another implementation of the protocols with our codecs.
  conform PROTO TARGET   Judge a running program by the requirements of a protocol.
  load URL               Put many clients on a server, and say where it breaks.

{program} COMMAND --help lists the options of a command.
{program} --version prints the version.
"""
COMMANDS: Final = (
    "explain",
    "lint",
    "oracle",
    "conform",
    "load",
)  # rooms with a `command`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help", "help"):
        print(USAGE.format(program=program()), end="")
        return 0
    if name == "--version":
        print(f"rtclab {__version__}")
        return 0
    if name not in COMMANDS:
        complain(f"no such command: {name}{did_you_mean(name, COMMANDS) or '; try --help'}")
        return 2
    try:
        code: int = importlib.import_module(f"rtclab.{name}.command").run(rest)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has seen enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:  # as a shell says it: 128 and the number of SIGINT
        return 130
    except ConfigError as error:
        complain(public(str(error)))
        return 2


if __name__ == "__main__":
    sys.exit(main())
