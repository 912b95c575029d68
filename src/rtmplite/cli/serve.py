"""`python -m rtmplite serve`: a server for live and recorded streams."""

import argparse
import logging
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import gevent
from gevent.event import Event

from rtmplite.auth.guard import Question
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
from rtmplite.net.server.live_log import LoggedLiveApplication, UnknownApplication, UserOf
from rtmplite.net.server.log_rate_limit import Bucket, LimitedPrinter, LogRateLimit
from rtmplite.net.server.settings import (
    AccessSettings,
    Address,
    ClientLimits,
    EndSettings,
    Listener,
    PlayerSettings,
    RelaySettings,
    RtmfpSettings,
    RtmpListeners,
    TlsSettings,
    TransportSettings,
    TrustSettings,
)
from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.net.settings import FOLDER, add_options, groups, parsed, section, setting
from rtmplite.net.sighup import on_hangup
from rtmplite.net.usage import sentence
from rtmplite.net.workers import Workers
from rtmplite.relay.link import Link
from rtmplite.rtmp.application import APP as LIVE
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.vod import application

log = logging.getLogger(__name__)

_WORDS: Final = {
    "publish-start": "publishing",
    "publish-end": "published",
    "play-start": "playing",
    "play-end": "played",
}


class PrintedLive(LoggedLiveApplication):
    """The application `live`, with a line on standard output for each event.

    Own design: a client that begins and ends all the time fills no log, nor do all together.
    """

    def __init__(self, user_of: UserOf = lambda connection, stream: "") -> None:
        super().__init__(self._print, user_of)
        self._printer = LimitedPrinter()
        self._clients: dict[object, Bucket] = {}

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Print why a client has gone, if a line was printed about it before."""
        super().on_disconnect(connection, now)
        if (client := self._clients.pop(connection.id, None)) is not None:
            line = f"{connection.id} {public(connection.reason)}"
            self._printer.say(stamped("disconnect", line), client, last=True)

    def _print(self, event: str, values: Mapping[str, object]) -> None:
        if event == "refused":
            warn(event, values)
            return
        who = values.get("rtmp", "http")
        if who not in self._clients:
            client = self._printer.client()
            if "rtmp" in values:
                self._clients[who] = client
        else:
            client = self._clients[who]
        address = addresses.written(str(values["source"]), int(str(values["port"])))
        line = f"{who} {_WORDS[event]} {values['name']}, {address}"
        if "user" in values:
            line += f", user {values['user']}"
        if "seconds" in values:
            line += f": {values['seconds']} s, {values['codecs'] or 'no media'}"
        if "bytes" in values:
            line += f", {values['bytes']} bytes"
        self._printer.say(stamped(event, line), client)


def warn(event: str, values: Mapping[str, object]) -> None:
    """Log a line about a client that is refused."""
    what = "connect" if values["wants"] == "connect" else f"have {values['name']}"
    line = f"{values['rtmp']} may not {what}, {values['source']}: {values['reason']}"
    log.warning("refused %s", _printable(line))


def stamped(event: str, line: str) -> str:
    """Write a line with its time in UTC and the name of the event."""
    return f"{stamp(time.time())} {event} {_printable(line)}"


def stamp(seconds: float) -> str:
    """Write a time in UTC in the format of RFC 3339, to the millisecond."""
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat(timespec='milliseconds')[:-6]}Z"


def _printable(line: str) -> str:
    """Escape a line if a client has put anything unprintable into a name."""
    return line if line.isprintable() else ascii(line)[1:-1]


HELP: Final = f"run a server with the applications {LIVE} and {application.APP}"


@dataclass(frozen=True, slots=True)
class ServeListeners(RtmpListeners):
    """Where clients and browsers connect."""

    http: Address | None = setting(
        Listener(), None, "Accept requests of browsers for /live/NAME.flv here ({default})."
    )


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """What is recorded, played and kept."""

    record: Path | None = setting(
        FOLDER,
        None,
        "Record everything that is published as FLV files in DIR, which is made if need be.",
    )
    vod: Path | None = setting(
        FOLDER,
        None,
        f"Play the FLV files in DIR under their names, in the application {application.APP}.",
    )
    shared: Path | None = setting(FOLDER, None, "Keep persistent shared objects in DIR.")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """All options of the command, in the groups of `--help`."""

    listeners: ServeListeners = section(ServeListeners, "listeners")
    tls: TlsSettings = section(TlsSettings, "listeners")
    players: PlayerSettings = section(PlayerSettings, "players")
    access: AccessSettings = section(AccessSettings, "who may connect, publish and play")
    folders: FolderSettings = section(FolderSettings, "files")
    limits: ClientLimits = section(ClientLimits, "limits")
    relays: RelaySettings = section(RelaySettings, "relays")
    trust: TrustSettings = section(TrustSettings, "relays")
    rtmfp: RtmfpSettings = section(RtmfpSettings, "clients that connect by RTMFP")
    end: EndSettings = section(EndSettings, "the end")


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
    for title, options in groups(ServeSettings).items():
        add_options(serve.add_argument_group(title).add_argument, options)
    serve.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, or until the terminal closes."""
    _log_to_stderr()
    settings = parsed(ServeSettings, options)
    server = _Server(settings)
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
    with ended_within(SECONDS + settings.end.drain):
        server.stop()
    return 0


