"""The codecs of the SIP family: SIP, SDP, RTP, RTCP, STUN and the candidates of ICE.

Own design: a table; each codec is a module of `p2psip`, which has the citations.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.ice_candidate import IceCandidate
from p2psip.nat.stun import StunAttribute, StunClass, StunMessage
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.rtcp import RtcpPacket, parse_compound
from p2psip.sdp.session import SessionDescription
from p2psip.sip.message import Message
from rtclab.oracle import sip_neutral
from rtclab.oracle.codec import Codec


@dataclass(frozen=True, slots=True)
class Stun:
    """A STUN message without its octets: RFC 8489 §5."""

    kind: StunClass
    method: int
    transaction_id: bytes
    attributes: tuple[StunAttribute, ...]


def _read_stun(data: bytes) -> Stun:
    read = StunMessage.parse(data)
    return Stun(read.kind, read.method, read.transaction_id, read.attributes)


def _write_stun(stun: Stun) -> bytes:
    return StunMessage.write(stun.kind, stun.method, stun.transaction_id, stun.attributes).data


def _read_candidate(data: bytes) -> IceCandidate:
    try:
        return IceCandidate.parse(data.decode())
    except UnicodeDecodeError:
        raise RemoteError("A candidate that is not UTF-8") from None


CODECS: Final = (
    Codec(
        "sip",
        "RFC 3261 §7",
        "a request or a response, as it stands in a datagram",
        Message,
        sip_neutral.decode,
        write=sip_neutral.write,
        read=sip_neutral.read,
        clauses={
            "method": "RFC 3261 §7.1",
            "status": "RFC 3261 §7.2",
            "reason": "RFC 3261 §7.2",
            "uri": "RFC 3261 §19.1",
            "via": "RFC 3261 §20.42",
            "from": "RFC 3261 §20.20",
            "to": "RFC 3261 §20.39",
            "call_id": "RFC 3261 §20.8",
            "cseq": "RFC 3261 §20.16",
            "contact": "RFC 3261 §20.10",
            "route": "RFC 3261 §20.34",
            "record_route": "RFC 3261 §20.30",
            "max_forwards": "RFC 3261 §20.22",
            "header_lines": "RFC 3261 §7.3.1",
            "body": "RFC 3261 §18.3",
        },
        shape=sip_neutral.SHAPE,
    ),
    Codec(
        "sdp",
        "RFC 8866 §5",
        "a session description",
        SessionDescription,
        partial(SessionDescription.parse, strict=True),
        clauses={
            "version": "RFC 8866 §5.1",
            "origin": "RFC 8866 §5.2",
            "name": "RFC 8866 §5.3",
            "information": "RFC 8866 §5.4",
            "uri": "RFC 8866 §5.5",
            "emails": "RFC 8866 §5.6",
            "phones": "RFC 8866 §5.6",
            "connection": "RFC 8866 §5.7",
            "more_connections": "RFC 8866 §5.7",
            "bandwidths": "RFC 8866 §5.8",
            "times": "RFC 8866 §5.9",
            "attributes": "RFC 8866 §5.13",
            "media": "RFC 8866 §5.14",
        },
    ),
    Codec(
        "rtp",
        "RFC 3550 §5.1",
        "a packet of audio or video",
        RtpPacket,
        RtpPacket.parse,
        clauses={"extension": "RFC 3550 §5.3.1"},
    ),
    Codec(
        "rtcp",
        "RFC 3550 §6.1",
        "the control packets of one datagram",
        list[RtcpPacket],
        parse_compound,
        lambda packets: b"".join(map(bytes, packets)),
        clauses={
            "sender-report": "RFC 3550 §6.4.1",
            "receiver-report": "RFC 3550 §6.4.2",
            "extension": "RFC 3550 §6.4.3",
            "source-description": "RFC 3550 §6.5",
            "bye": "RFC 3550 §6.6",
            "app": "RFC 3550 §6.7",
            "nack": "RFC 4585 §6.2.1",
            "pli": "RFC 4585 §6.3.1",
            "other-feedback": "RFC 4585 §6.1",
            "fir": "RFC 5104 §4.3.1",
            "tmmb": "RFC 5104 §4.2.1",
            "transport-feedback": "Transport-wide CC 01 §3.1",
            "remb": 'Field §"Ceilings of a receiver"',
            "extended-report": "RFC 3611 §2",
        },
    ),
    Codec(
        "stun",
        "RFC 8489 §5",
        "a message of STUN or TURN; its attributes as octets",
        Stun,
        _read_stun,
        _write_stun,
        clauses={"attributes": "RFC 8489 §14"},
    ),
    Codec(
        "ice-candidate",
        "RFC 8839 §5.1",
        "the value of a=candidate, as browsers and trickling peers say it",
        IceCandidate,
        _read_candidate,
        lambda candidate: str(candidate).encode(),
        clauses={"priority": "RFC 8445 §5.1.2"},
    ),
)
