"""The interfaces of a Cryptography Profile.

Implements RFC 7016 §2.2.2 and §3.2, which leave packet encryption, identities and key agreement
to the profile.  The machines of startup and sessions use these interfaces only;
`rtmplite.rtmfp.crypto.flash_profile.FlashProfile` implements them for Flash (RFC 7425 §4).

Certificates, Endpoint Discriminators (EPDs), session keying components and signatures are opaque
bytes to everything but the profile.  It raises RemoteError for what it refuses; methods that return
a bool never raise.
"""

from dataclasses import dataclass, field
from typing import Protocol


class PacketCipher(Protocol):
    """Encrypts and authenticates the packets of one session: §2.2.2.

    It may number packets in both directions, so each session has its own cipher, and a packet that
    is sent again has to be sealed again.
    """

    def seal(self, packet: bytes) -> bytes:
        """Return a plain packet (§2.2.4) as an Encrypted Packet."""

    def open(self, encrypted: bytes | memoryview) -> bytes:
        """Return the plain packet with its padding; RemoteError if forged, damaged or replayed.

        §2.2.2 asks for this verification.  A packet that is refused does not change the cipher.
        """

    def room(self, size: int) -> int:
        """Return the length of the longest plain packet that seals to at most `size` bytes now.

        0 if none does.  Own design: only the profile knows what verification and padding add.
        """


@dataclass(frozen=True, slots=True)
class Keys:
    """The result of a key agreement: RFC 7425 §4.6."""

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
        """Make the keys with the Session Key Responder Component: §2.3.8, §3.5.1.1.1.

        Slow and without side effects: run it in a thread.  Raises RemoteError if the component
        is not acceptable; the agreement may then be tried with another one.
        """


class CryptoProfile(Protocol):
    """An endpoint's identity, and its judgement of other identities: the list in §3.2."""

    @property
    def certificate(self) -> bytes:
        """The near certificate, as RHello and IIKeying carry it: §2.3.4, §2.3.7."""

    def default_cipher(self) -> PacketCipher:
        """Give the cipher of the Default Session Key; stateless, so one is enough: §2.2.2."""

    def selects(self, epd: bytes) -> bool:
        """Whether an EPD selects the local endpoint: §3.2."""

    def is_selected(self, certificate: bytes, epd: bytes) -> bool:
        """Whether an EPD selects a certificate: §3.2."""

    def is_authentic(self, certificate: bytes) -> bool:
        """Whether a certificate is authentic: §3.2."""

    def fingerprint(self, certificate: bytes) -> bytes:
        """Return the short name of an identity; RemoteError if malformed: RFC 7425 §4.3.2."""

    def wanted_fingerprint(self, epd: bytes) -> bytes | None:
        """Return the fingerprint that an EPD selects by, None if it selects by anything else.

        RFC 7425 §4.4.2.3.  A redirector finds a session by it without trying all of them.
        """

    def canonical_epd(self, certificate: bytes) -> bytes:
        """Return the Canonical EPD of a certificate; RemoteError if malformed: §3.2."""

    def initiate(self, far_certificate: bytes) -> Agreement:
        """Make the initiator's half of the keying with a responder: §3.5.1.1.1.

        Slow: run it in a thread.  It draws from the profile's `random`.  Raises RemoteError if
        the certificates have no key agreement in common.
        """

    def respond(self, far_component: bytes, far_certificate: bytes) -> KeyingAnswer:
        """Answer an initiator's keying component and make the keys: §3.5.1.1.2.

        Slow: run it in a thread.  It draws from the profile's `random`.  Raises RemoteError if
        the component or the certificate is not acceptable.
        """

    def sign(self, parameters: bytes) -> bytes:
        """Sign the parameters of an IIKeying or RIKeying as the near identity: §3.2."""

    def verify(self, certificate: bytes, parameters: bytes, signature: bytes) -> bool:
        """Whether the owner of a certificate has signed the parameters: §3.2."""

    def wins_glare(self, far_certificate: bytes) -> bool:
        """Whether the near end prevails as initiator over the far end: §3.2, §3.5.1.3."""

    def overrides(self, new_certificate: bytes, old_certificate: bytes) -> bool:
        """Whether a new session with one certificate overrides one with the other: §3.2."""
