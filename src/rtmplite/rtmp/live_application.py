"""The `live` application: publish under a name, play by that name.

Implements RTMP 1.0 §7.2.2.1 and RTMP 1.0 §7.2.2.6 for everybody who connects.
"""

from typing import Final

from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServerStream

APP: Final = "live"


class LiveApplication(OpenApplication):
    """Joins publishers and players through the connection's registry.

    Own design: names are taken from the end of the application's name on, so that
    rtmp://host/live/a/b is one stream however a client splits it.
    """

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Let the first publisher of a name keep it while it is there: RTMP 1.0 §7.2.2.6.

        A publisher that is silent and answers no ping is replaced, see `timestamp_rebase`.  The
        operator chooses what is recorded; the client may ask by its type that a file be continued.
        No file is overwritten, whatever the text says of "record".
        """
        live = connection.registry.open(APP, stream.path)
        if not stream.path or (live.publishing and not _may_replace(live, stream, now)):
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


def _may_replace(live: LiveStream, stream: ServerStream, now: float) -> bool:
    """Whether its publisher neither sends nor answers."""
    publisher = live.publisher
    if isinstance(publisher, ServerStream):
        return publisher.yields_to(stream, now)
    return publisher is not None and publisher.is_silent(now)


def _say_recorded(stream: ServerStream, recorded: bool) -> None:
    """Tell the client whether it is recorded, by the codes of ActionScript's NetStream."""
    if recorded:
        stream.status("NetStream.Record.Start", f"Recording {stream.name}.")
    else:
        stream.status("NetStream.Record.NoAccess", "Nothing is recorded here.", "error")


_: type[Application] = LiveApplication  # the type checker's proof
