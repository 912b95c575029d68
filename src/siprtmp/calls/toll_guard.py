"""The calls that pass through the proxy, and the limits on the calls of every user.

Own design: a call is judged once, where it begins, after its caller has proved its identity: for
phones in the proxy (RFC 3261 §16.3), for RTMP clients before the INVITE is made.  It counts until
its final failure, or until a BYE that the other side has accepted (RFC 3261 §15.1.1); without
either it is forgotten after four hours.  After a BYE that was refused the call still counts.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from p2psip.errors import RemoteError
from p2psip.server.call_allowance import LONGEST, Allowance, Ticket
from p2psip.server.domains import Domains
from p2psip.server.judge import Lenient
from p2psip.server.registrar import Binding
from p2psip.server.response_context import ResponseContext
from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL, Flow, rate_limit_key
from p2psip.transaction.key import new_branch
from siprtmp.calls.call_log import Origin

MAX_CALLS: Final = 10_000  # that can be listed and ended; calls beyond are only counted
GONE: Final = (408, 481)  # answers to a BYE that mean the other side has no such call
LAST_CSEQ: Final = 2_000_000_000  # above every CSeq of either side: RFC 3261 §12.2.2
UNWANTED: Final = "Target Not Allowed"

_Name = tuple[str, str, str]
_M = TypeVar("_M", Request, Response)


@dataclass(slots=True, eq=False)
class ThroughCall:
    """A call between two phones."""

    id: str
    origin: Origin
    server: ServerHandle | None  # while it rings
    ticket: Ticket | None
    up_at: float | None = None

    invite: Request | None = None
    answer: Response | None = None
    flow: Flow | None = None
    callee_flow: Flow | None = None
    more: list[Ticket] = field(default_factory=list)

    def end(self, now: float) -> list[tuple[bytes, Flow]]:
        """Cancel a ringing call (RFC 3261 §16.10); for one that is up return a BYE of each side.

        Own design: a proxy has no part in the dialog (RFC 3261 §16), but the operator must be able
        to end the calls of a stolen password.  Each BYE is given to the stack as if that side had
        sent it.  It is forwarded like any other, so that each side receives one from the other.
        """
        invite, answer = self.invite, self.answer
        if invite is None or answer is None or self.flow is None or self.callee_flow is None:
            if self.server is not None and self.server.user is not None:
                self.server.user.on_cancel(self.server, now)
            return []
        routes = answer.record_routes
        below = len(invite.record_routes)  # proxies between us and the caller
        onwards, back = routes[::-1][below:], routes[max(0, len(routes) - below - 1) :]
        byes = []
        if answer.contacts:
            bye = _bye(invite.from_, answer.to, answer, onwards, self.flow)
            byes.append((bye, self.flow))
        if invite.contacts:
            bye = _bye(answer.to, invite.from_, invite, back, self.callee_flow)
            byes.append((bye, self.callee_flow))
        return byes


def _what_is_needed(message: _M) -> _M:
    """The fields of a message that its BYE needs; the rest would be kept as long as the call."""
    wanted = {"From", "To", "Call-ID", "Contact", "Record-Route"}
    fields = [pair for pair in message.headers.fields if pair[0] in wanted]
    return message.replace(headers=Headers(fields), body=b"")


def _bye(
    from_: Address, to: Address, peer: Request | Response, routes: Sequence[Address], flow: Flow
) -> bytes:
    """A BYE to the side that `peer` is a message of, as the other would send it by `flow`.

    RFC 3261 §15.1.1.
    """
    host, port = flow.remote
    host = f"[{host}]" if ":" in host else host
    text = f"{peer.call_id} {from_.tag}".encode(errors="replace")
    branch = new_branch(hashlib.sha256(text).hexdigest()[:24])
    fields: list[tuple[str, object]] = [
        ("Via", f"SIP/2.0/{flow.transport} {host}:{port};rport;branch={branch}"),
        *(("Route", route) for route in routes),
        ("Max-Forwards", MAX_FORWARDS),
        ("From", from_),
        ("To", to),
        ("Call-ID", peer.call_id),
        ("CSeq", f"{LAST_CSEQ} BYE"),
    ]
    return bytes(Request("BYE", peer.contacts[0].uri, Headers(fields)))


class Tolls(Lenient):
    """Judges all calls, and lists those that pass through the proxy.

    With `has_passwords` a local caller has proved its identity, and its calls count for that user;
    else they count for its host.  `nat` is the argument of `Binding.way`.
    """

    def __init__(
        self,
        allowance: Allowance,
        domains: Domains,
        *,
        has_passwords: bool = False,
        nat: bool = False,
    ) -> None:
        self.allowance = self._allowance = allowance
        self._domains = domains
        self._has_passwords, self._nat = has_passwords, nat
        self._ringing: dict[ServerHandle, ThroughCall] = {}
        self._up: OrderedDict[_Name, ThroughCall] = OrderedDict()

    def __iter__(self) -> Iterator[ThroughCall]:
        """The calls between phones, the answered ones first."""
        passing = (
            call for server, call in self._ringing.items()
            if isinstance(server.user, ResponseContext)
        )  # fmt: skip
        return iter([*self._up.values(), *passing])

    # -- phones -------------------------------------------------------------------------

    def judge(self, server: ServerHandle, request: Request, now: float) -> None:
        """Judge a request outside a dialog before it is forwarded: RFC 3261 §16.3.

        Raises RemoteError, 403, for the caller.  Requests of RTMP clients have been judged.
        """
        flow = server.flow
        if flow.transport == LOCAL:
            return
        self._check(request.uri, *(route.uri for route in request.routes))
        if request.method not in ("INVITE", "MESSAGE"):
            return
        aor = self._domains.address_of_record(request.from_.uri)
        user = None
        if aor is not None:
            user = f"{aor[0]}@{aor[1]}" if self._has_passwords else rate_limit_key(flow.remote[0])
        if request.method == "MESSAGE":
            if user is not None:
                self._allowance.message(user, now)
            return
        ticket = self._allowance.begin(user, now) if user is not None else None
        if len(self._ringing) >= MAX_CALLS:
            del self._ringing[next(iter(self._ringing))]
        source = f"{flow.transport}:{flow.remote[0]}"
        origin = Origin("through", str(request.from_.uri), str(request.uri), source, now)
        self._ringing[server] = ThroughCall(request.call_id, origin, server, ticket)

    def choose(
        self, server: ServerHandle, bindings: Sequence[Binding], now: float
    ) -> list[Binding]:
        """Those of a user's phones that may be called: RFC 3261 §16.5.

        Own design: a phone that registers a contact at another host has its calls sent there, as
        the patterns allow for any call to that host.  Each such contact counts as a call of the
        user that registered it; the first counts for the caller if that is a user.  Raises
        RemoteError, 403, if no contact is left.
        """
        there = [each for each in bindings if self._is_there(each)]
        elsewhere = [each for each in bindings if each not in there and self._is_allowed(each)]
        call = self._ringing.get(server)
        paid = 1 if call is None or call.ticket is not None else 0
        chosen, refusal = there + elsewhere[:paid], RemoteError(UNWANTED, 403)
        spare = elsewhere[paid:] if call is not None or not self._allowance.counts else []
        for each in spare:
            try:
                ticket = self._allowance.begin(self._payer(server.request, each), now)
            except RemoteError as error:
                refusal = error
                break
            chosen.append(each)
            if call is not None:
                call.more.append(ticket)
        if bindings and not chosen:
            raise refusal
        return chosen

    def may_follow(self, request: Request) -> bool:
        """Whether the patterns allow a target and route that a peer has named: RFC 3261 §12.2."""
        try:
            self._check(request.uri, *(route.uri for route in request.routes))
        except RemoteError:
            return False
        return True

    def answered(
        self, server: ServerHandle, request: Request, response: Response, now: float
    ) -> None:
        """Take the first final response to a request of a phone: RFC 3261 §13, §15.1.1."""
        if request.method == "BYE":
            if 200 <= response.status < 300 or response.status in GONE:
                self._over(request)
            return
        call = self._ringing.pop(server, None)
        if call is None:
            return
        if response.status >= 300:
            self._end(call)
            return
        call.up_at, call.invite, call.answer = now, _what_is_needed(request), None
        if isinstance(server.user, ResponseContext):
            call.answer, call.callee_flow = _what_is_needed(response), server.user.answered_by
        call.flow, call.server = server.flow, None
        self._up[request.call_id, request.from_.tag or "", response.to.tag or ""] = call
        first = next(iter(self._up.values()))
        if len(self._up) > MAX_CALLS or first.origin.at + LONGEST <= now:
            self._up.popitem(last=False)

    def take(self, server: ServerHandle) -> Ticket | None:
        """Hand over the ticket of a call that ends in this gateway instead of passing through."""
        call = self._ringing.pop(server, None)
        return call.ticket if call is not None else None

    # -- RTMP clients -------------------------------------------------------------------

    def begin(self, payer: str | None, target: Uri, now: float) -> Ticket | None:
        """Count a call of an RTMP client under the key `payer`.  Raises RemoteError, 403.

        None is for a call that is counted as another already.
        """
        self._check(target)
        return None if payer is None else self._allowance.begin(payer, now)

    def message(self, payer: str, target: Uri, now: float) -> None:
        self._check(target)
        self._allowance.message(payer, now)

    def end(self, ticket: Ticket | None) -> None:
        """Stop counting a call that was handed over or begun by an RTMP client."""
        self._allowance.end(ticket)

    # -- inside -------------------------------------------------------------------------

    def _payer(self, request: Request, binding: Binding) -> str:
        """The key for a stranger's call that is forwarded to a contact at another host."""
        aor = self._domains.address_of_record(request.uri)
        if self._has_passwords and aor is not None:
            return f"{aor[0]}@{aor[1]}"
        return rate_limit_key(binding.flow.remote[0])

    def _is_there(self, binding: Binding) -> bool:
        """Whether a contact is at the host that the phone has registered from."""
        ways, flow = binding.way(nat=self._nat), binding.flow
        host = ways[0].remote[0] if ways else binding.contact.uri.host.strip("[]")
        return flow.transport == LOCAL or rate_limit_key(host) == rate_limit_key(flow.remote[0])

    def _is_allowed(self, binding: Binding) -> bool:
        uri = binding.contact.uri
        return self._allowance.may_reach(uri.user or "", [uri.host])

    def _over(self, bye: Request) -> None:
        one, other = bye.from_.tag or "", bye.to.tag or ""
        for name in ((bye.call_id, one, other), (bye.call_id, other, one)):
            call = self._up.pop(name, None)
            if call is not None:
                self._end(call)

    def _end(self, call: ThroughCall) -> None:
        for ticket in (call.ticket, *call.more):
            self._allowance.end(ticket)

    def _check(self, target: Uri, *routes: Uri) -> None:
        """Refuse a target outside our domains, unless a pattern allows every host on the way."""
        hosts = [uri.param("maddr") or uri.host for uri in routes]
        if target.param("maddr"):
            hosts.append(target.param("maddr") or "")
        if self._domains.of(target) is None:
            hosts.append(target.host)
        if not self._allowance.may_reach(target.user or "", hosts):
            raise RemoteError(UNWANTED, 403)
