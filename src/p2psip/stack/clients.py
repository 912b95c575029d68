"""The requests we have sent: client transactions, the next server to try, CANCEL.

Implements RFC 3261 §17.1, §18.1 and §9.1, with the failover of RFC 3263 §4.3.

One request is one `ClientHandle` for the layer above.  Each server that is tried has an attempt of
its own: a transaction with its own branch.

Departs from RFC 3261 §17.1.2.2 [timer-e-doubles-to-t2]: within a dialog nothing is repeated to an
address that has never shown that it hears us (see `address_validation`): the address is from a
Contact, which a stranger may have forged.  Outside of dialogs the same holds for all requests to it
while more than three have had no answer: who registers without a password may have forged the
source of the REGISTER.

Not done: RFC 3261 §21.5.4 [503-is-left-alone]: trunks answer 503 to a call that finds no line to
one destination, and would then be without any call for as long as they say.

Departs from RFC 3261 §18.1.1: the ACK of a 2xx stays with UDP, however large it is: no transaction
would learn that nobody listens by TCP, and send it again.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from p2psip.sip.build import ack_for, cancel_for
from p2psip.sip.compact import MAX_DATAGRAM, compact
from p2psip.sip.message import Request, Response
from p2psip.stack.address_validation import AddressValidator
from p2psip.stack.causes import NO_TRANSPORT, NOT_IN_DNS, NOT_REACHABLE, TOO_MANY
from p2psip.stack.fair_pool import RESERVE, tally
from p2psip.stack.outbox import Outbox
from p2psip.stack.routing import Hops, may_carry, next_hop
from p2psip.transaction import client, invite_client
from p2psip.transaction.client import NonInviteClient
from p2psip.transaction.flow import Flow
from p2psip.transaction.invite_client import InviteClient
from p2psip.transaction.key import client_key, new_branch, sent_by
from p2psip.transaction.table import Table, TimerQueue, earlier

# Requests without any answer that are repeated to an address which never showed that it hears us.
IN_FULL: Final = 3
# Requests to one address without any answer.  Own design: each is repeated for half a minute, and a
# user may register silent addresses, for strangers to call.
MAX_SILENT: Final = 200


class ClientUser(Protocol):
    """The transaction user of a request, which receives its responses (RFC 3261 §17.1)."""

    def on_response(self, handle: "ClientHandle", response: Response, now: float) -> None:
        """Take a provisional or final response; several 2xx may follow an INVITE (§13.2.2.4)."""

    def on_failure(self, handle: "ClientHandle", status: int, now: float) -> None:
        """Take the end without a response: 408 after silence, 503 without a way (§8.1.3.1).

        487 if it was given up before it was sent.  `handle.cause` is the reason phrase of a 503.
        """


class ClientHandle:
    """One request of ours, at whichever servers it is tried (RFC 3263 §4.3).

    `request` is as last sent, with its Via; `flow` is where it was last sent, None while its
    server is being located (RFC 3263 §4); `done` once the user has had the final word; `cause`
    is the reason phrase of a 503 that no response told, None before; `preferred` is tried first, if
    the servers that are located have it.
    """

    def __init__(
        self, request: Request, user: ClientUser, clients: "Clients", *, once: bool = False
    ) -> None:
        self.request = request
        self.user = user
        self.done = False
        self.cancelled = False
        self.cause: str | None = None
        self.reasons: tuple[str, ...] = ()
        self.flow: Flow | None = None
        self.preferred: Flow | None = None
        self._clients = clients
        self._bare = request  # as the user gave it, and so without a Via of ours
        self._flows: list[Flow] = []
        self._attempt: _Attempt | None = None
        self._once = once
        self._outgrown = once  # already moved from UDP to TCP for its size

    def cancel(self, now: float, reasons: Sequence[str] = ()) -> None:
        """Give up an INVITE; its CANCEL waits for a provisional response (§9.1).

        The answer still arrives: 487, or the 2xx that crossed the CANCEL.  `reasons` are the values
        of Reason for the CANCEL (RFC 3326 §2).
        """
        self.reasons = tuple(reasons)
        self._clients.cancel(self, now)


class _Attempt:
    """A request at one server: its transaction, and the bytes to repeat."""

    __slots__ = (
        *("flow", "handle", "is_first", "is_sent", "is_silent", "key", "machine", "request"),
        *("sent_by", "wire"),
    )

    def __init__(
        self,
        handle: ClientHandle,
        request: Request,
        flow: Flow,
        machine: InviteClient | NonInviteClient,
        wire: bytes,
    ) -> None:
        self.handle, self.request, self.flow = handle, request, flow
        self.machine, self.wire = machine, wire
        self.key, self.sent_by = client_key(request), sent_by(request.via)
        self.is_first = len(request.headers.values("Via")) == 1  # the request is our own
        self.is_sent = False
        self.is_silent = False  # its flow has not answered it yet


class _Nobody:
    """The user of a CANCEL, whose result is of no interest."""

    def on_response(self, handle: ClientHandle, response: Response, now: float) -> None:
        """Do nothing.  Own design: the response to the INVITE tells what became of it."""

    def on_failure(self, handle: ClientHandle, status: int, now: float) -> None:
        """Do nothing.  Own design: the INVITE has a time limit of its own."""


_NOBODY: Final = _Nobody()


def _release(attempt: _Attempt) -> None:
    """Break the cycle of handle and attempt, so that both are freed without the garbage collector.

    Own design: under a flood the collector would examine every transaction under way.
    """
    handle = attempt.handle
    if handle.done and handle._attempt is attempt:
        handle._attempt, handle.user = None, _NOBODY


class Clients:
    """All client transactions of one stack (§17.1)."""

    def __init__(
        self,
        outbox: Outbox,
        hops: Hops,
        validator: AddressValidator,
        random: Callable[[int], bytes],
        t1: float,
        limit: int,
        guard: Callable[..., bool],
    ) -> None:
        self._outbox, self._hops, self._validator, self._random = outbox, hops, validator, random
        self._t1, self._limit, self._guard = t1, limit, guard
        self._table = Table[_Attempt]()
        self._locating: dict[int, ClientHandle] = {}
        self._silent: dict[Flow, int] = {}  # requests without any answer yet, by UDP
        self._overdue = TimerQueue[ClientHandle]()  # failures to report, and cancelled INVITEs
        self._tokens = 0
        self.mark = ""  # with which branches begin

    def __len__(self) -> int:
        """The number of requests and transactions in memory."""
        return len(self._table) + len(self._locating) + len(self._overdue)

    def begin(
        self,
        request: Request,
        user: ClientUser,
        now: float,
        flows: Sequence[Flow] | None,
        *,
        once: bool = False,
    ) -> ClientHandle:
        """Send a request that has no Via of ours yet; never calls `user` before it returns.

        Without `flows` its next hop is located first (§8.1.2).  Some room is left for requests
        within dialogs, so that a BYE can always be sent.  `once`: no repetition, no second server,
        and no connection to a server that a name led to.
        """
        in_dialog = request.to.tag is not None
        request, uri = next_hop(request)
        handle = ClientHandle(request, user, self, once=once)
        found = self._hops.direct(uri) if flows is None else list(flows)
        if len(self) >= self._limit - (0 if in_dialog else self._limit // RESERVE):
            found, handle.cause = [], TOO_MANY
        if found is None:
            self._tokens += 1
            self._locating[self._tokens] = handle
            # RFC 3261 §8.1.2 [found-by-dns], RFC 3263 §4 [once-a-transaction]
            self._outbox.locate(self._tokens, uri)
        else:
            handle._flows = found[:1] if once else found
            if not self._try_next(handle, now):
                handle.cause = handle.cause or NO_TRANSPORT
                self._overdue.set(handle, now)
        return handle

    def located(self, token: int, flows: Sequence[Flow], now: float) -> None:
        """Take the servers that `Locate` asked for, best first (RFC 3263 §4)."""
        handle = self._locating.pop(token, None)
        if handle is not None and not handle.cancelled:
            handle._flows = sorted(flows, key=lambda flow: flow != handle.preferred)
            if handle._once:
                handle._flows = [flow for flow in flows if flow.transport == "UDP"][:1]
            if not self._try_next(handle, now):
                handle.cause = handle.cause or NOT_IN_DNS
                self._fail(handle, 503, now)

    def receive(self, response: Response, now: float) -> bool:
        """Give a response to its transaction (RFC 6026 §8.9).

        False for a stray, which the caller drops; also if its Via is not as we wrote it (§18.1.2).
        """
        # RFC 6026 §6 [response-is-looked-up], §7.3 [response-is-looked-up]
        attempt = self._table.get(client_key(response))
        # §18.1.2 [foreign-sent-by-dropped]
        if attempt is None or sent_by(response.via) != attempt.sent_by:
            return False
        # RFC 3261 §8.1.3.3 [one-via-comes-back]: also one that cannot be read
        if attempt.is_first and len(response.headers.all("Via", lenient=True)) > 1:
            return False
        self._heard(attempt)
        self._validator.heard_at(attempt.flow)  # nobody else has read that branch
        todo = attempt.machine.receive(response.status, now)
        self._perform(attempt, todo, now, response)  # RFC 6026 §8.9 [match-is-passed-on]
        return True

    def flow_failed(self, flow: Flow, now: float) -> None:
        """Tell every transaction on a broken connection (§17.1.4)."""
        for attempt in self._table.at(flow):
            self._perform(attempt, attempt.machine.transport_failed(now), now)

    def cancel(self, handle: ClientHandle, now: float) -> None:
        """Carry out `ClientHandle.cancel` (§9.1)."""
        # §9.1 [invite-only] [none-after-the-answer]
        if handle.done or handle.cancelled or handle.request.method != "INVITE":
            return
        handle.cancelled = True
        attempt = handle._attempt
        if attempt is None:  # nothing was sent yet, so that nothing has to be waited for
            self._overdue.set(handle, now)
        elif attempt.machine.state is invite_client.State.PROCEEDING:
            # §9.1 [looks-for-a-response]
            self._send_cancel(attempt, now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: for timers, and failures that are reported later."""
        return earlier(self._table.deadline, self._overdue.deadline)

    def tick(self, now: float) -> None:
        """Fire the timers that are due (§17.1)."""
        for attempt in self._table.due(now):
            self._perform(attempt, attempt.machine.tick(now), now)
        for handle in self._overdue.due(now):
            if handle._attempt is not None:  # no answer to the CANCEL either
                self._table.remove(handle._attempt)  # §9.1 [forgets-the-invite]
                self._heard(handle._attempt)
                handle.cause = None
            status = 408 if handle._attempt else 487 if handle.cancelled else 503
            self._fail(handle, status, now)

    def _try_next(self, handle: ClientHandle, now: float) -> bool:
        """Start an attempt at the next server; False when there is none left."""
        flows = handle._flows
        # RFC 3263 §4.2 [first-first], RFC 3261 §16.6 [servers-in-order]
        while flows and not self._may_go(handle._bare, flow := self._hops.localise(flows[0])):
            flows.pop(0)
            handle.cause = TOO_MANY if may_carry(flow, handle._bare) else NO_TRANSPORT
        if not flows:
            return False
        flows.pop(0)
        request, wire = self._addressed(handle._bare, flow)
        if flow.transport == "UDP" and len(wire) > MAX_DATAGRAM and not handle._outgrown:
            handle._outgrown = True
            if "TCP" in self._hops.transports:  # §18.1.1; back to UDP if nobody listens there
                handle._flows = [flow, *flows]  # §18.1.1 [back-to-udp]
                flow = Flow("TCP", flow.remote, flow.local)  # §18.1.1 [large-by-tcp]
                request, wire = self._addressed(handle._bare, flow)  # §18.1.1 [via-follows]
        self._start(handle, request, wire, flow, now)  # RFC 3261 §16.6 [transaction-per-server]
        return True

    def _may_go(self, request: Request, flow: Flow) -> bool:
        """Whether a request may take this flow: not if too many are unanswered there."""
        has_room = request.to.tag is not None or self._silent.get(flow, 0) < MAX_SILENT
        return has_room and may_carry(flow, request)

    def _heard(self, attempt: _Attempt) -> None:
        """Note that the attempt was answered, or needs no answer any more."""
        if attempt.is_silent:
            attempt.is_silent = False
            tally(self._silent, attempt.flow, -1)

    def _addressed(self, request: Request, flow: Flow) -> tuple[Request, bytes]:
        """The request with our Via on top, of a branch that was never used (§8.1.1.7)."""
        # RFC 3261 §8.1.1.7 [branch-of-its-own] [via-on-top], §16.6 [branch-per-server]
        # RFC 5393 §4.2.1 [branch-is-unique] [via-on-top], RFC 3263 §4.3 [another-branch]
        via = self._hops.via(flow, new_branch(self.mark + self._random(12).hex()))
        request = request.replace(headers=request.headers.prepend("Via", via.written()))
        wire = bytes(request)
        is_long = flow.transport == "UDP" and len(wire) > MAX_DATAGRAM
        return request, compact(wire) if is_long else wire  # RFC 3261 §7.3.3

    def _start(
        self, handle: ClientHandle, request: Request, wire: bytes, flow: Flow, now: float
    ) -> None:
        start = InviteClient.start if request.method == "INVITE" else NonInviteClient.start
        is_told_once = flow.reliable or handle._once  # §17.1.2.2: then timer E does not run
        machine, todo = start(now, reliable=is_told_once, t1=self._t1)
        attempt = _Attempt(handle, request, flow, machine, wire)
        handle.request, handle.flow, handle._attempt = request, flow, attempt
        self._table.add(attempt, attempt.key, flow)
        if flow.transport == "UDP":
            attempt.is_silent = True
            tally(self._silent, flow, 1)
        self._perform(attempt, todo, now)

    def _perform(
        self,
        attempt: _Attempt,
        todo: Sequence[invite_client.Do | client.Do],
        now: float,
        response: Response | None = None,
    ) -> None:
        for do in todo:
            match do:
                case invite_client.Do.SEND_INVITE | client.Do.SEND_REQUEST:
                    self._post(attempt)
                case invite_client.Do.SEND_ACK if response is not None:
                    # §17.1.1.3 [ack-copies] [ack-to] [ack-via]
                    # §17.1.1.3 [ack-cseq] [ack-route] [ack-no-body]
                    ack = ack_for(attempt.request, response)
                    # RFC 6026 §8.4 [ack-goes-the-same-way]
                    self._outbox.send(bytes(ack), attempt.flow)  # RFC 3263 §4 [same-server]
                case invite_client.Do.PASS_UP | client.Do.PASS_UP if response is not None:
                    self._pass_up(attempt, response, now)
                case invite_client.Do.TIMED_OUT | client.Do.TIMED_OUT:
                    self._move_on(attempt, 408, now)  # §8.1.3.1 [silence-is-408]
                case invite_client.Do.UNREACHABLE | client.Do.UNREACHABLE:
                    self._move_on(attempt, 503, now)  # §8.1.3.1 [no-way-is-503]
        self._settle(attempt, now)

    def _post(self, attempt: _Attempt) -> None:
        is_doubted = (
            attempt.request.to.tag is not None or self._silent.get(attempt.flow, 0) > IN_FULL
        )
        if not attempt.is_sent or not is_doubted or self._validator.hears(attempt.flow):
            self._outbox.send(attempt.wire, attempt.flow)  # RFC 3263 §4 [same-server]
        attempt.is_sent = True

    def _settle(self, attempt: _Attempt, now: float) -> None:
        """Reschedule a transaction, or forget it; a timer of zero fires at once."""
        machine = attempt.machine
        if machine.finished:
            self._table.remove(attempt)  # RFC 6026 §7.2 [destroyed-at-once]
            self._heard(attempt)
            _release(attempt)
        elif machine.deadline is not None and machine.deadline <= now:
            self._perform(attempt, machine.tick(now), now)
        else:
            self._table.schedule(attempt, machine.deadline)

    def _pass_up(self, attempt: _Attempt, response: Response, now: float) -> None:
        handle = attempt.handle
        if response.status < 200 and handle.cancelled and not handle.done:
            # §9.1 [waits-for-a-provisional]
            self._send_cancel(attempt, now)
        # §21.5.4 [503-tries-the-next]
        if response.status == 503 and not handle.cancelled and self._try_next(handle, now):
            return
        if response.status >= 200:
            handle.done = True
            self._overdue.set(handle, None)
        if not self._guard(handle.user.on_response, handle, response, now):
            self._guard(handle.user.on_failure, handle, 500, now)

    def _move_on(self, attempt: _Attempt, status: int, now: float) -> None:
        """Try the next server after this one failed (RFC 3263 §4.3), or tell the user."""
        handle = attempt.handle
        if handle.done or handle._attempt is not attempt:
            return  # it was the ACK of a refusal that got lost
        handle.cause = NOT_REACHABLE if status == 503 else None
        # RFC 3261 §8.1.2 [tries-each], RFC 3263 §4.2 [then-the-next]
        if handle.cancelled or not self._try_next(handle, now):
            self._fail(handle, status, now)

    def _fail(self, handle: ClientHandle, status: int, now: float) -> None:
        handle.done = True
        self._overdue.set(handle, None)
        self._guard(handle.user.on_failure, handle, status, now)

    def _send_cancel(self, attempt: _Attempt, now: float) -> None:
        """Send CANCEL after its INVITE, and stop waiting 64*T1 later (§9.1)."""
        if self._table.get((attempt.request.via.branch, "CANCEL")) is None:
            cancel = cancel_for(attempt.request)
            for value in attempt.handle.reasons:  # RFC 3326 §2 [reason-goes-on]
                cancel = cancel.replace(headers=cancel.headers.append("Reason", value))
            self._overdue.set(attempt.handle, now + 64 * self._t1)  # §9.1 [over-after-64-t1]
            handle = ClientHandle(cancel, _NOBODY, self)  # §16.7 [own-answers-stay]
            # RFC 3263 §4 [cancel-goes-there]; RFC 3261 §9.1 [same-destination]
            self._start(handle, cancel, bytes(cancel), attempt.flow, now)
