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

from p2psip.net.media.dtls_flow import DtlsFlow, DtlsSettings, MasterKey
from p2psip.net.media.ice_port import IcePlaces, IcePort
from p2psip.net.media.port_pool import PublicPorts
from p2psip.net.media.rtp_ports import MediaPool, MediaPort
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.attributes import rtcp_mux as is_muxed
from p2psip.sdp.crypto import AgreedKeys
from p2psip.sdp.dtls_transport import DtlsTransport
from p2psip.sdp.ice_line import IceLine
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.sdes_transport import SECURE, SrtpTerms
from p2psip.sdp.session import MediaDescription, SessionDescription
from p2psip.srtp.stream import SrtpStream
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80

Receiver = Callable[[bytes, float], object]
log: Final = logging.getLogger(__name__)


class MediaTransport:
    """The ports and keys of one stream, until `close`.

    `on_rtp(packet, now)` and `on_rtcp(compound, now)` are called in the hub with authentic packets
    of the peer; `on_ready` when packets begin to get through to the peer.
    `host` is the address of this machine; the peer sends to `advertised`, or where the pool says
    that others outside reach its ports: see `host` afterwards.  `srtp` has us offer SRTP and accept
    nothing else, `rtcp_mux` offer one port for both.  `ice` names places that are used instead of
    `host` and `pool`, by ICE if the peer has it.  With `dtls` as well we offer SRTP by a handshake
    and accept nothing else.  Raises NoPortsError.
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
        ice: IcePlaces | None = None,
        dtls: DtlsSettings | None = None,
    ) -> None:
        self._on_rtp, self._on_rtcp = on_rtp, on_rtcp
        self._ice = None if ice is None else IcePort(ice, on_rtp, self._receive_rtcp)
        self._port = port = self._ice or MediaPort(host, pool, on_rtp, self._receive_rtcp)
        self._on_ready = on_ready
        port.on_ready = self._way_found
        if isinstance(port, IcePort):
            public = port.public
        else:
            public = port.public or PublicPorts(advertised or host, port.rtp_port, port.rtcp_port)
        self.host = public.host
        self._dtls: DtlsFlow | None = None
        if dtls is not None and self._ice is not None:
            self._dtls = DtlsFlow(dtls, self._ice.send_rtp, self._keys_found)
            self._ice.on_dtls = self._dtls.received
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

    def offer(self, *, restarts: bool = False) -> None:
        """Write the transport of an offer into `line`; it may restart ICE: RFC 3264 §5."""
        plain = self._plain
        if self._ice is not None:
            plain = self._ice.offer(plain, restarts=restarts)
        if self._dtls is not None and self._keys is None:
            self._ours = self._dtls.offer(plain)
        else:
            self._ours = self._terms.to_offer(plain, self._keys)

    def answers(self, offer: SessionDescription) -> Iterator[None]:
        """Have `line` be each in turn that may answer, the preferred one first: RFC 3264 §6."""
        plain = replace(self._plain, rtcp_mux=True)
        line = next((each for each in offer.media if each.kind == "audio" and each.port), None)
        if self._ice is not None and line is not None:
            theirs = IceLine.read(line, offer)
            plain = self._ice.answer(plain, theirs, is_muxed=is_muxed(line))
        if self._dtls is not None and line is not None:
            answer = self._dtls.answer(plain, line, offer)
            if answer is not None:
                self._ours = answer
                yield
        for ours in self._terms.to_answer(plain, offer, "audio", self._keys):
            self._ours = ours
            yield

    def is_by_ice(self, line: MediaDescription, session: SessionDescription) -> bool:
        """Whether an agreement on this line of the peer is one on ICE too: RFC 8839 §4.2.5."""
        return self._ice is not None and self._ice.is_by_ice(IceLine.read(line, session))

    @property
    def uses_ice(self) -> bool:
        """Whether the way to the peer is found by ICE: RFC 8839 §4.2.5."""
        return self._ice is not None and self._ice.is_agreed

    def settle(
        self, media: AgreedMedia, line: MediaDescription, session: SessionDescription
    ) -> None:
        """Use an agreement on a line of the peer, and its keys: RFC 3264 §7, RFC 4568 §5.1.3."""
        port, keys = self._port, media.keys
        if keys is not None:  # plain RTP does not go through it
            self._keys = keys
            self._srtp.use(keys.suite, keys.ours.keys[0].secrets, keys.theirs.keys[0].secrets)
            self.send_rtp, port.on_rtp = self._send_srtp, self._receive_srtp
        if self._dtls is not None and isinstance(self._ours, DtlsTransport):
            self._dtls.settle(self._ours, line, session)
            self.send_rtp, port.on_rtp = self._send_srtp, self._receive_srtp
        self._plain = replace(self._plain, rtcp_mux=media.rtcp_mux)
        if isinstance(port, IcePort):
            port.settle(media, IceLine.read(line, session))
            return
        port.rtcp_mux = media.rtcp_mux
        port.remote, port.remote_rtcp = media.remote, media.remote_rtcp

    def connect(self) -> None:
        """Look for a way to the peer, as our description is on its way: RFC 8839 §4.3.2."""
        if self._ice is not None:
            self._ice.connect()

    def when_moved(self, on_moved: Callable[[], object]) -> None:
        """Have `on_moved` called when an offer has to tell our address: RFC 8839 §4.3.4."""
        if self._ice is not None:
            self._ice.on_moved = on_moved

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
        return self._port.is_ready and not self._waits_for_keys

    @property
    def _waits_for_keys(self) -> bool:
        return isinstance(self._ours, DtlsTransport) and not self._srtp.is_on

    def when_lost(self, on_lost: Callable[[str], object]) -> None:
        """Have `on_lost(reason)` called when packets no longer get through: RFC 8656 §5."""
        self._port.when_lost(on_lost)
        if self._dtls is not None:
            self._dtls.on_lost = on_lost

    def _way_found(self) -> None:
        if self._dtls is not None:
            self._dtls.begin()
        if not self._waits_for_keys:
            self._on_ready()

    def _keys_found(self, ours: MasterKey, theirs: MasterKey) -> None:
        """Use the keys of a handshake: RFC 5764 §4.2."""
        self._srtp.use(AES_CM_128_HMAC_SHA1_80, ours, theirs)
        self._on_ready()

    # -- packets ------------------------------------------------------------------------

    def send_rtcp(self, compound: bytes) -> None:
        """Send a report, encrypted where audio is: RFC 3711 §3.4."""
        self._port.send_rtcp(self._srtp.protect_rtcp(compound))

    def close(self) -> None:
        if self._dtls is not None:
            self._dtls.close()
        self._port.close()

    def _send_srtp(self, packet: bytes) -> None:
        self._port.send_rtp(self._srtp.protect_rtp(packet))

    def _receive_srtp(self, datagram: bytes, now: float) -> bool:
        packet = None if self._waits_for_keys else self._srtp.open_rtp(datagram)
        if packet is not None:
            self._on_rtp(packet, now)
        return packet is not None

    def _receive_rtcp(self, datagram: bytes, now: float) -> bool:
        compound = None if self._waits_for_keys else self._srtp.open_rtcp(datagram)
        if compound is not None:
            self._on_rtcp(compound, now)
        return compound is not None
