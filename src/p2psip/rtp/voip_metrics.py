"""The VoIP metrics of a stream that is heard: loss, discard, bursts and gaps.

Implements RFC 3611 §4.7.1 and §4.7.2, in the way of Appendix §A.2: an event is a packet that did
not come in time, so that a packet that did costs nothing.

A packet that comes late was discarded, one that never comes was lost; both weigh the same in bursts
and gaps.  The counts are exact, where the appendix infers some within one.

    >>> meter = BurstMeter()
    >>> meter.begin(100)  # packets 104, 123 to 134 in part, and 154 do not come in time
    >>> for first, end in ((104, 105), (123, 124), (127, 128), (129, 130), (134, 135), (154, 155)):
    ...     meter.missed(first, end)
    >>> for late in (123, 127, 154):
    ...     meter.late(late)
    >>> metrics = meter.metrics(0xCAFE, next_sequence=164, packet_ms=10)
    >>> metrics.loss_rate, metrics.discard_rate, metrics.burst_density, metrics.gap_density
    (12, 12, 85, 9)
    >>> metrics.burst_duration, metrics.gap_duration
    (120, 260)
"""

from typing import Final, NamedTuple

from p2psip.rtp import e_model
from p2psip.rtp.extended_report import GMIN, VoipMetrics

# Own design: as many as `reorder` and `sequence` could still hear of, and no more
MISSED_KEPT: Final = 128
NOT_ADAPTIVE: Final = 0b0010_0000  # Source: §4.7.6, a jitter buffer of a fixed size
_MOST: Final = 0xFFFF  # of a field of 16 bits


class Cluster(NamedTuple):
    """Missing packets with fewer than Gmin others between; two and more are a burst: §4.7.2."""

    first: int
    last: int
    missing: int

    def length(self) -> int:
        """How many packets it has, those that came included: §4.7.2."""
        return self.last - self.first + 1


class BurstMeter:
    """Counts, by extended numbers, what a reorder buffer had to do without: §4.7.1."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._reset()

    def _reset(self) -> None:
        self.lost = self.discarded = 0
        self._missed: dict[int, None] = {}  # the last ones, in order
        self._cluster: Cluster | None = None
        self._bursts = self._burst_packets = self._burst_missing = 0

    def begin(self, sequence: int) -> None:
        """Count anew from the first packet of a source, or of a restart: §4.7.1."""
        self._reset()
        self._first = sequence

    def missed(self, first: int, end: int) -> None:
        """Take the numbers from `first` up to `end`, without it, as missing: §A.2."""
        count, last = end - first, self._cluster
        self.lost += count
        # §4.7.1 [loss-is-later-than-discard]
        self._missed.update(dict.fromkeys(range(max(first, end - MISSED_KEPT), end)))
        while len(self._missed) > MISSED_KEPT:
            del self._missed[next(iter(self._missed))]
        if last is not None and first - last.last <= GMIN:
            self._cluster = Cluster(last.first, end - 1, last.missing + count)
        else:
            self._bursts, self._burst_packets, self._burst_missing = self._closed()
            self._cluster = Cluster(first, end - 1, count)

    def late(self, sequence: int) -> None:
        """Take a packet that came too late: discarded, unless it came twice: §4.7.1."""
        if sequence in self._missed:
            del self._missed[sequence]
            self.lost -= 1
            self.discarded += 1

    def metrics(
        self,
        ssrc: int,
        next_sequence: int,
        packet_ms: float,
        rtt: float | None = None,
        hold_seconds: float = 0.0,
        codec: str = "",
    ) -> VoipMetrics:
        """Say how the source `ssrc` was heard up to `next_sequence`, without it: §4.7.

        `packet_ms` is the time of one packet, `rtt` in seconds the last measured, `hold_seconds`
        how long a packet waits at most for one before it.  With a `codec`, an encoding name, the
        qualities are those of the E-model (`e_model`).
        Not done: RFC 3611 §4.7.4 [levels-are-told]: audio is passed on as it came; to measure it
        would take the decoders of all codecs.
        Not done: RFC 3611 §4.7.3 [end-system-delay]: of it only the wait for order is known, since
        the program that gives and takes the audio has its own.
        """
        expected = 0 if self._first is None else next_sequence - self._first
        bursts, packets, missing = self._closed()
        gaps = bursts + 1 if expected else 0  # the source's first packet came, and the last
        all_missing = self.lost + self.discarded
        hold = min(round(1000 * hold_seconds), _MOST)  # §4.7.7 [too-long-is-65535]
        return VoipMetrics(
            ssrc,
            loss_rate=_share(self.lost, expected),  # §4.7.1 [loss-by-expected] [rates-are-there]
            # §4.7.1 [discard-by-expected] [rates-are-there]
            discard_rate=_share(self.discarded, expected),
            burst_density=_share(missing, packets),  # §4.7.2 [densities-are-there]
            gap_density=_share(all_missing - missing, expected - packets),
            # §4.7.2 [no-burst-no-duration] [durations-are-estimated]
            burst_duration=_mean_ms(packets, bursts, packet_ms),
            # §4.7.2 [no-gap-no-duration] [durations-are-estimated]
            gap_duration=_mean_ms(expected - packets, gaps, packet_ms),
            # §4.7.3 [round-trip-once-known]
            round_trip=0 if rtt is None else min(round(1000 * rtt), _MOST),
            gmin=GMIN,  # §4.7.2 [gmin-16], §4.7.6 [gmin-is-constant]
            # §4.7.5 [qualities-are-there]
            **_qualities(codec, all_missing / expected if expected else 0.0, rtt, packet_ms),
            rx_config=NOT_ADAPTIVE,
            # §4.7.6 [sizes-with-the-mode], §4.7.7 [nominal-is-there] [last-known]
            jitter_nominal=0,  # a packet in order passes at once
            jitter_maximum=hold,  # §4.7.7 [maximum-is-there]
            jitter_absolute=hold,  # §4.7.7 [fixed-has-one-maximum]
        )

    def _closed(self) -> tuple[int, int, int]:
        """Bursts, packets in them, and missing ones, as if Gmin packets followed now: §4.7.2."""
        last = self._cluster
        if last is None or last.missing == 1:
            return self._bursts, self._burst_packets, self._burst_missing
        return (
            self._bursts + 1,
            self._burst_packets + last.length(),
            self._burst_missing + last.missing,
        )


def _qualities(codec: str, missing: float, rtt: float | None, packet_ms: float) -> dict[str, int]:
    """R, and the scores without and with delay, of a codec that is known: §4.7.5."""
    if not codec:
        return {}
    delay = (rtt or 0.0) / 2 + packet_ms / 1000
    heard, spoken = (
        e_model.r_factor(codec, loss=missing, one_way_delay=each) for each in (0.0, delay)
    )
    scores = {"mos_lq": round(10 * e_model.mos(heard)), "mos_cq": round(10 * e_model.mos(spoken))}
    return {"r_factor": round(spoken), **scores}


def _share(part: int, whole: int) -> int:
    """In 1/256, the integer part, and 255 at most: §4.7.1."""
    return min(256 * part // whole, 255) if whole else 0


def _mean_ms(packets: int, periods: int, packet_ms: float) -> int:
    return min(round(packets * packet_ms / periods), _MOST) if periods else 0
