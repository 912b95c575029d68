"""Subscriptions within dialogs: those that we have asked for, and those that we serve.

Implements RFC 6665 §4.1 and §4.2, and RFC 3515 §2.4.4 where a REFER begins one.

Not done: RFC 6665 §6.5 [whole-subscribe] [whole-notify]: there is no S/MIME here; where TLS is used
it protects each hop.
Not done: RFC 6665 §6.6 [reads-encrypted]: for the same reason.
"""

from collections.abc import Callable
from typing import Final, Protocol

from p2psip.dialog.dialog import Dialog
from p2psip.dialog.subscription import Do, Notifier, State, Subscriber, SubscriptionState
from p2psip.dialog.subscription import EventName as EventName
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import PeerAddresses
from p2psip.stack.stack import ServerHandle
from p2psip.ua.core import SharedDialog, UserAgentCore
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.requests.request_validation import refuse_accept

# Answers to a SUBSCRIBE or NOTIFY that end the subscription.
# Source: RFC 6665 §4.1.2.2 and §4.2.2; and 408 for silence
ENDING: Final = frozenset({404, 405, 408, 410, 416, *range(480, 486), 489, 501, 604})
REFER: Final = "refer"  # the package that only a REFER begins: RFC 3515 §2.4.4
NO_NOTIFY: Final = "no NOTIFY"
EXPIRES: Final = 3600  # s, our wish


class SubscriptionHandler(Protocol):
    """Receives the events of a subscription that we have asked for (RFC 6665 §4.1.3)."""

    def on_notify(
        self, subscription: "Subscription", content_type: str, body: bytes, now: float
    ) -> None:
        """Take what a NOTIFY tells (RFC 6665 §4.1.3); a RemoteError refuses it."""

    def on_over(self, subscription: "Subscription", status: int, reason: str, now: float) -> None:
        """Take the end (RFC 6665 §4.1.3): a status, 200 with the notifier's own reason."""


