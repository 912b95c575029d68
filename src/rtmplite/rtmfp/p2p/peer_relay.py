"""The relay mode: a server stands between two clients that cannot, or shall not, meet directly.

Implements RFC 7016 §3.5.1 by ordinary endpoints.  The man-in-the-middle mode of the article of 2011
cannot be had by pretending to be a client: the peer that asks by fingerprint notices (RFC 7425 §7).
So the server has a relay endpoint for a client, with a port and a peer id of its own.  The client's
peers use these in place of the client's:

    player --- session ---> publisher's relay endpoint
                            player's relay endpoint --- session ---> publisher

Each is introduced to its client like any other peer, so address translators let it pass.

Own design: a relay endpoint begins when another client asks for it by the command `standIn`, with
a peer id, and ends with its client's connection.  Its keys are ephemeral, as a server's are: a
client may trust it as it trusts the server.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, cast

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.netconnection.media_flows import LIVE, Medium, medium_of
from rtmplite.rtmfp.netconnection.messages import SIGNATURE
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmfp.p2p.introducer import may_meet
from rtmplite.rtmfp.session.recv_flow import FlowReceiver
from rtmplite.rtmfp.session.send_flow import FlowSender
from rtmplite.rtmfp.session.session import SessionListener
from rtmplite.rtmfp.wire.address import Origin, SocketAddress, is_sendable
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmp.wire.command import Command

if TYPE_CHECKING:
    from rtmplite.rtmfp.endpoint.endpoint import Endpoint
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.session.recv_flow import RecvFlow
    from rtmplite.rtmfp.session.send_flow import SendFlow
    from rtmplite.rtmfp.session.session import Session
    from rtmplite.rtmfp.wire.address import Address

MOST: Final = 64  # relay endpoints at a time, each with a port
SESSIONS: Final = 32  # of one of them
AGAIN: Final = 1.5  # s, as often as an unanswered hello is sent again

HIGH: Final = 256 * 1024  # bytes under way in a flow, beyond which its source is suspended
LOW: Final = 64 * 1024
FLOWS: Final = 256  # of both sides; more are rejected
GONE: Final = "the other side has gone"


class RelayPlace(Protocol):
    """An endpoint on a port of its own, as the edge makes it; clients reach it at `address`."""

    endpoint: "Endpoint"
    address: "Address"

    def close(self) -> None:
        """Close the port, and all sessions with a last word."""


class PeerRelays:
    """Makes relay endpoints of a server for clients of `connection_of`: RFC 7016 §3.5.1."""

    def __init__(
        self,
        connection_of: "Callable[[bytes], RtmfpServerConnection | None]",
        make: "Callable[[RelayEndpoint], RelayPlace]",
        most: int = MOST,
    ) -> None:
        self.connection_of = connection_of
        self._make, self._most = make, most
        self._by_client: dict[bytes, RelayEndpoint] = {}
        self.bridges: list[SessionBridge] = []
        self._opening: list[tuple[RelayEndpoint, Opening, SessionBridge]] = []

    @property
    def clients(self) -> int:
        """The number of clients with a relay endpoint."""
        return len(self._by_client)

    def on_command(self, asker: "RtmfpServerConnection", command: Command, now: float) -> None:
        """Give the relay endpoint of a peer id in hexadecimal; one error for all failures."""
        wanted = command.args[0] if command.args else None
        try:
            peer_id = bytes.fromhex(wanted if isinstance(wanted, str) else "")
        except ValueError:
            peer_id = b""
        connection = self.connection_of(peer_id)
        if connection is None or not may_meet(asker, connection):
            asker.error(command.transaction_id, RemoteError("There is no such peer."))
            return
        try:
            relay = self.get(peer_id)
        except (LocalError, OSError):
            asker.error(command.transaction_id, RemoteError("No relay is free."))
            return
        asker.result(command.transaction_id, relay.peer_id.hex())

    def get(self, client: bytes) -> "RelayEndpoint":
        """Return a client's relay endpoint, new if need be; LocalError if there are too many."""
        found = self._by_client.get(client)
        if found is None:
            if len(self._by_client) >= self._most:
                raise LocalError(f"{self._most} relay endpoints already")
            found = self._by_client[client] = RelayEndpoint(self, client)
            try:
                found.place = self._make(found)
            except OSError:
                del self._by_client[client]
                raise
        return found

    def addresses_of(self, epd: bytes) -> "list[Address]":
        """The address of the relay endpoint that a discriminator selects: RFC 7016 §3.5.1.4."""
        for each in self._by_client.values():
            if each.place.endpoint.profile.selects(epd):
                return [each.place.address]
        return []

    def forget(self, client: bytes, now: float) -> None:
        """Close the relay endpoint of a client that has gone."""
        relay = self._by_client.pop(client, None)
        if relay is None:
            return
        relay.place.close()
        for each in [each for each in self._opening if each[0] is relay]:
            self._opening.remove(each)
            each[2].end(now)

    def stop(self, now: float) -> None:
        """Close all relay endpoints."""
        for client in list(self._by_client):
            self.forget(client, now)

    def connect(
        self, player: "RelayEndpoint", publisher: bytes, bridge: "SessionBridge", now: float
    ) -> None:
        """Open the second session of a pair, as if `player` had asked for it: RFC 7016 §3.5.1.6."""
        connection = self.connection_of(publisher)
        if connection is None or connection.transport.session is None:
            bridge.end(now)
            return
        # Anything may be listed: RFC 7016 §5 [resources-bounded]
        addresses = [connection.transport.session.address, *filter(is_sendable, connection.listed)]
        epd = Epd(fingerprint=publisher).encode()
        opening = player.place.endpoint.connect(epd, addresses[:8], now)
        self._opening.append((player, opening, bridge))
        self.bridges.append(bridge)
        self._introduce(player, opening)

    def remind(self) -> None:
        """Introduce players again that wait for an answer; to be called every `AGAIN` seconds."""
        for player, opening, _ in self._opening:
            self._introduce(player, opening)

    def met(self, opening: "Opening", session: "Session", now: float) -> "SessionBridge | None":
        """Join the second session of a pair, which is open now, to the first."""
        bridge = self._ended(opening)
        if bridge is None or bridge.is_over:
            return None
        bridge.join(session, now)
        return bridge

    def failed(self, opening: "Opening", now: float) -> None:
        """End the first session of a pair, as the second cannot be opened."""
        bridge = self._ended(opening)
        if bridge is not None:
            bridge.end(now, "the other side cannot be reached")

    def _ended(self, opening: "Opening") -> "SessionBridge | None":
        self.bridges = [bridge for bridge in self.bridges if not bridge.is_over]
        for each in self._opening:
            if each[1] is opening:
                self._opening.remove(each)
                return each[2]
        return None

    def _introduce(self, player: "RelayEndpoint", opening: "Opening") -> None:
        """Have the publisher say hello to the player's endpoint: RFC 7016 §3.5.1.6."""
        fingerprint = player.place.endpoint.profile.wanted_fingerprint(opening.epd)
        connection = None if fingerprint is None else self.connection_of(fingerprint)
        if connection is not None and connection.transport.session is not None:
            here = SocketAddress(*player.place.address, Origin.RELAY)
            hello = ForwardedInitiatorHello(opening.epd, here, opening.tag)
            # RFC 7016 §3.5.1.6 [introduction]
            cast("Session", connection.transport.session).queue_chunk(hello)


