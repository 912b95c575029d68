"""The initiator of a session: it asks in many places at once, and agrees with the first answer.

Implements RFC 7016 §3.5.1.1.1, §3.5.1.2 and the left half of Figure 8 in §3.5.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.endpoint.startup import (
    OPEN_TIMEOUT,
    HandshakeBackoff,
    Job,
    OpeningState,
    StartupHost,
    is_sendable,
    told,
)
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import Agreement, Keys
    from rtmplite.rtmfp.session.session import Session

_OPENING: Final = (OpeningState.IHELLO_SENT, OpeningState.KEYING_SENT)


class Opening:
    """One session that is being opened from here: §3.5.1.1.1.

    `epd` is the Endpoint Discriminator of whom we want; `candidates` are the addresses being
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
        self._keying = HandshakeBackoff(now)
        self._is_agreeing = False

    def __repr__(self) -> str:
        return f"Opening({self.state}, {self.reason or self.address})"

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None once it is decided.  Own design: as all machines have."""
        if self.state is OpeningState.IHELLO_SENT:
            hello = min(
                (backoff.due for backoff in self.candidates.values()), default=self._timeout
            )
            return min(self._timeout, hello)
        if self.state is OpeningState.KEYING_SENT:
            return (
                self._timeout if self._agreement is None else min(self._timeout, self._keying.due)
            )
        return None

    def is_destination(self, address: Address) -> bool:
        """Tell whether we are asking or keying there: §3.5.1.3 tells glare by this."""
        if self.state is OpeningState.IHELLO_SENT:
            return address in self.candidates
        return self.state is OpeningState.KEYING_SENT and address == self.address

    def tick(self, now: float) -> None:
        """Send again what has not been answered: §3.5.1.1.1 [hello-backoff] [keying-backoff]."""
        if self.state not in _OPENING:
            return
        if now >= self._timeout:  # §3.5.1.1.1 [ultimate-timeout]
            self._end(OpeningState.OPEN_FAILED, "nobody has answered", now)
        elif self.state is OpeningState.IHELLO_SENT:
            for address, backoff in self.candidates.items():  # §3.5.1.1.1 [separate-backoffs]
                if backoff.is_due(now):
                    self._host.packets.send(InitiatorHello(self.epd, self.tag), address, now)
        elif self._agreement is not None and self._keying.is_due(now):
            # Also while keys are made of an answer: it may turn out to be none.
            self._host.packets.send(self._iikeying(self._agreement), self.address, now)

    def on_redirect(self, redirect: ResponderRedirect, source: Address, now: float) -> None:
        """Ask elsewhere too: §3.5.1.1.1 [redirect-adds] [threshold-24]."""
        if self.state is not OpeningState.IHELLO_SENT:
            return
        destinations = (
            [source] if redirect.is_implied else map(told, redirect.redirect_destinations)
        )
        for address in destinations:
            if len(self.candidates) >= self._host.limits.redirect_threshold:
                break
            if is_sendable(address):
                self.candidates.setdefault(address, HandshakeBackoff(now))
        self.tick(now)

    def on_rhello(self, hello: ResponderHello, source: Address, now: float) -> None:
        """Agree with who answers first: §3.5.1.1.1 [first-rhello], §3.5.1.7 [quickest-answer]."""
        certificate, profile = hello.responder_certificate, self._host.profile
        if self.state is not OpeningState.IHELLO_SENT or self._is_too_long(hello):
            return
        # §3.5.1.1.1 [rhello-certificate-selected] [rhello-certificate-authentic]
        if not profile.is_selected(certificate, self.epd) or not profile.is_authentic(certificate):
            return
        duplicates = self._host.duplicates
        self.instead = duplicates.find(certificate, self.epd)
        if self.instead is not None:  # §3.5.1.1.1 [duplicate-aborted]
            self._end(OpeningState.CLOSED, "there is such a session already", now)
            return
        if duplicates.awaited(self, certificate, source):  # §3.5.1.1.1 [duplicate-aborted]
            self.give_way(now)
            return
        self.state = OpeningState.KEYING_SENT
        self.address, self.far_certificate, self._cookie = source, certificate, hello.cookie
        self.near_id = self._host.new_session_id()  # §3.5.1.1.1 [unique-near-id]
        self._host.on_keying_sent(self)
        self._host.add_job(Job(partial(profile.initiate, certificate), self._on_initiated))

    def on_cookie_change(self, change: RHelloCookieChange, now: float) -> None:
        """Sign again, with another cookie: §3.5.1.2 [adopts-new-cookie], §2.3.6 [signs-again].

        Only once: §3.5.1.2 [changes-once].  Whoever could see the first IIKeying could make us
        sign for ever.
        """
        is_ours = self._agreement is not None and change.old_cookie == self._cookie
        if self.state is not OpeningState.KEYING_SENT or not is_ours or self._cookie_has_changed:
            return
        if len(change.new_cookie) > self._host.limits.field_bytes:
            return
        self._cookie, self._cookie_has_changed = change.new_cookie, True
        self._keying = HandshakeBackoff(now)
        self.tick(now)

    def on_rikeying(self, keying: ResponderInitialKeying, now: float) -> None:
        """Make the keys of the session: §3.5.1.1.1 [rikeying-accepted].

        One that is refused leaves us waiting for another.
        """
        agreement, far_id = self._agreement, keying.responder_session_id
        if self.state is not OpeningState.KEYING_SENT or agreement is None or self._is_agreeing:
            return
        signed = keying.signed_parameters(agreement.component)
        verified = self._host.profile.verify(self.far_certificate, signed, keying.signature)
        if not verified or far_id == 0:  # §3.3 [zero-is-startup]
            return
        self._is_agreeing = True
        far_component = keying.session_key_responder_component
        work = partial(agreement.agree, far_component)
        self._host.add_job(Job(work, partial(self._on_agreed, far_id)))

    def cancel(self, now: float, reason: str = "cancelled") -> None:
        """Give up, without a word to anybody.  Own design: nobody holds state for us."""
        self.is_wanted = False
        if self.state in _OPENING:
            self._end(OpeningState.CLOSED, reason, now)

    def give_way(self, now: float) -> None:
        """Leave it to a session that the far end opens: §3.5.1.3 [far-prevails]."""
        self._end(OpeningState.CLOSED, "the far end opens it", now)

    def _on_initiated(self, result: "Agreement | RemoteError", now: float) -> None:
        if self.state is not OpeningState.KEYING_SENT:
            return
        if isinstance(result, RemoteError):
            self._end(OpeningState.OPEN_FAILED, result.description, now)
            return
        self._agreement, self._keying = result, HandshakeBackoff(now)
        self.tick(now)

    def _on_agreed(self, far_id: int, result: "Keys | RemoteError", now: float) -> None:
        self._is_agreeing = False
        if self.state is OpeningState.KEYING_SENT and not isinstance(result, RemoteError):
            self.state = OpeningState.OPEN
            self._host.on_opened(self, result, far_id, now)

    def _iikeying(self, agreement: "Agreement") -> InitiatorInitialKeying:
        """Construct and sign the IIKeying: §3.5.1.1.1 [iikeying-sent], §2.3.7 [has-cookie]."""
        profile = self._host.profile
        keying = InitiatorInitialKeying(
            self.near_id, self._cookie, profile.certificate, agreement.component, b""
        )
        return replace(keying, signature=profile.sign(keying.signed_parameters))

    def _is_too_long(self, hello: ResponderHello) -> bool:
        """Own design: what would not fit an IIKeying, or costs too much memory to keep."""
        most = self._host.limits.field_bytes
        return max(len(hello.cookie), len(hello.responder_certificate)) > most

    def _end(self, state: OpeningState, reason: str, now: float) -> None:
        self.state, self.reason = state, reason
        self._host.on_ended(self, now)
