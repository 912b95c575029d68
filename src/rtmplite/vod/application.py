"""The `vod` application: play recorded files by name; nobody publishes here.

Implements RTMP 1.0 §7.2.2.1 for what is recorded, with a library of files that the edge provides.
"""

from collections.abc import Callable
from typing import Final

from rtmplite.rtmp.application import Application, OpenApplication
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.vod.playback import FilePlayback
from rtmplite.vod.playlist import Library, Recording

APP: Final = "vod"


LibraryFor = Callable[[NetConnection, str], Library]
"""Which files a client may have, by the query of the name that it says."""


class VodApplication(OpenApplication):
    """Own design: a `FilePlayback` for every stream that plays; `wake` sees to their deadlines.

    `library` is one for all, unless `library_for` gives another, which is asked for each file.
    """

    def __init__(
        self,
        library: Library,
        wake: Callable[[FilePlayback], None],
        library_for: LibraryFor | None = None,
    ) -> None:
        self._wake = wake
        self._library_for = library_for or (lambda connection, query: library)

    def on_length(
        self,
        connection: NetConnection,
        path: str,
        query: str,
        answer: Callable[[float, float], None],
        now: float,
    ) -> None:
        """Look it up.  Own design: what getStreamLength asks, which RTMP 1.0 does not know."""

        def found(recording: Recording | None, now: float) -> None:
            if recording is not None:
                recording.close()
            answer(0.0 if recording is None else recording.index.duration / 1000, now)

        self._library_for(connection, query).open(path, found)

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
            library = _Shelf(stream, self._library_for)
            playback = stream.playback = FilePlayback(stream, library, self._wake)
        playback.append(stream.path, stream.request)


class _Shelf:
    """The files that the client of a stream may have when it asks, or what it plays comes to."""

    def __init__(self, stream: ServerStream, library_for: LibraryFor) -> None:
        self._stream, self._library_for = stream, library_for

    def open(self, name: str, then: Callable[[Recording | None, float], None]) -> None:
        stream = self._stream
        self._library_for(stream.connection, stream.query).open(name, then)


_: type[Application] = VodApplication  # the type checker's proof
