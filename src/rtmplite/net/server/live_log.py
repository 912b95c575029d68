"""Log events of `live` for each publisher and player: address, name, codecs, seconds and bytes.

Own design: an event is a name and its values, which each program writes in its own way.  Nothing
is done for each message: codecs come from what the stream keeps for late players, bytes from the
kernel's count of the connection.

`publish-start`, `publish-end`, `play-start`, `play-end` and `refused` are the events.  All have
`source` and `port`, where the client is, `app` and `name`; `user` is there if the client has proved
to be one.  The ends have `seconds`, `codecs`, and `bytes` if the network has counted them.  Clients
by RTMP and RTMFP have `rtmp`, the id of the connection, and their ends a `reason`; viewers by HTTP
have neither.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from rtmplite.auth.guard import Event, Question
from rtmplite.live.streams import LiveStream
from rtmplite.net.clock import now as clock
from rtmplite.net.http.flv_viewer import FlvViewer
from rtmplite.net.redaction import public
from rtmplite.rtmp.application import APP, InvalidApplication, LiveApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream, State

MAX_CODECS: Final = 8  # names in one line; a stream may have any number of tracks

Values: TypeAlias = dict[str, object]
Write: TypeAlias = Callable[[str, Mapping[str, object]], None]
UserOf: TypeAlias = Callable[[NetConnection, ServerStream], str]


class LoggedLiveApplication(LiveApplication):
    """`live`, with an event at the beginning and at the end of publishing and of playing.

    `write` takes an event and its values; `user_of` names the user that a client has proved to be.
    """

    def __init__(self, write: Write, user_of: UserOf = lambda connection, stream: "") -> None:
        super().__init__()
        self._write, self._user_of = write, user_of

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let `LiveApplication` decide, then log the result."""
        super().on_publish(connection, stream, name, now)
        self._written(connection, stream, Event.PUBLISH, now)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let `LiveApplication` decide, then log the result."""
        super().on_play(connection, stream, name, now)
        self._written(connection, stream, Event.PLAY, now)

    def watch(self, viewer: FlvViewer, live: LiveStream) -> None:
        """Write that a viewer by HTTP has begun to play, and later that it has ended."""
        host, port = viewer.address
        values: Values = {"source": host, "port": port, "app": live.app, "name": live.name}
        self._write("play-start", values)
        begun, before = clock(), viewer.on_shut

        def shut() -> None:
            before()
            end = _end(values, live, clock() - begun)
            if viewer.traffic is not None:
                end["bytes"] = viewer.traffic[1]
            self._write("play-end", end)

        viewer.on_shut = shut

    def _written(
        self, connection: NetConnection, stream: ServerStream, wants: Event, now: float
    ) -> None:
        host, port = connection.peer_address
        values: Values = {
            "source": host,
            "port": port,
            "rtmp": connection.id,
            "app": APP,
            "name": stream.path,
        }
        if user := self._user_of(connection, stream):
            values["user"] = user
        if stream.state is State.IDLE:
            reason = "somebody publishes that already" if stream.path else "it has no name"
            self._write("refused", {**values, "wants": str(wants), "reason": reason})
            return
        self._write(f"{wants}-start", values)
        self._await_end(connection, stream, values, wants, now)

    def _await_end(
        self,
        connection: NetConnection,
        stream: ServerStream,
        values: Values,
        wants: Event,
        begun: float,
    ) -> None:
        """Write the end when the stream is done, after the guard has been told."""
        live = connection.registry.open(APP, stream.path)
        before, way = stream.on_done, 0 if wants is Event.PUBLISH else 1
        carried = connection.transport.traffic()

        def done(now: float) -> None:
            if before is not None:
                before(now)
            end = _end(values, live, now - begun)
            if carried is not None and (in_all := connection.transport.traffic()) is not None:
                end["bytes"] = in_all[way] - carried[way]
            reason = public(connection.reason) if connection.closed else "ended by the client"
            self._write(f"{wants}-end", {**end, "reason": reason})

        stream.on_done = done


class UnknownApplication(InvalidApplication):
    """Refuses connections to applications that a server does not have, and writes that."""

    def __init__(self, names: Callable[[], list[str]], write: Write) -> None:
        super().__init__(names)
        self._write = write

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Refuse, and list the applications that exist."""
        asked = Question.of(connection, Event.CONNECT)
        name = connection.app.partition("/")[0]
        self._write(
            "refused",
            {
                "source": asked.host,
                "port": asked.port,
                "rtmp": asked.client,
                "app": name,
                "wants": str(Event.CONNECT),
                "reason": f"no application {name!r:.40}",
            },
        )
        super().on_connect(connection, now)


def _end(values: Values, live: LiveStream, seconds: float) -> Values:
    codecs = " ".join(live.codecs[:MAX_CODECS])
    return {**values, "seconds": round(seconds, 1), "codecs": codecs}
