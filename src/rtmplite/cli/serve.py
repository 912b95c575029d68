"""`python -m rtmplite serve`: a server for live and recorded streams."""

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import gevent
from gevent.event import Event

from rtmplite.auth.guard import Question
from rtmplite.cli.live_lines import PrintedLive, stamp, stamped, warn
from rtmplite.errors import LocalError
from rtmplite.live.streams import Registry
from rtmplite.net import addresses
from rtmplite.net.http.flv_http import TEXT, FlvHttp
from rtmplite.net.http.wsgi import Server
from rtmplite.net.last_resort import SECONDS, ended_within
from rtmplite.net.redaction import public
from rtmplite.net.secret_files import is_open_to_all
from rtmplite.net.server import access, record, transports
from rtmplite.net.server.files import Alarms, Files
from rtmplite.net.server.live_log import UnknownApplication
from rtmplite.net.server.log_rate_limit import Sparing
from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.net.sighup import on_hangup
from rtmplite.net.usage import add_in_groups, sentence
from rtmplite.net.workers import Workers
from rtmplite.relay.link import Link
from rtmplite.rtmp import live_application
from rtmplite.rtmp.application import Application
from rtmplite.vod import application

log = logging.getLogger(__name__)

_LISTENERS: Final = (*transports.LISTENERS, "http")
HELP: Final = f"run a server with the applications {live_application.APP} and {application.APP}"

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "listeners": ("rtmp", "rtmps", "rtmpt", "rtmfp", "http", "tls-cert", "tls-key"),
    "players": ("gop-cache", "merge-ms"),
    "who may connect, publish and play": (
        *("users", "users-only", "allow-anonymous"),
        *("publish-key", "play-key", "sign-key", "sign-play"),
        *("on-connect", "on-publish", "on-play", "on-done", "hook-timeout", "hook-requests"),
    ),
    "files": ("record", "vod", "shared"),
    "limits": ("max-connections", "max-per-address", "max-message", "max-rtmfp-memory", "idle"),
    "relays": ("push", "pull", "ca", "insecure"),
    "clients that connect by RTMFP": (
        *("rtmfp-peers", "rtmfp-relay-host", "rtmfp-redirect-to", "rtmfp-overflow-to"),
    ),
    "the end": ("drain", "reconnect-to"),
}


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    serve = commands.add_parser(
        "serve",
        help=HELP,
        usage="%(prog)s [OPTION...]",
        description=f"{sentence(HELP)} HOST:PORT is an address such as 127.0.0.1:1935 or"
        " [::1]:1935; port 0 takes a free port, and off opens no listener. Defaults are in"
        " parentheses.",
    )
    add_in_groups(serve, GROUPS, _declare)
    serve.set_defaults(run=run)


