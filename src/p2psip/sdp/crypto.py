"""Keys for SRTP in the signalling: the `a=crypto` attribute.

Implements RFC 4568 §4, with SRTP's grammar of §9.2.

A reader of the signalling can decrypt the audio, so it is for signalling under TLS.

Departs from RFC 4568 §3 [keys-are-protected] [sips-or-smime]: whoever wants SRTP in a script
chooses how the signalling goes; by UDP, keys are offered and answered as well.  The gateway
has keys with TLS and on one machine, unless its operator wants more (`--srtp`).
Departs from RFC 4568 §3 [no-hop-alone]: where that is TLS, it is from hop to hop.
Departs from RFC 4568 §8 [signalling-is-secure]: the same choice, which is not ours.
Departs from RFC 4568 §8.3 [description-is-authentic] [description-is-encrypted]: they are so where
that choice is TLS.
Departs from RFC 8643 §4 [signalling-is-encrypted]: the same choice, for keys beside RTP/AVP.
Not done: RFC 4568 §8.3 [end-to-end]: there is no S/MIME, in phones neither, and so proxies on the
way can read the keys.

    >>> crypto = CryptoAttribute.parse(
    ...     "1 AES_CM_128_HMAC_SHA1_80 inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA|2^20"
    ... )
    >>> crypto.tag, crypto.keys[0].lifetime, len(crypto.keys[0].key)
    (1, 1048576, 16)
    >>> str(crypto)
    '1 AES_CM_128_HMAC_SHA1_80 inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA|1048576'
"""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.line import find_all, words
from p2psip.sdp.session import MediaDescription
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80, SUITES, SrtpSuite

MAX_LIFETIME: Final = 1 << 48  # packets. Source: §6.2
MAX_KEYS: Final = 16  # Own design: of one attribute; memory must be bounded
_MAX_TAG: Final = 9  # digits. Source: §9.1


@dataclass(frozen=True, slots=True)
class SrtpKey:
    """A master key and salt: §6.1; `lifetime` in packets, `mki` as (value, octets)."""

    # RFC 3711 §3.2.1 [random-and-secret], RFC 7714 §13.1 [keys-are-secret]
    key: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    lifetime: int | None = None
    mki: tuple[int, int] | None = None

    @property
    def secrets(self) -> tuple[bytes, bytes]:
        """Key and salt, by which two are the same key: §6.1."""
        return self.key, self.salt

    @classmethod
    def parse(cls, text: str, suite: SrtpSuite = AES_CM_128_HMAC_SHA1_80) -> Self:
        """Read what stands behind `inline:` for a suite, or raise RemoteError: §6.1."""
        encoded, *options = text.split("|")
        try:
            both = base64.b64decode(encoded.encode("ascii", "replace"), validate=True)
        except binascii.Error:
            raise RemoteError("SRTP key that is not base64") from None
        # §6.1 [length-of-the-suite], §6.2.1 [key-of-30-octets]
        # RFC 6188 §4 and RFC 7714 §12 for the suites of other lengths
        if len(both) != suite.key_octets + suite.salt_octets:
            raise RemoteError(f"SRTP key and salt of {len(both)} octets")
        lifetime, mki = None, None
        for option in options:
            if ":" in option and mki is None:
                value, _, size = option.partition(":")
                mki = _positive(value, 1 << 62), _positive(size, 128)  # §6.1 [mki-has-a-length]
            elif lifetime is None and mki is None:
                power = option.startswith("2^")
                # §6.1 [lifetime-of-the-suite] [bad-lifetime-is-no-key]
                digits = _positive(option[2:] if power else option, 48 if power else MAX_LIFETIME)
                lifetime = 1 << digits if power else digits
            else:
                raise RemoteError("SRTP key with a parameter too many")
        return cls(both[: suite.key_octets], both[suite.key_octets :], lifetime, mki)

    def __str__(self) -> str:
        """Write what stands behind `inline:`: §6.1."""
        parts = [base64.b64encode(self.key + self.salt).decode()]
        if self.lifetime is not None:
            parts.append(str(self.lifetime))
        if self.mki is not None:
            parts.append(f"{self.mki[0]}:{self.mki[1]}")
        return "|".join(parts)


