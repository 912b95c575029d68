"""Where a user can be reached: a binding, and the store that lets bindings outlive the process.

Implements RFC 3261 §10.3, with instances and flows as RFC 5626 §4.1 and §7 have them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Protocol

from p2psip.server.domains import Aor
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import LOCAL, Flow
from p2psip.transaction.key import default_port


@dataclass(frozen=True, slots=True)
class Binding:
    """One place a user can be reached: §10.3.  `expires_at` is in seconds, as `now` is.

    `flow` is where the REGISTER came from; a connection is the way back as well.  While
    `is_proven` is False nothing but one OPTIONS is sent to the contact; `proven` is the flow that
    its answer came by.
    """

    contact: Address
    flow: Flow
    call_id: str
    cseq: int
    expires_at: float
    is_proven: bool = True
    proven: Flow | None = None

    @property
    def q(self) -> float:
        """The user's preference among contacts, 0 to 1: §20.10."""
        try:
            q = float(self.contact.param("q") or 1.0)
        except ValueError:
            return 1.0
        return q if 0.0 <= q <= 1.0 else 1.0

    def way(self, *, nat: bool) -> list[Flow]:
        """The flow to reach it by instead of following its Contact, if there is one.

        RFC 5626 §5.3: a connection the phone opened is the only sure way to it.  With `nat` that
        holds for UDP too.  What has answered is reached where it answered, whatever its name may
        be made to mean later.
        """
        if self.proven is not None:
            return [self.proven]
        is_way = self.flow.transport != LOCAL and (self.flow.reliable or nat)
        return [self.flow] if is_way else []

    def without_flow(self) -> "Binding | None":
        """What is left once the connection of its REGISTER is lost: RFC 5626 §7.

        Nothing, unless the phone named another port of the host it had connected from: it may
        listen there, and has to say so before it is called.
        """
        if self.proven is not None:
            return self
        uri = self.contact.uri
        port = uri.port or default_port((uri.param("transport") or "UDP").upper())
        if not is_at_host(uri, self.flow) or port == self.flow.remote[1]:
            return None
        return replace(self, is_proven=False)


def instance_of(contact: Address) -> str | None:
    """The device behind a contact, if it says which: RFC 5626 §4.1.

    Taken out of its brackets; in small letters, for a UUID is the same in capitals.
    """
    return (contact.param("+sip.instance") or "").strip("<> ").lower() or None


def is_at_host(uri: Uri, flow: Flow) -> bool:
    """Whether a request for `uri` goes to the host at the far end of `flow`: RFC 3263 §4.2.

    A name is never taken for it: whoever serves that name may change where it leads.
    """
    try:
        named, source = (
            ip_address(text.partition("%")[0])
            for text in (uri.param("maddr") or uri.host, flow.remote[0])
        )
    except ValueError:
        return False
    return (getattr(named, "ipv4_mapped", None) or named) == (
        getattr(source, "ipv4_mapped", None) or source
    )


class LocationStore(Protocol):
    """Keeps the bindings of all users where they outlive the process.

    Own design: RFC 3261 §10.3 leaves it to us.  Neither method ever raises: a store that fails says
    so itself, once, and the registrar goes on with what it holds in memory.
    """

    def load(self, now: float) -> Iterable[tuple[Aor, Binding]]:
        """All that was kept, the oldest first, with `expires_at` told in the time of `now`."""

    def keep(self, aor: Aor, known: Mapping[Aor, Sequence[Binding]], now: float) -> None:
        """Keep what `known` now says of `aor`, which may be nothing, before this returns."""


class MemoryLocation:
    """A `LocationStore` that outlives a registrar, and no process.  Own design: the default."""

    def __init__(self) -> None:
        self._kept: dict[Aor, Sequence[Binding]] = {}

    def load(self, now: float) -> Iterable[tuple[Aor, Binding]]:
        """All that was kept.  Own design."""
        return [(aor, binding) for aor, kept in self._kept.items() for binding in kept]

    def keep(self, aor: Aor, known: Mapping[Aor, Sequence[Binding]], now: float) -> None:
        """Keep what is known of one user.  Own design."""
        if aor in known:
            self._kept[aor] = known[aor]
        else:
            self._kept.pop(aor, None)
