"""`rtclab load`: many clients of a server, what they saw, and where the server breaks.

Own design: the scheme of the URL chooses the clients, which are imported then, since a phone needs
as much as all else; a worker is the same program again.
"""

import argparse
import re
import ssl
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import gevent

from p2psip.errors import LocalError as SipLocalError
from p2psip.errors import RemoteError as SipRemoteError
from rtclab.command_line.arguments import (
    ConfigError,
    Parser,
    complain,
    count,
    positive,
    program,
    seconds,
)
from rtclab.command_line.files import STANDARD, print_lines, read_octets, write_octets
from rtclab.load import page, report, workers
from rtclab.load.clients.client import TIMEOUT, Work
from rtclab.load.crew import Crew
from rtclab.load.figures.course import Course, Ramp
from rtclab.load.figures.film import MadeFilm, MediaSource, Recording
from rtclab.load.figures.health import BUSY, LATE
from rtclab.load.figures.tally import State, Tally
from rtclab.load.figures.verdict import Exit, Limits
from rtclab.load.run import Record
from rtclab.load.run import run as run_course
from rtclab.load.screen import EACH, LiveScreen, screen_for
from rtmplite.errors import LocalError, RemoteError
from rtmplite.net.descriptors import raise_limit
from rtmplite.net.redaction import public
from rtmplite.net.tls import client_context
from rtmplite.rtmp.client import Target

# The schemes of URLs, and what can be done by each; the first is meant without an option.
MODES: Final = {
    "rtmp": ("play", "publish"),
    "rtmps": ("play", "publish"),
    "rtmpt": ("play", "publish"),
    "rtmfp": ("play", "publish"),
    "http": ("play",),
    "https": ("play",),
    "ws": ("play",),
    "wss": ("play",),
    "whip": ("publish",),
    "whips": ("publish",),
    "whep": ("play",),
    "wheps": ("play",),
    "sip": ("call", "register", "options"),
    "sips": ("call", "register", "options"),
}
SECURE: Final = ("rtmps", "https", "wss", "whips", "wheps", "sips")
BIT_RATE: Final = 1_000_000.0
WAIT: Final = 0.05  # s between looks at the source
_UNITS: Final = {"": 1.0, "k": 1e3, "M": 1e6}


def run(arguments: Sequence[str]) -> int:
    """Put a load on a server; raises ConfigError for a bad option or URL.

    Returns 0, 1 if the server broke a limit, 3 if nobody answers, 4 if the generator was the limit.
    """
    options = _parser().parse_args(arguments)
    raise_limit()  # a client has a socket, or several
    if options.list:
        print_lines(f"{scheme:6} {', '.join(modes)}" for scheme, modes in MODES.items())
        return 0
    if options.url is None:
        raise ConfigError("load needs a URL; --list says which")
    mode = _mode(options)
    try:
        return _load(options, mode, arguments)
    except (LocalError, SipLocalError, SipRemoteError, ValueError) as error:
        raise ConfigError(f"{public(options.url)}: {error}") from None


def _mode(options: argparse.Namespace) -> str:
    scheme = options.url.partition(":")[0]
    if scheme not in MODES:
        raise ConfigError(f"{public(options.url)}: no such scheme; --list says which there are")
    mode: str = options.mode or MODES[scheme][0]
    if mode not in MODES[scheme]:
        raise ConfigError(f"{scheme} cannot {mode}; it can {' or '.join(MODES[scheme])}")
    return mode


def _load(options: argparse.Namespace, mode: str, arguments: Sequence[str]) -> int:
    with ExitStack() as after:
        make = _maker(options, mode, after)
        if options.worker is not None:
            number, of = map(int, options.worker.split("/"))
            workers.serve(Crew(make, options.interval, number, of))
            return 0
        if options.source is not None and not _begin_source(options, after):
            return Exit.UNREACHABLE
        clients: workers.Clients = (
            Crew(make, options.interval)
            if options.workers == 1
            else workers.Workers(options.workers, arguments)
        )
        course = Course(
            options.number,
            _limits(options),
            interval=options.interval,
            life=options.life,
            ramp=options.ramp,
            dwell=options.dwell,
        )
        screen = screen_for(silent=STANDARD in _files(options))
        each = EACH if isinstance(screen, LiveScreen) else options.summary
        record = run_course(clients, course, screen, each)
    _write(record, options)
    assert course.verdict is not None
    return course.verdict.code


