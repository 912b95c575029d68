"""The trunks of the gateway: their registrations, and what the operator sees of them.

Own design: it connects `siprtmp.calls.trunks` to the SIP stack.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial

from p2psip.server.domains import Domains
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow, Stack
from p2psip.ua.registering.registration import Registration, State
from p2psip.ua.registering.registrations import Registrations
from p2psip.ua.requests.digest_client import Login
from siprtmp.calls.trunks import LINE_PARAM, Trunk, Trunks
from siprtmp.operation.logs import Log
from siprtmp.settings.trunks import TrunkSettings


class TrunkSide:
    """Registers each trunk of the settings at its provider, from `start` to `stop`."""

    def __init__(
        self,
        stack: Stack,
        registrations: Registrations,
        domains: Domains,
        is_here: Callable[[Uri, float], bool],
        settings: Sequence[TrunkSettings],
        log: Log,
    ) -> None:
        self._stack, self._registrations = stack, registrations
        made = []
        for number, each in enumerate(settings):
            token = f"trunk{number}"
            made.append(Trunk(each, partial(self._contact, each, token), token, log))
        self.trunks = Trunks(made, domains, is_here)

    def _contact(self, settings: TrunkSettings, token: str) -> Uri:
        """A Contact that leads the provider here; our public address may have changed meanwhile."""
        server = settings.server or settings.address
        transport = server.param("transport")
        contact = self._stack.contact(
            settings.address.user, transport and transport.upper(), server.host
        )
        return contact.with_params(**{LINE_PARAM: token})

    def start(self, now: float) -> None:
        for trunk in self.trunks.trunks:
            settings = trunk.settings
            if not settings.register:
                continue
            trunk.registration = registration = Registration(
                self._stack,
                Address(settings.address),
                trunk.contact(),
                settings.address,
                trunk,
                os.urandom,
                login=Login(settings.login or settings.address.user or "", settings.password),
                route=trunk.route,
                persistent=True,
                renew=settings.refresh,
            )
            self._registrations.add(registration)
            registration.start(now)

    def stop(self, now: float) -> None:
        for trunk in self.trunks.trunks:
            if trunk.registration is not None:
                trunk.registration.close(now)

    def is_at(self, host: str) -> bool:
        logins = [trunk.login for trunk in self.trunks.trunks if trunk.registration is not None]
        return any(host == place[0] for login in logins if login for place in login.addresses)

    def called(self, request: Request, flow: Flow) -> Uri | None:
        """Our Contact for a request to a trunk's own domain, from where the trunk is registered.

        Field §"Calls to the address itself".  A request in the name of a user of ours leaves by
        that domain instead.
        """
        uri, homes = request.uri, self.trunks.homes
        if request.method == "REGISTER" or homes is None or homes.of(request.from_.uri) is not None:
            return None
        for trunk in self.trunks.trunks:
            at, login = trunk.settings.address, trunk.login
            is_its = uri.host.lower() == at.host.lower() and uri.port in (None, at.port)
            if not is_its or login is None or trunk.registration is None:
                continue
            if any(flow.remote[0] == place[0] for place in login.addresses):
                return trunk.contact().replace(user=uri.user)
        return None

    def status(self) -> dict[str, object]:
        states = [trunk.state for trunk in self.trunks.trunks]
        return {"trunks": len(states), "trunks_registered": states.count(State.REGISTERED)}
