"""A dialog that several usages share: a call, and the subscriptions that its transfer began.

Implements RFC 3261 §12.2, and RFC 5057 §4.

A request within a dialog goes to the usage that takes its method; the dialog lasts as long as any
usage of it, so that a subscription outlives the call it began in.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from p2psip.dialog.dialog import Dialog
from p2psip.errors import RemoteError
from p2psip.sip.message import Request
from p2psip.stack.request_origin import Whereabouts
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import Flow
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest, AuthenticatedRequestUser
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.requests.request_validation import RefusalError, warnings

if TYPE_CHECKING:
    from p2psip.ua.ua import UserAgent


# The requests that announce everything anew, as target refresh requests.  Source: §12.2
REFRESHING: Final = frozenset({"INVITE", "UPDATE"})


class Usage(Protocol):
    """One use of a dialog (RFC 5057 §4): a call, or a subscription."""

    def takes(self, request: Request) -> bool:
        """Whether a request within the dialog is for this usage (RFC 5057 §4.1)."""

    def on_alive(self, now: float) -> None:
        """Take that the peer has sent a request, for whichever usage (§12.2.2)."""

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request (§12.2.2); a RemoteError refuses it."""


class SharedDialog:
    """A dialog with its usages, and the way to its peer (§12.2).

    `whereabouts` are the peer's places; `keyring` answers challenges.
    """

    def __init__(
        self,
        agent: "UserAgent",
        dialog: Dialog,
        whereabouts: Whereabouts,
        keyring: DigestClient | None = None,
    ) -> None:
        self.dialog, self.whereabouts, self.keyring = dialog, whereabouts, keyring
        self.usages: list[Usage] = []
        self._agent = agent

    def attach(self, usage: Usage) -> None:
        """Begin a usage; the first one makes the dialog known (RFC 5057 §4.1)."""
        self.usages.append(usage)
        self._agent.remember(self)

    def detach(self, usage: Usage) -> None:
        """End a usage; the last one ends the dialog (RFC 5057 §4.1)."""
        if usage in self.usages:
            self.usages.remove(usage)
        if not self.usages:  # §12.1.1 [kept-for-the-dialog], §12.1.2 [kept-for-the-dialog]
            self._agent.release(self)

    # Requests of the peer

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request within the dialog (§12.2.2)."""
        self.whereabouts.heard(request, server.flow)
        extensions = self._agent.extensions
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
            self.reply(server, error.status, now, warnings(error.status), error.reason)

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
        allow = [("Allow", self._agent.extensions.allow)]  # §8.2.1 [405-says-allow]
        server.reply(status, now, reason, [*headers, *(allow if status != 481 else ())])

    # Requests to the peer

    def new_request(self, method: str, body: bytes = b"", content_type: str = "") -> Request:
        """The next request within the dialog (§12.2.1.1)."""
        request = self.dialog.request(method, body, content_type)
        extensions = self._agent.extensions
        headers = extensions.headers() if method in REFRESHING else extensions.supported()
        for name, value in headers:
            request = request.replace(headers=request.headers.append(name, value))
        return self._agent.signed(request)

    def exchange(
        self, user: AuthenticatedRequestUser, request: Request, now: float
    ) -> AuthenticatedRequest:
        """Send a request within the dialog (§12.2.1.1); `user` hears the answer."""
        exchange = AuthenticatedRequest(
            self._agent.stack, user, self.dialog.next_cseq, self.keyring, self._ways
        )
        exchange.send(request, now)
        return exchange

    def send_ack(self, ack: Request, now: float) -> None:
        """Send the ACK of a 2xx, again for each repetition of that (§13.2.2.4)."""
        self._agent.stack.send_ack(ack, now, self._ways(ack, now))

    def _ways(self, request: Request, now: float) -> Sequence[Flow] | None:
        """The flows for a request to the peer, None to look them up as usual (§12.2.1.1).

        Connections that the peer has opened come first, as RFC 5626 §5.3 has it, and of these the
        ones it registered by.
        """
        agent, known = self._agent, self.whereabouts
        bound = agent.bound(self.dialog.remote.uri, self.dialog.target, now)
        return agent.stack.ways(request, [*bound, *known.by], known.seen, agent.follows)