class Subscription:
    """A subscription that we have asked for, by SUBSCRIBE or REFER (RFC 6665 §4.1)."""

    def __init__(
        self,
        core: UserAgentCore,
        handler: SubscriptionHandler,
        contact: Uri,
        event: EventName,
        now: float,
        *,
        digest_client: DigestClient | None = None,
        expires: int = EXPIRES,
    ) -> None:
        self.event, self._expires = event, expires
        self._core, self._handler, self._contact, self._digest_client = (
            core,
            handler,
            contact,
            digest_client,
        )
        self._machine = Subscriber(now, t1=core.stack.t1)
        self._peer_addresses = PeerAddresses(nat=core.nat)
        self._cseq = 1
        self._shared: SharedDialog | None = None
        self._request: Request
        self._exchange: AuthenticatedRequest

    @property
    def state(self) -> State:
        """The state, a box in the figure of RFC 6665 §4.1.2."""
        return self._machine.state

    @property
    def _names(self) -> tuple[str, str]:
        """The Call-ID and our tag, by which the first NOTIFY is found (RFC 6665 §4.4.1)."""
        return self._request.call_id, self._request.from_.tag or ""

    def start(self, request: Request, now: float) -> None:
        """Send the SUBSCRIBE or REFER that begins it, outside of a dialog (RFC 6665 §4.1.2.1)."""
        self._request = request
        self._core.awaited[self._names] = self
        self._exchange = AuthenticatedRequest(
            self._core.stack,
            self,
            self._next_cseq,
            self._digest_client,
            max_redirects=self._core.max_redirects,
        )
        self._exchange.send(request, now)
        self._core.timer_queue.set(self, self.deadline)

    def join(self, shared: SharedDialog, request: Request, now: float) -> None:
        """Send the REFER that begins it, within a dialog (RFC 3515 §2.4.4)."""
        self._request, self._shared = request, shared
        shared.attach(self)
        self._exchange = shared.exchange(self, request, now)
        self._core.timer_queue.set(self, self.deadline)

    def end(self, now: float) -> None:
        """Unsubscribe (RFC 6665 §4.1.2.3); the last NOTIFY follows."""
        self._expires = 0
        if self._machine.is_up:
            self._subscribe(now)

    def _next_cseq(self) -> int:
        self._cseq += 1
        return self._cseq

    def _subscribe(self, now: float) -> None:
        """Send a SUBSCRIBE within the dialog (RFC 6665 §4.1.2.2)."""
        assert self._shared is not None
        request = self._shared.new_request("SUBSCRIBE", contact=self._contact)
        # RFC 6665 §3.1.1 [subscribe-has-expires], §3.1.2 [one-event], §4.5.2 [same-id-again]
        headers = request.headers.append("Event", self.event).append("Expires", self._expires)
        self._machine.asked(now)
        self._shared.exchange(self, request.replace(headers=headers), now)

    # AuthenticatedRequestUser

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take the answer to a SUBSCRIBE or REFER (RFC 6665 §4.1.2.2)."""
        self._peer_addresses.answered(exchange.answered_by)
        is_accepted, shared = 200 <= response.status < 300, self._shared
        if is_accepted and exchange is not self._exchange and shared is not None:
            shared.dialog.refresh(response)  # RFC 3261 §12.2.1.2 [2xx-moves-the-target]
        if is_accepted:  # RFC 6665 §8.3.1 [202-is-200]
            return
        if response.status < 200 or (self._machine.is_up and response.status not in ENDING):
            return
        if self._machine.refused(now):
            self._over(response.status, response.reason, now)

    # Usage

    def takes(self, request: Request) -> bool:
        """Whether a request is a NOTIFY of this subscription (RFC 6665 §4.1.3)."""
        if request.method != "NOTIFY":
            return False
        event = EventName.parse(request.headers.get("Event", ""))
        if event.package != self.event.package:
            return False
        if event.package == REFER:
            # RFC 3515 §2.4.6: the number of the REFER as it was accepted, which may have been
            # challenged before; it may be left out by the first one
            return event.id in ("", str(self._exchange.request.cseq.number))
        return event.id == self.event.id

    def on_alive(self, now: float) -> None:
        """Do nothing.  Own design: a subscription lasts as long as its time."""

    def _begin(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take the NOTIFY that makes the dialog (RFC 6665 §4.4.1)."""
        self._core.awaited.pop(
            self._names, None
        )  # a second notifier of a forked SUBSCRIBE gets 481
        dialog = Dialog.of_server(request, "")
        dialog.local_cseq, dialog.remote_cseq = self._cseq, None  # the NOTIFY is still to be taken
        dialog.confirmed = True
        self._shared = SharedDialog(self._core, dialog, self._peer_addresses, self._digest_client)
        self._shared.attach(self)
        self._shared.on_request(server, request, now)

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a NOTIFY (RFC 6665 §4.1.3)."""
        if self._shared is None:
            self._begin(server, request, now)
            return
        told = SubscriptionState.parse(request.headers.get("Subscription-State", ""))
        if request.contacts:
            self._shared.dialog.refresh(request)  # RFC 3261 §12.2.2 [contact-moves-the-target]
        if request.body:
            self._handler.on_notify(self, request.content_type, request.body, now)
        # RFC 6665 §4.1.3 [200-at-once] [waits-for-nobody], §8.3.1 [200-not-202]
        server.reply(200, now)
        for do in self._machine.heard(told, now):
            if do is Do.OVER:
                self._over(200, told.reason, now)
        self._core.timer_queue.set(self, self.deadline)

    # Time

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (RFC 6665 §4.1.2)."""
        return self._machine.deadline

    def tick(self, now: float) -> None:
        """Refresh the subscription, or give it up (RFC 6665 §4.1.2.2, §4.1.2.4)."""
        for do in self._machine.tick(now):
            if do is Do.REFRESH:
                if self.event.package != REFER:  # which lasts as long as the peer takes
                    self._subscribe(now)
            else:
                self._over(408, NO_NOTIFY, now)
        self._core.timer_queue.set(self, self.deadline)

    def _over(self, status: int, reason: str, now: float) -> None:
        self._core.awaited.pop(self._names, None)
        if self._shared is not None:
            self._shared.detach(self)
        self._core.timer_queue.set(self, None)
        self._handler.on_over(self, status, reason, now)


