"""The registration of a phone, whose methods wait; what later requests owe to it.

Implements RFC 3261 §10.2 from the user's side, on `Registration`: the Contact, the route and the
credentials of all other requests follow from it (§8.1.1.8, §8.1.2, §22.2).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from gevent.event import AsyncResult

from p2psip.errors import RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver
from p2psip.net.locator import ServerLocator
from p2psip.net.phone.phone_core import MAX_REDIRECTS
from p2psip.net.waiting import Registered, result_of, wait_until
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.locate import is_numeric
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import HostPort
from p2psip.ua.registering.outbound_set import OutboundSet
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.digest_client import DigestClient, Login


@dataclass(frozen=True, slots=True)
class PhoneContacts:
    """The addresses of a phone's SIP sockets, by the peer that is to use one: §8.1.1.8.

    A phone of both address families asks `locator` which family a server has, None for one family.
    """

    stack: Stack
    user: str
    transport: str | None
    locator: ServerLocator | None

    def of_peer(self, host: str | None = None) -> Uri:
        """Our URI for a peer at this host, or for the usual one: §8.1.1.8."""
        return self.stack.contact(self.user, self.transport, host)

    def of_server(self, server: Uri) -> Uri:
        """Our URI in a REGISTER by a server: §10.2; may wait."""
        return self.of_peer(self.host_of(server))

    def host_of(self, server: Uri) -> str:
        """The host of a server, an address where we have both families; may wait."""
        if self.locator is None or is_numeric(server.host):
            return server.host
        flows = self.locator.flows(server)  # RFC 6157 §4 [both-families]
        return flows[0].remote[0] if flows else server.host


class PhoneRegistration:
    """The place of one user at one registrar: §10.2.

    `home` is the domain, `proxies` the servers that each lead there (RFC 5626 §4.2.1), and `login`
    what is proven to them.  With `uses_gruus` a GRUU of the registrar takes the place of `contacts`
    (RFC 5627 §4.4).
    """

    def __init__(
        self,
        driver: SipDriver,
        aor: Address,
        home: Uri,
        proxies: Sequence[Uri],
        login: Login | None,
        contacts: PhoneContacts,
        *,
        uses_gruus: bool = False,
    ) -> None:
        self._driver, self._aor, self._home = driver, aor, home
        self._proxies, self._own_login, self._contacts = proxies, login, contacts
        self._uses_gruus = uses_gruus
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

    @property
    def digest_client(self) -> DigestClient | None:
        """The answers to the challenges of our servers, None without a password: §22.2."""
        return DigestClient(self.login, os.urandom) if self.login else None

    def next_host(self, to: Uri) -> str:
        """The host that a request for `to` goes to first: §8.1.2; may wait."""
        return self._contacts.host_of((*self.route, to)[0])

    def contact_for(self, host: str, *, private: bool = False, secure: bool = False) -> Uri:
        """Our Contact in a dialog with a peer at this host: a GRUU if there is one (RFC 5627 §4.4).

        A `secure` dialog is one of SIPS URIs, and has no GRUU, since ours begin with sip
        (RFC 5630 §3.1.2).
        Departs from RFC 5627 §4.4 [contact-is-a-gruu]: only with `uses_gruus`.  A registrar that
        gives GRUUs may stand beside a proxy that cannot route to them within a call, and the call
        would have no ACK: see Field §"GRUUs within a call".
        Departs from RFC 6665 §4.5.1 [gruu-as-target]: for the same reason.
        """
        contact = self._contacts.of_peer(host)
        if self._uses_gruus and not secure and (gruu := self.gruu(private=private)):
            return gruu  # RFC 5627 §4.4 [contact-is-a-gruu]
        # RFC 3323 §4.1 [nothing-of-the-user] [uris-without-names], §4.1.1.2 [contact-without-user]
        return contact.replace(user=None) if private else contact

    def contact_to(self, to: Uri) -> Uri:
        """Our Contact in a request for `to`: a SIPS URI where it goes to one (§8.1.1.8)."""
        contact = self.contact_for(self.next_host(to))
        schemes = (to.scheme, *(each.scheme for each in self.route[:1]))
        transport, secure = to.param("transport"), "sips" in schemes
        return self._contacts.stack.contact_by(contact, transport, secure=secure)

    def register(self, timeout: float, expires: int) -> int:
        """Register until `forget`; the seconds granted (§10.2).  RemoteError, TimeoutError."""
        self.forget()
        granted = self._granted = AsyncResult()
        # §10.2.6 [domain-is-the-registrar]
        registration = OutboundSet(
            self._driver.stack,
            self._aor,
            self._contacts.of_server,
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
