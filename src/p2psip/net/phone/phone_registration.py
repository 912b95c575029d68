"""The registration of a phone, whose methods wait; what later requests owe to it.

Implements RFC 3261 §10.2 from the user's side, on `Registration`.
"""

import os
from collections.abc import Callable, Sequence

from gevent.event import AsyncResult

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver
from p2psip.net.phone.phone_core import MAX_REDIRECTS
from p2psip.net.waiting import Registered, result_of, wait_until
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import HostPort
from p2psip.ua.registering.outbound_set import OutboundSet
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.digest_client import Login


class PhoneRegistration:
    """The place of one user at one registrar: §10.2.

    `home` is the domain, `proxies` the servers that each lead there (RFC 5626 §4.2.1), and `login`
    what is proven to them; `contact_at(server)` is our Contact for a server.
    """

    def __init__(
        self,
        driver: SipDriver,
        aor: Address,
        home: Uri,
        proxies: Sequence[Uri],
        login: Login | None,
        contact_at: Callable[[Uri], Uri],
    ) -> None:
        self._driver, self._aor, self._home = driver, aor, home
        self._proxies, self._own_login, self._contact_at = proxies, login, contact_at
        self._all = Registrations()
        driver.drive(self._all)
        self._current: OutboundSet | None = None
        self._granted: AsyncResult[int] = AsyncResult()

    @property
    def is_in_force(self) -> bool:
        """Whether the registrar has accepted, and not refused since: §10.2."""
        return self._current is not None and self._current.is_registered

    @property
    def login(self) -> Login | None:
        """The password, with all that is known of the server it belongs to: §22.1."""
        return self._own_login if self._current is None else self._current.current.login

    @property
    def route(self) -> Sequence[Uri]:
        """The servers that requests pass: ours, and those of the registrar (RFC 3608 §6.1)."""
        return self._proxies[:1] if self._current is None else self._current.route

    def gruu(self, *, private: bool = False) -> Uri | None:
        """A URI of the registrar's that leads here from anywhere: RFC 5627 §4.4."""
        if self._current is None:
            return None
        return self._current.current.gruu(monotonic(), private=private)

    def register(self, timeout: float, expires: int) -> int:
        """Register until `forget`, and return the seconds granted: §10.2.

        Raises RemoteError with the SIP status, TimeoutError.
        """
        self.forget()
        granted = self._granted = AsyncResult()
        # §10.2.6 [domain-is-the-registrar]
        registration = OutboundSet(
            self._driver.stack,
            self._aor,
            self._contact_at,
            self._home,
            Registered(granted),
            os.urandom,
            proxies=self._proxies,
            login=self._own_login,
            expires=expires,
            max_redirects=MAX_REDIRECTS,
        )
        self._current = registration
        for each in registration.flows:
            self._all.add(each)
        self._driver.run(registration.start, monotonic())
        try:
            return result_of(granted, timeout, "the registrar does not answer")
        except (RemoteError, TimeoutError):
            if self._current is registration:
                self.forget()
            raise

    def unregister(self, timeout: float) -> bool:
        """Remove the registration (§10.2.2); False if the registrar has not confirmed in time."""
        registration = self.forget()
        return registration is None or wait_until(lambda: not registration.pending, timeout)

    def forget(self) -> OutboundSet | None:
        """Begin to remove the registration, and return it: §10.2.2."""
        registration, self._current = self._current, None
        if registration is not None:
            self._driver.run(registration.close, monotonic())
            for each in registration.flows:
                self._all.discard(each)
            if not self._granted.ready():
                self._granted.set_exception(RemoteError("Request Terminated", 487))
        return registration

    def move(self, address: HostPort) -> None:
        """Register anew from this address, which a router has given us: RFC 8489 §2."""
        self._driver.run(self._all.move, *address, monotonic())
