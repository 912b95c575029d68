"""The application `vod`: plays recorded files by name, and refuses publishers.

Implements RTMP 1.0 §7.2.2.1 for recorded streams, with a library of files that the edge provides.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.vod.playback import FilePlayback
from rtmplite.vod.playlist import Library, Recording

APP: Final = "vod"

# Gives the files a client may have, by the query of the name that it plays.
LibraryFor: TypeAlias = Callable[[NetConnection, str], Library]


class VodApplication(OpenApplication):
    """Gives each stream that plays a `FilePlayback`; `wake` is told when one needs a `tick`.

    Own design: `library` serves all clients, unless `library_for` gives one for each file.
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
        """Answer getStreamLength, which RTMP 1.0 does not define, with the file's length."""

        def found(recording: Recording | None, now: float) -> None:
            if recording is not None:
                recording.close()
            answer(0.0 if recording is None else recording.index.duration / 1000, now)

        self._library_for(connection, query).open(path, found)

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Play a file, or append it to the playlist that plays already: RTMP 1.0 §7.2.2.1."""
        if not stream.path:
            stream.reject_play("NetStream.Play.StreamNotFound", "A stream needs a name.", now)
            return
        playback = stream.playback
        if not isinstance(playback, FilePlayback):
            library = _Shelf(connection, stream, self._library_for)
            playback = stream.playback = FilePlayback(stream, library, self._wake)
        playback.append(stream.path, stream.request)


class _Shelf:
    """The library of one stream's client, asked for anew whenever the playlist needs a file."""

    def __init__(
        self, connection: NetConnection, stream: ServerStream, library_for: LibraryFor
    ) -> None:
        self._connection, self._stream, self._library_for = connection, stream, library_for

    def open(self, name: str, then: Callable[[Recording | None, float], None]) -> None:
        self._library_for(self._connection, self._stream.query).open(name, then)


_: type[Application] = VodApplication  # the type checker's proof