class ServedSubscription:
    """A subscription that we serve (RFC 6665 §4.2): its state is told by `tell`.

    One NOTIFY at a time is under way; of states that change meanwhile the last one follows.
    `on_over(self)` is called at the end, and before that `free`, which gives its place back.
    """

    def __init__(
        self,
        core: UserAgentCore,
        shared: SharedDialog,
        contact: Uri,
        event: EventName,
        expires: int,
        now: float,
        free: Callable[[], object] = lambda: None,
    ) -> None:
        self.event, self._free = event, free
        self.on_over: Callable[[ServedSubscription], object] = lambda subscription: None
        self._core, self._shared, self._contact = core, shared, contact
        self._machine = Notifier(expires, now)
        self._body: tuple[str, bytes] = ("", b"")
        self._exchange: AuthenticatedRequest | None = None
        self._is_stale = False
        shared.attach(self)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is told (RFC 6665 §4.2.2)."""
        return self._machine.state is State.TERMINATED

    def tell(self, content_type: str, body: bytes, now: float, *, last: str | None = None) -> None:
        """Send the state in a NOTIFY (RFC 6665 §4.2.2); `last` is the reason for the end."""
        if self.is_over:
            return
        self._body = content_type, body
        self._machine.accept()
        if last is not None:
            self._machine.end(last)
        self._notify(now)

    def _notify(self, now: float) -> None:
        self._is_stale = self._exchange is not None and not self._exchange.done
        if self._is_stale:
            return
        content_type, body = self._body
        request = self._shared.new_request("NOTIFY", body, content_type, self._contact)
        # RFC 3515 §2.4.4 [event-refer], §2.4.6 [id-of-the-refer]
        # RFC 6665 §3.2.1 [one-event] [same-event], §4.5.2 [id-in-notify]
        headers = request.headers.append("Event", self.event)
        # RFC 6665 §4.1.3 [says-the-state]
        headers = headers.append("Subscription-State", self._machine.header(now))
        self._exchange = self._shared.exchange(self, request.replace(headers=headers), now)
        self._core.timer_queue.set(self, self.deadline)

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take the answer to a NOTIFY (RFC 6665 §4.2.2)."""
        if response.status < 200:
            return
        if response.status < 300:
            self._shared.dialog.refresh(response)  # RFC 3261 §12.2.1.2 [2xx-moves-the-target]
        if response.status in ENDING:
            # RFC 6665 §4.2.2 [removed-without-an-answer] [removed-when-refused]
            self._machine.end("noresource")
            self._is_stale = False
        if self._is_stale:
            self._notify(now)
        elif self.is_over:
            self._shared.detach(self)
            self._core.timer_queue.set(self, None)
            self._free()
            self.on_over(self)

    def takes(self, request: Request) -> bool:
        """Whether a request is a SUBSCRIBE for this subscription (RFC 6665 §4.2.1.4)."""
        if request.method != "SUBSCRIBE":
            return False
        return EventName.parse(request.headers.get("Event", "")) == self.event

    def on_alive(self, now: float) -> None:
        """Do nothing.  Own design: a subscription lasts as long as its time."""

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a new SUBSCRIBE, which refreshes or ends it (RFC 6665 §4.2.1.4)."""
        if self.is_over:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        if self._body[0]:
            refuse_accept(request, self._body[0])  # RFC 6665 §3.2.1 [body-as-accepted]
        expires = min(EXPIRES if request.expires is None else request.expires, EXPIRES)
        self._shared.dialog.refresh(request)  # RFC 3261 §12.2.2 [contact-moves-the-target]
        self._machine.refresh(expires, now)
        # RFC 6665 §4.2.1.4 [no-longer-than-asked], §3.1.1 [200-has-expires], §8.3.1 [200-not-202]
        server.reply(200, now, None, [("Expires", expires), ("Contact", Address(self._contact))])
        self._notify(now)  # RFC 6665 §4.2.1.2 [notifies-at-once], §4.2.2 [notifies-at-once]

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (RFC 6665 §4.2.1.4)."""
        return self._machine.deadline

    def tick(self, now: float) -> None:
        """End it when its time is over (RFC 6665 §4.2.1.4)."""
        if self._machine.tick(now):
            self._notify(now)  # RFC 6665 §4.2.1.4 [says-that-it-ends]
        self._core.timer_queue.set(self, self.deadline)
