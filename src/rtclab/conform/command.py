"""`rtclab conform`: judges a running program by the requirements of its protocol.

Own design: docs/3-howto/conform.md is the guide.  A protocol's cases are loaded when asked for: its
package under `rtclab.conform` exports them as `SUITE`.
"""

import argparse
import importlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from rtclab.command_line.arguments import ConfigError, Parser, complain, positive, program, seconds
from rtclab.command_line.files import STANDARD, write_octets
from rtclab.conform import runner
from rtclab.conform.case import ConformCase, Suite, Unreachable
from rtclab.conform.report import as_json, as_junit, case_lines, text_lines

PROTOCOLS: Final = (  # packages beside this module
    "sip",
    "rtp",
    "rtmp",
    "rtmfp",
    "flv",
    "whip",
    "whep",
    "ice",
    "resource",
)
UNREACHABLE: Final = 3


def run(arguments: Sequence[str]) -> int:
    """Judge a target; returns 0, 1 if a requirement is not met, 3 if nobody is there.

    Raises ConfigError for a bad option or target.
    """
    options = _parser().parse_args(arguments)
    suite: Suite = importlib.import_module(f"rtclab.conform.{options.protocol}").SUITE
    if options.proofs:
        if suite.with_users is None:
            raise ConfigError(f"conform {options.protocol} takes no --user and no --token")
        suite = suite.with_users(options.proofs)
    if options.webhook:
        if suite.with_webhook is None:
            raise ConfigError(f"conform {options.protocol} takes no --webhook")
        suite = suite.with_webhook(options.webhook)
    cases = chosen(suite, options.role, options.section)
    if options.list:
        print("\n".join(case_lines(cases)))
        return 0
    if options.target is None:
        raise ConfigError(f"conform {options.protocol} needs a target: {suite.target}")
    try:
        suite.reach(options.target)
    except Unreachable as reason:
        complain(f"{options.target}: {reason}")
        return UNREACHABLE
    except ValueError as reason:
        raise ConfigError(f"{options.target}: {reason}") from None
    return _judge(suite, cases, options)


def chosen(suite: Suite, role: str | None, section: str | None) -> list[ConformCase]:
    """Take the cases of a role and of a section with those within it; None is any."""
    if role is not None and role not in suite.roles:
        raise ConfigError(f"no role {role!r}; there are: {', '.join(suite.roles)}")
    cases = [
        case
        for case in suite.cases
        if role in (None, case.role)
        and (section is None or f"{case.section}.".startswith(f"{section}."))
    ]
    if not cases:
        raise ConfigError("no case is left; --list names them")
    return cases


def _judge(suite: Suite, cases: Sequence[ConformCase], options: argparse.Namespace) -> int:
    timeout = options.timeout or suite.timeout
    results = runner.run(suite, options.target, cases, timeout, options.at_once)
    if STANDARD not in (options.json, options.junit):
        print("\n".join(text_lines(results)))
    if options.json:
        written = as_json(results, options.protocol, options.target)
        write_octets(options.json, f"{written}\n".encode())
    if options.junit:
        write_octets(options.junit, as_junit(results, options.protocol, options.strict))
    bad = any(
        each.fails(options.strict) or each.outcome is runner.Outcome.ERROR for each in results
    )
    return 1 if bad else 0


def _basic(text: str) -> str:
    """A user as Authorization.  Raises ValueError."""
    if ":" not in text.strip(":"):
        raise argparse.ArgumentTypeError("a user is NAME:PASSWORD")
    return f"Basic {b64encode(text.encode()).decode()}"


def _place(text: str) -> tuple[str, int]:
    """Read `HOST:PORT`.  Raises ArgumentTypeError."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _parser() -> Parser:
    parser = Parser(
        prog=f"{program()} conform",
        allow_abbrev=False,
        description="Judge a running program by the requirements of its protocol. Exit code 1 "
        "says that a MUST is not met or that the target died, 3 that nobody answers at the target.",
    )
    add = parser.add_argument
    add("protocol", choices=PROTOCOLS, help="What the target speaks.")
    add(
        "target",
        nargs="?",
        metavar="TARGET",
        help="Where it is; without it the command says how to write it.",
    )
    add("--role", metavar="ROLE", help="Only the cases for this role, such as uas or server.")
    add("--section", metavar="SECTION", help="Only this section, such as 8.2, and those in it.")
    add(
        "--user",
        dest="proofs",
        action="append",
        type=_basic,
        metavar="NAME:PASSWORD",
        help="A user of the target, for cases about rights; the second one is another user.",
    )
    add(
        "--token",
        dest="proofs",
        action="append",
        type="Bearer {}".format,
        metavar="TOKEN",
        help="The same, by a token.",
    )
    add(
        "--webhook",
        type=_place,
        metavar="HOST:PORT",
        help="Where to open a web service for the time of the run, to which the target may post; "
        "for cases about that.",
    )
    add("--list", action="store_true", help="List the cases, and run none.")
    add("--strict", action="store_true", help="Count a SHOULD that is not met as a failure.")
    add("--junit", metavar="FILE", help="Write the results as JUnit XML; - is standard output.")
    add("--json", metavar="FILE", help="Write the results as JSON; - is standard output.")
    add(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="How long one case may take (default: what its protocol needs).",
    )
    add(
        "--at-once",
        type=positive,
        metavar="N",
        help="How many cases run at the same time; 1 tells which of them a target dies of.",
    )
    return parser
