"""A stateful proxy: one request in, one or more out, the best answer back.

Implements RFC 3261 §16.

`forward` makes a response context (§16.2) out of a server transaction and one client
transaction for each target; all targets are tried at once.  Loops are found as RFC 5393
§4.2 wants it, but by remembering instead of hashing into the branch: a request that is
still being forwarded and comes back unchanged has looped.

Own design: a redirection (3xx) is not followed, it is passed back to the caller.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from p2psip.core.stack import ClientHandle, Flow, ServerHandle, Stack
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS, response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import LOCAL

TIMER_C: Final = 180.0  # s: §16.6 step 11 wants more than three minutes between signs of life
TIMER_C_MARGIN: Final = 5.0
ROUTE_PROOF: Final = "proof"  # in our Record-Route: only dialogs we set up come back this way

Loop = tuple[str, int, str, str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to forward to: the new Request-URI, and the flows if they are known already.

    §16.5.
    """

    uri: Uri
    flows: Sequence[Flow] | None = None


@dataclass(slots=True)
class _Branch:
    """One target's client transaction: §16.6."""

    handle: ClientHandle | None
    deadline: float
    was_heard: bool = False  # a provisional response came
    is_done: bool = False


class Proxy:
    """The forwarding half of an element: §16.2.  `random(n)` gives n octets."""

    def __init__(self, stack: Stack, random: Callable[[int], bytes]) -> None:
        self._stack, self._secret = stack, random(32)
        self._contexts: dict[Loop, ResponseContext] = {}

    def __len__(self) -> int:
        """How many requests are on their way."""
        return len(self._contexts)

    def forward(
        self, server: ServerHandle, targets: Sequence[Target], now: float, *, record_route: bool
    ) -> None:
        """Send a request on to all targets at once: §16.3 to §16.6.

        Raises RemoteError: 420, 482, 483 as §16.3 says.
        """
        request = server.request
        hops = request.max_forwards
        if hops is not None and hops <= 0:
            raise RemoteError("Too Many Hops", 483)
        if wanted := request.headers.all("Proxy-Require"):
            raise RemoteError("Bad Extension: " + ", ".join(wanted)[:80], 420)
        key = _loop_key(request)
        if key in self._contexts:
            raise RemoteError("Loop Detected", 482)
        copy = _one_hop_less(request)
        if record_route:
            copy = copy.replace(headers=copy.headers.prepend("Record-Route", self._mark(request)))
        context = ResponseContext(self, key, server, self._stack)
        self._contexts[key] = context
        context.begin(copy, targets, now)

    def forward_ack(self, request: Request, now: float) -> None:
        """Send the ACK of a 2xx on, without state: §16.11."""
        if request.max_forwards != 0:
            self._stack.send_ack(_one_hop_less(request), now)

    def take_route(self, request: Request) -> tuple[Request, bool]:
        """Take our own Routes off the top: §16.4.

        Also tells whether the topmost was one that we made for this very dialog.
        """
        routes = request.routes
        own = 0
        while own < len(routes) and self._stack.is_ours(routes[own].uri):
            own += 1
        if not own:
            return request, False
        proof = routes[0].uri.param(ROUTE_PROOF) or ""
        proven = hmac.compare_digest(proof.encode(errors="replace"), self._proof(request.call_id))
        headers = request.headers.with_("Route", *routes[own:])
        return request.replace(headers=headers), proven

    @property
    def deadline(self) -> float | None:
        """The next timer C: §16.6 step 11."""
        return min((context.deadline for context in self._contexts.values()), default=None)

    def tick(self, now: float) -> None:
        """Give up on branches that were silent too long: §16.8."""
        for context in list(self._contexts.values()):
            context.tick(now)

    def forget(self, key: Loop) -> None:
        """A context is over.  Own design."""
        self._contexts.pop(key, None)

    def _mark(self, request: Request) -> Address:
        """Our Record-Route value: §16.6 step 4, with a proof that it was us."""
        uri = self._stack.contact()
        proof = self._proof(request.call_id).decode()
        return Address(uri.replace(params=(*uri.params, ("lr", None), (ROUTE_PROOF, proof))))

    def _proof(self, call_id: str) -> bytes:
        text = call_id.encode(errors="surrogateescape")
        return hmac.digest(self._secret, text, hashlib.sha256).hex()[:16].encode()


