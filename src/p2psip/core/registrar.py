"""The registrar: where each address-of-record can be reached, and until when.

Implements RFC 3261 §10.3.

A location service in memory.  Bindings die by themselves; nothing has to tick.

Not done: RFC 3261 §10.3: no Date in the 200, since no machine here knows the time of day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from p2psip.core.domains import Aor, Domains
from p2psip.core.screening import RefusalError, refuse_extensions
from p2psip.core.servers import ServerHandle
from p2psip.core.verifier import Verifier
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri, equivalent
from p2psip.sip.views import seconds
from p2psip.transaction.flow import LOCAL, Flow

DEFAULT_EXPIRES: Final = 3600  # s: §10.3 step 7 leaves it to us, §10.2 names an hour
MIN_EXPIRES: Final = 30  # s, shorter ones are refused with 423
MAX_EXPIRES: Final = 7200  # s, longer ones are shortened
MAX_BINDINGS: Final = 10  # of one address-of-record
MAX_USERS: Final = 10_000
MAX_CONTACT: Final = 1024  # octets of one Contact with all its parameters


@dataclass(frozen=True, slots=True)
class Binding:
    """One place a user can be reached: §10.3.  `expires_at` is in seconds, as `now` is.

    `flow` is where the REGISTER came from; a connection is the way back as well.
    """

    contact: Address
    flow: Flow
    call_id: str
    cseq: int
    expires_at: float

    @property
    def q(self) -> float:
        """The user's preference among contacts, 0 to 1: §20.10."""
        try:
            q = float(self.contact.param("q") or 1.0)
        except ValueError:
            return 1.0
        return q if 0.0 <= q <= 1.0 else 1.0

    def way(self, *, nat: bool) -> list[Flow]:
        """The flow to reach it by before its Contact is followed, if there is one.

        RFC 5626 §5.3 in spirit: a connection the phone opened is the only sure way to it.
        With `nat` that holds for UDP too.
        """
        is_way = self.flow.transport != LOCAL and (self.flow.reliable or nat)
        return [self.flow] if is_way else []


