"""Routing: our own addresses, the next hop of a request, the way back of a response.

Implements RFC 3261 §8.1.2 and §18, with RFC 3581 §4 for clients behind a NAT.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from p2psip.sip.address import Address
from p2psip.sip.known import Known
from p2psip.sip.message import Request
from p2psip.sip.params import drop
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via
from p2psip.stack.locate import is_numeric
from p2psip.transaction.flow import LOCAL, SECURE, WEB, Flow, HostPort
from p2psip.transaction.key import default_port

MAX_GONE: Final = 10_000  # lost connections to remember
MAX_CALLED: Final = 10_000  # hosts that have called us by a name
WILDCARDS = frozenset({"0.0.0.0", "::"})
LOOPBACKS = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket of ours: transport in upper case, host and port (§18.2.1).

    `opens_web` tells whether it opens WebSockets, as a client does (RFC 7118 §3).
    """

    transport: str
    host: str
    port: int
    opens_web: bool = False


class Hops:
    """The addresses of one element, and its way to others (§18).

    `advertised` is the host that others know us by, when it is not the listener's; `hosts` are
    further names and addresses of ours; `inside(peer)` is the host that a peer of the local
    network knows us by, None for all other peers.
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        advertised: str | None,
        hosts: Collection[str] = (),
        inside: Callable[[str], str | None] = lambda peer: None,
    ) -> None:
        self._listeners = {listener.transport: listener for listener in reversed(listeners)}
        self._of_family = {(each.transport, ":" in each.host): each for each in reversed(listeners)}
        self._preferred = listeners[0] if listeners else Listener("UDP", "localhost", 5060)
        self._ports = {listener.port for listener in listeners}
        self._advertised, self._inside = advertised, inside
        names = {*(listener.host for listener in listeners), *hosts, *filter(None, [advertised])}
        if names & (WILDCARDS | LOOPBACKS):
            names |= LOOPBACKS
        self._hosts = frozenset(name.lower() for name in names) - WILDCARDS
        self._own_addresses: frozenset[HostPort] = frozenset()  # beside each host with each port
        self._names = frozenset(name.lower() for name in hosts) - WILDCARDS
        self._gone: OrderedDict[Flow, None] = OrderedDict()
        self._called: OrderedDict[str, str] = OrderedDict()
        self._mapped: HostPort | None = None

    def advertise(self, mapped: HostPort) -> None:
        """Have others outside reach the UDP listener at this address, which a router gives it.

        RFC 8489 §2.  Messages for an address that we had before are still ours.
        """
        self._mapped = mapped
        self._own_addresses |= {mapped}

    @property
    def transports(self) -> Collection[str]:
        """The transports we can use (§18.1.1: only where we listen can responses reach us)."""
        return self._listeners.keys()

    def is_own_address(self, host: str, port: int | None) -> bool:
        """Would a message for `host` and `port` arrive at one of our own listeners (§18.2.1)?

        A domain of ours without a port is ours wherever we listen, as SRV records would say.
        """
        if port is None and host.lower() in self._names:
            return True
        if (host, port or 5060) in self._own_addresses:
            return True
        return host.lower() in self._hosts and (port or 5060) in self._ports

    def is_ours(self, uri: Uri) -> bool:
        """Whether `uri` names this element, with any user part (§16.4)."""
        if uri.scheme not in ("sip", "sips"):
            return False
        return self.is_own_address(uri.param("maddr") or uri.host, self._port(uri))

    def contact(
        self, user: str | None = None, transport: str | None = None, peer: str | None = None
    ) -> Uri:
        """A URI that leads `peer`, or anybody, to us, for Contact and Record-Route (§8.1.1.8).

        Departs from RFC 5630 §5.3 [no-transport-tls]: without transport=tls a SIP URI leads to
        UDP at most peers, and phones that register by TLS write it themselves: Field §"Contacts
        without transport=tls".
        """
        return self._contact(user, self._listener(transport, peer), peer)

    def _contact(self, user: str | None, listener: Listener, peer: str | None = None) -> Uri:
        name = "ws" if listener.transport in WEB else listener.transport.lower()  # RFC 7118 §5.2
        params = () if name == "udp" else (("transport", name),)
        # RFC 3261 §12.1.1 [contact-serves-outside]; §18.2.1 [contact-is-heard]
        host, port = self._place(listener, peer)
        # RFC 3261 §12.1.1 [contact-is-sip]; §8.1.1.8 [contact-is-a-listener]
        return Uri("sip", user, None, host, port, params)

    def contact_by(
        self, contact: Uri, transport: str | None, *, secure: bool, peer: str | None = None
    ) -> Uri:
        """A Contact of ours for a peer at `transport`, which may speak nothing else (§8.1.1.8).

        `peer` is its host, where that is known.  With `secure` the dialog began with a SIPS URI,
        and the Contact is one too (§12.1.1).
        """
        if contact.is_gruu:
            return contact  # RFC 5627 §4.2 [gruu-stays-as-it-is] [no-parameters-of-ours]
        name, before = "TLS" if secure else (transport or "").upper(), _transport(contact) or "UDP"
        if name == before and not secure:
            return contact
        if name == "TCP" and before == "UDP":
            return contact.with_params(transport="tcp")
        if name not in self._listeners or not self.is_ours(contact):
            return contact
        called = peer if name == "TLS" and peer in self._called else None
        mine = self._contact(contact.user, self._listener(name, contact.host), called)
        if secure:
            # RFC 3261 §12.1.1 [sips-for-sips], §12.1.2 [sips-for-sips]
            # §19.1.1 [sips-is-reliable]
            mine = mine.replace(scheme="sips").without_params("transport")
        return mine.replace(params=(*mine.params, *drop(contact.params, "transport")))

    def via(self, flow: Flow, branch: str) -> Via:
        """The Via that we put on top of a request for `flow` (§18.1.1).

        It asks for rport, so that the response finds its way back through a NAT: RFC 3581 §3.
        """
        listener = self._listener(flow.transport, flow.remote[0])
        host, port = self._place(listener, flow.remote[0])
        if host in WILDCARDS and flow.local is not None:
            host = flow.local[0]
        # RFC 3261 §8.1.1.7 [has-a-branch], RFC 3581 §3 [rport-without-value]
        params = (("branch", branch), ("rport", None))  # RFC 3581 §3 [rport-without-value]
        # RFC 3581 §3 [answers-at-sent-by], RFC 3261 §18.1.1 [writes-sent-by]
        return Via(listener.transport, host, port, params)

    def direct(self, uri: Uri, by: Sequence[Flow] = ()) -> list[Flow] | None:
        """The flows to `uri` where no look-up is needed; None where one is (RFC 3263 §4.1, §4.2).

        Empty when it asks for a transport that we do not have.  `by` are connections that its
        owner has opened to us: they come first, unless they are gone (RFC 5626 §5.3).
        """
        transport = _transport(uri)
        host = uri.param("maddr") or uri.host
        if self.is_own_address(host, self._port(uri)):
            return [self.localise(Flow(LOCAL, (host, uri.port or 5060)))]
        known = self.alive(by)
        if transport is not None and not self._may_open(transport):
            return known  # §19.1.5 [other-transports-refused]
        if not is_numeric(host):
            return known or None
        if transport is None:
            transport = "UDP" if "UDP" in self._listeners else self._preferred.transport
        domain = host if transport in SECURE else ""
        named = Flow(transport, (host, uri.port or default_port(transport)), domain=domain)
        return known if any(flow.peer == named.peer for flow in known) else [*known, named]

    def _may_open(self, transport: str) -> bool:
        """Whether we have a transport, and are the one that opens its connections."""
        listener = self._listeners.get(transport)
        return listener is not None and (transport not in WEB or listener.opens_web)

    def alive(self, flows: Sequence[Flow]) -> list[Flow]:
        """Those of the flows whose connections are not known to be gone (§18.4)."""
        return [flow for flow in flows if flow not in self._gone]

    def lost(self, flow: Flow) -> None:
        """Note that a connection opened by a peer is gone, and leads to it no more (§18.4)."""
        if flow.reliable and flow.local is not None:
            self._gone[flow] = None
            if len(self._gone) > MAX_GONE:
                self._gone.popitem(last=False)

    def found(self, flow: Flow) -> None:
        """Note that a message came over `flow`.  Own design: its peer is there again.

        A peer by TLS that has called us by a name is told that name from now on.  It checks our
        certificate for what it is told (RFC 3261 §26.2.2).
        """
        self._gone.pop(flow, None)
        if flow.called and self._called.get(flow.remote[0]) != flow.called:
            self._called[flow.remote[0]] = flow.called
            self._hosts |= {flow.called}
            if len(self._called) > MAX_CALLED:
                self._called.popitem(last=False)

    def localise(self, flow: Flow) -> Flow:
        """The same flow, or the short way to ourselves.  Own design: see `Outbox`."""
        if self.is_own_address(*flow.remote):
            return Flow(LOCAL, flow.remote, flow.remote)
        return flow

    def _port(self, uri: Uri) -> int | None:
        """The port of a URI; None for a domain of ours, which has SRV records (RFC 3263 §4.2)."""
        if uri.port is None and (uri.param("maddr") or uri.host).lower() in self._names:
            return None
        return uri.port or default_port(_transport(uri) or "UDP")

    def _listener(self, transport: str | None, peer: str | None = None) -> Listener:
        """The listener for a transport, of the peer's address family if there is one."""
        first = self._listeners.get(transport or "", self._preferred)
        if peer is None:
            return first
        return self._of_family.get((first.transport, ":" in peer), first)

    def _place(self, listener: Listener, peer: str | None = None) -> HostPort:
        """The address of a listener for `peer`, or for anybody."""
        if listener.transport == "TLS" and peer is not None and peer in self._called:
            return self._called[peer], listener.port
        inside = self._inside(peer) if peer is not None else None
        if inside is not None and inside not in self._hosts:
            self._hosts |= {inside}
        mapped = self._mapped if listener.transport == "UDP" else None
        outside = mapped[0] if mapped is not None else self._advertised
        if inside is not None or outside is None or self._is_beside(listener, outside):
            return inside or listener.host, listener.port
        return mapped or (outside, listener.port)

    def _is_beside(self, listener: Listener, outside: str) -> bool:
        """Whether an outside address is that of another listener, of the other family."""
        named = self._of_family.get((listener.transport, ":" in outside), listener)
        return named.host != listener.host


