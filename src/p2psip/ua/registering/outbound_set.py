"""The registrations of one user over several outbound proxies, so that one of them may fail.

Implements RFC 5626 §4.2.1 and §4.5.

Each proxy of the set has a flow with a registration of its own, made and kept by `Registration`;
the registrar calls us by one flow at a time.  Requests of ours go by the first flow that stands.
A set without proxies is one registration, at the registrar itself.
"""

from collections.abc import Callable, Sequence
from functools import partial

from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Stack
from p2psip.ua.registering.registration import (
    DEFAULT_EXPIRES,
    Registration,
    RegistrationHandler,
    State,
    new_instance,
)
from p2psip.ua.requests.digest_client import Login


class OutboundSet:
    """Keeps `aor` registered at `registrar` by each of `proxies`: RFC 5626 §4.2.1.

    `contact_at(server)` is our Contact for a server; the other arguments are those of a
    `Registration`.  Each of `flows` has to be driven.  The owner is told when the first of them is
    registered, and when the last one has failed.
    """

    def __init__(
        self,
        stack: Stack,
        aor: Address,
        contact_at: Callable[[Uri], Uri],
        registrar: Uri,
        handler: RegistrationHandler,
        random: Callable[[int], bytes],
        *,
        proxies: Sequence[Uri] = (),
        login: Login | None = None,
        expires: int = DEFAULT_EXPIRES,
        instance: str = "",
        max_redirects: int = 0,
    ) -> None:
        self._handler, self._is_up = handler, False
        instance = instance or new_instance(random)
        # RFC 5626 §4.2.1 [sets-of-two]
        self._registrations: list[tuple[Uri, ...]] = [(proxy,) for proxy in proxies] or [()]
        numbered = enumerate(self._registrations, 1)  # RFC 5626 §4.2.1 [same-reg-ids]
        self.flows = tuple(
            Registration(
                stack,
                aor,
                contact_at(way[0] if way else registrar),
                registrar,
                self,
                random,
                login=login,
                expires=expires,
                route=way,
                instance=instance,
                max_redirects=max_redirects,
                reg_id=number,
                others_stand=partial(self._others_stand, number) if len(proxies) > 1 else None,
            )
            for number, way in numbered
        )

    @property
    def current(self) -> Registration:
        """The first that stands, else the first.  Own design: in the operator's order."""
        return next((each for each in self.flows if each.stands), self.flows[0])

    @property
    def is_registered(self) -> bool:
        """Whether the registrar has accepted any of them, and not refused it since: §4.2.1."""
        return any(each.state is State.REGISTERED for each in self.flows)

    @property
    def pending(self) -> bool:
        """Whether a REGISTER waits for its answer: RFC 3261 §10.2."""
        return any(each.pending for each in self.flows)

    @property
    def route(self) -> list[Uri]:
        """The proxies that requests pass: RFC 3261 §8.1.2, and the registrar's: RFC 3608 §6.1."""
        flow = self.current
        return flow.route(self._registrations[self.flows.index(flow)])

    def start(self, now: float) -> None:
        """Send the first REGISTER by each proxy: §4.2.1."""
        for each in self.flows:
            each.start(now)  # RFC 5626 §4.2.1 [registers-by-each] [registers-by-two]

    def close(self, now: float) -> None:
        """Take all of them back, and report nothing more: RFC 3261 §10.2.2."""
        for each in self.flows:
            each.close(now)

    def _others_stand(self, number: int) -> bool:
        return any(each.stands for at, each in enumerate(self.flows, 1) if at != number)

    # RegistrationHandler

    def on_registered(self, registration: Registration, expires: int, now: float) -> None:
        """Tell the owner of the first one that is accepted: RFC 3261 §10.2.4."""
        if not self._is_up:
            self._is_up = True
            self._handler.on_registered(registration, expires, now)

    def on_failed(self, registration: Registration, status: int, reason: str, now: float) -> None:
        """Tell the owner of the last one that has failed: RFC 3261 §10.2.7."""
        if all(each.state is State.FAILED for each in self.flows):
            self._is_up = False
            self._handler.on_failed(registration, status, reason, now)
