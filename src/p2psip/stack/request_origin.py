"""Where a request really came from, and where the peer of a dialog may be.

Implements RFC 3261 §26.1.4 as far as addresses can: a stranger who has overheard the tags of a
dialog could end it with a BYE.  So a request within a dialog is taken from its peer's places alone.

Own design: a place is a host without its port, so that a phone may connect again and a NAT may
choose another port; of IPv6 it is the /64.
"""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from p2psip.dialog.dialog import Dialog
from p2psip.sip.known import Known
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import LOCAL, Flow, rate_limit_key

MAX_HOSTS: Final = 16  # where one call may have been answered


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side of a dialog (RFC 3261 §12): its address-of-record, and its places."""

    uri: Uri
    hosts: Collection[str]


def host_of(flow: Flow) -> str:
    """The place at the far end of a flow; `LOCAL` is this process."""
    return LOCAL if flow.transport == LOCAL else rate_limit_key(flow.remote[0])


def hosts_named(uri: Uri) -> frozenset[str]:
    """The place that a URI names, empty if it has to be looked up (RFC 3263 §4.2).

    A GRUU names a domain, and not the place of its device (RFC 5627 §3.1).
    """
    if uri.is_gruu:
        return frozenset()
    return _PLACES.of(uri.param("maddr") or uri.host)


def _place_of(host: str) -> frozenset[str]:
    host = host.strip("[]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return frozenset()
    return frozenset({rate_limit_key(host)})


_PLACES: Final = Known(_place_of)


def origin(request: Request, flow: Flow) -> str:
    """The place that a request came from (RFC 3261 §18.2.1).

    For a request that this process has sent to itself it is the origin before that, which is in the
    second Via.  `LOCAL` is for requests that this process made.
    """
    if flow.transport != LOCAL:
        return host_of(flow)
    if len(request.vias) == 1:
        return LOCAL
    via = request.vias[1]
    host = (via.received or via.host).strip("[]")
    return next(iter(hosts_named(Uri("sip", host=host))), host)


def is_return_flow(flow: Flow, *, nat: bool) -> bool:
    """Whether a message's flow is the way to its sender, even if its Contact says otherwise.

    As RFC 5626 §5.3 has it of flows: a connection that a phone has opened is the only sure way to
    it; with `nat` that holds for UDP too.
    """
    if flow.transport == LOCAL:
        return False
    return flow.local is not None if flow.reliable else nat


class PeerAddresses:
    """The known places of the peer of a call made or taken here (RFC 3261 §12.2).

    `by` is the connection that the peer has opened; with `nat`, the flow of its datagrams.  `seen`
    are the flows by which it was heard or has answered, the latest first.
    """

    def __init__(self, *, nat: bool) -> None:
        self.by: tuple[Flow, ...] = ()
        self.seen: tuple[Flow, ...] = ()
        self._nat = nat
        self._heard: frozenset[str] = frozenset()
        self._asked: frozenset[str] = frozenset()

    def heard(self, request: Request, flow: Flow) -> None:
        """Note that the peer has sent a request by `flow` (as in RFC 5626 §5.3)."""
        self._heard = frozenset({origin(request, flow)})
        self.by = (flow,) if is_return_flow(flow, nat=self._nat) else ()
        self._saw(flow)

    def answered(self, flow: Flow | None) -> None:
        """Note that a request of ours was answered, by the peer or a proxy on the way."""
        if flow is None:
            return
        self._saw(flow)
        if len(self._asked) < MAX_HOSTS:
            self._asked |= {host_of(flow)}

    def peer(self, dialog: Dialog) -> Peer:
        """The peer that may send requests within a dialog of the call (RFC 3261 §12.2.2)."""
        nearest = dialog.route_set[0].uri if dialog.route_set else dialog.target
        return Peer(dialog.remote.uri, hosts_named(nearest) | self._asked | self._heard)

    def _saw(self, flow: Flow) -> None:
        self.seen = (flow, *(each for each in self.seen if each != flow))[:MAX_HOSTS]