class RelayEndpoint(EndpointListener):
    """A client's endpoint at the server; `client` is the client's peer id: RFC 7016 §3.5.1."""

    place: RelayPlace

    def __init__(self, peer_relays: PeerRelays, client: bytes) -> None:
        self.client = client
        self._peer_relays = peer_relays

    @property
    def peer_id(self) -> bytes:
        """The peer id that players ask for: RFC 7425 §4.3.2."""
        profile = self.place.endpoint.profile
        return profile.fingerprint(profile.certificate)

    def on_session(
        self, session: "Session", opening: "Opening | None", now: float
    ) -> "SessionListener | None":
        """Join a session we asked for to its pair, or let a client in: RFC 7016 §3.5.1."""
        if opening is not None:
            return self._peer_relays.met(opening, session, now)
        asker = self.place.endpoint.profile.fingerprint(session.far_certificate)
        one, other = map(self._peer_relays.connection_of, (asker, self.client))
        if one is None or other is None or not may_meet(one, other):
            return None
        bridge = SessionBridge(session)
        try:
            self._peer_relays.connect(self._peer_relays.get(asker), self.client, bridge, now)
        except (LocalError, OSError):
            return None
        return None if bridge.is_over else bridge

    def on_open_failed(self, opening: "Opening", reason: str, now: float) -> None:
        """End the pair: we cannot reach the client either."""
        self._peer_relays.failed(opening, now)


