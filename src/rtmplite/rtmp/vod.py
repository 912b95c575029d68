"""The `vod` application: play recorded files by name; nobody publishes here.

Implements RTMP 1.0 §7.2.2.1 for what is recorded, with a library of files that the edge provides.
"""

from collections.abc import Callable
from typing import Final

from rtmplite.rtmp.application import Application, OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.playback import FilePlayback
from rtmplite.rtmp.playlist import Library, Recording

APP: Final = "vod"


class VodApplication(OpenApplication):
    """Own design: a `FilePlayback` for every stream that plays; `wake` sees to their deadlines."""

    def __init__(self, library: Library, wake: Callable[[FilePlayback], None]) -> None:
        self._library, self._wake = library, wake

    def on_length(
        self,
        connection: NetConnection,
        path: str,
        answer: Callable[[float, float], None],
        now: float,
    ) -> None:
        """Look it up.  Own design: what getStreamLength asks, which RTMP 1.0 does not know."""

        def found(recording: Recording | None, now: float) -> None:
            if recording is not None:
                recording.close()
            answer(0.0 if recording is None else recording.index.duration / 1000, now)

        self._library.open(path, found)

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Refuse.  Own design: files come from elsewhere."""
        stream.reject_publish("NetStream.Publish.BadName", "Nobody publishes here.", now)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Play a file, or put it after what plays already: RTMP 1.0 §7.2.2.1."""
        if not stream.path:
            stream.reject_play("NetStream.Play.StreamNotFound", "A stream needs a name.", now)
            return
        playback = stream.playback
        if not isinstance(playback, FilePlayback):
            playback = stream.playback = FilePlayback(stream, self._library, self._wake)
        playback.append(stream.path, stream.request)


_: type[Application] = VodApplication  # the type checker's proof
