"""Bases of applications, and the lookup of them by name: RTMP 1.0 §7.2.1.1."""

from collections.abc import Callable, Iterable, Mapping

from rtmplite.errors import RemoteError
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command


class OpenApplication:
    """Base of applications: it accepts every client, and refuses to publish and to play.

    Own design: a subclass defines what it offers, mostly `on_publish` and `on_play`.
    """

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
