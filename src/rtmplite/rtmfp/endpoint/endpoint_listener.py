"""What an endpoint tells its user, and asks.

Implements RFC 7016 §3.5.1.
"""

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from rtmplite.rtmfp.session.session import SessionListener
from rtmplite.rtmfp.wire.address import Address

if TYPE_CHECKING:
    from rtmplite.rtmfp.endpoint.initiator import Opening
    from rtmplite.rtmfp.session.session import Session


class Forwarded(Enum):
    """What to do when a forwarder says that somebody asks for us: §3.5.1.1.2 [fihello-answered]."""

    HELLO = "send an RHello to whoever asks"
    REDIRECT = "show whoever asks where to send the IHello"
    IGNORE = "be silent"


class EndpointListener:
    """The user of an endpoint.  Own design: each method here does as little as possible."""

    def on_session(
        self, session: "Session", opening: "Opening | None", now: float
    ) -> SessionListener | None:
        """A session is open, and the far end has proved that it has the keys.

        `opening` is what it fulfils, None if only the far end asked for it.  Answer who listens
        to it; None aborts it.
        """
        return None

    def on_open_failed(self, opening: "Opening", reason: str, now: float) -> None:
        """No session comes of an opening; `opening.instead` may be one that will do."""

    def on_introduction(
        self, session: "Session", asker: Address, now: float
    ) -> Iterable[Address] | None:
        """Somebody asks for the far end of a session: where else is it?  §3.5.1.6.

        None: do not introduce them.
        """
        return ()

    def addresses_of(self, epd: bytes, now: float) -> Iterable[Address]:
        """Somebody asks for whom we do not know: where to ask?  §3.5.1.4."""
        return ()
