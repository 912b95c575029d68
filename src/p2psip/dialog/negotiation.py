"""Offer and answer between two user agents: one exchange at a time, whichever message carries it.

Implements RFC 3264 §4 and RFC 3311 §5.2, for INVITE, 2xx, ACK, PRACK and UPDATE alike.  It is
the same for a late offer: an INVITE without one is answered by our offer, in the 2xx.

    >>> session = Negotiation()
    >>> session.we_offer(b"ours")
    >>> session.state, session.local
    (<State.WE_OFFERED: 'we offered'>, b'ours')
    >>> session.they_offer(b"theirs")
    Traceback (most recent call last):
    p2psip.errors.RemoteError: 491 Request Pending
    >>> session.they_answer(b"yes")
    >>> session.state, session.local, session.remote
    (<State.STABLE: 'stable'>, b'ours', b'yes')
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from p2psip.errors import LocalError, RemoteError


class State(StrEnum):
    """Own design: RFC 3264 §4 in three boxes."""

    STABLE = "stable"
    WE_OFFERED = "we offered"
    THEY_OFFERED = "they offered"


class Event(StrEnum):
    """Own design: what changes the box, as RFC 3264 §4 tells it; a refusal answers with nothing."""

    WE_OFFER = "our offer"
    THEY_OFFER = "their offer"
    WE_ANSWER = "our answer"
    THEY_ANSWER = "their answer"
    REFUSED = "refused"


FIGURE: Final[Mapping[State, Mapping[Event, State]]] = {
    State.STABLE: {
        Event.WE_OFFER: State.WE_OFFERED,
        Event.THEY_OFFER: State.THEY_OFFERED,
    },
    State.WE_OFFERED: {
        Event.THEY_ANSWER: State.STABLE,
        Event.REFUSED: State.STABLE,
    },
    State.THEY_OFFERED: {
        Event.WE_ANSWER: State.STABLE,
        Event.REFUSED: State.STABLE,
    },
}


class Negotiation:
    """The session of one dialog at one side, as agreed and as proposed (RFC 3264 §4).

    `state` is the box.  `local` and `remote` are the descriptions in force, None before there are
    any; of a first exchange that is under way `local` or `remote` is the offer.
    """

    def __init__(self) -> None:
        self.state = State.STABLE
        self._agreed: tuple[bytes, bytes] | None = None
        self._offer: bytes | None = None

    @property
    def is_stable(self) -> bool:
        """Whether no offer waits for its answer (RFC 3264 §4)."""
        return self.state is State.STABLE

    @property
    def is_settled(self) -> bool:
        """Whether a session was agreed on and no offer waits (RFC 3264 §8)."""
        return self.is_stable and self._agreed is not None

    @property
    def was_settled(self) -> bool:
        """Whether a session was agreed on, even if a new offer waits (RFC 3264 §8)."""
        return self._agreed is not None

    @property
    def local(self) -> bytes | None:
        """Our description: the agreed one, or the offer of a first exchange (RFC 3264 §4)."""
        if self._agreed is not None:
            return self._agreed[0]
        return self._offer if self.state is State.WE_OFFERED else None

    @property
    def remote(self) -> bytes | None:
        """The peer's description: the agreed one, or a first offer (RFC 3264 §4)."""
        if self._agreed is not None:
            return self._agreed[1]
        return self._offer if self.state is State.THEY_OFFERED else None

    def we_offer(self, sdp: bytes) -> None:
        self._go(Event.WE_OFFER)  # RFC 3264 §4 [one-offer-at-a-time] [none-before-our-answer]
        self._offer = sdp

    def they_offer(self, sdp: bytes) -> None:
        """Take a proposal (RFC 3311 §5.2).  RemoteError: 491 if it meets ours, 500 if a second."""
        if self.state is State.WE_OFFERED:
            raise RemoteError("Request Pending", 491)  # RFC 3311 §5.2 [491-for-glare]
        if self.state is State.THEY_OFFERED:
            raise RemoteError("Server Internal Error", 500)  # RFC 3311 §5.2 [500-for-a-second]
        self._go(Event.THEY_OFFER)
        self._offer = sdp

    def we_answer(self, sdp: bytes) -> None:
        """Accept the peer's proposal (RFC 3264 §6)."""
        offer = self._go(Event.WE_ANSWER)
        self._agreed = sdp, offer

    def they_answer(self, sdp: bytes | None) -> None:
        """Take the answer to our offer (RFC 3264 §7); without one the peer's side stays."""
        before = self._agreed[1] if self._agreed is not None else b""
        offer = self._go(Event.THEY_ANSWER)
        self._agreed = offer, before if sdp is None else sdp

    def refused(self) -> None:
        """Drop the offer that waits, so that the session stays as it was (RFC 3261 §14.1)."""
        self._go(Event.REFUSED)  # RFC 3311 §5.3 [failure-changes-nothing]

    def _go(self, event: Event) -> bytes:
        target = FIGURE[self.state].get(event)
        if target is None:
            raise LocalError(f"{event} while {self.state}")
        offer, self._offer = self._offer or b"", None
        self.state = target
        return offer
