"""One request that a proxy forwards: its branches, and the response that goes back.

Implements RFC 3261 §16.6 to §16.10, from the choice of targets to the final response.

    begin -> a branch per target -> 1xx: passed back      -> 2xx: passed back, others cancelled
                                                          -> 6xx: others cancelled
                                 -> nothing pending       -> the best failure is passed back
    CANCEL, or timer C: the branches are cancelled, and their 487 is the failure

Targets of one q ring together, and those of a lower q after they have failed: serial forking.

Own design: while others wait, a call rings for `RING` seconds.  A request other than INVITE goes to
all targets at once, since its client waits for no more than 64*T1 (§17.1.2.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import REASONS, response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.causes import NO_ANSWER
from p2psip.stack.stack import ClientHandle, Flow, ServerHandle, Stack
from p2psip.transaction.table import earlier
from p2psip.ua.requests.request_validation import without_identity

# s: §16.6 step 11 wants more than three minutes between signs of life: §16.6 [timer-c-is-long]
TIMER_C: Final = 185.0
RING: Final = 20.0  # s: four rings
LOST: Final = (408, 430)  # the phone has not heard the request: RFC 5626 §7


@dataclass(frozen=True, slots=True)
class Target:
    """A target (§16.5): the new Request-URI, the flows if they are known already, and its rank.

    `path` are the proxies to pass (RFC 3327 §5.4); `spares` are other ways to the same phone, to be
    tried one after the other when this one fails (RFC 5626 §7).
    """

    uri: Uri
    flows: Sequence[Flow] | None = None
    q: float = 1.0
    path: tuple[Address, ...] = ()
    spares: tuple["Target", ...] = ()

    @property
    def host(self) -> str:
        """The host it is reached at, or its name where that is to be looked up: §16.5."""
        return self.flows[0].remote[0] if self.flows else self.uri.host

    @property
    def transport(self) -> str | None:
        """The transport of the target, None where we choose one: RFC 3263 §4.1."""
        if self.flows:
            return self.flows[0].transport
        named = self.uri.param("transport")
        return named.upper() if named else None


@dataclass(slots=True, eq=False)
class _Branch:
    """One target's client transaction: §16.6."""

    handle: ClientHandle
    target: Target
    mark: str  # our Record-Route value in it
    silent_until: float | None  # when timer C fires; None for requests with shorter timers
    was_heard: bool = False  # a provisional response came
    is_done: bool = False
    has_rung: bool = False  # for its time, after which it was cancelled


class ResponseObserver(Protocol):
    """Keeps the dialogs that a request makes or changes: RFC 3261 §6, call-stateful."""

    def on_response(
        self, asked: Request, flow: Flow | None, response: Response, now: float
    ) -> None:
        """Take a response to `asked`, which went by `flow`: §12.1, §12.2.1.2."""

    def end(self) -> None:
        """Note that no other response can be passed back: §12.3."""


