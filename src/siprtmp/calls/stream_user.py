"""The user of a call that has RTMP streams: a name of `call`, or the line of a rich client.

Own design: what the phone says and shows is `remote`, which any number of players have.  It begins
with the first audio or video and, before that, its metadata, without which stock players wait for
video that never comes (FLV 10.1 §E.5).  What the publisher sends goes to the phone.
"""

from collections.abc import Callable

from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE, ChunkFraming
from siprtmp.calls.call import Call, CallContext
from siprtmp.calls.home import KEY_FRAME_WANTED, UNSUITABLE
from siprtmp.calls.metadata import DATA, on_metadata
from siprtmp.calls.observer import CallObserver
from siprtmp.media.offload import Players
from siprtmp.media.sink import AUDIO, MediaSink


class StreamUser(CallObserver, MediaSink):
    """At most one call, any number of players of `remote`, and at most one publisher."""

    def __init__(self, context: CallContext, remote: LiveStream) -> None:
        super().__init__()
        self.context, self.remote = context, remote
        self._call: Call | None = None
        self._publisher: ServerStream | None = None
        remote.on_players_changed = self._players_changed
        remote.ask_key_frame = self._ask_key_frame

    @property
    def is_published(self) -> bool:
        """Whether a client publishes what the phone hears."""
        return self._publisher is not None

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if not self.remote.publishing:
            self.remote.begin(now)
            self._describe(now)
        self.remote.write(type_id, timestamp, payload, now)

    def offload(self, recall: Callable[[], None]) -> Players | None:
        """The RTMP players of `remote`; None if any is written other than chunks."""
        offloaded = self.remote.offload(recall)
        if offloaded is None:
            return None
        framing, ways = offloaded
        if not isinstance(framing, ChunkFraming):
            self.remote.returned(None)
            return None
        header = framing(AUDIO, 0, b"")  # a body fits into one chunk: RTMP 1.0 §5.3.1.2.1
        return Players(header, CHUNK_SIZE, tuple(ways), self.remote.returned)

    def on_format(self, now: float) -> None:
        if self.remote.publishing:
            self._describe(now)

    def on_unsuitable(self, text: str) -> None:
        """Tell the publisher, which may not look into our log: RTMP 1.0 §7.2.2."""
        if self._publisher is not None:
            self._publisher.status(UNSUITABLE, text, "warning")

    def on_key_frame_wanted(self) -> None:
        if self._publisher is not None:
            self._publisher.status(KEY_FRAME_WANTED, "The phone needs a key frame.")

    def _describe(self, now: float) -> None:
        """Write the metadata, and again when more is known: FLV 10.1 §E.5.

        It always has the time 0, by which ffmpeg tells it from text that is to be shown.  Through a
        tunnel those of the publisher at its other end will come.
        """
        heard = self._call.format if self._call is not None else None
        if heard is not None:
            body = on_metadata(heard.audio_format, heard.video, heard.size)
            self.remote.write(DATA, 0, body, now)

    def _players_changed(self, remote: LiveStream, now: float) -> None:
        """Ask the phone for a key frame if those who watch it have none to begin with.

        RFC 5104 §3.5.1; a player that joins gets the frames since the last one, if they are kept.
        """
        if remote.players and remote.starts_at is None:
            self._ask_key_frame(now)

    def _ask_key_frame(self, now: float) -> None:
        if self._call is not None:
            self._call.request_key_frame(now)
