"""Streams that go from client to client, without a server between: both ends of one.

Implements RFC 7425 §5.4.  Who plays opens a flow and says `play` on it; who publishes answers in
flows that return to that one.  To its owner each is like a connection of its own, with the same
commands and status events as at a server, but that many of them share a session.

    subscriber --- control flow: play ------------------------> publisher
               <--- return flows: StreamBegin, onStatus, media ---
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection.connection import PATIENCE, REJECTED, FlowConnection
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Lifetimes, MediaFlow, Medium
from rtmplite.rtmfp.netconnection.messages import Control, FlowMetadata
from rtmplite.rtmp.application import Application
from rtmplite.rtmp.client import Called, Ended, NetClient, Target
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS, NetConnection, State
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command, on_status

if TYPE_CHECKING:
    from rtmplite.live.streams import Registry
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.session.session import Session
    from rtmplite.rtmp.message_transport import ConnectionLimits
    from rtmplite.rtmp.wire.shared_object import SharedObject

APP: Final = "direct"  # the part of a registry that is played directly
SUCCESS: Final = "NetStream.Connect.Success"  # what Flash Player tells a script, as are the others
CLOSED: Final = "NetStream.Connect.Closed"
FAILED: Final = "NetStream.Connect.Failed"
REFUSED: Final = "NetStream.Connect.Rejected"

MayPlay = Callable[[bytes, str], bool]


class DirectStream(FlowConnection):
    """One of the streams in a session with a peer: §5.4 [several-streams].

    `stream_id` is not 0.  `on_over` is called once, when it has nothing more to do with the
    session, which is left to the others.
    """

    def __init__(
        self, stream_id: int, now: float, limits: "ConnectionLimits", lifetimes: Lifetimes = LIVE
    ) -> None:
        super().__init__(now, limits, lifetimes)
        self.stream_id = stream_id
        self.on_over: Callable[[DirectStream, float], None] = lambda stream, now: None

    def _close_session(self, now: float) -> None:
        self._linger = None
        if self.session is not None:
            self._release(now)
            self.session = None
            self.on_over(self, now)
        self._wake()

    def _release(self, now: float) -> None:
        """Want no more of what still comes: §5.4.3, RFC 7425 §5.3.5.3 [code-zero]."""
        for flow in list(self._receivers):
            flow.reject(REJECTED, now)
        self._receivers.clear()
        for lane in self._output.lanes.values():
            lane.close(now)


class Subscription(NetClient, DirectStream):
    """The playing end: §5.4.1.

    It may be told what to play before there is a session.  What `attach` and the end mean to a
    script is among the events: an onStatus with a code such as NetStream.Connect.Success.
    """

    def __init__(
        self, target: Target, peer_id: bytes, stream_id: int, now: float, limits: "ConnectionLimits"
    ) -> None:
        DirectStream.__init__(self, stream_id, now, limits)
        NetClient.__init__(self, target, (), None)
        self.peer_id = peer_id
        self._settled = True
        self._answered = False

    def attach(self, session: "Session") -> None:
        """Use a session with the peer: §5.4.1 [play-on-flow] [nonzero-stream]."""
        self.session, self.peer_address = session, session.address
        self._say("status", SUCCESS, "The peer is there.")
        self._wake()

    def fail(self, reason: str, now: float) -> None:
        """Hear that there will be no session.  Own design: whoever opens them knows."""
        if not self.closed:
            self._say("error", FAILED, reason)
            self.abort(reason, now)

    def answers(self, flow: "RecvFlow") -> bool:
        """Whether a flow is part of this stream: it returns to our control flow.

        §5.4.2 [return-flows]; stream ids are the subscriber's, so they alone do not tell.
        """
        lane = self._output.lanes.get((self.stream_id, Medium.COMMANDS))
        return lane is not None and lane.flow is not None and flow.associated is lane.flow

    def send(self, name: str, *args: Value, stream_id: int = 0) -> None:
        """Call without wanting an answer, over the control flow: §5.4.1 [play-on-flow].

        There is no NetConnection, so deleteStream, which is a command of that, ends the stream.
        """
        if name == "deleteStream":
            self.enqueue(lambda now: self.close(now))
        else:
            super().send(name, *args, stream_id=self.stream_id)

    def set_buffer_length(self, stream_id: int, milliseconds: int) -> None:
        """Say nothing: §5.4.1 [play-on-flow] has no place for it."""

    def send_control(self, message: Control) -> None:
        """Answer a ping in our flow, as there is none for stream 0: §5.4.1."""
        raw = message.message()
        if isinstance(message, control.PingResponse):
            self._send(raw._replace(stream_id=self.stream_id))

    def lane_excepted(self, lane: MediaFlow, now: float) -> None:
        """Hear that the publisher wants no more of us: §5.4.3 [exception-closes]."""
        if not self._answered:
            self._say("error", REFUSED, "The peer does not want it.")
        self.connection_lost(now, "rejected by the peer")

    def completed(self, flow: "RecvFlow", now: float) -> None:
        """One of the return flows has ended, which means nothing: §5.4.2 [flows-come-and-go]."""
        self._receivers.pop(flow, None)
        self._barriers.leave(flow)

    def _accepts(self, metadata: FlowMetadata, flow: "RecvFlow") -> bool:
        self._answered = self._answered or metadata.stream_id == self.stream_id
        return metadata.stream_id == self.stream_id  # §5.4.2 [return-flows]

    def _takes_control(self, flow: "RecvFlow") -> bool:
        return False  # nothing is to be associated to what the publisher may close at any time

    def _ended(self, now: float) -> None:
        self._say("status", CLOSED, self.reason)
        self._events.append(Ended(self.stream_id))

    def _say(self, level: str, code: str, description: str) -> None:
        status = on_status(level, code, description, farID=self.peer_id.hex())
        self._events.append(Called(self.stream_id, status))


class Publication(NetConnection, DirectStream):
    """The publishing end, for one subscriber: §5.4.2.

    What the commands mean is in `rtmplite.rtmp.netstream`, as at a server.
    """

    patience = PATIENCE

    def __init__(
        self,
        application: "DirectApplication",
        registry: "Registry",
        peer_id: bytes,
        stream_id: int,
        random: Callable[[int], bytes],
        now: float,
        *,
        limits: "ConnectionLimits" = DEFAULT_LIMITS,
        lifetimes: Lifetimes = LIVE,
    ) -> None:
        DirectStream.__init__(self, stream_id, now, limits, lifetimes)
        NetConnection.__init__(self, lambda name: application, registry, random, now)
        self.peer_id = peer_id
        self.state, self._application = State.CONNECTED, application
        self.streams[stream_id] = ServerStream(self, stream_id)

    def attach(self, session: "Session") -> None:
        """Use the session in which the subscriber's flow has come: §5.4.2."""
        self.session, self.peer_address = session, session.address

    def completed(self, flow: "RecvFlow", now: float) -> None:
        """The subscriber plays no more: §5.4.3 [publisher-closes]."""
        self._receivers.pop(flow, None)
        self._barriers.leave(flow)
        self.close(now, "closed by the subscriber")

    def _accepts(self, metadata: FlowMetadata, flow: "RecvFlow") -> bool:
        """Accept the subscriber's control flow and no other: §5.4.2 [return-flows]."""
        return self.far_control is None and metadata.stream_id == self.stream_id

    def _on_command(self, command: Command, stream_id: int, now: float) -> None:
        """Obey what concerns the stream; of a NetConnection there is none: §5.4.1."""
        stream = self.streams.get(stream_id)
        if stream is not None and stream.on_command(command, now):
            self._settled = True

    def _on_shared(self, message: "SharedObject", now: float) -> None:
        """Ignore it.  Own design: what we share, we share by a server."""


