"""The options of a server for clients by RTMFP: how they reach each other, and other servers."""

import socket
from dataclasses import dataclass
from typing import Final

from rtmplite.errors import LocalError
from rtmplite.net import addresses
from rtmplite.net.server.settings import PEER_MODES, RtmfpSettings
from rtmplite.rtmfp.wire.address import Address


@dataclass(frozen=True, slots=True)
class PeerConnectivity:
    """Says how the clients of a server reach each other by RTMFP.

    The server introduces them, or relays between them, or both, or neither.  `relay_host` is the
    relay's address for clients, if it is not that of the listener.
    """

    introduces: bool = True
    relays: bool = False
    relay_host: str | None = None


INTRODUCED: Final = PeerConnectivity()


@dataclass(frozen=True, slots=True)
class OtherServers:
    """Names other servers for clients: for all if `refers`, else while this one is full."""

    addresses: tuple[Address, ...] = ()
    refers: bool = False


NO_OTHER_SERVERS: Final = OtherServers()


def peer_connectivity(settings: RtmfpSettings) -> PeerConnectivity:
    """Read how clients reach each other.  Raises LocalError for wrong options."""
    way = settings.rtmfp_peers
    if way not in PEER_MODES:
        raise LocalError(f"--rtmfp-peers {way} is none of {', '.join(PEER_MODES)}")
    host = settings.rtmfp_relay_host
    if host is not None:
        _resolved(host, 0, "--rtmfp-relay-host", socket.AI_NUMERICHOST)
    return PeerConnectivity(way in ("introduce", "both"), way in ("relay", "both"), host)


def other_servers(settings: RtmfpSettings) -> OtherServers:
    """Read the addresses of other servers for clients.  Raises LocalError for a wrong address."""
    all_to, too_many_to = settings.rtmfp_redirect_to, settings.rtmfp_overflow_to
    name = "--rtmfp-redirect-to" if all_to is not None else "--rtmfp-overflow-to"
    found: list[Address] = []
    for each in (all_to or too_many_to or "").split(","):
        if each:
            found += _resolved(*addresses.parse(each), name)
    if (all_to is not None or too_many_to is not None) and not found:
        raise LocalError(f"{name} names no server")
    return OtherServers(tuple(dict.fromkeys(found)), all_to is not None)


def _resolved(host: str, port: int, option: str, flags: int = 0) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=flags)
    except OSError as error:
        raise LocalError(f"{option} {host}: {error.strerror}") from None
    return [(str(address[0]), port) for *_, address in found]
