"""What the calls and subscriptions of one user agent share: its dialogs, each with its usages.

Implements RFC 3261 §12.2, and RFC 5057 §4.

A request within a dialog goes to the usage that takes its method; the dialog lasts as long as any
usage of it, so that a subscription outlives the call it began in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import PeerAddresses
from p2psip.stack.stack import ServerHandle, Stack
from p2psip.transaction.flow import Flow
from p2psip.transaction.table import TimerQueue
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest, AuthenticatedRequestUser
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import RefusalError, warnings

# The requests that announce everything anew, as target refresh requests.  Source: §12.2
REFRESHING: Final = frozenset({"INVITE", "UPDATE"})


InviteKey = tuple[str, int, str, str]


class Usage(Protocol):
    """One use of a dialog (RFC 5057 §4): a call, or a subscription."""

    def __hash__(self) -> int: ...

    def tick(self, now: float) -> None:
        """Do what is due.  Own design: see `TimerQueue`."""

    def takes(self, request: Request) -> bool:
        """Whether a request within the dialog is for this usage (RFC 5057 §4.1)."""

    def on_alive(self, now: float) -> None:
        """Take that the peer has sent a request, for whichever usage (§12.2.2)."""

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request (§12.2.2); a RemoteError refuses it."""


@dataclass(eq=False)
class UserAgentCore:
    """The dialogs of one user agent, what is due in them, and how it behaves in all (§8.1, §8.2).

    The arguments are those of `UserAgent`.  `follows(request)` tells whether a request within a
    dialog may go where the other side wants it, if that side was never seen there: see
    `Stack.dialog_flows`; `bound(user, target, now)` the connections by which a user has registered
    `target`.  `calls` are those that have not ended, `invites` the
    keys of those received, `awaited` the subscriptions whose first NOTIFY has not come, by their
    Call-ID and our tag (RFC 6665 §4.4.1).
    """

    stack: Stack
    random: Callable[[int], bytes]
    answer_timeout: float
    nat: bool
    extensions: Extensions
    session_interval: int | None
    max_redirects: int
    bound: Callable[[Uri, Uri, float], Sequence[Flow]] = lambda user, target, now: ()
    follows: Callable[[Request], bool] = lambda request: True
    timer_queue: TimerQueue[Usage] = field(default_factory=TimerQueue)
    dialogs: "dict[DialogId, SharedDialog]" = field(default_factory=dict)
    calls: dict[Usage, None] = field(default_factory=dict)
    invites: set[InviteKey] = field(default_factory=set)
    awaited: dict[tuple[str, str], Usage] = field(default_factory=dict)

    def signed(self, request: Request) -> Request:
        """The request with the name of our software (§20.41)."""
        # §20.41 [name-is-a-choice]
        return request.replace(headers=request.headers.append("User-Agent", self.stack.user_agent))


