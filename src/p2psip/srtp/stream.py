"""The SRTP of one stream: what protects our packets and opens the peer's, by keys that may change.

Implements RFC 3711 §3 for one line of a call.
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.srtp.libsrtp import SrtpOpening, SrtpProtecting, srtp_receiver, srtp_sender
from p2psip.srtp.srtp import WINDOW, rtcp_octets
from p2psip.srtp.suites import SrtpSuite

VIDEO_WINDOW: Final = 1024  # packets; lost ones of video are sent again: RFC 3711 §3.3.2

MasterKey = tuple[bytes, bytes]  # a key and its salt: RFC 3711 §3.2.1


class SrtpStream:
    """Plain RTP until `use` gives it keys; from then on SRTP, and never plain again.

    `refused` counts packets that were not authentic, or came before, and `on_refused(why)` is told
    of the first, since anybody can send many.  `window` is that of `SrtpReceiver`.

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

    def __init__(
        self, on_refused: Callable[[str], object] = lambda why: None, *, window: int = WINDOW
    ) -> None:
        self._on_refused, self._window = on_refused, window
        self._ours: tuple[SrtpSuite, MasterKey] | None = None
        self._theirs: tuple[SrtpSuite, MasterKey] | None = None
        self._sender: SrtpProtecting | None = None
        self._receiver: SrtpOpening | None = None
        self.refused = 0

    @property
    def is_on(self) -> bool:
        """Whether the stream is encrypted both ways: RFC 3711 §3."""
        return self._ours is not None

    @property
    def report_octets(self) -> int:
        """How much longer encryption makes a report: RFC 3711 §3.4."""
        return rtcp_octets(self._ours[0]) if self._ours is not None else 0

    def use(self, suite: SrtpSuite, ours: MasterKey, theirs: MasterKey) -> None:
        """Protect by our key and open by theirs; one that stays goes on counting: RFC 3711 §3.2."""
        if self._ours != (suite, ours):
            # RFC 3711 §9.1 [keys-come-by-signalling]
            # RFC 4568 §5.1.1 [ready-for-what-is-offered], §6.4 [own-key-of-each]
            self._ours, self._sender = (suite, ours), srtp_sender(*ours, suite)
        if self._theirs != (suite, theirs):
            # RFC 4568 §6.4 [own-key-of-each], §7.1.4 [new-key-begins-at-zero]
            self._theirs = suite, theirs
            self._receiver = srtp_receiver(*theirs, suite, window=self._window)

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
        """Open a datagram, or drop it, and tell of the first that is dropped: RFC 3711 §3.3."""
        try:
            return open_(data)
        except RemoteError as error:
            self.refused += 1
            if self.refused == 1:  # RFC 3711 §3.3 [replay-is-told] [failure-is-told]
                self._on_refused(error.reason)
            return None
