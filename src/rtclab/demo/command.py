"""`rtclab demo`: its command line; see the package for what it does.

Own design: both ends, and the gateway, are processes of their own.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Final

from rtclab.command_line.arguments import Parser, program, seconds
from rtclab.demo.show import Demo

SECONDS: Final = 10.0
SHORTEST: Final = 1.0
LONGEST: Final = 3600.0


def run(arguments: Sequence[str]) -> int:
    """Run the demo; returns 0 if the call held, 1 if not.  Raises ConfigError for a bad option."""
    options = _parser().parse_args(arguments)
    return Demo(options.seconds, mute=options.mute, verbose=options.verbose).run()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"{program()} demo",
        description="Place a call on loopback: an RTMP client calls a SIP phone through a gateway. "
        "Exit code 0 if both heard the other's tone and nothing was lost, else 1.",
    )
    parser.add_argument(
        "--seconds",
        type=partial(seconds, low=SHORTEST, high=LONGEST),
        default=SECONDS,
        metavar="N",
        help="Let both ends talk for N seconds (10).",
    )
    parser.add_argument(
        "--mute", choices=("client", "phone"), help="Let one end say nothing, to see the demo fail."
    )
    parser.add_argument("--verbose", action="store_true", help="Show the logs of the processes.")
    return parser