class _Server:
    """The server that the settings describe.  Raises LocalError for wrong ones, at once."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings, at = settings, settings.listeners
        if not any((at.rtmp, at.rtmps, at.rtmpt, at.rtmfp)):
            raise LocalError("nothing to serve: --rtmp is off, and there is no other")
        self._doors = access.Access(settings.access, _say_refused)
        _warn_of_readers(settings)
        self._doors.check((at.rtmp, at.rtmps, at.rtmpt, at.rtmfp, at.http))
        self._registry, self._workers = Registry(), Workers()
        self._shared: SharedFiles | None = None
        self._recordings: record.Recordings | None = None
        self._http: Server | None = None
        self._open_folders()
        live = PrintedLive(self._doors.user_of)
        self._applications: dict[str, Application] = {LIVE: self._guarded(live)}
        if (films := settings.folders.vod) is not None:
            files = Files(_films(films), self._workers)
            vod = application.VodApplication(files, Alarms())
            self._applications[application.APP] = self._guarded(vod)
        self._unknown = UnknownApplication(lambda: list(self._applications), warn)
        limit = access.connection_limit(settings.limits)
        self._ways = transports.Transports(
            TransportSettings.of(settings),
            self._application_for,
            self._registry,
            access.limits(settings.limits),
            limit,
            _tell,
        )
        admits = self._doors.admits
        self._flv = FlvHttp(
            self._registry, admits=admits, connection_limit=limit, on_viewer=live.watch
        )

    def start(self) -> None:
        """Listen.  Raises LocalError and OSError for an address that cannot be had."""
        self._ways.start()
        at = self._settings.listeners.http
        if at is not None:
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
        """Read users and certificate again, each whole or not at all; connections stay."""
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
        folders = self._settings.folders
        if folders.shared is not None:
            self._shared = SharedFiles(_folder(folders.shared), self._workers)
            self._registry.shared.store = self._shared
        if folders.record is not None:
            folder = _folder(folders.record)
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


class _Warnings(LogRateLimit):
    """Limits warnings, which clients can cause; recordings and errors are all written."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno != logging.WARNING or super().filter(record)


def _say_refused(question: Question, reason: str) -> None:
    """Log a client that is refused, without its proof."""
    what = f"{question.event} {question.path}".strip()
    who = question.client or "a viewer"
    log.warning("refused %s may not %s, %s: %s", who, what, question.host, public(reason))


def _tell(link: Link, moment: float) -> None:
    """Print a line about a change of a relay."""
    print(stamped("relay", transports.in_words(link, moment)), file=sys.stderr, flush=True)


def _warn_of_readers(settings: ServeSettings) -> None:
    """Log each file with a secret that everybody on this machine can read."""
    key = settings.tls.tls_key or settings.tls.tls_cert
    for path in (settings.access.users, settings.access.sign_key, key):
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
    return [f"There is only /{LIVE}/NAME.flv here.\n".encode()]
