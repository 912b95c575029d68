"""The responder to a session: hellos answered without memory, keyings checked before any work.

Implements RFC 7016 §3.5.1.1.2, §3.5.1.2 and §3.5.1.3.

    >>> from rtmplite.rtmfp.endpoint.limits import StartupLimits
    >>> StartupLimits().keyings
    64
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.errors import RemoteError
from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.rtmfp.endpoint.cookie import CookieJar
from rtmplite.rtmfp.endpoint.initiator import Job, Opening, StartupHost
from rtmplite.rtmfp.endpoint.rate_limiter import KEY_BYTES, Limiter
from rtmplite.rtmfp.endpoint.session_table import SessionEntry, Table
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    RHelloCookieChange,
)

if TYPE_CHECKING:
    from rtmplite.rtmfp.crypto.profile import KeyingAnswer

_SECOND: Final = 1.0


@dataclass(frozen=True, slots=True)
class Keying:
    """An IIKeying that has passed all checks; `issued` dates its cookie: §3.5.1.1.2."""

    chunk: InitiatorInitialKeying
    source: Address
    issued: float

    def is_that_of(self, entry: SessionEntry) -> bool:
        """Tell whether it is that of a session again: §3.5.1.1.2 [retransmission-known]."""
        return (
            entry.answer is not None
            and self.chunk.initiator_session_id == entry.session.far_id
            and self.chunk.initiator_certificate == entry.session.far_certificate
            and self.chunk.session_key_initiator_component == entry.component
        )


class ResponderHost(StartupHost, Protocol):
    """The part of an endpoint that only a responder uses: §3.5.1.1.2."""

    table: Table

    @property
    def has_room(self) -> bool:
        """Whether there is room for one more session: §5."""

    def on_accepted(
        self,
        keying: Keying,
        answer: "KeyingAnswer",
        reply: ResponderInitialKeying,
        opening: Opening | None,
        now: float,
    ) -> None:
        """Begin a session that a far end has asked for: §3.5.1.1.2."""


class Responder:
    """Answers hosts that want a session with us, or tells `ignored` why not: §3.5.1.1.2."""

    def __init__(
        self, host: ResponderHost, random: Callable[[int], bytes], ignored: Callable[[str], None]
    ) -> None:
        self._host, self._ignored = host, ignored
        self._cookies = CookieJar(random)
        self._keyings = Limiter(random(KEY_BYTES), host.limits.keyings_per_second, _SECOND)
        self._in_work: dict[Address, Keying] = {}

    @property
    def in_work(self) -> int:
        """The number of keyings that are being computed: §5."""
        return len(self._in_work)

    def on_hello(self, tag: bytes, source: Address, now: float) -> None:
        """Answer a hello of `source` that selects us, and forget it: §3.5.1.1.2."""
        cookie = self._cookies.issue(source, now)  # §3.5.1.1.2 [no-state]
        hello = ResponderHello(tag, cookie, self._host.profile.certificate)
        # §3.5.1.1.2 [rhello-sent]
        if not self._host.packets.send(hello, source, now):
            self._ignored("hellos of an address")

    def on_iikeying(self, chunk: InitiatorInitialKeying, source: Address, now: float) -> None:
        """Check an IIKeying, the cheap things first, and have it computed: §3.5.1.1.2."""
        cookie = self._cookies.check(chunk.cookie_echo, source, now)
        session_id, certificate = chunk.initiator_session_id, chunk.initiator_certificate
        if cookie is None:  # §3.5.1.1.2 [bad-cookie-ignored]
            self._ignored("cookie")
        elif session_id == 0:  # §3.3 [zero-is-startup]
            self._ignored("session ID")
        elif not cookie.is_here:
            # §3.5.1.1.2 [other-address], §3.5.1.2 [cookie-change-sent], §2.3.6 [cookie-changed]
            change = RHelloCookieChange(chunk.cookie_echo, self._cookies.issue(source, now))
            self._host.packets.send(change, source, now, session_id)
        # §3.5.1.1.2 [keying-authentic]
        elif not self._host.profile.is_authentic(certificate) or not self._host.profile.verify(
            certificate, chunk.signed_parameters, chunk.signature
        ):
            self._ignored("certificate or signature")
        else:
            self._on_authentic(Keying(chunk, source, cookie.issued), now)

    def _on_authentic(self, keying: Keying, now: float) -> None:
        chunk, source, limits = keying.chunk, keying.source, self._host.limits
        component, certificate = chunk.session_key_initiator_component, chunk.initiator_certificate
        if not self._is_welcome(keying, now):
            return
        # §5 [resources-bounded]
        if max(len(component), len(certificate)) > limits.field_bytes:
            self._ignored("long field")
        elif source in self._in_work:
            self._ignored("keying in work")
        elif len(self._in_work) >= limits.keyings or not self._host.has_room:
            self._ignored("load")
        elif not self._keyings.allows(rate_limit_key(source[0]), now):
            self._ignored("keyings of a host")
        else:
            self._in_work[source] = keying
            work = partial(self._host.profile.respond, component, certificate)
            self._host.add_job(Job(work, partial(self._on_computed, keying)))

    def _on_computed(
        self, keying: Keying, result: "KeyingAnswer | RemoteError", now: float
    ) -> None:
        """Open the session: §3.5.1.1.2.  Much may have happened meanwhile."""
        del self._in_work[keying.source]
        if isinstance(result, RemoteError):  # §3.5.1.1.2 [keying-authentic]
            self._ignored("keying component")
            return
        if not self._is_welcome(keying, now):
            return
        opening = self._yield(keying, now)
        for entry in self._open_at(keying.source):  # §3.5.1.1.2 [override-closes]
            entry.session.drop(now, "the far end has begun anew")
        reply = ResponderInitialKeying(self._host.new_session_id(), result.component, b"")
        signed = reply.signed_parameters(keying.chunk.session_key_initiator_component)
        # §3.5.1.1.2 [rikeying-sent]
        reply = replace(reply, signature=self._host.profile.sign(signed))
        self._host.on_accepted(keying, result, reply, opening, now)

    def _is_welcome(self, keying: Keying, now: float) -> bool:
        """Whether a keying makes a session beside those there: §3.5.1.1.2, §3.5.1.3."""
        profile, certificate = self._host.profile, keying.chunk.initiator_certificate
        # §3.5.1.3 [one-session]
        if self._openings_to(keying.source) and profile.wins_glare(certificate):
            self._ignored("glare")  # §3.5.1.3 [near-prevails]
            return False
        for entry in self._host.table.at(keying.source):
            if keying.is_that_of(entry):
                # §3.5.1.1.2 [retransmission-answered]; a session that is closing stays so
                if entry.is_open:
                    self.answer(entry, now)
                return False
        for entry in self._open_at(keying.source):
            # §3.5.1.1.2 [no-override-ignored]
            if not profile.overrides(certificate, entry.session.far_certificate):
                self._ignored("another session there")
                return False
            # Own design: a keying whose cookie is older than the session that it would end is no
            # new beginning.  It was recorded, or sent while both ends opened a session and out of
            # the order that glare counts on.
            if keying.issued < entry.issued:
                self._ignored("replay")
                return False
        return True

    def answer(self, entry: SessionEntry, now: float) -> None:
        """Send a session's RIKeying, for the first time or again: §3.5.1.1.2 [rikeying-sent]."""
        if entry.answer is not None:
            session = entry.session
            self._host.packets.send(entry.answer, session.address, now, session.far_id)

    def _yield(self, keying: Keying, now: float) -> Opening | None:
        """Give up our openings with a far end that prevails: §3.5.1.3 [far-prevails].

        Return the opening that the new session will serve, the first; the users of the others hear
        of that one.
        """
        certificate, served = keying.chunk.initiator_certificate, None
        for opening in self._openings_to(keying.source):
            if self._is_same(opening, certificate):
                opening.instead = served
                served = served or opening
                opening.give_way(now)
        return served

    def _is_same(self, opening: Opening, certificate: bytes) -> bool:
        """Whether an opening is with a certificate's owner, as far as is known: §3.5.1.3."""
        if opening.far_certificate:
            return self._host.profile.overrides(certificate, opening.far_certificate)
        return self._host.profile.is_selected(certificate, opening.epd)

    def _openings_to(self, address: Address) -> list[Opening]:
        return [opening for opening in self._host.openings if opening.is_destination(address)]

    def _open_at(self, address: Address) -> list[SessionEntry]:
        return [entry for entry in self._host.table.at(address) if entry.is_open]
