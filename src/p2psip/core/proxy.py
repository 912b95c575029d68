"""A stateful proxy: one request in, one or more out, the best answer back.

Implements RFC 3261 §16, with the fork limit of RFC 5393 §5.

`forward` makes a response context (§16.2, `core.response_context`) out of a server
transaction and one client transaction for each target.  Loops are found as RFC 5393 §4.2.2
wants it, but by remembering instead of hashing into the branch: a request that came through
here before, and is the same as one that is still being forwarded, has looped.

Own design: all targets are tried at once as far as Max-Breadth allows, the preferred ones
first; a redirection (3xx) is not followed, it is passed back to the caller.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from p2psip.core.response_context import ResponseContext, Target
from p2psip.core.screening import RefusalError
from p2psip.core.stack import ServerHandle, Stack
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.grammar import number
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.transaction.table import Agenda

__all__ = ["Proxy", "Target"]

MAX_BREADTH: Final = 60  # branches at once, here and further on: RFC 5393 §5.3.3
ROUTE_PROOF: Final = "proof"  # in our Record-Route: only dialogs we set up come back this way

_Sameness = tuple[str, int, str, str, str, tuple[str, ...]]


class Proxy:
    """The forwarding half of an element: §16.2.  `random(n)` gives n octets."""

    def __init__(self, stack: Stack, random: Callable[[int], bytes]) -> None:
        self._stack, self._secret = stack, random(32)
        self._contexts = 0
        self._agenda = Agenda[ResponseContext]()
        self._under_way = Counter[_Sameness]()

    def __len__(self) -> int:
        """How many requests are on their way."""
        return self._contexts

    def forward(
        self, server: ServerHandle, targets: Sequence[Target], now: float, *, record_route: bool
    ) -> None:
        """Send a request on to its targets: §16.3 to §16.6.

        Raises RemoteError: 420, 440, 482, 483 as §16.3 and RFC 5393 §5.3.3 say.
        """
        request = server.request
        if request.max_forwards == 0:
            raise RemoteError("Too Many Hops", 483)
        if self._has_looped(request):
            raise RemoteError("Loop Detected", 482)
        if wanted := request.headers.all("Proxy-Require"):
            raise RefusalError(420, "Bad Extension", [("Unsupported", ", ".join(wanted))])
        breadth = _breadth(request)
        if not breadth:
            raise RemoteError("Max-Breadth Exceeded", 440)
        context = ResponseContext(
            self._stack,
            server,
            breadth,
            mark=partial(self._mark, request) if record_route else None,
            schedule=self._agenda.set,
            on_end=partial(self._forget, same := _sameness(request)),
        )
        self._contexts += 1
        self._under_way[same] += 1
        context.begin(_one_hop_less(request, breadth), targets, now)

    def forward_ack(self, request: Request, now: float) -> None:
        """Send the ACK of a 2xx on, without state: §16.11."""
        if request.max_forwards != 0:
            self._stack.send_ack(_one_hop_less(request, _breadth(request)), now)

    def take_route(self, request: Request) -> tuple[Request, bool]:
        """Take our own Routes off the top: §16.4.

        Also tells whether one of them was made by us for this very dialog.
        """
        routes = list(request.routes)
        proven = self._proves(request.uri, request)
        if proven and routes:  # the hop before routes strictly, and has put the target last
            request = request.replace(uri=routes.pop().uri)
        while routes and self._stack.is_ours(routes[0].uri):
            proven = self._proves(routes.pop(0).uri, request) or proven
        return request.replace(headers=request.headers.with_("Route", *routes)), proven

    @property
    def deadline(self) -> float | None:
        """The next timer C: §16.6 step 11."""
        return self._agenda.deadline

    def tick(self, now: float) -> None:
        """Give up on branches that were silent too long: §16.8."""
        for context in self._agenda.due(now):
            context.tick(now)

    def _forget(self, same: _Sameness) -> None:
        self._contexts -= 1
        self._under_way[same] -= 1
        if not self._under_way[same]:
            del self._under_way[same]

    def _has_looped(self, request: Request) -> bool:
        """Whether it passed here already, and nothing has changed since: RFC 5393 §4.2.2."""
        return _sameness(request) in self._under_way and any(
            self._stack.is_own_address(via.host, via.port or 5060) for via in request.vias
        )

    def _mark(self, request: Request, transport: str | None) -> Address:
        """Our Record-Route value: §16.6 step 4, with a proof that it was us."""
        uri = self._stack.contact(transport=transport)
        proof = self._proof(request.call_id, request.from_.tag or "")
        return Address(uri.with_params(lr=None, **{ROUTE_PROOF: proof}))

    def _proves(self, uri: Uri, request: Request) -> bool:
        """Whether `uri` is a mark that we gave to a request of this dialog, from either side."""
        given = (uri.param(ROUTE_PROOF) or "").encode(errors="replace")
        if not given:
            return False
        tags = (request.from_.tag or "", request.to.tag or "")
        proofs = [self._proof(request.call_id, tag).encode() for tag in tags]
        return any([hmac.compare_digest(given, proof) for proof in proofs])

    def _proof(self, call_id: str, tag: str) -> str:
        text = f"{call_id} {tag}".encode(errors="surrogateescape")
        return hmac.digest(self._secret, text, hashlib.sha256).hex()[:16]


def _sameness(request: Request) -> _Sameness:
    """What makes two requests the same one on its way round: RFC 5393 §4.2.1."""
    tag, routes = request.from_.tag or "", request.headers.all("Route")
    call_id, cseq = request.call_id, request.cseq
    return call_id, cseq.number, request.method, tag, str(request.uri), routes


def _breadth(request: Request) -> int:
    """How many branches may be open at once: RFC 5393 §5.3.3."""
    text = request.headers.get("Max-Breadth")
    return MAX_BREADTH if text is None else min(number(text, 2**32 - 1), MAX_BREADTH)


def _one_hop_less(request: Request, breadth: int) -> Request:
    """The copy to send on: §16.6 step 3, and RFC 5393 §5.3.3 for who sent no Max-Breadth."""
    hops = request.max_forwards
    left = MAX_FORWARDS if hops is None else hops - 1
    headers = request.headers.with_("Max-Forwards", left).with_("Max-Breadth", breadth)
    return request.replace(headers=headers)
