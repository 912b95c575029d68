"""The RTCP of one transport: reports of all its streams, and requests about them.

Implements RFC 3550 §6.3 and §6.4, and with `early` RFC 4585 §3.5 for two participants, where
T_dither_max is 0 and no other receiver's request stands for ours.

A request for a picture cannot wait for a regular report: under the profile AVPF it leaves at once,
and the regular report after it is left out, so that the bandwidth stays the same.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from p2psip.errors import RemoteError
from p2psip.rtp.extended_report import VoipMetrics
from p2psip.rtp.feedback import Tmmb
from p2psip.rtp.reception import Reception
from p2psip.rtp.rtcp import (
    Bye,
    ExtendedReport,
    Feedback,
    Fir,
    Nack,
    OtherFeedback,
    Pli,
    ReceiverReport,
    RtcpPacket,
    SdesChunk,
    SenderReport,
    SourceDescription,
    ntp_time,
    parse_readable,
)
from p2psip.rtp.rtcp_timer import BANDWIDTH, MIN_SECONDS, RtcpTimer, interval
from p2psip.rtp.sender import Sender
from p2psip.rtp.source_description import CNAME

UDP_IP_OCTETS: Final = 28  # Source: §6.2, lower layers count towards the RTCP bandwidth
TIMEOUT_INTERVALS: Final = 5  # Source: §6.3.5, M, after which a silent member is gone
SENDER_INTERVALS: Final = 2  # Source: §6.3.5, after which it counts as a sender no more
MAX_BLOCKS: Final = 31  # Source: §6.4.1, of one report
MAX_ASKED: Final = 16  # Own design: requests that wait for one datagram
USEFUL_SECONDS: Final = 1.0  # Own design: T_max_fb_delay of RFC 4585 §3.4, for a live picture

Event: TypeAlias = Feedback | Bye
"""What RTCP may tell that is not statistics: §6.6 and RFC 4585 §6.1."""


class Reporter:
    """Reports of all streams of one transport: §6.4.

    `senders` are our sources, one at least, and `receivers` those of the peer's that we hear; both
    may grow and shrink.  `wallclock` plus `now` is Unix time (§4 allows any constant).
    `bandwidth` is for RTCP, in octets a second.  `early` says that AVPF is agreed on, and
    `report_interval` is then T_rr_interval, the least time between regular reports in s, which
    leaves the bandwidth to requests.  With `echo` our own packets, sent back by a reflector such as
    SIPp's, are heard as the peer's.
    `remote_metrics` is what the peer last told of the quality that it hears (RFC 3611 §4.7), and
    `local_metrics`, unless it is None, what we tell with each full report and at the end.
    """

    def __init__(
        self,
        cname: str,
        random: Callable[[int], bytes],
        now: float,
        senders: Sequence[Sender],
        receivers: Sequence[Reception],
        *,
        wallclock: float = 0.0,
        bandwidth: float = BANDWIDTH,
        early: bool = False,
        report_interval: float = 0.0,
        echo: bool = False,
    ) -> None:
        self.cname, self._random = cname, random
        self.senders, self.receivers = list(senders), list(receivers)
        self.invalid = 0
        self.last_heard: float | None = None
        self.remote_cname: str | None = None
        self.remote_metrics: VoipMetrics | None = None
        self.local_metrics: Callable[[], VoipMetrics | None] | None = None
        self._wallclock, self._echo, self._early = wallclock, echo, early
        self._below = UDP_IP_OCTETS  # what lower layers add to a datagram
        # RFC 4585 §3.5.1 [no-minimum], §3.5.3 [no-minimum-later]
        self._timer = RtcpTimer(now, random, bandwidth, least=0.0 if early else MIN_SECONDS)
        self._allow_early = True  # RFC 4585 §3.5.1 [early-at-first]
        self._report_interval = report_interval if early else 0.0
        self._last_regular: float | None = None  # t_rr_last of RFC 4585 §3.4
        self._asked: list[Feedback] = []
        self._due_early = False
        self._farewell: list[bytes] = []
        self._reported = False
        self._looping: set[int] = set()  # our SSRCs after a collision

    def count_below(self, octets: int) -> None:
        """Count `octets` that encryption adds to each datagram of RTCP: RFC 3711 §3.4."""
        # RFC 3711 §3.4 [first-size-with-srtcp]
        self._timer.avg_rtcp_size += UDP_IP_OCTETS + octets - self._below
        self._below = UDP_IP_OCTETS + octets

    # -- what comes ---------------------------------------------------------------------

    def received(self, data: bytes | memoryview, now: float) -> list[Event]:
        """Take a datagram; answer what it asks of us, and BYEs of the peer: §6.4."""
        try:
            # Field §"Compounds with a packet amiss"
            packets = parse_readable(data)  # Field §"First packets that are no media"
        except RemoteError:
            self.invalid += 1
            return []
        self._timer.received(len(data) + self._below)  # RFC 3711 §3.4 [sizes-with-srtcp]
        self.last_heard = now
        return [event for packet in packets for event in self._take(packet, now)]

    def _take(self, packet: RtcpPacket, now: float) -> list[Event]:
        match packet:
            case SenderReport(ssrc=ssrc) | ReceiverReport(ssrc=ssrc):
                ours = self.sender(ssrc)
                if ours is not None and self.collided(ours, now):
                    return []
                self._read_report(packet, now)
            case SourceDescription(chunks):
                heard = {each.ssrc for each in self.receivers}
                names = [chunk.cname for chunk in chunks if chunk.ssrc in heard]
                self.remote_cname = next(filter(None, names), self.remote_cname)
            case Bye(ssrcs):
                leaving = [each for each in self.receivers if each.ssrc in ssrcs]
                for each in leaving:
                    each.forget()
                if leaving:
                    self._count_members(now)
                    self._timer.reconsider(now)  # §6.3.4 [reverse-reconsideration]
                    return [packet]
            case Pli() | Nack() | OtherFeedback() if self.sender(packet.media_ssrc):
                return [packet]
            case Tmmb(limits=limits) if any(self.sender(each.ssrc) for each in limits):
                return [packet]
            case ExtendedReport(blocks=blocks):
                for block in blocks:
                    if isinstance(block, VoipMetrics) and self.sender(block.ssrc):
                        self.remote_metrics = block
            case Fir(requests=requests) if any(self.sender(ssrc) for ssrc, _ in requests):
                return [packet]
        return []  # §6.1 [unknown-packets-ignored], §6.7 [unknown-app-ignored]

    def _read_report(self, report: SenderReport | ReceiverReport, now: float) -> None:
        if isinstance(report, SenderReport):
            for each in self.receivers:
                each.note(report, now)
        ntp = self._ntp(now)
        for block in report.reports:
            for sender in self.senders:
                sender.judge(block, ntp)

    def sender(self, ssrc: int) -> Sender | None:
        """Give our source of this SSRC: §5.1."""
        return next((each for each in self.senders if each.ssrc == ssrc), None)

    def collided(self, sender: Sender, now: float) -> bool:
        """Handle a packet with an SSRC of ours, collided or looping; whether to drop it: §8.2."""
        if self._echo or sender.ssrc in self._looping:
            return not self._echo
        sender.on_collision()
        if sender.last_sent is not None or self._reported:
            # §8.2 [bye-for-the-old]
            self._farewell.append(self._compound(now, Bye((sender.ssrc,))))
        sender.take_ssrc()
        self._looping.add(sender.ssrc)
        return False

    # -- what leaves --------------------------------------------------------------------

    def ask(self, feedback: Feedback, now: float) -> bool:
        """Send a request as soon as RFC 4585 §3.5.2 allows; False if it is dropped, as too late."""
        if not self._early or len(self._asked) >= MAX_ASKED:
            return False
        timer = self._timer
        # RFC 4585 §3.5.2 [joins-what-waits] [regular-is-near] [looks-at-tn]
        if not self._asked and now <= timer.tn:
            if self._allow_early:  # RFC 4585 §3.5.2 [early-at-once] [looks-at-allow-early]
                # RFC 4585 §3.4 [sent-at-once], §3.5.2 [early-skips-one-regular]
                self._allow_early, self._due_early = False, True
                timer.skip_one()  # RFC 4585 §3.5.3 [adjusted-times]
            elif timer.tn - now >= USEFUL_SECONDS:  # RFC 4585 §3.5.2 [looks-at-the-next-report]
                return False  # RFC 4585 §3.5.2 [too-late-is-dropped]
        self._merge(feedback)
        return True

    def _merge(self, feedback: Feedback) -> None:
        """Keep a request, as part of one that waits if that is possible: RFC 4585 §3.5.2."""
        for place, each in enumerate(self._asked):
            if each == feedback:
                return
            if not (isinstance(each, Nack) and isinstance(feedback, Nack)):
                continue
            if each.media_ssrc == feedback.media_ssrc:
                # RFC 4585 §3.5.2 [as-few-as-possible]
                lost = dict.fromkeys((*each.lost(), *feedback.lost()))
                self._asked[place] = Nack.of(feedback.sender_ssrc, each.media_ssrc, lost)
                return
        self._asked.append(feedback)  # RFC 4585 §6.1 [types-apart]

    @property
    def deadline(self) -> float:
        """When to call `tick`: §6.3.6.  In the past if there is something to send now."""
        if self._farewell or self._due_early:
            return float("-inf")
        return self._timer.tn

    def tick(self, now: float) -> list[bytes]:
        """Answer the RTCP datagrams that are due, most often none or one: §6.3.6."""
        datagrams, self._farewell = self._farewell, []
        if self._due_early:
            self._due_early = False
            # RFC 4585 §3.1 [minimal-compound] [minimal-when-early]
            # RFC 4585 §3.5.2 [packet-of-its-own] [leaves-at-te], §6.1 [types-together]
            report = self._compound(now, *self._requests())
            # RFC 4585 §3.5.4 [size-counts], §8 [bandwidth-is-kept]
            self._timer.received(len(report) + self._below)
            datagrams.append(report)
        if now >= self._timer.deadline:  # §6.3.5 [checks-silence] [checks-each-interval]
            self._count_members(now)
        if self._timer.tick(now):  # §6.1 [one-an-interval]
            datagrams += self._regular(now)  # RFC 4585 §3.5.3 [regular-reports]
            # RFC 4585 §3.5.2 [allowed-at-the-new-tn], §3.5.3 [early-again] [allowed-again-always]
            self._allow_early = True
        return datagrams

    def _regular(self, now: float) -> list[bytes]:
        """Make the report that is due, unless it may be left out: RFC 4585 §3.5.3."""
        is_full = self._is_full_due(now)
        if not is_full and not self._asked:
            # RFC 4585 §3.5.3 [suppressed-before-its-time] [times-are-drawn-anew]
            self._timer.suppressed(now)
            return []
        extended = self._extended() if is_full else ()
        # RFC 4585 §3.1 [full-when-regular], §3.5.3 [requests-leave-at-tn] [stored-requests-leave]
        report = self._compound(now, *extended, *self._requests())
        # RFC 3711 §3.4 [sizes-with-srtcp], RFC 4585 §3.5.3 [times-are-drawn-anew]
        self._timer.sent(len(report) + self._below, now)
        self._reported = True
        if is_full:  # RFC 4585 §3.5.3 [t-rr-last-stays]
            # RFC 4585 §3.5.3 [first-is-regular] [regular-at-its-time] [times-are-noted]
            # RFC 4585 §3.5.3 [last-time-is-noted]
            self._last_regular = now
        return [report]

    def _is_full_due(self, now: float) -> bool:
        """Whether T_rr_interval, drawn at random, has passed since the last full report."""
        if self._last_regular is None or not self._report_interval:
            return True
        # RFC 4585 §3.5.3 [interval-is-dithered]
        share = 0.5 + int.from_bytes(self._random(4), "big") / (1 << 32)
        return self._last_regular + share * self._report_interval <= now

    def bye(self, now: float, reason: str = "") -> bytes:
        """Make the last datagram, or b"" if we never sent any; of two it leaves at once: §6.3.7."""
        if not self._reported and all(each.last_sent is None for each in self.senders):
            return b""  # §6.3.7 [no-bye-of-the-silent]
        ssrcs = tuple(each.ssrc for each in self.senders[:MAX_BLOCKS])
        # §6.1 [bye-last], §6.3.7 [bye-is-sent]
        return self._compound(now, *self._extended(), Bye(ssrcs, reason.encode()[:255]))

    def _extended(self) -> tuple[ExtendedReport, ...]:
        """Make the report of how we hear the peer, if there is one: RFC 3611 §2."""
        metrics = None if self.local_metrics is None else self.local_metrics()
        # RFC 3611 §5 [without-signalling]
        return () if metrics is None else (ExtendedReport(self.senders[0].ssrc, (metrics,)),)

    def _requests(self) -> list[Feedback]:
        asked, self._asked = self._asked, []
        return asked

    def _compound(self, now: float, *more: RtcpPacket) -> bytes:
        """Make a report for each source of ours, all with our CNAME: §6.1, §6.4."""
        blocks = tuple(block for each in self.receivers for block in each.block(now))[:MAX_BLOCKS]
        ntp = self._ntp(now)
        reports = (
            each.report(blocks, ntp, now, self._is_recent(each.last_sent, now))
            for each in self.senders
        )
        name = ((CNAME, self.cname.encode()[:255]),)
        chunks = tuple(SdesChunk(each.ssrc, name) for each in self.senders[:MAX_BLOCKS])
        # §6.1 [cname-in-each] [two-packets], §6.5.1 [cname-is-there]
        # RFC 3551 §2 [cname-each-time] [others-seldom], RFC 3711 §3.4 [begins-with-a-report]
        # RFC 4585 §3.1 [feedback-in-order] [names-with-cname] [feedback-comes-last]
        return b"".join(map(bytes, (*reports, SourceDescription(chunks), *more)))

    # -- who is there -------------------------------------------------------------------

    def _count_members(self, now: float) -> None:
        """Tell the timer how many members and senders there are: §6.3.5."""
        timer = self._timer
        calculated = interval(
            timer.members, timer.senders, timer.bandwidth, False, timer.avg_rtcp_size, False,
            timer.least,
        )  # fmt: skip
        # Own design: AVPF has no least interval, but a pause of a second is no end
        # §6.2 [timeout-by-the-minimum], §6.2.1 [five-intervals]
        # RFC 4585 §3.5.4 [timeout-by-the-interval]
        least = max(MIN_SECONDS, self._report_interval)
        gone = now - TIMEOUT_INTERVALS * max(calculated, least)
        present = list(self._heard_since(gone))
        there = len(present)
        if not there and self.last_heard is not None and self.last_heard > gone:
            left = (each.ssrc is None and each.last_received is not None for each in self.receivers)
            there = 0 if self.receivers and all(left) else 1
        sending = sum(self._is_recent(each.last_sent, now) for each in self.senders)
        timer.we_sent = sending > 0
        timer.members = len(self.senders) + there
        timer.senders = sending + sum(self._is_recent(each.last_received, now) for each in present)

    def _heard_since(self, then: float) -> Iterator[Reception]:
        for each in self.receivers:
            at = each.last_received
            if each.ssrc is not None and at is not None and at > then:
                yield each

    def _is_recent(self, at: float | None, now: float) -> bool:
        return at is not None and now - at < SENDER_INTERVALS * max(
            self._timer.calculated, MIN_SECONDS if self._early else 0.0
        )

    def _ntp(self, now: float) -> int:
        return ntp_time(now + self._wallclock)
