"""SRTP by libsrtp, for the packets of calls: the same as `p2psip.srtp.srtp`, in C.

Implements RFC 3711 §3 by way of pylibsrtp, the extra `srtp`.

Own design: `srtp` is the specification, and what is used where the extra is missing, or for a suite
that libsrtp has no profile for; a test draws packets and holds both together.  They differ in one
thing: a report by counter mode that is not encrypted, which no end can agree to (RFC 4568 §6.3.2),
is refused here.

    >>> key, salt = bytes(16), bytes(14)
    >>> sender, receiver = srtp_sender(key, salt), srtp_receiver(key, salt)
    >>> packet = bytes.fromhex("80000001000000a00000cafe") + b"sound"
    >>> receiver.open_rtp(sender.protect_rtp(packet)) == packet
    True
"""

import importlib
import importlib.util
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, Protocol

from p2psip.errors import LocalError, RemoteError
from p2psip.srtp.srtp import (
    CAME_BEFORE,
    MAX_SOURCES,
    NOT_AUTHENTIC,
    WINDOW,
    SrtpReceiver,
    SrtpSender,
)
from p2psip.srtp.suites import (
    AEAD_AES_128_GCM,
    AEAD_AES_256_GCM,
    AES_CM_128_HMAC_SHA1_32,
    AES_CM_128_HMAC_SHA1_80,
    SrtpSuite,
)

pylibsrtp: Any = None  # None without the extra
ffi: Any = None
if importlib.util.find_spec("pylibsrtp") is not None:
    pylibsrtp = importlib.import_module("pylibsrtp")
    ffi = importlib.import_module("pylibsrtp._binding").ffi

MAX_PACKET: Final = 65_536  # octets; pylibsrtp itself has room for 1,500
SENDER_WINDOW: Final = 0x7FFF  # packets; a sender is told by `srtp` which may be sent again: all
_PROFILES: Final = {
    AES_CM_128_HMAC_SHA1_80: "SRTP_PROFILE_AES128_CM_SHA1_80",
    AES_CM_128_HMAC_SHA1_32: "SRTP_PROFILE_AES128_CM_SHA1_32",
    AEAD_AES_128_GCM: "SRTP_PROFILE_AEAD_AES_128_GCM",
    AEAD_AES_256_GCM: "SRTP_PROFILE_AEAD_AES_256_GCM",
}
# What libsrtp says by the beginning, and what `srtp` does
_REASONS: Final = {"replay check": CAME_BEFORE, "authenticati": NOT_AUTHENTIC}
_SSRC: Final = Struct("!I").unpack_from


class SrtpProtecting(Protocol):
    """Protects what one end sends, as `SrtpSender` does: RFC 3711 §3.3."""

    def protect_rtp(self, packet: bytes) -> bytes:
        """Make an SRTP packet: RFC 3711 §3.3."""

    def protect_rtcp(self, compound: bytes) -> bytes:
        """Make an SRTCP packet: RFC 3711 §3.4."""


class SrtpOpening(Protocol):
    """Opens what one end receives, as `SrtpReceiver` does: RFC 3711 §3.3."""

    def open_rtp(self, data: bytes) -> bytes:
        """Read an SRTP packet, or raise RemoteError: RFC 3711 §3.3."""

    def open_rtcp(self, data: bytes) -> bytes:
        """Read an SRTCP packet, or raise RemoteError: RFC 3711 §3.4."""


def is_fast(suite: SrtpSuite) -> bool:
    """Whether packets of a suite are protected by libsrtp here."""
    return pylibsrtp is not None and suite in _PROFILES


def srtp_sender(
    key: bytes, salt: bytes, suite: SrtpSuite = AES_CM_128_HMAC_SHA1_80
) -> SrtpProtecting:
    """The fastest sender that there is for a suite: RFC 3711 §3.2.1."""
    reference = SrtpSender(key, salt, suite)
    return LibSrtpSender(key, salt, suite) if is_fast(suite) else reference


