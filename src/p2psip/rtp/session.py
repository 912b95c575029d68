"""An RTP session of two participants: a stream each way, and the reports about both.

Implements RFC 3550 §6.4, between one source of ours and one of the peer's.

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

from p2psip.rtp import fast
from p2psip.rtp.fast import VERSION_2, Header, unpack_fixed
from p2psip.rtp.reception import Reception
from p2psip.rtp.reporter import Event as Event
from p2psip.rtp.reporter import Reporter
from p2psip.rtp.rtcp_timer import BANDWIDTH
from p2psip.rtp.sender import Sender


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts and times of a session, for logs: §6.4.1; the `remote_` ones are the peer's, of us."""

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


class RtpSession(Sender):
    """One stream each way, with its RTCP: §6.4.

    It is our source itself, with the peer's as `reception` and a `reporter` for both: the media
    path then has no further object to go through.

    `ssrc` is ours, or None to draw it; `clock_rate` in ticks a second, of both streams until
    `send_at` gives ours another; `cname` is that of §6.5.1; `random(n)` gives n octets;
    `wallclock` plus `now` is Unix time (§4 allows any constant: differences are then still of use).
    `payload_types`, if not None, are those by which a new source may introduce itself.
    `bandwidth` is for RTCP, in octets a second.  With `echo` our own packets, sent back
    by a reflector, are heard as the peer's: Field §"Packets sent back".
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
        super().__init__(ssrc, clock_rate, random)
        self.clock_rate = clock_rate
        self.reception = Reception(clock_rate, payload_types)
        self._invalid = 0
        self.reporter = Reporter(
            cname,
            random,
            now,
            [self],
            [self.reception],
            wallclock=wallclock,
            bandwidth=bandwidth,
            echo=echo,
        )

    def received_rtp(self, data: bytes | memoryview, now: float) -> Header | None:
        """Take a datagram; return its `fast.Header` with the extended sequence number: §A.1.

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
                    self._invalid += 1
                    return None
                reception.octets += len(data) - 12
                reception.last_received = now
                return second & 0x7F, second > 0x7F, extended, timestamp, ssrc, 12, len(data)
        return self._received_unusual(data, now)

    def _received_unusual(self, data: bytes | memoryview, now: float) -> Header | None:
        """Take a datagram other than a plain packet of the known source."""
        header = fast.unpack(data)
        # §8.2 [collisions-are-noticed] [loops-are-dropped]
        if header is None or (header[4] == self.ssrc and self.reporter.collided(self, now)):
            self._invalid += 1  # §8.2 [loops-are-told]
            return None
        extended = self.reception.heard(header, now)
        if extended is None:
            self._invalid += 1
            return None
        self.reception.last_received = now
        payload_type, marker, _, timestamp, ssrc, start, end = header
        return payload_type, marker, extended, timestamp, ssrc, start, end

    def received_rtcp(self, data: bytes | memoryview, now: float) -> list[Event]:
        """Process a datagram; return its requests to our stream, and the peer's BYE: §6.4."""
        return self.reporter.received(data, now)

    @property
    def deadline(self) -> float:
        """When to call `tick`: §6.3.6.  In the past if there is a BYE to send now."""
        return self.reporter.deadline

    def tick(self, now: float) -> list[bytes]:
        """Answer the RTCP datagrams that are due, most often none or one: §6.3.6."""
        return self.reporter.tick(now)

    def bye(self, now: float, reason: str = "") -> bytes:
        """Make the last datagram, or b"" if we never sent any: §6.3.7."""
        return self.reporter.bye(now, reason)

    @property
    def invalid(self) -> int:
        """The datagrams that were dropped: §A.1, §A.2."""
        return self._invalid + self.reporter.invalid

    @property
    def last_received(self) -> float | None:
        """When the last packet of the peer came: §6.3.5."""
        return self.reception.last_received

    @property
    def last_heard(self) -> float | None:
        """When the last report of the peer came: §6.3.5."""
        return self.reporter.last_heard

    @property
    def remote_cname(self) -> str | None:
        """The name of the peer, None until it has said it: §6.5.1."""
        return self.reporter.remote_cname

    @property
    def statistics(self) -> Statistics:
        """Counts and times so far: §6.4.4."""
        source, remote = self.reception.source, self.remote_block
        lost = source.lost  # RFC 3551 §2 [watches-loss]
        return Statistics(
            packets_sent=self.packets_sent,
            octets_sent=self.octets_sent,
            packets_received=source.received,
            octets_received=self.reception.octets,
            lost=lost,
            jitter_ms=1000 * source.jitter / self.clock_rate,
            invalid=self.invalid,
            rtt=self.rtt,
            remote_lost=remote.lost if remote else 0,
            remote_fraction_lost=remote.fraction_lost / 256 if remote else 0.0,
            remote_jitter_ms=1000 * remote.jitter / self._send_rate if remote else 0.0,
        )
