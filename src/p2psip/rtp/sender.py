"""One stream of ours: its numbers and counts, and what the peer reports of it.

Implements RFC 3550 §5.1 and §6.4.1, for one SSRC.

    >>> sender = Sender(0xCAFE, 8000, random=lambda n: bytes(range(n)))
    >>> sender.send(0, b"sound", timestamp=160, marker=True, now=0.02).hex(" ", -4)
    '80800002 000000a0 0000cafe 736f756e 64'
"""

from collections.abc import Callable

from p2psip.rtp.fast import VERSION_2, pack_fixed
from p2psip.rtp.rtcp import ReceiverReport, ReportBlock, SenderReport


class Sender:
    """A source of ours: §5.1.

    `ssrc` None has one drawn; `clock_rate` is in ticks a second; `random(n)` gives n octets.
    `rtt` is in seconds, None until measured, and `remote_block` the peer's last report of us.
    `on_collision` is called before a collision is handled, for what sends in our place: `went_on`.
    """

    def __init__(self, ssrc: int | None, clock_rate: int, random: Callable[[int], bytes]) -> None:
        self._random = random
        # §5.1 [ssrc-is-drawn]
        self.ssrc = int.from_bytes(random(4), "big") if ssrc is None else ssrc
        self._send_rate = clock_rate
        # §5.1 [sequence-is-drawn]
        # RFC 4568 §6.4 [sequence-begins-low]
        self._sequence = int.from_bytes(random(2), "big") % 0x7FFF  # unpredictable, says §5.1
        self.packets_sent = self.octets_sent = 0
        self._last_timestamp = 0
        self.last_sent: float | None = None
        self.rtt: float | None = None
        self.remote_block: ReportBlock | None = None
        self.on_collision: Callable[[], None] = lambda: None

    @property
    def send_rate(self) -> int:
        """The clock of our timestamps, in ticks a second: §5.1."""
        return self._send_rate

    def send_at(self, clock_rate: int) -> None:
        """Count our timestamps by this clock from now on; a source has one clock: §5.2."""
        if clock_rate != self._send_rate and self.packets_sent:
            self.take_ssrc()
            self.last_sent = None
        self._send_rate = clock_rate

    def send(
        self, payload_type: int, payload: bytes, timestamp: int, marker: bool, now: float
    ) -> bytes:
        """Make the next datagram of ours at `timestamp`, random offset included: §5.1."""
        # §5.1 [sequence-by-one], RFC 4733 §2.5.1.6 [numbers-by-one]
        self._sequence = sequence = self._sequence + 1 & 0xFFFF
        self.packets_sent += 1  # §6.4.1 [packets-since-the-beginning]
        self.octets_sent += len(payload)  # §6.4.1 [octets-of-payloads]
        self._last_timestamp, self.last_sent = timestamp, now
        second = payload_type | 0x80 if marker else payload_type
        # §5.1 [ssrc-names-the-source]
        return pack_fixed(VERSION_2, second, sequence, timestamp, self.ssrc) + payload

    def went_on(self, packets: int, octets: int, timestamp: int, now: float) -> None:
        """Count packets that were sent elsewhere, the last one at `now`: §5.1, §6.4.1."""
        self._sequence = self._sequence + packets & 0xFFFF
        self.packets_sent += packets
        self.octets_sent += octets
        self._last_timestamp, self.last_sent = timestamp, now

    @property
    def sequence(self) -> int:
        """The sequence number of the last packet: §5.1."""
        return self._sequence

    def send_about(
        self, payload_type: int, payload: bytes, timestamp: int, marker: bool, now: float
    ) -> bytes:
        """Make a datagram with an earlier timestamp, to report an event: RFC 4733 §2.5.1.2."""
        here = timestamp if self.last_sent is None else self.timestamp(now)
        datagram = self.send(payload_type, payload, timestamp, marker, now)
        self._last_timestamp = here
        return datagram

    def timestamp(self, now: float) -> int:
        """The timestamp of this moment, counted from the last packet: §6.4.1."""
        elapsed = 0.0 if self.last_sent is None else now - self.last_sent
        return self._last_timestamp + round(elapsed * self._send_rate) & 0xFFFFFFFF

    def take_ssrc(self) -> None:
        """Go on as another source, after a collision or with another clock: §8.2, §5.2."""
        # §8.2 [another-ssrc]
        self.ssrc ^= int.from_bytes(self._random(4), "big") | 1  # random, and another one
        # §6.4.1 [counts-start-anew]
        self.packets_sent = self.octets_sent = 0  # the counts are of one SSRC: §6.4.1

    def report(
        self, blocks: tuple[ReportBlock, ...], ntp: int, now: float, as_sender: bool
    ) -> SenderReport | ReceiverReport:
        """Make our report, as a sender if we sent lately: §6.4."""
        if not as_sender or self.last_sent is None:  # §6.4 [reports-as-it-sends]
            return ReceiverReport(self.ssrc, blocks)  # §6.1 [empty-report], §6.4.2 [empty-report]
        timestamp = self.timestamp(now)  # §6.4.1 [timestamp-of-the-report]
        counts = (self.packets_sent, self.octets_sent)
        return SenderReport(self.ssrc, ntp, timestamp, *counts, blocks)  # §6.4.1 [time-of-day]

    def judge(self, block: ReportBlock, ntp: int) -> None:
        """Read the peer's report on us at NTP time `ntp`; measure the round trip: §6.4.1."""
        if block.ssrc != self.ssrc:
            return
        self.remote_block = block
        trip = (ntp >> 16) - block.last_sr - block.delay & 0xFFFFFFFF
        if block.last_sr and trip < 1 << 31:  # its clock and ours may differ by a tick
            self.rtt = trip / 65536