class SessionBridge(SessionListener):
    """Passes the messages of two sessions on, of which the second may come later: RFC 7016 §3.6.

    Own design: each flow is copied to a flow with the same metadata, associated to the copy of the
    flow that it was associated to.  If one side does not take its messages, their source is
    suspended; audio that is late is given up.
    `moved` counts the bytes of messages that have passed.
    """

    def __init__(self, first: "Session") -> None:
        self.sessions = [first]
        self.moved = 0
        self.is_over = False
        self._pipes: dict[RecvFlow, _Pipe] = {}

    def join(self, second: "Session", now: float) -> None:
        """Begin to pass messages on; until now they have waited in their flows."""
        self.sessions.append(second)
        for flow in list(self._pipes):
            flow.resume(now)

    def end(self, now: float, reason: str = GONE) -> None:
        """Close both sessions: RFC 7016 §3.5.5; a second time does nothing."""
        if not self.is_over:
            self.is_over = True
            for session in self.sessions:
                session.close(now, reason)

    def other(self, session: "Session") -> "Session":
        """Return the session to which the messages of `session` are passed on."""
        first, second = self.sessions
        return second if session is first else first

    def on_flow(self, session: "Session", flow: "RecvFlow", now: float) -> FlowReceiver | None:
        """Accept a flow, to be copied to the other session: RFC 7016 §3.6.3.1."""
        if self.is_over or len(self._pipes) >= FLOWS:
            return None
        if len(self.sessions) < 2:
            flow.suspend()
        pipe = self._pipes[flow] = _Pipe(self, session, flow)
        return pipe

    def on_closed(self, session: "Session", now: float) -> None:
        """Close the other session, too: RFC 7016 §3.5.5."""
        self.end(now)

    def returning(self, flow: "RecvFlow") -> "RecvFlow | None":
        """Find the flow that the copy of `flow` is associated to: RFC 7016 §2.3.11.1.2."""
        if flow.associated is None:
            return None
        for source, pipe in self._pipes.items():
            if pipe.onward is flow.associated:
                return source
        return None

    def forget(self, flow: "RecvFlow") -> None:
        """Forget a flow that has ended."""
        self._pipes.pop(flow, None)


class _Pipe(FlowReceiver):
    """A flow from one side, and its copy on the other."""

    def __init__(self, bridge: SessionBridge, session: "Session", source: "RecvFlow") -> None:
        self._bridge, self._session, self._source = bridge, session, source
        self.onward: SendFlow | None = None

    def on_message(self, flow: "RecvFlow", message: bytes, now: float) -> None:
        """Pass a message on: RFC 7016 §3.6.3.3."""
        is_flash = flow.metadata.startswith(SIGNATURE)
        medium = medium_of(message[0]) if is_flash and message else Medium.COMMANDS
        try:
            onward = self.onward = self.onward or self._open(medium, now)
        except LocalError:  # the flow to associate it to has ended meanwhile
            flow.reject(0, now)
            self._bridge.forget(flow)
            return
        lifetime = LIVE.audio if medium is Medium.AUDIO else None
        onward.send(message, now, lifetime=lifetime)
        self._bridge.moved += len(message)
        if onward.queued > HIGH:
            flow.suspend()

    def on_exception(self, flow: "RecvFlow", now: float) -> None:
        """End the copy, as the source has broken a rule: RFC 7016 §3.6.3.7."""
        self.on_complete(flow, now)

    def on_complete(self, flow: "RecvFlow", now: float) -> None:
        """End the copy with its source: RFC 7016 §3.6.3.8."""
        if self.onward is None:
            self._bridge.forget(flow)
        else:
            self.onward.close(now)

    def _open(self, medium: Medium, now: float) -> "SendFlow":
        return self._bridge.other(self._session).open_flow(
            self._source.metadata,
            now,
            associated=self._bridge.returning(self._source),
            sender=_Onward(self._bridge, self._source),
            priority=medium.value,
            time_critical=medium is Medium.AUDIO,
        )


class _Onward(FlowSender):
    """Ties a source to its copy: its rejection, its backlog and its end."""

    def __init__(self, bridge: SessionBridge, source: "RecvFlow") -> None:
        self._bridge, self._source = bridge, source

    def on_exception(self, flow: "SendFlow", code: int, now: float) -> None:
        """Reject the source, as the far end rejects its copy: RFC 7016 §3.6.3.7."""
        self._source.reject(code, now)
        self._bridge.forget(self._source)

    def on_writable(self, flow: "SendFlow", now: float) -> None:
        """Let the source go on below `LOW`, where it does not stop again at once."""
        if flow.queued < LOW and self._source.is_suspended:
            self._source.resume(now)

    def on_complete(self, flow: "SendFlow", now: float) -> None:
        """Forget the source, as all of it has arrived: RFC 7016 §3.6.2.11."""
        self._bridge.forget(self._source)