def _maker(options: argparse.Namespace, mode: str, after: ExitStack) -> Callable[[int], Work]:
    """What makes the client of each number; raises what a bad URL raises."""
    url, tls = options.url, _tls(options)
    if mode in ("call", "register", "options"):
        from rtclab.load.clients import calls

        phones = calls.Phones(url, tls, options.hold)
        after.callback(phones.close)
        return {
            "call": phones.caller,
            "register": phones.registrant,
            "options": phones.asker,
        }[mode]

    if url.startswith(("whip", "whep")):
        return _browsers(options, tls, after)
    from rtclab.load.clients import flv, streams

    def make(number: int) -> Work:
        if mode == "publish":
            return streams.publisher(url, tls, _media(options), number)
        if url.partition(":")[0] in ("rtmp", "rtmps", "rtmpt", "rtmfp"):
            return streams.player(url, tls, number)
        return flv.player(url, tls, number)

    make(0)  # complains now
    return make


def _browsers(
    options: argparse.Namespace, tls: ssl.SSLContext | None, after: ExitStack
) -> Callable[[int], Work]:
    try:
        from rtclab.load.clients import whep, whip
    except ImportError:
        raise ConfigError("WHIP and WHEP need pyOpenSSL: pip install siprtmp[webrtc]") from None

    url, rate = options.url, options.bit_rate
    if url.startswith("whep"):
        crowd = whep.viewers(url, tls)
    elif options.file is not None:
        raise ConfigError("whip publishes made pictures and sound alone, no --file")
    elif "{}" not in url and (options.number > 1 or options.ramp):
        raise ConfigError("whip needs {} in the URL, so that each client has a stream of its own")
    else:
        crowd = whip.publishers(url, tls, rate, video=not options.no_video)
    after.callback(crowd.close)
    crowd.client(0)  # complains now
    return crowd.client


def _tls(options: argparse.Namespace) -> ssl.SSLContext | None:
    by_tls = re.search(r";transport=(tls|wss)\b", options.url, re.IGNORECASE)
    if options.url.partition(":")[0] in SECURE or by_tls:
        return client_context(insecure=options.insecure)
    return None


def _media(options: argparse.Namespace) -> MediaSource:
    if options.file is None:
        return MadeFilm(options.bit_rate, video=not options.no_video)
    try:
        return Recording(read_octets(options.file))
    except RemoteError as error:
        raise ConfigError(f"{options.file}: {error}") from None


def _begin_source(options: argparse.Namespace, after: ExitStack) -> bool:
    """Publish what the players play; false, with a complaint, if the server does not let us."""
    from rtclab.load.clients import streams

    target, tally = Target.parse(options.source), Tally("source")
    tls = client_context(insecure=options.insecure) if target.secure else None
    source = gevent.spawn(streams.publish, target, tls, _media(options), tally)
    after.callback(gevent.Greenlet.kill, source)
    waited = 0.0
    while tally.state in (State.NEW, State.CHECKING) and waited < 2 * TIMEOUT:
        gevent.sleep(WAIT)
        waited += WAIT
    if tally.state is State.CONNECTED:
        return True
    complain(f"{public(options.source)}: {tally.reason or 'no answer'}")
    return False


def _limits(options: argparse.Namespace) -> Limits:
    return Limits(
        options.max_loss,
        options.max_delay,
        options.max_refused,
        options.max_stalls,
        options.max_own_delay,
        options.max_own_cpu,
    )


def _files(options: argparse.Namespace) -> list[str | None]:
    return [getattr(options, name) for name in ("json", "csv", "junit", "html", "prometheus")]


def _write(record: Record, options: argparse.Namespace) -> None:
    """Print the last summary and the verdict, and write the files that are asked for."""
    url, at = public(options.url), (record.seconds, record.totals, record.health)
    if STANDARD not in _files(options):
        print_lines(report.summary_lines(*at))
        if options.details:
            print_lines(line for each in record.tallies for line in report.detail_lines(each))
        print_lines(report.end_lines(record))
    writers: dict[str, Callable[[], bytes]] = {
        "json": lambda: report.as_json(record, url),
        "csv": lambda: report.as_csv(record),
        "junit": lambda: report.as_junit(record, url),
        "html": lambda: page.as_html(record, url),
        "prometheus": lambda: report.as_prometheus(*at),
    }
    for name, write in writers.items():
        if (file := getattr(options, name)) is not None:
            write_octets(file, write())


def _ramp(text: str) -> Ramp:
    try:
        return Ramp.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not TO/STEP, such as 1000/100") from None


def _bit_rate(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kM]?)", text)
    if found is None or not 1e3 <= (rate := float(found[1]) * _UNITS[found[2]]) <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no bit rate, such as 500k or 2M")
    return rate


def _interval(text: str) -> float:
    return 0.0 if text == "0" else seconds(text)


