"""The dialogs that pass through a proxy: where both sides are, and the way to each.

Implements RFC 3261 §12.2 as a proxy sees it, with the target refresh of RFC 3311 §5.

A call-stateful proxy (§6): a request within a dialog is forwarded only if the dialog was set up
through this proxy.  It goes to the other side's own target by the route of that side, whatever the
request itself says.  A stranger who has read our Record-Route gains nothing by it.

Own design: the table is in memory and lost with the process; a request for an unknown dialog is
answered with 481 (§12.2.2), and its user agents end the dialog.  A request that waits for its 2xx
takes one place in its caller's share, and so does each dialog until it is over: a share bounds the
calls at one time, not the calls a second.  All strangers together have one share for one callee,
who may be in league with them, and never the whole table: a part is left for users who have proved
their password.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response, remote_target
from p2psip.sip.uri import Uri
from p2psip.stack.fair_pool import RESERVE, tally
from p2psip.stack.request_origin import Peer, host_of, hosts_named, origin
from p2psip.stack.stack import Flow, ServerHandle
from p2psip.transaction.flow import LOCAL
from p2psip.transaction.table import TimerQueue
from p2psip.ua.requests.request_validation import RefusalError

MAX_DIALOGS: Final = 10_000
MAX_OF_ONE: Final = 1_000  # of one calling host (maybe a whole office) or user, or of one callee
MAX_OVER: Final = 5_000  # that are over, and wait for what is late
MAX_STATE: Final = 8192  # octets of the headers that a dialog keeps
MAX_FORKS: Final = 16  # of one request: phones that have answered it, or ring
MAX_NAMESAKES: Final = 4  # dialogs of one name: a call may come by here twice on its way
SILENCE: Final = 86_400.0  # s without a request after which a dialog is taken for dead
RETRY_AFTER: Final = 30  # s, told with a 503

BEGINNING: Final = frozenset({"INVITE", "SUBSCRIBE", "REFER"})  # §12.1, RFC 6665 §4.4
REFRESHING: Final = BEGINNING | {"UPDATE", "NOTIFY"}  # §12.2, RFC 3311 §5.1, RFC 6665 §4.4.1
WITHIN: Final = REFRESHING | {"ACK", "BYE", "PRACK", "INFO", "MESSAGE", "OPTIONS"}

_Name = tuple[str, str, str]
_KEPT: Final = frozenset({"From", "To", "Call-ID", "Contact", "Record-Route"})  # of messages: §12.1


@dataclass(slots=True, eq=False)
class Side:
    """One side of a dialog: its address, and where it wants requests (§12.1).

    `routes` are the proxies between this proxy and that side, the nearest first; `flow` is the one
    that it was last heard or called by; `seen_at` is the place of that.
    """

    uri: Uri
    tag: str
    target: Uri
    routes: tuple[Address, ...]
    flow: Flow | None
    seen_at: str

    @property
    def peer(self) -> Peer:
        """The peer that may send requests for this side: §12.2.1.1."""
        nearest = self.routes[0].uri if self.routes else self.target
        return Peer(self.uri, hosts_named(nearest) | {self.seen_at})

    def nearness(self, place: str) -> int:
        """How likely a request from `place` is of this side: a place seen beats one named."""
        return 2 * (place == self.seen_at) + (place in self.peer.hosts)


@dataclass(slots=True, eq=False)
class ProxiedDialog:
    """One dialog, early until a 2xx has passed (§12.1)."""

    name: _Name
    holder: str
    shares: tuple[str, ...]
    method: str
    caller: Side
    callee: Side
    confirmed: bool = False
    over: bool = False


class DialogDirection(NamedTuple):
    """A request's way through a dialog: its sender and its receiver (§12.2)."""

    dialog: ProxiedDialog
    sender: Side
    receiver: Side


