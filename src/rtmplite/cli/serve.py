"""`python -m rtmplite serve`: live streams, recorded ones, and both for browsers."""

import argparse
import logging
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import gevent
from gevent.event import Event

from rtmplite.auth.guard import Question
from rtmplite.errors import LocalError
from rtmplite.live.streams import Registry
from rtmplite.net import addresses
from rtmplite.net.http.flv_http import TEXT, FlvHttp
from rtmplite.net.redaction import public
from rtmplite.net.server import access, record, transports
from rtmplite.net.server.files import Alarms, Files
from rtmplite.net.server.log_rate_limit import Bucket, Sparing, Told
from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.net.sighup import on_hangup
from rtmplite.net.workers import Workers
from rtmplite.rtmp import live_application
from rtmplite.rtmp.application import Application
from rtmplite.rtmp.live_application import LiveApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.netstream_state import State
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
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger(record.__name__).setLevel(logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_Warnings())
    for name in _LISTENERS:
        address = getattr(options, name)
        setattr(options, name, None if address in (None, _OFF) else addresses.parse(address))
    if not any(getattr(options, name) for name in transports.LISTENERS):
        raise LocalError("nothing to serve: --rtmp is off, and there is no other")
    doors = access.Access(options, _say_refused)
    doors.check(getattr(options, name) for name in _LISTENERS)
    registry, workers = Registry(), Workers()
    shared = None
    if options.shared is not None:
        shared = registry.shared.store = SharedFiles(_folder(options.shared), workers)
    recordings = None
    if options.record is not None:
        recordings = record.Recordings(_folder(options.record), registry, workers)
    applications: dict[str, Application] = {live_application.APP: doors.guard(_ToldLive())}
    if options.vod is not None:
        files = Files(_films(options.vod), workers)
        applications[application.APP] = doors.guard(application.VodApplication(files, Alarms()))
    limits = access.limits(options)
    nowhere = _Nowhere()

    def application_for(name: str) -> Application:
        return applications.get(name, nowhere)

    crowd = access.crowd(options)
    ways = transports.Transports(options, application_for, registry, limits, crowd)
    ways.start()
    listening = dict(ways.addresses)
    flv, http = FlvHttp(registry, admits=doors.admits, crowd=crowd), None
    if options.http is not None:
        http = flv.serve(options.http, _nothing_else)
        listening["http"] = http.socket.getsockname()[:2]
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stop.set)
    on_hangup(stop.set, lambda: _reload(doors, ways))
    ready = " ".join("{}={}:{}".format(name, *at) for name, at in listening.items())
    print(f"ready {ready}", flush=True)
    stop.wait()
    if http is not None:
        http.stop(timeout=0.2)
    ways.stop()
    flv.stop()
    doors.stop()
    if shared is not None:
        shared.stop()
    if recordings is not None:
        recordings.stop()
    return 0


class _ToldLive(LiveApplication):
    """The application `live`, with a line for each publisher and player."""

    def __init__(self) -> None:
        super().__init__()
        self._told = Told()

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let `live_application` decide, then tell."""
        super().on_publish(connection, stream, name, now)
        self._tell(connection, stream)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let `live_application` decide, then tell."""
        super().on_play(connection, stream, name, now)
        self._tell(connection, stream)

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Tell why, of whom something was told."""
        super().on_disconnect(connection, now)
        if isinstance(connection.data, Bucket):
            line = f"{connection.id} {public(connection.reason)}"
            self._told.say(line, connection.data, last=True)

    def _tell(self, connection: NetConnection, stream: ServerStream) -> None:
        host, port = connection.peer_address
        if stream.state is State.IDLE:
            reason = "somebody publishes that already" if stream.path else "it has no name"
            log.warning("%s may not have %s, %s: %s", connection.id, stream.path, host, reason)
            return
        if not isinstance(connection.data, Bucket):
            connection.data = self._told.client()
        line = f"{connection.id} {stream.state} {stream.path}, {host}:{port}"
        self._told.say(line, connection.data)


class _Warnings(Sparing):
    """Spares what strangers can have us write; recordings and errors are told all."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be written."""
        return record.levelno != logging.WARNING or super().filter(record)


class _Nowhere(LiveApplication):
    """What nobody has here."""

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Refuse, and tell."""
        name, host = connection.app.partition("/")[0], connection.peer_address[0]
        log.warning("%s may not connect, %s: no application %.40r", connection.id, host, name)
        reason = f"No such application: {name}"
        connection.reject(reason, now, "NetConnection.Connect.InvalidApp")


def _say_refused(question: Question, reason: str) -> None:
    """A line for everyone who may not, without what he said to prove that he may."""
    what = f"{question.event} {question.path}".strip()
    who = question.client or "a viewer"
    log.warning("%s may not %s, %s: %s", who, what, question.host, public(reason))


def _reload(doors: access.Access, ways: transports.Transports) -> None:
    """Each as a whole or not at all; who is connected stays."""
    try:
        doors.reload()
    except LocalError as error:
        log.warning("the users stay as they were: %s", error)
    try:
        ways.reload()
    except LocalError as error:
        log.warning("the certificate stays as it was: %s", error)


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
