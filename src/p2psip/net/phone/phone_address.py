"""The addresses of a phone behind a router: of its SIP socket and of its media ports.

Own design: peers in the local network are told the address of this machine, all others the one that
the servers see.  A program that calls once waits a little for the answers, a phone that listens is
told of every change.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import gevent

from p2psip.net.driver import SipDriver
from p2psip.net.local_network import LocalNetwork
from p2psip.net.media.ice_port import IcePlaces
from p2psip.net.media.port_pool import PortPool
from p2psip.net.media.prepared_ports import MappedSocket, PreparedPorts
from p2psip.net.media.relayed_ports import Relays
from p2psip.net.media.rtp_ports import MediaPool
from p2psip.net.public_address import PublicAddress
from p2psip.transaction.flow import HostPort

SERVER_SECONDS: Final = 3.0  # s that a phone waits for the servers before it begins
log: Final = logging.getLogger(__name__)


class PhoneAddress:
    """The addresses of one phone, of which `beside` is the host of the other family, if any.

    With `ice` its media has those of a relay as well as all others; `ice_tcp` adds those of TCP.
    """

    def __init__(
        self,
        host: str,
        pool: PortPool,
        beside: str | None = None,
        *,
        ice: bool = False,
        ice_tcp: bool = False,
    ) -> None:
        self._host, self._network, self._pool = host, LocalNetwork(host, beside=beside), pool
        self._beside, self._ice, self._ice_tcp = beside, ice, ice_tcp
        self._prepared = PreparedPorts(pool, host, spare=1)
        # Without ICE a stream has one pair of ports, by a relay or not.
        self._relayed = PreparedPorts(pool, host, spare=1) if ice else self._prepared
        self._on_moved: Callable[[HostPort], object] = lambda address: None
        self._asked: PublicAddress | None = None
        self._relays: Relays | None = None
        self.own_address = self._network.own_address

    def begin(
        self,
        driver: SipDriver,
        stun: Sequence[HostPort],
        turn: tuple[str, str] | None,
        on_moved: Callable[[HostPort], object],
    ) -> None:
        """Ask STUN servers, have media go by TURN; wait `SERVER_SECONDS` at most.  LocalError."""
        self._on_moved = on_moved
        if turn is not None:
            uri, password = turn
            self._relays = Relays(uri, password, self._network, self._relayed, self._without_relay)
        if stun:
            self._asked = PublicAddress(driver.udp, stun, self)
        awaited = [self._relayed] if turn is not None else []
        if stun and (self._ice or turn is None):
            awaited.append(self._prepared)
        if awaited:
            gevent.wait([ports.ready for ports in awaited], SERVER_SECONDS)

    def media(self, peer: str) -> tuple[str, str, MediaPool]:
        """The host to bind, the one to tell, and the ports to take, for the media of a peer."""
        beside = self._network.beside((peer,))  # RFC 6157 §4 [both-families]
        if beside is not None:
            return beside, beside, self._pool
        is_inside = self._network.is_inside((peer,))
        pool = self._pool if is_inside else self._prepared
        return self._host, self._network.host_for((peer,)), pool

    def ice_places(self, peer: str) -> IcePlaces | None:
        """Where the media of a peer may reach us by ICE, None without."""
        if not self._ice:
            return None
        is_inside = self._network.is_inside((peer,))
        places: list[tuple[str, MediaPool]] = [(self._host, self._prepared)]
        if self._relays is not None:  # the first is for peers without ICE
            places.insert(1 if is_inside else 0, (self._host, self._relayed))
        if self._beside is not None:
            is_other = self._network.beside((peer,)) is not None
            places.insert(0 if is_other else len(places), (self._beside, self._pool))
        return IcePlaces(places, is_inside, self._ice_tcp)

    def close(self) -> None:
        """Ask no more, and close the ports that wait for calls."""
        if self._asked is not None:
            self._asked.close()
        if self._relays is not None:
            self._relays.close()
        self._prepared.close()
        self._relayed.close()

    def _without_relay(self, reason: str) -> None:
        log.warning("calls go without a relay: %s", reason)

    # PublicAddressHandler

    def on_address(self, address: HostPort, server: HostPort) -> None:
        """Tell peers outside this address from now on."""
        log.info("our public address is %s:%d", *address)
        self._network.external = address[0]
        self._on_moved(address)
        if self._relays is None or self._ice:
            self._prepared.use(partial(MappedSocket, server=server))

    def on_silence(self, server: HostPort) -> None:
        log.warning("the STUN server %s:%d does not answer", *server)

    def on_symmetric(self, addresses: Sequence[HostPort]) -> None:
        """Say that no peer outside may reach us."""
        log.warning("the router has a public address for each destination: peers cannot reach us")
