"""WHIP and WHEP of several workers: any of them takes a request, and one serves it.

Own design: all browsers of a stream are in the worker that has its publisher, so that a page finds
the stream as it begins.  A request that another worker has to serve goes to it over the bus, whole,
and so does its answer.  Who has a session is asked of all, since its name tells nothing.  Media do
not pass another worker: each has a UDP port of its own, which its answers name.
"""

import io
from collections.abc import Iterable
from typing import Any, Final

from siprtmp.edge.workers.bus import Message
from siprtmp.edge.workers.team import Team
from siprtmp.web.whip import MAX_OFFER, SILENT, Environ, Start, WhipApplication, where

ABSENT: Final = "404"  # how the status begins of a worker that has no such session


class WhipOfAll:
    """The WSGI application of this worker's `application` and of those of the others."""

    def __init__(self, application: WhipApplication, team: Team) -> None:
        self._application, self._team = application, team
        team.handlers["whip"] = self._serve

    def serves(self, environ: Environ) -> bool:
        """As `WhipApplication.serves`."""
        return self._application.serves(environ)

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer a request, or have another worker do it."""
        app, name, session = where(environ)
        if environ["REQUEST_METHOD"] == "OPTIONS" or self._application.has(session):
            return self._application(environ, start)
        owner = self._team.directory.owner((app, name))
        if not session and owner is None:
            return self._application(environ, start)
        data = environ["wsgi.input"].read(MAX_OFFER + 1)
        told = {name: value for name, value in environ.items() if isinstance(value, str)}
        request: Message = {"do": "whip", "environ": told, "body": data.decode("latin-1")}
        if session or owner is None:
            answers = [*self._team.bus.ask_all(request).values()]
        else:
            answers = [self._team.bus.ask(request, owner)]
        for answer in answers:
            if answer is not None and not answer["status"].startswith(ABSENT):
                start(answer["status"], [(each, value) for each, value in answer["headers"]])
                return [answer["body"].encode("latin-1")]
        if session:
            return self._application(environ, start)
        start(*SILENT)
        return [b"The worker of that stream does not answer.\n"]

    def _serve(self, worker: int, message: Message) -> Message:
        """Answer what another worker has been asked."""
        answer: Message = {}

        def start(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            answer.update(status=status, headers=headers)

        body = io.BytesIO(message["body"].encode("latin-1"))
        said = self._application({**message["environ"], "wsgi.input": body}, start)
        return {**answer, "body": b"".join(said).decode("latin-1")}
