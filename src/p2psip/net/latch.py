"""Which of the sources that send to a media port is the peer.

Implements RFC 7362 §4, latching, with the limits that its §5 asks for.

Own design: the source that is heard is one tuple, so that the media path compares once and asks
nobody.  What comes from elsewhere is asked about here: it may be the peer's own host by another
port; with `nat` also a host that the signalling came from, once it has shown a stream.  Neither
may take the place of a source that is still heard.
"""

from typing import Any, Final

from p2psip.rtp import fast

SILENCE: Final = 1.0  # s without a packet until another source may take over
IN_A_ROW: Final = 4  # packets of one stream until a source behind a NAT is believed
MAX_CANDIDATES: Final = 8  # sources that are counted at a time


class Latch:
    """The source that is heard at one port: RFC 7362 §4.

    `source` is the address to hear, as recvfrom gives it, and `moved` tells that it is not the
    one that was signalled, so that what we send has to follow.  `hosts` are where the signalling
    came from; only `nat` makes use of them.
    """

    def __init__(self, *, nat: bool) -> None:
        self._nat = nat
        self.hosts: frozenset[str] = frozenset()
        self.signalled: Any = None
        self.source: Any = None
        self.moved = False
        self._received, self._since = 0, float("-inf")
        self._candidates: dict[Any, tuple[int, int, int]] = {}

    def signal(self, address: Any, received: int) -> bool:
        """Take the address of an offer or answer; False if that changes nothing (§4).

        `received` is how many packets the port has counted.
        """
        if address == self.signalled:
            return False
        self.signalled = self.source = address
        self.moved = False
        self._received, self._since = received, float("-inf")
        self._candidates.clear()
        return True

    def may_be(self, host: str) -> bool:
        """Whether the peer's media may come from `host` at all: RFC 7362 §5."""
        if self.signalled is None:
            return False
        return bool(host == self.signalled[0] or (self._nat and host in self.hosts))

    def takes(self, data: bytes, source: Any, received: int, now: float) -> bool:
        """Whether a datagram that is not of `source` is the peer's all the same (§4)."""
        header = rtp_header(data) if self.may_be(source[0]) else None
        if header is None:
            return False
        if source == self.signalled and not self.moved:
            self.source = source
            return True
        if not self._is_silent(received, now):
            return False
        if self._nat and not self._is_in_a_row(source, header):
            return False
        self.source, self.moved = source, self._nat
        self._candidates.clear()
        return True

    def _is_silent(self, received: int, now: float) -> bool:
        """Whether the source has not been heard since it was signalled, or for `SILENCE`."""
        if received != self._received:
            self._received, self._since = received, now
        return now - self._since >= SILENCE

    def _is_in_a_row(self, source: Any, header: fast.Header) -> bool:
        _, _, sequence, _, ssrc, _, _ = header
        before = self._candidates.get(source)
        if before is None and len(self._candidates) >= MAX_CANDIDATES:
            self._candidates.clear()
        count = before[2] + 1 if before is not None and before[:2] == (ssrc, sequence) else 1
        self._candidates[source] = ssrc, sequence + 1 & 0xFFFF, count
        return count >= IN_A_ROW


def rtp_header(data: bytes) -> fast.Header | None:
    """The header of a datagram, None for RTCP and what else is not RTP: RFC 5761 §4."""
    return None if fast.looks_like_rtcp(data) else fast.unpack(data)
