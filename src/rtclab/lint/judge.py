"""Gives each packet of a capture to the rules of its protocol.

Own design: SIP is known by its first line, RTP by the descriptions that came before or else by its
header, SRTP by its keys, RTMFP by the checksum of its startup, RTMP by the first octet.
WebSockets, HTTP and the relays of TURN are taken off before (`rtclab.unwrap`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from p2psip.nat.stun import is_stun
from p2psip.rtp import fast
from p2psip.rtp.rtcp import parse_compound
from rtclab.explain.dtls import is_dtls
from rtclab.explain.fields.context import RtmfpKey
from rtclab.explain.fields.layout import refusal
from rtclab.explain.sip import SIP_START
from rtclab.lint.dtls import DtlsHandshakes
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.ladder import Ladder
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.http import HttpConnection, is_http
from rtclab.lint.rtcp import RtcpReports
from rtclab.lint.rtmfp import RtmfpSessions
from rtclab.lint.rtmp import RtmpConnection
from rtclab.lint.rtmpt import RtmpTunnels
from rtclab.lint.rtp import RtpStream, RtpStreams
from rtclab.lint.sip_calls import SipCalls
from rtclab.lint.sip_stream import SipStream
from rtclab.lint.tcp import TcpWay
from rtclab.unwrap.breach import Breach
from rtclab.unwrap.srtp import OpenedSrtp, SrtpSessions
from rtclab.unwrap.turn import Relayed, TurnRelays

_SIP: Final = re.compile(rb"SIP/\d", re.IGNORECASE)  # in a first line, or in a Via further on
_BEGUN: Final = re.compile(rb"[\r\n]*[ -~]{1,1000}\r?")  # a first line whose end is to come
_RTMP: Final = 3
_TLS: Final = b"\x16\x03"
_HANDSHAKE: Final = 1536
_BLANK: Final = b"\r\n\0 "
_DTLS: Final = range(20, 64)  # first octets, Source: RFC 8656 §12, Table 3


@dataclass(slots=True)
class _Connection:
    """A TCP connection: its two directions, and what is spoken."""

    client: str
    server: str
    ways: dict[str, TcpWay] = field(default_factory=dict)
    opening: list[tuple[SeenPacket, bytes]] = field(default_factory=list)  # not recognised yet
    sip: dict[str, SipStream] = field(default_factory=dict)
    rtmp: RtmpConnection | None = None
    http: HttpConnection | None = None
    is_closed: bool = False
    is_known: bool = False  # what is spoken is clear, or that nobody here reads it


class Judge:
    """Judges a capture: `hear` each packet, then `finish`.  Own design."""

    def __init__(self, keys: Sequence[RtmfpKey] = (), srtp: SrtpSessions | None = None) -> None:
        self.findings, self.ladder = Findings(), Ladder()
        self.notes: dict[str, int] = {}
        self._srtp = srtp or SrtpSessions()
        self._sip = SipCalls(self.findings, self.ladder, self._srtp)
        self._rtp = RtpStreams(self.findings)
        self._dtls = DtlsHandshakes(self.findings, self._srtp)
        self._rtcp = RtcpReports(self.findings)
        self._rtmfp = RtmfpSessions(self.findings, self.ladder, tuple(keys))
        self._tunnels = RtmpTunnels(self.findings, self.ladder, self._note)
        self._relays = TurnRelays()
        self._connections: dict[frozenset[str], _Connection] = {}
        self._over: list[_Connection] = []
        self._sip_ways: set[frozenset[str]] = set()
        self._now = 0.0

    def hear(self, packet: SeenPacket) -> None:
        """Take the next packet."""
        self._now = max(self._now, packet.time)
        if packet.segment is not None:
            self._segment(packet)
        elif packet.data.strip(_BLANK):
            self._datagram(packet)

    def finish(self) -> None:
        """Report what is only known at the end, and complete the diagrams."""
        self._sip.finish(self._now)
        self._rtp.ended = self._sip.ended
        self._rtp.finish()
        self._rtp.one_way(self._sip.offers.places)
        self._rtcp.finish()
        self._rtmfp.finish(self._now)
        self._tunnels.finish(self._now)
        for connection in (*self._over, *self._connections.values()):
            if connection.rtmp is not None:
                connection.rtmp.finish(self._now, is_closed=connection.is_closed)
            if connection.opening:
                self._note("a TCP connection speaks no protocol that is judged")
            if any(way.first_waiting is not None for way in connection.ways.values()):
                self._note("a TCP connection has gaps, and is not judged behind them")
        for stream in self._rtp.streams():
            self._draw(stream)
        self.ladder.sort()

    def streams(self) -> list[RtpStream]:
        """The RTP streams, for their figures."""
        return self._rtp.streams()

    # -- datagrams -----------------------------------------------------------------------

    def _datagram(self, packet: SeenPacket) -> None:
        data, way = packet.data, frozenset((packet.source, packet.target))
        if is_stun(data):
            self._stun(packet)
            return
        if not packet.carrier and self._relayed(packet, self._relays.channel(*packet[2:5])):
            return
        is_sip = SIP_START.match(data) is not None
        opened = self._srtp.opened((packet.source, packet.target, packet.carrier), data)
        if is_sip or way in self._sip_ways:
            self._sip_ways.add(way)
            self._sip.heard(packet, data)
        elif opened is not None:
            self._protected(packet, opened)
        elif not self._media(packet) and not self._rtmfp.heard(packet):
            self._perhaps_media(packet)

    def _stun(self, packet: SeenPacket) -> None:
        """Checks of ICE tell where media are; TURN carries others, in its own packets alone."""
        self._sip.offers.checked(packet)
        if not packet.carrier:
            self._relayed(packet, self._relays.stun(*packet[2:5], packet.time))

    def _relayed(self, packet: SeenPacket, found: Iterable[Relayed | Breach]) -> bool:
        """Judge what a relay carries as the datagram between relay and peer."""
        is_relayed = False
        for each in found:
            is_relayed = True
            if isinstance(each, Breach):
                self.findings.add(each.rule, packet, each.what, citation=each.citation)
            elif each.data.strip(_BLANK):
                source, target, data, leg = each
                inner = packet._replace(source=source, target=target, data=data, carrier=leg)
                self._datagram(inner)
        return is_relayed

    def _protected(self, packet: SeenPacket, opened: OpenedSrtp) -> None:
        """SRTP of which the key is known: what is within, or what is wrong."""
        if opened.plain is not None:
            packet = packet._replace(data=opened.plain)
        elif not opened.is_replayed:
            name = "SRTCP" if opened.is_rtcp else "SRTP"
            what = f"{name} to {packet.target} that no key opens"
            self.findings.add("srtp-tag", packet, what, once=f"{what} {packet.source}")
            return
        elif opened.is_rtcp:
            what = f"SRTCP to {packet.target}"
            self.findings.add("srtcp-replayed", packet, what)
            return  # of RTP the sequence number says the same
        if not self._media(packet, is_open=True):
            self._perhaps_media(packet, is_open=True)

    def _media(self, packet: SeenPacket, *, is_open: bool = False) -> bool:
        """RTP and RTCP at an address that a description gave."""
        offers = self._sip.offers
        place = offers.places.get(packet.target)
        reports = offers.rtcp_places.get(packet.target)
        if place is None and reports is None:
            return False
        if packet.data[0] in _DTLS:  # which agrees on keys
            self._dtls.heard(packet, offers.places.get(packet.source))
            return True
        if (place is None or fast.looks_like_rtcp(packet.data)) and reports is not None:
            self._rtcp.heard(packet, reports, is_open=is_open)
        elif place is not None and fast.looks_like_rtcp(packet.data):
            self._rtcp.heard(packet, place, is_open=is_open)
        elif self._rtp.heard(packet, place, is_open=is_open):
            self._mark(packet)
        return True

    def _perhaps_media(self, packet: SeenPacket, *, is_open: bool = False) -> None:
        """RTP and RTCP that no description told of: both have but a few bits that are sure."""
        data = packet.data
        if is_dtls(data):
            self._dtls.noted(packet)
        elif fast.looks_like_rtcp(data):
            if refusal(parse_compound, data) is None:
                self._rtcp.heard(packet, None, is_open=is_open)
        elif fast.unpack(data) is not None:
            self._rtp.heard(packet, None, is_open=is_open)
            self._mark(packet)

    def _mark(self, packet: SeenPacket) -> None:
        if (header := fast.unpack(packet.data)) is not None:
            self._rtcp.rtp(packet, header[4])

    def _draw(self, stream: RtpStream) -> None:
        """Put a stream into the diagram of its call."""
        place, places = stream.place, self._sip.offers.places
        if place is None:
            one, other = sorted(stream.way)
            self.ladder.add("rtp", f"{one} - {other}", stream.first, stream.label)
            return
        sender = places.get(stream.first.source)
        owners = {each.owner for each in places.values() if each.call_id == place.call_id}
        others = owners - {place.owner}
        if sender is not None and sender.call_id == place.call_id:
            source = sender.owner
        else:  # behind a NAT RTP comes from elsewhere; there are but two ends
            source = others.pop() if len(others) == 1 else stream.first.source
        ends = source, place.owner
        self.ladder.add("call", place.call_id, stream.first, stream.label, ends)

    # -- connections ---------------------------------------------------------------------

    def _segment(self, packet: SeenPacket) -> None:
        segment = packet.segment
        assert segment is not None
        key = frozenset((packet.source, packet.target))
        connection = self._connections.get(key)
        known = None if connection is None else connection.ways.get(packet.source)
        is_over = known is not None and known.is_over(segment)
        if connection is None or is_over or (segment.is_syn and connection.is_closed):
            if connection is not None:
                self._over.append(connection)
            connection = _Connection(packet.source, packet.target)
            self._connections[key] = connection
        way = connection.ways.setdefault(packet.source, TcpWay())
        for brought, data in way.feed(packet):
            self._octets(connection, brought, data)
        connection.is_closed |= segment.is_end

    def _octets(self, connection: _Connection, packet: SeenPacket, data: bytes) -> None:
        if connection.is_known:
            self._read(connection, packet, data)
            return
        connection.opening.append((packet, data))
        first = b"".join(
            piece for brought, piece in connection.opening if brought.source == packet.source
        )
        has_start = connection.ways[packet.source].has_start
        if has_start and first.strip(_BLANK) and _BEGUN.fullmatch(first):
            return
        self._recognise(connection, packet, first)
        opening, connection.opening = connection.opening, []
        for brought, piece in opening:
            self._read(connection, brought, piece)

    def _read(self, connection: _Connection, packet: SeenPacket, data: bytes) -> None:
        if connection.rtmp is not None:
            connection.rtmp.feed(packet, data)
        elif connection.http is not None:
            connection.http.feed(packet, data)
        elif packet.source in connection.sip:
            for message in connection.sip[packet.source].feed(packet, data):
                self._sip.heard(packet, message)

    def _recognise(self, connection: _Connection, packet: SeenPacket, data: bytes) -> None:
        """Recognise the protocol of a connection by its first octets."""
        has_start = connection.ways[packet.source].has_start
        connection.is_known = True
        if data[:2] == _TLS:
            self._note("a TLS connection is not read")
        elif is_http(data):
            connection.http = HttpConnection(
                self.findings, self._tunnels, self._sip.heard, self._note
            )
        elif _SIP.search(data) and (not has_start or SIP_START.match(data)):
            for end in (packet.source, packet.target):
                connection.sip[end] = SipStream(self.findings)
        elif data[0] == _RTMP and (has_start or len(data) > _HANDSHAKE // 2):
            rtmp = RtmpConnection(self.findings, self.ladder, packet.source, packet.target)
            connection.rtmp = rtmp
        elif has_start or data.strip(_BLANK):
            self._note("a TCP connection speaks no protocol that is judged")
        else:
            connection.is_known = False  # a keep-alive

    def _note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1
