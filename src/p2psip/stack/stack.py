"""One SIP element: messages in, messages out, transactions in between.

Implements RFC 3261 §17 and §18 for UDP and TCP, without touching a socket.

The edge feeds it what arrives, and executes its orders after every event.  The layers above,
its cores, see requests that are new and the answers to their own; every repetition, duplicate
and stray ends here.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sip.build import response_to
from p2psip.sip.message import (
    Request,
    Response,
    check_request,
    check_response,
    parse_message,
    salvage,
)
from p2psip.sip.uri import Uri
from p2psip.stack.address_validation import AddressValidator, ReplyAllowance
from p2psip.stack.clients import ClientHandle, Clients, ClientUser
from p2psip.stack.counters import Counters
from p2psip.stack.fair_pool import Pool
from p2psip.stack.outbox import Locate, Order, Outbox, Send
from p2psip.stack.routing import Hops, Listener, may_carry, next_hop, received_over, way_back
from p2psip.stack.servers import ServerHandle, Servers, ServerUser
from p2psip.transaction.flow import Flow, rate_limit_key
from p2psip.transaction.invite_client import T1
from p2psip.transaction.key import new_branch

__all__ = [
    "ClientHandle",
    "ClientUser",
    "Core",
    "Flow",
    "Listener",
    "Locate",
    "Order",
    "Send",
    "ServerHandle",
    "ServerUser",
    "Stack",
]


# What received requests and our answers to them may fill while their transactions last, some half
# a minute each.  Own design: datagrams have up to 64 KiB, most requests one or two.
MAX_BYTES: Final = 128 * 1024 * 1024
RETRY_AFTER: Final = 5  # s, said with a 503: §21.5.4
REFUSALS: Final = 200  # of those a second; more would only help a flood to fill the line


class Core(Protocol):
    """What sits on top of the transactions: a user agent, a proxy, or an element of both (§5)."""

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a new request; it must be answered through `server`, now or later (§8.2)."""

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx (§13.3.1.4)."""


class Stack:
    """The transaction and transport layers of one element (§17, §18).

    `random(n)` gives n random bytes; `t1` is in seconds; `advertised` is the host others know
    us by, `inside` as `Hops` has it; `hosts` are more names of ours.  `core` must be set before
    anything arrives.
    `trusting` repeats answers to anybody: for networks where no source is forged, see `reach`.
    `on_error`, if set, is told of what a layer above raised and should not have.

    Own design: methods for the layers above never call back into them.  What is addressed to
    ourselves waits until the next event, or until the orders are taken.
    """

    core: Core
    on_error: Callable[[Exception], None] | None = None

    def __init__(
        self,
        *,
        random: Callable[[int], bytes],
        t1: float = T1,
        listeners: Sequence[Listener] = (),
        advertised: str | None = None,
        inside: Callable[[str], str | None] = lambda peer: None,
        hosts: Collection[str] = (),
        user_agent: str = "siprtmp",
        max_transactions: int = 20000,
        max_bytes: int = MAX_BYTES,
        trusting: bool = False,
    ) -> None:
        self.t1, self.user_agent = t1, user_agent
        self.counters = Counters()
        self.on_lost: Callable[[Flow, float], None] = lambda flow, now: None
        self._secret = random(16)
        self._expects: Callable[[Request, Flow, float], bool] = lambda request, flow, now: False
        self._refusals = (0, 0)  # in which second, and how many
        self._hops = Hops(listeners, advertised, hosts, inside)
        self._outbox = Outbox()
        self._reach = AddressValidator(random(32), trusting=trusting)
        self._clients = Clients(
            self._outbox, self._hops, self._reach, random, t1, max_transactions, self.guarded
        )
        self._kept, self._held = Pool(max_transactions), Pool(max_bytes)
        self._servers = Servers(
            self._outbox, self._reach, t1, self._ack_up, self.guarded, self._kept, self._held
        )
        self._acks: dict[int, Request] = {}  # ACKs whose next hop is being located
        self._acks_sent = 0
        self._now = 0.0

    @property
    def transactions(self) -> int:
        """How many transactions are not forgotten yet.  Own design: a figure for `/status`."""
        return len(self._clients) + len(self._servers) + len(self._acks)

    # From the network

    def receive(self, data: bytes | memoryview, flow: Flow, now: float) -> None:
        """Take one datagram or framed message; never raises, whatever it holds (§18.2.1)."""
        self._now = now
        self._hops.found(flow)
        self._receive(data, flow, now)
        self._deliver_local(now)

    def refuse(self, data: bytes | memoryview, flow: Flow, error: RemoteError, now: float) -> None:
        """Take what a stream brought instead of a message, and answer it if possible (§18.3)."""
        self._now = now
        self._refuse(salvage(data), flow, error, len(data))

    def flow_failed(self, flow: Flow, now: float) -> None:
        """Take the news that messages on `flow` were or may be lost (§17.1.4, RFC 6026 §8.8)."""
        self._now = now
        self._hops.lost(flow)
        self.on_lost(flow, now)
        self._clients.flow_failed(flow, now)
        self._servers.flow_failed(flow, now)
        self._deliver_local(now)

    def located(self, token: int, flows: Sequence[Flow], now: float) -> None:
        """Take the answer to a `Locate`: the servers in order of preference (RFC 3263 §4)."""
        self._now = now
        ack = self._acks.pop(token, None)
        if ack is None:
            self._clients.located(token, flows, now)
        elif flows:
            self._post_ack(ack, flows[0])
        self._deliver_local(now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, None if nothing is to come.  Own design: the earliest timer."""
        if self._outbox.local:
            return self._now
        times = (self._clients.deadline, self._servers.deadline)
        return min((at for at in times if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Fire the timers that are due (§17)."""
        self._now = now
        self._clients.tick(now)
        self._servers.tick(now)
        self._deliver_local(now)

    def take_orders(self) -> list[Order]:
        """What the edge has to do, in order, after every event.  Own design: never later."""
        self._deliver_local(self._now)
        return self._outbox.take()

    def notify(self, on_first: Callable[[], None]) -> None:
        """Have `on_first` called when orders begin to wait, so that the edge need not ask.

        Own design: calls are hung up for reasons that no message or timer of ours told.
        """
        self._outbox.on_first = on_first

    # From the layers above

    def request(
        self,
        request: Request,
        user: ClientUser,
        now: float,
        *,
        flows: Sequence[Flow] | None = None,
        once: bool = False,
    ) -> ClientHandle:
        """Send a request other than ACK; the Via is added here (§8.1.2, §18.1.1).

        Its next hop is looked up unless `flows` names the servers to try, best first.  `once` is
        for a place that has not asked to hear from us: one datagram, to one server.
        """
        self._now = now
        return self._clients.begin(request, user, now, flows, once=once)

    def send_ack(self, ack: Request, now: float, flows: Sequence[Flow] | None = None) -> None:
        """Send the ACK of a 2xx, again for each repetition of that (§13.2.2.4)."""
        self._now = now
        ack, uri = next_hop(ack)
        if flows is None:
            flows = self._hops.direct(uri)
        if flows is None:
            # A number of its own kind: requests count upwards from 1.
            self._acks_sent -= 1
            self._acks[self._acks_sent] = ack
            self._outbox.locate(self._acks_sent, uri)
        elif flows:
            self._post_ack(ack, flows[0])

    def flows_to(self, uri: Uri, by: Sequence[Flow] = ()) -> Sequence[Flow] | None:
        """Where a URI leads, as far as that needs no look-up; else None (RFC 3263 §4.2).

        `by` are connections its owner has opened, which come first (RFC 5626 §5.3).
        """
        return self._hops.direct(uri, by)

    def ways(self, request: Request, by: Sequence[Flow]) -> Sequence[Flow] | None:
        """Where a request within a dialog goes, None if that is for the usual look-up (§12.2.1.1).

        `by` are connections that the other side has opened: they lead to it alone, and so not to
        the proxies of a route (RFC 5626 §5.3).
        """
        return self.flows_to(request.uri, by) if by and not request.routes else None

    def expect(self, expects: Callable[[Request, Flow, float], bool]) -> None:
        """Ask `expects` what is within a dialog that is up, or renews what is registered.

        Own design: there is room for such when there is none for strangers.
        """
        self._expects = expects

    def is_ours(self, uri: Uri) -> bool:
        """Does `uri` lead to this element, whatever its user part (§16.4)?"""
        return self._hops.is_ours(uri)

    def is_own_address(self, host: str, port: int | None) -> bool:
        """Is this one of our own listeners (§18.2.1)?"""
        return self._hops.is_own_address(host, port)

    def contact(
        self, user: str | None = None, transport: str | None = None, peer: str | None = None
    ) -> Uri:
        """A URI that leads `peer`, or anybody, here, for Contact and Record-Route (§8.1.1.8)."""
        return self._hops.contact(user, transport, peer)

    def guarded(self, act: Callable[..., object], *args: object) -> bool:
        """Call a layer above; False if it raised, which `on_error` is told of.

        Own design: what one request brings to light must not cost another its transaction.
        """
        try:
            act(*args)
        except RemoteError:
            self.counters.malformed += 1
            return False
        except Exception as error:
            if self.on_error is None:
                raise
            self.on_error(error)
            return False
        return True

    # Inside

    def _deliver_local(self, now: float) -> None:
        """Feed ourselves what we have sent to ourselves, until nothing is left."""
        while self._outbox.local:
            data, flow = self._outbox.local.popleft()
            self._receive(data, flow, now)

    def _receive(self, data: bytes | memoryview, flow: Flow, now: float) -> None:
        if not bytes(data).strip(b"\r\n\0 "):
            return  # a keep-alive
        try:
            message = parse_message(data)
        except RemoteError as error:
            self._refuse(salvage(data), flow, error, len(data))
            return
        if isinstance(message, Response):
            self._receive_response(message, now)
        else:
            self._receive_request(message, flow, len(data), now)

    def _receive_response(self, response: Response, now: float) -> None:
        self.counters.responses += 1
        try:
            check_response(response)
        except RemoteError:
            self.counters.malformed += 1
            return
        if not self._clients.receive(response, now):
            self.counters.stray += 1  # and no more: RFC 6026 §8.9 [strays-dropped]

    def _receive_request(self, request: Request, flow: Flow, size: int, now: float) -> None:
        self.counters.requests += 1
        try:
            check_request(request)
            request = received_over(request, flow)
        except RemoteError as error:
            self._refuse(request, flow, error, size)
            return
        self._look_for_proof(request, flow)
        if self._servers.receive(request, flow, size, now):
            self.counters.repeated += request.method != "ACK"
        elif request.method == "ACK":
            if not self._servers.is_forgotten(request, flow):
                self._ack_up(request, flow, now)
        elif request.method == "CANCEL":
            self._servers.cancel(request, flow, size, now)
        else:
            self._pass_up(request, flow, size, now)

    def _look_for_proof(self, request: Request, flow: Flow) -> None:
        """See whether a doubtful sender knows a tag of ours, and so hears us."""
        tag = request.to.tag
        if tag is not None and not self._reach.hears(way := way_back(request, flow)):
            self._reach.shown(tag, request.call_id, way)

    def _pass_up(self, request: Request, flow: Flow, size: int, now: float) -> None:
        """Pass a new request up: RFC 6026 §8.10 [else-to-the-core].

        What belongs to something that is up has room when others have none, and is always kept:
        its core remembers its CSeq, and would not take it twice.
        """
        may_be_known = request.to.tag is not None or request.method == "REGISTER"
        known = may_be_known and self._expects(request, flow, now)
        host = rate_limit_key(flow.remote[0])
        if not (
            self._kept.has_room(host, 1, known=known)
            and self._held.has_room(host, size, known=known)
        ):
            self._refuse_for_now(request, flow, size, now)
            return
        server = self._servers.open(request, flow, size)
        if known and request.to.tag is not None:
            self._servers.keep(server, now)
        try:
            self.core.on_request(server, request, now)
        except RemoteError as error:  # of a header that no check above knows
            server.reply(error.status, now, error.reason)
        except Exception as error:
            self._servers.fail(server, now)
            self._servers.settle(server, now)
            if self.on_error is None:
                raise
            self.on_error(error)
        self._servers.settle(server, now)

    def _ack_up(self, request: Request, flow: Flow, now: float) -> None:
        self.guarded(self.core.on_ack, request, flow, now)

    def _refuse_for_now(self, request: Request, flow: Flow, size: int, now: float) -> None:
        """Tell a few of those there is no room for when to come again (§21.5.4)."""
        self.counters.refused += 1
        second, count = self._refusals
        self._refusals = (int(now), 1) if second != int(now) else (second, count + 1)
        if self._refusals[1] <= REFUSALS:
            server = self._servers.open(request, flow, size)
            server.reply(503, now, headers=[("Retry-After", RETRY_AFTER)])

    def _refuse(self, request: Request | None, flow: Flow, error: RemoteError, size: int) -> None:
        """Count a malformed message, and answer it if that is possible (§8.2)."""
        self.counters.malformed += 1
        if request is None or request.method == "ACK":
            return
        try:
            request = received_over(request, flow)
        except RemoteError:
            return  # without a Via there is nobody to answer
        self._reject(request, flow, error, size)

    def _reject(self, request: Request, flow: Flow, error: RemoteError, size: int) -> None:
        """Answer without a transaction, with a tag that a repetition gets as well (§8.2.7)."""
        seed = self._secret + str(request.via).encode(errors="surrogateescape")
        tag = hashlib.sha256(seed).hexdigest()[:12]
        response = bytes(response_to(request, error.status, error.reason, to_tag=tag))
        way = way_back(request, flow)
        if self._reach.hears(way) or ReplyAllowance(size).admits(len(response), is_final=True):
            self._outbox.send(response, way)

    def _post_ack(self, ack: Request, flow: Flow) -> None:
        """Send an ACK under a branch of its own, the same each time (§17.1.1.3, §8.1.1.7)."""
        flow = self._hops.localise(flow)
        if not may_carry(flow, ack):
            return
        seed = f"{ack.call_id} {ack.cseq.number} {ack.from_.tag} {ack.to.tag}"
        name = hashlib.sha256(self._secret + seed.encode(errors="surrogateescape"))
        via = self._hops.via(flow, new_branch(name.hexdigest()[:24]))
        ack = ack.replace(headers=ack.headers.prepend("Via", via))
        self._outbox.send(bytes(ack), flow)
