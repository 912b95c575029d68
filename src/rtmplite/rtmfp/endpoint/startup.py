"""What both ends of a startup share: its states, its alarms, its limits and its slow work.

Implements RFC 7016 §3.5.1.

    initiator                                  responder
    IHello        who is wanted, tag      --->             keeps nothing
                  <--- RHello             tag, cookie, certificate
              or  <--- Redirect           tag, where else to ask: an IHello goes there as well
    IIKeying      cookie, certificate, half a key --->     Diffie-Hellman, off the hub
                  <--- RIKeying           the other half
              or  <--- Cookie Change      another cookie: the IIKeying again, with that
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.wire.address import Address, Origin, SocketAddress

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import CryptoProfile, Keys
    from rtmplite.rtmfp.endpoint.glare import Duplicates
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.endpoint.startup_packets import StartupPackets

OPEN_TIMEOUT: Final = 95.0  # seconds; §3.5.1.1.1 [ultimate-timeout]
BACKOFF_STEP: Final = 1.5  # seconds; §3.5.1.1.1 [hello-backoff] [keying-backoff]
TAG_BYTES: Final = 16  # as Flash Players have; §3.5.1.1.1 [tag-unguessable] asks for 8

_BROADCAST: Final = ip_address("255.255.255.255")
_T = TypeVar("_T")


class OpeningState(StrEnum):
    """Where an opening session stands: the upper half of Figure 8 in §3.5 [states]."""

    IHELLO_SENT = "S_IHELLO_SENT"
    KEYING_SENT = "S_KEYING_SENT"
    OPEN = "S_OPEN"
    OPEN_FAILED = "S_OPEN_FAILED"
    CLOSED = "S_CLOSED"


@dataclass(frozen=True, slots=True)
class StartupLimits:
    """How much an endpoint may be made to do by strangers.

    Own design: the spec asks for limits (§5 [resources-bounded]) and names few numbers.

    `sessions`            at a time; more: hellos are redirected to other servers, or not heard
    `unproven`            sessions of which nothing came yet that only the far end can have made;
                          more: the oldest of them is dropped that nobody here waits for
    `keyings`             Diffie-Hellman computations for strangers at a time; more: not heard
    `keyings_per_second`  of one host
    `hellos_per_second`   answered to one host
    `forwards_per_second` to one session, on behalf of whoever asks for it; and of those that are
                          forwarded to us, answered in all
    `reassemblies`        packets of which only a part has come: §3.4 [buffers-limited]
    `redirect_threshold`  candidate addresses of an opening session: §3.5.1.1.1 [threshold-24]
    `buffered_bytes`      of memory that all sessions take together: see `budget`
    `field_bytes`         of a tag, discriminator, cookie, certificate or keying component
    """

    sessions: int = 10_000
    unproven: int = 1024
    keyings: int = 64
    keyings_per_second: int = 32
    hellos_per_second: int = 100
    forwards_per_second: int = 20
    reassemblies: int = 64
    redirect_threshold: int = 24
    buffered_bytes: int = 256 << 20
    field_bytes: int = 4096


class HandshakeBackoff:
    """When to send again: at once, after 1.5 seconds, and after pauses that grow by 1.5 each time.

    §3.5.1.1.1 [hello-backoff] [keying-backoff]: at 0, 1.5, 4.5, 9, 15, 22.5 and so on.
    """

    __slots__ = ("_interval", "due")

    def __init__(self, now: float) -> None:
        self.due = now
        self._interval = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to send now; if so, the next time is set.  Own design: one call for both."""
        if now < self.due:
            return False
        self._interval += BACKOFF_STEP
        self.due = now + self._interval
        return True


class Job(Generic[_T]):
    """Slow work without side effects, and what to do with its result.

    Own design: `run` it anywhere, in any thread, then hand it to `Endpoint.finish`.  That must
    be done even if `run` raised something, or never ran: then the work counts as refused.
    """

    def __init__(
        self, work: Callable[[], _T], done: Callable[[_T | RemoteError, float], None]
    ) -> None:
        self._work, self._done = work, done
        self._result: _T | RemoteError = RemoteError("the computation did not end")

    def run(self) -> None:
        """Do the work.  Own design: a RemoteError is a result like others."""
        try:
            self._result = self._work()
        except RemoteError as error:
            self._result = error

    def finish(self, now: float) -> None:
        """Go on with the result, where machines are called.  Own design: `Endpoint` calls it."""
        self._done(self._result, now)


class StartupHost(Protocol):
    """What the machines of a startup see of their endpoint.  Own design: no more than needed."""

    profile: "CryptoProfile"
    packets: "StartupPackets"
    limits: StartupLimits
    duplicates: "Duplicates"

    @property
    def openings(self) -> "Collection[Opening]":
        """The sessions that are opening from here: §3.5."""

    def new_session_id(self) -> int:
        """Draw a receive session ID that no session uses: §3.3."""

    def add_job(self, job: Job[Any]) -> None:
        """Have slow work done.  Own design: see `Job`."""

    def on_keying_sent(self, opening: "Opening") -> None:
        """An opening session has a receive session ID: §3.5.1.1.1."""

    def on_opened(self, opening: "Opening", keys: "Keys", far_id: int, now: float) -> None:
        """An opening session is open: §3.5.1.1.1."""

    def on_ended(self, opening: "Opening", now: float) -> None:
        """An opening session will not be opened: §3.5."""


def is_sendable(address: Address) -> bool:
    """Tell whether one host can be reached at an address that somebody told us.

    Own design: against being made to disturb a whole network: §5 [resources-bounded].
    """
    ip = _plain(address[0])
    is_many = ip.is_multicast or ip == _BROADCAST
    return address[1] != 0 and not is_many and not ip.is_unspecified


def told(address: SocketAddress) -> Address:
    """Give an address as sockets have it: §2.1.5.  Own design: no disguise for an IPv4 one."""
    return str(_plain(address.ip)), address.port


def _plain(address: str) -> IPv4Address | IPv6Address:
    ip = ip_address(address)
    return ip.ipv4_mapped or ip if isinstance(ip, IPv6Address) else ip


def observed(address: Address) -> SocketAddress:
    """Give the address of a packet as it is told to others: §2.1.5 [origins]."""
    return SocketAddress(address[0], address[1], Origin.OBSERVED)
