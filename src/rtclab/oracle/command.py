"""`rtclab oracle`: our codecs for testers of other implementations.

Own design: docs/3-howto/use-as-oracle.md is the guide, and docs/5-reference/oracle-protocol.md has
the protocol and the JSON.
"""

import argparse
import base64
import binascii
import json
import os
import re
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Final

from rtclab.command_line.arguments import (
    ConfigError,
    Parser,
    complain,
    count,
    positive,
    program,
    seconds,
)
from rtclab.command_line.files import read_octets, title_of
from rtclab.explain.fields.field import counted
from rtclab.oracle import catalogue
from rtclab.oracle.codec import KINDS, REFUSALS, VERSION, Kind

FORMATS: Final = ("hex", "base64", "raw")
VECTORS: Final = 100  # cases of each class
CASES: Final = 200
DEFAULT_TIMEOUT: Final = 10.0  # s
_DESCRIPTION: Final = "Use our codecs to test another implementation of the same protocols."
_BETWEEN: Final = re.compile(r"\A\s*0x|[\s:]")  # what stands before digits and between them
_WITH_STATUS: Final = ("sip", "sdp")  # codecs whose refusal is a response of SIP
_INPUT_HELP: Final = (
    "One message; white space and colons between digits are ignored, and 0x before them; "
    "--format raw takes a file as it is."
)
_FORMAT_HELP: Final = "How the octets are written: hex (the default), base64 or raw."


