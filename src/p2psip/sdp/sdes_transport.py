"""The transport of a media line whose keys are in the signalling.

Implements RFC 4568 §5.1, for lines of RTP/SAVP.

    >>> ours = SdesTransport(5004, protocol=SECURE[0], crypto=CryptoAttribute.parse(
    ...     "1 AES_CM_128_HMAC_SHA1_80 inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))
    >>> [each.name for each in ours.attributes()]
    ['crypto']
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from p2psip.sdp.crypto import CryptoAttribute, SrtpKey, answer, choose, cryptos
from p2psip.sdp.line import Attribute
from p2psip.sdp.local_media import PROTOCOLS, LocalTransport
from p2psip.sdp.session import MediaDescription, SessionDescription

SECURE: Final = ("RTP/SAVP", "RTP/SAVPF")  # Source: §1; RFC 5124 §1 for the second
# Source: §6.2.1, the default of SRTP.  §5.1.1 [strongest-first]
# RFC 3711 §5.1 [aes-cm-by-default], §5.2 [sha1-by-default] [tag-of-80]
# RFC 3711 §5.2 [short-tag-is-not-offered]
OFFERED_SUITE: Final = "AES_CM_128_HMAC_SHA1_80"


@dataclass(frozen=True, slots=True)
class SdesTransport(LocalTransport):
    """SRTP at one of our ports, by the key of `crypto`: §5.1.

    `line` is the only one that it answers: another of the offer may have other suites and tags.
    """

    crypto: CryptoAttribute | None = None
    line: MediaDescription | None = None

    @classmethod
    def offering(cls, port: int, key: SrtpKey, suite: str = OFFERED_SUITE) -> Self:
        """Offer SRTP and nothing else: §5.1.1."""
        crypto = CryptoAttribute(1, suite, (key,))  # §5.1.1 [tag-is-unique]
        return cls(port, protocol=SECURE[0], crypto=crypto)

    @classmethod
    def answering(cls, port: int, key: SrtpKey, line: MediaDescription) -> Self | None:
        """Answer an offered line; None if it has no SRTP that we can use: §5.1.2."""
        chosen = choose(cryptos(line)) if line.protocol in SECURE else None  # §6 [with-savp-alone]
        if chosen is None:
            return None
        return cls(port, protocol=line.protocol, crypto=answer(chosen, key), line=line)

    def peer_crypto(self, line: MediaDescription) -> CryptoAttribute | None:
        """Give the peer's half of our attribute, None if the line has none: §5.1.3."""
        ours = self.crypto
        for each in cryptos(line):
            # §5.1.3 [echo-verified] [answer-is-understood]
            if ours and (each.tag, each.suite) == (ours.tag, ours.suite) and each.is_usable:
                return each
        return None

    def accepts(
        self, line: MediaDescription, session: SessionDescription, host: str | None = None
    ) -> bool:
        """Whether a line has SRTP by our attribute, and can be reached: §5.1.2, §5.1.3."""
        if self.line is not None and line is not self.line:
            return False
        if line.protocol not in SECURE or self.peer_crypto(line) is None:
            # §5.1.2 [refused-without-crypto] [one-or-none], §5.1.3 [negotiation-fails]
            # §5.3 [no-attribute-no-stream], §6 [with-savp-alone]
            return False
        plain = replace(line, protocol=PROTOCOLS[0])
        return LocalTransport.accepts(self, plain, session, host)

    def attributes(self) -> tuple[Attribute, ...]:
        """What the line says of its transport, the key among it: §4."""
        # §4 [media-level-only], §5.1.1 [offer-has-crypto]
        ours = () if self.crypto is None else (Attribute("crypto", str(self.crypto)),)
        return (*LocalTransport.attributes(self), *ours)
