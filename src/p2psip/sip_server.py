"""A registrar and proxy for the phones of a domain, in one call.

Implements RFC 3261 §10.3 and §16 at the sockets.

    with SipServer(domains=["example.com"], users=UserStore.parse(text)) as server:
        print(*server.listeners)
        server.serve_forever()
"""

import os
from collections.abc import Sequence
from signal import SIGINT, SIGTERM
from typing import Final, Self

import gevent
from gevent.event import Event

from p2psip.errors import LocalError
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.locator import ServerLocator
from p2psip.net.tls import TlsContexts
from p2psip.server.domain_server import DomainServer, DomainSettings
from p2psip.server.judge import Lenient
from p2psip.server.location import SharedLocation
from p2psip.server.users import UserStore
from p2psip.stack.routing import WILDCARDS, Listener, is_loopback
from p2psip.transaction.flow import HostPort

LOOPBACK: Final = ("127.0.0.1", 5060)


class SipServer:
    """Registers the phones of some domains, and forwards requests to them: §10.3, §16.

    `sip` are the addresses for UDP and TCP, `sips` for TLS, which needs `tls`, and `ws` for
    WebSocket; port 0 takes a free one.  Each is one address of this machine, which phones are
    told.  `domains` are names that users belong to, the addresses themselves if there are none.
    Without `users` anybody may register as anybody, so every address must be on loopback.
    Bindings end with the process unless `location` keeps them.  With `nat` a phone is reached at
    the address that it registers from.  `judge` may refuse requests and change their targets.
    Raises LocalError, and OSError as `bind` does.
    """

    def __init__(
        self,
        sip: Sequence[HostPort] = (LOOPBACK,),
        *,
        sips: Sequence[HostPort] = (),
        ws: Sequence[HostPort] = (),
        domains: Sequence[str] = (),
        users: UserStore | None = None,
        location: SharedLocation | None = None,
        tls: TlsContexts | None = None,
        nat: bool = False,
        judge: Lenient | None = None,
        user_agent: str = "p2psip",
    ) -> None:
        hosts = list(dict.fromkeys(host for host, _ in (*sip, *sips, *ws)))
        _check(hosts, users)
        if sips and tls is None:
            raise LocalError("TLS needs a certificate")
        self._location, self._stopped = location, Event()
        first, *also = sip
        ports = SipPorts(*first, also=also, sips=sips, ws=ws)
        self.listeners: tuple[Listener, ...] = ports.listeners
        settings = DomainSettings(
            listeners=self.listeners,
            domains=domains,
            distinct=bool(domains),
            nat=nat,
            user_agent=user_agent,
        )
        server = DomainServer(settings, os.urandom, users=users, location=location)
        if judge is not None:
            server.element.judge = judge
        self._server = server
        self._verifier, self.names = server.verifier, server.domains.names
        locate = ServerLocator(transports=ports.transports).flows
        self._driver = SipDriver(server.stack, ports, locate=locate, tls=tls)
        self._driver.serve(server)

    @property
    def users(self) -> UserStore | None:
        """The users and the hashes of their passwords; others may take their place at any time."""
        return None if self._verifier is None else self._verifier.users

    @users.setter
    def users(self, users: UserStore) -> None:
        if self._verifier is None:
            raise LocalError("a server that began without users cannot get any")
        self._verifier.users = users

    @property
    def is_quiet(self) -> bool:
        """Whether no request is under way, and no dialog passes through.  Own design."""
        return not (self._server.stack.transactions or len(self._server.proxy.dialogs))

    def serve_forever(self) -> None:
        """Serve until SIGINT or SIGTERM comes, or `close` is called.  Own design."""
        watchers = [gevent.signal_handler(each, self._stopped.set) for each in (SIGINT, SIGTERM)]
        try:
            self._stopped.wait()
        finally:
            for watcher in watchers:
                watcher.cancel()

    def close(self) -> None:
        """Close the sockets; a second call does nothing.  Own design."""
        self._stopped.set()
        self._driver.close()
        if self._location is not None:
            self._location.close()
            self._location = None

    def __enter__(self) -> Self:
        """It serves already."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()


def _check(hosts: Sequence[str], users: UserStore | None) -> None:
    for host in hosts:
        if host in WILDCARDS:
            raise LocalError(f"{host}: name one address, which phones are told")
        if users is None and not is_loopback(host):
            raise LocalError(f"{host} can be reached from other machines: it needs users")
