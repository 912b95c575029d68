"""Applications, and the lookup of them by name: RTMP 1.0 §7.2.1.1."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command

APP: Final = "live"


class OpenApplication:
    """Own design: a base that accepts clients and refuses to publish and to play."""

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Accept every client: RTMP 1.0 §7.2.1.1."""
        connection.accept(now)

    def on_command(self, connection: NetConnection, command: Command, now: float) -> None:
        """Answer an unknown call by an error: RTMP 1.0 §7.2.1.2."""
        reason = RemoteError(f"No such call: {command.name}")
        connection.error(command.transaction_id, reason)

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Refuse: RTMP 1.0 §7.2.2.6."""
        stream.reject_publish("NetStream.Publish.BadName", "Nobody publishes here.", now)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Refuse: RTMP 1.0 §7.2.2.1."""
        stream.reject_play("NetStream.Play.StreamNotFound", "Nothing is played here.", now)

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Do nothing: every stream has stopped before."""


class InvalidApplication(OpenApplication):
    """Refuses every client, and tells it the names of the applications there are.

    Own design: RTMP 1.0 §7.2.1.1 has a client name an application and no way to ask for the names.
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Answer connect by NetConnection.Connect.InvalidApp: RTMP 1.0 §7.2.1.1."""
        name, names = connection.app.partition("/")[0], ", ".join(sorted(self._names()))
        description = f"No such application: {name[:40]}; there are: {names}"
        connection.reject(description, now, "NetConnection.Connect.InvalidApp")


def applications(by_name: Mapping[str, Application]) -> Callable[[str], Application]:
    """Make a server connection's lookup of applications; other names are refused with a list.

    Own design: `by_name` is looked at for each connection, so it may change later.
    """
    invalid = InvalidApplication(by_name.keys)
    return lambda name: by_name.get(name, invalid)


class LiveApplication(OpenApplication):
    """Joins everybody who publishes under a name with those who play it: RTMP 1.0 §7.2.2.1.

    Own design: names are taken from the end of the application's name on, so that
    rtmp://host/live/a/b is one stream however a client splits it.  `is_elsewhere` says by this path
    whether another process of the server has its publisher.
    """

    is_elsewhere: Callable[[str], bool] = staticmethod(lambda path: False)

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let the first publisher of a name keep it while it is there: RTMP 1.0 §7.2.2.6.

        A publisher that is silent and answers no ping is replaced, see `timestamp_rebase`.  The
        operator chooses what is recorded; the client may ask by its type that a file be continued.
        No file is overwritten, whatever the text says of "record".
        """
        live = connection.registry.open(APP, stream.path)
        is_kept = live.publishing and not may_replace(live, stream.newcomer, now)
        if not stream.path or is_kept or self.is_elsewhere(stream.path):
            description = f"{name} is already published." if name else "A stream needs a name."
            # Field §"Names in use" [bad-name]
            stream.reject_publish("NetStream.Publish.BadName", description, now)
            return
        live.begin(now, stream.kind, stream)
        stream.accept_publish(live, now)
        if stream.kind in ("record", "append"):
            _say_recorded(stream, live.recorded)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Play the stream, or wait for its publisher: RTMP 1.0 §7.2.2.1 with its start of -2."""
        if not stream.path:
            stream.reject_play("NetStream.Play.StreamNotFound", "A stream needs a name.", now)
            return
        stream.accept_play(connection.registry.open(APP, stream.path), now)


def may_replace(live: LiveStream, newcomer: tuple[str, bool], now: float) -> bool:
    """Whether its publisher neither sends nor answers: RTMP 1.0 §7.1.7."""
    publisher = live.publisher
    if isinstance(publisher, ServerStream):
        return publisher.yields_to(newcomer, now)
    return publisher is not None and publisher.is_silent(now)


def _say_recorded(stream: ServerStream, recorded: bool) -> None:
    """Tell the client whether it is recorded, by the codes of ActionScript's NetStream."""
    if recorded:
        stream.status("NetStream.Record.Start", f"Recording {stream.name}.")
    else:
        stream.status("NetStream.Record.NoAccess", "Nothing is recorded here.", "error")


_: type[Application] = LiveApplication  # the type checker's proof
