"""RTMP connections of a capture: the handshake, the chunks, and the messages of both ends.

Implements RTMP 1.0 §5 as a rule book; what the messages ask for is judged by `rtmp_session`.
"""

from typing import Final

from rtclab.explain.fields.source import fault_of
from rtclab.lint.findings.finding import Findings
from rtclab.lint.findings.ladder import Ladder
from rtclab.lint.findings.packet import SeenPacket
from rtclab.lint.rtmp_session import PATIENCE, RtmpSession
from rtmplite.errors import RtmpError
from rtmplite.rtmp.handshake import VERSION
from rtmplite.rtmp.wire import control, digest
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.digest import PACKET_SIZE, PLAYER_TEXT, SERVER_KEY
from rtmplite.rtmp.wire.message import Message, MessageType

HANDSHAKE: Final = 1 + 2 * PACKET_SIZE  # octets of one end
SMALL_CHUNKS: Final = 128  # octets, Source: RTMP 1.0 §5.4.1
SLACK: Final = 2  # windows that may be under way: acknowledgements come a round trip later


class _End:
    """What one end sends: its handshake, and its chunks."""

    def __init__(self) -> None:
        self.handshake = bytearray()
        self.reader = ChunkReader()
        self.sent = 0
        self.acknowledged = 0  # of what it sent, by the other
        self.window: int | None = None  # that the other shall acknowledge
        self.is_lost = False  # an error made the rest unreadable

    @property
    def is_done(self) -> bool:
        """Whether its handshake is whole."""
        return len(self.handshake) == HANDSHAKE

    def part(self, number: int) -> bytes:
        """C1 or S1, C2 or S2: §5.2.1."""
        return bytes(self.handshake[1 + (number - 1) * PACKET_SIZE : 1 + number * PACKET_SIZE])


