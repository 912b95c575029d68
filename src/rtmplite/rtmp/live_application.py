"""The `live` application: publish under a name, play by that name.

Implements RTMP 1.0 §7.2.2.1 and RTMP 1.0 §7.2.2.6 for everybody who connects.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.application import Application, OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream

APP: Final = "live"


@dataclass(frozen=True, slots=True)
class StreamUse:
    """What one publication, or one player, has used: what a log says when it stops.

    Own design: `verb` is "publish" or "play", `seconds` how long it lasted, `size` the bytes of
    all payloads published in that time, `codecs` their names.
    """

    verb: str
    seconds: float
    size: int
    codecs: tuple[str, ...]


class LiveObserver(Protocol):
    """Hears of publishers and players of the application `live`.

    Own design: a machine cannot write a log.  `connection` has the client's `id` and
    `peer_address`, `stream` the `path`.
    """

    def started(
        self, connection: NetConnection, stream: ServerStream, verb: str, now: float
    ) -> None:
        """A client begins to publish or play; `verb` is "publish" or "play"."""

    def refused(
        self, connection: NetConnection, stream: ServerStream, reason: str, now: float
    ) -> None:
        """A client may not do so, for `reason`."""

    def stopped(
        self, connection: NetConnection, stream: ServerStream, use: StreamUse, now: float
    ) -> None:
        """It has stopped, for whatever reason; once for each `started`."""


class LiveApplication(OpenApplication):
    """Joins publishers and players through the connection's registry.

    Own design: names are taken from the end of the application's name on, so that
    rtmp://host/live/a/b is one stream however a client splits it.
    """

    _observer: LiveObserver | None = None

    def __init__(self, observer: LiveObserver | None = None) -> None:
        self._observer = observer

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let the first publisher of a name keep it while it is there: RTMP 1.0 §7.2.2.6.

        A publisher that is silent and answers no ping is replaced, see `timestamp_rebase`.  The
        operator chooses what is recorded; the client may ask by its type that a file be continued.
        No file is overwritten, whatever the text says of "record".
        """
        live = connection.registry.open(APP, stream.path)
        if not stream.path or (live.publishing and not _may_replace(live, now)):
            description = f"{name} is already published." if name else "A stream needs a name."
            self._refuse(connection, stream, description, now)
            stream.reject_publish("NetStream.Publish.BadName", description, now)
            return
        live.begin(now, stream.kind, stream)
        stream.accept_publish(live, now)
        self._watch(connection, stream, live, "publish", now)
        if stream.kind in ("record", "append"):
            _say_recorded(stream, live.recorded)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Play the stream, or wait for its publisher: RTMP 1.0 §7.2.2.1 with its start of -2."""
        if not stream.path:
            self._refuse(connection, stream, "A stream needs a name.", now)
            stream.reject_play("NetStream.Play.StreamNotFound", "A stream needs a name.", now)
            return
        live = connection.registry.open(APP, stream.path)
        stream.accept_play(live, now)
        self._watch(connection, stream, live, "play", now)

    def _refuse(
        self, connection: NetConnection, stream: ServerStream, reason: str, now: float
    ) -> None:
        if self._observer is not None:
            self._observer.refused(connection, stream, reason, now)

    def _watch(
        self,
        connection: NetConnection,
        stream: ServerStream,
        live: LiveStream,
        verb: str,
        begun: float,
    ) -> None:
        """Tell the observer now, and again when the stream stops."""
        observer, before, size = self._observer, stream.on_done, live.size
        if observer is None or not stream.is_used:
            return
        observer.started(connection, stream, verb, begun)

        def done(now: float) -> None:
            if before is not None:
                before(now)
            use = StreamUse(verb, now - begun, live.size - size, tuple(live.codecs))
            observer.stopped(connection, stream, use, now)

        stream.on_done = done


def _may_replace(live: LiveStream, now: float) -> bool:
    """Whether its publisher neither sends nor answers."""
    return live.publisher is not None and live.publisher.is_silent(now)


def _say_recorded(stream: ServerStream, recorded: bool) -> None:
    """Tell the client whether it is recorded, by the codes of ActionScript's NetStream."""
    if recorded:
        stream.status("NetStream.Record.Start", f"Recording {stream.name}.")
    else:
        stream.status("NetStream.Record.NoAccess", "Nothing is recorded here.", "error")


_: type[Application] = LiveApplication  # the type checker's proof
