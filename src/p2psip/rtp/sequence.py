"""One source as it is received: the order of its packets, their loss and their jitter.

Implements RFC 3550 §A.1, with the loss of §A.3 and the jitter of §A.8.

`Source.heard` extends the 16-bit sequence number to one that only grows.

    >>> source = Source(clock_rate=8000)
    >>> [source.heard(sequence, 0, 0.0) for sequence in (65534, 65535, 1, 0)]
    [65534, 65535, 65537, 65536]
    >>> source.lost
    0
"""

from typing import Final

MAX_DROPOUT: Final = 3000  # Source: §A.1, how far ahead a packet may be, in packets
MAX_MISORDER: Final = 100  # Source: §A.1, how far behind
MIN_SEQUENTIAL: Final = 2  # Source: §A.1, consecutive packets that prove a source real
_CYCLE: Final = 1 << 16


class Source:
    """The state kept for one SSRC, as the struct of §A.1.

    `clock_rate` is in ticks a second.  `probation` is how many packets in sequence to
    demand before the first is answered: `MIN_SEQUENTIAL` for an unexpected source, 0
    for one that signalling has announced.  `misorder` is how far behind a packet may be, which is
    farther where lost packets are sent again.  The extended numbers begin above `after`, so
    that of two sources in succession the later has the higher ones (Own design).
    """

    __slots__ = (
        "_bad",
        "_base",
        "_clock_rate",
        "_expected_prior",
        "_heard_at",
        "_highest",
        "_jitter",
        "_misorder",
        "_probation",
        "_received_prior",
        "_timestamp",
        "_zero",
        "received",
    )

    def __init__(
        self,
        clock_rate: int,
        *,
        probation: int = 0,
        after: int = -1,
        misorder: int = MAX_MISORDER,
    ) -> None:
        self._clock_rate, self._misorder = clock_rate, misorder
        self._probation = probation
        self._zero = -(-(after + 1) // _CYCLE) * _CYCLE  # where cycle 0 begins
        self._highest = self._zero - 1
        self._base: int | None = None
        self._bad = -1
        self._jitter = 0.0
        self._heard_at = 0.0
        self._timestamp: int | None = None
        self.received = self._received_prior = self._expected_prior = 0

    def heard(self, sequence: int, timestamp: int, now: float) -> int | None:
        """Take a packet's header fields and time of arrival; return the extended sequence number.

        None while the source is on probation, and for a packet so far off that it is either a
        stray or the first after a restart; the next packet decides which: §A.1.
        """
        highest = self._highest
        ahead = sequence - highest & 0xFFFF
        if ahead == 1 and self._base is not None:  # the case of nearly every packet
            extended = self._highest = highest + 1
        elif self._base is None:
            if not self._prove(sequence, ahead):
                return None
            extended = self._highest
        elif ahead < MAX_DROPOUT:
            extended = self._highest = highest + ahead
        elif ahead > _CYCLE - self._misorder:
            extended = highest + ahead - _CYCLE
        elif sequence == self._bad:
            extended = self._begin(sequence)
        else:
            self._bad = sequence + 1 & 0xFFFF
            return None
        self.received += 1
        if self._timestamp is not None:  # compare the gaps in arrival and in timestamps: §A.8
            ticks = timestamp - self._timestamp & 0xFFFFFFFF
            if ticks >> 31:
                ticks -= 1 << 32
            gap = (now - self._heard_at) * self._clock_rate - ticks
            # §6.4.1 [jitter-of-each] [jitter-by-formula], RFC 4733 §2.5.2.2 [jitter-of-all]
            self._jitter += (abs(gap) - self._jitter) / 16
        self._timestamp, self._heard_at = timestamp, now
        return extended

    @property
    def arrival(self) -> tuple[float, int, float] | None:
        """Jitter in ticks, timestamp and time of arrival of the last packet: §A.8; None before."""
        if self._timestamp is None:
            return None
        return self._jitter, self._timestamp, self._heard_at

    def went_on(self, advance: int, packets: int, arrival: tuple[float, int, float]) -> None:
        """Count packets that were heard elsewhere, `arrival` of the last: §A.1, §A.8.

        `advance` is by how much the highest number has grown, more than `packets` after a loss.
        """
        self._highest += advance
        self.received += packets
        self._jitter, self._timestamp, self._heard_at = arrival

    @property
    def highest(self) -> int:
        """The highest number that `heard` has answered: §A.1."""
        return self._highest

    @property
    def extended_highest(self) -> int:
        """The same for a report block: 32 bits, counted from the last restart: §6.4.1."""
        return self._highest - self._zero & 0xFFFFFFFF  # §6.4.1 [highest-with-cycles]

    @property
    def expected(self) -> int:
        """How many packets were sent from the first heard to the highest: §A.3."""
        return 0 if self._base is None else self._highest - self._base + 1

    @property
    def lost(self) -> int:
        """Packets expected less packets received; negative if some came twice: §A.3."""
        return self.expected - self.received  # §6.4.1 [lost-since-the-beginning]

    @property
    def jitter(self) -> int:
        """The interarrival jitter in clock ticks, as reported: §A.8."""
        return int(self._jitter)

    def fraction_lost(self) -> int:
        """Answer the share of loss since the last call, in 1/256: §A.3."""
        expected, received = self.expected, self.received
        interval = expected - self._expected_prior
        lost = interval - (received - self._received_prior)
        # §6.4.1 [fraction-since-the-last]
        self._expected_prior, self._received_prior = expected, received
        return min((lost << 8) // interval, 255) if interval > 0 and lost > 0 else 0

    def _prove(self, sequence: int, ahead: int) -> bool:
        """Count consecutive packets of an unproven source; begin when they suffice: §A.1."""
        if self._probation:
            in_sequence = ahead == 1 and self._highest >= self._zero
            self._probation = self._probation - 1 if in_sequence else MIN_SEQUENTIAL - 1
            self._highest = self._zero + sequence
        if not self._probation:
            self._base = self._highest = self._zero + sequence
        return self._base is not None

    def _begin(self, sequence: int) -> int:
        """Start all counts anew after a restart of the source: §A.1."""
        self._zero = (self._highest // _CYCLE + 1) * _CYCLE  # never back: Own design
        self._base = self._highest = self._zero + sequence
        self._bad = -1
        self.received = self._received_prior = self._expected_prior = 0
        self._timestamp = None
        return self._base
