"""One SIP element: messages in, messages out, transactions in between.

Implements RFC 3261 §17 and §18 for UDP and TCP, without touching a socket.

The edge feeds it every message that arrives, and executes its orders after every event.  The core
above it sees new requests, and the answers to its own; repetitions, duplicates and strays end here.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, NoReturn, Protocol

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
from p2psip.stack.causes import TOO_MANY
from p2psip.stack.clients import ClientHandle, Clients, ClientUser
from p2psip.stack.fair_pool import Pool
from p2psip.stack.outbox import Locate, Order, Outbox, Send
from p2psip.stack.request_origin import Peer, host_of, hosts_named
from p2psip.stack.routing import Hops, Listener, may_carry, next_hop, received_over, response_flow
from p2psip.stack.servers import ServerHandle, Servers, ServerUser
from p2psip.transaction.flow import Flow, rate_limit_key
from p2psip.transaction.invite_client import T1
from p2psip.transaction.key import new_branch
from p2psip.transaction.table import earlier

__all__ = [
    "ClientHandle",
    "ClientUser",
    "Core",
    "Flow",
    "Listener",
    "Locate",
    "Order",
    "Recipient",
    "Send",
    "ServerHandle",
    "ServerUser",
    "Stack",
]


# Octets that received requests and our answers may fill while their transactions last, about half
# a minute each.  Own design: a datagram may have 64 KiB, but most requests have one or two.
MAX_BYTES: Final = 128 * 1024 * 1024
RETRY_AFTER: Final = 5  # s, said with a 503: §21.5.4
REFUSALS: Final = 200  # 503s a second; more would only help a flood to fill the line


@dataclass(slots=True)
class Counters:
    """The messages that a stack has received since it began.  Own design: for `/status`."""

    requests: int = 0
    responses: int = 0
    repeated: int = 0  # requests that a transaction absorbed
    malformed: int = 0
    stray: int = 0
    refused: int = 0  # for want of room


class Recipient(NamedTuple):
    """The part of a core that gets a new request (§8.2).

    `take(server, request, now)` gives it the request, which must be answered through `server`, now
    or later.  `is_known` is true of a known dialog or registration, for which room is kept; `peer`
    is the one that may send the request, None if anybody may (§12.2.2).
    """

    take: Callable[[ServerHandle, Request, float], object]
    is_known: bool = False
    peer: Peer | None = None


class Core(Protocol):
    """The layer above the transactions: a user agent, a proxy, or an element of both (§5)."""

    def recipient(self, request: Request, flow: Flow, now: float) -> Recipient:
        """Decide who gets a new request (§8.2, §16.3); a RemoteError refuses it."""

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx (§13.3.1.4)."""


