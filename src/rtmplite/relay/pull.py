"""A live stream pulled from another server.

Implements RTMP 1.0 §7.2.2.1 from the client's side.
"""

from collections.abc import Callable
from typing import Final

from rtmplite.amf import amf0
from rtmplite.flv.published_video import PublishedVideo
from rtmplite.live.streams import LiveStream
from rtmplite.relay.link import DEFAULT_BACKOFF, Dial, Link, ReconnectBackoff
from rtmplite.relay.session import RelaySession
from rtmplite.relay.switchover import PlayedPosition, StandbyBuffer
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.wire.message import Message, MessageType

BUFFER: Final = 1000  # ms, what we say is buffered of a stream that is pulled
START: Final = -2000.0  # what is live, else recorded; in ms: Field §"Play times"

# Data messages about the connection, not part of the stream.
_NOT_MEDIA: Final = (amf0.encode("|RtmpSampleAccess"), amf0.encode("onStatus"))


class Pull(Link):
    """Plays a stream of another server into `live`: RTMP 1.0 §7.2.2.1.

    Own design: while the other server has nothing to play, the link stays and waits for it.
    `on_over` is called when a publication has ended there.  The stream is a copy in the sense of
    `LiveStream` if `is_copy`.
    """

    _start_code = "NetStream.Play.Start"
    is_copy = False

    def __init__(
        self,
        live: LiveStream,
        target: Target,
        dial: Dial,
        random: Callable[[int], bytes],
        backoff: ReconnectBackoff = DEFAULT_BACKOFF,
    ) -> None:
        super().__init__(target, dial, random, backoff)
        self.live, self.is_publishing = live, False
        self.on_over: Callable[[float], None] = lambda now: None
        self._passed, self._video = PlayedPosition(), PublishedVideo(live)
        self._ahead: StandbyBuffer | None = None  # while the next server has not taken over

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""
        times = (super().deadline, self._video.deadline)
        return min((at for at in times if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed, also that of a frame that waits."""
        self._video.tick(now)
        super().tick(now)

    def ask(self, session: RelaySession) -> None:
        """Ask to play the stream: RTMP 1.0 §7.2.2.1."""
        session.set_buffer_length(session.stream_id, BUFFER)
        session.send("play", session.target.stream, START, stream_id=session.stream_id)

    def on_media(self, session: RelaySession, message: Message, now: float) -> None:
        """Pass a message on, once, unless another client publishes here: RTMP 1.0 §7.2.2.1."""
        type_id, payload = message.type_id, message.payload
        if type_id == MessageType.DATA_AMF3:  # a zero before the AMF0 values: RTMP Errata §7.2
            type_id, payload = MessageType.DATA, payload[1:]
        if type_id == MessageType.DATA and payload.startswith(_NOT_MEDIA):
            return
        if session is self._next or (session is self._session and self._next is None):
            self._take(session, type_id, message.timestamp, payload, now)
        elif session is self._session:
            assert self._next is not None
            ahead = self._ahead
            if ahead and ahead.meets(type_id, message.timestamp, payload, now):
                # E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
                # [leave-at-boundary]
                self._promote(self._next, now)
            else:
                self._pass_on(type_id, message.timestamp, payload, now)

    def on_eof(self, session: RelaySession, now: float) -> None:
        """End the publication here as there, or use the next server: RTMP 1.0 §7.1.7."""
        if session is not self._session:
            return
        if self._next is not None:
            self._promote(self._next, now)
        elif self.is_publishing:
            self._over(now)
            self.on_over(now)

    def is_silent(self, now: float) -> bool:
        """Never, so that no other publisher replaces it: the link watches its connection."""
        return False

    def replaced(self, now: float) -> None:
        """Leave the other server, since a client publishes here."""
        self.is_publishing = False
        self.stop(now)

    def _started(self, session: RelaySession, now: float) -> None:
        """Find the place to go on at, if the old server ended before this one had answered."""
        if self.is_publishing:
            self._ahead = StandbyBuffer()

    def _joined(self, session: RelaySession, now: float) -> None:
        self._ahead = StandbyBuffer()

    def _overlapped(self, session: RelaySession, now: float) -> None:
        """Move at the next key frame of any time: the times of the two servers do not meet."""
        if self._ahead is not None and self._ahead.begin is None:
            self._ahead.from_anywhere = True
        else:
            self._promote(session, now)

    def _taken_over(self, session: RelaySession, now: float) -> None:
        if self._ahead is not None and self._ahead.begin is not None:
            ahead, self._ahead = self._ahead, None
            if not ahead.from_anywhere:
                self._passed.go_over()
            for message in ahead.messages:
                self._pass_on_once(*message, now)

    def _take(
        self, session: RelaySession, type_id: int, timestamp: int, payload: bytes, now: float
    ) -> None:
        """Pass on a message of the only server, or keep one of the next server."""
        if self._ahead is None:
            self._pass_on_once(type_id, timestamp, payload, now)
            return
        self._ahead.take(type_id, timestamp, payload, self._passed, now)
        if session is self._session:
            self._taken_over(session, now)
        elif self._ahead.is_due:
            self._promote(session, now)

    def _pass_on_once(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Pass a message on unless the server before has played it."""
        if not self._passed.is_repeated(type_id, timestamp, payload, now):
            self._pass_on(type_id, timestamp, payload, now)

    def _pass_on(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if not self.is_publishing:
            if self.live.publishing:
                self.stop(now)
                return
            self.is_publishing = True
            self.live.begin(now, publisher=self)
            self._video = PublishedVideo(self.live)
        self._passed.note(type_id, timestamp, payload, now)
        self._video.write(type_id, timestamp, payload, now)

    def _left(self, session: RelaySession, now: float) -> None:
        if session.stream_id and not session.closed:
            session.send("deleteStream", float(session.stream_id))

    def _over(self, now: float) -> None:
        self._passed, self._ahead = PlayedPosition(), None
        if self.is_publishing:
            self.is_publishing = False
            self._video.end(now)
