"""The SRTP of one stream: our key, the peer's, and the packets that they protect.

Implements RFC 4568 §5.1 and RFC 3711 §3 for one call.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

from p2psip.errors import RemoteError
from p2psip.rtp.srtp import SrtpReceiver, SrtpSender
from p2psip.sdp.crypto import KEY_OCTETS, SALT_OCTETS, SUITES, CryptoAttribute, SrtpKey
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.sdes_transport import SdesTransport
from p2psip.sdp.session import MediaDescription, SessionDescription


class MediaSecurity:
    """Plain RTP until both ends agree on SRTP; from then on SRTP, and never plain again.

    `wanted` has us offer SRTP; `port` and `rtcp_port` are where the peer sends.  `rtcp_mux` has us
    offer that RTCP shares the port of RTP; where the peer offers that, we agree.  `refused` counts
    packets that were not authentic.
    """

    def __init__(self, port: int, rtcp_port: int, *, wanted: bool, rtcp_mux: bool = False) -> None:
        self._port, self._rtcp_port, self._wanted = port, rtcp_port, wanted
        self.rtcp_mux = rtcp_mux
        self._key = SrtpKey(os.urandom(KEY_OCTETS), os.urandom(SALT_OCTETS))
        self._agreed: tuple[CryptoAttribute, CryptoAttribute] | None = None
        self._sender: SrtpSender | None = None
        self._receiver: SrtpReceiver | None = None
        self.refused = 0

    @property
    def is_on(self) -> bool:
        """Whether the stream is encrypted both ways: RFC 3711 §3."""
        return self._agreed is not None

    def to_offer(self) -> LocalTransport:
        """The transport that an offer of ours has: RFC 4568 §5.1.1."""
        if self._agreed is not None:  # the suite stays, since the key does
            suite = self._agreed[0].suite
            return self._at(SdesTransport.offering(self._port, self._key, suite), self.rtcp_mux)
        if self._wanted:
            return self._at(SdesTransport.offering(self._port, self._key), self.rtcp_mux)
        return self._at(LocalTransport(self._port), self.rtcp_mux)

    def to_answer(self, offer: SessionDescription) -> Iterator[LocalTransport]:
        """The transports that may answer an offer, the preferred one first: RFC 4568 §5.1.2.

        SRTP wherever it is offered, one for each line; then plain RTP, but what is encrypted
        stays so.
        """
        for line in offer.media:
            ours = SdesTransport.answering(self._port, self._key, line)
            if line.kind == "audio" and ours is not None:
                yield self._at(ours, True)
        if not self.is_on:
            yield self._at(LocalTransport(self._port), True)

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
        before = self._agreed
        self._agreed = transport.crypto, theirs
        ours, peer = transport.crypto.keys[0], theirs.keys[0]
        tag_octets = SUITES[theirs.suite]
        if before is None or before[0].suite != theirs.suite:
            self._sender = SrtpSender(ours.key, ours.salt, tag_octets)
        # The rollover counts go on with a key that stays: RFC 3711 §3.3.1.
        if before is None or (before[1].suite, before[1].keys) != (theirs.suite, theirs.keys):
            self._receiver = SrtpReceiver(peer.key, peer.salt, tag_octets)

    def protect_rtp(self, packet: bytes) -> bytes:
        """Make the datagram of an RTP packet: RFC 3711 §3.3."""
        return packet if self._sender is None else self._sender.protect_rtp(packet)

    def protect_rtcp(self, compound: bytes) -> bytes:
        """Make the datagram of an RTCP compound: RFC 3711 §3.4."""
        return compound if self._sender is None else self._sender.protect_rtcp(compound)

    def open_rtp(self, data: bytes) -> bytes | None:
        """Read the RTP packet of a datagram, None if it is not authentic: RFC 3711 §3.3."""
        try:
            return data if self._receiver is None else self._receiver.open_rtp(data)
        except RemoteError:
            self.refused += 1
            return None

    def open_rtcp(self, data: bytes) -> bytes | None:
        """Read the RTCP compound of a datagram, None if it is not authentic: RFC 3711 §3.4."""
        try:
            return data if self._receiver is None else self._receiver.open_rtcp(data)
        except RemoteError:
            self.refused += 1
            return None
