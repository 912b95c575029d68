"""The receiving side of a session: the source that is heard, and the reports about it.

Implements RFC 3550 §A.1 and §6.4.1, for one source at a time.

The first source is accepted at once, since signalling told of it.  Another one takes over after
`MIN_SEQUENTIAL` packets in sequence with none of the old between them, or once the old has said
BYE.  Phones change their SSRC on hold and transfer (Field §"Sources that change").  Own design: a
stray stream at the same port never gets two packets in a row in.

    >>> reception = Reception(clock_rate=8000)
    >>> packets = [(1, 10), (2, 90), (1, 11), (2, 91), (2, 92), (1, 12), (2, 93)]
    >>> [reception.heard((0, False, sequence, 0, ssrc, 12, 12), 0.0) for ssrc, sequence in packets]
    [10, None, 11, None, 65628, None, 65629]
"""

from collections.abc import Container
from typing import Final

from p2psip.rtp.fast import Header
from p2psip.rtp.rtcp import ReportBlock, SenderReport, unix_time
from p2psip.rtp.sequence import MAX_MISORDER, MIN_SEQUENTIAL, Source

RTCP_LOOKALIKES: Final = range(64, 96)  # Source: RFC 5761 §4, payload types that may be RTCP


class Reception:
    """The remote source of a session, and the next one that may replace it.

    `clock_rate` is in ticks a second; a new source may introduce itself only by one of
    `payload_types`, unless that is None.  RFC 3550 §A.1 demands that the type be known.
    `candidate_ssrc` is the source that tries to; the next packet of the old source ends the try.
    `misorder` is how many packets late one may come.
    """

    def __init__(
        self,
        clock_rate: int,
        payload_types: Container[int] | None = None,
        *,
        misorder: int = MAX_MISORDER,
    ) -> None:
        self._clock_rate, self.payload_types = clock_rate, payload_types
        self._misorder = misorder
        self.source = Source(clock_rate, misorder=misorder)
        self.ssrc: int | None = None
        self.octets = 0
        self.last_received: float | None = None
        self._heard_report: tuple[SenderReport, float] | None = None
        self._reported = 0
        self._candidate = self.source
        self.candidate_ssrc: int | None = None

    def heard(self, header: Header, now: float) -> int | None:
        """Take a packet's header; answer the extended sequence, or None to drop it: §A.1."""
        payload_type, _, sequence, timestamp, ssrc, start, end = header
        if ssrc == self.ssrc:
            self.candidate_ssrc = None
            extended = self.source.heard(sequence, timestamp, now)
        elif self._knows(payload_type):
            extended = self._audition(ssrc, sequence, timestamp, now)
        else:
            return None
        if extended is not None:
            self.octets += end - start
        return extended

    def went_on(
        self, advance: int, packets: int, octets: int, arrival: tuple[float, int, float]
    ) -> None:
        """Count packets of the source that were heard elsewhere: §A.1, see `Source.went_on`."""
        self.candidate_ssrc = None
        self.source.went_on(advance, packets, arrival)
        self.octets += octets
        self.last_received = arrival[2]

    def forget(self) -> None:
        """Accept the next source at once, since this one has left: §6.3.4."""
        self.ssrc = self.candidate_ssrc = None

    def note(self, report: SenderReport, now: float) -> None:
        """Keep the times of a sender report of this source: §6.4.1."""
        if self.ssrc in (None, report.ssrc):
            self._heard_report = report, now

    @property
    def sender_clock(self) -> tuple[int, int] | None:
        """One instant as NTP time and RTP timestamp, by the last report: §6.4.1; None without."""
        if self._heard_report is None or self.ssrc not in (None, self._heard_report[0].ssrc):
            return None
        report, _ = self._heard_report
        return (report.ntp, report.timestamp) if report.ntp else None  # §6.4.1 [no-clock]

    def time_of(self, timestamp: int) -> float | None:
        """Tell when an RTP timestamp was, in Unix time by the sender's clock: §6.4.1.

        Streams of one CNAME share that clock (§6.5.1), so that audio and video of the same time
        belong together.  None before the source's first report.
        """
        if self.sender_clock is None:
            return None
        ntp, reference = self.sender_clock
        ticks = timestamp - reference & 0xFFFFFFFF
        if ticks >> 31:
            ticks -= 1 << 32
        return unix_time(ntp) + ticks / self._clock_rate

    def block(self, now: float) -> tuple[ReportBlock, ...]:
        """Make the block of the next report, or none if nothing came since the last: §6.4.1."""
        source = self.source
        if self.ssrc is None or source.received == self._reported:
            return ()
        self._reported = source.received
        last_sr, delay = 0, 0
        if self._heard_report is not None and self._heard_report[0].ssrc == self.ssrc:
            report, at = self._heard_report
            # §6.4.1 [last-sr] [delay-since-last-sr]
            last_sr, delay = report.ntp >> 16 & 0xFFFFFFFF, int((now - at) * 65536) & 0xFFFFFFFF
        fraction, lost = source.fraction_lost(), source.lost
        highest, jitter = source.extended_highest, source.jitter & 0xFFFFFFFF
        # §6.4.1 [block-of-each-source]
        return (ReportBlock(self.ssrc, fraction, lost, highest, jitter, last_sr, delay),)

    def _knows(self, payload_type: int) -> bool:
        if self.payload_types is None:
            return payload_type not in RTCP_LOOKALIKES
        return payload_type in self.payload_types

    def _audition(self, ssrc: int, sequence: int, timestamp: int, now: float) -> int | None:
        """Hear a packet of another source; let it take over once it is valid."""
        if ssrc != self.candidate_ssrc:
            probation = 0 if self.ssrc is None else MIN_SEQUENTIAL
            after = self.source.highest
            self._candidate = Source(
                self._clock_rate, probation=probation, after=after, misorder=self._misorder
            )
            self.candidate_ssrc = ssrc
        extended = self._candidate.heard(sequence, timestamp, now)
        if extended is not None:
            self.source, self.ssrc, self.candidate_ssrc = self._candidate, ssrc, None
            self.octets = self._reported = 0  # §6.4.1 [statistics-start-anew]
        return extended