class ResponseContext:
    """One forwarded request and its branches: §16.2, §16.7."""

    def __init__(self, proxy: Proxy, key: Loop, server: ServerHandle, stack: Stack) -> None:
        self._proxy, self._key, self._server, self._stack = proxy, key, server, stack
        self._branches: list[_Branch] = []
        self._finals: list[Response] = []
        self._is_answered = self._is_cancelled = False
        server.user = self

    @property
    def deadline(self) -> float:
        """When the first pending branch has been silent too long: §16.6 step 11."""
        pending = (branch.deadline for branch in self._branches if not branch.is_done)
        return min(pending, default=float("inf"))

    def begin(self, request: Request, targets: Sequence[Target], now: float) -> None:
        """Start one client transaction per target: §16.6 step 10."""
        for target in targets:
            branch = _Branch(None, now + TIMER_C + TIMER_C_MARGIN)
            self._branches.append(branch)
            branch.handle = self._stack.request(
                request.replace(uri=target.uri), self, now, flows=target.flows
            )

    # ClientUser

    def on_response(self, handle: ClientHandle, response: Response, now: float) -> None:
        """Choose what to pass back: §16.7."""
        branch = self._branch(handle)
        ours = response.replace(headers=_without_first_via(response.headers))
        if branch is None or not ours.headers.get("Via"):
            return
        if response.status < 200:
            branch.was_heard = True
            branch.deadline = now + TIMER_C + TIMER_C_MARGIN  # §16.7 step 2
            if response.status != 100 and not self._is_answered:
                self._server.respond(ours, now)
            return
        branch.is_done = True
        if response.status < 300:
            self._is_answered = True
            self._server.respond(ours, now)  # every 2xx at once: §16.7 step 5
            self._cancel_others(now)
        else:
            self._finals.append(ours)
            if response.status >= 600:
                self._cancel_others(now)
        self._conclude(now)

    def on_failure(self, handle: ClientHandle, status: int, now: float) -> None:
        """Silence is a 408, no route a 503: §16.8, §16.9."""
        branch = self._branch(handle)
        if branch is not None and not branch.is_done:
            branch.is_done = True
            tag = self._server.to_tag
            self._finals.append(response_to(self._server.request, status, to_tag=tag))
            self._conclude(now)

    # ServerUser

    def on_cancel(self, handle: ServerHandle, now: float) -> None:
        """Cancel every branch; their 487 comes back as the answer: §16.10."""
        self._is_cancelled = True
        self._cancel_others(now)

    def on_transaction_end(self, handle: ServerHandle, now: float) -> None:
        """Nobody is left to pass anything to: §16.7 step 6 is over.  Own design."""
        self._cancel_others(now)
        self._proxy.forget(self._key)

    def tick(self, now: float) -> None:
        """Timer C: §16.8."""
        for branch in self._branches:
            if branch.is_done or branch.deadline > now or branch.handle is None:
                continue
            if branch.was_heard:
                branch.deadline = now + TIMER_C
                branch.handle.cancel(now)
            else:
                self.on_failure(branch.handle, 408, now)

    def _branch(self, handle: ClientHandle) -> _Branch | None:
        return next((branch for branch in self._branches if branch.handle is handle), None)

    def _cancel_others(self, now: float) -> None:
        """§16.7 step 10."""
        if self._server.request.method != "INVITE":
            return
        for branch in self._branches:
            if not branch.is_done and branch.handle is not None:
                branch.handle.cancel(now)

    def _conclude(self, now: float) -> None:
        """Pass the best failure back once nothing is pending: §16.7 step 6."""
        if self._is_answered or not all(branch.is_done for branch in self._branches):
            return
        self._is_answered = True
        self._server.respond(best_response(self._finals), now)


def best_response(finals: Sequence[Response]) -> Response:
    """The final failure a caller can do most with: §16.7 steps 6 and 7.

    Any 6xx; else of the lowest class, one that asks for credentials first, with the
    challenges of all.  A 503 speaks only of our own next hop, and becomes a 500.
    """
    declined = [final for final in finals if final.status >= 600]
    if declined:
        return declined[0]
    lowest = min(final.status // 100 for final in finals)
    best = min(
        (final for final in finals if final.status // 100 == lowest),
        key=lambda final: _PREFERENCE.get(final.status, 9),
    )
    if best.status in (401, 407):
        return _with_challenges(best, finals)
    if best.status == 503:
        return best.replace(status=500, reason="Server Internal Error")
    return best


# §16.7 step 6: prefer what helps to send the request again; a time-out says the least.
_PREFERENCE: Final = {401: 1, 407: 1, 415: 2, 420: 2, 484: 2, 486: 3, 480: 4, 408: 10}


def _with_challenges(best: Response, finals: Sequence[Response]) -> Response:
    headers = best.headers
    for final in finals:
        if final is not best and final.status in (401, 407):
            for name in ("WWW-Authenticate", "Proxy-Authenticate"):
                for value in final.headers.values(name):
                    headers = headers.append(name, value)
    return best.replace(headers=headers)


def _one_hop_less(request: Request) -> Request:
    hops = request.max_forwards
    left = MAX_FORWARDS if hops is None else max(0, hops - 1)  # §16.6 step 3
    return request.replace(headers=request.headers.with_("Max-Forwards", left))


def _without_first_via(headers: Headers) -> Headers:
    """Take off the Via that we put on: §16.7 step 3."""
    return headers.with_("Via", *headers.all("Via")[1:])


def _loop_key(request: Request) -> Loop:
    """What makes two requests the same one on its way round: RFC 5393 §4.2.2."""
    routes = ",".join(request.headers.all("Route"))
    tag = request.from_.tag or ""
    return request.call_id, request.cseq.number, request.method + tag, str(request.uri), routes


def is_local(flow: Flow) -> bool:
    """Whether a request came from a user of this very process.  Own design: `core.outbox`."""
    return flow.transport == LOCAL