def _figure(text: str) -> float | None:
    if text == "any":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor any") from None


def _parser() -> Parser:
    parser = Parser(
        prog=f"{program()} load",
        allow_abbrev=False,
        description="Put a load on a server, and say what its clients see. Exit code 1 says that "
        "the server broke a limit, 3 that nobody answers, 4 that the generator itself was too "
        "slow to blame the server.",
    )
    parser.add_argument(
        "url",
        nargs="?",
        metavar="URL",
        help="What to play, publish or call; {} becomes the number of the client.",
    )
    parser.add_argument("--list", action="store_true", help="List the schemes, and what each can.")
    for name, text in (
        ("play", "Play the stream of the URL, all clients the same."),
        ("publish", "Publish, each client a stream of its own."),
        ("call", "Call, and talk to an echo."),
        ("register", "Register, each client a user of its own."),
        ("options", "Send OPTIONS, again and again."),
    ):
        parser.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=text)
    _add_course(parser)
    _add_media(parser)
    _add_limits(parser)
    _add_files(parser)
    return parser


def _add_course(parser: Parser) -> None:
    group = parser.add_argument_group("course")
    add = group.add_argument
    add("-n", dest="number", type=positive, default=1, metavar="N", help="Clients (default: 1).")
    add(
        "--interval",
        type=_interval,
        default=0.1,
        metavar="SECONDS",
        help="Time between the beginnings of two clients (default: 0.1).",
    )
    add("--life", type=seconds, metavar="SECONDS", help="End the run then (default: never).")
    add(
        "--hold",
        type=seconds,
        metavar="SECONDS",
        help="End a call or registration then, and begin it again; for OPTIONS, the time between "
        "two (default: 1).",
    )
    add(
        "--ramp",
        type=_ramp,
        metavar="TO/STEP",
        help="Have STEP clients more, up to TO, until the server breaks a limit.",
    )
    add(
        "--dwell",
        type=seconds,
        default=10.0,
        metavar="SECONDS",
        help="How long a step of the ramp is watched (default: 10).",
    )
    add(
        "--summary",
        type=seconds,
        default=5.0,
        metavar="SECONDS",
        help="Time between two summaries (default: 5).",
    )
    add(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="Processes that share the clients (default: 1).",
    )
    add("--worker", metavar="K/N", help=argparse.SUPPRESS)


def _add_media(parser: Parser) -> None:
    add = parser.add_argument_group("media").add_argument
    add("--source", metavar="URL", help="Publish marked media there meanwhile, for the players.")
    add(
        "--bit-rate",
        type=_bit_rate,
        default=BIT_RATE,
        metavar="BITS",
        help="Of published video, such as 500k or 2M (default: 1M).",
    )
    add("--no-video", action="store_true", help="Publish sound alone.")
    add("--file", metavar="FILE", help="Publish this FLV file again and again instead.")
    add("--insecure", action="store_true", help="Accept any certificate.")


def _add_limits(parser: Parser) -> None:
    group = parser.add_argument_group(
        "limits", "What is past one ends with exit code 1; the word any takes a limit away."
    )
    add = group.add_argument
    limits = Limits()
    add(
        "--max-loss",
        type=_figure,
        default=limits.loss,
        metavar="PERCENT",
        help="Lost packets (default: 1).",
    )
    add(
        "--max-delay",
        type=_figure,
        default=limits.delay,
        metavar="MS",
        help="Delay of 95 marked frames in 100 (default: 1000).",
    )
    add(
        "--max-refused",
        type=_figure,
        default=limits.refused,
        metavar="PERCENT",
        help="Clients that are refused or fail (default: 0).",
    )
    add("--max-stalls", type=count, metavar="N", help="Seconds without a frame (default: any).")
    add(
        "--max-own-delay",
        type=float,
        default=LATE,
        metavar="MS",
        help="How late the generator's own timers may be, p99 (default: 50).",
    )
    add(
        "--max-own-cpu",
        type=float,
        default=BUSY,
        metavar="PERCENT",
        help="How much of a core the generator may use (default: 90).",
    )


def _add_files(parser: Parser) -> None:
    add = parser.add_argument_group("reports", "A file, or - for standard output.").add_argument
    add("--details", action="store_true", help="Print the report of each client, too.")
    add("--json", metavar="FILE", help="All figures as JSON.")
    add("--csv", metavar="FILE", help="A line for each client.")
    add("--junit", metavar="FILE", help="Each step of the ramp as a test.")
    add("--html", metavar="FILE", help="A page with plots.")
    add("--prometheus", metavar="FILE", help="The last figures in the text format of Prometheus.")
