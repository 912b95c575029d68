"""A client's sessions: one with its server, and those with other clients, opened by its help.

Implements RFC 7425 §5.4.  A client asks the server for a publisher by fingerprint; the server
introduces both ends to each other, and the session that follows is theirs alone.

Own design: no peer is let in before something is published here, and then as many as `limits` say.
The owner of the network looks after each stream given to `on_stream`, as after connections.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from rtmplite.errors import LocalError
from rtmplite.live.streams import LiveStream, Registry
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.params import FINGERPRINT_LENGTH
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener, Forwarded
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Lifetimes
from rtmplite.rtmfp.p2p.direct import (
    APP,
    DirectApplication,
    DirectStream,
    MayPlay,
    Publication,
    Subscription,
    stream_of,
)
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.session import SessionListener
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmp.message_transport import ConnectionLimits

if TYPE_CHECKING:
    from rtmplite.rtmfp.endpoint.endpoint import Endpoint
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.netconnection.client import FlowClient
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.session.session import Session

_STREAM_LIMITS: Final = ConnectionLimits(message=1024 * 1024)


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """Limits sessions with peers that come to us, and streams in each: RFC 7016 §5."""

    sessions: int = 64
    streams: int = 16


DEFAULT_PEER_LIMITS: Final = PeerLimits()


class Peers(EndpointListener):
    """The user of a client's endpoint: §5.3, §5.4.

    `server` is the connection that gets the session we ask the server for; `registry` holds what
    we publish directly.  `may_play(peer_id, name)` says whether a peer may play a stream;
    `lifetimes` are those of what we send.
    """

    endpoint: "Endpoint"

    def __init__(
        self,
        server: "FlowClient",
        random: Callable[[int], bytes],
        on_stream: Callable[[DirectStream], None],
        *,
        limits: PeerLimits = DEFAULT_PEER_LIMITS,
        on_server: Callable[[], None] = lambda: None,
    ) -> None:
        self.registry = Registry()
        self.may_play: MayPlay = lambda peer_id, name: True
        self.lifetimes: Lifetimes = LIVE
        self.limits = limits
        self._server, self._random, self._on_stream = server, random, on_stream
        self._on_server = on_server
        self._application = DirectApplication(lambda peer_id, name: self.may_play(peer_id, name))
        self._sessions: dict[bytes, PeerSession] = {}  # by peer id, the oldest first
        self._waiting: dict[Opening, list[Subscription]] = {}
        self._asked: Opening | None = None

    def connect(self, epd: bytes, addresses: Iterable[Address], now: float) -> None:
        """Open the session with the server: §5.3.1."""
        self.endpoint.hellos.forwarded = Forwarded.IGNORE
        self._asked = self.endpoint.connect(epd, addresses, now)  # §5.3.1 [epd-is-uri]

    @property
    def sessions(self) -> "list[PeerSession]":
        """The sessions with peers, in order of their beginning."""
        return list(self._sessions.values())

    # -- what we publish, and what we play ------------------------------------------------

    def publish(self, name: str, now: float) -> LiveStream:
        """Publish `name` to peers; write to the stream that this returns, and end it: §5.4.2.

        LocalError if there is such a stream already.  Peers are let in from now on.
        """
        live = self.registry.open(APP, name)
        if live.publishing or not name:
            raise LocalError(f"{name!r} is published already, or no name")
        live.begin(now)
        self.endpoint.hellos.forwarded = Forwarded.HELLO
        return live

    def play(
        self, peer_id: bytes, now: float, addresses: Iterable[Address] | None = None
    ) -> Subscription:
        """Begin a stream from a peer; `send` it the play command next: §5.4.1.

        It is asked for at `addresses`, else where the server is: §5.4.1.
        LocalError if `peer_id` is none or our own, and if there is no server to ask.
        """
        if len(peer_id) != FINGERPRINT_LENGTH or self.endpoint.profile.selects(_epd(peer_id)):
            raise LocalError(f"{peer_id.hex()} is no peer's id")
        peer = self._sessions.get(peer_id)
        stream_id = 1 if peer is None else peer.next_id
        stream_id += sum(
            each.peer_id == peer_id for waiting in self._waiting.values() for each in waiting
        )
        stream = Subscription(self._server.target, peer_id, stream_id, now, _STREAM_LIMITS)
        if peer is not None:
            peer.add(stream)
        else:
            self._open(stream, now, addresses)
        self._on_stream(stream)
        return stream

    def _open(self, stream: Subscription, now: float, addresses: Iterable[Address] | None) -> None:
        for waiting in self._waiting.values():
            if any(each.peer_id == stream.peer_id for each in waiting):
                waiting.append(stream)
                return
        if addresses is None:
            if self._server.transport.session is None:
                raise LocalError("no server to ask for the peer")
            addresses = [self._server.transport.session.address]  # §5.4.1 [peer-by-fingerprint]
        # §5.4.1 [peer-by-fingerprint]
        opening = self.endpoint.connect(_epd(stream.peer_id), addresses, now)
        self._waiting[opening] = [stream]

    def give_up(self, stream: Subscription, now: float) -> None:
        """Wait no longer for a peer; an opening is cancelled when no stream waits for it."""
        for opening, waiting in list(self._waiting.items()):
            if stream in waiting:
                waiting.remove(stream)
                if not waiting:
                    del self._waiting[opening]
                    opening.cancel(now)
        stream.close(now, "given up")

    # -- what the endpoint tells ----------------------------------------------------------

    def on_session(
        self, session: "Session", opening: "Opening | None", now: float
    ) -> SessionListener | None:
        """Use the session with the server, or with a peer: §5.3.1, §5.4.1."""
        if opening is not None and opening is self._asked:
            self._server.transport.attach(session)
            self._on_server()
            return self._server.transport.incoming
        waiting = self._waiting.pop(opening, []) if opening is not None else []
        peer_id = self.endpoint.profile.fingerprint(session.far_certificate)
        for other, streams in list(self._waiting.items()):  # both ends asked, and this one is it
            if streams[0].peer_id == peer_id:
                waiting += self._waiting.pop(other)
                other.cancel(now, "there is a session")
        if not waiting and not self._lets_in(now):
            return None
        peer = PeerSession(self, session, peer_id, is_ours=bool(waiting))
        self._sessions.pop(peer_id, None)
        self._sessions[peer_id] = peer
        if self._server.transport.peer_keepalive is not None:
            session.keepalive.interval = self._server.transport.peer_keepalive
        for stream in waiting:
            peer.add(stream)
        return peer

    def on_open_failed(self, opening: "Opening", reason: str, now: float) -> None:
        """Fail the streams that wait, or give them the session that serves: RFC 7016 §3.5.1.1.1."""
        if opening is self._asked:
            self._server.transport.connection_lost(now, reason)
            return
        waiting = self._waiting.pop(opening, [])
        instead = opening.instead
        for peer in self.sessions:
            if waiting and peer.session is instead:
                for stream in waiting:
                    peer.add(stream)
                return
        for other, already in self._waiting.items():
            if other is instead:
                already += waiting
                return
        for stream in waiting:
            stream.fail(reason, now)

    def _lets_in(self, now: float) -> bool:
        """Whether there is room for a peer that came to us; one that plays nothing makes room."""
        if not any(live.app == APP for live in self.registry):
            return False
        came = [peer for peer in self._sessions.values() if not peer.is_ours]
        if len(came) < self.limits.sessions:
            return True
        idle = next((peer for peer in came if not peer.streams), None)
        if idle is not None:
            idle.session.close(now)
        return idle is not None

    # -- what sessions tell ---------------------------------------------------------------

    def publication(self, peer: "PeerSession", stream_id: int, now: float) -> Publication:
        """Make our end of a stream that a peer asks for: §5.4.2."""
        stream = Publication(
            self._application,
            self.registry,
            peer.peer_id,
            stream_id,
            self._random,
            now,
            limits=_STREAM_LIMITS,
            lifetimes=self.lifetimes,
        )
        stream.transport.attach(peer.session)
        self._on_stream(stream)
        return stream

    def forget(self, peer: "PeerSession") -> None:
        """Forget a session that has ended."""
        if self._sessions.get(peer.peer_id) is peer:
            del self._sessions[peer.peer_id]


class PeerSession(SessionListener):
    """A session with a peer and its streams; `is_ours` if we asked for it: §5.4."""

    def __init__(self, peers: Peers, session: "Session", peer_id: bytes, *, is_ours: bool) -> None:
        self.session, self.peer_id, self.is_ours = session, peer_id, is_ours
        self.streams: dict[DirectStream, None] = {}
        self.next_id = 1
        self._peers = peers

    def add(self, stream: Subscription) -> None:
        """Play one more stream: §5.4.1 [play-on-flow]."""
        # §5.4 [several-streams]
        self.next_id = max(self.next_id, stream.stream_id + 1)
        self._keep(stream)
        stream.transport.attach(self.session)

    def on_flow(self, session: "Session", flow: "RecvFlow", now: float) -> FlowReceiver | None:
        """Give a flow to the stream it returns to, or make a stream: §5.4.2; §5.4.1."""
        if flow.associated is not None:
            for each in self.streams:
                # §5.4.2 [return-flows]
                if isinstance(each, Subscription) and each.transport.answers(flow):
                    return each.transport.incoming.on_flow(session, flow, now)
            return None
        stream_id = stream_of(flow)
        if not stream_id:  # §5.4.1 [nonzero-stream]
            return None
        asked = sum(isinstance(each, Publication) for each in self.streams)
        if asked >= self._peers.limits.streams:  # RFC 7016 §5 [resources-bounded]
            return None
        stream = self._peers.publication(self, stream_id, now)
        self._keep(stream)
        return stream.transport.incoming.on_flow(session, flow, now)

    def on_closed(self, session: "Session", now: float) -> None:
        """End all streams with the session: §5.4.3."""
        self._peers.forget(self)
        streams, self.streams = self.streams, {}
        for stream in streams:
            stream.transport.session_closed(session, now)

    def on_address_change(self, session: "Session", former: Address, now: float) -> None:
        """Note the peer's new address: RFC 7016 §3.5.4.2."""
        for stream in self.streams:
            stream.transport.peer_address = session.address

    def _keep(self, stream: DirectStream) -> None:
        self.streams[stream] = None
        stream.transport.on_over = partial(self._on_over, stream)

    def _on_over(self, stream: DirectStream, now: float) -> None:
        self.streams.pop(stream, None)
        if not self.streams and self.is_ours:  # §5.4 [several-streams]
            self.session.close(now, "not used any more")


def _epd(peer_id: bytes) -> bytes:
    return Epd(fingerprint=peer_id).encode()
