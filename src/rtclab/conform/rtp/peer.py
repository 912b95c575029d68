"""The calls of a run: two that many cases look at, and one of its own for each other case.

Implements RFC 3264 §5 for the offer, and RFC 3550 §6.2 where the length of a call is that of two
intervals of reports.

Own design: a phone need not ring once for each field of a header, so the cases that only listen
share a call, and those about report blocks another.  They are made when the first case asks.
"""

import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final

import gevent
from gevent import socket

from p2psip.errors import RemoteError
from p2psip.nat.stun import is_stun
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import ReceiverReport, ReportBlock, SenderReport, compound, ntp_time
from p2psip.rtp.source_description import SourceDescription
from p2psip.sdp.attributes import media_address, rtcp_address, rtcp_mux
from p2psip.sdp.session import SessionDescription
from p2psip.sip.message import Request, Response
from rtclab.conform.case import NotApplicable, Unmet, Unreachable
from rtclab.conform.rtp.talk import RATE, SILENCE, TICKS, Datagram, Sent, Talk, control
from rtclab.conform.sip.peer import SipPeer, said
from rtclab.conform.sip.peer import reach as reach_by_sip

LONGEST: Final = 12.5  # s: the first report within 3.1 s, and the second 6.2 s later at most
LATE: Final = 0.5  # s behind the end of a call, for what comes after it
PACKET: Final = 0.02  # s
FIRST: Final = 65490  # sequence number of a lossy call: it wraps within a second
LOST_OF: Final = 10  # packets, one is not sent
SURE: Final = 20  # packets of ours that a report must cover to be judged

RTCP_TYPES: Final = range(192, 224)  # second octets of RTCP where both share a port: RFC 5761 §4
_LARGEST: Final = 65535
_SO_TIMESTAMPNS: Final = 35  # of Linux, socket(7); Python has no name for it
_TIMESPEC: Final = struct.Struct("@qq")  # s and ns since 1970
_ROOM: Final = socket.CMSG_SPACE(_TIMESPEC.size)
_CNAME: Final = "conform@example.com"

OFFER: Final = (
    "v=0\r\no=- 1 1 IN {family} {host}\r\ns=-\r\nc=IN {family} {host}\r\nt=0 0\r\n"
    "m=audio {port} RTP/AVP {formats}\r\n"
)
G711: Final = ("a=rtpmap:0 PCMU/8000", "a=rtpmap:8 PCMA/8000")

Plan = Callable[[int], tuple[float, RtpPacket] | None]


