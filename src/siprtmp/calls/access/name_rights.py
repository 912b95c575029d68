"""Which client may have a name, and so gets its calls and hears them.

Own design: RFC 3261 §26.1.1 wants proof of a user before its calls go to a contact.  A stream or a
line that takes calls is a registration in all but name.  A user's name belongs to the client that
has proved that user's password, a trunk's number to the user that the trunk's table names.  Where
no password can prove anything, the first one keeps a name: a phone that has registered, or the
client that holds it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from p2psip.server.domains import Domains
from p2psip.sip.uri import Uri
from rtmplite.rtmp.netstream import ServedClient
from siprtmp.calls.access.admission import Admission, Holder
from siprtmp.operation.logs import Log
from siprtmp.settings.trunks import TrunkSettings

NEEDS_PASSWORD: Final = "this identity needs a password"
HELD: Final = "another client holds this name"


@dataclass(slots=True)
class NameRights:
    """Judges names; `is_bound(uri)` tells whether a phone has registered one.

    `rooms` are the names that the configuration gives to conference rooms.
    """

    admission: Admission
    domains: Domains
    is_bound: Callable[[Uri], bool]
    trunks: Sequence[TrunkSettings] = ()
    rooms: Collection[str] = ()

    def holder(self, client: ServedClient, query: str, now: float) -> Holder:
        """The client as a holder of names; `query` is that of its stream's name."""
        return self.admission.holder(client.host, client.tc_url, query, now)

    def of_stream(self, name: str, holder: Holder) -> str:
        """Why a client may not have a name that waits for calls; empty if it may."""
        return self._refusal([Uri("sip", name, host=each) for each in self.domains.names], holder)

    def of_identity(self, identity: Uri, holder: Holder) -> str:
        """Why a client without a password may not be `identity`; empty if it may."""
        if identity.user in self.rooms and self.domains.of(identity) is not None:
            return "a room has this name"
        return self._refusal([identity], holder)

    def is_for(self, uri: Uri, holder: Holder | None) -> bool:
        """Whether a call to `uri` may go to the holder of its user's name: RFC 3261 §16.5.

        Users of one name in two domains are two.
        """
        owners = self._owners([uri])
        return not owners or (holder is not None and not owners.isdisjoint(holder))

    def proves(self, identity: Uri) -> bool:
        """Whether the registrar of `identity` asks for its password, as far as we know."""
        return self.domains.of(identity) is None or self.admission.has_users

    def _refusal(self, uris: Sequence[Uri], holder: Holder) -> str:
        owners = self._owners(uris)
        if owners:
            return NEEDS_PASSWORD if owners.isdisjoint(holder) else ""
        if any(self._is_number(uri, trunk) for uri in uris for trunk in self.trunks):
            return "it is the number of a trunk that names no user"
        return "a phone has registered under this name" if any(map(self.is_bound, uris)) else ""

    def _owners(self, uris: Sequence[Uri]) -> Holder:
        """The users any of whom may have these addresses, empty if nobody has a right to them."""
        for trunk in self.trunks:
            if trunk.user and any(self._is_number(uri, trunk) for uri in uris):
                return frozenset(f"{trunk.user}@{realm}" for realm in self.admission.realms)
        return self.users(uris)

    def users(self, uris: Iterable[Uri]) -> Holder:
        realm_of, found = self.admission.realm_of, set()
        for uri in uris:
            aor = self.domains.address_of_record(uri)
            if aor is not None and (realm := realm_of(*aor)) is not None:
                found.add(f"{aor[0]}@{realm}")
        return frozenset(found)

    def _is_number(self, uri: Uri, trunk: TrunkSettings) -> bool:
        """Whether an address is that of a trunk, or what its calls have as their target here."""
        number = trunk.address
        is_there = uri.host.lower() == number.host.lower() or self.domains.of(uri) is not None
        return uri.user == number.user and is_there


def say_refused(log: Log, client: ServedClient, wants: str, name: str, reason: str) -> None:
    log.event(
        "refused",
        source=client.host,
        rtmp=client.id,
        wants=wants,
        app=client.app,
        name=name,
        reason=reason,
    )
