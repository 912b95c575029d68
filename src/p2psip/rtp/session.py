"""An RTP session of two participants: a stream each way, and the reports about both.

Implements RFC 3550 §6.4, between one source of ours and one of the peer's.

A sans-I/O machine.  Media goes through `send` and `received_rtp`, which make no object
but a tuple; reports leave by `tick`, when `deadline` has come.

    >>> random = lambda n: bytes(range(n))
    >>> ours = RtpSession(0xCAFE, 8000, "alice@example.org", random, now=0.0)
    >>> peer = RtpSession(0xBEEF, 8000, "bob@example.org", random, now=0.0)
    >>> datagram = ours.send(0, b"sound", timestamp=160, marker=True, now=0.02)
    >>> payload_type, marker, sequence, *_, start, end = peer.received_rtp(datagram, now=0.03)
    >>> payload_type, marker, sequence, datagram[start:end]
    (0, True, 2, b'sound')
    >>> [report] = peer.tick(now=3.0)
    >>> ours.received_rtcp(report, now=3.01), ours.statistics.remote_lost
    ([], 0)
"""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Final, TypeAlias

from p2psip.errors import RemoteError
from p2psip.rtp import fast
from p2psip.rtp.fast import VERSION_2, Header, pack_fixed, unpack_fixed
from p2psip.rtp.reception import Reception
from p2psip.rtp.rtcp import (
    Bye,
    Feedback,
    Fir,
    Nack,
    OtherFeedback,
    Pli,
    ReceiverReport,
    ReportBlock,
    RtcpPacket,
    SenderReport,
    SourceDescription,
    compound,
    ntp_time,
    parse_compound,
)
from p2psip.rtp.rtcp_timer import BANDWIDTH, RtcpTimer, interval

UDP_IP_OCTETS: Final = 28  # Source: §6.2, lower layers count towards the RTCP bandwidth
TIMEOUT_INTERVALS: Final = 5  # Source: §6.3.5, M, after which a silent member is gone
SENDER_INTERVALS: Final = 2  # Source: §6.3.5, after which it is no sender

Event: TypeAlias = Feedback | Bye
"""What RTCP may tell that is not statistics: §6.6 and RFC 4585 §6.1."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts and times of a session, for logs and status pages: §6.4.1.

    `rtt` is in seconds, None until measured; the `remote_` numbers are the peer's, of us.
    `invalid` counts datagrams that were dropped.
    """

    packets_sent: int
    octets_sent: int
    packets_received: int
    octets_received: int
    lost: int
    jitter_ms: float
    invalid: int
    rtt: float | None
    remote_lost: int
    remote_fraction_lost: float
    remote_jitter_ms: float


