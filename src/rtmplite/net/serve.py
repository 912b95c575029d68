"""`python -m rtmplite serve`: live streams, recorded ones, and both for browsers."""

import argparse
import logging
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import gevent
from gevent.event import Event

from rtmplite.net import access, transports
from rtmplite.net.addresses import parse as _address
from rtmplite.net.clock import now
from rtmplite.net.files import Alarms, Files
from rtmplite.net.flv_http import TEXT, FlvHttp
from rtmplite.net.record import Recordings
from rtmplite.net.rtmp_server import RtmpServer
from rtmplite.net.shared_files import SharedFiles
from rtmplite.net.workers import Workers
from rtmplite.rtmp import live, vod
from rtmplite.rtmp.application import Application
from rtmplite.rtmp.live import LiveApplication
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.server import ServerConnection
from rtmplite.streams import Registry

HELP: Final = f"a server with the applications {live.APP} and {vod.APP}"


def add_to(commands: Any) -> None:
    """Add the command to a parser's."""
    serve = commands.add_parser("serve", help=HELP)
    serve.add_argument("--rtmp", default="127.0.0.1:1935", metavar="HOST:PORT", help="listen here")
    serve.add_argument("--merge-ms", type=float, default=0.0, metavar="N", help="send that rarely")
    serve.add_argument("--record", type=Path, metavar="DIR", help="store what is published there")
    serve.add_argument("--vod", type=Path, metavar="DIR", help="play the files there by name")
    serve.add_argument("--shared", type=Path, metavar="DIR", help="keep shared objects there")
    serve.add_argument("--http", metavar="HOST:PORT", help="serve /live/NAME.flv to browsers here")
    serve.add_argument(
        "--drain",
        type=float,
        default=0.0,
        metavar="S",
        help="when stopped, ask clients to reconnect and give them so many seconds",
    )
    serve.add_argument("--reconnect-to", metavar="URL", help="ask them to go there")
    transports.add_options(serve)
    access.add_options(serve)
    serve.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    address, doors = _address(options.rtmp), access.Access(options)
    others_at = (options.rtmps, options.rtmpt, options.http)
    doors.check([address, *(_address(each) for each in others_at if each)])
    registry, workers = Registry(), Workers()
    shared = None
    if options.shared is not None:
        shared = registry.shared.store = SharedFiles(_folder(options.shared), workers)
    recordings = None
    if options.record is not None:
        recordings = Recordings(_folder(options.record), registry, workers)
    applications: dict[str, Application] = {live.APP: doors.guard(_ToldLive())}
    if options.vod is not None:
        files = Files(_folder(options.vod), workers)
        applications[vod.APP] = doors.guard(vod.VodApplication(files, Alarms()))
    limits = access.limits(options)

    def connection(peer: tuple[str, int]) -> ServerConnection:
        return ServerConnection(applications.get, registry, os.urandom, now(), limits=limits)

    others = transports.Transports(options, connection, registry)
    server = RtmpServer(
        *address,
        connection,
        merge_ms=options.merge_ms,
        max_connections=options.max_connections,
        max_per_address=options.max_per_address,
    )
    server.start()
    ready = "ready rtmp={}:{}".format(*server.address) + others.start()
    flv, http = FlvHttp(registry, admits=doors.admits), None
    if options.http is not None:
        http = flv.serve(_address(options.http), _nothing_else)
        ready += " http={}:{}".format(*http.socket.getsockname()[:2])
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stop.set)
    print(ready, flush=True)
    stop.wait()
    if http is not None:
        http.stop(timeout=0.2)
    others.stop()
    server.stop(options.drain, options.reconnect_to)
    flv.stop()
    doors.stop()
    if shared is not None:
        shared.stop()
    if recordings is not None:
        recordings.stop()
    return 0


class _ToldLive(LiveApplication):
    """`live`, with a line for everyone who publishes or plays, so that one sees it working."""

    def on_publish(
        self, connection: ServerConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let `live` decide, then tell."""
        super().on_publish(connection, stream, name, now)
        self._tell(connection, stream)

    def on_play(
        self, connection: ServerConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let `live` decide, then tell."""
        super().on_play(connection, stream, name, now)
        self._tell(connection, stream)

    def on_disconnect(self, connection: ServerConnection, now: float) -> None:
        """Tell why."""
        super().on_disconnect(connection, now)
        print(f"{connection.id} {connection.reason}", flush=True)

    def _tell(self, connection: ServerConnection, stream: ServerStream) -> None:
        host, port = connection.peer_address
        print(f"{connection.id} {stream.state} {stream.path}, {host}:{port}", flush=True)


def _folder(path: Path) -> Path:
    """A folder that is there; the first recording need not find out."""
    path.mkdir(parents=True, exist_ok=True)
    return path


def _nothing_else(environ: dict[str, Any], begin: Any) -> Iterable[bytes]:
    begin("404 Not Found", TEXT)
    return [f"There is only /{live.APP}/NAME.flv here.\n".encode()]
