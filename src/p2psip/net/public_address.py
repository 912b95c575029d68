"""Asks STUN servers which address the outside sees our SIP socket at.

Implements RFC 8489 §6.2.1 at the edge: one question for each server, from the socket that SIP uses,
since a router may give each socket another port.
"""

import os
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import gevent

from p2psip.nat.stun_client import INTERVAL, BindingClient
from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from p2psip.net.locator import ServerLocator
from p2psip.net.udp import UdpListener
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow, HostPort

PORT: Final = 3478  # Source: RFC 8489 §18.6


class PublicAddressHandler(Protocol):
    """Is told what the servers answer."""

    def on_address(self, address: HostPort, server: HostPort) -> None:
        """Take our address as `server` sees it, at first and whenever it has changed."""

    def on_silence(self, server: HostPort) -> None:
        """Take the news that `server` does not answer, or cannot be found."""

    def on_symmetric(self, addresses: Sequence[HostPort]) -> None:
        """Take the news that two servers see one socket at different addresses.

        A router that maps each destination apart lets no peer in at either of them.
        """


class StunProbe:
    """Asks one server about one socket, whose owner sends and passes on what comes."""

    def __init__(
        self,
        send: Callable[[bytes, HostPort], object],
        server: HostPort,
        on_change: Callable[["StunProbe"], object],
    ) -> None:
        self.server = server
        self._send, self._on_change = send, on_change
        self._client = BindingClient(os.urandom, monotonic())
        self._alarm = Alarm(self)
        self._alarm.set()

    @property
    def mapped(self) -> HostPort | None:
        """The address that the server sees, None before the first answer."""
        return self._client.mapped

    @property
    def is_silent(self) -> bool:
        """Whether the last question was not answered."""
        return self._client.silent

    @property
    def deadline(self) -> float:
        return self._client.deadline

    def tick(self, now: float) -> None:
        was_silent = self.is_silent
        data = self._client.tick(now)
        if data is not None:
            self._send(data, self.server)
        elif self.is_silent and not was_silent:
            self._on_change(self)

    def receive(self, data: bytes, source: HostPort) -> None:
        """Take a datagram; one of another source than the server is nothing to us."""
        if source[:2] == self.server and self._client.receive(data, monotonic()):
            self._on_change(self)

    def close(self) -> None:
        self._alarm.cancel()


class PublicAddress:
    """The address of a SIP listener, as the first server sees it that is found and answers."""

    def __init__(
        self, listener: UdpListener, servers: Sequence[HostPort], handler: PublicAddressHandler
    ) -> None:
        self._listener, self._handler = listener, handler
        self._probes: list[StunProbe] = []
        self._address: HostPort | None = None
        self._is_symmetric = False
        listener.on_stun.append(self._receive)
        self._finding = gevent.spawn(self._find, list(servers))

    def close(self) -> None:
        self._finding.kill(block=False)
        self._listener.on_stun.remove(self._receive)
        for probe in self._probes:
            probe.close()

    def _find(self, servers: list[HostPort]) -> None:
        told: set[HostPort] = set()
        while servers:
            for server in list(servers):
                found = locate(server, self._listener.address[0])
                if found is not None:
                    servers.remove(server)
                    self._probes.append(StunProbe(self._send, found, self._changed))
                elif server not in told:
                    told.add(server)
                    self._handler.on_silence(server)
            gevent.sleep(INTERVAL if servers else 0)

    def _send(self, data: bytes, server: HostPort) -> None:
        self._listener.send(data, Flow("UDP", server, self._listener.address))

    def _receive(self, data: bytes, source: HostPort) -> None:
        for probe in self._probes:
            probe.receive(data, source)

    def _changed(self, probe: StunProbe) -> None:
        if probe.is_silent:
            self._handler.on_silence(probe.server)
        answered = [each for each in self._probes if each.mapped is not None]
        if not answered:
            return
        first = answered[0]
        if first.mapped is not None and first.mapped != self._address:
            self._address = first.mapped
            self._handler.on_address(self._address, first.server)
        seen = {each.mapped for each in answered if each.mapped is not None}
        if len(seen) > 1 and not self._is_symmetric:
            self._is_symmetric = True
            self._handler.on_symmetric(sorted(seen))


def locate(server: HostPort, local: str) -> HostPort | None:
    """Find the numeric address of a server, of the family of `local`.  May wait."""
    host, port = server
    for flow in ServerLocator().flows(Uri("sip", None, None, host, port)):
        if (":" in flow.remote[0]) == (":" in local):
            return flow.remote
    return None