class ProxiedDialogs:
    """All dialogs of the proxy, within limits (§6); `t1` is in seconds."""

    def __init__(self, t1: float) -> None:
        self._known: dict[_Name, list[ProxiedDialog]] = {}
        self._held: dict[str, int] = {}  # by share
        self._count = 0
        self._over: dict[ProxiedDialog, None] = {}  # by age
        self._flows: dict[Flow, int] = {}  # by which the sides of all are reached
        self._timer_queue = TimerQueue[ProxiedDialog]()
        self._linger = 64 * t1

    def __len__(self) -> int:
        """The dialogs that last, and the requests that may begin one: a figure for `/status`."""
        return self._count

    def begin(self, server: ServerHandle, user: str | None) -> "DialogCreatingRequest":
        """Watch a request that may begin dialogs (§12.1); `user` has proved its password.

        Raises RefusalError: 503 when there is no room for one more (§21.5.4), 513 when a dialog of
        it would keep too much.
        """
        request, holder = server.request, origin(server.request, server.flow)
        if _state(request) > MAX_STATE:
            raise RemoteError("Message Too Large", 513)
        shares: tuple[str, ...] = ()  # requests of this process share the whole table
        if user is not None:
            shares = (f"of {user}",)
        elif holder != LOCAL:
            shares = (f"of {holder}", f"to {request.uri.user or request.uri.host}")
        if not self.has_room(shares):
            raise RefusalError(503, "Too Many Calls", [("Retry-After", RETRY_AFTER)])
        return DialogCreatingRequest(self, server, holder, shares)

    def keeps(self, flow: Flow) -> bool:
        """Whether a side of any dialog is reached by this connection: as in RFC 5626 §5.3."""
        return flow in self._flows

    def find(self, request: Request, place: str) -> DialogDirection | None:
        """The dialog of a request from `place`, by its side there if several match (§12.2.2)."""
        call_id, from_, to = request.call_id, request.from_.tag or "", request.to.tag
        if to is None:
            return None
        found = [
            DialogDirection(dialog, dialog.caller, dialog.callee)
            for dialog in self._known.get((call_id, from_, to), ())
        ]
        found += [
            DialogDirection(dialog, dialog.callee, dialog.caller)
            for dialog in self._known.get((call_id, to, from_), ())
        ]
        if len(found) == 1:
            return found[0]
        # the first of equals: a namesake can only be made once both tags can be known
        return max(found, key=lambda direction: direction.sender.nearness(place), default=None)

    def heard(self, direction: DialogDirection, request: Request, flow: Flow, now: float) -> None:
        """Note that a request of the dialog has come, from its peer by `flow` (§12.2.2)."""
        if direction.sender.flow != flow and self._is_known(direction.dialog):
            self._reached(direction.sender.flow, -1)
            self._reached(flow, 1)
        direction.sender.flow = flow
        direction.sender.seen_at = origin(request, flow)
        if not direction.dialog.over and direction.dialog.confirmed:
            self._timer_queue.set(direction.dialog, now + SILENCE)

    def refresh(
        self, direction: DialogDirection, request: Request, response: Response | None
    ) -> None:
        """Follow both targets after a request that may change them (§12.2.1.2, §12.2.2)."""
        if request.method in REFRESHING:
            _retarget(direction.sender, request)
            if response is not None:
                _retarget(direction.receiver, response)

    def fade(self, dialog: ProxiedDialog, now: float) -> None:
        """Forget a dialog once the transaction that ended it is over (§15.1, §17.2.2)."""
        if self._is_known(dialog) and not dialog.over:
            dialog.over = True
            self._over[dialog] = None
            self.hold(dialog.shares, -1)
            self._timer_queue.set(dialog, now + self._linger)
            if len(self._over) > MAX_OVER:
                oldest = next(iter(self._over))
                self._timer_queue.set(oldest, None)
                self._forget(oldest)

    @property
    def deadline(self) -> float | None:
        return self._timer_queue.deadline

    def tick(self, now: float) -> None:
        """Forget dialogs that are over, or have been silent for too long."""
        for dialog in self._timer_queue.due(now):
            self._forget(dialog)

    # For requests under way

    def has_room(self, shares: Collection[str]) -> bool:
        """Whether there is room for one more; a stranger's request has two shares."""
        limit = MAX_DIALOGS - MAX_DIALOGS // RESERVE * (len(shares) > 1)
        return self._count < limit and all(
            [self._held.get(each, 0) < MAX_OF_ONE for each in shares]
        )

    def hold(self, shares: Collection[str], more: int) -> None:
        """Add to the shares of a caller and, if it is a stranger, of its callee."""
        self._count += more
        for share in shares:
            tally(self._held, share, more)

    def add(self, dialog: ProxiedDialog) -> bool:
        """Take in a new dialog (§12.1); False if it has too many namesakes."""
        namesakes = self._known.setdefault(dialog.name, [])
        if len(namesakes) >= MAX_NAMESAKES:
            return False
        namesakes.append(dialog)
        self.hold(dialog.shares, 1)
        self._reached(dialog.caller.flow, 1)
        self._reached(dialog.callee.flow, 1)
        return True

    def confirm(self, dialog: ProxiedDialog, now: float) -> None:
        """Note that a 2xx has come (§12.1): the dialog now lasts until a BYE or long silence."""
        dialog.confirmed = True
        if not dialog.over:
            self._timer_queue.set(dialog, now + SILENCE)

    def drop_early(self, dialogs: Collection[ProxiedDialog]) -> None:
        """Forget those of the dialogs that are still early (§12.3)."""
        for dialog in dialogs:
            if not dialog.confirmed:
                self._timer_queue.set(dialog, None)
                self._forget(dialog)

    def _forget(self, dialog: ProxiedDialog) -> None:
        namesakes = self._known.get(dialog.name, [])
        if dialog in namesakes:
            namesakes.remove(dialog)
            if dialog.over:
                del self._over[dialog]
            else:
                self.hold(dialog.shares, -1)
            self._reached(dialog.caller.flow, -1)
            self._reached(dialog.callee.flow, -1)
        if not namesakes:
            self._known.pop(dialog.name, None)

    def _reached(self, flow: Flow | None, more: int) -> None:
        if flow is not None:
            tally(self._flows, flow, more)

    def _is_known(self, dialog: ProxiedDialog) -> bool:
        return dialog in self._known.get(dialog.name, ())


