"""Connects the machine of a client to a server by RTMFP: a port, an identity, and a hello."""

import os
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

import gevent
from gevent import socket

from rtmplite.errors import LocalError
from rtmplite.net.clock import now
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.netconnection.client import FlowClient
from rtmplite.rtmfp.p2p.peers import Peers
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmp.client import Target

_IN_URIS: Final = "%:/?#[]@!$&'()*+,;="  # what RFC 3986 §2.1, §2.2 let stand, besides letters


def dial(machine: FlowClient) -> tuple[RtmfpPort, Peers, bytes]:
    """Begin to connect `machine` to its target; gives its port, its peers and its peer id.

    The machine is told of the session, and by `connection_lost` if there will be none; from then on
    the port serves it.  Raises OSError for a name without an address, LocalError for
    a URL that is too long to ask for.
    """
    found = _resolve(machine.target)
    # RFC 7425 §7 [new-certificate] [static-clients], RFC 7425 §5.3 [certificate-once]
    make = gevent.get_hub().threadpool.apply
    profile: FlashProfile = make(FlashProfile.client, (os.urandom,))
    port: RtmfpPort
    peers = Peers(
        machine,
        os.urandom,
        lambda stream: port.watch(stream),
        on_server=lambda: port.watch(machine),
    )
    here = "::" if any(":" in host for host, _ in found) else "0.0.0.0"
    port = RtmfpPort(here, 0, profile, peers)
    peers.endpoint = port.endpoint
    port.start()
    machine.transport.addresses = lambda: _own_addresses(found, port.address[1])
    try:
        # RFC 7425 §5.3.1 [epd-is-uri], RFC 7425 §6.1 [all-addresses]
        peers.connect(Epd(ancillary_data=_uri(machine.target)).encode(), found, now())
    except LocalError:
        port.close()
        raise
    port.flush()  # this turn may have begun before there was a watcher for its end
    return port, peers, profile.peer_id


def _uri(target: Target) -> bytes:
    """The URI in the hello to a server (RFC 7425 §6.1); escapes stay."""
    return quote(target.tc_url, safe=_IN_URIS).encode()  # RFC 7425 §6.1 [path-encoding]


def _resolve(target: Target) -> list[Address]:
    """All addresses of a server (RFC 7425 §6.1).  Raises OSError."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_DGRAM)
    # RFC 7425 §6.1 [all-addresses]
    return list(dict.fromkeys((str(address[0]), target.port) for *_, address in found))


def _own_addresses(servers: Iterable[Address], port: int) -> list[Address]:
    """Our addresses on the interfaces to the servers; nothing is sent: RFC 7425 §5.3.3."""
    own = []
    for host, server_port in servers:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((host, server_port))
            except OSError:
                continue
            own.append((probe.getsockname()[0], port))  # RFC 7425 §5.3.3 [all-interfaces]
    return own
