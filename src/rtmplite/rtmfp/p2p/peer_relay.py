"""The relay mode: a server stands between two of its clients that cannot, or shall not, meet.

Implements RFC 7016 §3.5.1 as an ordinary endpoint, several times over.  What the article of 2011
calls the man-in-the-middle mode cannot be had by pretending: who asks by fingerprint notices (RFC
7425 §7).  So for a client the server has a stand-in, with a port and a peer id of its own, which
the client's peers use in place of his:

    player --- session ---> publisher's stand-in
                            player's stand-in --- session ---> publisher

Each is introduced to its client like any other peer, so translators let it pass.

Own design: a stand-in begins when somebody asks for it by the command `standIn`, with a peer id,
and ends with its client's connection.  Its keys are ephemeral, as a server's are: the trust is that
of the connection to the server.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.startup import is_sendable
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmfp.p2p.bridge import SessionBridge
from rtmplite.rtmfp.p2p.introducer import may_meet
from rtmplite.rtmfp.wire.address import Origin, SocketAddress
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmp.wire.command import Command

if TYPE_CHECKING:
    from rtmplite.rtmfp.endpoint.endpoint import Endpoint
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.session.listener import Address, SessionListener
    from rtmplite.rtmfp.session.session import Session

MOST: Final = 64  # stand-ins at a time, each with a port
SESSIONS: Final = 32  # of one of them
AGAIN: Final = 1.5  # s, as often as an unanswered hello is sent again


class RelayPlace(Protocol):
    """An endpoint on a port of its own, as the edge makes it.  Own design.

    `address` is where clients reach it.
    """

    endpoint: "Endpoint"
    address: "Address"

    def close(self) -> None:
        """Close the port, and all sessions with a last word."""


class StandIns:
    """All stand-ins of a server: RFC 7016 §3.5.1.

    `connection_of(peer_id)` finds a client that is connected; `make(listener)` gives a place with
    an identity of its own.
    """

    def __init__(
        self,
        connection_of: "Callable[[bytes], RtmfpServerConnection | None]",
        make: "Callable[[RelayEndpoint], RelayPlace]",
        most: int = MOST,
    ) -> None:
        self.connection_of = connection_of
        self._make, self._most = make, most
        self._by_client: dict[bytes, RelayEndpoint] = {}
        self.middles: list[SessionBridge] = []
        self._opening: list[tuple[RelayEndpoint, Opening, SessionBridge]] = []

    @property
    def clients(self) -> int:
        """For how many clients somebody stands in.  Own design."""
        return len(self._by_client)

    def on_command(self, asker: "RtmfpServerConnection", command: Command, now: float) -> None:
        """Answer who asks for the stand-in of a peer id, in hexadecimal digits: `STAND_IN`.

        Own design: an error for all whom the asker may not meet, known to us or not.
        """
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
            stand_in = self.get(peer_id)
        except (LocalError, OSError):
            asker.error(command.transaction_id, RemoteError("Nobody can stand in now."))
            return
        asker.result(command.transaction_id, stand_in.peer_id.hex())

    def get(self, client: bytes) -> "RelayEndpoint":
        """Give the stand-in of a client, which may be new; LocalError if there are too many."""
        found = self._by_client.get(client)
        if found is None:
            if len(self._by_client) >= self._most:
                raise LocalError(f"{self._most} stand-ins already")
            found = self._by_client[client] = RelayEndpoint(self, client)
            try:
                found.place = self._make(found)
            except OSError:
                del self._by_client[client]
                raise
        return found

    def addresses_of(self, epd: bytes) -> "list[Address]":
        """Say where the stand-in is that a discriminator selects: RFC 7016 §3.5.1.4."""
        for each in self._by_client.values():
            if each.place.endpoint.profile.selects(epd):
                return [each.place.address]
        return []

    def forget(self, client: bytes, now: float) -> None:
        """A client has gone, so nobody stands in for it any more.  Own design."""
        stand_in = self._by_client.pop(client, None)
        if stand_in is None:
            return
        stand_in.place.close()
        for each in [each for each in self._opening if each[0] is stand_in]:
            self._opening.remove(each)
            each[2].end(now)

    def stop(self, now: float) -> None:
        """Close all of it."""
        for client in list(self._by_client):
            self.forget(client, now)

    def connect(
        self, player: "RelayEndpoint", publisher: bytes, middle: SessionBridge, now: float
    ) -> None:
        """Open the second session of a pair, as if `player` had asked for it: RFC 7016 §3.5.1.6."""
        connection = self.connection_of(publisher)
        if connection is None or connection.transport.session is None:
            middle.end(now)
            return
        # Anything may be listed: RFC 7016 §5 [resources-bounded]
        addresses = [connection.transport.session.address, *filter(is_sendable, connection.listed)]
        epd = Epd(fingerprint=publisher).encode()
        opening = player.place.endpoint.connect(epd, addresses[:8], now)
        self._opening.append((player, opening, middle))
        self.middles.append(middle)
        self._introduce(player, opening)

    def remind(self) -> None:
        """Introduce again whose hellos have no answer yet; to be called every `AGAIN` seconds."""
        for player, opening, _ in self._opening:
            self._introduce(player, opening)

    def met(self, opening: "Opening", session: "Session", now: float) -> SessionBridge | None:
        """The second session is there: join it to the first.  Own design."""
        middle = self._ended(opening)
        if middle is None or middle.is_over:
            return None
        middle.join(session, now)
        return middle

    def failed(self, opening: "Opening", now: float) -> None:
        """No second session comes.  Own design: so the first is good for nothing."""
        middle = self._ended(opening)
        if middle is not None:
            middle.end(now, "the other side cannot be reached")

    def _ended(self, opening: "Opening") -> SessionBridge | None:
        self.middles = [middle for middle in self.middles if not middle.is_over]
        for each in self._opening:
            if each[1] is opening:
                self._opening.remove(each)
                return each[2]
        return None

    def _introduce(self, player: "RelayEndpoint", opening: "Opening") -> None:
        """Tell the publisher where the player's stand-in is, so that it says hello there.

        RFC 7016 §3.5.1.6 [introduction]: that opens the way through its translator.
        """
        fingerprint = player.place.endpoint.profile.wanted_fingerprint(opening.epd)
        connection = None if fingerprint is None else self.connection_of(fingerprint)
        if connection is not None and connection.transport.session is not None:
            here = SocketAddress(*player.place.address, Origin.RELAY)
            hello = ForwardedInitiatorHello(opening.epd, here, opening.tag)
            connection.transport.session.queue_chunk(hello)


class RelayEndpoint(EndpointListener):
    """The user of one stand-in's endpoint; `client` is the peer id of whom it stands for."""

    place: RelayPlace

    def __init__(self, stand_ins: StandIns, client: bytes) -> None:
        self.client = client
        self._stand_ins = stand_ins

    @property
    def peer_id(self) -> bytes:
        """By what it is asked for: RFC 7425 §4.3.2."""
        profile = self.place.endpoint.profile
        return profile.fingerprint(profile.certificate)

    def on_session(
        self, session: "Session", opening: "Opening | None", now: float
    ) -> "SessionListener | None":
        """Join a session that we asked for to the one it was asked for; let clients in.

        RFC 7016 §3.5.1: others than clients who may meet this one are refused.
        """
        if opening is not None:
            return self._stand_ins.met(opening, session, now)
        asker = self.place.endpoint.profile.fingerprint(session.far_certificate)
        one, other = map(self._stand_ins.connection_of, (asker, self.client))
        if one is None or other is None or not may_meet(one, other):
            return None
        middle = SessionBridge(session)
        try:
            self._stand_ins.connect(self._stand_ins.get(asker), self.client, middle, now)
        except (LocalError, OSError):
            return None
        return None if middle.is_over else middle

    def on_open_failed(self, opening: "Opening", reason: str, now: float) -> None:
        """The client cannot be reached by us either."""
        self._stand_ins.failed(opening, now)
