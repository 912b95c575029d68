"""The handshake of one stream by DTLS, on the way that ICE has found.

Implements RFC 5764 §4.1 at the edge.

Own design: the owner makes the handshake, since a plain phone runs without OpenSSL.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic
from p2psip.sdp.dtls_transport import DtlsLine, DtlsTransport, secured
from p2psip.sdp.jsep import PROTOCOLS
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.session import MediaDescription, SessionDescription

MasterKey = tuple[bytes, bytes]


class Handshake(Protocol):
    """One end of a handshake, such as those of `p2psip.net.dtls`: RFC 5764 §4.2."""

    failed: str
    deadline: float | None

    @property
    def keys(self) -> tuple[MasterKey, MasterKey] | None:
        """Our master key and salt, and the peer's, when it is done."""

    def begin(self, now: float) -> list[bytes]:
        """Say hello, as the client."""

    def received(self, data: bytes, now: float) -> list[bytes]:
        """Take a datagram, and return the datagrams that answer it."""

    def tick(self, now: float) -> list[bytes]:
        """Send again what is due."""

    def close(self) -> list[bytes]:
        """Tell the peer that this is the end."""


class DtlsSettings(NamedTuple):
    """The hash of our certificate, and the maker of an end for a peer's hash, as client or not."""

    fingerprint: str
    make: Callable[[str, bool], Handshake]


class DtlsFlow:
    """The DTLS of one stream, from its first description to `close`.

    `send(data)` sends a datagram by the way that ICE has found.  `on_keys(ours, theirs)` is called
    once the handshake is done, and `on_lost(reason)` if it fails.

    Own design: a DTLS alert of the peer does not end the call, since its BYE does.
    """

    def __init__(
        self,
        settings: DtlsSettings,
        send: Callable[[bytes], object],
        on_keys: Callable[[MasterKey, MasterKey], object],
    ) -> None:
        self.on_lost: Callable[[str], object] = lambda reason: None
        self._settings, self._send, self._on_keys = settings, send, on_keys
        self._setup, self._theirs = "", ""  # our part, and the hash that we expect
        self._end: Handshake | None = None
        self._is_begun = self._is_done = self._is_over = False
        self._alarm = Alarm(self)

    # -- signalling ---------------------------------------------------------------------

    def offer(self, plain: LocalTransport) -> LocalTransport:
        """Write the transport of an offer: RFC 5763 §5."""
        # RFC 5763 §5 [offers-actpass]
        return secured(plain, self._settings.fingerprint, "actpass", PROTOCOLS[0])

    def answer(
        self, plain: LocalTransport, line: MediaDescription, session: SessionDescription
    ) -> LocalTransport | None:
        """Write the transport of an answer to a line, None for one without DTLS: RFC 5763 §5."""
        theirs = DtlsLine.read(line, session)
        if theirs is None:
            return None
        setup = theirs.answer(self._setup)
        return secured(plain, self._settings.fingerprint, setup, line.protocol)

    def settle(
        self, ours: DtlsTransport, line: MediaDescription, session: SessionDescription
    ) -> None:
        """Take an agreement; a handshake that was made stays: RFC 5763 §5."""
        theirs = DtlsLine.read(line, session)
        if theirs is None or self._end is not None:
            return
        is_client = "active" in (ours.setup, {"passive": "active"}.get(theirs.setup))
        self._setup = "active" if is_client else "passive"
        self._end = self._settings.make(theirs.fingerprint, is_client)

    # -- the handshake ------------------------------------------------------------------

    def begin(self) -> None:
        """Say hello as the client, now that there is a way: RFC 5764 §4.1."""
        if self._end is not None and not self._is_begun and self._setup == "active":
            self._is_begun = True
            # RFC 5763 §5 [active-begins]
            self._follow(self._end, self._end.begin(monotonic()))

    def received(self, data: bytes) -> None:
        """Take a datagram of the peer."""
        if self._end is not None and not self._is_over:
            self._follow(self._end, self._end.received(data, monotonic()))

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""
        return None if self._end is None or self._is_over else self._end.deadline

    def tick(self, now: float) -> None:
        """Send again what is due."""
        if self._end is not None:
            self._follow(self._end, self._end.tick(now))

    def close(self) -> None:
        """Tell the peer, and end."""
        self._is_over = True
        for data in self._end.close() if self._end is not None else ():
            self._send(data)
        self._alarm.cancel()

    def _follow(self, end: Handshake, datagrams: list[bytes]) -> None:
        for data in datagrams:
            self._send(data)
        self._alarm.set()
        if end.keys is not None and not self._is_done:
            self._is_done = True
            self._on_keys(*end.keys)
        elif end.failed and not self._is_over:
            self._is_over = True
            self.on_lost(f"DTLS: {end.failed}")
