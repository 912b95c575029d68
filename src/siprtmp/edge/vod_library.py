"""The files that `vod` plays: recorded calls are for users only.

Own design: a recording of a call is known by its folder, since that holds whatever options the
gateway is started with, and for recordings of another gateway.
"""

from functools import partial
from typing import Final

from p2psip.stack.routing import is_loopback
from rtmplite.auth.guard import Event, Question
from rtmplite.net.clock import now
from rtmplite.net.server.access import Access
from rtmplite.net.server.files import Files
from rtmplite.net.workers import Workers
from rtmplite.rtmp.netconnection import NetConnection
from siprtmp.calls import named_call
from siprtmp.calls.access.admission import Admission, Admitted
from siprtmp.calls.mixed import mixed_call, published_side
from siprtmp.calls.rich import sip_app
from siprtmp.operation.logs import Log
from siprtmp.settings.table import RtmpSettings

CALLS: Final = (
    named_call.APP,
    sip_app.APP,
    mixed_call.APP,
    published_side.APP,
)  # applications, and the folders they are recorded in
REASON: Final = "recorded calls are for users"


class VodLibrary:
    """The files of `--vod`; `all` is the library with recorded calls.

    A client has proved to be a user by user and password in a query, by answering a challenge, or
    by being on this machine, if nobody else can reach any listener.
    """

    def __init__(
        self,
        settings: RtmpSettings,
        workers: Workers,
        access: Access,
        admission: Admission,
        log: Log,
    ) -> None:
        assert settings.folders.vod is not None
        self._folder, self._record = settings.folders.vod, settings.folders.record
        self._has_users, self._is_local = settings.access.users is not None, settings.is_local
        self._workers = workers
        self._access, self._admission, self._log = access, admission, log
        self.all = Files(self._folder, workers)
        record = self._record
        recorded = [] if record is None else [str(record.resolve() / name) for name in CALLS]
        self._hidden = (*CALLS, *recorded)  # the latter for what links lead to

    def library_for(self, connection: NetConnection, query: str) -> Files:
        """The library for a client that appends `query` to the name of a file."""
        asked = Question.of(connection, Event.PLAY)
        if self._is_proven(asked, query):
            return self.all
        refuse = partial(self._refuse, connection, asked, query)
        return Files(self._folder, self._workers, hidden=self._hidden, on_hidden=refuse)

    def say(self) -> None:
        """Log which clients may play recorded calls, if there are any or may be some later."""
        if not self._has_calls():
            return
        users = ["users"] if self._has_users else []
        loopback = ["loopback"] if self._is_local else []
        served = ",".join(users + loopback) or "nobody"
        self._log.report("recorded-calls", folder=self._folder, served_to=served)

    def _has_calls(self) -> bool:
        folder, record = self._folder.resolve(), self._record
        if record is not None:
            record = record.resolve()
            if record.is_relative_to(folder) or folder.is_relative_to(record):
                return True
        return folder.name in CALLS or any((folder / name).is_dir() for name in CALLS)

    def _is_proven(self, asked: Question, query: str) -> bool:
        return (
            (self._is_local and is_loopback(asked.host))
            or self._admission.prove(asked.host, now(), asked.connect_query, query) is Admitted.YES
            or self._access.has_challenged(asked)
        )

    def _refuse(self, connection: NetConnection, asked: Question, query: str, name: str) -> None:
        """Log a refusal; a wrong password ends the connection, so each guess needs a new one."""
        self._log.event(
            "refused",
            source=asked.host,
            rtmp=asked.client,
            wants=str(asked.event),
            app=asked.app,
            name=name,
            reason=REASON,
        )
        if query:
            connection.close(now(), REASON)
