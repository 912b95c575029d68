"""A binding, which is where a user can be reached, and the store that outlives the process.

Implements RFC 3261 §10.3, with instances and flows as RFC 5626 §4.1 and §7 have them, and with the
Path of RFC 3327 §5.3.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """One place where a user can be reached: §10.3.  `expires_at` is in seconds, as `now` is.

    `flow` is where the REGISTER came from; if that is a connection, it is the way back as well.
    While `is_proven` is False nothing but one OPTIONS is sent to the contact; `proven` is the flow
    that the answer to it came by.  `reg_id` tells the flows of one instance apart (RFC 5626 §6), 0
    without outbound; `path` are the proxies on the way to the phone, the nearest first.  `gruu` is
    the number in the temporary GRUUs of its device, "" without a device (RFC 5627 §5.4).
    """

    contact: Address
    flow: Flow
    call_id: str
    cseq: int
    expires_at: float
    is_proven: bool = True
    proven: Flow | None = None
    reg_id: int = 0
    path: tuple[Address, ...] = ()
    gruu: str = ""

    @property
    def name(self) -> str:
        """Names the binding: by instance and reg-id of a flow, else by Contact: RFC 5626 §6."""
        return f"{self.instance};{self.reg_id}" if self.reg_id else str(self.contact.uri)

    @property
    def instance(self) -> str | None:
        """The device that the contact names: RFC 5626 §4.1."""
        return self.contact.instance

    @property
    def q(self) -> float:
        """The user's preference among contacts, 0 to 1: §20.10."""
        try:
            q = float(self.contact.param("q") or 1.0)
        except ValueError:
            return 1.0
        return q if 0.0 <= q <= 1.0 else 1.0

    def way(self, *, nat: bool) -> list[Flow]:
        """The flow to use instead of the Contact, empty if the Contact is to be followed.

        RFC 5626 §5.3: a connection that the phone opened is the only sure way to it.  With `nat`
        that holds for UDP too.  A contact that had to answer is reached where it answered, whatever
        address its name has later.  The flow of outbound is always the way: RFC 5626 §7; with a
        path the way begins at its first proxy: RFC 3327 §5.4.
        """
        if self.path:
            return []
        if self.proven is not None:
            return [self.proven]
        is_way = self.flow.reliable or nat or bool(self.reg_id)  # RFC 5626 §7 [same-flow]
        return [self.flow] if is_way and self.flow.transport != LOCAL else []

    def without_flow(self) -> "Binding | None":
        """The binding after the loss of its REGISTER's connection, None if none is left.

        RFC 5626 §7.  One is left if the phone named another port of the host it had connected from:
        it may listen there, and must answer there before it is called.  A flow of outbound ends
        with its connection, since the phone makes a new one.
        """
        if self.proven is not None or self.path:
            return self
        if self.reg_id:
            return None  # RFC 5626 §7 [gone-with-the-flow]
        uri = self.contact.uri
        port = uri.port or default_port((uri.param("transport") or "UDP").upper())
        if not is_at_host(uri, self.flow) or port == self.flow.remote[1]:
            return None
        return replace(self, is_proven=False)


def is_at_host(uri: Uri, flow: Flow) -> bool:
    """Whether the host of `uri` is the IP address of the far end of `flow`: RFC 3263 §4.2."""
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


def flow_text(flow: Flow) -> str:
    """A flow as "UDP 192.0.2.7 5060 192.0.2.1 5060".  Own design: stores keep it as text."""
    return " ".join(map(str, (flow.transport, *flow.remote, *(flow.local or ()))))


def flow_of(text: str) -> Flow:
    """Read what `flow_text` wrote, or raise ValueError.  Own design: stores keep it as text."""
    transport, host, port, *local = text.split(" ")
    near = (local[0], int(local[1])) if local else None
    return Flow(transport, (host, int(port)), near)


class LocationStore(Protocol):
    """Keeps the bindings of all users beyond the end of the process.

    Departs from RFC 3261 §10.3 [500-if-not-stored]: a disk that is full, or a Redis that is down,
    must not take every phone off the line.

    Own design: RFC 3261 §10.3 leaves storage to the implementation.  Neither method ever raises: a
    store that fails reports it once, and the registrar continues from memory.

    `secret` is a key for as long as the bindings are kept, the same for all that share the store;
    while it is empty the registrar sets it.
    """

    secret: bytes

    def load(self, now: float) -> Iterable[tuple[Aor, Binding]]:
        """All stored bindings, the oldest first, with `expires_at` on the clock of `now`."""

    def keep(self, aor: Aor, known: Mapping[Aor, Sequence[Binding]], now: float) -> None:
        """Store the bindings that `known` has for `aor`, maybe none, before returning."""


class SharedLocation(LocationStore, Protocol):
    """A place outside this process, as in SQLite.  Own design: RFC 3261 §10.3 has none."""

    def follow(self, adopt: Callable[[Aor, Sequence[Binding], float], Sequence[Binding]]) -> None:
        """Tell of bindings that others have changed."""

    def close(self) -> None:
        """Write what is left."""


class MemoryLocation:
    """A `LocationStore` in memory.  Own design: the default, for a registrar without a file."""

    def __init__(self) -> None:
        self.secret = b""
        self._kept: dict[Aor, Sequence[Binding]] = {}

    def load(self, now: float) -> Iterable[tuple[Aor, Binding]]:
        return [(aor, binding) for aor, kept in self._kept.items() for binding in kept]

    def keep(self, aor: Aor, known: Mapping[Aor, Sequence[Binding]], now: float) -> None:
        if aor in known:
            self._kept[aor] = known[aor]
        else:
            self._kept.pop(aor, None)