class RtmpConnection:
    """One connection from its first octet on: §5.2, §5.3.  `client` is the address of C0."""

    def __init__(self, findings: Findings, ladder: Ladder, client: str, server: str) -> None:
        self._findings, self._ladder = findings, ladder
        self.client, self.server = client, server
        self.name = f"{client} > {server}"
        self._ends = {client: _End(), server: _End()}
        self._session = RtmpSession(findings, self.server)
        self._began: SeenPacket | None = None

    def feed(self, packet: SeenPacket, data: bytes) -> None:
        """Take what one end has sent, in order: §5.2.1."""
        self._began = self._began or packet
        end = self._ends[packet.source]
        end.sent += len(data)
        if not end.is_done:
            data = self._shake(packet, end, data)
        if data and end.is_done and not end.is_lost:
            self._chunks(packet, end, data)

    def finish(self, now: float, *, is_closed: bool) -> None:
        """Report what is missing at the end of the connection or the capture: §5.2.1."""
        began = self._began
        if began is None:
            return
        if not all(end.is_done for end in self._ends.values()):
            if is_closed or now - began.time > PATIENCE:
                sizes = " and ".join(f"{len(end.handshake)}" for end in self._ends.values())
                what = f"the handshake ends after {sizes} of {HANDSHAKE} octets"
                self._findings.add("rtmp-handshake", began, what)
            return
        self._session.finish(now, is_closed=is_closed)

    # -- the handshake -------------------------------------------------------------------

    def _shake(self, packet: SeenPacket, end: _End, data: bytes) -> bytes:
        """Take the handshake of an end; what is behind it."""
        is_first = not end.handshake
        room = HANDSHAKE - len(end.handshake)
        end.handshake += data[:room]
        if is_first:
            name = "C0 C1" if packet.source == self.client else "S0 S1 S2"
            self._ladder.add("rtmp", self.name, packet, name)
            if end.handshake[0] != VERSION:
                what = f"version {end.handshake[0]}"
                self._findings.add("rtmp-version", packet, what)
        if end.is_done:
            self._echo(packet, end)
        return data[room:]

    def _echo(self, packet: SeenPacket, end: _End) -> None:
        """Compare packet 2 of an end with packet 1 of the other: §5.2.4."""
        is_client = packet.source == self.client
        other = self._ends[self.server if is_client else self.client].part(1)
        name, of = ("C2", "S1") if is_client else ("S2", "C1")
        if is_client:
            self._ladder.add("rtmp", self.name, packet, name)
        if len(other) < PACKET_SIZE or end.part(2)[8:] == other[8:]:
            return
        c1 = self._ends[self.client].part(1)
        signed = digest.find(c1, PLAYER_TEXT) if any(c1[4:8]) else None
        if signed is not None and (is_client or digest.answers(end.part(2), signed[1], SERVER_KEY)):
            return  # Field §"Digest handshake"
        self._findings.add("rtmp-echo", packet, f"{name} does not repeat {of}")

    # -- chunks --------------------------------------------------------------------------

    def _chunks(self, packet: SeenPacket, end: _End, data: bytes) -> None:
        try:
            messages = end.reader.feed(data)
        except RtmpError as error:
            end.is_lost = True
            fault = fault_of(error)
            citation = fault.citation.partition(" [")[0]
            rule = "rtmp-chunk-size" if citation.endswith("§5.4.1") else "rtmp-syntax"
            self._findings.add(rule, packet, fault.reason, citation=citation)
            return
        for message in messages:
            self._message(packet, end, message)
        self._window(packet, end)

    def _message(self, packet: SeenPacket, end: _End, message: Message) -> None:
        if message.type_id not in tuple(MessageType):
            what = f"message of type {message.type_id}"
            self._findings.add("rtmp-message-type", packet, what)
            return
        if message.type_id <= MessageType.SET_PEER_BANDWIDTH:
            self._control(packet, end, message)
            return
        is_client = packet.source == self.client
        label = self._session.heard(packet, message, is_client=is_client)
        if label:
            self._ladder.add("rtmp", self.name, packet, label)

    def _control(self, packet: SeenPacket, end: _End, message: Message) -> None:
        """Judge a message about the connection itself: §5.4, §6.2."""
        if message.stream_id:
            what = f"message of type {message.type_id} on stream {message.stream_id}"
            self._findings.add("rtmp-control-stream", packet, what)
        try:
            read = control.parse_control(message)
        except RtmpError as error:
            fault = fault_of(error)
            citation = fault.citation.partition(" [")[0]
            self._findings.add("rtmp-syntax", packet, fault.reason, citation=citation)
            return
        match read:
            case control.SetChunkSize(size):
                self._ladder.add("rtmp", self.name, packet, f"Set Chunk Size {size}")
                if size < SMALL_CHUNKS:
                    what = f"chunks of {size} octets"
                    self._findings.add("rtmp-chunk-size", packet, what)
            case control.WindowAcknowledgementSize(size):
                end.window = size
                end.acknowledged = end.sent
            case control.Acknowledgement(number):
                self._acknowledged(packet, number)
            case control.PingRequest(time):
                self._session.ping(packet, time)
            case control.PingResponse(time):
                self._session.pong(time)
            case _:
                pass

    # -- acknowledgements ----------------------------------------------------------------

    def _acknowledged(self, packet: SeenPacket, number: int) -> None:
        """§5.4.3: octets so far; whether those of the handshake count, nobody agrees on."""
        other = self._ends[self.server if packet.source == self.client else self.client]
        ahead = (number - other.sent + (1 << 31)) % (1 << 32) - (1 << 31)
        if ahead > HANDSHAKE:
            what = f"{number} octets are acknowledged, of {other.sent} that were sent"
            self._findings.add("rtmp-acknowledged", packet, what)
        other.acknowledged = other.sent + min(ahead, 0)

    def _window(self, packet: SeenPacket, end: _End) -> None:
        """§5.4.4: the other end acknowledges after each window."""
        if end.window is None:
            return
        open_ = end.sent - end.acknowledged
        if open_ > SLACK * end.window + HANDSHAKE:
            what = f"{open_} octets without an acknowledgement; the window is {end.window}"
            who = packet.target
            self._findings.add("rtmp-window", packet, what, who=who, once="window")
