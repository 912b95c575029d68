"""The initiator of a session: it asks in many places at once, and agrees with the first answer.

Implements RFC 7016 §3.5.1.1.1, §3.5.1.2 and the upper half of Figure 8 in §3.5.

    initiator                                  responder
    IHello        who is wanted, tag      --->             keeps nothing
                  <--- RHello             tag, cookie, certificate
              or  <--- Redirect           tag, where else to ask: an IHello goes there as well
    IIKeying      cookie, certificate, half a key --->     Diffie-Hellman, beside the loop
                  <--- RIKeying           the other half
              or  <--- Cookie Change      another cookie: the IIKeying again, with that
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.wire.address import Address, is_sendable, told
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import Agreement, CryptoProfile, Keys
    from rtmplite.rtmfp.endpoint.startup_packets import StartupPackets
    from rtmplite.rtmfp.session.session import Session

OPEN_TIMEOUT: Final = 95.0  # seconds; §3.5.1.1.1 [ultimate-timeout]
BACKOFF_STEP: Final = 1.5  # seconds; §3.5.1.1.1 [hello-backoff] [keying-backoff]
TAG_BYTES: Final = 16  # as Flash Players have; §3.5.1.1.1 [tag-unguessable] asks for 8


_T = TypeVar("_T")


class Job(Generic[_T]):
    """Slow work without side effects, and the function that takes its result.

    Own design: nobody's media waits for a stranger's Diffie-Hellman, which is done beside the loop.
    `run` it anywhere, in any thread, then hand it to `Endpoint.finish`.  That must be done even if
    `run` raised something, or never ran: then the work counts as refused.
    """

    def __init__(
        self, work: Callable[[], _T], done: Callable[[_T | RemoteError, float], None]
    ) -> None:
        self._work, self._done = work, done
        self._result: _T | RemoteError = RemoteError("the computation did not end")

    def run(self) -> None:
        """Do the work; a RemoteError is a result like others."""
        try:
            self._result = self._work()
        except RemoteError as error:
            self._result = error

    def finish(self, now: float) -> None:
        """Go on with the result, where machines are called: `Endpoint.finish` does."""
        self._done(self._result, now)


class OpeningState(StrEnum):
    """The states of an opening session: the upper half of Figure 8 in §3.5 [states]."""

    IHELLO_SENT = "S_IHELLO_SENT"
    KEYING_SENT = "S_KEYING_SENT"
    OPEN = "S_OPEN"
    OPEN_FAILED = "S_OPEN_FAILED"
    CLOSED = "S_CLOSED"


class OpeningEvent(StrEnum):
    """The events of an opening session: §3.5.1.1.1, §3.5.1.2, §3.5.1.3."""

    RESEND = "after 1.5 s, 3 s, 4.5 s ..."
    REDIRECT = "Redirect"
    RHELLO = "RHello"
    DUPLICATE = "RHello, and there is such a session"
    GLARE = "the far end opens it"
    KEY_MADE = "our half of the key is made"
    NO_KEY = "no key for this certificate"
    COOKIE_CHANGE = "RHello Cookie Change"
    RIKEYING = "RIKeying"
    TIMEOUT = "95 s"
    CANCEL = "cancelled here"


class OpeningOrder(StrEnum):
    """The actions of an opening session on an event: §3.5.1.1.1."""

    SEND_IHELLO = "send IHello"
    MAKE_KEY = "make our half of the key"
    SEND_IIKEYING = "send IIKeying"
    BEGIN = "begin the session"
    END = "tell the endpoint"


# The upper half of Figure 8 as data: §3.5.  An arrow that is not drawn is an event to ignore.
FIGURE_8: Final[
    Mapping[OpeningState, Mapping[OpeningEvent, tuple[OpeningState, tuple[OpeningOrder, ...]]]]
] = {
    OpeningState.IHELLO_SENT: {
        OpeningEvent.RESEND: (OpeningState.IHELLO_SENT, (OpeningOrder.SEND_IHELLO,)),
        OpeningEvent.REDIRECT: (OpeningState.IHELLO_SENT, (OpeningOrder.SEND_IHELLO,)),
        OpeningEvent.RHELLO: (OpeningState.KEYING_SENT, (OpeningOrder.MAKE_KEY,)),
        OpeningEvent.DUPLICATE: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.GLARE: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.CANCEL: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.TIMEOUT: (OpeningState.OPEN_FAILED, (OpeningOrder.END,)),
    },
    OpeningState.KEYING_SENT: {
        OpeningEvent.KEY_MADE: (OpeningState.KEYING_SENT, (OpeningOrder.SEND_IIKEYING,)),
        OpeningEvent.RESEND: (OpeningState.KEYING_SENT, (OpeningOrder.SEND_IIKEYING,)),
        OpeningEvent.COOKIE_CHANGE: (OpeningState.KEYING_SENT, (OpeningOrder.SEND_IIKEYING,)),
        OpeningEvent.RIKEYING: (OpeningState.OPEN, (OpeningOrder.BEGIN,)),
        OpeningEvent.GLARE: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.CANCEL: (OpeningState.CLOSED, (OpeningOrder.END,)),
        OpeningEvent.NO_KEY: (OpeningState.OPEN_FAILED, (OpeningOrder.END,)),
        OpeningEvent.TIMEOUT: (OpeningState.OPEN_FAILED, (OpeningOrder.END,)),
    },
    OpeningState.OPEN: {},  # the lower half is a session's: `session.session`
    OpeningState.OPEN_FAILED: {},
    OpeningState.CLOSED: {},
}


class DuplicateSearch(Protocol):
    """Finds the session or opening with the same far end; see `glare.Duplicates`: §3.5.1.1.1."""

    def find(self, certificate: bytes, epd: bytes) -> "Session | Opening | None":
        """Find the session, or earlier opening, that an opening duplicates: §3.5.1.1.1."""

    def awaited(self, opening: "Opening", certificate: bytes, source: Address) -> bool:
        """Tell whether the owner of a certificate opens a session from `source`: §3.5.1.1.1."""


class HandshakeBackoff:
    """When to send again: at 0, 1.5, 4.5, 9, 15 seconds and so on: §3.5.1.1.1."""

    __slots__ = ("_interval", "due")

    def __init__(self, now: float) -> None:
        self.due = now
        self._interval = 0.0

    def is_due(self, now: float) -> bool:
        """Tell whether to send now, and if so set the next time: §3.5.1.1.1."""
        if now < self.due:
            return False
        # §3.5.1.1.1 [hello-backoff] [keying-backoff]
        self._interval += BACKOFF_STEP
        self.due = now + self._interval  # §3.5.1.1.1 [hello-backoff] [keying-backoff]
        return True


class StartupHost(Protocol):
    """The part of an endpoint that startup machines use.  Own design: no more than needed."""

    profile: "CryptoProfile"
    packets: "StartupPackets"
    limits: StartupLimits

    @property
    def duplicates(self) -> DuplicateSearch:
        """The search for other sessions with the same far end: §3.5.1.1.1."""

    @property
    def openings(self) -> "Collection[Opening]":
        """The sessions that are opening from here: §3.5."""

    def new_session_id(self) -> int:
        """Draw a receive session ID that no session uses: §3.3."""

    def add_job(self, job: Job[Any]) -> None:
        """Have slow work done: see `Job`."""

    def on_keying_sent(self, opening: "Opening") -> None:
        """An opening session has a receive session ID: §3.5.1.1.1."""

    def on_opened(self, opening: "Opening", keys: "Keys", far_id: int, now: float) -> None:
        """An opening session is open: §3.5.1.1.1."""

    def on_ended(self, opening: "Opening", now: float) -> None:
        """An opening session will not be opened: §3.5."""


class Opening:
    """One session that is being opened from here: §3.5.1.1.1, `FIGURE_8`.

    `epd` is the Endpoint Discriminator of the wanted far end; `candidates` are the addresses being
    asked.  From S_KEYING_SENT on, `address` is DESTADDR, `near_id` our session ID, and
    `far_certificate` the responder's.  When it has failed `reason` says why; if there is a session
    or an opening that serves instead, that is `instead`.  `is_wanted` until it is cancelled.
    """

    def __init__(
        self, host: StartupHost, epd: bytes, tag: bytes, addresses: Iterable[Address], now: float
    ) -> None:
        self._host = host
        self.epd, self.tag = epd, tag
        self.state = OpeningState.IHELLO_SENT
        self.reason = ""
        self.is_wanted = True
        self.instead: Session | Opening | None = None
        self.candidates = {address: HandshakeBackoff(now) for address in addresses}
        self.address: Address = ("", 0)
        self.near_id = 0
        self.far_certificate = b""
        self._timeout = now + OPEN_TIMEOUT
        self._cookie = b""
        self._cookie_has_changed = False
        self._agreement: Agreement | None = None
        self._agreed: tuple[Keys, int] | None = None  # and the far end's session ID
        self._keying = HandshakeBackoff(now)
        self._is_agreeing = False

    def __repr__(self) -> str:
        return f"Opening({self.state}, {self.reason or self.address})"

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None once it is decided: §3.5.1.1.1."""
        if not FIGURE_8[self.state]:
            return None
        due = [self._timeout]
        if self.state is OpeningState.IHELLO_SENT:
            due += [backoff.due for backoff in self.candidates.values()]
        elif self._agreement is not None:
            due.append(self._keying.due)
        return min(due)

    def is_destination(self, address: Address) -> bool:
        """Tell whether we are asking or keying there: §3.5.1.3 tells glare by this."""
        if self.state is OpeningState.IHELLO_SENT:
            return address in self.candidates
        return self.state is OpeningState.KEYING_SENT and address == self.address

    def tick(self, now: float) -> None:
        """Send an unanswered chunk again: §3.5.1.1.1."""
        if now >= self._timeout:  # §3.5.1.1.1 [ultimate-timeout]
            self._on(OpeningEvent.TIMEOUT, now, "nobody has answered")
        else:
            self._on(OpeningEvent.RESEND, now)  # §3.5.1.1.1 [hello-backoff] [keying-backoff]

    def on_redirect(self, redirect: ResponderRedirect, source: Address, now: float) -> None:
        """Ask elsewhere too, at no more destinations than may be added: §3.5.1.1.1."""
        if not self._heeds(OpeningEvent.REDIRECT):  # §3.5.1.1.1 [redirect-adds]
            return
        most = self._host.limits.redirect_threshold
        destinations = (
            [source] if redirect.is_implied else map(told, redirect.redirect_destinations)
        )
        for address in islice(destinations, most):
            if len(self.candidates) >= most:  # §3.5.1.1.1 [threshold-24]
                break
            if is_sendable(address):
                # §3.5.1.1.1 [redirect-adds]
                self.candidates.setdefault(address, HandshakeBackoff(now))
        self._on(OpeningEvent.REDIRECT, now)

    def on_rhello(self, hello: ResponderHello, source: Address, now: float) -> None:
        """Agree with the first wanted far end that answers: §3.5.1.1.1, §3.5.1.7."""
        certificate, profile = hello.responder_certificate, self._host.profile
        # §3.5.1.1.1 [first-rhello]
        if not self._heeds(OpeningEvent.RHELLO):
            return
        if self._is_too_long(hello):
            return
        # §3.5.1.1.1 [rhello-certificate-selected] [rhello-certificate-authentic]
        if not profile.is_selected(certificate, self.epd) or not profile.is_authentic(certificate):
            return
        duplicates = self._host.duplicates
        self.instead = duplicates.find(certificate, self.epd)
        if self.instead is not None:  # §3.5.1.1.1 [duplicate-aborted]
            self._on(OpeningEvent.DUPLICATE, now, "there is such a session already")
            return
        if duplicates.awaited(self, certificate, source):  # §3.5.1.1.1 [duplicate-aborted]
            self.give_way(now)
            return
        # §3.5.1.1.1 [first-rhello], §3.5.1.7 [quickest-answer]
        self.address, self.far_certificate, self._cookie = source, certificate, hello.cookie
        self.near_id = self._host.new_session_id()  # §3.5.1.1.1 [unique-near-id]
        # §3.5.1.1.1 [first-rhello], §3.5.1.7 [quickest-answer]: no later one
        self._on(OpeningEvent.RHELLO, now)

    def on_cookie_change(self, change: RHelloCookieChange, now: float) -> None:
        """Sign again, once and no more, with another cookie: §3.5.1.2, §2.3.6."""
        is_ours = self._agreement is not None and change.old_cookie == self._cookie
        # §3.5.1.2 [changes-once]
        if not self._heeds(OpeningEvent.COOKIE_CHANGE) or not is_ours or self._cookie_has_changed:
            return
        if len(change.new_cookie) > self._host.limits.field_bytes:
            return
        # §3.5.1.2 [adopts-new-cookie]
        self._cookie, self._cookie_has_changed = change.new_cookie, True
        self._keying = HandshakeBackoff(now)
        self._on(OpeningEvent.COOKIE_CHANGE, now)  # §2.3.6 [signs-again]

    def on_rikeying(self, keying: ResponderInitialKeying, now: float) -> None:
        """Make the keys of the session, or wait for another RIKeying: §3.5.1.1.1."""
        agreement, far_id = self._agreement, keying.responder_session_id
        if not self._heeds(OpeningEvent.RIKEYING) or agreement is None or self._is_agreeing:
            return
        signed = keying.signed_parameters(agreement.component)
        verified = self._host.profile.verify(self.far_certificate, signed, keying.signature)
        # §3.5.1.1.1 [rikeying-accepted], §3.3 [zero-is-startup]
        if not verified or far_id == 0:
            return
        self._is_agreeing = True
        far_component = keying.session_key_responder_component
        work = partial(agreement.agree, far_component)
        self._host.add_job(Job(work, partial(self._on_agreed, far_id)))

    def cancel(self, now: float, reason: str = "cancelled") -> None:
        """Give up, without a word to the network: no responder keeps anything for us (§3.5)."""
        self.is_wanted = False
        self._on(OpeningEvent.CANCEL, now, reason)

    def give_way(self, now: float) -> None:
        """Leave it to a session that the far end opens: §3.5.1.3 [far-prevails]."""
        self._on(OpeningEvent.GLARE, now, "the far end opens it")

    def _heeds(self, event: OpeningEvent) -> bool:
        return event in FIGURE_8[self.state]

    def _on(self, event: OpeningEvent, now: float, reason: str = "") -> None:
        """Follow the arrow of `event`; one that is not drawn is an event to ignore."""
        if not self._heeds(event):
            return
        self.state, orders = FIGURE_8[self.state][event]
        self.reason = self.reason or reason
        for order in orders:
            _OBEY[order](self, now)

    def _send_ihello(self, now: float) -> None:
        for address, backoff in self.candidates.items():  # §3.5.1.1.1 [separate-backoffs]
            if backoff.is_due(now):
                self._host.packets.send(InitiatorHello(self.epd, self.tag), address, now)

    def _make_key(self, now: float) -> None:
        self._host.on_keying_sent(self)
        work = partial(self._host.profile.initiate, self.far_certificate)
        self._host.add_job(Job(work, self._on_initiated))

    def _on_initiated(self, result: "Agreement | RemoteError", now: float) -> None:
        if not self._heeds(OpeningEvent.KEY_MADE):
            return
        if isinstance(result, RemoteError):
            self._on(OpeningEvent.NO_KEY, now, result.description)
            return
        self._agreement, self._keying = result, HandshakeBackoff(now)
        self._on(OpeningEvent.KEY_MADE, now)

    def _send_iikeying(self, now: float) -> None:
        """Send it while keys are made of an answer, too: that may turn out to be none."""
        if self._agreement is not None and self._keying.is_due(now):
            self._host.packets.send(self._iikeying(self._agreement), self.address, now)

    def _on_agreed(self, far_id: int, result: "Keys | RemoteError", now: float) -> None:
        self._is_agreeing = False
        if not isinstance(result, RemoteError):
            self._agreed = result, far_id
            self._on(OpeningEvent.RIKEYING, now)

    def _begin(self, now: float) -> None:
        assert self._agreed is not None
        self._host.on_opened(self, *self._agreed, now)

    def _end(self, now: float) -> None:
        self._host.on_ended(self, now)

    def _iikeying(self, agreement: "Agreement") -> InitiatorInitialKeying:
        """Construct and sign the IIKeying: §3.5.1.1.1 [iikeying-sent]."""
        profile = self._host.profile
        keying = InitiatorInitialKeying(
            # §2.3.7 [has-cookie]
            self.near_id,
            self._cookie,
            profile.certificate,
            agreement.component,
            b"",
        )
        return replace(keying, signature=profile.sign(keying.signed_parameters))

    def _is_too_long(self, hello: ResponderHello) -> bool:
        """Whether an RHello would not fit an IIKeying, or costs too much memory to keep."""
        most = self._host.limits.field_bytes
        return max(len(hello.cookie), len(hello.responder_certificate)) > most