class SharedDialog:
    """A dialog with its usages, the peer's places, and the answers to challenges (§12.2)."""

    def __init__(
        self,
        core: UserAgentCore,
        dialog: Dialog,
        peer_addresses: PeerAddresses,
        digest_client: DigestClient | None = None,
    ) -> None:
        self.dialog, self.peer_addresses, self.digest_client = dialog, peer_addresses, digest_client
        self.usages: list[Usage] = []
        self._core = core

    def attach(self, usage: Usage) -> None:
        """Begin a usage; the first one makes the dialog known (RFC 5057 §4.1)."""
        self.usages.append(usage)
        self._core.dialogs[self.dialog.id] = self

    def detach(self, usage: Usage) -> None:
        """End a usage; the last one ends the dialog (RFC 5057 §4.1)."""
        if usage in self.usages:
            self.usages.remove(usage)
        if not self.usages:  # §12.1.1 [kept-for-the-dialog], §12.1.2 [kept-for-the-dialog]
            self._core.dialogs.pop(self.dialog.id, None)

    # Requests of the peer

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request within the dialog (§12.2.2)."""
        self.peer_addresses.heard(request, server.flow)
        extensions = self._core.extensions
        try:
            self.dialog.check_order(request)  # §15.1.2 [bye-in-its-order]
            for usage in tuple(self.usages):
                usage.on_alive(now)
            if request.method not in extensions.methods:
                # §8.2 [in-this-order], §8.2.1 [405-for-others]
                raise RemoteError("Method Not Allowed", 405)
            if request.method == "OPTIONS":
                # §8.2.6.1 [final-at-once], §11 [takes-options]
                server.reply(200, now, headers=extensions.abilities(request))
            else:
                extensions.refuse_unknown(request)
                # §8.2.1 [looks-at-the-method]
                self._usage_of(request).on_request(server, request, now)
        except RefusalError as refusal:
            self.reply(server, refusal.status, now, refusal.headers, refusal.reason)
        except RemoteError as error:
            self.reply(
                server, error.status, now, warnings(error.status, error.reason), error.reason
            )

    def _usage_of(self, request: Request) -> Usage:
        for usage in self.usages:
            if usage.takes(request):
                return usage
        # RFC 6665 §4.1.3 [481-for-others]
        raise RemoteError("Call/Transaction Does Not Exist", 481)

    def reply(
        self,
        server: ServerHandle,
        status: int,
        now: float,
        headers: Sequence[tuple[str, object]] = (),
        reason: str | None = None,
    ) -> None:
        """Answer a request of the dialog; all but a 481 say what is allowed (§8.2.1)."""
        allow = [("Allow", self._core.extensions.allow)]  # §8.2.1 [405-says-allow]
        server.reply(status, now, reason, [*headers, *(allow if status != 481 else ())])

    # Requests to the peer

    def new_request(
        self, method: str, body: bytes = b"", content_type: str = "", contact: Uri | None = None
    ) -> Request:
        """The next request within the dialog; one that refreshes has a `contact` (§12.2.1.1)."""
        request = self.dialog.request(method, body, content_type)
        extensions = self._core.extensions
        headers = extensions.headers() if method in REFRESHING else extensions.supported()
        for name, value in headers:
            request = request.replace(headers=request.headers.append(name, value))
        request = self._core.signed(request)
        if contact is None:
            return request
        # §12.2.1.1 [refresh-has-a-contact] [same-contact] [sips-stays-sips]
        # RFC 5630 §5.1.1.2 [refresh-stays-sips], §5.1.2 [refresh-stays-sips]
        return request.replace(headers=request.headers.append("Contact", Address(contact)))

    def exchange(
        self, user: AuthenticatedRequestUser, request: Request, now: float
    ) -> AuthenticatedRequest:
        """Send a request within the dialog (§12.2.1.1); `user` hears the answer."""
        exchange = AuthenticatedRequest(
            self._core.stack, user, self.dialog.next_cseq, self.digest_client, self._dialog_flows
        )
        exchange.send(request, now)
        return exchange

    def send_ack(self, ack: Request, now: float) -> None:
        """Send the ACK of a 2xx, again for each repetition of that (§13.2.2.4)."""
        self._core.stack.send_ack(ack, now, self._dialog_flows(ack, now))

    def _dialog_flows(self, request: Request, now: float) -> Sequence[Flow] | None:
        """The flows to the peer, its own first (as in RFC 5626 §5.3), or None: §12.2.1.1."""
        core, known = self._core, self.peer_addresses
        bound = core.bound(self.dialog.remote.uri, self.dialog.target, now)
        return core.stack.dialog_flows(request, [*bound, *known.by], known.seen, core.follows)


def invite_key(invite: Request) -> InviteKey:
    """The parts that are equal in all copies of one request to one user (§8.2.2.2)."""
    return invite.call_id, invite.cseq.number, invite.from_.tag or "", str(invite.uri)
