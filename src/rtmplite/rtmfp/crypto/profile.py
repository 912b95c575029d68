"""What a Cryptography Profile does for RTMFP, whichever one it is.

Implements RFC 7016 §2.2.2 and §3.2, which leave packet encryption, identities and key agreement
to the profile.  The machines of startup and sessions know these interfaces alone;
`rtmplite.rtmfp.crypto.flash_profile.FlashProfile` fills them for Flash (RFC 7425 §4).

Certificates, Endpoint Discriminators (EPDs), session keying components and signatures are opaque
bytes to all but the profile.  What the profile refuses raises RemoteError; the tests that answer
yes or no never raise.
"""

from dataclasses import dataclass, field
from typing import Protocol


class PacketCipher(Protocol):
    """Encrypts and authenticates the packets of one session: §2.2.2.

    It may count packets in both directions, so a session has one of its own, and a packet that is
    sent again is sealed again.
    """

    def seal(self, packet: bytes) -> bytes:
        """Give the Encrypted Packet for a plain one (§2.2.4): padded, numbered, authenticated."""

    def open(self, encrypted: bytes | memoryview) -> bytes:
        """Give the plain packet, padding included; RemoteError if forged, damaged or replayed.

        §2.2.2 wants verification here.  A packet that is refused leaves the cipher as it was.
        """

    def room(self, size: int) -> int:
        """Give the length of the longest plain packet that seals to at most `size` bytes now.

        Own design: what verification and padding cost is the profile's secret.  0 if none does.
        """


@dataclass(frozen=True, slots=True)
class Keys:
    """What two ends share once both keying components are known: RFC 7425 §4.6."""

    cipher: PacketCipher = field(repr=False)
    near_nonce: bytes = field(repr=False)
    far_nonce: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyingAnswer:
    """A responder's half of the keying, and the result: §2.3.8, §3.5.1.1.2."""

    component: bytes
    keys: Keys


class Agreement(Protocol):
    """An initiator's half of one keying, waiting for the responder's: §3.5.1.1.1."""

    @property
    def component(self) -> bytes:
        """The Session Key Initiator Component to send: §2.3.7."""

    def agree(self, far_component: bytes) -> Keys:
        """Combine with the Session Key Responder Component: §2.3.8, §3.5.1.1.1.

        Slow and without side effects: run it off the hub.  Raises RemoteError if the component
        is not acceptable; the agreement may then be tried with another one.
        """


class CryptoProfile(Protocol):
    """An endpoint's identity, and what it can tell about others': the list in §3.2."""

    @property
    def certificate(self) -> bytes:
        """The near certificate, as RHello and IIKeying carry it: §2.3.4, §2.3.7."""

    def default_cipher(self) -> PacketCipher:
        """Give the cipher of the Default Session Key; it has no state and serves all: §2.2.2."""

    def selects(self, epd: bytes) -> bool:
        """Tell whether an EPD selects the local endpoint: §3.2."""

    def is_selected(self, certificate: bytes, epd: bytes) -> bool:
        """Tell whether an EPD selects a certificate: §3.2."""

    def is_authentic(self, certificate: bytes) -> bool:
        """Tell whether a certificate is authentic: §3.2."""

    def fingerprint(self, certificate: bytes) -> bytes:
        """Give the short name of an identity, in Flash the peer id: RFC 7425 §4.3.2.

        RemoteError if the certificate is malformed.
        """

    def wanted_fingerprint(self, epd: bytes) -> bytes | None:
        """Give the fingerprint by which an EPD selects, None if it selects by anything else.

        RFC 7425 §4.4.2.3.  A redirector looks its sessions up by this instead of trying each.
        """

    def canonical_epd(self, certificate: bytes) -> bytes:
        """Give the Canonical Endpoint Discriminator of a certificate: §3.2.

        RemoteError if the certificate is malformed.
        """

    def initiate(self, far_certificate: bytes) -> Agreement:
        """Make our half of the keying with a responder: §3.5.1.1.1.

        Slow: run it off the hub.  It draws from the profile's `random`.  Raises RemoteError if
        the certificates have no key agreement in common.
        """

    def respond(self, far_component: bytes, far_certificate: bytes) -> KeyingAnswer:
        """Answer an initiator's keying component and make the keys: §3.5.1.1.2.

        Slow: run it off the hub.  It draws from the profile's `random`.  Raises RemoteError if
        the component or the certificate is not acceptable.
        """

    def sign(self, parameters: bytes) -> bytes:
        """Sign the parameters of an IIKeying or RIKeying as the near identity: §3.2."""

    def verify(self, certificate: bytes, parameters: bytes, signature: bytes) -> bool:
        """Tell whether the owner of a certificate signed the parameters: §3.2."""

    def wins_glare(self, far_certificate: bytes) -> bool:
        """Tell whether the near end prevails as initiator against the far one: §3.2, §3.5.1.3."""

    def overrides(self, new_certificate: bytes, old_certificate: bytes) -> bool:
        """Tell whether a new session from one overrides a session with the other: §3.2."""
