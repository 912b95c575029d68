"""The ports of a server's relay endpoints: see `rtmplite.rtmfp.p2p.peer_relay`."""

import ipaddress
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import gevent

from rtmplite.net.clock import now
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.rtmfp.crypto.certificate import Certificate
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.p2p.peer_relay import AGAIN, SESSIONS, PeerRelays, RelayEndpoint
from rtmplite.rtmfp.session.budget import SessionBudget
from rtmplite.rtmfp.wire.address import Address

if TYPE_CHECKING:
    from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
    from rtmplite.rtmfp.session.session import Session

_LIMITS: Final = StartupLimits(sessions=SESSIONS, unproven=SESSIONS)


class Relay:
    """The relay endpoints of a server that listens at `host`.

    Clients reach them at `told`; without it at `host` or, if that is a wildcard, at the address of
    the interface that leads to the client.  All share the server's `budget`.
    """

    def __init__(
        self,
        host: str,
        told: str | None,
        connection_of: "Callable[[bytes], RtmfpServerConnection | None]",
        budget: SessionBudget,
    ) -> None:
        self._host, self._told, self._budget = host, told, budget
        self._connection_of = connection_of
        self.peer_relays = PeerRelays(connection_of, self._make)
        self._reminding: gevent.Greenlet[[], None] | None = None

    def start(self) -> None:
        """Begin to remind the endpoints that wait for an answer."""
        self._reminding = gevent.spawn(self._remind)

    def stop(self) -> None:
        """Close all ports."""
        if self._reminding is not None:
            self._reminding.kill()
        self.peer_relays.stop(now())

    def forget(self, session: "Session") -> None:
        """Remove the relay endpoint of a client whose session has ended."""
        self.peer_relays.forget(Certificate.parse(session.far_certificate).fingerprint, now())

    def _remind(self) -> None:
        while True:
            gevent.sleep(AGAIN)
            self.peer_relays.remind()

    def _make(self, relay: RelayEndpoint) -> "_Place":
        # RFC 7425 §4.3.3.2: a hello for anything but its fingerprint is for another endpoint
        profile = FlashProfile(os.urandom, accepts_ancillary_data=False)
        port = RtmfpPort(self._host, 0, profile, relay, limits=_LIMITS, budget=self._budget)
        port.start()
        connection = self._connection_of(relay.client)
        client = None if connection is None else connection.peer_address
        host = self._told or _here(port.address[0], client)
        return _Place(port, (host, port.address[1]))


class _Place:
    """A port of a relay endpoint, as `peer_relay.Place` wants it."""

    def __init__(self, port: RtmfpPort, address: Address) -> None:
        self.endpoint, self.address = port.endpoint, address
        self._port = port

    def close(self) -> None:
        self._port.close()


def _here(host: str, client: Address | None) -> str:
    """Our address towards a client; asking the system for it sends nothing."""
    if client is None or not ipaddress.ip_address(host).is_unspecified:
        return host
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(client)
        return str(probe.getsockname()[0])