@dataclass(frozen=True, slots=True)
class CryptoAttribute:
    """One way to protect a stream: §4.  `parameters` are the session parameters, as written."""

    tag: int
    suite: str
    keys: tuple[SrtpKey, ...]
    parameters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.keys or len(str(self.tag)) > _MAX_TAG or self.tag < 0:
            raise LocalError("a crypto attribute has a tag of up to nine digits, and a key")

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of an `a=crypto`, or raise RemoteError: §9.1."""
        match words(value):
            # §5.1.3 [answer-has-a-key]
            case [tag, name, keys, *parameters] if len(tag) <= _MAX_TAG:
                inline = [_inline(each) for each in keys.split(";", MAX_KEYS)[:MAX_KEYS]]
                suite = SUITES.get(name, AES_CM_128_HMAC_SHA1_80)
                read = tuple(SrtpKey.parse(each, suite) for each in inline)
                return cls(_number(tag, 10**_MAX_TAG), name, read, tuple(parameters))
        raise RemoteError("Bad crypto attribute")

    def __str__(self) -> str:
        """Write the value of an `a=crypto`: §9.1."""
        keys = ";".join(f"inline:{each}" for each in self.keys)
        # §4.1 [tag-without-zeros]
        return " ".join((str(self.tag), self.suite, keys, *self.parameters))

    @property
    def is_usable(self) -> bool:
        """Whether we can do what it asks: §5.1.2.

        One key without an MKI, a suite of `SUITES`, and no session parameter but those that a
        leading "-" makes optional (§6.3.7) and WSH, a hint.
        """
        unknown = [
            each for each in self.parameters if not each.startswith(("-", "WSH="))
        ]  # §6.3.7 [mandatory-unless-dashed]
        return self.suite in SUITES and len(self.keys) == 1 and not self.keys[0].mki and not unknown


def cryptos(media: MediaDescription) -> tuple[CryptoAttribute, ...]:
    """Read the valid crypto attributes of a line, the preferred one first: §5.1.1."""
    found = []
    for value in find_all(media.attributes, "crypto"):  # §4 [media-level-only]
        try:
            found.append(CryptoAttribute.parse(value))
        except RemoteError:
            continue
    return tuple(found)


def choose(offered: Iterable[CryptoAttribute]) -> CryptoAttribute | None:
    """Choose the first that we can use; None means that the stream is refused: §5.1.2."""
    # §5.1.2 [first-supported] [one-or-none], §7.1.2 [all-is-acceptable]
    return next((each for each in offered if each.is_usable), None)


def answer(accepted: CryptoAttribute, key: SrtpKey) -> CryptoAttribute:
    """Accept an offered attribute, with the key that protects what we send: §5.1.2."""
    # §5.1.2 [tag-and-suite-kept] [key-in-each-direction]
    # §7.1.2 [key-other-than-the-offers] [no-parameter-added]
    return CryptoAttribute(accepted.tag, accepted.suite, (key,))


@dataclass(frozen=True, slots=True)
class AgreedKeys:
    """What protects a line: our attribute and the peer's, of one suite: §5.1.3.

    `profile` is that of the line, as an offer of ours is to have it again.
    """

    ours: CryptoAttribute
    theirs: CryptoAttribute
    profile: str

    @property
    def suite(self) -> SrtpSuite:
        """The suite of both: §5.1.2."""
        return SUITES[self.ours.suite]


def agreed_keys(ours: MediaDescription, theirs: MediaDescription) -> AgreedKeys | None:
    """The keys of an accepted line, None for plain RTP: §5.1.3."""
    for mine in cryptos(ours):
        # §6.4 [own-key-of-each]
        if (peer := matching((mine,), theirs)) is not None:
            return AgreedKeys(mine, peer, ours.protocol)
    return None


def matching(ours: Iterable[CryptoAttribute], theirs: MediaDescription) -> CryptoAttribute | None:
    """The peer's half of one of our attributes, None if its line has none: §5.1.3."""
    known = {(each.tag, each.suite) for each in ours}
    for each in cryptos(theirs):
        # §5.1.3 [echo-verified] [answer-is-understood]
        if (each.tag, each.suite) in known and each.is_usable:
            return each
    return None


def _inline(text: str) -> str:
    method, colon, info = text.partition(":")
    if method.lower() != "inline" or not colon:
        raise RemoteError("Key method other than inline")
    return info


def _positive(text: str, most: int) -> int:
    """Read a number without leading zeros: §6.1."""
    if text.startswith("0"):  # §6.1 [no-leading-zeros] [bad-lifetime-is-no-key]
        raise RemoteError("Number with a leading zero in a crypto attribute")
    return _number(text, most)


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= most):
        raise RemoteError("Bad number in a crypto attribute")
    return int(text)