def srtp_receiver(
    key: bytes,
    salt: bytes,
    suite: SrtpSuite = AES_CM_128_HMAC_SHA1_80,
    *,
    window: int = WINDOW,
) -> SrtpOpening:
    """The fastest receiver that there is for a suite: RFC 3711 §3.2.1."""
    reference = SrtpReceiver(key, salt, suite, window=window)
    return LibSrtpReceiver(key, salt, suite, window=window) if is_fast(suite) else reference


class LibSrtpSender:
    """Protects what one end sends: RFC 3711 §3.3.  The suite has to be one of libsrtp's."""

    def __init__(self, key: bytes, salt: bytes, suite: SrtpSuite) -> None:
        self._session = _session(key, salt, suite, is_sender=True)

    def protect_rtp(self, packet: bytes) -> bytes:
        """Make an SRTP packet: RFC 3711 §3.3."""
        return _protected(self._session.protect, packet)

    def protect_rtcp(self, compound: bytes) -> bytes:
        """Make an SRTCP packet: RFC 3711 §3.4."""
        return _protected(self._session.protect_rtcp, compound)


class LibSrtpReceiver:
    """Opens what one end receives, each packet once: RFC 3711 §3.3.

    `window` is as in `SrtpReceiver`; the suite has to be one of libsrtp's.
    """

    def __init__(self, key: bytes, salt: bytes, suite: SrtpSuite, *, window: int = WINDOW) -> None:
        self._session = _session(key, salt, suite, window=window)
        self._rtp_sources: set[int] = set()
        self._rtcp_sources: set[int] = set()

    def open_rtp(self, data: bytes) -> bytes:
        """Read an SRTP packet, or raise RemoteError: RFC 3711 §3.3."""
        return _opened(self._session.unprotect, data, self._rtp_sources, 8)

    def open_rtcp(self, data: bytes) -> bytes:
        """Read an SRTCP packet, or raise RemoteError: RFC 3711 §3.4."""
        return _opened(self._session.unprotect_rtcp, data, self._rtcp_sources, 4)


def _session(
    key: bytes, salt: bytes, suite: SrtpSuite, *, is_sender: bool = False, window: int = 0
) -> Any:
    policy = pylibsrtp.Policy(
        key=key + salt,
        ssrc_type=getattr(pylibsrtp.Policy, f"SSRC_ANY_{'OUT' if is_sender else 'IN'}BOUND"),
        srtp_profile=getattr(pylibsrtp.Policy, _PROFILES[suite]),
    )
    policy.allow_repeat_tx = is_sender
    policy.window_size = SENDER_WINDOW if is_sender else window
    session = pylibsrtp.Session(policy)
    session._cdata, session._buffer = _room()
    return session


def _room() -> tuple[Any, Any]:
    """The octets that libsrtp works on, which all share, as each packet is done in one go."""
    if not _ROOM:
        room = ffi.new("char[]", MAX_PACKET + 256)
        _ROOM.append((room, ffi.buffer(room)))
    return _ROOM[0]


_ROOM: Final[list[tuple[Any, Any]]] = []


def _protected(protect: Callable[[bytes], bytes], packet: bytes) -> bytes:
    try:
        return bytes(protect(packet))
    except (pylibsrtp.Error, ValueError) as error:
        raise LocalError(f"a packet that cannot be protected: {error}") from None


def _opened(open_: Callable[[bytes], bytes], data: bytes, sources: set[int], at: int) -> bytes:
    """Open a packet, whose SSRC stands at `at`; one source too many is refused as `srtp` does."""
    if len(data) < at + 4:
        raise RemoteError("no SRTP packet")
    (ssrc,) = _SSRC(data, at)
    is_new = ssrc not in sources
    if is_new and len(sources) >= MAX_SOURCES:
        raise RemoteError("too many sources of one SRTP key")
    try:
        opened = bytes(open_(data))
    except (pylibsrtp.Error, ValueError) as error:
        # RFC 3711 §3.3 [replayed-is-dropped] [forged-is-dropped]
        raise RemoteError(_REASONS.get(str(error)[:12], "no SRTP packet")) from None
    if is_new:
        sources.add(ssrc)
    return opened
