"""`rtclab lint`: judges a capture by the rules of SIP, RTP, RTCP, RTMP, RTMFP and their carriers.

Own design: docs/3-howto/lint.md is the guide.  A capture that is cut off is judged up to there, and
the exit code says that it was.
"""

import argparse
from collections.abc import Sequence

from rtclab.command_line.arguments import ConfigError, Parser, complain, program
from rtclab.command_line.files import STANDARD, print_lines, read_octets, title_of, write_octets
from rtclab.explain.command import NO_KEYS, KeyFile, add_key_file
from rtclab.lint.judge import Judge
from rtclab.lint.packets import Capture, read_capture
from rtclab.lint.report import LintReport
from rtclab.lint.svg import picture
from rtclab.unwrap.srtp import SrtpSessions


def run(arguments: Sequence[str]) -> int:
    """Judge a capture; returns 0, 1 if there are findings, 2 if it ends too soon.

    Raises ConfigError for a bad option, or a file that cannot be read.
    """
    options = _options(arguments)
    data, name = read_octets(options.input), title_of(options.input)
    try:
        capture = read_capture(data)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    report = lint(capture, options.keys, name)
    if options.json:
        write_octets(options.json, f"{report.json()}\n".encode())
    if options.svg:
        write_octets(options.svg, f"{picture(report.diagrams, report.marks)}\n".encode())
    if STANDARD not in (options.json, options.svg):
        print_lines(report.lines(ladder=options.ladder))
    if report.fault:
        complain(f"{name}: {report.fault}")
        return 2
    return 1 if report.findings else 0


def lint(capture: Capture, keys: KeyFile = NO_KEYS, name: str = "capture") -> LintReport:
    """Judge a capture that was read."""
    judge = Judge(keys.rtmfp, SrtpSessions(keys.srtp, keys.dtls))
    for packet in capture.packets:
        judge.hear(packet)
    judge.finish()
    seconds = capture.packets[-1].time if capture.packets else 0.0
    notes = dict(judge.notes)
    if capture.skipped:
        notes["packets that are cut short, or of neither UDP nor TCP"] = capture.skipped
    return LintReport(
        name,
        capture.frames,
        seconds,
        judge.findings.sorted(),
        judge.ladder.diagrams,
        judge.streams(),
        notes,
        capture.fault,
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    _, more = parser.parse_known_args(arguments)
    if more and not more[0].startswith("-"):
        raise ConfigError("lint takes one FILE")
    return parser.parse_args(arguments)


def _parser() -> Parser:
    parser = Parser(
        prog=f"{program()} lint",
        allow_abbrev=False,
        description="Judge a capture by the rules of SIP, RTP, RTCP, RTMP and RTMFP, also within "
        "WebSockets, TURN and HTTP: one line for each finding, with its packet, time, sender and "
        "section. Exit code 1 says that there are some, 2 that the capture is broken or cut off.",
    )
    add = parser.add_argument
    add("input", metavar="FILE", help="A capture, pcap or pcapng; - is standard input.")
    add("--ladder", action="store_true", help="Draw each call, connection and session as text.")
    add("--svg", metavar="FILE", help="Draw them as a picture; - is standard output.")
    add("--json", metavar="FILE", help="Write the findings as JSON; - is standard output.")
    add_key_file(parser)
    return parser
