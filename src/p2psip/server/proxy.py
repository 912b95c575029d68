"""A stateful proxy: one request in, one or more out, the best answer back.

Implements RFC 3261 §16, with the fork limit of RFC 5393 §5.

`forward` makes a response context (§16.2, `response_context`) out of a server
transaction and one client transaction for each target.  Loops are found as RFC 5393 §4.2.2
wants it, but by a table: a request that has our Via, and equals one that is still being
forwarded, has looped.

Departs from RFC 5393 §4.1 [loops-as-described]: the table holds the values themselves, and no hash
of them can collide.
Departs from RFC 5393 §4.2.1 [branch-in-two-parts]: the second part would repeat what the table
holds.

A request within a dialog goes to the dialog's other side alone (`proxied_dialogs`).

Own design: the targets of one q are tried at once as far as Max-Breadth allows; a redirection
(3xx) is not followed, it is passed back to the caller.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from p2psip.errors import RemoteError
from p2psip.server.proxied_dialogs import (
    BEGINNING,
    WITHIN,
    DialogDirection,
    MidDialogRequest,
    ProxiedDialogs,
)
from p2psip.server.response_context import ResponseContext, ResponseObserver, Target, as_request_uri
from p2psip.server.target_finder import SideRoute
from p2psip.sip.address import Address, with_quotes
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.grammar import number
from p2psip.sip.message import METHODS, Request
from p2psip.sip.params import Params
from p2psip.sip.uri import Uri
from p2psip.stack.fair_pool import tally
from p2psip.stack.routing import needs_tls
from p2psip.stack.stack import Flow, ServerHandle, Stack
from p2psip.transaction.table import TimerQueue, earlier
from p2psip.ua.requests.request_validation import RefusalError, without_identity

__all__ = ["Proxy", "Target"]

# Branches at once, here and further on: RFC 5393 §5.3.3 [has-a-maximum] [maximum-is-60] [adds-60]
MAX_BREADTH: Final = 60

_Place = tuple[str, int | None, Params, bool]
_Sameness = tuple[str, int, str, str, tuple[str, ...]]


class Proxy:
    """The forwarding half of an element (§16.2), with the dialogs whose requests pass it.

    `is_elsewhere(uri)` tells whether a URI of ours leads to another process.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.is_elsewhere: Callable[[Uri], bool] = lambda uri: False
        self.dialogs = ProxiedDialogs(stack.t1)
        self._contexts = 0
        self._timer_queue = TimerQueue[ResponseContext]()
        self._under_way: dict[_Sameness, int] = {}
        self._marks: dict[_Place, str] = {}  # of our own addresses, which are few

    def __len__(self) -> int:
        return self._contexts

    def forward(
        self,
        server: ServerHandle,
        targets: Sequence[Target],
        now: float,
        *,
        user: str | None = None,
    ) -> None:
        """Forward a request to its targets: §16.3 to §16.6; `user` has proved its password.

        The dialogs that it begins are kept, so that later requests in them find their way.
        Raises RemoteError: 420, 440, 482, 483 as §16.3 and RFC 5393 §5.3.3 say; 503 without room.
        """
        breadth = self.check(server.request)  # §16.3 [checks-come-first]
        begins = server.request.method in BEGINNING and server.request.to.tag is None
        observer = self.dialogs.begin(server, user) if begins else None
        self._start(server, targets, breadth, now, observer)

    def forward_in_dialog(
        self,
        server: ServerHandle,
        direction: DialogDirection,
        way: SideRoute,
        now: float,
        follows: Callable[[Request], bool],
    ) -> None:
        """Forward a request of a dialog to its other side, and nowhere else: §16.4, §12.2.

        `way` leads to that side, and `follows` is the argument of `Stack.dialog_flows`.  Raises
        RemoteError as `forward` does, 405 for a method that no dialog has, and 481 when the other
        side was a user of this process and has gone.
        """
        request = server.request
        # §16.3 [unknown-pass]: only methods that are known, and belong in no dialog, are refused
        if request.method in METHODS and request.method not in WITHIN:
            allowed = ", ".join(sorted(WITHIN))
            raise RefusalError(405, "Method Not Allowed", [("Allow", allowed)])
        server.request = request = self._directed(request, direction, way.device)
        breadth = self.check(request)
        if not request.routes and self._is_gone(request.uri):
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        self.dialogs.heard(direction, request, server.flow, now)
        target = Target(request.uri, self._stack.dialog_flows(request, way.by, way.seen, follows))
        observer = MidDialogRequest(self.dialogs, direction, request)
        self._start(server, [target], breadth, now, observer)

    def forward_ack(
        self,
        request: Request,
        direction: DialogDirection,
        way: SideRoute,
        now: float,
        follows: Callable[[Request], bool],
    ) -> None:
        """Forward the ACK of a 2xx to the dialog's other side, without state: §16.11."""
        # §16.11 [ack-is-routed] [one-target]
        request = self._directed(request, direction, way.device)
        flows = self._stack.dialog_flows(request, way.by, way.seen, follows)
        self.send_ack(request, flows, now)

    def send_ack(self, request: Request, flows: Sequence[Flow] | None, now: float) -> None:
        """Forward an ACK to its target, without state: §16.11."""
        # §16.11 [ack-is-checked]
        if request.max_forwards != 0 and (request.routes or not self._is_gone(request.uri)):
            ack = _one_hop_less(request, _breadth(request))  # §16.11 [ack-is-copied]
            self._stack.send_ack(ack, now, flows)

    def _is_gone(self, uri: Uri) -> bool:
        """Whether a URI leads to a user of this process, which would have taken the request."""
        return self._stack.is_ours(uri) and not self.is_elsewhere(uri)

    def take_route(self, request: Request) -> Request:
        """The request without the Routes at the top that are ours: §16.4.

        Own design: a `maddr` of ours is dropped whichever listener the request came by, since all
        of them lead here.
        """
        routes = list(request.routes)
        if routes and self._is_mark(request.uri):  # §16.4 [looks-at-the-target]
            # the previous hop is a strict router, which has put the target last
            # §16.4 [strict-router-undone]
            request = request.replace(uri=routes.pop().uri)
        # §16.4 [maddr-is-looked-at]
        if request.uri.param("maddr") and self._stack.is_ours(request.uri):
            uri = request.uri.without_params("maddr", "transport").replace(port=None)
            request = request.replace(uri=uri)  # §16.4 [own-maddr-is-dropped]
        while routes and self._stack.is_ours(routes[0].uri):
            routes.pop(0)  # §16.4 [own-route-is-removed]
        if len(routes) == len(request.routes):
            return request
        return request.replace(headers=request.headers.with_("Route", *routes))

    @property
    def deadline(self) -> float | None:
        """The next timer C (§16.6 step 11), or dialog to forget."""
        return earlier(self._timer_queue.deadline, self.dialogs.deadline)

    def tick(self, now: float) -> None:
        for context in self._timer_queue.due(now):
            context.tick(now)
        self.dialogs.tick(now)

    def check(self, request: Request) -> int:
        """The breadth of a request that may be forwarded: §16.3, RFC 5393 §5.3.3.  RemoteError."""
        if request.max_forwards == 0:  # §16.3 [zero-hops-stay]
            # RFC 4475 §3.3.11 [zero-hops-not-forwarded] [483-for-zero-hops]
            raise RemoteError("Too Many Hops", 483)  # §16.3 [483-for-zero-hops]
        # RFC 5393 §4.1 [no-loop-when-forking], §4.2.2 [checks-before-forwarding] [loop-is-482]
        if self._has_looped(request):
            raise RemoteError("Loop Detected", 482)
        if wanted := request.headers.all("Proxy-Require"):
            # §16.3 [420-for-proxy-require] [420-names-them], §20.29 [asks-the-proxy]
            raise RefusalError(420, "Bad Extension", [("Unsupported", ", ".join(wanted))])
        breadth = _breadth(request)
        if not breadth:  # RFC 5393 §5.3.3 [440-when-too-narrow]
            raise RemoteError("Max-Breadth Exceeded", 440)
        return breadth

    def _start(
        self,
        server: ServerHandle,
        targets: Sequence[Target],
        breadth: int,
        now: float,
        observer: ResponseObserver | None,
    ) -> None:
        request = server.request
        context = ResponseContext(
            self._stack,
            server,
            breadth,
            mark=partial(self._mark, secure=needs_tls(request)),
            observer=observer,
            schedule=self._timer_queue.set,
            on_end=partial(self._forget, same := _sameness(request)),
        )
        self._contexts += 1
        tally(self._under_way, same, 1)
        context.begin(_one_hop_less(request, breadth), targets, now)

    @staticmethod
    def _directed(request: Request, direction: DialogDirection, device: Target | None) -> Request:
        """The request with its target and route replaced by the receiver's: §12.2.1.1."""
        receiver = direction.receiver
        headers = request.headers.with_("Route", *receiver.routes)
        # §16.6 [only-what-a-uri-may-have]: for an ACK, which has no branch
        request = request.replace(uri=as_request_uri(receiver.target), headers=headers)
        return request if device is None else to_device(request, device)

    def _forget(self, same: _Sameness) -> None:
        self._contexts -= 1
        tally(self._under_way, same, -1)

    def _has_looped(self, request: Request) -> bool:
        """Whether the request passed here before, and is still the same: RFC 5393 §4.2.2."""
        if _sameness(request) not in self._under_way:  # RFC 5393 §4.2.2 [compares-the-values]
            return False
        # RFC 5393 §4.2.2 [looks-at-our-vias], RFC 3261 §16.3 [merged-pass]
        return any(self._stack.is_own_address(via.host, via.port or 5060) for via in request.vias)

    def _mark(self, transport: str | None, peer: str, *, secure: bool = False) -> str:
        """Our Record-Route value for the side at `peer`, of SIPS if `secure`: §16.6 step 4."""
        # §16.6 [mark-leads-here] [mark-is-sip] [transport-only-where-known]
        # §16.6 [clear-mark-is-no-sips]
        # §16.7 [rules-of-requests] [transport-only-where-known]
        uri = self._stack.contact(transport="TLS" if secure else transport, peer=peer)
        about = uri.host, uri.port, uri.params, secure
        mark = self._marks.get(about)
        if mark is None:
            if secure:
                # §16.6 [secure-mark-is-sips]
                uri = uri.replace(scheme="sips").without_params("transport")
            # §16.6 [mark-has-lr]
            self._marks[about] = mark = str(Address(uri.with_params(lr=None)))
        return mark

    def _is_mark(self, uri: Uri) -> bool:
        """Whether a Request-URI is our Record-Route value: §16.4."""
        return uri.user is None and uri.param("lr") is not None and self._stack.is_ours(uri)