class Stack:
    """The transaction and transport layers of one element (§17, §18).

    `random(n)` gives n random bytes; `t1` is in seconds; `advertised` is the host others know
    us by, `inside` as `Hops` has it; `hosts` are more names of ours.  `core` must be set before a
    message arrives.  `trusting` repeats answers to any address: for networks where no source is
    forged, see `address_validation`.  `on_error`, if set, is given exceptions that a layer above
    should not have raised.

    `watch`, if set, is told of each message that is no keep-alive, with its flow and whether we
    send it, for a trace.

    Own design: several processes may share the listeners of one.  The others have a `mark`, with
    which the branches of their requests begin, and the one that has the listeners has `divert`: it
    is given each message first, with the data and flow, and tells whether another process gets it.

    Own design: methods for the layers above never call back.  A message to ourselves waits until
    the next event, or until the orders are taken.
    """

    core: Core

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
        mark: str = "",
    ) -> None:
        self.t1, self.user_agent = t1, user_agent
        self.on_error: Callable[[Exception], None] | None = None
        self.watch: Callable[[bytes, Flow, bool], object] | None = None
        self.divert: Callable[[Request | Response, bytes, Flow], bool] | None = None
        self.counters = Counters()
        self.on_lost: Callable[[Flow, float], None] = lambda flow, now: None
        self._secret = random(16)
        self._refusals = (0, 0)  # in which second, and how many
        self._hops = Hops(listeners, advertised, hosts, inside)
        self.advertise = self._hops.advertise
        self._mark, self._outbox = mark, Outbox(self._posted, is_apart=bool(mark))
        self._validator = AddressValidator(random(32), trusting=trusting)
        self._clients = Clients(
            self._outbox, self._hops, self._validator, random, t1, max_transactions, self.guarded
        )
        self._clients.mark = mark
        self._kept, self._held = Pool(max_transactions), Pool(max_bytes)
        self._servers = Servers(
            self._outbox, self._validator, t1, self._ack_up, self.guarded, self._kept, self._held
        )
        self._acks: dict[int, Request] = {}  # ACKs whose next hop is being located
        self._acks_sent = 0
        self._now = 0.0

    @property
    def transactions(self) -> int:
        """The number of transactions in memory: a figure for `/status`."""
        return len(self._clients) + len(self._servers) + len(self._acks)

    # From the network

    def receive(self, data: bytes | memoryview, flow: Flow, now: float) -> None:
        """Take one datagram or framed message of any content; never raises (§18.2.1)."""
        self._now = now
        self._hops.found(flow)
        self._receive(data, flow, now)
        self._deliver_local(now)

    def refuse(self, data: bytes | memoryview, flow: Flow, error: RemoteError, now: float) -> None:
        """Take malformed input of a stream, and answer it if possible (§18.3)."""
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
        """When to call `tick`: the earliest timer, None if there is none."""
        if self._outbox.local:
            return self._now
        return earlier(self._clients.deadline, self._servers.deadline)

    def tick(self, now: float) -> None:
        """Fire the timers that are due (§17)."""
        self._now = now
        self._clients.tick(now)
        self._servers.tick(now)
        self._deliver_local(now)

    def take_orders(self) -> list[Order]:
        """The orders for the edge, to be carried out in this order after every event."""
        self._deliver_local(self._now)
        return self._outbox.take()

    def notify(self, on_first: Callable[[], None]) -> None:
        """Have `on_first` called when orders begin to wait.

        The layers above also act on events of their own, after which the edge would not ask.
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

        Its next hop is looked up unless `flows` names the servers to try, best first.  `once` sends
        one datagram to one server, for a host that may not want to hear from us.
        """
        self._now = now
        return self._clients.begin(request, user, now, flows, once=once)

    def send_ack(self, ack: Request, now: float, flows: Sequence[Flow] | None = None) -> None:
        """Send the ACK of a 2xx, again for each repetition of that (§13.2.2.4)."""
        self._now, (ack, uri) = now, next_hop(ack)
        flows = self._hops.direct(uri) if flows is None else flows
        if flows is None:
            # A number of its own kind: requests count upwards from 1.
            self._acks_sent -= 1
            self._acks[self._acks_sent] = ack
            self._outbox.locate(self._acks_sent, uri)
        elif flows:
            self._post_ack(ack, flows[0])

    def flows_to(self, uri: Uri, by: Sequence[Flow] = ()) -> Sequence[Flow] | None:
        """The flows to a URI, None if that needs a look-up (RFC 3263 §4.2).

        `by` are connections of the URI's owner, which come first (RFC 5626 §5.3).
        """
        return self._hops.direct(uri, by)

    def dialog_flows(
        self,
        request: Request,
        by: Sequence[Flow],
        seen: Sequence[Flow],
        follows: Callable[[Request], bool],
    ) -> Sequence[Flow] | None:
        """The flows for a request within a dialog, None to look them up as usual (§12.2.1.1).

        `by` are connections that the other side has opened: they lead to that side alone, so they
        are used neither when the request has a route (RFC 5626 §5.3) nor for a GRUU.  `seen` are
        the flows by which that side was heard or has answered, the latest first; `follows` tells
        whether the request might be sent to its target by its route if it were a first one.

        Own design: the other side has written target and route, and could make us send to a third
        party.  So they are followed to where that side was seen, or if `follows` says so; else the
        request goes to where that side was seen last.
        """
        is_sure = not request.routes and not request.uri.is_gruu  # RFC 5627 §4.5 [no-mending]
        if self._is_seen(next_hop(request)[1], (*by, *seen)) or follows(request):
            return self.flows_to(request.uri, by) if by and is_sure else None
        return self._hops.alive(by if is_sure else ()) or seen[:1]

    def _is_seen(self, hop: Uri, seen: Collection[Flow]) -> bool:
        """Whether the next hop is this element, or at a place of one of these flows."""
        return self.is_ours(hop) or not hosts_named(hop).isdisjoint(map(host_of, seen))

    def is_ours(self, uri: Uri) -> bool:
        """Whether `uri` leads to this element, with any user part (§16.4)."""
        return self._hops.is_ours(uri)

    def is_own_address(self, host: str, port: int | None) -> bool:
        """Whether this is the address of one of our own listeners (§18.2.1)."""
        return self._hops.is_own_address(host, port)

    def contact(
        self, user: str | None = None, transport: str | None = None, peer: str | None = None
    ) -> Uri:
        """A URI that leads `peer`, or anybody, here, for Contact and Record-Route (§8.1.1.8)."""
        return self._hops.contact(user, transport, peer)

    def contact_by(
        self,
        contact: Uri,
        transport: str | None,
        *,
        secure: bool = False,
        peer: str | None = None,
    ) -> Uri:
        """A Contact of ours for `peer` at `transport`, sips if `secure` (§8.1.1.8, §12.1.1)."""
        return self._hops.contact_by(contact, transport, secure=secure, peer=peer)

    def guarded(self, act: Callable[..., object], *args: object) -> bool:
        """Call a layer above; False if it raised, which `on_error` is given.

        An error that one request reveals must not end the transaction of another.
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

    def _posted(self, data: bytes, flow: Flow) -> None:
        """Tell of a message that is sent."""
        if self.watch is not None:
            self.watch(data, flow, True)

    def _deliver_local(self, now: float) -> None:
        """Receive the messages that were sent to ourselves, until none is left."""
        while self._outbox.local:
            data, flow = self._outbox.local.popleft()
            self._receive(data, flow, now)

    def _receive(self, data: bytes | memoryview, flow: Flow, now: float) -> None:
        if not bytes(data).strip(b"\r\n\0 "):
            return  # a keep-alive: Field §"Keep-alives of other kinds"
        try:
            message = parse_message(data)
        except RemoteError as error:
            self._refuse(salvage(data), flow, error, len(data))
            return
        if self.watch is not None:
            self.watch(bytes(data), flow, False)
        if self.divert is not None and self.divert(message, bytes(data), flow):
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
            # RFC 6026 §6 [strays-not-forwarded], §7.3 [strays-not-forwarded]
            # RFC 6026 §8.2 [strays-not-forwarded], §8.9 [strays-dropped]
            # RFC 4475 §3.3.10 [stray-is-discarded]
            self.counters.stray += 1

    def _receive_request(self, request: Request, flow: Flow, size: int, now: float) -> None:
        self.counters.requests += 1
        try:
            check_request(request)  # §16.3 [fit-for-a-transaction]
            request = received_over(request, flow)
        except RemoteError as error:
            self._refuse(request, flow, error, size)
            return
        self._look_for_proof(request, flow)
        if self._servers.receive(request, flow, size, now):
            self.counters.repeated += request.method != "ACK"
        elif request.method == "ACK":
            if not self._servers.is_forgotten(request, flow):
                self._ack_up(request, flow, now)  # §22.1 [ack-not-challenged]
        elif request.method == "CANCEL":
            self._servers.cancel(request, flow, size, now)  # §8.2.2.3 [ignored-in-what-follows]
        else:
            self._pass_up(request, flow, size, now)

    def _look_for_proof(self, request: Request, flow: Flow) -> None:
        """See whether a doubtful sender repeats a tag of ours, which proves its address."""
        tag = request.to.tag
        if tag is None or "." not in tag:  # as each of ours has: `AddressValidator.tag`
            return
        if not self._validator.hears(way := response_flow(request, flow)):
            self._validator.shown(tag, request.call_id, way)

    def _pass_up(self, request: Request, flow: Flow, size: int, now: float) -> None:
        """Pass a new request up (RFC 6026 §8.10).

        A request of a known dialog has room when others have none, and its transaction is always
        kept: the core remembers the CSeq, and would refuse a repetition.
        """
        try:
            recipient = self.core.recipient(request, flow, now)
        except Exception as error:  # which is answered as if the recipient had raised it
            recipient = Recipient(partial(_raise, error))
        known = recipient.is_known
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
            recipient.take(server, request, now)  # RFC 6026 §8.10 [else-to-the-core]
        except RemoteError as error:  # in a header that no check above has read
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
        """Answer 503 with Retry-After, to a few a second, when there is no room (§21.5.4)."""
        self.counters.refused += 1
        second, count = self._refusals
        self._refusals = (int(now), 1) if second != int(now) else (second, count + 1)
        if self._refusals[1] <= REFUSALS:
            server = self._servers.open(request, flow, size)
            server.reply(503, now, TOO_MANY, [("Retry-After", RETRY_AFTER)])

    def _refuse(self, request: Request | None, flow: Flow, error: RemoteError, size: int) -> None:
        """Count a malformed message, and answer it if that is possible (§8.2)."""
        self.counters.malformed += 1
        if request is None or request.method == "ACK" or "Via" not in request.headers:
            return
        try:
            request = received_over(request, flow)
            way = response_flow(request, flow)
        except RemoteError:
            way = flow  # RFC 4475 §3.1.2.1: the Via is broken, and the source is all we know
        self._reject(request, way, error, size)

    def _reject(self, request: Request, way: Flow, error: RemoteError, size: int) -> None:
        """Answer without a transaction, with a tag that a repetition gets as well (§8.2.7)."""
        seed = self._secret + request.headers["Via"].encode(errors="surrogateescape")
        tag = hashlib.sha256(seed).hexdigest()[:12]  # §8.2.7 [tag-without-memory]
        response = bytes(response_to(request, error.status, error.reason, to_tag=tag))
        if self._validator.hears(way) or ReplyAllowance(size).admits(len(response), is_final=True):
            self._outbox.send(response, way)

    def _post_ack(self, ack: Request, flow: Flow) -> None:
        """Send an ACK under a branch of its own, the same each time (§17.1.1.3, §8.1.1.7)."""
        flow = self._hops.localise(flow)
        if not may_carry(flow, ack):
            return
        seed = f"{ack.call_id} {ack.cseq.number} {ack.from_.tag} {ack.to.tag}"
        name = hashlib.sha256(self._secret + seed.encode(errors="surrogateescape"))
        via = self._hops.via(
            flow, new_branch(self._mark + name.hexdigest()[:24])
        )  # §16.11 [same-branch-again]
        ack = ack.replace(headers=ack.headers.prepend("Via", via))
        self._outbox.send(bytes(ack), flow)


def _raise(error: Exception, *ignored: object) -> NoReturn:
    raise error