_OBEY: Final[Mapping[OpeningOrder, Callable[[Opening, float], None]]] = {
    OpeningOrder.SEND_IHELLO: Opening._send_ihello,
    OpeningOrder.MAKE_KEY: Opening._make_key,
    OpeningOrder.SEND_IIKEYING: Opening._send_iikeying,
    OpeningOrder.BEGIN: Opening._begin,
    OpeningOrder.END: Opening._end,
}


class Openings:
    """The sessions that an endpoint is opening, and how each is found: §3.5.1.1.1.

    Hellos are told apart by tag, keyings by session ID: so every opening session is here by tag,
    and in S_KEYING_SENT by session ID too.
    """

    def __init__(self, profile: "CryptoProfile", random: Callable[[int], bytes]) -> None:
        self._profile, self._random = profile, random
        self.by_tag: dict[bytes, Opening] = {}
        self.by_id: dict[int, Opening] = {}

    @property
    def all(self) -> list[Opening]:
        """A copy of all, as some may end meanwhile, in the order they began: §3.5."""
        return list(self.by_tag.values())

    def new_tag(self) -> bytes:
        """Draw a tag that no opening has: §3.5.1.1.1."""
        # §3.5.1.1.1 [unique-tag] [tag-unguessable]
        while (tag := self._random(TAG_BYTES)) in self.by_tag:
            continue
        return tag

    def add(self, opening: Opening) -> None:
        """Keep a new one: §3.5.1.1.1."""
        self.by_tag[opening.tag] = opening

    def discard(self, opening: Opening) -> None:
        """Forget one that is decided: §3.5, Figure 8."""
        self.by_tag.pop(opening.tag, None)
        self.by_id.pop(opening.near_id, None)

    def keying_with(self, canonical_epd: bytes, epd: bytes) -> Opening | None:
        """Find one that is keying with an identity which `epd` selects too: §3.5.1.1.1."""
        profile = self._profile
        for opening in self.by_id.values():
            far = opening.far_certificate
            if profile.canonical_epd(far) == canonical_epd and profile.is_selected(far, epd):
                return opening
        return None