def run(arguments: Sequence[str]) -> int:
    """Run one of the oracle's commands; returns the exit code.

    1 is for octets that are refused and for an implementation that disagrees.  Raises ConfigError.
    """
    words, command = list(arguments), None
    if "--" in words:
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    options = _parser().parse_args(words)
    if command is not None and options.run is not _compare:
        raise ConfigError("only compare takes a command behind --")
    options.command = command
    run_it: Callable[[argparse.Namespace], int] = options.run
    try:
        code = run_it(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has enough lines; what is left must not be written either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _list(options: argparse.Namespace) -> int:
    if options.codec:
        print("\n".join(catalogue.find(options.codec).fields()))
        return 0
    wide = max(map(len, catalogue.CODECS))
    cited = max(len(codec.citation) for codec in catalogue.CODECS.values())
    for codec in catalogue.CODECS.values():
        print(f"{codec.name:{wide}}  {codec.citation:{cited}}  {codec.about}")
    return 0


def _decode(options: argparse.Namespace) -> int:
    codec = catalogue.find(options.codec)
    octets = _octets(sys.stdin.buffer.read(), options.format)
    if not octets:
        raise ConfigError("no octets on standard input")
    try:
        value = codec.decode(octets)
    except REFUSALS as error:
        reason = getattr(error, "reason", error)  # the status of SIP means nothing to the others
        complain(f"refused: {error if codec.name in _WITH_STATUS else reason}")
        return 1
    print(json.dumps(codec.to_neutral(value)))
    return 0


def _octets(data: bytes, how: str) -> bytes:
    try:
        if how == "hex":
            return bytes.fromhex(_BETWEEN.sub("", data.decode("ascii")))
        return base64.b64decode(b"".join(data.split()), validate=True) if how == "base64" else data
    except (ValueError, binascii.Error):
        raise ConfigError(f"the input is no {how}; --format names another form") from None


def _encode(options: argparse.Namespace) -> int:
    codec = catalogue.find(options.codec)
    if codec.encode is None:
        raise ConfigError(f"{codec.name} is read only")
    try:
        written = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the input is no JSON: {error}") from None
    try:
        octets = codec.encode(codec.from_neutral(written))
    except (*REFUSALS, struct.error, OverflowError, ValueError) as error:  # a number out of range
        complain(f"refused: {error}")
        return 1
    if options.format == "raw":
        sys.stdout.buffer.write(octets)
        sys.stdout.buffer.flush()
    else:
        print(octets.hex() if options.format == "hex" else base64.b64encode(octets).decode())
    return 0


def _vectors(options: argparse.Namespace) -> int:
    codec = catalogue.find(options.codec)
    cases = catalogue.cases_of(codec)
    from rtclab.oracle.search import draws

    head = {"version": VERSION, "codec": codec.name}
    for kind in _present(options, _kinds(options), cases):
        for case in draws(cases[kind], options.count, options.seed):
            print(json.dumps(head | case.written()))
    return 0


def _kinds(options: argparse.Namespace) -> list[Kind]:
    """The classes that were asked for; all of them without an option."""
    return [kind for kind in KINDS if getattr(options, kind)] or list(KINDS)


def _present(
    options: argparse.Namespace, kinds: Sequence[Kind], cases: Mapping[Kind, object]
) -> list[Kind]:
    """The classes that a codec has; those that it lacks are named on standard error."""
    for kind in kinds:
        if kind not in cases:
            complain(f"{options.codec} has no {kind} cases")
    return [kind for kind in kinds if kind in cases]


def _compare(options: argparse.Namespace) -> int:
    codec = catalogue.find(options.codec)
    if not options.command:
        raise ConfigError("compare takes the COMMAND of the other implementation behind --")
    if options.encode and codec.encode is None:
        raise ConfigError(f"{codec.name} is read only")
    cases = catalogue.cases_of(codec)
    from rtclab.oracle.compare import Comparison
    from rtclab.oracle.program import Program
    from rtclab.oracle.report import Progress, lines

    kinds = _present(options, ["valid"] if options.encode else _kinds(options), cases)
    progress = Progress(sys.stderr, monotonic)
    with _ended_like_ctrl_c(), Program(options.command, options.timeout) as other:
        comparison = Comparison(
            codec, other.ask, monotonic, encode=options.encode, tell=progress.tell
        )
        report = comparison.run(cases, kinds, options.count, options.seed)
    progress.end()
    for line in lines(codec, report, options.seed):
        print(line)
    if report.interrupted:
        sys.stdout.flush()
        raise KeyboardInterrupt
    return 1 if report.findings else 0


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Take SIGTERM, by which `timeout` and CI end a command, for Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _referee(options: argparse.Namespace) -> int:
    from rtclab.oracle.referee import trace
    from rtclab.oracle.referee.referee import referee
    from rtclab.unwrap.capture_file import is_capture

    data, name = read_octets(options.trace), title_of(options.trace)
    try:
        read = trace.read(data)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    unread = f"{counted(read.unread, 'message')} of SIP cannot be read" if read.unread else ""
    if unread and is_capture(data):
        unread += "; rtclab lint says why"
    if not read.heard:
        raise ConfigError(f"{name}: {unread or 'there is no message of SIP'}")
    findings = referee(read.heard)
    for finding in findings:
        print(finding)
    found = f"{counted(len(findings), 'finding')} in {counted(len(read.heard), 'message')}"
    print(f"{found}; {unread}" if unread else found)
    return 1 if findings else 0


def _parser() -> Parser:
    parser = Parser(
        prog=f"{program()} oracle",
        allow_abbrev=False,
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    new = partial(commands.add_parser, allow_abbrev=False)
    about = "List the codecs, or the fields of one in neutral JSON."
    listing = new("list", help=about, description=about)
    listing.add_argument("codec", nargs="?", metavar="CODEC", help="A name of `oracle list`.")
    listing.set_defaults(run=_list)
    about = "Read octets from standard input, and print their value as neutral JSON."
    decode = new("decode", help=about, description=f"{about} {_INPUT_HELP}")
    _add_codec(decode, _decode, formats=True)
    about = "Read neutral JSON from standard input, and print the octets."
    _add_codec(new("encode", help=about, description=about), _encode, formats=True)
    about = "Print cases as JSON lines: octets, and what a reader must make of them."
    _add_cases(new("vectors", help=about, description=about), _vectors, VECTORS)
    about = "Compare a program that speaks the protocol with our codec."
    compare = new(
        "compare",
        help=about,
        description=f"{about} Exit code 0 if both agree, 1 if they do not.",
        usage=f"{program()} oracle compare [--valid] [--odd] [--broken] [--encode]\n"
        "           [--count N] [--seed N] [--timeout S] CODEC -- COMMAND...",
    )
    _add_cases(compare, _compare, CASES)
    compare.add_argument(
        "--encode", action="store_true", help="Compare what the program writes, not what it reads."
    )
    compare.add_argument(
        "--timeout",
        type=seconds,
        default=DEFAULT_TIMEOUT,
        metavar="S",
        help=f"Wait S seconds for each answer ({DEFAULT_TIMEOUT:g}).",
    )
    about = "Say what should have happened when in a trace of SIP, by our state machines."
    referee = new("referee", help=about, description=f"{about} Exit code 1 if anything is wrong.")
    referee.add_argument(
        "trace",
        metavar="TRACE",
        help="A capture, or JSON lines: time, from, to, transport, data; - is standard input.",
    )
    referee.set_defaults(run=_referee)
    usages = (each.format_usage().strip() for each in commands.choices.values())
    parser.epilog = "\n".join(text.removeprefix("usage: ") for text in usages)
    return parser


def _add_codec(
    parser: argparse.ArgumentParser,
    run_it: Callable[[argparse.Namespace], int],
    *,
    formats: bool = False,
) -> None:
    parser.set_defaults(run=run_it)
    parser.add_argument("codec", metavar="CODEC", help="A name of `oracle list`.")
    if formats:
        parser.add_argument("--format", choices=FORMATS, default="hex", help=_FORMAT_HELP)


def _add_cases(
    parser: argparse.ArgumentParser,
    run_it: Callable[[argparse.Namespace], int],
    cases: int,
) -> None:
    _add_codec(parser, run_it)
    add = parser.add_argument
    add("--valid", action="store_true", help="Take what our writer writes.")
    add("--odd", action="store_true", help="Take what is correct, and our writer never writes.")
    add("--broken", action="store_true", help="Take what breaks one rule.")
    add(
        "--count",
        type=positive,
        default=cases,
        metavar="N",
        help=f"Draw N cases of each class ({cases}).",
    )
    add("--seed", type=count, default=0, metavar="N", help="Draw other cases (0).")
