"""The listeners of a server for RTMP, RTMPS, RTMPT and RTMFP, and its relays to other servers."""

import os
import socket
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import gevent

from rtmplite.errors import LocalError
from rtmplite.live.streams import Registry
from rtmplite.net.addresses import not_had, written
from rtmplite.net.admitted import Admits
from rtmplite.net.client.dialer import Dialer
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.http.rtmpt import TunnelServer
from rtmplite.net.redaction import public
from rtmplite.net.server.rtmfp_listener import (
    NO_FIGURES,
    RtmfpListener,
    other_servers,
    peer_connectivity,
)
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.net.server.settings import (
    SWITCH,
    EndSettings,
    RelaySettings,
    TlsSettings,
    TransportSettings,
    TrustSettings,
)
from rtmplite.net.tls import client_context, server_context
from rtmplite.relay.link import Dial, Link, State
from rtmplite.relay.rules import Relays, Rule
from rtmplite.rtmfp.endpoint.limits import StartupLimits as PortLimits
from rtmplite.rtmfp.endpoint.session_table import ALL_IDS
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.server import ServerConnection
from rtmplite.rtmp.wire.url import split

Address: TypeAlias = tuple[str, int]


def trust(settings: TrustSettings) -> ssl.SSLContext | None:
    """TLS settings for clients, None for the slow default.  Raises LocalError."""
    if settings.ca is None and not settings.insecure:
        return None
    return client_context(settings.ca, insecure=settings.insecure)


def rules(relays: RelaySettings, end: EndSettings) -> tuple[list[Rule], list[Rule]]:
    """The rules of --push and --pull.  Raises LocalError for a wrong rule or URL."""
    if end.reconnect_to is not None:
        try:
            split(end.reconnect_to)
        except LocalError as error:
            raise LocalError(f"--reconnect-to {error}") from None
    return _rules("push", relays.push), _rules("pull", relays.pull)


def _rules(option: str, given: Iterable[str]) -> list[Rule]:
    try:
        return [Rule.parse(each) for each in given]
    except LocalError as error:
        raise LocalError(f"--{option} {error}") from None


def tell(link: Link, moment: float) -> None:
    """Print a line about a change of a relay."""
    print(in_words(link, moment), file=sys.stderr, flush=True)


def in_words(link: Link, moment: float) -> str:
    """Say what has become of a relay."""
    words = f"{place(link.where)}: {link.state}"
    if link.state is State.WAITING and link.deadline is not None:
        words += f" {link.deadline - moment:.1f} s: {public(link.reason)}"
    elif link.state is State.GIVEN_UP:
        words += f": {public(link.reason)}"
    return words


def place(target: Target) -> str:
    """The URL of a relay, without keys and tokens."""
    return "/".join(word.partition("?")[0] for word in (target.tc_url, target.stream) if word)


