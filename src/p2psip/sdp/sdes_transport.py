"""The transport of a media line whose keys are in the signalling, and who offers such ones.

Implements RFC 4568 §5.1 for lines of RTP/SAVP, and RFC 8643 §3 for keys beside RTP/AVP.

Departs from RFC 4568 §6 [with-savp-alone]: keys in a line of RTP/AVP count too, as RFC 8643 §3.1
has phones write them that would rather have SRTP.

    >>> terms = SrtpTerms(bytes, profile=SECURE[0], suites=(AES_CM_128_HMAC_SHA1_80,))
    >>> [str(each) for each in terms.to_offer(LocalTransport(5004)).attributes()]
    ['crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA']
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from p2psip.sdp.crypto import (
    AgreedKeys,
    CryptoAttribute,
    SrtpKey,
    answer,
    choose,
    cryptos,
    matching,
)
from p2psip.sdp.line import Attribute
from p2psip.sdp.local_media import PROTOCOLS, LocalTransport
from p2psip.sdp.session import MediaDescription, SessionDescription
from p2psip.srtp.suites import (
    AEAD_AES_128_GCM,
    AEAD_AES_256_GCM,
    AES_CM_128_HMAC_SHA1_80,
    SUITES,
    SrtpSuite,
)

SECURE: Final = ("RTP/SAVP", "RTP/SAVPF")  # Source: RFC 4568 §1; RFC 5124 §1 for the second
# Source: RFC 4568 §6.2.1, the default of SRTP, which every phone has
# RFC 3711 §5.1 [aes-cm-by-default], §5.2 [sha1-by-default] [tag-of-80]
# RFC 3711 §5.2 [short-tag-is-not-offered]
DEFAULT_SUITES: Final = (AES_CM_128_HMAC_SHA1_80,)
# Each line of them takes 100 octets, many for UDP.
ALL_OFFERED: Final = (AEAD_AES_256_GCM, AEAD_AES_128_GCM, *DEFAULT_SUITES)


@dataclass(frozen=True, slots=True)
class SdesTransport(LocalTransport):
    """SRTP at one of our ports, by the key of one of `cryptos`: RFC 4568 §5.1.

    `line` is the only one that it answers: another of the offer may have other suites and tags.
    Unless it `demands` keys, an answer without any makes it plain RTP: RFC 8643 §3.3.
    """

    cryptos: tuple[CryptoAttribute, ...] = ()
    line: MediaDescription | None = None
    demands: bool = True

    def accepts(
        self, line: MediaDescription, session: SessionDescription, host: str | None = None
    ) -> bool:
        """Whether a line has SRTP by one of our attributes, and can be reached: RFC 4568 §5.1.3."""
        if self.line is not None and line is not self.line:
            return False
        if line.protocol not in SECURE and self.protocol not in PROTOCOLS:
            return False
        if matching(self.cryptos, line) is None and (
            # RFC 4568 §5.1.2 [refused-without-crypto] [one-or-none], §5.1.3 [negotiation-fails]
            # RFC 4568 §5.3 [no-attribute-no-stream]
            self.demands
            or line.protocol in SECURE
            or has_keys(line)  # RFC 8643 §3.3 [failure-ends-it]
        ):
            return False
        if line.protocol not in (*SECURE, *PROTOCOLS):
            return False
        plain = replace(line, protocol=PROTOCOLS[0])
        # RFC 8643 §3.3 [clear-without-keys]
        return LocalTransport.accepts(self, plain, session, host)

    def attributes(self) -> tuple[Attribute, ...]:
        """What the line says of its transport, the keys among it: RFC 4568 §4."""
        # RFC 4568 §4 [media-level-only], §5.1.1 [offer-has-crypto]
        # RFC 8643 §3.1 [keys-beside-plain-rtp]
        ours = (Attribute("crypto", str(each)) for each in self.cryptos)
        return (*LocalTransport.attributes(self), *ours)


def has_keys(line: MediaDescription) -> bool:
    """Whether a line has keys of any kind, also such as we cannot use: RFC 4568 §9.1."""
    return line.attribute("crypto") is not None


def offered_transport(line: MediaDescription, *, demands: bool) -> LocalTransport:
    """The transport that a line of an offer of ours was made of: RFC 4568 §5.1.3.

    With `demands` keys beside RTP/AVP are no wish, since the line had SRTP before.
    """
    ours = cryptos(line)
    if not ours:
        return LocalTransport(line.port)
    demands = demands or line.protocol in SECURE
    return SdesTransport(line.port, protocol=line.protocol, cryptos=ours, demands=demands)


@dataclass(frozen=True, slots=True)
class SrtpTerms:
    """What one end wants of SRTP in its lines: RFC 4568 §5.1, RFC 8643 §3.

    It `answers` keys by keys.  An offer has keys in a line of `profile`: that of RTP/SAVP demands
    SRTP, that of RTP/AVP has it where the other side answers so, and "" has none; `suites` are what
    it offers, the preferred one first.  Unless `plain`, an offer without SRTP is refused, with
    `refusal` as the reason.  `random` gives the keys their octets.
    """

    random: Callable[[int], bytes]
    answers: bool = True
    profile: str = ""
    plain: bool = True
    suites: tuple[SrtpSuite, ...] = DEFAULT_SUITES
    refusal: str = "Not Acceptable Here"

    def to_offer(self, plain: LocalTransport, agreed: AgreedKeys | None = None) -> LocalTransport:
        """The transport of an offered line; `agreed` are its keys until now: RFC 4568 §5.1.1."""
        if agreed is not None:  # the suite stays, since the key does: RFC 4568 §7.1.4 [keys-again]
            ours = CryptoAttribute(1, agreed.ours.suite, agreed.ours.keys)
            return _secured(plain, agreed.profile, (ours,))
        if not self.profile:
            return plain
        offered = tuple(
            CryptoAttribute(tag, suite.name, (self._key(suite),))
            # RFC 4568 §5.1.1 [tag-is-unique] [strongest-first]
            for tag, suite in enumerate(self.suites, 1)
        )
        # RFC 8643 §4 [not-where-srtp-is-needed]
        return _secured(plain, self.profile, offered, demands=self.profile in SECURE)

    def to_answer(
        self,
        plain: LocalTransport,
        offer: SessionDescription,
        kind: str,
        agreed: AgreedKeys | None = None,
    ) -> Iterator[LocalTransport]:
        """The transports that may answer a line of a kind, the best first: RFC 4568 §5.1.2.

        SRTP wherever it is offered, one for each line; then plain RTP, but what is encrypted stays
        so.
        """
        for line in offer.media if self.answers else ():
            if line.kind != kind or line.protocol not in (*SECURE, *PROTOCOLS):
                continue
            chosen = choose(cryptos(line))
            if chosen is not None:
                # RFC 8643 §3.2 [accepted-by-keys] [failure-ends-it]
                ours = answer(chosen, self._key_for(SUITES[chosen.suite], agreed))
                yield _secured(plain, line.protocol, (ours,), line)
        if self.plain and agreed is None:
            yield plain  # RFC 8643 §3.2 [declined-by-silence]

    def _key_for(self, suite: SrtpSuite, agreed: AgreedKeys | None) -> SrtpKey:
        """Our key, or another for another suite, whose counts begin anew: RFC 3711 §4.2."""
        if agreed is not None and agreed.ours.suite == suite.name:
            return agreed.ours.keys[0]
        # RFC 3711 §4.1.1 [block-is-distinct] [index-is-distinct], §4.2 [tag-length-of-a-key]
        # RFC 3711 §9.2 [distinct-packets] [used-key-is-not-used-again]
        # RFC 4568 §6.4 [keystream-is-used-once]
        return self._key(suite)

    def _key(self, suite: SrtpSuite) -> SrtpKey:
        # RFC 3711 §3.2.1 [random-and-secret], §4.3.1 [master-is-random], §9.2 [salt-is-random]
        # RFC 4568 §6.1 [keys-are-random]
        # RFC 3711 §8 [key-of-one-stream], §9.1 [key-of-one-session]
        return SrtpKey(self.random(suite.key_octets), self.random(suite.salt_octets))


def _secured(
    plain: LocalTransport,
    protocol: str,
    ours: tuple[CryptoAttribute, ...],
    line: MediaDescription | None = None,
    *,
    demands: bool = True,
) -> SdesTransport:
    at = plain.port, plain.host, plain.rtcp_port
    return SdesTransport(*at, protocol, plain.rtcp_mux, plain.ice, ours, line, demands)
