"""A call whose sound we send and receive ourselves, packet by packet.

Implements RFC 3264 §5 for the offer; the packets are those of RFC 3550 §5.1.

Own design: what arrives is kept as octets with its time and its source, for cases are about what
codecs would hide.  What we send is decided by a schedule, so that a loss or a wrong packet is
planned; the clock of our packets is that of G.711.
"""

import os
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import gevent
from gevent import socket

from p2psip.errors import RemoteError
from p2psip.nat.stun import is_stun
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import SenderReport, compound, ntp_time, parse_compound
from p2psip.rtp.source_description import SourceDescription
from p2psip.sdp.attributes import RtpMap, media_address, rtcp_address, rtcp_mux, rtpmaps
from p2psip.sdp.session import MediaDescription, SessionDescription
from p2psip.sip.message import Request, Response
from rtclab.conform.case import NotApplicable, Unmet, Unreachable
from rtclab.conform.sip.peer import SipPeer, said

RATE: Final = 8000  # ticks a second of G.711
TICKS: Final = 160  # of a packet that we send, 20 ms
SILENCE: Final = bytes([0xFF]) * TICKS  # of PCMU
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


@dataclass(frozen=True, slots=True)
class Datagram:
    """What arrived: when, from where, and whether as control."""

    time: float  # s, monotonic
    source: tuple[str, int]
    data: bytes
    is_control: bool
    is_beside: bool = False  # at the port for RTCP, not at that of the sound

    @property
    def packet(self) -> RtpPacket:
        """The datagram as RTP; raises Unmet if it is none (RFC 3550 §A.1)."""
        try:
            return RtpPacket.parse(self.data)
        except RemoteError as error:
            raise Unmet("an RTP packet", f"{error}: {self.data[:12].hex(' ')}") from None


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet of ours, and when it left."""

    time: float
    packet: RtpPacket


@dataclass(slots=True)
class Talk:
    """Everything of one call; `ended` is when the target had answered our BYE."""

    invite: Request
    answer: Response
    media: MediaDescription
    place: tuple[str, int]  # where the answer wants RTP
    control_place: tuple[str, int] | None  # and where RTCP
    heard: list[Datagram] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    reports: list[tuple[float, SenderReport]] = field(default_factory=list)  # ours
    began: float = field(default_factory=time.monotonic)
    ended: float = float("inf")

    @property
    def rtp(self) -> list[Datagram]:
        """The datagrams of sound until our BYE was answered; NotApplicable if there are none."""
        found = [each for each in self.heard if not each.is_control and each.time < self.ended]
        if not found:
            raise NotApplicable("the target sends no RTP")
        return found

    @property
    def rtcp(self) -> list[Datagram]:
        """The datagrams of control."""
        return [each for each in self.heard if each.is_control]

    @property
    def shares_a_port(self) -> bool:
        """Whether RTP and RTCP go by one port (RFC 5761 §5.1.1)."""
        return rtcp_mux(self.media)


class RtpPeer:
    """Calls one target; two ports of its own are for RTP and RTCP."""

    def __init__(self, target: str) -> None:
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

    def _current(self) -> Talk:
        assert self._talk is not None
        return self._talk

    def _offer(self, lines: Iterable[str], formats: str) -> bytes:
        family = "IP6" if ":" in self.sip.host else "IP4"
        port = self.sockets[0].getsockname()[1]
        head = OFFER.format(host=self.sip.host, family=family, port=port, formats=formats)
        return (head + "".join(f"{line}\r\n" for line in lines)).encode()


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


def encoding(talk: Talk, payload_type: int) -> RtpMap | None:
    """What a payload type of the answer stands for (RFC 3551 §6)."""
    return next((each for each in rtpmaps(talk.media) if each.payload_type == payload_type), None)


def control(datagram: Datagram) -> list[object]:
    """The packets of a compound; raises Unmet if it is none (RFC 3550 §A.2)."""
    try:
        return list(parse_compound(datagram.data))
    except RemoteError as error:
        raise Unmet("an RTCP compound", f"{error}: {datagram.data[:12].hex(' ')}") from None
