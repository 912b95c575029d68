"""The arrivals of the packets of one transport, told to the sender several times a second.

Implements Transport-wide CC 01 §2 and §3.1, on the side of the receiver.

    >>> arrivals = Arrivals()
    >>> for number in (65535, 1):
    ...     arrivals.heard(number, now=10.0)
    >>> arrivals.deadline
    10.05
    >>> arrivals.feedback(sender_ssrc=1, media_ssrc=2, now=10.05).deltas
    (64, None, 0)
"""

from typing import Final

from p2psip.rtp.transport_feedback import LARGE, REFERENCE_TICKS, TICK, TransportFeedback

INTERVAL: Final = 0.05  # s between messages; Own design: two or three frames of a camera
MAX_WAITING: Final = 512  # Own design: packets of one message, whatever the rate
MAX_SPAN: Final = 4096  # Own design: numbers of one message; a longer jump begins anew


class Arrivals:
    """What has arrived since the last message: §3.1."""

    def __init__(self) -> None:
        self._base: int | None = None  # the extended number that the next message begins with
        self._highest = 0
        self._times: dict[int, int] = {}  # ticks, by extended number
        self._due: float | None = None
        self._count = 0

    def heard(self, number: int, now: float) -> None:
        """Take the transport-wide number of a packet: §2.1.

        Own design: one that comes after its number was told as missing is not told of any more.
        """
        if self._base is None:
            self._base = self._highest = number
        extended = self._highest + (number - self._highest + 0x8000 & 0xFFFF) - 0x8000
        if not self._base - MAX_SPAN < extended < self._base + MAX_SPAN:
            self._times.clear()
            self._base = self._highest = extended = number
        if extended < self._base or extended in self._times:
            return
        self._highest = max(self._highest, extended)
        self._times[extended] = round(now / TICK)
        if self._due is None:
            self._due = now + INTERVAL
        elif len(self._times) >= MAX_WAITING:
            self._due = now

    @property
    def deadline(self) -> float | None:
        """When to send the next message, None while there is nothing to tell: §3.1."""
        return self._due

    def feedback(self, sender_ssrc: int, media_ssrc: int, now: float) -> TransportFeedback | None:
        """Make the message that is due: §3.1; None without one.

        What is too far in time from the rest is left for the next: §3.1.5.
        """
        if self._base is None or self._due is None or now < self._due:
            return None
        first = min(self._times)
        # §3.1 [first-from-the-reference]
        reference = self._times[first] // REFERENCE_TICKS
        at, deltas = reference * REFERENCE_TICKS, list[int | None]()
        for number in range(self._base, self._highest + 1):
            here = self._times.get(number)
            if here is not None and here - at not in LARGE:
                break  # §3.1.5 [far-ones-apart]
            deltas.append(None if here is None else here - at)
            at = at if here is None else self._times.pop(number)
        base, self._base = self._base, self._base + len(deltas)
        self._due = now if self._times else None
        self._count += 1  # §3.1 [messages-are-counted]
        wrapped = (reference + 0x800000 & 0xFFFFFF) - 0x800000
        count = self._count - 1 & 0xFF
        base &= 0xFFFF
        return TransportFeedback(sender_ssrc, media_ssrc, base, wrapped, count, tuple(deltas))