class RtpPeer:
    """The peer of a case, which calls one target; two ports of its own are for RTP and RTCP.

    `plain` and `lossy` are the calls that it shares with other cases.
    """

    def __init__(self, target: str, shared: "SharedCalls") -> None:
        self._shared, self._target = shared, target
        self.sip = SipPeer(target)
        self.sockets = _pair(self.sip.socket.family)
        self.first = 0  # sequence number
        self.ssrc = int.from_bytes(os.urandom(4), "big")
        self._jobs: list[gevent.Greenlet[..., None]] = []
        self._talk: Talk | None = None

    def close(self) -> None:
        """Hang up, and close."""
        self.sip.close()
        gevent.killall(self._jobs)
        for each in self.sockets:
            each.close()

    def call(self, *lines: str, formats: str = "0 8") -> Talk:
        """Place a call, and keep what arrives; NotApplicable if the target takes none.

        `lines` are attributes of the offer.
        """
        offer = self._offer([*(G711 if formats == "0 8" else ()), *lines], formats)
        invite = self.sip.request("INVITE", ("Content-Type", "application/sdp"), body=offer)
        response = self.sip.ask(invite)
        if response.status >= 300:
            raise NotApplicable(f"the target takes no such call: {said(response)}")
        talk = _talk(invite, response)
        self._talk = talk
        for number, each in enumerate(self.sockets):
            self._jobs.append(gevent.spawn(_receive, each, talk, number == 1))
        return talk

    def send(self, packets: Iterable[tuple[float, RtpPacket | bytes]]) -> None:
        """Send packets, each at its time in seconds from now; good ones are noted as sent."""
        talk = self._current()
        began = time.monotonic()
        for due, packet in packets:
            gevent.sleep(max(0.0, began + due - time.monotonic()))
            if isinstance(packet, RtpPacket):
                talk.sent.append(Sent(time.monotonic(), packet))
            self.sockets[0].sendto(bytes(packet), talk.place)

    def control(self, data: bytes) -> None:
        """Send a datagram to where the target receives RTCP (RFC 3605 §2.1, RFC 5761 §5.1.1)."""
        talk = self._current()
        if talk.control_place is not None:
            self.sockets[0 if talk.shares_a_port else 1].sendto(data, talk.control_place)

    def report(self) -> None:
        """Send a sender report and our name (RFC 3550 §6.4.1)."""
        talk = self._current()
        if not talk.sent:
            return
        last = talk.sent[-1]
        ticks = round((time.monotonic() - last.time) * RATE)
        stamp = (last.packet.timestamp + ticks) & 0xFFFFFFFF
        count = len(talk.sent)
        report = SenderReport(self.ssrc, ntp_time(time.time()), stamp, count, count * TICKS)
        talk.reports.append((time.monotonic(), report))
        self.control(compound(report, SourceDescription.of_cname(self.ssrc, _CNAME)))

    def packet(self, number: int, **more: object) -> RtpPacket:
        """The packet of this number of ours, PCMU or what the answer has first."""
        kind = int(self._current().media.formats[0])
        fields: dict[str, object] = {
            "payload_type": kind,
            "sequence": (self.first + number) & 0xFFFF,
            "timestamp": number * TICKS,
            "ssrc": self.ssrc,
            "payload": SILENCE,
            "marker": number == 0,
        }
        return RtpPacket(**(fields | more))  # type: ignore[arg-type]

    def hang_up(self) -> None:
        """Send BYE, and note when it was answered."""
        self.sip.hang_up()
        self._current().ended = time.monotonic()

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

    def _current(self) -> Talk:
        assert self._talk is not None
        return self._talk

    def _offer(self, lines: Iterable[str], formats: str) -> bytes:
        family = "IP6" if ":" in self.sip.host else "IP4"
        port = self.sockets[0].getsockname()[1]
        head = OFFER.format(host=self.sip.host, family=family, port=port, formats=formats)
        return (head + "".join(f"{line}\r\n" for line in lines)).encode()

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
    def connect(self, target: str) -> Iterator[RtpPeer]:
        """Open the peer of a case."""
        with closing(RtpPeer(target, self)) as peer:
            yield peer

    def get(self, target: str, make: Callable[[RtpPeer], Talk]) -> Talk:
        """The call that `make` makes, of now or of before."""
        key = target, make.__name__
        if key not in self._kept:
            with closing(RtpPeer(target, self)) as peer:
                self._kept[key] = make(peer)
        return self._kept[key]


def _plain(peer: RtpPeer) -> Talk:
    talk = peer.call()
    peer.stream(LONGEST, lambda: _count_reports(talk) >= 2, peer.even)
    peer.hang_up()
    gevent.sleep(LATE)
    return talk


def _lossy(peer: RtpPeer) -> Talk:
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


def _talk(invite: Request, response: Response) -> Talk:
    try:
        session = SessionDescription.parse(response.body)
    except RemoteError as error:
        raise Unmet("a session description", str(error)) from None
    media = session.media[0] if session.media else None
    place = media_address(media, session) if media else None
    if media is None or not media.port or place is None:
        raise NotApplicable("the target takes no sound")
    control_place = place if rtcp_mux(media) else rtcp_address(media, session)
    return Talk(invite, response, media, place, control_place)


def _receive(source: socket.socket, talk: Talk, is_beside: bool) -> None:
    while True:
        try:
            data, beside, _, where = source.recvmsg(_LARGEST, _ROOM)
        except OSError:
            continue  # ICMP says that nobody listens there, which is no matter here
        if is_stun(data):
            continue  # phones ask for their address, or hold it open; RFC 8489 §5 tells them apart
        is_control = is_beside or (len(data) > 1 and data[1] in RTCP_TYPES)
        talk.heard.append(Datagram(_arrived(beside), where[:2], data, is_control, is_beside))


def _arrived(beside: Iterable[tuple[int, int, bytes]]) -> float:
    """When the kernel took a datagram in: this process may read it a while after that."""
    for level, kind, data in beside:
        if (level, kind, len(data)) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS, _TIMESPEC.size):
            seconds, nanoseconds = _TIMESPEC.unpack(data)
            waited: float = time.time() - seconds - nanoseconds / 1e9
            return time.monotonic() - max(0.0, waited)
    return time.monotonic()


def _pair(family: int) -> tuple[socket.socket, socket.socket]:
    """Two sockets, at an even port and at the next (RFC 3550 §11)."""
    for _ in range(100):
        one, two = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
        with suppress(OSError):  # a system that has no such option
            one.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            two.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        one.bind(("", 0))
        port = one.getsockname()[1]
        try:
            two.bind(("", port + 1))
        except OSError:
            port = 1
        if port % 2 == 0:
            return one, two
        one.close()
        two.close()
    raise Unreachable("no two free ports beside each other")
