"""A call whose sound we send and receive ourselves, packet by packet.

Implements RFC 3550 §5.1 for the packets; `peer` sends and receives them.

Own design: what arrives is kept as octets with its time and its source, for cases are about what
codecs would hide.  What we send is decided by a schedule, so that a loss or a wrong packet is
planned; the clock of our packets is that of G.711.
"""

import time
from dataclasses import dataclass, field
from typing import Final

from p2psip.errors import RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import SenderReport, parse_compound
from p2psip.sdp.attributes import RtpMap, rtcp_mux, rtpmaps
from p2psip.sdp.session import MediaDescription
from p2psip.sip.message import Request, Response
from rtclab.conform.case import NotApplicable, Unmet

RATE: Final = 8000  # ticks a second of G.711
TICKS: Final = 160  # of a packet that we send, 20 ms
SILENCE: Final = bytes([0xFF]) * TICKS  # of PCMU


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


def encoding(talk: Talk, payload_type: int) -> RtpMap | None:
    """What a payload type of the answer stands for (RFC 3551 §6)."""
    return next((each for each in rtpmaps(talk.media) if each.payload_type == payload_type), None)


def control(datagram: Datagram) -> list[object]:
    """The packets of a compound; raises Unmet if it is none (RFC 3550 §A.2)."""
    try:
        return list(parse_compound(datagram.data))
    except RemoteError as error:
        raise Unmet("an RTCP compound", f"{error}: {datagram.data[:12].hex(' ')}") from None
