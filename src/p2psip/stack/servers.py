"""The requests we have received: server transactions, and the responses they repeat.

Implements RFC 3261 §17.2, §18.2 and §9.2.

A transaction is made when a request rings, is forwarded, waits for its answer, or has changed
something.  A refusal that is given at once leaves no transaction.

Departs from RFC 3261 §17.2.1: such a refusal, and a 200 to an OPTIONS or a CANCEL, is
sent once, without a transaction, as §26.3.2.4 wants it of a 401 and §8.2.7 of stateless servers:
one datagram of a stranger must not take our memory for half a minute, nor send ten datagrams to a
third party.  The client repeats its request until it hears an answer, and gets the same one.

Departs from RFC 3261 §17.2.1 [timer-g-resends] [sends-100]: an address that has not shown that it
hears us is sent no more than `address_validation` allows; a client that hears nothing repeats its
INVITE, which allows more: a 2xx that was held back is sent with that copy.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from p2psip.sip.build import response_to
from p2psip.sip.compact import compact
from p2psip.sip.message import Request, Response
from p2psip.stack.address_validation import AddressValidator, ReplyAllowance
from p2psip.stack.fair_pool import Pool
from p2psip.stack.outbox import Outbox
from p2psip.stack.routing import fallback_flow, response_flow
from p2psip.transaction import invite_server, server
from p2psip.transaction.flow import Flow, rate_limit_key
from p2psip.transaction.invite_server import InviteServer
from p2psip.transaction.key import ack_key, is_modern, server_key
from p2psip.transaction.server import NonInviteServer
from p2psip.transaction.table import Table

# Methods that may be carried out twice without harm, so that a 2xx needs no memory: §11, §9.2.
HARMLESS: Final = frozenset({"OPTIONS", "CANCEL"})
REFUSED: Final = "refused"  # the kind of tag in refusals that leave no transaction

Guard = Callable[..., bool]
"""Calls its first argument with the others; False if that raised: `Stack.guarded`."""


class ServerUser(Protocol):
    """The transaction user of a received request (RFC 3261 §17.2)."""

    def on_cancel(self, handle: "ServerHandle", now: float) -> None:
        """Take a CANCEL of the INVITE, which still has no final response (§9.2)."""

    def on_transaction_end(self, handle: "ServerHandle", now: float) -> None:
        """Handle the end of a transaction, once; `handle.failed` if no ACK came (§17.2.1)."""


def _unheard(handle: "ServerHandle", response: Response, now: float) -> None:
    """Ignore a final response: the default of `on_final`."""


class ServerHandle:
    """One request received, waiting for its responses (§17.2).

    `request` has the truth in its top Via; `flow` is where it came from; `to_tag` is the tag for a
    To that has none, the same in every response of a transaction; `final` is the status of the
    final response, 0 before; `cause`, if set, is the reason phrase for the log where the response
    must not tell it; `failed` once a response could not be sent or was never acknowledged;
    `reasons` are the Reason values of its CANCEL (RFC 3326 §2).  `size` is how many bytes request
    and response have.  `on_final` is called with the first final response, and with the handle, so
    that it need not refer to it: both are freed without the garbage collector.
    """

    def __init__(
        self,
        request: Request,
        flow: Flow,
        way: Flow,
        size: int,
        servers: "Servers",
        to_tag: str | None = None,
    ) -> None:
        self.request = request
        self.flow = flow
        self.size = size
        self.user: ServerUser | None = None
        self.final = 0
        self.cause: str | None = None
        self.failed = False
        self.reasons: tuple[str, ...] = ()
        self.on_final: Callable[[ServerHandle, Response, float], None] = _unheard
        self._servers = servers
        self._received, self._to_tag = request, to_tag  # a proxy hardly ever needs a tag
        self._is_new = True  # it has no transaction, and was not answered without one
        self._is_over = False  # and its user has been told
        self._key = server_key(request)
        self._way = way
        self._fallback_flow = fallback_flow(request, flow)
        self._allowance = ReplyAllowance(size, len(request.body))
        self._wire = b""
        self._is_held_back = False  # the latest response, and was never sent

    @property
    def to_tag(self) -> str:
        """The tag for a To that has none: §8.2.6.2."""
        if self._to_tag is None:
            self._to_tag = self._servers.tag_for(self._received, self._way)
        return self._to_tag

    @property
    def is_heard(self) -> bool:
        """Whether its client has shown that it hears our answers: see `address_validation`.

        Own design: against forged sources.
        """
        return self._servers.validator.hears(self._way)

    def respond(self, response: Response, now: float) -> None:
        """Send a response; after a final one, only more 2xx to an INVITE are sent (§17.2)."""
        self._servers.respond(self, response, now)

    def reply(
        self,
        status: int,
        now: float,
        reason: str | None = None,
        headers: Sequence[tuple[str, object]] = (),
    ) -> None:
        """Answer without a body, as most answers are (§8.2.6)."""
        tag = None if status == 100 else self.to_tag  # §8.2.6.2 [one-tag-for-all]
        response = response_to(self.request, status, reason, to_tag=tag, headers=headers)
        self.respond(response, now)


class Servers:
    """All server transactions of one stack (§17.2).

    `ack_up` is called with an ACK for a 2xx that matched its INVITE: RFC 6026 §8.7.  `held` counts
    the bytes of messages that all of them keep, `kept` the transactions, both by host.
    """

    def __init__(
        self,
        outbox: Outbox,
        validator: AddressValidator,
        t1: float,
        ack_up: Callable[[Request, Flow, float], None],
        guard: Guard,
        kept: Pool,
        held: Pool,
    ) -> None:
        self._outbox, self.validator, self._t1 = outbox, validator, t1
        self._ack_up, self._guard = ack_up, guard
        self.kept, self.held = kept, held
        self._table = Table[ServerHandle]()
        self._machines: dict[ServerHandle, InviteServer | NonInviteServer] = {}

    def __len__(self) -> int:
        """The number of transactions in memory."""
        return len(self._table)

    def receive(self, request: Request, flow: Flow, size: int, now: float) -> bool:
        """Give a repeated request or an ACK to its transaction (RFC 6026 §8.10).

        False for a request that is new.
        """
        handle = self._table.get(server_key(request))
        if handle is None:
            return False
        machine = self._machines[handle]
        if isinstance(machine, InviteServer):
            if request.method == "INVITE":
                handle._allowance.repeated(size)
            todo = machine.receive(request.method, now)
            if invite_server.Do.ACK_UP in todo and not self._is_of_refusal(request, flow):
                # also of a client without the cookie: RFC 6026 §6 [2543-ack-when-accepted]
                self._ack_up(request, flow, now)
            if request.method == "INVITE" and handle._is_held_back and not todo:
                self._post(handle)  # the 2xx that this copy pays for
            self._perform(handle, todo, now)  # RFC 6026 §8.10 [match-is-passed-on]
        else:
            handle._allowance.repeated(size)
            # RFC 6026 §8.10 [match-is-passed-on]
            self._perform(handle, machine.receive(now), now)
        return True

    def open(self, request: Request, flow: Flow, size: int) -> ServerHandle:
        """Take a new request; the caller passes it up, and then calls `settle`.

        §17.2.1, §17.2.2.  `size` is how many bytes the request had.
        """
        return ServerHandle(request, flow, response_flow(request, flow), size, self)

    def is_forgotten(self, ack: Request, flow: Flow) -> bool:
        """Whether an ACK is for a refusal that left no transaction, so that the ACK ends here.

        §17.1.1.3: its Via and Request-URI are the INVITE's, so our tag is the same again.
        """
        # §8.2.7 [ack-without-memory]
        return self._has_tag(ack, flow, "", REFUSED)

    def _is_of_refusal(self, ack: Request, flow: Flow) -> bool:
        """Whether an ACK is for a refusal without a transaction, by the tag of such refusals."""
        return self._has_tag(ack, flow, REFUSED)

    def _has_tag(self, ack: Request, flow: Flow, *kinds: str) -> bool:
        """Whether the To of an ACK has a tag of ours of one of these kinds."""
        tag = ack.to.tag or ""
        if "." not in tag:  # as each of ours has: `AddressValidator.tag`
            return False
        way = response_flow(ack, flow)
        return tag in [self.tag_for(ack, way, kind) for kind in kinds]

    def _refusal_tag(self, request: Request, way: Flow) -> str:
        return self.tag_for(request, way, REFUSED)

    def tag_for(self, request: Request, way: Flow, kind: str = "") -> str:
        """The tag for the To of a request whose answers take `way`: §8.2.7."""
        about = f"{request.via} {request.uri} {request.cseq.number}{kind}"
        return self.validator.tag(about, request.call_id, way)  # §8.2.7 [tag-without-memory]

    def _mark(self, handle: ServerHandle, response: Response) -> Response:
        """Give the refusal of an INVITE that leaves no transaction a tag of its own.

        Own design: a copy of the INVITE that was late may be accepted, as a new one.  The ACK of
        the refusal has the same branch, and must not end the repetition of that 2xx: the caller has
        given up, and hears of the other call by the BYE of a 2xx without ACK (§13.3.1.4).
        """
        to, tag = response.headers.get("To"), f";tag={handle.to_tag}"
        if handle.request.method != "INVITE" or to is None or not to.endswith(tag):
            return response
        to = f"{to.removesuffix(tag)};tag={self._refusal_tag(handle.request, handle._way)}"
        return response.replace(headers=response.headers.with_("To", to))

    def keep(self, handle: ServerHandle, now: float) -> None:
        """Make the transaction of a request, if it has none (§17.2.1, §17.2.2)."""
        if not handle._is_new:
            return
        handle._is_new = False
        request, host = handle.request, rate_limit_key(handle.flow.remote[0])
        self.kept.add(host, 1)
        self.held.add(host, handle.size)
        # §16.2 [trying-as-a-uas] [no-trying-for-others]
        # §8.2.6.1 [no-1xx-but-for-invite]
        start = InviteServer.start if request.method == "INVITE" else NonInviteServer.start
        machine, _pass_up = start(now, reliable=handle.flow.reliable, t1=self._t1)
        self._machines[handle] = machine
        self._table.add(handle, handle._key, handle.flow)
        self._table.schedule(handle, machine.deadline)

    def settle(self, handle: ServerHandle, now: float) -> None:
        """Make the transaction of a request that the core has not answered at once (§17.2)."""
        if handle._is_new:
            self.keep(handle, now)
        elif handle not in self._machines:
            self._end(handle, now)

    def cancel(self, request: Request, flow: Flow, size: int, now: float) -> None:
        """Answer a CANCEL, and tell the user of its INVITE if that is still open (§9.2).

        Departs from RFC 3261 §16.10 [stray-cancel-goes-on]: all INVITEs that we forward have a
        transaction, so that one without was never here, or is over.

        Departs from RFC 3261 §8.2.7 [cancel-without-memory]: it is answered with 481, as §9.2 wants
        it of an element that has other transactions; nothing else comes of it.
        """
        # §22.1 [cancel-of-its-hop]
        target = self._table.get(server_key(request, "INVITE"))
        way = response_flow(request, flow)
        # §9.2 [same-to-tag]: also where its INVITE was refused, and left no transaction
        tag = target.to_tag if target else self._refusal_tag(request, way)
        handle = ServerHandle(request, flow, way, size, self, tag)
        if target is None:
            handle.reply(481, now)  # §9.2 [481-without-a-match]
            return
        # §9.2 [200-for-the-cancel]
        handle.reply(200, now)  # §16.10 [cancel-is-200]; §22.1 [cancel-not-challenged]
        if target.final:
            return
        target.reasons = request.headers.values("Reason")
        if target.user is None or not self._guard(target.user.on_cancel, target, now):
            target.reply(487, now)  # §9.2 [487-for-the-invite]

    def respond(self, handle: ServerHandle, response: Response, now: float) -> None:
        """Carry out `ServerHandle.respond` (§17.2)."""
        if handle._is_new:  # §8.2.7 [no-1xx-without-memory]
            if response.status >= 300 or (
                response.status >= 200 and handle.request.method in HARMLESS
            ):
                handle._is_new = False
                response = self._mark(handle, response)
                self._finish(handle, response, now)
                handle._wire = bytes(response)
                self._post(handle)  # §8.2.7 [no-repeats-without-memory]; §26.3.2.4 [refuses-once]
                return
            self.keep(handle, now)
        machine = self._machines.get(handle)
        todo = machine.respond(response.status, now) if machine else ()
        if not todo:
            return  # too late: RFC 6026 §8.3 [late-response-discarded]
        self._store(handle, bytes(response))
        if response.status >= 200:
            self._finish(handle, response, now)
            if handle.request.method == "INVITE" and not is_modern(handle.request):
                self._table.alias(handle, ack_key(handle.request, response))
        self._perform(handle, todo, now)

    def fail(self, handle: ServerHandle, now: float) -> None:
        """Answer 500 to a request whose user raised an error, and cancel it there (§21.5.1)."""
        handle.reply(500, now)
        if handle.user is not None:
            self._guard(handle.user.on_cancel, handle, now)

    def flow_failed(self, flow: Flow, now: float) -> None:
        """Tell every transaction on a broken connection; all of them stay (RFC 6026 §8.8).

        Responses first take another connection (§18.2.2).  A refusal whose ACK is missing may have
        been lost, and is sent again; a 2xx is sent again by the core (§13.3.1.4).
        """
        for handle in self._table.at(flow):
            machine, other = self._machines[handle], handle._fallback_flow
            if other is None:
                self._perform(handle, machine.transport_failed(now), now)
                continue
            handle._way, handle._fallback_flow = other, None
            self._table.move(handle, other)
            if machine.state is invite_server.State.COMPLETED:
                self._post(handle)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: the earliest timer of all."""
        return self._table.deadline

    def tick(self, now: float) -> None:
        """Fire the timers that are due (§17.2)."""
        for handle in self._table.due(now):
            self._perform(handle, self._machines[handle].tick(now), now)

    def _perform(
        self,
        handle: ServerHandle,
        todo: Sequence[invite_server.Do | server.Do],
        now: float,
    ) -> None:
        for do in todo:
            match do:
                case invite_server.Do.SEND_RESPONSE | server.Do.SEND_RESPONSE if handle._wire:
                    self._post(handle)
                case invite_server.Do.SEND_100 if not handle.is_heard:
                    pass  # a 180 may use the allowance; a repeated INVITE is answered with the 100
                case invite_server.Do.SEND_100 | invite_server.Do.SEND_RESPONSE:
                    # §17.2.1 [100-without-tag]
                    self._store(handle, bytes(response_to(handle.request, 100)))
                    self._post(handle)
                case invite_server.Do.FAILED | server.Do.FAILED:
                    handle.failed = True
        self._settle(handle, now)

    def _post(self, handle: ServerHandle) -> None:
        """Send the latest response, if `address_validation` allows that much.

        Own design: or in compact form (§7.3.3), if it allows that.
        """
        wire, is_final = handle._wire, not handle._wire.startswith(b"SIP/2.0 1")
        admits = partial(handle._allowance.admits, is_final=is_final)
        if not handle.is_heard and not admits(len(wire)):
            wire = compact(wire)
            handle._is_held_back = not admits(len(wire))
            if handle._is_held_back:
                return
        handle._is_held_back = False
        self._outbox.send(wire, handle._way)

    def _finish(self, handle: ServerHandle, response: Response, now: float) -> None:
        if not handle.final:
            handle.final = response.status
            self._guard(handle.on_final, handle, response, now)

    def _store(self, handle: ServerHandle, wire: bytes) -> None:
        """Remember the response to repeat."""
        grown = len(wire) - len(handle._wire)
        handle._wire = wire
        handle.size += grown
        self.held.add(rate_limit_key(handle.flow.remote[0]), grown)

    def _settle(self, handle: ServerHandle, now: float) -> None:
        """Reschedule a transaction, or forget it; a timer of zero fires at once."""
        machine = self._machines.get(handle)
        if machine is None:
            return  # its user, or an answer to ourselves, has ended it already
        if machine.finished:
            self._table.remove(handle)  # RFC 6026 §7.1 [destroyed-at-once]
            del self._machines[handle]
            host = rate_limit_key(handle.flow.remote[0])
            self.kept.add(host, -1)
            self.held.add(host, -handle.size)
            self._end(handle, now)
        elif machine.deadline is not None and machine.deadline <= now:
            self._perform(handle, machine.tick(now), now)
        else:
            self._table.schedule(handle, machine.deadline)

    def _end(self, handle: ServerHandle, now: float) -> None:
        if handle.user is not None and not handle._is_over:
            handle._is_over = True
            self._guard(handle.user.on_transaction_end, handle, now)
