"""The RTMP half of the gateway: listeners, applications, guards, files and relays.

Own design: all guards stand before `live` and `vod`, also for browsers.  `call` and `sip` judge
their users themselves, and have the web service alone before them.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import gevent

from rtmplite.auth.credentials import NO_USER
from rtmplite.auth.guard import Event, Question
from rtmplite.errors import LocalError
from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.http.flv_http import FlvHttp, Neighbour
from rtmplite.net.http.rtws_port import RtwsPort
from rtmplite.net.redaction import public
from rtmplite.net.server import access
from rtmplite.net.server.files import Alarms, Files
from rtmplite.net.server.live_log import LoggedLiveApplication, UnknownApplication
from rtmplite.net.server.record import Recordings
from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.net.server.transports import Transports, place
from rtmplite.net.workers import Workers
from rtmplite.relay.link import Link, State
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtws.server import RtwsServerConnection
from rtmplite.vod.application import VodApplication
from siprtmp.calls.access.admission import Admission, Admitted
from siprtmp.edge.vod_library import VodLibrary
from siprtmp.edge.workers.peers_of_all import PeersOfAll
from siprtmp.edge.workers.place import WorkerPlace
from siprtmp.edge.workers.team import Team, TeamApplication
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.logs import Log
from siprtmp.settings.folders import RECORD_WHEN
from siprtmp.settings.table import RtmpSettings
from siprtmp.web.asking_host import source_of


class RtmpSide:
    """Everything that speaks RTMP, and the files it stores.  Raises ConfigError for a bad setting.

    `start` opens the listeners; `stop` ends connections properly.  With a `place`, it is one of
    several processes, whose `team` shares the streams.
    """

    def __init__(
        self,
        settings: RtmpSettings,
        log: Log,
        admission: Admission,
        place: WorkerPlace | None = None,
    ) -> None:
        self._settings, self._log, self._admission = settings, log, admission
        self.registry, self._workers = Registry(), Workers()
        with _as_setting():
            self._access = access.Access(settings.access, self._refused)
            self._streams = LoggedLiveApplication(self._happened, self._access.user_of)
            self._applications: dict[str, Application] = {}
            self._judges: set[str] = set()  # of those, who judge their users themselves
            unknown = UnknownApplication(lambda: list(self._applications), self._happened)
            limits = settings.transports.limits
            make_limit = ConnectionLimit if place is None else place.limit
            connection_limit = access.connection_limit(limits, make_limit)
            each = access.limits(limits)

            def application_for(name: str) -> Application:
                return self._applications.get(name, unknown)

            self.transports = Transports(
                settings.transports,
                application_for,
                self.registry,
                each,
                connection_limit,
                self._linked,
                *(() if place is None else (place.opened, place.session_ids)),
            )
        self.team: Team | None = None
        if place is not None:
            merge = settings.transports.players.merge_ms
            relays = self.transports.relays
            self.team = Team(place, self.registry, self._streams, each, merge, relays)
            if self.transports.rtmfp is not None:
                PeersOfAll(self.team, self.transports.rtmfp)
        self.recordings: Recordings | None = None
        self._shared: SharedFiles | None = None
        self.library: Files | None = None  # all files of --vod
        self._rtws = RtwsPort(
            lambda: RtwsServerConnection(
                application_for, self.registry, os.urandom, now(), limits=each
            ),
            connection_limit=connection_limit,
            budget=limits.max_rtmfp_memory,
            host_of=source_of,
        )
        self.neighbours: list[Neighbour] = [self._rtws]  # of the streams, by HTTP
        self.live = FlvHttp(
            self.registry,
            admits=self._access.admits,
            connection_limit=connection_limit,
            on_viewer=self._streams.watch,
            neighbours=self.neighbours,
        )

    def add(self, name: str, application: Application) -> None:
        self._applications[name] = self._access.ask_service(application)
        self._judges.add(name)

    def application(self, name: str) -> Application | None:
        """An application with the guards before it, by name."""
        return self._applications.get(name)

    def start(self) -> None:
        live: Application = self._streams
        if self.team is not None:
            live = TeamApplication(self._streams, self.team)
        self._applications["live"] = self._access.guard(live)
        self._open_folders()
        with _as_setting():
            self.transports.start()
        if self.team is not None:
            self.team.start()

    def admits(
        self, kind: str, app: str, name: str, query: str, host: str
    ) -> Callable[[], None] | None:
        """Whether a browser may do this; what to call when it has ended, or None."""
        if app in self._judges:
            return lambda: None
        event = Event.PUBLISH if kind == "whip" else Event.PLAY
        return self._access.admits(app, name, query, host, event)

    def has_proved(self, kind: str, app: str, query: str, host: str) -> bool:
        """Whether a browser that `admits` has let in is no anonymous one."""
        event = Event.PUBLISH if kind == "whip" else Event.PLAY
        if app not in self._judges and self._access.demands_proof(event):
            return True
        return self._admission.prove(host, now(), query) is Admitted.YES

    def renew_users(self) -> None:
        """Read the file of users again; after a ConfigError the old users stay."""
        with _as_setting():
            self._access.reload()

    def renew_certificate(self) -> None:
        """Read the certificate again; after a ConfigError the old one stays."""
        with _as_setting():
            self.transports.reload()

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        return self.transports.addresses

    def connections(self) -> list[NetConnection]:
        return [*self.transports.connections, *self._rtws.connections]

    def status(self) -> dict[str, object]:
        links = self.transports.relays.links
        return {
            "rtmp_connections": len(self.connections()),
            "streams": self.registry.streams,
            "players": sum(live.players for live in self.registry),
            "relays": len(links),
            "relays_running": sum(link.state is State.RUNNING for link in links),
            "recordings": self.recordings.active if self.recordings else 0,
            "recordings_interrupted": self.recordings.interrupted if self.recordings else 0,
            **{f"rtmfp_{name}": value for name, value in self.transports.rtmfp_figures.items()},
        }

    def stop(self) -> None:
        """Close all connections with NetConnection.Connect.Closed, and finish the files."""
        end = self._settings.transports.end
        pages = gevent.spawn(self._rtws.stop, end.drain, end.reconnect_to)
        self.transports.stop()
        pages.join()
        if self.team is not None:
            self.team.stop()
        self.live.stop()
        self._access.stop()
        if self._shared is not None:
            self._shared.stop()
        if self.recordings is not None:
            self.recordings.stop()

    def _open_folders(self) -> None:
        """Record and play files, and keep objects, if there are folders for them.

        All published streams are recorded, those of calls too, unless an operator has to ask.
        """
        folders = self._settings.folders
        if folders.record is not None:
            folder = _folder("record", folders.record)
            records_all = folders.record_when == RECORD_WHEN[0]
            self.recordings = Recordings(
                folder, self.registry, self._workers, records_all=records_all
            )
        if folders.vod is not None:
            library = VodLibrary(
                self._settings, self._workers, self._access, self._admission, self._log
            )
            library.say()
            self.library = library.all
            application = VodApplication(library.all, Alarms(), library.library_for)
            self._applications["vod"] = self._access.guard(application)
        if folders.shared is not None:
            self._shared = SharedFiles(_folder("shared", folders.shared), self._workers)
            self.registry.shared.store = self._shared

    def _happened(self, event: str, values: Mapping[str, object]) -> None:
        """Log the actions of clients of `live`, and connections to unknown applications."""
        self._log.event(event, **values)

    def _refused(self, question: Question, reason: str) -> None:
        """Log a refusal, without the password or key that the client gave."""
        self._log.event(
            "login-refused" if reason == NO_USER else "refused",
            source=question.host,
            rtmp=question.client,
            wants=str(question.event),
            app=question.app,
            name=question.path,
            reason=public(reason),
        )

    def _linked(self, link: Link, moment: float) -> None:
        values: dict[str, object] = {"url": place(link.where), "state": str(link.state)}
        if link.state is State.WAITING and link.deadline is not None:
            values["seconds"] = round(link.deadline - moment, 1)
        if link.state in (State.WAITING, State.GIVEN_UP):
            values["reason"] = public(link.reason)
        self._log.event("relay", **values)


def _folder(option: str, path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--{option} {path}: {error.strerror}") from None
    return path


@contextmanager
def _as_setting() -> Iterator[None]:
    """Turn a LocalError of the library into the operator's ConfigError."""
    try:
        yield
    except LocalError as error:
        raise ConfigError(str(error)) from None
