"""The public address of the gateway, as the servers of --stun see it.

Own design: the address is taken into use whenever an answer brings one, in the Contact of SIP, in
SDP, and in the registrations of clients elsewhere; until then the listener's own is told.
"""

from collections.abc import Callable, Sequence
from functools import partial

from p2psip.net.local_network import LocalNetwork
from p2psip.net.media.prepared_ports import MappedSocket, PreparedPorts
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import HostPort
from rtmplite.net.addresses import written
from siprtmp.operation.logs import Log


class StunSide:
    """Is told what the servers answer; `on_moved(host, port)` has registrations follow.

    `ports` are asked about too; None where media goes another way.
    """

    def __init__(
        self,
        stack: Stack,
        network: LocalNetwork,
        ports: PreparedPorts | None,
        on_moved: Callable[[str, int], object],
        log: Log,
    ) -> None:
        self._stack, self._network, self._ports = stack, network, ports
        self._on_moved, self._log = on_moved, log

    def on_address(self, address: HostPort, server: HostPort) -> None:
        self._log.event("public-address", address=written(*address), server=written(*server))
        self._network.external = address[0]
        self._stack.advertise(address)
        if self._ports is not None:
            self._ports.use(partial(MappedSocket, server=server))
        self._on_moved(*address)

    def on_silence(self, server: HostPort) -> None:
        """Say that a server does not answer; calls go on with the address known before."""
        self._log.warning("stun-silent", server=written(*server))

    def on_symmetric(self, addresses: Sequence[HostPort]) -> None:
        """Say that the router gives a socket an address for each server."""
        self._log.warning("nat-symmetric", addresses=",".join(written(*at) for at in addresses))