class Transports:
    """All listeners and relays of the settings.  Raises LocalError for wrong ones, at once.

    All listeners share `connection_limit`; each connection has `limits` and the application that
    `application_for` gives.  `opened` has sockets that listen already, by the names of options;
    sessions of RTMFP have IDs among `rtmfp_ids`.
    """

    def __init__(
        self,
        settings: TransportSettings,
        application_for: Callable[[str], Application | None],
        registry: Registry,
        limits: ConnectionLimits,
        connection_limit: ConnectionLimit,
        on_change: Callable[[Link, float], None] = tell,
        opened: Mapping[str, socket.socket] = MappingProxyType({}),
        rtmfp_ids: range = ALL_IDS,
    ) -> None:
        def connection(peer: Address) -> ServerConnection:
            return ServerConnection(application_for, registry, os.urandom, now(), limits=limits)

        def by_flows(peer: Address) -> RtmfpServerConnection:
            new = RtmfpServerConnection
            return new(application_for, registry, os.urandom, now(), limits=limits)

        registry.keeps_groups = settings.players.gop_cache == SWITCH[0]
        merge = settings.players.merge_ms
        self._servers: dict[str, RtmpListener | TunnelServer | RtmfpListener] = {}
        self._settings = settings
        at = settings.listeners
        if (address := at.rtmp) is not None:
            self._servers["rtmp"] = RtmpListener(
                *(*address, connection),
                merge_ms=merge,
                connection_limit=connection_limit,
                opened=opened.get("rtmp"),
            )
        if (address := at.rtmps) is not None:
            if settings.tls.tls_cert is None:
                raise LocalError("--rtmps needs --tls-cert")
            self._servers["rtmps"] = RtmpListener(
                *(*address, connection),
                merge_ms=merge,
                connection_limit=connection_limit,
                tls=_context(settings.tls),
                opened=opened.get("rtmps"),
            )
        if (address := at.rtmpt) is not None:
            self._servers["rtmpt"] = TunnelServer(
                *address, connection, connection_limit=connection_limit
            )
        if (address := at.rtmfp) is not None:
            self._servers["rtmfp"] = RtmfpListener(
                *(*address, by_flows),
                limits=PortLimits(buffered_bytes=settings.limits.max_rtmfp_memory),
                connection_limit=connection_limit,
                peer_connectivity=peer_connectivity(settings.rtmfp),
                other_servers=other_servers(settings.rtmfp),
                ids=rtmfp_ids,
                opened=opened.get("rtmfp"),
            )
        push, pull = rules(settings.relays, settings.end)
        self._dialer = Dialer(merge_ms=merge, tls=trust(settings.trust))
        self.relays = Relays(
            registry, self._dialer.dial, os.urandom, push=push, pull=pull, on_change=on_change
        )
        self._dialer.tick = self.relays.tick

    def admitted_dial(self, admits: Admits) -> Dial:
        """Give a dialler of relays that connects only to addresses which `admits` allows."""
        return partial(self._dialer.dial_admitted, admits)

    def start(self) -> None:
        """Listen.  Raises LocalError for an address that cannot be had."""
        for name, server in self._servers.items():
            try:
                server.start()
            except OSError as error:
                at = getattr(self._settings.listeners, name)
                raise LocalError(f"--{name} {written(*at)}: {not_had(error, at[1])}") from None
        self._dialer.start()

    def reload(self) -> None:
        """Read the certificate again; LocalError leaves the old one; connections stay."""
        if isinstance(server := self._servers.get("rtmps"), RtmpListener):
            server.renew(_context(self._settings.tls))

    @property
    def addresses(self) -> dict[str, Address]:
        """The addresses of the listeners, by the names of their options."""
        return {name: server.address for name, server in self._servers.items()}

    @property
    def connections(self) -> list[NetConnection]:
        """All connections, in order of arrival at each listener."""
        return [each for server in self._servers.values() for each in server.connections]

    @property
    def rtmfp(self) -> RtmfpListener | None:
        """The listener of RTMFP."""
        server = self._servers.get("rtmfp")
        return server if isinstance(server, RtmfpListener) else None

    @property
    def rtmfp_figures(self) -> dict[str, int]:
        """The status figures of RTMFP, all zero without a listener."""
        return dict(NO_FIGURES) if self.rtmfp is None else self.rtmfp.figures

    def stop(self) -> None:
        """End all connections, with --drain in time; relays last, as they have media."""
        end = self._settings.end
        gevent.joinall(
            [
                gevent.spawn(server.stop, end.drain, end.reconnect_to)
                for server in self._servers.values()
                if not isinstance(server, TunnelServer)
            ]
        )
        for server in self._servers.values():
            if isinstance(server, TunnelServer):
                server.stop()
        self.relays.stop(now())
        self._dialer.farewell()
        self._dialer.stop()


def _context(settings: TlsSettings) -> ssl.SSLContext:
    try:
        assert settings.tls_cert is not None
        return server_context(settings.tls_cert, settings.tls_key)
    except LocalError as error:
        option = "key" if str(error).startswith(f"{settings.tls_key}:") else "cert"
        raise LocalError(f"--tls-{option} {error}") from None
