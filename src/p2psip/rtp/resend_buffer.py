"""The last packets of a stream, to send again what a receiver misses.

Implements RFC 4585 §6.2.1, on the side of the sender, which may choose how to repair a loss.

Own design: `VideoSender` sends what is answered here by RTX, or once more as it was, since phones
do not know RTX: Field §"Packets sent again".  Requests can be forged, so the repeated packets
take no more than `SHARE` of the stream's own rate, with bursts of `MAX_CREDIT`.

    >>> buffer = ResendBuffer()
    >>> for number in range(8):
    ...     buffer.keep(number, bytes([number]) * 100, now=0.0)
    >>> buffer.again([6, 5, 40], now=0.1, pause=0.05)[0][:2]
    b'\\x06\\x06'
    >>> buffer.again([6], now=0.12, pause=0.05)
    []
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

PACKETS: Final = 512  # of one stream; a power of two, so that numbers wrap with the ring
MAX_AGE: Final = 1.0  # s, after which no receiver waits any more
SHARE: Final = 0.25  # of the octets of the stream
MAX_CREDIT: Final = 60_000.0  # octets that may leave at a time: some fifty full packets


class ResendBuffer:
    """A ring of datagrams by their 16-bit numbers, with counts of `repeated` and `refused` ones."""

    def __init__(self) -> None:
        self._ring: list[tuple[int, bytes, float]] = [(-1, b"", 0.0)] * PACKETS
        self._again_at: dict[int, float] = {}
        self._credit = MAX_CREDIT
        self.repeated = self.refused = 0

    def keep(self, sequence: int, datagram: bytes, now: float) -> None:
        """Remember a packet that is sent, in place of the oldest one."""
        place = sequence % PACKETS
        self._ring[place] = sequence, datagram, now
        self._again_at.pop(place, None)
        self._credit = min(self._credit + SHARE * len(datagram), MAX_CREDIT)

    def again(self, lost: Iterable[int], now: float, pause: float) -> list[bytes]:
        """Answer these packets as far as they may be sent again, each once in `pause` seconds."""
        found = []
        for sequence in islice(lost, PACKETS):
            place = sequence % PACKETS
            number, datagram, sent_at = self._ring[place]
            is_due = self._again_at.get(place, now) <= now
            # RFC 4585 §6.2.1 [zero-is-no-receipt]
            is_there = number == sequence and now - sent_at <= MAX_AGE
            # RFC 4585 §8 [strange-requests-take-a-share]
            if is_there and is_due and len(datagram) <= self._credit:
                self._credit -= len(datagram)
                self._again_at[place] = now + pause
                found.append(datagram)
                self.repeated += 1
            else:
                self.refused += 1
        return found

    def clear(self) -> None:
        """Forget all packets, since their source has another number now: RFC 3550 §8.2."""
        self._ring = [(-1, b"", 0.0)] * PACKETS
        self._again_at.clear()
