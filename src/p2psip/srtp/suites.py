"""The crypto suites of SRTP: their ciphers, and how long keys, salts and tags are.

Implements RFC 3711 §8.2, RFC 4568 §6.2, RFC 6188 §4 and RFC 7714 §12.

    >>> suite = SUITES["AEAD_AES_256_GCM"]
    >>> suite.key_octets + suite.salt_octets, suite.tag_octets, suite.is_aead
    (44, 16, True)
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SrtpSuite:
    """A suite by its name in signalling; all counts are octets: RFC 4568 §6.2.

    `tag_octets` is that of a tag of RTP.  With `is_aead` one algorithm encrypts and authenticates
    (RFC 7714 §5.1); else AES in counter mode and HMAC-SHA1 do.
    """

    name: str
    key_octets: int
    salt_octets: int
    tag_octets: int
    is_aead: bool = False

    @property
    def rtcp_tag_octets(self) -> int:
        """The octets of a tag of RTCP, whatever RTP's tag is."""
        # RFC 3711 §5.2 [rtcp-tag-of-80]
        return self.tag_octets if self.is_aead else 10


AES_CM_128_HMAC_SHA1_80: Final = SrtpSuite("AES_CM_128_HMAC_SHA1_80", 16, 14, 10)
AES_CM_128_HMAC_SHA1_32: Final = SrtpSuite("AES_CM_128_HMAC_SHA1_32", 16, 14, 4)
AES_192_CM_HMAC_SHA1_80: Final = SrtpSuite("AES_192_CM_HMAC_SHA1_80", 24, 14, 10)
AES_192_CM_HMAC_SHA1_32: Final = SrtpSuite("AES_192_CM_HMAC_SHA1_32", 24, 14, 4)
AES_256_CM_HMAC_SHA1_80: Final = SrtpSuite("AES_256_CM_HMAC_SHA1_80", 32, 14, 10)
AES_256_CM_HMAC_SHA1_32: Final = SrtpSuite("AES_256_CM_HMAC_SHA1_32", 32, 14, 4)
AEAD_AES_128_GCM: Final = SrtpSuite("AEAD_AES_128_GCM", 16, 12, 16, is_aead=True)
AEAD_AES_256_GCM: Final = SrtpSuite("AEAD_AES_256_GCM", 32, 12, 16, is_aead=True)

SUITES: Final = {
    suite.name: suite
    for suite in (
        AES_CM_128_HMAC_SHA1_80,
        AES_CM_128_HMAC_SHA1_32,
        AES_192_CM_HMAC_SHA1_80,
        AES_192_CM_HMAC_SHA1_32,
        AES_256_CM_HMAC_SHA1_80,
        AES_256_CM_HMAC_SHA1_32,
        AEAD_AES_128_GCM,
        AEAD_AES_256_GCM,
    )
}