class DirectApplication:
    """Decides for streams that are played directly: §5.4.2 [stream-begin].

    Own design: only what is published is played, and only by whom `may_play` allows, which is
    given peer id and name.
    """

    def __init__(self, may_play: MayPlay) -> None:
        self._may_play = may_play

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Own design: nobody connects, who has a session is connected."""

    def on_command(self, connection: NetConnection, command: Command, now: float) -> None:
        """Own design: there are no other calls."""

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Refuse: a direct stream goes one way: §5.4."""
        stream.reject_publish("NetStream.Publish.Rejected", "Peers play here.", now)
        connection.close(now, "may not publish")

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Play what is published; else refuse, and end it: §5.4.2 [stream-begin], §5.4.3."""
        live = connection.registry.get(APP, stream.path)
        peer_id = connection.peer_id if isinstance(connection, Publication) else b""
        if live is None or not live.publishing or not self._may_play(peer_id, stream.path):
            stream.reject_play("NetStream.Play.StreamNotFound", f"There is no {name} here.", now)
            connection.close(now, f"may not play {name}")
        else:
            stream.accept_play(live, now)

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Own design: nothing was kept."""


def stream_of(flow: "RecvFlow") -> int:
    """Which stream a flow says it is of, 0 if it says nothing we understand: §5.4.1."""
    try:
        return FlowMetadata.parse(flow.metadata).stream_id
    except RemoteError:
        return 0


_: type[Application] = DirectApplication  # the type checker's proof