def is_loopback(host: str) -> bool:
    """Whether `host` can be reached from this machine only.

    Own design: of names only localhost, since nothing proves it of any other.
    """
    return _LOOPBACK.of(host)


def _is_loopback(host: str) -> bool:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


_LOOPBACK: Final = Known(_is_loopback)


def needs_tls(request: Request) -> bool:
    """Whether a request must not leave in the clear (RFC 3261 §26.2.2, §16.6 step 6).

    A SIPS URI says so as its target, and as any proxy of the route.
    Not done: RFC 3261 §26.4.4 [to-is-inspected]: a call that was forwarded has a To of another
    scheme, too, and is not refused.
    """
    # RFC 5630 §5.1.1 [sips-route-by-tls]
    return request.uri.scheme == "sips" or any([r.uri.scheme == "sips" for r in request.routes])


def may_carry(flow: Flow, request: Request) -> bool:
    """Whether a request may take this flow (RFC 3261 §26.2.2)."""
    # RFC 3261 §8.1.2 [other-places-by-tls], RFC 5630 §5.3 [no-last-hop-exception]
    # RFC 7118 §9.2 [sips-by-wss]
    return flow.transport in SECURE or not needs_tls(request)


def next_hop(request: Request) -> tuple[Request, Uri]:
    """The request as it is sent, and the URI of the server that it goes to (§8.1.2).

    A topmost Route without `lr` names an RFC 2543 proxy, which routes by the Request-URI alone:
    the two change places, as §12.2.1.1 and §16.6 step 6 say.  The URI of the server is a SIPS URI
    if that of the target is.

    Not done: RFC 5630 §5.1.1 [route-becomes-sips]: TLS is chosen whatever the Route says, which is
    the proxy's own name for itself.
    """
    routes = request.routes
    if not routes:
        return request, request.uri  # §16.6 [route-or-target-is-the-hop]
    first = hop = routes[0].uri
    if request.uri.scheme == "sips":
        # §16.6 [secure-target-secure-hop], §8.1.2 [sips-over-any-route]
        hop = first.replace(scheme="sips")
    # Field §"Loose routes with a value"
    if first.param("lr") is not None:  # §16.6 [looks-at-the-first-route]
        return request, hop  # §16.6 [route-or-target-is-the-hop], §8.1.2 [to-the-first-route]
    # §16.6 [target-goes-last], §12.2.1.1 [rest-of-the-routes] [target-comes-last]
    rest = [*routes[1:], Address(request.uri)]  # §8.1.1.1 [given-route]
    headers = request.headers.with_("Route", *rest)  # §16.6 [strict-router-is-served]
    # §16.6 [first-route-is-the-target] [strict-router-is-the-hop], §8.1.2 [strict-router-first],
    # §12.2.1.1 [strict-router-is-the-request-uri], RFC 5630 §5.1.1 [strict-sips-route]
    return request.replace(uri=first.without_params("method"), headers=headers), hop


