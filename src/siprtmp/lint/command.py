"""`siprtmp lint`: judges a capture by the rules of SIP, RTP, RTCP, RTMP, RTMFP and their carriers.

Own design: docs/3-howto/lint.md is the guide.  A capture that is cut off is judged up to there, and
the exit code says that it was.
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from siprtmp.explain.command import key_file
from siprtmp.explain.context import RtmfpKey
from siprtmp.lint.judge import Judge
from siprtmp.lint.packets import Capture, read_capture
from siprtmp.lint.report import LintReport
from siprtmp.lint.svg import picture
from siprtmp.operation.arguments import ConfigError, Parser, program


def run(arguments: Sequence[str]) -> int:
    """Judge a capture; returns 0, 1 if there are findings, 2 if it ends too soon.

    Raises ConfigError for a bad option, or a file that cannot be read.
    """
    options = _parser().parse_args(arguments)
    try:
        capture = read_capture(options.input.read_bytes())
    except OSError as error:
        raise ConfigError(f"{options.input}: {error.strerror or error}") from None
    except ConfigError as error:
        raise ConfigError(f"{options.input}: {error}") from None
    report = lint(capture, options.rtmfp_keys or (), str(options.input))
    _write(options.json, report.json() + "\n")
    _write(options.svg, picture(report.diagrams, report.marks) + "\n")
    _print(report, ladder=options.ladder)
    if report.fault:
        print(f"siprtmp: {options.input}: {report.fault}", file=sys.stderr)
        return 2
    return 1 if report.findings else 0


def lint(capture: Capture, keys: Sequence[RtmfpKey] = (), name: str = "capture") -> LintReport:
    """Judge a capture that was read."""
    judge = Judge(keys)
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


def _write(path: Path | None, text: str) -> None:
    if path is None:
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None


def _print(report: LintReport, *, ladder: bool) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack letters, even the §
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in report.lines(ladder=ladder):
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> Parser:
    parser = Parser(
        prog=f"{program()} lint",
        allow_abbrev=False,
        description="Judge a capture by the rules of SIP, RTP, RTCP, RTMP and RTMFP, also within "
        "WebSockets, TURN and HTTP: one line for each finding, with its packet, time, sender and "
        "section. Exit code 1 says that there are some, 2 that the capture is broken or cut off.",
    )
    add = parser.add_argument
    add("input", type=Path, metavar="FILE", help="A capture, pcap or pcapng.")
    add("--ladder", action="store_true", help="Draw each call, connection and session as text.")
    add("--svg", type=Path, metavar="FILE", help="Draw them as a picture.")
    add("--json", type=Path, metavar="FILE", help="Write the findings as JSON.")
    add(
        "--rtmfp-keys",
        type=key_file,
        metavar="FILE",
        help="The keys of RTMFP sessions, as `serve --capture` writes them: a line KEY[:HMACKEY] "
        "for each direction.",
    )
    return parser
