"""The RTMP half of the gateway: listeners, applications and who may use them, files, relays.

Own design: `live` and `vod` are behind all guards, also for browsers; `call` and `sip` have users
of their own, and ask the web service alone.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rtmplite.auth.credentials import NO_USER
from rtmplite.auth.guard import Question
from rtmplite.errors import LocalError
from rtmplite.live.streams import Registry
from rtmplite.net.http.flv_http import FlvHttp
from rtmplite.net.redaction import public
from rtmplite.net.server import access
from rtmplite.net.server.files import Alarms
from rtmplite.net.server.live_log import LoggedLiveApplication, UnknownApplication
from rtmplite.net.server.record import Recordings
from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.net.server.transports import Transports, place
from rtmplite.net.workers import Workers
from rtmplite.relay.link import Link, State
from rtmplite.rtmp.application import Application
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.vod.application import VodApplication
from siprtmp.calls.admission import Admission
from siprtmp.edge.recorded_calls import Films
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.config import Settings
from siprtmp.operation.logs import Log


class RtmpSide:
    """Everything that speaks RTMP, and what it stores.  Raises ConfigError for a bad setting.

    Own design: `start` opens the listeners; `stop` ends connections properly.
    """

    def __init__(self, settings: Settings, log: Log, admission: Admission) -> None:
        self._settings, self._log, self._admission = settings, log, admission
        self.registry, self._workers = Registry(), Workers()
        options = settings.namespace()
        with _as_setting():
            self._doors = access.Access(options, self._refused)
            self._streams = LoggedLiveApplication(self._happened, self._doors.user_of)
            self._applications: dict[str, Application] = {}
            unknown = UnknownApplication(lambda: list(self._applications), self._happened)
            crowd = access.crowd(options)
            self._ways = Transports(
                options,
                lambda name: self._applications.get(name, unknown),
                self.registry,
                access.limits(options),
                crowd,
                self._linked,
            )
        self._recordings: Recordings | None = None
        self._shared: SharedFiles | None = None
        self.live = FlvHttp(
            self.registry,
            admits=self._doors.admits,
            crowd=crowd,
            on_viewer=self._streams.watch,
        )

    def add(self, name: str, application: Application) -> None:
        """Serve an application with users of its own.  Own design."""
        self._applications[name] = self._doors.ask_service(application)

    def start(self) -> None:
        """Open what the settings ask for.  Own design."""
        self._applications["live"] = self._doors.guard(self._streams)
        self._open_folders()
        with _as_setting():
            self._ways.start()

    def renew_users(self) -> None:
        """Read again who may publish and play.  Own design: ConfigError changes nothing."""
        with _as_setting():
            self._doors.reload()

    def renew_certificate(self) -> None:
        """Read again who we are.  Own design: ConfigError changes nothing."""
        with _as_setting():
            self._ways.reload()

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """What is listened on, by name.  Own design."""
        return self._ways.addresses

    def connections(self) -> list[NetConnection]:
        """The clients of all listeners.  Own design: for the operator."""
        return self._ways.connections

    def status(self) -> dict[str, object]:
        """Figures of the RTMP side.  Own design."""
        links = self._ways.relays.links
        return {
            "rtmp_connections": len(self._ways.connections),
            "streams": self.registry.streams,
            "players": sum(live.players for live in self.registry),
            "relays": len(links),
            "relays_running": sum(link.state is State.RUNNING for link in links),
            "recordings": self._recordings.active if self._recordings else 0,
            **{f"rtmfp_{name}": value for name, value in self._ways.rtmfp_figures.items()},
        }

    def stop(self) -> None:
        """Say NetConnection.Connect.Closed, write what is to be written.  Own design."""
        self._ways.stop()
        self.live.stop()
        self._doors.stop()
        if self._shared is not None:
            self._shared.stop()
        if self._recordings is not None:
            self._recordings.stop()

    def _open_folders(self) -> None:
        """Record and play files, and keep objects, if there are folders for them.

        Whatever is published is recorded, calls as well: who asks for recordings wants them.
        """
        settings = self._settings
        if settings.record is not None:
            folder = _folder("record", settings.record)
            self._recordings = Recordings(folder, self.registry, self._workers)
        if settings.vod is not None:
            films = Films(settings, self._workers, self._doors, self._admission, self._log)
            films.say()
            application = VodApplication(films.all, Alarms(), films.library_for)
            self._applications["vod"] = self._doors.guard(application)
        if settings.shared is not None:
            self._shared = SharedFiles(_folder("shared", settings.shared), self._workers)
            self.registry.shared.store = self._shared

    def _happened(self, event: str, values: Mapping[str, object]) -> None:
        """Log what clients of `live` do, and connections to applications that are not there."""
        self._log.event(event, **values)

    def _refused(self, question: Question, reason: str) -> None:
        """Tell who may not do what; what was said to prove it is no part of this."""
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
        """Tell what becomes of a relay."""
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
    """What the library calls our mistake is the operator's."""
    try:
        yield
    except LocalError as error:
        raise ConfigError(str(error)) from None
