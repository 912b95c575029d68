"""The calls of a run: two that many cases look at, and one of its own for each other case.

Implements RFC 3550 §6.2 in so far as the length of a call goes by the interval of reports.

Own design: a phone need not ring once for each field of a header, so the cases that only listen
share a call, and those about report blocks another.  They are made when the first case asks.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import gevent

from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import ReceiverReport, ReportBlock, SenderReport
from rtclab.conform.case import NotApplicable, Unmet
from rtclab.conform.rtp.talk import RtpPeer, Talk, control
from rtclab.conform.sip.peer import reach as reach_by_sip

LONGEST: Final = 12.5  # s: the first report within 3.1 s, and the second 6.2 s later at most
LATE: Final = 0.5  # s behind the end of a call, for what comes after it
PACKET: Final = 0.02  # s
FIRST: Final = 65490  # sequence number of a lossy call: it wraps within a second
LOST_OF: Final = 10  # packets, one is not sent
SURE: Final = 20  # packets of ours that a report must cover to be judged

Plan = Callable[[int], tuple[float, RtpPacket] | None]


class RtpListener(RtpPeer):
    """The peer of a case; `plain` and `lossy` are the calls that it shares with others."""

    def __init__(self, target: str, shared: "SharedCalls") -> None:
        super().__init__(target)
        self._shared, self._target = shared, target

    def plain(self) -> Talk:
        """A call with sound of ours every 20 ms, and two reports of the target."""
        return self._shared.get(self._target, _plain)

    def lossy(self) -> Talk:
        """A call in which one packet of ten is lost, and the others come in pairs."""
        return self._shared.get(self._target, _lossy)

    def stream(self, seconds: float, done: Callable[[], bool], plan: Plan) -> None:
        """Send what is planned for each packet number, with reports, until it is done."""
        self.send(self._planned(seconds, done, plan))

    def even(self, number: int) -> tuple[float, RtpPacket]:
        """The plan of a stream without faults."""
        return number * PACKET, self.packet(number)

    def _planned(
        self, seconds: float, done: Callable[[], bool], plan: Plan
    ) -> Iterator[tuple[float, RtpPacket]]:
        for number in range(round(seconds / PACKET)):
            if done():
                return
            if number % 100 == 25:
                self.report()
            if (planned := plan(number)) is not None:
                yield planned


class SharedCalls:
    """The calls that cases share, by target; a run makes each of them once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Talk] = {}

    def reach(self, target: str) -> None:
        """Raise Unreachable or ValueError as `Suite` says; forgets the calls of a run before."""
        for key in [key for key in self._kept if key[0] == target]:
            del self._kept[key]
        reach_by_sip(target)

    @contextmanager
    def connect(self, target: str) -> Iterator[RtpListener]:
        """Open the peer of a case."""
        with closing(RtpListener(target, self)) as peer:
            yield peer

    def get(self, target: str, make: Callable[[RtpListener], Talk]) -> Talk:
        """The call that `make` makes, of now or of before."""
        key = target, make.__name__
        if key not in self._kept:
            with closing(RtpListener(target, self)) as peer:
                self._kept[key] = make(peer)
        return self._kept[key]


def _plain(peer: RtpListener) -> Talk:
    talk = peer.call()
    peer.stream(LONGEST, lambda: _count_reports(talk) >= 2, peer.even)
    peer.hang_up()
    gevent.sleep(LATE)
    return talk


def _lossy(peer: RtpListener) -> Talk:
    peer.first = FIRST
    talk = peer.call()

    def in_pairs(number: int) -> tuple[float, RtpPacket] | None:
        if number % LOST_OF == LOST_OF - 1:
            return None
        return number // 2 * 2 * PACKET, peer.packet(number)

    peer.stream(LONGEST, lambda: bool(_sure(talk)), in_pairs)
    peer.hang_up()
    return talk


def blocks(talk: Talk) -> list[tuple[float, ReportBlock]]:
    """What the target reports about our packets, and when (RFC 3550 §6.4.1)."""
    ssrc = talk.sent[0].packet.ssrc if talk.sent else None
    return [
        (datagram.time, block)
        for datagram in talk.rtcp
        for packet in control(datagram)
        if isinstance(packet, SenderReport | ReceiverReport)
        for block in packet.reports
        if block.ssrc == ssrc
    ]


def _count_reports(talk: Talk) -> int:
    """How many compounds begin with SR or RR (RFC 3550 §6.4)."""
    return sum(each.data[1:2] in (b"\xc8", b"\xc9") for each in talk.rtcp)


def _sure(talk: Talk) -> list[tuple[float, ReportBlock]]:
    return [
        (when, block)
        for when, block in blocks(talk)
        if (block.highest_sequence - FIRST) & 0xFFFF >= SURE
    ]


def last_block(talk: Talk) -> tuple[float, ReportBlock]:
    """The last block about a lossy call; Unmet if there is none."""
    if found := _sure(talk):
        return found[-1]
    if not talk.rtcp:
        raise NotApplicable("the target sends no RTCP")
    raise Unmet("a report block about our packets", f"none in {len(talk.rtcp)} reports")
