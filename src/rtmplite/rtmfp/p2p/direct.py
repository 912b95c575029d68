"""Streams that go from client to client, without a server between: both ends of one.

Implements RFC 7425 §5.4.  The subscriber opens a flow and says `play` on it; the publisher answers
in flows that return to that one.  To its owner each stream is like a connection of its own, with
the same commands and status events as at a server, but many streams share a session.

    subscriber --- control flow: play ------------------------> publisher
               <--- return flows: StreamBegin, onStatus, media ---
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection.connection import PUBLISHER_LINGER, FlowTransport
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Lifetimes, MediaFlow, Medium
from rtmplite.rtmfp.netconnection.messages import Control, FlowMetadata
from rtmplite.rtmp.client import Called, Ended, NetClient, Target
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS, Application, NetConnection, State
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command, on_status

if TYPE_CHECKING:
    from rtmplite.live.streams import Registry
    from rtmplite.rtmfp.netconnection.flows import ReceivingFlow
    from rtmplite.rtmp.message_transport import ConnectionLimits
    from rtmplite.rtmp.wire.shared_object import SharedObject

APP: Final = "direct"  # the application in a registry whose streams peers may play
SUCCESS: Final = "NetStream.Connect.Success"  # this and the next as Flash Player tells scripts
CLOSED: Final = "NetStream.Connect.Closed"
FAILED: Final = "NetStream.Connect.Failed"
REFUSED: Final = "NetStream.Connect.Rejected"

MayPlay = Callable[[bytes, str], bool]


class DirectTransport(FlowTransport):
    """Carries one of the streams in a session with a peer: §5.4.

    `stream_id` is not 0.  `on_over` is called once, when it has nothing more to do with the
    session, which is left to the others.
    """

    def __init__(
        self, stream_id: int, now: float, limits: "ConnectionLimits", lifetimes: Lifetimes = LIVE
    ) -> None:
        super().__init__(now, limits, lifetimes)
        self.stream_id = stream_id
        self.on_over: Callable[[float], None] = lambda now: None

    def _close_session(self, now: float) -> None:
        self._linger = None
        if self.session is not None:
            self._release(now)
            self.session = None
            self.on_over(now)  # §5.4 [several-streams]
        self._wake()

    def _release(self, now: float) -> None:
        """Reject the flows that still arrive: §5.4.3, RFC 7425 §5.3.5.3."""
        self.incoming.reject(now)  # RFC 7425 §5.3.5.3 [code-zero]
        for flow in self._output.flows.values():
            flow.close(now)


class SubscriberTransport(DirectTransport):
    """Carries a stream to its player, unless the publisher `is_refused` it: §5.4.1."""

    def __init__(self, stream_id: int, now: float, limits: "ConnectionLimits") -> None:
        super().__init__(stream_id, now, limits)
        self.is_refused = self._is_answered = False
        self.settle()

    def answers(self, flow: "ReceivingFlow") -> bool:
        """Whether a flow returns to our control flow, and so is ours: §5.4.2 [return-flows]."""
        ours = self._output.flows.get((self.stream_id, Medium.COMMANDS))
        return ours is not None and ours.flow is not None and flow.associated is ours.flow

    def send_control(self, message: Control) -> None:
        """Answer a ping in our flow, as there is none for stream 0: §5.4.1."""
        raw = message.message()
        if isinstance(message, control.PingResponse):
            self._send(raw._replace(stream_id=self.stream_id))

    def media_flow_rejected(self, flow: MediaFlow, now: float) -> None:
        """Note that the publisher rejects our flow: §5.4.3."""
        self.is_refused = not self._is_answered
        self.connection_lost(now, "rejected by the peer")  # §5.4.3 [exception-closes]

    def flow_completed(self, flow: "ReceivingFlow", now: float) -> None:
        """Go on: that a return flow has ended means nothing: §5.4.2 [flows-come-and-go]."""

    def accepts(self, metadata: FlowMetadata, flow: "ReceivingFlow") -> bool:
        """Accept the flows of this stream: §5.4.2."""
        is_ours = metadata.stream_id == self.stream_id  # §5.4.2 [return-flows]
        self._is_answered = self._is_answered or is_ours
        return is_ours

    def takes_control(self, flow: "ReceivingFlow") -> bool:
        """Associate nothing to a flow that the publisher may close at any time: §5.4.2."""
        return False


class PublisherTransport(DirectTransport):
    """Carries a stream from its publisher to one subscriber that asked for it: §5.4.2."""

    linger_timeout = PUBLISHER_LINGER

    def flow_completed(self, flow: "ReceivingFlow", now: float) -> None:
        """End the stream, which the subscriber plays no more: §5.4.3 [publisher-closes]."""
        self.close(now, "closed by the subscriber")

    def accepts(self, metadata: FlowMetadata, flow: "ReceivingFlow") -> bool:
        """Accept the subscriber's control flow and no other: §5.4.2."""
        is_ours = metadata.stream_id == self.stream_id  # §5.4.2 [return-flows]
        return is_ours and self.far_control is None