class Registrar:
    """Registrations of one element's domains.

    §10.3.  Without a `verifier` everybody may register as anybody.
    """

    def __init__(
        self,
        domains: Domains,
        verifier: Verifier | None,
        *,
        max_bindings: int = MAX_BINDINGS,
        max_users: int = MAX_USERS,
    ) -> None:
        self._domains, self._verifier = domains, verifier
        self._max_bindings, self._max_users = max_bindings, max_users
        self._bindings: dict[Aor, list[Binding]] = {}

    def on_register(self, server: ServerHandle, request: Request, now: float) -> None:
        """Answer a REGISTER: §10.3, step by step.  Raises RemoteError to refuse it."""
        refuse_extensions(request)
        aor = self._domains.address_of_record(request.to.uri)
        if aor is None or not aor[0]:
            raise RemoteError("Not Found", 404)
        if self._verifier is not None:
            challenges = self._verifier.demand(request, aor, self._domains, now, proxy=False)
            if challenges:
                server.reply(401, now, headers=challenges)
                return
        if request.contacts:
            self._update(aor, request, server.flow, now)
        self._confirm(server, aor, now)

    def bindings(self, uri: Uri, now: float) -> list[Binding]:
        """Who answers for `uri` now, the preferred first: §16.5.  Empty for strangers."""
        aor = self._domains.address_of_record(uri)
        alive = self._alive(aor, now) if aor else []
        return sorted(alive, key=lambda binding: -binding.q)

    def everything(self, now: float) -> list[tuple[Aor, Binding]]:
        """All bindings that are alive, with their address-of-record.

        Own design: for the operator.
        """
        self._sweep(now)
        return [(aor, each) for aor, bindings in self._bindings.items() for each in bindings]

    def remove(self, aor: Aor, binding: Binding, now: float) -> None:
        """Forget a binding.  Own design: the operator's wish, as if it had expired."""
        kept = [each for each in self._alive(aor, now) if each is not binding]
        self._store(aor, kept)

    def count(self, now: float) -> int:
        """How many bindings are alive.  Own design: for the status page."""
        self._sweep(now)
        return sum(map(len, self._bindings.values()))

    def keeps(self, flow: Flow) -> bool:
        """Whether a binding is reached by this connection.  RFC 5626 §5.3 in spirit."""
        return any(binding.flow == flow for known in self._bindings.values() for binding in known)

    def _update(self, aor: Aor, request: Request, flow: Flow, now: float) -> None:
        """All changes or none: §10.3 steps 6 and 7."""
        old = self._alive(aor, now)
        new = [] if _is_clear_all(request) else list(old)
        for binding in old if _is_clear_all(request) else ():
            _check_order(binding, request)
        for contact, expires in _wishes(request):
            for known in [b for b in new if equivalent(b.contact.uri, contact.uri)]:
                if known in old:
                    _check_order(known, request)
                new.remove(known)
            if expires:
                until = now + expires
                new.append(Binding(contact, flow, request.call_id, request.cseq.number, until))
        if len(new) > self._max_bindings:
            raise RemoteError("Too Many Contacts", 403)
        if aor not in self._bindings and new and len(self._bindings) >= self._max_users:
            self._sweep(now)
            if len(self._bindings) >= self._max_users:
                raise RemoteError("Service Unavailable", 503)
        self._store(aor, new)

    def _confirm(self, server: ServerHandle, aor: Aor, now: float) -> None:
        """Tell all bindings there are: §10.3 step 8."""
        contacts = [
            ("Contact", binding.contact.with_param("expires", str(_left(binding, now))))
            for binding in self._alive(aor, now)
        ]
        response = response_to(server.request, 200, to_tag=server.to_tag, headers=contacts)
        server.respond(response, now)

    def _alive(self, aor: Aor, now: float) -> list[Binding]:
        known = self._bindings.get(aor, [])
        alive = [binding for binding in known if binding.expires_at > now]
        if len(alive) != len(known):
            self._store(aor, alive)
        return alive

    def _store(self, aor: Aor, bindings: list[Binding]) -> None:
        self._bindings.pop(aor, None)
        if bindings:
            self._bindings[aor] = bindings

    def _sweep(self, now: float) -> None:
        for aor in list(self._bindings):
            self._alive(aor, now)


def _wishes(request: Request) -> Iterator[tuple[Address, int]]:
    """Each Contact with its lifetime, 0 to remove it: §10.3 step 7."""
    if _is_clear_all(request):
        return
    for contact in request.contacts:
        if contact.is_star or len(str(contact)) > MAX_CONTACT:
            raise RemoteError("Bad Contact")
        if contact.uri.scheme not in ("sip", "sips"):
            raise RemoteError("Unsupported URI Scheme", 416)
        text = contact.param("expires")
        expires = request.expires if text is None else seconds(text)
        if expires is None:
            expires = DEFAULT_EXPIRES
        if 0 < expires < MIN_EXPIRES:
            raise RefusalError(423, "Interval Too Brief", [("Min-Expires", MIN_EXPIRES)])
        yield contact, min(expires, MAX_EXPIRES)


def _is_clear_all(request: Request) -> bool:
    """`Contact: *` alone, with Expires 0: §10.3 step 6."""
    contacts = request.contacts
    return len(contacts) == 1 and contacts[0].is_star and request.expires == 0


def _check_order(binding: Binding, request: Request) -> None:
    """A REGISTER that was overtaken changes nothing: §10.3 step 7."""
    if binding.call_id == request.call_id and request.cseq.number <= binding.cseq:
        raise RemoteError("CSeq Out Of Order")


def _left(binding: Binding, now: float) -> int:
    return max(0, round(binding.expires_at - now))
