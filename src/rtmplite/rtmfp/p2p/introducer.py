"""Which clients of a server are introduced to each other, and how often.

Implements RFC 7016 §3.5.1.6 for RFC 7425 §5.4.1: the text says how, and leaves open for whom.

Own design: a client that an application has accepted may meet others of the same application.  The
asker is known by its address alone, which can be forged; so an answer goes only to an address where
a session has shown that a client is, and silence does not tell whether a client is here.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final

from rtmplite.rtmfp.endpoint.rate_limiter import KEY_BYTES, Limiter
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmp.netconnection import State

if TYPE_CHECKING:
    from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
    from rtmplite.rtmfp.session.session import Session

PER_SECOND: Final = 32  # that one client is granted: each is asked for again after 1.5 s
_SECOND: Final = 1.0


class Introducer:
    """Decides about introductions of `sessions_at`, by `connection_of`: RFC 7016 §3.5.1.6."""

    def __init__(
        self,
        sessions_at: "Callable[[Address], Iterable[Session]]",
        connection_of: "Callable[[Session], RtmfpServerConnection | None]",
        random: Callable[[int], bytes],
    ) -> None:
        self._sessions_at, self._connection_of = sessions_at, connection_of
        self._limiter = Limiter(random(KEY_BYTES), PER_SECOND, _SECOND)

    def addresses(
        self, session: "Session", asker: Address, now: float
    ) -> tuple[Address, ...] | None:
        """Say where a far end is; None if `asker` may not know: RFC 7016 §3.5.1.6."""
        wanted = self._connection_of(session)
        # RFC 7016 §3.5.1.6 [introduction]
        if wanted is None or not self._are_together(wanted, asker):
            return None
        return self._listed(wanted, asker, now)

    def apps_of(self, asker: Address) -> list[str]:
        """The applications that have accepted a client at an address: `addresses_for`."""
        found = map(self._connection_of, self._sessions_at(asker))
        return [each.app for each in found if each is not None and each.state is State.CONNECTED]

    def addresses_for(
        self, session: "Session", asker: Address, apps: Collection[str], now: float
    ) -> tuple[Address, ...] | None:
        """Say where a far end is to a client of `apps` at another process of this server.

        As `addresses`: RFC 7016 §3.5.1.6.
        """
        wanted = self._connection_of(session)
        if wanted is None or wanted.state is not State.CONNECTED or wanted.app not in apps:
            return None
        return self._listed(wanted, asker, now)

    def _listed(
        self, wanted: "RtmfpServerConnection", asker: Address, now: float
    ) -> tuple[Address, ...] | None:
        """Give the addresses that a client has told, unless the asker asks too often."""
        # RFC 7016 §3.5.1.6 [more-addresses], §5 [resources-bounded]
        return wanted.listed if self._limiter.allows(f"{asker[0]} {asker[1]}", now) else None

    def _are_together(self, wanted: "RtmfpServerConnection", asker: Address) -> bool:
        return any(
            may_meet(connection, wanted)
            for session in self._sessions_at(asker)
            if (connection := self._connection_of(session)) is not None
        )


def may_meet(one: "RtmfpServerConnection", other: "RtmfpServerConnection") -> bool:
    """Whether two clients have been accepted by the same application."""
    if one is other or one.state is not State.CONNECTED or other.state is not State.CONNECTED:
        return False
    return one.application is other.application