def received_over(request: Request, flow: Flow) -> Request:
    """The request with its true source in the top Via (§18.2.1, RFC 3581 §4)."""
    via = request.via
    host, port = flow.remote
    if flow.transport == LOCAL:
        return request
    # RFC 3581 §4 [received-even-if-same], RFC 3261 §18.2.1 [source-is-noted]
    if via.host != host or via.has_rport or via.received not in (None, host):
        # over any value that the client has put there: §18.2.1 [received-is-the-source]
        # over any value that the client has put there: RFC 5118 §4.5 [received-without-brackets]
        via = via.with_param("received", host)
    if via.has_rport:
        via = via.with_param("rport", str(port))  # RFC 3581 §4 [rport-is-filled]
    if via is request.via:
        return request
    vias = request.headers.all("Via")
    return request.replace(headers=request.headers.with_("Via", via.written(), *vias[1:]))


def response_flow(request: Request, flow: Flow) -> Flow:
    """The flow for the responses to a request that came over `flow` (§18.2.2, RFC 3581 §4).

    Departs from RFC 3261 §18.2.2 [maddr-is-followed]: a stranger could have our answers sent to
    any third party so, and no group of servers is behind a phone.
    Not done: RFC 3261 §18.2.2 [dns-after-icmp]: ICMP is not heard, see `net.udp`.
    """
    via = request.via
    # RFC 3581 §4 [answers-to-rport], RFC 3261 §18.2.2 [same-connection]
    # Field §"Responses to the port in the Via"
    if flow.reliable or via.has_rport or (via.port or 5060) == flow.remote[1]:
        return flow
    # §18.2.2 [to-the-source] [to-sent-by]
    return Flow(flow.transport, (flow.remote[0], via.port or 5060), flow.local)


def fallback_flow(request: Request, flow: Flow) -> Flow | None:
    """The flow for responses once the connection of the request is lost (§18.2.2).

    A new connection to the port where the client says it listens, at the address it really came
    from.  None for datagrams, which have no connection to lose.
    Not done: RFC 3261 §18.2.2 [then-by-dns]: the host that sent-by names is not looked up when that
    fails, or a stranger's Via would make us connect to machines it cannot reach by itself.
    """
    if flow.transport == LOCAL or flow.transport in WEB or not flow.reliable:
        return None
    port = request.via.port or default_port(flow.transport)
    domain = request.via.host if flow.transport == "TLS" else ""
    # RFC 3263 §5 [tls-by-tls], RFC 3261 §18.2.2 [another-connection]
    return Flow(flow.transport, (flow.remote[0], port), domain=domain)


def _transport(uri: Uri) -> str | None:
    """The transport that the URI itself names (§19.1.1; for sips RFC 3263 §4.1)."""
    named = uri.param("transport")
    if uri.scheme == "sips":
        # §26.3.1 [sips-by-tls]
        return "TLS" if named in (None, "", "tcp", "tls") else "WSS"
    return named.upper() if named else None
