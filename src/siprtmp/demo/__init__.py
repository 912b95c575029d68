"""`siprtmp demo`: a call through a gateway, judged by the audio that arrives at both ends.

Own design: the gateway is a process of its own with its default settings, and meets its two ends
only at real sockets on free loopback ports.  The phone registers as bob at the embedded registrar;
the client calls it through the public API of the application `sip`; each sends a tone of its own in
G.711, and the verdict is drawn from the tones that were decoded at the other end.

- `gateway_process` starts the gateway, and stops it.
- `ends` has the client and the phone.
- `tones` makes and recognises tones; `figures` counts, times and judges.
- `show` runs the demo: the order of events, the live line, the verdict.
- `in_browser` has a page for the client, and a user who presses its buttons.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Final

from siprtmp.operation.arguments import Parser, program, seconds

SECONDS: Final = 10.0
SHORTEST: Final = 1.0
LONGEST: Final = 3600.0


def run(arguments: Sequence[str]) -> int:
    """Run the demo; returns 0 if the call held, 1 if not.  Raises ConfigError for a bad option."""
    from siprtmp.demo.in_browser import BrowserDemo
    from siprtmp.demo.show import Demo

    options = _parser().parse_args(arguments)
    if options.browser:
        return BrowserDemo(options.seconds, verbose=options.verbose).run()
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
    parser.add_argument(
        "--browser",
        action="store_true",
        help="Open a page that calls the phone in place of the client; you press its buttons.",
    )
    parser.add_argument("--verbose", action="store_true", help="Show the logs of the processes.")
    return parser