class ResponseContext:
    """One forwarded request and its branches: §16.2, §16.7.

    No more than `breadth` branches at once: RFC 5393 §5.3.3.  `mark(transport, peer)` makes our
    Record-Route value.  `observer`, if any, sees all responses.  `schedule(self, at)` is told when
    to call `tick`; `on_end` is called once no response can be passed back any more, and no branch
    is open whose request could come back to us.
    """

    def __init__(
        self,
        stack: Stack,
        server: ServerHandle,
        breadth: int,
        *,
        mark: Callable[[str | None, str], str],
        observer: ResponseObserver | None,
        schedule: Callable[["ResponseContext", float | None], None],
        on_end: Callable[[], None],
    ) -> None:
        self._stack, self._server, self._breadth = stack, server, breadth
        self._mark, self._observer = mark, observer
        self._schedule, self._on_end = schedule, on_end
        self._request: Request = server.request
        self._waiting: list[Target] = []
        self._q, self._width, self._shares = 1.0, breadth, (breadth, 0)  # of those that ring now
        self._rings_until: float | None = None
        self._branches: list[_Branch] = []
        self._finals: list[Response] = []
        self._is_answered = self._is_given_up = False
        self._is_over = False  # the server transaction has ended
        self._has_ended = False  # and so have all branches
        self._own_mark: str | None = None  # our Record-Route value for the caller
        self.answered_by: Flow | None = None  # where the 2xx came from that went back
        server.user = self

    def begin(self, request: Request, targets: Sequence[Target], now: float) -> None:
        """Forward `request`, which has one hop less, to all targets: §16.6 step 10."""
        self._request, self._waiting = request, sorted(targets, key=lambda target: -target.q)
        if request.method != "INVITE":
            self._waiting = [replace(target, q=1.0) for target in targets]
        self._start_waiting(now)

    # ClientUser

    def on_response(self, handle: ClientHandle, response: Response, now: float) -> None:
        """Choose the response to pass back: §16.7."""
        branch = self._branch(handle)
        self._watch(handle, response, now)
        ours = self._on_our_behalf(branch, response)  # §16.7 [processed-first]
        if response.status < 200:
            branch.was_heard = True
            if response.status != 100:  # §16.7 [100-stays]
                # §16.7 [1xx-resets-timer-c] [reset-is-long]
                branch.silent_until = self._timer_c(now)
                self._pass_back(ours, now)  # §16.7 [progress-at-once]
        elif response.status < 300:
            branch.is_done = True
            self.answered_by = handle.flow
            # every 2xx: §16.7 [progress-at-once] [later-2xx-at-once]
            self._pass_back(ours, now)
            # §16.7 [final-cancels-the-rest], RFC 3326 §3.1
            self._give_up(now, (f'SIP;cause={response.status};text="Call completed elsewhere"',))
        elif not branch.is_done:
            is_ours = branch.has_rung and response.status == 487
            # RFC 5626 §7 [answered-is-answered], RFC 5630 §5.3 [never-recurses]
            is_lost = response.status in LOST
            ours = self._own_response(480, NO_ANSWER) if is_ours else ours
            self._fail(branch, ours, now, is_lost=is_lost)
        self._after_response()

    def on_failure(self, handle: ClientHandle, status: int, now: float) -> None:
        """Take a branch's failure as 408 for silence, 503 for no way: §16.8, §16.9."""
        branch = self._branch(handle)
        if not branch.is_done:
            # §16.7 [408-without-answers], §16.9 [error-is-503]
            response = self._own_response(status, handle.cause)
            self._watch(handle, response, now)
            self._fail(branch, response, now, is_lost=True)
        self._after_response()

    # ServerUser

    def on_cancel(self, handle: ServerHandle, now: float) -> None:
        """Cancel every branch, for the caller's Reason; their 487 is the answer: §16.10."""
        self._give_up(now, handle.reasons)  # §16.10 [cancels-all], RFC 3326 §2 [reason-goes-on]

    def on_transaction_end(self, handle: ServerHandle, now: float) -> None:
        """Give up all branches, since no response can be passed back: §16.7 step 10."""
        self._give_up(now)
        self._is_answered = True
        self._is_over = True
        if self._observer is not None:
            self._observer.end()
        self._after_response()
        handle.user = None  # or both would wait for the garbage collector

    def tick(self, now: float) -> None:
        """Cancel branches whose timer C has fired (§16.8), or that have rung for long enough."""
        if self._rings_until is not None and self._rings_until <= now:
            self._rings_until = None
            for branch in self._pending:
                branch.has_rung = True
                branch.handle.cancel(now)
        for branch in list(self._branches):
            if branch.silent_until is not None and branch.silent_until <= now:
                branch.silent_until = None
                branch.handle.cancel(now)  # §16.8 [timer-c-ends-it] [heard-is-cancelled]
                if not branch.was_heard and not branch.is_done:
                    # §16.8 [silent-is-408]
                    self._fail(branch, self._own_response(408, None), now, is_lost=True)
        self._reschedule()

    # inside

    @property
    def _pending(self) -> list[_Branch]:
        return [branch for branch in self._branches if not branch.is_done]

    def _start_waiting(self, now: float) -> None:
        """Start branches of the highest q until the breadth is used up: §16.6, RFC 5393 §5.5."""
        if self._waiting and not self._pending:
            self._begin_group(now)
        share, rest = self._shares
        while self._waiting and self._waiting[0].q == self._q and self._has_breadth:
            target = self._waiting.pop(0)
            breadth = share + rest  # RFC 5393 §5.3.3 [uses-all-of-it]
            self._shares, rest = (share, 0), 0
            # RFC 5393 §5.3.3 [exactly-one] [not-per-hop] [overwrites-larger]
            self._start(target, self._request.headers.with_("Max-Breadth", breadth), now)
        if not self._waiting:
            self._rings_until = None
        self._reschedule()

    def _start(self, target: Target, headers: Headers, now: float) -> None:
        """Send the request to one target: §16.6.

        Departs from RFC 5630 §5.3 [sip-stays-sip]: a SIPS Contact that is yet to be looked up keeps
        its scheme, by which its TLS servers are found.
        """
        uri = as_request_uri(target.uri)  # §16.6 [only-what-a-uri-may-have]
        is_downgraded = (self._request.uri.scheme, uri.scheme) == ("sip", "sips")
        if is_downgraded and target.flows is not None:
            uri = uri.replace(scheme="sip")  # RFC 5630 §5.3 [sip-stays-sip] [sips-becomes-sip]
        mark = self._mark(target.transport, target.host)
        # RFC 5627 §6.2 [record-routes], RFC 3261 §16.6 [mark-on-top] [marks-within-dialogs]
        # §16.6 [marks-unknown-methods] [marks-what-came-in-the-clear]
        headers = headers.prepend("Record-Route", mark)
        if target.path:
            headers = headers.with_("Route", *target.path)  # RFC 3327 §5.4 [path-is-the-route]
        # §16.6 [copies-all-fields] [removes-none] [keeps-their-order]
        # §16.6 [keeps-order-of-values]
        # §16.6 [copies-the-body] [target-is-the-uri], §16.3 [rest-is-ignored]
        request = self._request.replace(uri=uri, headers=headers)
        # §16.6 [transaction-per-target], §16.1 [forks] [forks-with-state]
        # RFC 3428 §6 [forks]
        handle = self._stack.request(request, self, now, flows=target.flows)
        # §16.6 [timer-c-is-set]
        self._branches.append(_Branch(handle, target, mark, self._timer_c(now)))

    def _start_spare(self, branch: _Branch, now: float) -> None:
        """Try the phone of a branch that has failed by its next flow: RFC 5626 §7."""
        spare, *others = branch.target.spares
        breadth = branch.handle.request.headers["Max-Breadth"]  # it takes the place of the other
        headers = self._request.headers.with_("Max-Breadth", breadth)
        self._start(replace(spare, spares=tuple(others)), headers, now)
        self._reschedule()

    def _begin_group(self, now: float) -> None:
        """Turn to the targets that are the best now: serial forking, §16.6."""
        self._q = self._waiting[0].q
        group = [target for target in self._waiting if target.q == self._q]
        self._width = min(self._breadth, len(group))
        self._shares = divmod(self._breadth, self._width)  # RFC 5393 §5.3.3 [stays-within]
        self._rings_until = now + RING if self._request.method == "INVITE" else None

    @property
    def _has_breadth(self) -> bool:
        return len(self._pending) < self._width

    def _watch(self, handle: ClientHandle, response: Response, now: float) -> None:
        """Show a response to the watcher; one that cannot be parsed makes no dialog."""
        if self._observer is not None:
            try:
                self._observer.on_response(handle.request, handle.flow, response, now)
            except RemoteError:
                return

    def _on_our_behalf(self, branch: _Branch, response: Response) -> Response:
        """The response with the Vias below ours, and a Route to us that the caller can use.

        §16.7 steps 3 and 8: each side of the dialog reaches us by the transport it has.

        Departs from RFC 3261 §16.7 [identifier-in-the-user]: our value of Record-Route is told by
        its place, above all that came with the request, so that no user part has to carry a name.
        """
        asked = self._server.request.headers
        # the Vias as they came, whatever the other side has made of them: §16.7 [received-stays]
        changes: dict[str, tuple[object, ...]] = {"Via": asked.values("Via")}
        routes = list(response.headers.all("Record-Route", lenient=True))
        at = len(routes) - len(asked.all("Record-Route")) - 1
        # after a spiral other values may be equal: §16.6 [mark-is-found-again]
        if at >= 0 and routes[at] == branch.mark:
            if self._own_mark is None:
                flow = self._server.flow
                self._own_mark = self._mark(flow.transport, flow.remote[0])
            routes[at] = self._own_mark
            changes["Record-Route"] = tuple(routes)
        # §16.7 [no-tag-of-ours] [tag-is-kept] [tag-of-refusals]
        # §16.7 [body-as-it-came] [fields-stay]
        return response.replace(headers=without_identity(response.headers, changes))

    def _own_response(self, status: int, cause: str | None) -> Response:
        return response_to(self._server.request, status, cause, to_tag=self._server.to_tag)

    def _branch(self, handle: ClientHandle) -> _Branch:
        (found,) = [branch for branch in self._branches if branch.handle is handle]
        return found

    def _timer_c(self, now: float) -> float | None:
        is_waiting = self._request.method == "INVITE" and not self._is_answered
        return now + TIMER_C if is_waiting else None

    def _after_response(self) -> None:
        """Schedule timer C, or end the context with its last open branch (§16.2)."""
        if not self._is_over:
            self._reschedule()
            return
        self._schedule(self, None)
        # RFC 5393 §4.1 [no-loop-when-forking], RFC 3261 §16.7 [kept-to-the-end]
        if not self._pending and not self._has_ended:
            self._has_ended = True
            self._on_end()

    def _reschedule(self) -> None:
        first = self._rings_until
        for branch in self._branches:
            if not branch.is_done:
                first = earlier(first, branch.silent_until)
        self._schedule(self, first)

    def _pass_back(self, response: Response, now: float) -> None:
        """After a final response only another 2xx is sent: §16.7 step 5."""
        self._is_answered = self._is_answered or response.status >= 200
        self._server.respond(response, now)  # §16.7 [by-the-server-transaction]

    def _fail(self, branch: _Branch, response: Response, now: float, *, is_lost: bool) -> None:
        """Keep a failure (`is_lost`: unheard), and pass back the best at the end: §16.7 step 6."""
        branch.is_done = True
        if is_lost and branch.target.spares and not self._is_given_up:
            self._start_spare(branch, now)  # RFC 5626 §7 [430-tries-the-next]
            return
        self._finals.append(response)
        if response.status >= 600:
            self._give_up(now, (f"SIP;cause={response.status}",))  # §16.7 [6xx-cancels]
        self._start_waiting(now)  # RFC 5393 §5.3.3.1 [uses-it-again]
        if not self._is_answered and not self._pending:  # §16.7 [others-wait]
            # §16.7 [always-a-final] [best-of-all], RFC 5630 §5.3 [best-goes-back]
            self._pass_back(best_response(self._finals), now)

    def _give_up(self, now: float, reasons: Sequence[str] = ()) -> None:
        """Start no more branches, and cancel those of an INVITE: §16.7 step 10."""
        self._waiting.clear()  # §16.7 [6xx-ends-forking]
        self._is_given_up = True
        self._rings_until = None
        for branch in self._pending:
            branch.handle.cancel(now, reasons)


