"""The transport of one stream of a phone: its ports, its keys, and whether packets get through.

Implements RFC 3264 §5.1 and RFC 3711 §3 at the edge.

Own design: what an answer agrees on, and whether a packet sent now arrives, are told apart: through
a relay the server has to consent to the peer first (RFC 8656 §11.1).
"""

from collections.abc import Callable, Iterator

from p2psip.net.media.media_security import MediaSecurity
from p2psip.net.media.port_pool import PublicPorts
from p2psip.net.media.rtp_ports import MediaPool, MediaPort
from p2psip.sdp.agreed_media import AgreedMedia
from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.session import MediaDescription, SessionDescription

Receiver = Callable[[bytes, float], None]


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
        self._security = MediaSecurity(
            public.port, public.rtcp_port, wanted=srtp, rtcp_mux=rtcp_mux
        )
        self._ours: LocalTransport = self._security.to_offer()

    # -- agreement ----------------------------------------------------------------------

    @property
    def line(self) -> LocalTransport:
        """Our half of the description under way: RFC 3264 §5.1."""
        return self._ours

    def offer(self) -> None:
        """Have `line` be that of an offer: RFC 3264 §5."""
        self._ours = self._security.to_offer()

    def answers(self, offer: SessionDescription) -> Iterator[None]:
        """Have `line` be each in turn that may answer, the preferred one first: RFC 3264 §6."""
        for ours in self._security.to_answer(offer):
            self._ours = ours
            yield

    def settle(self, media: AgreedMedia, theirs: MediaDescription) -> None:
        """Use an agreement; `theirs` is the peer's line: RFC 3264 §7, RFC 4568 §5.1.3."""
        security, port = self._security, self._port
        security.settle(self._ours, theirs)
        if security.is_on:  # plain RTP does not go through it
            self.send_rtp, port.on_rtp = self._send_srtp, self._receive_srtp
        port.rtcp_mux = security.rtcp_mux = media.rtcp_mux
        port.remote, port.remote_rtcp = media.remote, media.remote_rtcp

    @property
    def is_encrypted(self) -> bool:
        """Whether the stream is encrypted both ways: RFC 3711 §3."""
        return self._security.is_on

    @property
    def report_octets(self) -> int:
        """How much longer encryption makes a report: RFC 3711 §3.4."""
        return self._security.report_octets

    @property
    def is_ready(self) -> bool:
        """Whether packets sent now get through to the peer, as far as we know: RFC 8656 §11.1."""
        return self._port.is_ready

    # -- packets ------------------------------------------------------------------------

    def send_rtcp(self, compound: bytes) -> None:
        """Send a report, encrypted where audio is: RFC 3711 §3.4."""
        self._port.send_rtcp(self._security.protect_rtcp(compound))

    def close(self) -> None:
        self._port.close()

    def _send_srtp(self, packet: bytes) -> None:
        self._port.send_rtp(self._security.protect_rtp(packet))

    def _receive_srtp(self, datagram: bytes, now: float) -> None:
        packet = self._security.open_rtp(datagram)
        if packet is not None:
            self._on_rtp(packet, now)

    def _receive_rtcp(self, datagram: bytes, now: float) -> None:
        compound = self._security.open_rtcp(datagram)
        if compound is not None:
            self._on_rtcp(compound, now)