class RtpSession:
    """One stream each way, with its RTCP: §6.4.

    `ssrc` is ours, or None to draw it; `clock_rate` in ticks a second, of both streams until
    `send_at` gives ours another; `cname` as §6.5.1 has it; `random(n)` gives n octets;
    `wallclock` plus `now` is Unix time (§4 allows any constant: differences are then still of use).
    `payload_types`, if not None, are those by which a new source may introduce itself.
    `bandwidth` is for RTCP, in octets a second.  With `echo` our own packets, sent back
    by a reflector such as SIPp's, are heard as the peer's.
    """

    def __init__(
        self,
        ssrc: int | None,
        clock_rate: int,
        cname: str,
        random: Callable[[int], bytes],
        now: float,
        *,
        wallclock: float = 0.0,
        payload_types: Container[int] | None = None,
        bandwidth: float = BANDWIDTH,
        echo: bool = False,
    ) -> None:
        self._random, self._wallclock, self._echo = random, wallclock, echo
        # §5.1 [ssrc-is-drawn]
        self.ssrc = int.from_bytes(random(4), "big") if ssrc is None else ssrc
        self.clock_rate, self.cname = clock_rate, cname
        self._send_rate = clock_rate
        self.reception = Reception(clock_rate, payload_types)
        # §5.1 [sequence-is-drawn]
        self._sequence = int.from_bytes(random(2), "big")  # unpredictable, as §5.1 wants it
        self.packets_sent = self.octets_sent = self.invalid = 0
        self._last_timestamp = 0
        self.last_sent: float | None = None
        self.last_received: float | None = None
        self.last_heard: float | None = None
        self.remote_cname: str | None = None
        self.rtt: float | None = None
        self._remote_block: ReportBlock | None = None
        self._timer = RtcpTimer(now, random, bandwidth)
        self._farewell: list[bytes] = []
        self._looping = self._reported = False

    def send_at(self, clock_rate: int) -> None:
        """Count our timestamps by this clock from now on; a source has one clock: §5.2."""
        if clock_rate != self._send_rate and self.packets_sent:
            self._take_ssrc()
            self.last_sent = None
        self._send_rate = clock_rate

    def send(
        self, payload_type: int, payload: bytes, timestamp: int, marker: bool, now: float
    ) -> bytes:
        """Make the next datagram of ours, and count it: §5.1.

        `timestamp` is in clock ticks, modulo 32 bits, its random offset already in it.
        """
        # RFC 4733 §2.5.1.6 [numbers-by-one]
        self._sequence = sequence = self._sequence + 1 & 0xFFFF
        self.packets_sent += 1
        self.octets_sent += len(payload)
        self._last_timestamp, self.last_sent = timestamp, now
        second = payload_type | 0x80 if marker else payload_type
        return pack_fixed(VERSION_2, second, sequence, timestamp, self.ssrc) + payload

    def received_rtp(self, data: bytes | memoryview, now: float) -> Header | None:
        """Take a datagram; answer `fast.Header` with the sequence number extended: §A.1.

        None if it is not RTP, or not of the source we listen to.  The caller ignores an
        unknown payload type, once its turn in the order has come.
        """
        if len(data) >= 12:
            # Nearly all packets: a plain header, of the source we know.
            first, second, sequence, timestamp, ssrc = unpack_fixed(data)
            reception = self.reception
            if first == VERSION_2 and ssrc == reception.ssrc and ssrc != self.ssrc:
                reception.candidate_ssrc = None
                extended = reception.source.heard(sequence, timestamp, now)
                if extended is None:
                    self.invalid += 1
                    return None
                reception.octets += len(data) - 12
                self.last_received = now
                return second & 0x7F, second > 0x7F, extended, timestamp, ssrc, 12, len(data)
        return self._received_unusual(data, now)

    def _received_unusual(self, data: bytes | memoryview, now: float) -> Header | None:
        """Take a datagram that is no plain packet of the known source."""
        header = fast.unpack(data)
        # §8.2 [collisions-are-noticed] [loops-are-dropped]
        if header is None or (header[4] == self.ssrc and self._is_looped(now)):
            self.invalid += 1  # §8.2 [loops-are-told]
            return None
        extended = self.reception.heard(header, now)
        if extended is None:
            self.invalid += 1
            return None
        self.last_received = now
        payload_type, marker, _, timestamp, ssrc, start, end = header
        return payload_type, marker, extended, timestamp, ssrc, start, end

    def received_rtcp(self, data: bytes | memoryview, now: float) -> list[Event]:
        """Take a datagram; answer what it asks of our stream, and the peer's BYE: §6.4.

        What cannot be parsed is counted and dropped.
        """
        try:
            packets = parse_compound(data)
        except RemoteError:
            self.invalid += 1
            return []
        self._timer.received(len(data) + UDP_IP_OCTETS)
        self.last_heard = now
        return [event for packet in packets for event in self._take(packet, now)]

    @property
    def deadline(self) -> float:
        """When to call `tick`: §6.3.6.  In the past if there is a BYE to send now."""
        return float("-inf") if self._farewell else self._timer.deadline

    def tick(self, now: float) -> list[bytes]:
        """Answer the RTCP datagrams that are due, most often none or one: §6.3.6."""
        datagrams, self._farewell = self._farewell, []
        if now >= self._timer.deadline:  # §6.3.5 [checks-silence] [checks-each-interval]
            self._count_members(now)
        if self._timer.tick(now):
            report = self._compound(now)
            self._timer.sent(len(report) + UDP_IP_OCTETS, now)
            self._reported = True
            datagrams.append(report)  # §6.1 [one-an-interval]
        return datagrams

    def bye(self, now: float, reason: str = "") -> bytes:
        """Make the last datagram, or b"" if we never sent any: §6.3.7.

        With two members it may leave at once.
        """
        if self.last_sent is None and not self._reported:
            return b""  # §6.3.7 [no-bye-of-the-silent]
        return self._compound(now, Bye((self.ssrc,), reason.encode()[:255]))  # §6.1 [bye-last]

    @property
    def statistics(self) -> Statistics:
        """Counts and times so far: §6.4.4."""
        source, remote = self.reception.source, self._remote_block
        return Statistics(
            packets_sent=self.packets_sent,
            octets_sent=self.octets_sent,
            packets_received=source.received,
            octets_received=self.reception.octets,
            lost=source.lost,  # RFC 3551 §2 [watches-loss]
            jitter_ms=1000 * source.jitter / self.clock_rate,
            invalid=self.invalid,
            rtt=self.rtt,
            remote_lost=remote.lost if remote else 0,
            remote_fraction_lost=remote.fraction_lost / 256 if remote else 0.0,
            remote_jitter_ms=1000 * remote.jitter / self._send_rate if remote else 0.0,
        )

    def _take(self, packet: RtcpPacket, now: float) -> list[Event]:
        match packet:
            case SenderReport(ssrc=ssrc) | ReceiverReport(ssrc=ssrc):
                if ssrc == self.ssrc and self._is_looped(now):
                    return []
                if isinstance(packet, SenderReport):
                    self.reception.note(packet, now)
                for block in packet.reports:
                    self._judge(block, now)
            case SourceDescription(chunks):
                names = [chunk.cname for chunk in chunks if chunk.ssrc == self.reception.ssrc]
                self.remote_cname = next(filter(None, names), self.remote_cname)
            case Bye(ssrcs) if self.reception.ssrc in ssrcs:
                self.reception.forget()
                self._count_members(now)
                self._timer.reconsider(now)  # §6.3.4 [reverse-reconsideration]
                return [packet]
            case Pli() | Nack() | OtherFeedback() if packet.media_ssrc == self.ssrc:
                return [packet]
            case Fir(requests=requests) if any(ssrc == self.ssrc for ssrc, _ in requests):
                return [packet]
        return []  # §6.1 [unknown-packets-ignored], §6.7 [unknown-app-ignored]

    def _judge(self, block: ReportBlock, now: float) -> None:
        """Read the peer's report on our stream; measure the round trip: §6.4.1."""
        if block.ssrc != self.ssrc:
            return
        self._remote_block = block
        trip = (self._ntp(now) >> 16) - block.last_sr - block.delay & 0xFFFFFFFF
        if block.last_sr and trip < 1 << 31:  # its clock and ours may differ by a tick
            self.rtt = trip / 65536

    def _compound(self, now: float, *more: RtcpPacket) -> bytes:
        """Make a report with our CNAME, as a sender if we sent lately: §6.4."""
        blocks = self.reception.block(now)
        # §6.1 [empty-report], §6.4.2 [empty-report]
        report: SenderReport | ReceiverReport = ReceiverReport(self.ssrc, blocks)
        if self.last_sent is not None and self._is_recent(self.last_sent, now):
            elapsed = int((now - self.last_sent) * self._send_rate)
            # §6.4.1 [timestamp-of-the-report]
            timestamp = self._last_timestamp + elapsed & 0xFFFFFFFF
            counts = (self.packets_sent, self.octets_sent)
            report = SenderReport(self.ssrc, self._ntp(now), timestamp, *counts, blocks)
        # §6.1 [cname-in-each] [two-packets], §6.5.1 [cname-is-there]
        # RFC 3551 §2 [cname-each-time] [others-seldom]
        return compound(report, SourceDescription.of_cname(self.ssrc, self.cname), *more)

    def _count_members(self, now: float) -> None:
        """Tell the timer how many members and senders there are: §6.3.5."""
        timer, received = self._timer, self.last_received
        seen = max((at for at in (received, self.last_heard) if at is not None), default=None)
        left = self.reception.ssrc is None and received is not None
        calculated = interval(
            timer.members, timer.senders, timer.bandwidth, False, timer.avg_rtcp_size
        )
        # §6.2 [timeout-by-the-minimum], §6.2.1 [five-intervals]
        there = seen is not None and not left and now - seen < TIMEOUT_INTERVALS * calculated
        sends = there and received is not None and self._is_recent(received, now)
        timer.we_sent = self.last_sent is not None and self._is_recent(self.last_sent, now)
        timer.members, timer.senders = 1 + there, sends + timer.we_sent

    def _is_recent(self, at: float, now: float) -> bool:
        return now - at < SENDER_INTERVALS * self._timer.calculated

    def _is_looped(self, now: float) -> bool:
        """Handle a packet with our own SSRC; return whether to drop it: §8.2.

        The first time we leave it to the other and take a new one.  If that one comes
        back too, it is our own packets that loop.
        """
        if self._echo or self._looping:
            return not self._echo
        if self.last_sent is not None or self._reported:
            self._farewell.append(self._compound(now, Bye((self.ssrc,))))  # §8.2 [bye-for-the-old]
        self._looping = True
        self._take_ssrc()
        return False

    def _take_ssrc(self) -> None:
        # §8.2 [another-ssrc]
        self.ssrc ^= int.from_bytes(self._random(4), "big") | 1  # random, and another one
        # §6.4.1 [counts-start-anew]
        self.packets_sent = self.octets_sent = 0  # the counts are of one SSRC: §6.4.1

    def _ntp(self, now: float) -> int:
        return ntp_time(now + self._wallclock)
