"""The registrar: where each address-of-record can be reached, and until when.

Implements RFC 3261 §10.3.

A location service in memory.  Bindings die by themselves; nothing has to tick.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from p2psip.core.domains import Domains
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

Aor = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Binding:
    """One place a user can be reached: §10.3.  `expires_at` is in seconds, as `now` is.

    `flow` is where the REGISTER came from; a connection among them is the way back.
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
            return min(max(float(self.contact.param("q") or 1.0), 0.0), 1.0)
        except ValueError:
            return 1.0


class Registrar:
    """Registrations of one element's domains.

    §10.3.  Without an `verifier` everybody may register as anybody.
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
        """Answer a REGISTER: §10.3, step by step.  Errors are answered, not raised."""
        try:
            self._register(server, request, now)
        except RemoteError as error:
            extra = (("Min-Expires", MIN_EXPIRES),) if error.status == 423 else ()
            server.reply(error.status, now, error.reason, extra)

    def bindings(self, uri: Uri, now: float) -> list[Binding]:
        """Who answers for `uri` now, the preferred first: §16.5.  Empty for strangers."""
        aor = self._domains.address_of_record(uri)
        alive = self._alive(aor, now) if aor else []
        return sorted(alive, key=lambda binding: -binding.q)

    def count(self, now: float) -> int:
        """How many bindings are alive.  Own design: for the status page."""
        return sum(len(self._alive(aor, now)) for aor in list(self._bindings))

    def _register(self, server: ServerHandle, request: Request, now: float) -> None:
        aor = self._domains.address_of_record(request.to.uri)
        if aor is None or not aor[0]:
            raise RemoteError("Not Found", 404)
        if self._verifier is not None:
            realm = self._verifier.users.realm_for(aor[1])
            answer = self._verifier.check(request, aor[0], realm, now, proxy=False)
            if not isinstance(answer, str):
                server.reply(401, now, headers=answer)
                return
            if answer != aor[0]:
                raise RemoteError("Forbidden", 403)  # proven, but as somebody else
        if request.headers.get("Contact") is not None:
            self._update(aor, request, server.flow, now)
        self._confirm(server, aor, now)

    def _update(self, aor: Aor, request: Request, flow: Flow, now: float) -> None:
        """All changes or none: §10.3 steps 6 and 7."""
        old = self._alive(aor, now)
        new = list(old)
        for contact, expires in _wishes(request):
            known = next((b for b in new if equivalent(b.contact.uri, contact.uri)), None)
            if known is not None:
                _check_order(known, request)
                new.remove(known)
            if expires:
                new.append(
                    Binding(contact, flow, request.call_id, request.cseq.number, now + expires)
                )
        if _is_clear_all(request):
            for binding in old:
                _check_order(binding, request)
            new = []
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
        if bindings:
            self._bindings[aor] = bindings
        else:
            self._bindings.pop(aor, None)

    def _sweep(self, now: float) -> None:
        for aor in list(self._bindings):
            self._alive(aor, now)


def route_to(binding: Binding, *, nat: bool) -> list[Flow] | None:
    """The flow to a binding where its REGISTER came from, or None to follow its Contact.

    RFC 5626 §5.3 in spirit: a connection the phone opened is the only way to it.  With `nat`
    that holds for UDP too.
    """
    flow = binding.flow
    if flow.transport == LOCAL:
        return None
    return [flow] if flow.reliable or nat else None


def _wishes(request: Request) -> Iterator[tuple[Address, int]]:
    """Each Contact with its lifetime, 0 to remove it: §10.3 step 7."""
    for contact in request.contacts:
        if contact.is_star:
            if not _is_clear_all(request):
                raise RemoteError("Bad Contact")
            continue
        text = contact.param("expires")
        expires = request.expires if text is None else seconds(text)
        if expires is None:
            expires = DEFAULT_EXPIRES
        if 0 < expires < MIN_EXPIRES:
            raise RemoteError("Interval Too Brief", 423)
        if contact.uri.scheme not in ("sip", "sips"):
            raise RemoteError("Unsupported URI Scheme", 416)
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
