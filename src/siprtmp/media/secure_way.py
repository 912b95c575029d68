"""The way of a stream whose packets are SRTP, over the transport that carried them in clear.

Implements RFC 3711 §3 for the lines of a session, by way of `p2psip.srtp.stream`.

Own design: a stream of plain RTP goes straight to its transport and pays nothing for this, and a
pump may handle it; a stream with keys goes through here, packet by packet.
"""

from collections.abc import Callable, Sequence

from p2psip.sdp.crypto import AgreedKeys
from p2psip.srtp.stream import SrtpStream
from siprtmp.media.transport import MediaTransport


class SecureWay:
    """Protects what leaves by a transport, and opens what comes; what is not authentic is dropped.

    Whoever is given what arrives now is given what is authentic of it.  `on_refused` is told why
    the first packet was not.
    """

    def __init__(
        self, transport: MediaTransport, on_refused: Callable[[str], None], window: int
    ) -> None:
        self._transport, self._srtp = transport, SrtpStream(on_refused, window=window)
        self._on_rtp, self._on_rtcp = transport.on_rtp, transport.on_rtcp
        transport.on_rtp, transport.on_rtcp = self._take_rtp, self._take_rtcp

    @property
    def refused(self) -> int:
        """How many packets were not authentic, or came before: RFC 3711 §3.3."""
        return self._srtp.refused

    @property
    def report_octets(self) -> int:
        """How much longer a report is than in clear: RFC 3711 §3.4."""
        return self._srtp.report_octets

    def use(self, keys: AgreedKeys) -> None:
        """Protect and open by these keys from now on: RFC 4568 §5.1.3."""
        ours, theirs = keys.ours.keys[0], keys.theirs.keys[0]
        self._srtp.use(keys.suite, ours.secrets, theirs.secrets)

    def send_rtp(self, data: bytes) -> None:
        self._transport.send_rtp(self._srtp.protect_rtp(data))

    def send_run(self, run: Sequence[bytes]) -> None:
        self._transport.send_run([self._srtp.protect_rtp(data) for data in run])

    def send_rtcp(self, data: bytes) -> None:
        self._transport.send_rtcp(self._srtp.protect_rtcp(data))

    def _take_rtp(self, data: bytes, now: float) -> bool:
        packet = self._srtp.open_rtp(data) if is_media(data) else None
        if packet is not None:
            self._on_rtp(packet, now)
        return packet is not None

    def _take_rtcp(self, data: bytes, now: float) -> bool:
        compound = self._srtp.open_rtcp(data) if is_media(data) else None
        if compound is not None:
            self._on_rtcp(compound, now)
        return compound is not None


def is_media(data: bytes) -> bool:
    """Whether a datagram may be of media, and no STUN: Field §"First packets that are no media"."""
    return data[:1] >= b"\x80"