class Subscription(NetClient):
    """The playing end: §5.4.1.

    It may be told what to play before there is a session.  What a session and its end mean to a
    script is among the events: an onStatus with a code such as NetStream.Connect.Success.
    """

    transport: SubscriberTransport

    def __init__(
        self, target: Target, peer_id: bytes, stream_id: int, now: float, limits: "ConnectionLimits"
    ) -> None:
        super().__init__(SubscriberTransport(stream_id, now, limits), target)
        self.peer_id, self.stream_id = peer_id, stream_id

    def on_ready(self) -> None:
        """Use a session with the peer: §5.4.1."""
        self._say("status", SUCCESS, "The peer is there.")

    def fail(self, reason: str, now: float) -> None:
        """Note that there will be no session.  Own design: the user of the endpoint knows."""
        if not self.closed:
            self._say("error", FAILED, reason)
            self.abort(reason, now)

    def send(self, name: str, *args: Value, stream_id: int = 0) -> None:
        """Call without wanting an answer, over the control flow: §5.4.1.

        There is no NetConnection, so deleteStream, which is a command of that, ends the stream.
        """
        if name == "deleteStream":
            self.transport.enqueue(lambda now: self.close(now))
        else:
            super().send(name, *args, stream_id=self.stream_id)  # §5.4.1 [play-on-flow]

    def set_buffer_length(self, stream_id: int, milliseconds: int) -> None:
        """Say nothing: §5.4.1 [play-on-flow] has no place for it."""

    def on_ended(self, now: float) -> None:
        """Tell a script how it ended: §5.4.3."""
        if self.transport.is_refused:
            self._say("error", REFUSED, "The peer does not want it.")
        self._say("status", CLOSED, self.reason)
        self._events.append(Ended(self.stream_id))

    def _say(self, level: str, code: str, description: str) -> None:
        status = on_status(level, code, description, farID=self.peer_id.hex())
        self._events.append(Called(self.stream_id, status))


class Publication(NetConnection):
    """The publishing end for one subscriber, with a server's NetStream: §5.4.2."""

    transport: PublisherTransport

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
        transport = PublisherTransport(stream_id, now, limits, lifetimes)
        super().__init__(transport, lambda name: application, registry, random, now)
        self.peer_id = peer_id
        self.state, self._application = State.CONNECTED, application
        self.add_stream(stream_id)

    def on_command(self, command: Command, stream_id: int, now: float) -> None:
        """Obey the commands of the stream, without a NetConnection: §5.4.1."""
        stream = self.streams.get(stream_id)
        if stream is not None and stream.on_command(command, now):
            self.transport.settle()

    def on_shared(self, message: "SharedObject", now: float) -> None:
        """Ignore it, as objects are shared by a server: RTMP 1.0 §7.1.3."""


DirectStream: TypeAlias = Subscription | Publication
"""Either end of a stream between peers: §5.4."""


class DirectApplication:
    """Own design: lets peers play streams that are published, if `may_play`: §5.4.2."""

    def __init__(self, may_play: MayPlay) -> None:
        self._may_play = may_play

    def on_connect(self, connection: NetConnection, now: float) -> None:
        """Never called: a peer that has a session is connected."""

    def on_command(self, connection: NetConnection, command: Command, now: float) -> None:
        """Ignore other commands."""

    def on_publish(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Refuse to let a subscriber publish, as a direct stream goes one way: §5.4."""
        stream.reject_publish("NetStream.Publish.Rejected", "Peers play here.", now)
        connection.close(now, "may not publish")

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        """Play a published stream; else refuse, and end it: §5.4.2, §5.4.3."""
        live = connection.registry.get(APP, stream.path)
        peer_id = connection.peer_id if isinstance(connection, Publication) else b""
        if live is None or not live.publishing or not self._may_play(peer_id, stream.path):
            stream.reject_play("NetStream.Play.StreamNotFound", f"There is no {name} here.", now)
            connection.close(now, f"may not play {name}")
        else:
            stream.accept_play(live, now)  # §5.4.2 [stream-begin]

    def on_disconnect(self, connection: NetConnection, now: float) -> None:
        """Do nothing, as nothing was kept."""


def stream_of(flow: "ReceivingFlow") -> int:
    """Return the stream ID in a flow's metadata, 0 if there is none: §5.4.1."""
    try:
        return FlowMetadata.parse(flow.metadata).stream_id
    except RemoteError:
        return 0


_: type[Application] = DirectApplication  # the type checker's proof