def to_device(request: Request, device: Target) -> Request:
    """The request for the contact of a device in place of its GRUU: RFC 5627 §6.1."""
    routes = request.routes or device.path  # RFC 5627 §6.1 [path-is-discarded]
    headers = request.headers.with_("Route", *routes)
    return request.replace(uri=as_request_uri(device.uri), headers=headers)


def _sameness(request: Request) -> _Sameness:
    """What is equal in two copies of a looping request, whatever its method: RFC 5393 §4.2.1."""
    tag, routes = request.from_.tag or "", request.headers.all("Route")
    # RFC 5393 §4.2.4 [differs-by-transaction], §4.2.1 [covers-target-and-route] [covers-choice]
    # RFC 5393 §4.2.1 [same-for-any-method]
    return request.call_id, request.cseq.number, tag, str(request.uri), routes


def _breadth(request: Request) -> int:
    """How many branches may be open at once: RFC 5393 §5.3.3."""
    text = request.headers.get("Max-Breadth")
    if text is None:
        return MAX_BREADTH  # RFC 5393 §5.3.3 [adds-max-breadth] [adds-60]
    # RFC 5393 §5.3.3 [overwrites-larger] [overwrites-within-maximum] [has-a-maximum]
    return min(number(text, 2**32 - 1), MAX_BREADTH)


def _one_hop_less(request: Request, breadth: int) -> Request:
    """The copy to forward: §16.6 step 3, and RFC 5393 §5.3.3 where no Max-Breadth came."""
    hops = request.max_forwards
    # §16.6 [one-hop-less] [adds-max-forwards] [adds-70]
    left = MAX_FORWARDS if hops is None else hops - 1
    # RFC 5393 §5.3.3 [exactly-one] [not-per-hop]
    changes: dict[str, tuple[object, ...]] = {
        "Max-Forwards": (left,),
        "Max-Breadth": (breadth,),
    }
    for name in ("From", "To"):
        value = request.headers[name]
        if (mended := with_quotes(value)) != value:
            changes[name] = (mended,)  # RFC 4475 §3.1.2.15 [quotes-added]
    return request.replace(headers=without_identity(request.headers, changes))
