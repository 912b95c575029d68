"""The requests we have received: server transactions, and the responses they repeat.

Implements RFC 3261 §17.2, §18.2 and §9.2.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from p2psip.core.hops import way_around, way_back
from p2psip.core.outbox import Outbox
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response
from p2psip.transaction import invite_server, server
from p2psip.transaction.flow import Flow, host_of
from p2psip.transaction.invite_server import InviteServer
from p2psip.transaction.key import ack_key, is_modern, server_key
from p2psip.transaction.server import Server
from p2psip.transaction.table import Table


class ServerUser(Protocol):
    """The transaction user of a received request (RFC 3261 §17.2)."""

    def on_cancel(self, handle: "ServerHandle", now: float) -> None:
        """Take a CANCEL of the INVITE, which still has no final response (§9.2)."""

    def on_transaction_end(self, handle: "ServerHandle", now: float) -> None:
        """Take the end, once and whatever the reason; `handle.failed` if no ACK came (§17.2.1)."""


class ServerHandle:
    """One request received, waiting for its responses (§17.2).

    `request` has the truth in its top Via; `flow` is where it came from; `to_tag` is the tag for
    a To that has none, the same in every response; `final` is the status of the final response,
    0 before; `failed` once a response could not be sent or was never acknowledged.  `size` is how
    many bytes request and response have, `copies` how often the request has come again.
    `on_final` is told of the first final response.
    """

    def __init__(
        self, request: Request, flow: Flow, to_tag: str, size: int, servers: "Servers"
    ) -> None:
        self.request = request
        self.flow = flow
        self.size = size
        self.to_tag = to_tag
        self.user: ServerUser | None = None
        self.final = 0
        self.failed = False
        self.copies = 0
        self.on_final: Callable[[Response, float], None] = lambda response, now: None
        self._servers = servers
        self._way = way_back(request, flow)
        self._way_around = way_around(request, flow)
        self._wire = b""

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
        tag = None if status == 100 else self.to_tag
        response = response_to(self.request, status, reason, to_tag=tag, headers=headers)
        self.respond(response, now)


class Servers:
    """All server transactions of one stack (§17.2).

    `ack_up` is called with an ACK for a 2xx that matched its INVITE: RFC 6026 §8.7.  `held` is how
    many bytes of messages all of them keep, `of_host` how many of them each host has.
    """

    def __init__(
        self,
        outbox: Outbox,
        random: Callable[[int], bytes],
        t1: float,
        ack_up: Callable[[Request, Flow, float], None],
    ) -> None:
        self._outbox, self._random, self._t1, self._ack_up = outbox, random, t1, ack_up
        self.held = 0
        self.of_host = Counter[str]()
        self._table = Table[ServerHandle]()
        self._machines: dict[ServerHandle, InviteServer | Server] = {}

    def __len__(self) -> int:
        """How many transactions are not forgotten yet."""
        return len(self._table)

    def receive(self, request: Request, flow: Flow, now: float) -> bool:
        """Give a repeated request or an ACK to its transaction.

        RFC 6026 §8.10 [match-is-passed-on].  False for a request that is new.
        """
        handle = self._table.get(server_key(request))
        if handle is None:
            return False
        machine = self._machines[handle]
        handle.copies += 1
        if isinstance(machine, InviteServer):
            todo = machine.receive(request.method, now)
            if invite_server.Do.ACK_UP in todo:  # also of a client without the cookie:
                self._ack_up(request, flow, now)  # RFC 6026 §6 [2543-ack-when-accepted]
            self._perform(handle, todo, now)
        else:
            self._perform(handle, machine.receive(now), now)
        return True

    def open(self, request: Request, flow: Flow, size: int, now: float) -> ServerHandle:
        """Make the transaction of a new request; the caller passes it up (§17.2.1, §17.2.2).

        `size` is how many bytes the request had.
        """
        handle = ServerHandle(request, flow, self._random(6).hex(), size, self)
        self.held += size
        self.of_host[host_of(flow.remote[0])] += 1
        start = InviteServer.start if request.method == "INVITE" else Server.start
        self._machines[handle], _pass_up = start(now, reliable=flow.reliable, t1=self._t1)
        self._table.add(handle, server_key(request), flow)
        self._settle(handle, now)
        return handle

    def cancel(self, request: Request, flow: Flow, size: int, now: float) -> None:
        """Answer a CANCEL, and tell the user of its INVITE if that is still open (§9.2)."""
        target = self._table.get(server_key(request, "INVITE"))
        handle = self.open(request, flow, size, now)
        if target is None:
            handle.reply(481, now)
            return
        handle.to_tag = target.to_tag
        handle.reply(200, now)
        if target.final:
            return
        if target.user is not None:
            target.user.on_cancel(target, now)
        else:
            target.reply(487, now)

    def respond(self, handle: ServerHandle, response: Response, now: float) -> None:
        """Carry out `ServerHandle.respond` (§17.2)."""
        machine = self._machines.get(handle)
        todo = machine.respond(response.status, now) if machine else ()
        if not todo:
            return  # too late
        self._keep(handle, bytes(response))
        if response.status >= 200:
            if not handle.final:
                handle.on_final(response, now)
            handle.final = handle.final or response.status
            if handle.request.method == "INVITE" and not is_modern(handle.request):
                self._table.alias(handle, ack_key(handle.request, response))
        self._perform(handle, todo, now)

    def flow_failed(self, flow: Flow, now: float) -> None:
        """Tell every transaction on a broken connection; all of them stay (RFC 6026 §8.8).

        First there is another connection to try (§18.2.2): from now on responses take that.  A
        refusal whose ACK is still missing may have been lost, and is said again; a 2xx is said
        again by who gave it (§13.3.1.4).
        """
        for handle in self._table.at(flow):
            machine, other = self._machines[handle], handle._way_around
            if other is None:
                self._perform(handle, machine.transport_failed(now), now)
                continue
            handle._way, handle._way_around = other, None
            self._table.move(handle, other)
            if machine.state is invite_server.State.COMPLETED:
                self._outbox.send(handle._wire, other)

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
                    self._outbox.send(handle._wire, handle._way)
                case invite_server.Do.SEND_100 | invite_server.Do.SEND_RESPONSE:
                    self._keep(handle, bytes(response_to(handle.request, 100)))
                    self._outbox.send(handle._wire, handle._way)
                case invite_server.Do.FAILED | server.Do.FAILED:
                    handle.failed = True
        self._settle(handle, now)

    def _keep(self, handle: ServerHandle, wire: bytes) -> None:
        """Remember the response to repeat."""
        grown = len(wire) - len(handle._wire)
        handle._wire = wire
        handle.size += grown
        self.held += grown

    def _settle(self, handle: ServerHandle, now: float) -> None:
        """Reschedule a transaction, or forget it; a timer of zero fires at once."""
        machine = self._machines[handle]
        if machine.finished:
            self._table.remove(handle)
            del self._machines[handle]
            self.held -= handle.size
            host = host_of(handle.flow.remote[0])
            self.of_host[host] -= 1
            if not self.of_host[host]:
                del self.of_host[host]
            if handle.user is not None:
                handle.user.on_transaction_end(handle, now)
        elif machine.deadline is not None and machine.deadline <= now:
            self._perform(handle, machine.tick(now), now)
        else:
            self._table.schedule(handle, machine.deadline)
