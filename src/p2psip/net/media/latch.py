"""Decides which of the sources that send to a media port is the peer.

Implements RFC 7362 §4, latching, with the limits that its §5 asks for.

Own design: the accepted source is one tuple, so that the media path compares once and calls
nothing.  A new source may be another port of the peer's host; with `nat` also a host that the
signalling came from, once it has sent a stream.  Neither replaces a source that still sends.
"""

from typing import Any, Final

from p2psip.rtp import fast

SILENCE: Final = 1.0  # s without a packet until another source may take over
IN_A_ROW: Final = 4  # packets of one stream until a source behind a NAT is believed
MAX_CANDIDATES: Final = 8  # sources that are counted at a time


class Latch:
    """The accepted source of one port: RFC 7362 §4.

    `source` is its address, as recvfrom gives it, and `moved` tells that it is not the one that was
    signalled, so that our packets have to follow.  `hosts` are the sources of the signalling; they
    count with `nat` alone.
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
        """Take a signalled address, after `received` packets; False if it is the same (§4)."""
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
        """Whether a datagram of another source than `source` is the peer's (§4)."""
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
        """Whether the source has sent nothing for `SILENCE`, or since it was signalled."""
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
    """The RTP header of a datagram, None if it is RTCP or no RTP at all: RFC 5761 §4."""
    return None if fast.looks_like_rtcp(data) else fast.unpack(data)