def _declare(add: Callable[..., Any]) -> None:
    for name, default, what in (
        ("rtmp", "127.0.0.1:1935", "RTMP clients here (127.0.0.1:1935)"),
        ("rtmps", None, "RTMP clients over TLS here, with the certificate of --tls-cert (off)"),
        ("rtmpt", None, "RTMP clients that come through HTTP here (off)"),
        ("rtmfp", None, "RTMFP clients here, by UDP (off)"),
        ("http", None, "requests of browsers for /live/NAME.flv here (off)"),
    ):
        add(
            f"--{name}",
            type=addresses.listener,
            default=default,
            metavar="HOST:PORT",
            help=f"Accept {what}.",
        )
    add(
        "--merge-ms",
        type=float,
        default=0.0,
        metavar="N",
        help="Merge output for N milliseconds into fewer and larger writes (0).",
    )
    add(
        "--record",
        type=Path,
        metavar="DIR",
        help="Record everything that is published as FLV files in DIR, which is made if need be.",
    )
    add(
        "--vod",
        type=Path,
        metavar="DIR",
        help=f"Play the FLV files in DIR under their names, in the application {application.APP}.",
    )
    add("--shared", type=Path, metavar="DIR", help="Keep persistent shared objects in DIR.")
    transports.add_options(add)
    add(
        "--users",
        type=Path,
        metavar="FILE",
        help="Let only the users of this file publish; `rtmplite users` makes its lines. SIGHUP"
        " reads it again.",
    )
    add(
        "--allow-anonymous",
        action="store_true",
        help="Let everybody publish who reaches the listeners, also beyond loopback.",
    )
    access.add_options(add)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, or until the terminal closes."""
    _log_to_stderr()
    server = _Server(options)
    server.start()
    stop = Event()

    def end(number: signal.Signals) -> None:
        print(stamped("stopping", number.name), flush=True)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, end, number)
    on_hangup(partial(end, signal.SIGHUP), server.reload)
    listening = server.listening.items()
    ready = " ".join(f"{name}={addresses.written(*at)}" for name, at in listening)
    print(f"ready {ready}", flush=True)
    stop.wait()
    with ended_within(SECONDS + options.drain):
        server.stop()
    return 0


class _Server:
    """The server that the options describe.  Raises LocalError for wrong ones, at once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        if not any(getattr(options, name) for name in transports.LISTENERS):
            raise LocalError("nothing to serve: --rtmp is off, and there is no other")
        self._doors = access.Access(options, _say_refused)
        _warn_of_readers(options)
        self._doors.check(getattr(options, name) for name in _LISTENERS)
        self._registry, self._workers = Registry(), Workers()
        self._shared: SharedFiles | None = None
        self._recordings: record.Recordings | None = None
        self._http: Server | None = None
        self._open_folders()
        live = PrintedLive(self._doors.user_of)
        self._applications: dict[str, Application] = {live_application.APP: self._guarded(live)}
        if options.vod is not None:
            files = Files(_films(options.vod), self._workers)
            vod = application.VodApplication(files, Alarms())
            self._applications[application.APP] = self._guarded(vod)
        self._unknown = UnknownApplication(lambda: list(self._applications), warn)
        crowd = access.crowd(options)
        self._ways = transports.Transports(
            options, self._application_for, self._registry, access.limits(options), crowd, _tell
        )
        admits = self._doors.admits
        self._flv = FlvHttp(self._registry, admits=admits, crowd=crowd, on_viewer=live.watch)

    def start(self) -> None:
        """Listen.  Raises LocalError and OSError for an address that cannot be had."""
        self._ways.start()
        if self._options.http is not None:
            at = self._options.http
            try:
                self._http = self._flv.serve(at, _nothing_else)
            except OSError as error:
                reason = addresses.not_had(error, at[1])
                raise LocalError(f"--http {addresses.written(*at)}: {reason}") from None

    @property
    def listening(self) -> dict[str, tuple[str, int]]:
        """The addresses it listens on, by the names of the options."""
        listening = dict(self._ways.addresses)
        if self._http is not None:
            host, port = self._http.socket.getsockname()[:2]
            listening["http"] = host, port
        return listening

    def reload(self) -> None:
        """Read the users and the certificate again, each as a whole or not at all.

        Connections stay.
        """
        try:
            self._doors.reload()
        except LocalError as error:
            log.warning("the users stay as they were: %s", error)
        try:
            self._ways.reload()
        except LocalError as error:
            log.warning("the certificate stays as it was: %s", error)

    def stop(self) -> None:
        """End all connections, and write the recordings to their end."""
        if self._http is not None:
            self._http.stop(timeout=0.2)
        self._ways.stop()
        self._flv.stop()
        self._doors.stop()
        if self._shared is not None:
            self._shared.stop()
        if self._recordings is not None:
            self._recordings.stop()

    def _guarded(self, application: Application) -> Application:
        return self._doors.guard(application)

    def _application_for(self, name: str) -> Application:
        return self._applications.get(name, self._unknown)

    def _open_folders(self) -> None:
        options = self._options
        if options.shared is not None:
            self._shared = SharedFiles(_folder(options.shared), self._workers)
            self._registry.shared.store = self._shared
        if options.record is not None:
            folder = _folder(options.record)
            self._recordings = record.Recordings(folder, self._registry, self._workers)


def _log_to_stderr() -> None:
    """Log warnings and recordings to standard error, with a limit on warnings."""
    handler = logging.StreamHandler()
    handler.addFilter(_Warnings())
    handler.setFormatter(_Stamped())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger(record.__name__).setLevel(logging.INFO)


class _Stamped(logging.Formatter):
    """Formats `time level module message`, in UTC; a refusal's message begins with `refused`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return stamp(record.created)


class _Warnings(Sparing):
    """Limits warnings, which clients can cause; recordings and errors are all written."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record."""
        return record.levelno != logging.WARNING or super().filter(record)


def _say_refused(question: Question, reason: str) -> None:
    """Log a client that is refused, without its proof."""
    what = f"{question.event} {question.path}".strip()
    who = question.client or "a viewer"
    log.warning("refused %s may not %s, %s: %s", who, what, question.host, public(reason))


def _tell(link: Link, moment: float) -> None:
    """Print a line about a change of a relay."""
    print(stamped("relay", transports.in_words(link, moment)), file=sys.stderr, flush=True)


def _warn_of_readers(options: argparse.Namespace) -> None:
    """Log each file with a secret that everybody on this machine can read."""
    for path in (options.users, options.sign_key, options.tls_key or options.tls_cert):
        if path is not None and is_open_to_all(path):
            log.warning("%s can be read by every user of this machine: chmod o-r", path)


def _folder(path: Path) -> Path:
    """Make a folder if need be, so that a wrong one is noticed now."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def _films(path: Path) -> Path:
    """A folder that exists: nothing could be played from a new one."""
    if not path.is_dir():
        raise LocalError(f"--vod {path}: no such folder")
    return path


def _nothing_else(environ: dict[str, Any], begin: Any) -> Iterable[bytes]:
    begin("404 Not Found", TEXT)
    return [f"There is only /{live_application.APP}/NAME.flv here.\n".encode()]
