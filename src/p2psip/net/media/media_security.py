"""The SRTP of one stream: our key, the peer's, and the packets that they protect.

Implements RFC 4568 §5.1 and RFC 3711 §3 for one call.
"""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from p2psip.errors import RemoteError
from p2psip.rtp.srtp import RTCP_OCTETS, SrtpReceiver, SrtpSender
from p2psip.sdp.crypto import (
    KEY_OCTETS,
    SALT_OCTETS,
    SUITES,
    CryptoAttribute,
    SrtpKey,
    choose,
    cryptos,
)
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.sdes_transport import SdesTransport
from p2psip.sdp.session import MediaDescription, SessionDescription

log: Final = logging.getLogger(__name__)


class MediaSecurity:
    """Plain RTP until both ends agree on SRTP; from then on SRTP, and never plain again.

    `wanted` has us offer SRTP; `port` and `rtcp_port` are where the peer sends.  `rtcp_mux` has us
    offer that RTCP shares the port of RTP; where the peer offers that, we agree.  `refused` counts
    packets that were not authentic, or came before; the log tells of the first.

    Departs from RFC 3711 §3.3.1 [roc-outlives-the-key]: a new key comes with a new description,
    whose context begins at zero (RFC 4568 §7.1.4).
    Departs from RFC 3711 §3.4 [index-outlives-the-key]: the same of the index of reports.
    Not done: RFC 3711 §3.3.1 [re-keys]: packets of 20 ms use a key up after 178,000 years, reports
    after 300; then nothing is sent.
    Not done: RFC 3711 §8.1 [counts-and-re-keys]: the same; what is counted ends the stream.
    Not done: RFC 4568 §6.4.2 [replaced-in-time]: no call lasts for 2^31 packets, 16 months of
    audio; beyond them the counts of each source still hold.
    Departs from RFC 4568 §6.1 [lifetime-is-kept]: phones name a lifetime and never take another
    key (Field §"Lifetimes of keys"); what they send afterwards is authentic, and the call goes on.
    """

    def __init__(self, port: int, rtcp_port: int, *, wanted: bool, rtcp_mux: bool = False) -> None:
        self._port, self._rtcp_port, self._wanted = port, rtcp_port, wanted
        self.rtcp_mux = rtcp_mux
        self._key = _random_key()  # RFC 3711 §8 [key-of-one-stream], §9.1 [key-of-one-session]
        self._agreed: tuple[CryptoAttribute, CryptoAttribute] | None = None
        self._sender: SrtpSender | None = None
        self._receiver: SrtpReceiver | None = None
        self.refused = 0

    @property
    def is_on(self) -> bool:
        """Whether the stream is encrypted both ways: RFC 3711 §3."""
        return self._agreed is not None

    @property
    def report_octets(self) -> int:
        """How much longer encryption makes a report: RFC 3711 §3.4."""
        return RTCP_OCTETS if self.is_on else 0

    def to_offer(self) -> LocalTransport:
        """The transport that an offer of ours has: RFC 4568 §5.1.1."""
        if self._agreed is not None:  # the suite stays, since the key does
            suite = self._agreed[0].suite
            # RFC 4568 §7.1.4 [keys-again]
            return self._at(SdesTransport.offering(self._port, self._key, suite), self.rtcp_mux)
        if self._wanted:  # RFC 4568 §5.1.1 [offer-has-crypto]
            return self._at(SdesTransport.offering(self._port, self._key), self.rtcp_mux)
        return self._at(LocalTransport(self._port), self.rtcp_mux)

    def to_answer(self, offer: SessionDescription) -> Iterator[LocalTransport]:
        """The transports that may answer an offer, the preferred one first: RFC 4568 §5.1.2.

        SRTP wherever it is offered, one for each line; then plain RTP, but what is encrypted
        stays so.
        """
        for line in offer.media:
            ours = SdesTransport.answering(self._port, self._key_for(line), line)
            if line.kind == "audio" and ours is not None:
                yield self._at(ours, True)
        if not self.is_on:
            yield self._at(LocalTransport(self._port), True)

    def _key_for(self, line: MediaDescription) -> SrtpKey:
        """Our key, or another for another suite, whose counts begin anew: RFC 3711 §4.2."""
        chosen = choose(cryptos(line))
        if self._agreed is None or chosen is None or chosen.suite == self._agreed[0].suite:
            return self._key
        # RFC 3711 §4.1.1 [block-is-distinct] [index-is-distinct], §4.2 [tag-length-of-a-key]
        # RFC 3711 §9.2 [distinct-packets] [used-key-is-not-used-again]
        # RFC 4568 §6.4 [keystream-is-used-once]
        return _random_key()

    def _at(self, transport: LocalTransport, rtcp_mux: bool) -> LocalTransport:
        """The transport with the port for RTCP, if it is not the next one: RFC 3605 §2.1."""
        return replace(transport, rtcp_port=self._rtcp_port, rtcp_mux=rtcp_mux)

    def settle(self, transport: LocalTransport, line: MediaDescription) -> None:
        """Use the keys of an agreement; `line` is the peer's: RFC 4568 §5.1.3."""
        if not isinstance(transport, SdesTransport) or transport.crypto is None:
            return
        theirs = transport.peer_crypto(line)
        if theirs is None:
            return
        before, self._agreed = self._agreed, (transport.crypto, theirs)
        (ours,), (peer,) = transport.crypto.keys, theirs.keys
        tag_octets = SUITES[theirs.suite]
        if before is None or ours != self._key:
            # RFC 3711 §9.1 [keys-come-by-signalling]
            # RFC 4568 §5.1.1 [ready-for-what-is-offered], §6.4 [own-key-of-each]
            self._key, self._sender = ours, SrtpSender(ours.key, ours.salt, tag_octets)
        was = None if before is None else (before[1].suite, *before[1].keys[0].secrets)
        if was != (theirs.suite, *peer.secrets):
            # RFC 4568 §6.4 [own-key-of-each], §7.1.4 [new-key-begins-at-zero]
            self._receiver = SrtpReceiver(peer.key, peer.salt, tag_octets)

    def protect_rtp(self, packet: bytes) -> bytes:
        """Make the datagram of an RTP packet: RFC 3711 §3.3."""
        return packet if self._sender is None else self._sender.protect_rtp(packet)

    def protect_rtcp(self, compound: bytes) -> bytes:
        """Make the datagram of an RTCP compound: RFC 3711 §3.4."""
        return compound if self._sender is None else self._sender.protect_rtcp(compound)

    def open_rtp(self, data: bytes) -> bytes | None:
        """Read the RTP packet of a datagram, None if it is not authentic: RFC 3711 §3.3."""
        return data if self._receiver is None else self._opened(self._receiver.open_rtp, data)

    def open_rtcp(self, data: bytes) -> bytes | None:
        """Read the RTCP compound of a datagram, None if it is not authentic: RFC 3711 §3.4."""
        return data if self._receiver is None else self._opened(self._receiver.open_rtcp, data)

    def _opened(self, open_: Callable[[bytes], bytes], data: bytes) -> bytes | None:
        """Open a datagram, or drop it; the log tells of the first, since anybody can send many."""
        try:
            return open_(data)
        except RemoteError as error:
            self.refused += 1
            if self.refused == 1:  # RFC 3711 §3.3 [replay-is-told] [failure-is-told]
                log.info("SRTP from the peer is refused: %s", error)
            return None


def _random_key() -> SrtpKey:
    # RFC 3711 §3.2.1 [random-and-secret], §4.3.1 [master-is-random], §9.2 [salt-is-random]
    # RFC 4568 §6.1 [keys-are-random]
    return SrtpKey(os.urandom(KEY_OCTETS), os.urandom(SALT_OCTETS))
