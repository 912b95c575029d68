"""What a script asks of others outside of calls: OPTIONS, messages, subscriptions, transfers.

Implements RFC 3261 §8.1 from the user's side, RFC 3428 §4, RFC 6665 §4.1 and RFC 3515 §2.4.
"""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

import gevent
from gevent.event import AsyncResult, Event

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver
from p2psip.net.locator import destination
from p2psip.net.phone.call import Call, followed
from p2psip.net.phone.phone_registration import PhoneRegistration
from p2psip.net.ping import Ping
from p2psip.net.waiting import FinalAnswer, result_of
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.messages import TEXT, Messages
from p2psip.ua.outside import outside_request
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.requests.request_validation import SDP
from p2psip.ua.subscriptions import EventName as EventName
from p2psip.ua.subscriptions import Subscription
from p2psip.ua.transfers import Referral, status_of
from p2psip.ua.ua import UserAgent

# The types that notifications of the usual packages have, for the Accept of a SUBSCRIBE.
BODIES: Final = {
    "dialog": "application/dialog-info+xml",
    "message-summary": "application/simple-message-summary",
    "presence": "application/pidf+xml",
    "refer": "message/sipfrag",
}
log: Final = logging.getLogger(__name__)


class Watch:
    """A subscription of a script (RFC 6665 §4.1): ended by `close`, or by the other side.

    `reason` tells why it has ended ("" before).
    """

    def __init__(self, driver: SipDriver, on_notify: Callable[[str, bytes], object]) -> None:
        self.reason = ""
        self.subscription: Subscription
        self.first: AsyncResult[None] = AsyncResult()
        self._driver, self._on_notify = driver, on_notify
        self._over = Event()

    def close(self, timeout: float = 5.0) -> bool:
        """Unsubscribe; False if the other side does not confirm in time: RFC 6665 §4.1.2.3."""
        self._driver.run(self.subscription.end, monotonic())
        return self._over.wait(timeout)

    def wait_over(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if it has not come within `timeout` seconds."""
        return self._over.wait(timeout)

    # SubscriptionOwner

    def on_notify(
        self, subscription: Subscription, content_type: str, body: bytes, now: float
    ) -> None:
        """Pass a notification on: RFC 6665 §4.1.3."""
        if not self.first.ready():
            self.first.set(None)
        self._on_notify(content_type, body)

    def on_over(self, subscription: Subscription, status: int, reason: str, now: float) -> None:
        """Take the end: RFC 6665 §4.1.3."""
        self.reason = reason or str(status)
        if not self.first.ready():
            if status < 300:
                self.first.set(None)
            else:
                self.first.set_exception(RemoteError(reason, status))
        self._over.set()


class OutsideRequests(ABC):
    """The requests of a script outside of calls: §8.1."""

    contact: Uri
    aor: Address
    _registration: PhoneRegistration
    _driver: SipDriver
    _agents: UserAgent
    _messages: Messages
    _home: Uri

    def __init__(self) -> None:
        self.on_refer: Callable[[Address, Address], bool] = lambda target, sender: False
        self.on_referred: Callable[[Call], object] = lambda call: call.hangup()
        self.uses_gruus = False
        self._pings: list[Ping] = []

    @abstractmethod
    def _follow(self, referral: Referral) -> Call: ...

    @abstractmethod
    def _next_host(self, to: Uri) -> str: ...

    @abstractmethod
    def _sender_of(self, server: ServerHandle) -> Address: ...

    @abstractmethod
    def _contact_for(self, peer: str) -> Uri: ...

    @property
    def gruu(self) -> Uri | None:
        """The URI that leads to this agent from anywhere, None without one: RFC 5627 §4.2.

        It is the registrar's, and public: it shows the user.
        """
        return self._registration.gruu()

    def _reached_at(self, contact: Uri, *, private: bool = False) -> Uri:
        """The Contact of a dialog: a GRUU if there is one, else `contact` (RFC 5627 §4.4).

        Departs from RFC 5627 §4.4 [contact-is-a-gruu]: only with `uses_gruus`.  A registrar that
        gives GRUUs may stand beside a proxy that cannot route to them within a call, and the call
        would have no ACK: see Field §"GRUUs within a call".
        Departs from RFC 6665 §4.5.1 [gruu-as-target]: for the same reason.
        """
        # RFC 5627 §4.4 [contact-is-a-gruu]
        gruu = self._registration.gruu(private=private) if self.uses_gruus else None
        # RFC 3323 §4.1 [nothing-of-the-user] [uris-without-names], §4.1.1.2 [contact-without-user]
        return gruu or (contact.replace(user=None) if private else contact)

    def _contact_to(self, to: Uri) -> Uri:
        """Our Contact in a request for `to`: a SIPS URI where it goes to one (§8.1.1.8)."""
        contact = self._reached_at(self._contact_for(self._next_host(to)))
        schemes = (to.scheme, *(each.scheme for each in self._registration.route[:1]))
        transport, secure = to.param("transport"), "sips" in schemes
        return self._agents.stack.contact_by(contact, transport, secure=secure)

    def options(self, uri: str, timeout: float = 10.0) -> Response:
        """Ask a user or server for its capabilities, and return the answer: §11.1.

        Raises RemoteError with the SIP status if that is not a 2xx, TimeoutError, LocalError.
        """
        to = destination(uri, self._home)
        contact = self._contact_to(to.uri)
        # §11.1 [options-with-contact] [options-say-accept]
        headers = [("Contact", Address(contact)), ("Accept", SDP)]
        request = self._request("OPTIONS", to, headers)
        question = FinalAnswer()
        exchange = AuthenticatedRequest(
            self._agents.stack,
            question,
            iter(range(2, 100)).__next__,
            self._keyring,
            max_redirects=self._agents.core.max_redirects,
        )
        self._driver.run(exchange.send, request, monotonic())
        return result_of(question.answer, timeout, f"{to.uri.host} does not answer")

    def ping(
        self,
        uri: str,
        on_alive: Callable[[bool], object],
        *,
        every: float = 30.0,
        timeout: float = 10.0,
    ) -> Ping:
        """Ask a user or server every so many seconds whether it is there, by OPTIONS: §11.1.

        `on_alive(alive)` is told of the first result and of each change, until `Ping.close` or the
        end of the agent.  Raises LocalError for a `uri` that cannot be asked.
        """
        destination(uri, self._home)
        ping = Ping(lambda: self.options(uri, timeout), every, on_alive)
        self._pings.append(ping)
        return ping

    def message(
        self, uri: str, text: str | bytes, timeout: float = 30.0, *, content_type: str = TEXT
    ) -> Response:
        """Send an instant message, and wait until it is accepted: RFC 3428 §4.

        Raises RemoteError with the SIP status if it is refused, TimeoutError, LocalError for one
        that is too large.
        """
        body = text.encode() if isinstance(text, str) else text
        request = self._request("MESSAGE", destination(uri, self._home), (), body, content_type)
        question = FinalAnswer()
        self._driver.run(self._messages.send, request, question.heard, monotonic(), self._keyring)
        return result_of(question.answer, timeout, "the message was not answered")

    def subscribe(
        self,
        uri: str,
        event: str,
        on_notify: Callable[[str, bytes], object],
        timeout: float = 30.0,
        *,
        expires: int = 3600,
    ) -> Watch:
        """Subscribe to the events of a user, and wait for the first notification: RFC 6665 §4.1.

        `on_notify(content_type, body)` is called in the hub for each notification.  The
        subscription is refreshed until `Watch.close`.  Raises RemoteError with the SIP status if it
        is refused, TimeoutError, LocalError.
        """
        name = EventName.parse(event)
        # RFC 6665 §3.1.2
        fields: list[tuple[str, object]] = [("Event", name), ("Expires", expires)]
        if name.package in BODIES:
            fields.append(("Accept", BODIES[name.package]))
        return self._watch(
            "SUBSCRIBE", destination(uri, self._home), name, fields, on_notify, timeout
        )

    def refer(
        self,
        uri: str,
        target: str,
        timeout: float = 60.0,
        *,
        on_progress: Callable[[int, str], object] = lambda status, reason: None,
    ) -> None:
        """Ask a phone to call `target`, and wait until it has: RFC 3515 §2.4.

        `on_progress(status, reason)` is told of each response to the phone's call.  Raises
        RemoteError with the SIP status if the phone refuses or its call fails, TimeoutError.
        """
        result: AsyncResult[None] = AsyncResult()

        def heard(content_type: str, body: bytes) -> None:
            status, reason = status_of(content_type, body)
            on_progress(status, reason)
            if status >= 300:
                result.set_exception(RemoteError(reason, status))
            elif status >= 200:
                result.set(None)

        fields = [("Refer-To", destination(target, self._home)), ("Referred-By", self.aor)]
        name = EventName("refer", "1")
        self._watch("REFER", destination(uri, self._home), name, fields, heard, timeout)
        result_of(result, timeout, "the transfer was not finished")

    def _watch(
        self,
        method: str,
        to: Address,
        event: EventName,
        fields: Sequence[tuple[str, object]],
        on_notify: Callable[[str, bytes], object],
        timeout: float,
    ) -> Watch:
        contact = self._contact_to(to.uri)
        watch, now = Watch(self._driver, on_notify), monotonic()
        watch.subscription = Subscription(
            self._agents.core, watch, contact, event, now, keyring=self._keyring
        )
        # RFC 3515 §2 [one-contact] [outside-of-calls]
        request = self._request(method, to, [("Contact", Address(contact)), *fields])
        self._driver.run(watch.subscription.start, request, now)
        result_of(watch.first, timeout, f"{to.uri.host} does not notify us")
        return watch

    def _referred(self, server: ServerHandle, now: float) -> None:
        """Take a REFER outside of a call (RFC 3515 §2.4.2): see `Agent.on_refer`."""

        def allow(referral: Referral) -> None:
            if not self.on_refer(referral.target, self._sender_of(server)):
                raise RemoteError("Decline", 603)

        contact = self._reached_at(self._contact_for(server.flow.remote[0]))
        referral = self._agents.referred(server, contact, allow, now)
        gevent.spawn(self._hand_over, referral)

    def _hand_over(self, referral: Referral) -> None:
        call = followed(self._driver, self._follow, referral)
        if call is not None:
            self.on_referred(call)

    @property
    def _keyring(self) -> DigestClient | None:
        login = self._registration.login
        return DigestClient(login, os.urandom) if login else None

    def _request(
        self,
        method: str,
        to: Address,
        headers: Sequence[tuple[str, object]],
        body: bytes = b"",
        content_type: str = "",
    ) -> Request:
        request = outside_request(
            os.urandom,
            method,
            to,
            self.aor,
            route=self._registration.route,
            headers=headers,
            body=body,
            content_type=content_type,
        )
        return self._agents.core.signed(request)
