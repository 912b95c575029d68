"""`python -m rtmplite serve`: live streams, recorded ones, and both for browsers."""

import argparse
import logging
import signal
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

import gevent
from gevent.event import Event

from rtmplite.auth.guard import Question
from rtmplite.cli.live_lines import PrintedLive, warn
from rtmplite.errors import LocalError
from rtmplite.live.streams import Registry
from rtmplite.net import addresses
from rtmplite.net.http.flv_http import TEXT, FlvHttp
from rtmplite.net.http.wsgi import Server
from rtmplite.net.redaction import public
from rtmplite.net.server import access, record, transports
from rtmplite.net.server.files import Alarms, Files
from rtmplite.net.server.live_log import UnknownApplication
from rtmplite.net.server.log_rate_limit import Sparing
from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.net.sighup import on_hangup
from rtmplite.net.workers import Workers
from rtmplite.rtmp import live_application
from rtmplite.rtmp.application import Application
from rtmplite.vod import application

log = logging.getLogger(__name__)

_OFF: Final = "off"
_LISTENERS: Final = (*transports.LISTENERS, "http")
HELP: Final = f"a server with the applications {live_application.APP} and {application.APP}"


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    serve = commands.add_parser("serve", help=HELP)
    add = serve.add_argument
    add("--rtmp", default="127.0.0.1:1935", metavar="HOST:PORT", help="listen here, or off")
    add("--rtmps", metavar="HOST:PORT", help="listen here for RTMP over TLS")
    add("--rtmpt", metavar="HOST:PORT", help="listen here for RTMP through HTTP")
    add("--rtmfp", metavar="HOST:PORT", help="listen here for RTMFP, by UDP")
    add("--http", metavar="HOST:PORT", help="serve /live/NAME.flv to browsers here")
    add("--merge-ms", type=float, default=0.0, metavar="N", help="send that rarely")
    add(
        "--record",
        type=Path,
        metavar="DIR",
        help="store what is published; makes DIR",
    )
    add("--vod", type=Path, metavar="DIR", help="play the files there by name")
    add("--shared", type=Path, metavar="DIR", help="keep shared objects there")
    transports.add_options(add)
    add("--users", type=Path, metavar="FILE", help="who may publish; `users` makes its lines")
    add("--allow-anonymous", action="store_true", help="let all publish, also on open addresses")
    access.add_options(add)
    serve.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, or until the terminal closes."""
    _log_to_stderr()
    server = _Server(options)
    server.start()
    stop = Event()

    def end(number: signal.Signals) -> None:
        print(f"stopping: {number.name}", flush=True)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, end, number)
    on_hangup(partial(end, signal.SIGHUP), server.reload)
    listening = server.listening.items()
    ready = " ".join(f"{name}={addresses.written(*at)}" for name, at in listening)
    print(f"ready {ready}", flush=True)
    stop.wait()
    server.stop()
    return 0


class _Server:
    """All that the options ask for.  LocalError if they are wrong, before anything listens."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        _read_addresses(options)
        self._doors = access.Access(options, _say_refused)
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
            options, self._application_for, self._registry, access.limits(options), crowd
        )
        admits = self._doors.admits
        self._flv = FlvHttp(self._registry, admits=admits, crowd=crowd, on_viewer=live.watch)

    def start(self) -> None:
        """Listen.  Raises LocalError and OSError for an address that cannot be had."""
        self._ways.start()
        if self._options.http is not None:
            self._http = self._flv.serve(self._options.http, _nothing_else)

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
        """End all connections, and write what is to be written."""
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
    """Log warnings, and what becomes of recordings; a flood is cut short where we write it."""
    handler = logging.StreamHandler()
    handler.addFilter(_Warnings())
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.getLogger(record.__name__).setLevel(logging.INFO)


def _read_addresses(options: argparse.Namespace) -> None:
    """Make addresses of the listeners' options, None where there is to be none."""
    for name in _LISTENERS:
        address = getattr(options, name)
        setattr(options, name, None if address in (None, _OFF) else addresses.parse(address))
    if not any(getattr(options, name) for name in transports.LISTENERS):
        raise LocalError("nothing to serve: --rtmp is off, and there is no other")


class _Warnings(Sparing):
    """Spares what strangers can have us write; recordings and errors are told all."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be written."""
        return record.levelno != logging.WARNING or super().filter(record)


def _say_refused(question: Question, reason: str) -> None:
    """A line for everyone who may not, without what he said to prove that he may."""
    what = f"{question.event} {question.path}".strip()
    who = question.client or "a viewer"
    log.warning("%s may not %s, %s: %s", who, what, question.host, public(reason))


def _folder(path: Path) -> Path:
    """A folder that is there; the first recording need not find out."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def _films(path: Path) -> Path:
    """A folder that was there before us: where nothing is, nothing could be played."""
    if not path.is_dir():
        raise LocalError(f"--vod {path}: no such folder")
    return path


def _nothing_else(environ: dict[str, Any], begin: Any) -> Iterable[bytes]:
    begin("404 Not Found", TEXT)
    return [f"There is only /{live_application.APP}/NAME.flv here.\n".encode()]
