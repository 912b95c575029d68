"""A registrar and proxy for the phones of a domain, in one call.

Implements RFC 3261 §10.3 and §16 at the sockets.

    with SipServer(domains=["example.com"], users=UserStore.parse(text)) as server:
        print(*server.listeners)
        server.serve_forever()
"""

import os
from collections.abc import Callable, Sequence
from signal import SIGINT, SIGTERM
from typing import Final, Protocol, Self

import gevent
from gevent.event import Event

from p2psip.errors import LocalError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.net.locator import ServerLocator
from p2psip.net.tls import TlsContexts
from p2psip.server.digest_server import DigestServer
from p2psip.server.domains import Aor, Domains
from p2psip.server.element import SipElement
from p2psip.server.judge import Judge
from p2psip.server.location import Binding, LocationStore
from p2psip.server.proxy import Proxy
from p2psip.server.registrar import Registrar
from p2psip.server.users import UserStore
from p2psip.stack.routing import WILDCARDS, Listener, is_loopback
from p2psip.stack.stack import Stack
from p2psip.transaction.flow import HostPort
from p2psip.ua.ua import UserAgent

LOOPBACK: Final = ("127.0.0.1", 5060)


class SharedLocation(LocationStore, Protocol):
    """A place for bindings outside this process, as `SqliteLocation` and `RedisLocation` are."""

    def follow(self, adopt: Callable[[Aor, Sequence[Binding], float], Sequence[Binding]]) -> None:
        """Tell of bindings that others have changed."""

    def close(self) -> None:
        """Write what is left."""


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
        judge: Judge | None = None,
        user_agent: str = "p2psip",
    ) -> None:
        hosts = list(dict.fromkeys(host for host, _ in (*sip, *sips, *ws)))
        _check(hosts, users)
        if sips and tls is None:
            raise LocalError("TLS needs a certificate")
        self._verifier = None if users is None else DigestServer(users, os.urandom)
        self._location, self._stopped = location, Event()
        first, *also = sip
        ports = SipPorts(*first, also=also, sips=sips, ws=ws)
        self.listeners: tuple[Listener, ...] = ports.listeners
        self.names = list(domains) or hosts
        stack = Stack(
            random=os.urandom, listeners=self.listeners, hosts=domains, user_agent=user_agent
        )
        served = Domains(self.names, stack.is_own_address, distinct=bool(domains))
        registrar = Registrar(served, self._verifier, stack, os.urandom, store=location, nat=nat)
        ua, proxy = UserAgent(stack, random=os.urandom), Proxy(stack)
        SipElement(
            stack, ua, registrar, proxy, served, verifier=self._verifier, nat=nat, judge=judge
        )
        locate = ServerLocator(transports=ports.transports).flows
        self._driver = driver = SipDriver(stack, ports, locate=locate, tls=tls)
        driver.machines += [ua, proxy]
        driver.run(registrar.restore, monotonic())
        if location is not None:
            location.follow(registrar.adopt)
        driver.keep(
            lambda flow: registrar.keeps(flow, monotonic()) or proxy.dialogs.keeps(flow),
            lambda flow, silence: registrar.is_dead(flow, silence, monotonic()),
        )

    @property
    def users(self) -> UserStore | None:
        """The users and the hashes of their passwords; others may take their place at any time."""
        return None if self._verifier is None else self._verifier.users

    @users.setter
    def users(self, users: UserStore) -> None:
        if self._verifier is None:
            raise LocalError("a server that began without users cannot get any")
        self._verifier.users = users

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
