"""The calls of an endpoint to its user: events, and questions.

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
    from rtmplite.rtmfp.wire.startup_chunks import InitiatorHello


class Forwarded(Enum):
    """The answer to a hello that a forwarder passes on to us: §3.5.1.1.2."""

    HELLO = "send an RHello to the asker"
    REDIRECT = "show the asker where to send the IHello"
    IGNORE = "be silent"


class EndpointListener:
    """Own design: the user of an endpoint, who overrides only what concerns it."""

    def on_session(
        self, session: "Session", opening: "Opening | None", now: float
    ) -> SessionListener | None:
        """Note that a session is open, and that the far end has proved to have the keys.

        `opening` is what it fulfils, None if only the far end asked for it.  Return the session's
        listener; None aborts the session.
        """
        return None

    def on_open_failed(self, opening: "Opening", reason: str, now: float) -> None:
        """Note that an opening has failed; `opening.instead` may be a session that will do."""

    def on_introduction(
        self, session: "Session", asker: Address, now: float
    ) -> Iterable[Address] | None:
        """Name other addresses of a far end for `asker`, None for none: §3.5.1.6."""
        return ()

    def addresses_of(self, epd: bytes, now: float) -> Iterable[Address]:
        """Say where to ask for an identity that has no session with us: §3.5.1.4."""
        return ()

    def on_unknown_peer(self, hello: "InitiatorHello", source: Address, now: float) -> None:
        """Note that `source` asks for an identity of which nothing is known here: §3.5.1.5."""
