"""Subscriptions of a script.

Implements RFC 6665 §4.1 from the user's side.
"""

from collections.abc import Callable
from typing import Final

from gevent.event import AsyncResult, Event

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.ua.core import UserAgentCore
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.subscriptions import EventName, Subscription

# The types that notifications of the usual packages have, for the Accept of a SUBSCRIBE.
BODIES: Final = {
    "dialog": "application/dialog-info+xml",
    "message-summary": "application/simple-message-summary",
    "presence": "application/pidf+xml",
    "refer": "message/sipfrag",
}


class Watch:
    """A subscription of a script (RFC 6665 §4.1); `reason` tells why it has ended ("" before)."""

    def __init__(self, driver: SipDriver, on_notify: Callable[[str, bytes], object]) -> None:
        self.reason = ""
        self.subscription: Subscription
        self.first: AsyncResult[None] = AsyncResult()
        self._driver, self._on_notify = driver, on_notify
        self._over = Event()

    def start(
        self,
        core: UserAgentCore,
        contact: Uri,
        event: EventName,
        digest_client: DigestClient | None,
        request: Request,
    ) -> None:
        """Send the SUBSCRIBE or REFER that begins it: RFC 6665 §4.1.2.1."""
        now = monotonic()
        self.subscription = Subscription(
            core, self, contact, event, now, digest_client=digest_client
        )
        self._driver.run(self.subscription.start, request, now)

    def close(self, timeout: float = 5.0) -> bool:
        """Unsubscribe; False if the other side does not confirm in time: RFC 6665 §4.1.2.3."""
        self._driver.run(self.subscription.end, monotonic())
        return self._over.wait(timeout)

    def wait_over(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if it has not come within `timeout` seconds."""
        return self._over.wait(timeout)

    # SubscriptionHandler

    def on_notify(
        self, subscription: Subscription, content_type: str, body: bytes, now: float
    ) -> None:
        if not self.first.ready():
            self.first.set(None)
        self._on_notify(content_type, body)

    def on_over(self, subscription: Subscription, status: int, reason: str, now: float) -> None:
        self.reason = reason or str(status)
        if not self.first.ready():
            if status < 300:
                self.first.set(None)
            else:
                self.first.set_exception(RemoteError(reason, status))
        self._over.set()
