"""The transport of one stream of a phone: its ports, its keys, and whether packets get through.

Implements RFC 3264 §5.1 and RFC 3711 §3 at the edge.

Own design: what an answer agrees on, and whether a packet sent now arrives, are told apart: through
a relay the server has to consent to the peer first (RFC 8656 §11.1).
"""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from p2psip.net.media.port_pool import PublicPorts
from p2psip.net.media.rtp_ports import MediaPool, MediaPort
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.crypto import AgreedKeys
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.sdes_transport import SECURE, SrtpTerms
from p2psip.sdp.session import SessionDescription
from p2psip.srtp.stream import SrtpStream

Receiver = Callable[[bytes, float], object]
log: Final = logging.getLogger(__name__)


class MediaTransport:
    """The ports and keys of one stream, until `close`.

    `on_rtp(packet, now)` and `on_rtcp(compound, now)` are called in the hub with what came from the
    peer and is authentic; `on_ready` when packets get through to the peer that did not before.
    `host` is the address of this machine; the peer sends to `advertised`, or where the pool says
    that others outside reach its ports: see `host` afterwards.  `srtp` has us offer SRTP and accept
    nothing else, `rtcp_mux` offer one port for both.  Raises NoPortsError.
    """

    def __init__(
        self,
        host: str,
        pool: MediaPool,
        on_rtp: Receiver,
        on_rtcp: Receiver,
        on_ready: Callable[[], object],
        *,
        srtp: bool = False,
        advertised: str | None = None,
        rtcp_mux: bool = False,
    ) -> None:
        self._on_rtp, self._on_rtcp = on_rtp, on_rtcp
        self._port = port = MediaPort(host, pool, on_rtp, self._receive_rtcp)
        port.on_ready = on_ready
        public = port.public or PublicPorts(advertised or host, port.rtp_port, port.rtcp_port)
        self.host = public.host
        self.when_lost = port.when_lost
        self.send_rtp: Callable[[bytes], object] = port.send_rtp
        self._srtp = SrtpStream(partial(log.info, "SRTP from the peer is refused: %s"))
        self._terms = SrtpTerms(os.urandom, profile=SECURE[0] if srtp else "")
        self._keys: AgreedKeys | None = None
        # RTCP has a port that may not be the next one: RFC 3605 §2.1
        self._plain = LocalTransport(public.port, rtcp_port=public.rtcp_port, rtcp_mux=rtcp_mux)
        self._ours: LocalTransport = self._terms.to_offer(self._plain)

    # -- agreement ----------------------------------------------------------------------

    @property
    def line(self) -> LocalTransport:
        """The transport of our line in the description that is being made: RFC 3264 §5.1."""
        return self._ours

    def offer(self) -> None:
        """Have `line` be that of an offer: RFC 3264 §5."""
        self._ours = self._terms.to_offer(self._plain, self._keys)

    def answers(self, offer: SessionDescription) -> Iterator[None]:
        """Have `line` be each in turn that may answer, the preferred one first: RFC 3264 §6."""
        plain = replace(self._plain, rtcp_mux=True)
        for ours in self._terms.to_answer(plain, offer, "audio", self._keys):
            self._ours = ours
            yield

    def settle(self, media: AgreedMedia) -> None:
        """Use an agreement, and its keys: RFC 3264 §7, RFC 4568 §5.1.3."""
        port, keys = self._port, media.keys
        if keys is not None:  # plain RTP does not go through it
            self._keys = keys
            self._srtp.use(keys.suite, keys.ours.keys[0].secrets, keys.theirs.keys[0].secrets)
            self.send_rtp, port.on_rtp = self._send_srtp, self._receive_srtp
        port.rtcp_mux = media.rtcp_mux
        self._plain = replace(self._plain, rtcp_mux=media.rtcp_mux)
        port.remote, port.remote_rtcp = media.remote, media.remote_rtcp

    @property
    def is_encrypted(self) -> bool:
        """Whether the stream is encrypted both ways: RFC 3711 §3."""
        return self._srtp.is_on

    @property
    def report_octets(self) -> int:
        """How much longer encryption makes a report: RFC 3711 §3.4."""
        return self._srtp.report_octets

    @property
    def is_ready(self) -> bool:
        """Whether packets sent now get through to the peer, as far as we know: RFC 8656 §11.1."""
        return self._port.is_ready

    # -- packets ------------------------------------------------------------------------

    def send_rtcp(self, compound: bytes) -> None:
        """Send a report, encrypted where audio is: RFC 3711 §3.4."""
        self._port.send_rtcp(self._srtp.protect_rtcp(compound))

    def close(self) -> None:
        self._port.close()

    def _send_srtp(self, packet: bytes) -> None:
        self._port.send_rtp(self._srtp.protect_rtp(packet))

    def _receive_srtp(self, datagram: bytes, now: float) -> bool:
        packet = self._srtp.open_rtp(datagram)
        if packet is not None:
            self._on_rtp(packet, now)
        return packet is not None

    def _receive_rtcp(self, datagram: bytes, now: float) -> bool:
        compound = self._srtp.open_rtcp(datagram)
        if compound is not None:
            self._on_rtcp(compound, now)
        return compound is not None