class DialogCreatingRequest:
    """A request on its way that may begin dialogs, one for each phone that answers (§12.1)."""

    def __init__(
        self, dialogs: ProxiedDialogs, server: ServerHandle, holder: str, shares: tuple[str, ...]
    ) -> None:
        request = server.request
        self._target = remote_target(request)
        self._dialogs, self._server = dialogs, server
        self._holder, self._shares = holder, shares
        self._below = len(request.record_routes)
        self._mine: dict[str, ProxiedDialog] = {}
        self._waits = True
        dialogs.hold(shares[:1], 1)

    def on_response(
        self, asked: Request, flow: Flow | None, response: Response, now: float
    ) -> None:
        """Take a response to `asked`, which went by `flow`: it may make a dialog (§12.1)."""
        tag = response.to.tag
        if not 100 < response.status < 300 or not tag or flow is None:
            return
        if _state(response) > MAX_STATE:
            return  # too large to keep: no later request reaches its sender
        dialog = self._mine.get(tag) or self._new(tag, asked, flow)
        if dialog is None:
            return
        above = max(0, len(response.record_routes) - self._below - 1)
        dialog.callee.routes = response.record_routes[:above][::-1]
        _retarget(dialog.callee, response)
        if response.status >= 200:
            self._dialogs.confirm(dialog, now)
            self._give_back()

    def end(self) -> None:
        """Note that no other answer can come (§12.3)."""
        self._dialogs.drop_early(self._mine.values())
        self._give_back()

    def _give_back(self) -> None:
        if self._waits:
            self._waits = False
            self._dialogs.hold(self._shares[:1], -1)

    def _new(self, tag: str, asked: Request, flow: Flow) -> ProxiedDialog | None:
        """The dialog of a phone that answers first now; at the limit an early one is dropped."""
        request, server = self._server.request, self._server
        if self._mine and not self._dialogs.has_room(self._shares):
            return None  # the first dialog takes the place of its request
        if len(self._mine) >= MAX_FORKS:
            early = [tag for tag, dialog in self._mine.items() if not dialog.confirmed]
            if not early:
                return None
            self._dialogs.drop_early([self._mine.pop(early[0])])
        from_, to = request.from_, request.to
        caller = Side(
            from_.uri,
            from_.tag or "",
            self._target,
            request.record_routes,
            server.flow,
            self._holder,
        )
        callee = Side(to.uri, tag, asked.uri, (), flow, host_of(flow))
        name = request.call_id, caller.tag, tag
        dialog = ProxiedDialog(name, self._holder, self._shares, request.method, caller, callee)
        if not self._dialogs.add(dialog):
            return None
        self._mine[tag] = dialog
        return dialog


class MidDialogRequest:
    """A request on its way within a dialog (§12.2)."""

    def __init__(
        self, dialogs: ProxiedDialogs, direction: DialogDirection, request: Request
    ) -> None:
        self._dialogs, self._direction, self._request = dialogs, direction, request

    def on_response(
        self, asked: Request, flow: Flow | None, response: Response, now: float
    ) -> None:
        """Take a response: it may refresh targets (§12.2.1.2), or end the dialog (§15.1.1)."""
        if 200 <= response.status < 300:
            self._dialogs.refresh(self._direction, self._request, response)
        is_final = response.status >= 200 and response.status not in (401, 407)
        if is_final and ends(self._request, self._direction.dialog.method):
            self._dialogs.fade(self._direction.dialog, now)  # or else it comes again: §22.2

    def end(self) -> None:
        """Do nothing: the dialog lasts beyond the request."""


def ends(request: Request, method: str) -> bool:
    """Whether a request ends the dialog that one of `method` began (§15.1, RFC 6665 §4.4.1)."""
    if method == "INVITE":
        return request.method == "BYE"
    state = request.headers.get("Subscription-State", "").partition(";")[0].strip().lower()
    return request.method == "NOTIFY" and state == "terminated"


def _retarget(side: Side, message: Request | Response) -> None:
    if message.contacts and not message.contacts[0].is_star:
        side.target = message.contacts[0].uri


def _state(message: Request | Response) -> int:
    """How many octets a dialog would keep of a message: §12.1."""
    target = len(str(message.uri)) if isinstance(message, Request) else 0
    return target + sum([len(text) for name, text in message.headers if name in _KEPT])