def as_request_uri(uri: Uri) -> Uri:
    """A URI without what no Request-URI may hold: §16.6 step 2, §19.1.1."""
    bare = uri.replace(headers=()) if uri.headers else uri
    return bare.without_params("method")


def best_response(finals: Sequence[Response]) -> Response:
    """The final failure that is of most use to a caller: §16.7 steps 6 and 7.

    Any 6xx; else one of the lowest class, a challenge first, with the challenges of all.  A 503
    speaks only of our own next hop, and becomes a 500, which keeps a reason phrase that tells a
    cause.
    """
    lowest = min(_class(final) for final in finals)  # §16.7 [lowest-class]
    best = min(
        (final for final in finals if _class(final) == lowest),
        key=lambda final: _PREFERENCE.get(final.status, 9),
    )
    if best.status in (401, 407):
        return _with_challenges(best, finals)  # §22.3 [407-goes-back]
    if best.status == 503:  # §16.7 [503-stays]; §21.5.4 [503-as-500]
        reason = REASONS[500] if best.reason == REASONS[503] else best.reason
        return best.replace(status=500, reason=reason)  # §16.7 [503-becomes-500]
    return best


# §16.7 [helpful-first]: what tells how to ask again; a time-out says the least.
_PREFERENCE: Final = {401: 1, 407: 1, 415: 2, 420: 2, 484: 2, 486: 3, 480: 4, 408: 10}


def _class(response: Response) -> int:
    """The class of a failure, 6xx before all others: §16.7 step 6."""
    return response.status // 100 % 6  # §16.7 [6xx-first]


def _with_challenges(best: Response, finals: Sequence[Response]) -> Response:
    """The challenge with the challenges of all other branches: RFC 8760 §2.5."""
    headers = best.headers
    for final in finals:
        if final is not best and final.status in (401, 407):
            for name in ("WWW-Authenticate", "Proxy-Authenticate"):
                for value in final.headers.values(name):
                    # RFC 8760 §2.5 [all-are-passed-on] [order-is-kept]
                    # RFC 3261 §16.7 [challenges-together], §22.3 [challenges-together]
                    headers = headers.append(name, value)
    return best.replace(headers=headers)
