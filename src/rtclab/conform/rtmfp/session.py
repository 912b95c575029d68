"""A session with the target, and its flows, in which a case decides about every chunk.

Own design: while it waits, a session acknowledges what the target sends, answers its Pings and its
Close, and echoes its timestamps; `acknowledges`, `window`, `answers` and `echoes` say otherwise.
It sends nothing again: what the network loses is lost for the case.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from rtclab.conform.case import NotApplicable, Unmet
from rtclab.conform.checks import at_most
from rtclab.conform.rtmfp.flows import FlowReader
from rtclab.conform.rtmfp.peer import QUIET, Keying, RtmfpPeer, ticks
from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.profile import PacketCipher
from rtmplite.rtmfp.session.rtt import RoundTrip
from rtmplite.rtmfp.wire.acks import DataAck, DataAckBitmap, DataAckRanges
from rtmplite.rtmfp.wire.chunks import Chunk, expand_next_user_data
from rtmplite.rtmfp.wire.control_chunks import Ping, PingReply, SessionClose, SessionCloseAck
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FlowException, UserData, flow_options
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble

C = TypeVar("C")
WITNESS: Final = 1.5  # s for the reply to a Ping that tells whether a session lives
WINDOW: Final = 64  # blocks of 1024 bytes
_ANY: Final = 99  # the identifier of a flow
ACKS: Final = (DataAckRanges, DataAckBitmap)


def open_session(peer: RtmfpPeer, keying: Keying | None = None) -> "RtmfpSession":
    """Open a session with a new keying, or with this one (RFC 7016 §3.5.1.1.1)."""
    keying = keying or peer.keying(peer.hello())
    return session_of(peer, keying)


def session_of(peer: RtmfpPeer, keying: Keying) -> "RtmfpSession":
    """The session that a keying opens (RFC 7016 §3.5.1.1.1).

    Own design: what opens a session comes here, to have it closed with the case.  A session that
    is left open keeps other identities from its address: RFC 7016 §3.5.1.1.2.
    """
    answer = peer.answer_to(keying)
    try:
        keys = keying.agreement.agree(answer.session_key_responder_component)
    except RemoteError as error:
        raise Unmet("a keying component that fits its certificate", str(error)) from None
    near_id, far_id = keying.chunk.initiator_session_id, answer.responder_session_id
    return RtmfpSession(peer, keys.cipher, near_id, far_id)


class RtmfpSession:
    """Our end of a session (RFC 7016 §3.5).

    `readers` are the target's flows by their identifiers; `messages` are those that came whole, in
    the order of arrival, with their flow; `known` are our flows of which something is acknowledged.
    `peer` is where our packets come from.
    """

    def __init__(self, peer: RtmfpPeer, cipher: PacketCipher, near_id: int, far_id: int) -> None:
        self.peer, self.cipher, self.near_id, self.far_id = peer, cipher, near_id, far_id
        self.acknowledges = self.answers = self.echoes = True
        self.window = WINDOW
        self.readers: dict[int, FlowReader] = {}
        self.messages: list[tuple[FlowReader, bytes]] = []
        self.known: set[int] = set()
        self.ended = False
        self._round_trip, self._home = RoundTrip(), peer
        peer.goodbyes.append(self.leave)

    @property
    def far_clock(self) -> int:
        """The target's clock by the latest packet, in ticks; ours if it tells none.

        RFC 7016 §3.5.2.2: a time that is not new is left out.
        """
        return ticks() if self._round_trip.ts_rx is None else self._round_trip.ts_rx

    # -- what is sent -------------------------------------------------------------------

    def leave(self) -> None:
        """Close at once, from where the session was opened (RFC 7016 §3.5.5)."""
        if not self.ended:
            self._home.send(self.seal(self.packet(SessionCloseAck())))

    def seal(self, packet: bytes, session_id: int | None = None) -> bytes:
        """Give the datagram for a plain packet (RFC 7016 §2.2.2)."""
        far_id = self.far_id if session_id is None else session_id
        return scramble(far_id, self.cipher.seal(packet))

    def packet(self, *chunks: Chunk, mode: Mode = Mode.INITIATOR) -> bytes:
        """A plain packet with our time, and an echo of the target's (RFC 7016 §3.5.2.2)."""
        timestamp, echo = self._round_trip.stamp(time.monotonic())
        return Packet(mode, chunks, timestamp, echo if self.echoes else None).encode()

    def send(self, *chunks: Chunk) -> None:
        """Send chunks in one packet."""
        self.peer.send(self.seal(self.packet(*chunks)))

    # -- what comes ---------------------------------------------------------------------

    def packets(self, place: RtmfpPeer | None = None) -> Iterator[Packet]:
        """Wait for packets of the session, at another address if `place` says so.

        User data of Next User Data chunks come as User Data.
        """
        place = place or self.peer
        while True:
            session_id, encrypted = place.datagram()
            if session_id != self.near_id:
                continue
            try:
                packet = Packet.parse(self.cipher.open(encrypted))
            except RemoteError:  # such as a keying that was sent again
                continue
            yield self._taken(packet)

    def chunks(self, kind: type[C]) -> Iterator[C]:
        """Wait for chunks of a kind; Unmet if the target closes the session before."""
        for packet in self.packets():
            for chunk in packet.chunks:
                if isinstance(chunk, kind):
                    yield chunk
            if self.ended:
                raise Unmet(f"a chunk {kind.__name__}", "the end of the session")

    def wait(self, kind: type[C], wanted: Callable[[C], bool] = lambda _: True) -> C:
        """Wait for one chunk."""
        return next(chunk for chunk in self.chunks(kind) if wanted(chunk))

    def within(self, seconds: float = QUIET, place: RtmfpPeer | None = None) -> list[Packet]:
        """All packets that arrive within a moment."""
        found: list[Packet] = []
        with at_most(seconds):
            for packet in self.packets(place):
                found.append(packet)
        return found

    def ping(self, message: bytes | None = None) -> Packet:
        """Ask for a Ping Reply, and give its packet (RFC 7016 §3.5.4).

        Own design: here a Ping is the witness of something else.  Where it is not answered in a
        session without any fault either, it cannot testify, and the case says nothing.
        """
        message = os.urandom(8) if message is None else message
        self.send(Ping(message))
        with at_most(WITNESS):
            return self.pong(message)
        with at_most(WITNESS):
            plain = open_session(self._home.another())
            plain.send(Ping(message))
            plain.pong(message)
            raise Unmet("a Ping Reply", f"none within {WITNESS:g} s")
        raise NotApplicable("a Ping should tell, but the target answers none in any session")

    def ping_unless_ended(self) -> None:
        """Wait until a Ping is answered, or the session ends."""
        message = os.urandom(8)
        self.send(Ping(message))
        for packet in self.packets():
            if self.ended or PingReply(message) in packet.chunks:
                return

    def pong(self, message: bytes) -> Packet:
        """Wait for the packet with the reply to a Ping."""
        wanted = PingReply(message)
        for packet in self.packets():
            if wanted in packet.chunks:
                return packet
            if self.ended:
                break
        raise Unmet("a Ping Reply with the message of the Ping", "the end of the session")

    def wait_for_close_ack(self) -> None:
        """Wait for a Session Close Acknowledgement (RFC 7016 §3.5.5)."""
        for packet in self.packets():
            if SessionCloseAck() in packet.chunks:
                return

    def expect_no(self, kind: type[Chunk], about: str, chunk: Chunk | None = None) -> None:
        """Unmet if such a chunk comes within a moment, or if the session is not alive after it."""
        for packet in self.within():
            for each in packet.chunks:
                if isinstance(each, kind) and chunk in (None, each):
                    raise Unmet(about, f"a chunk {type(each).__name__}")
        self.ping()

    def expect_dead(self, about: str) -> None:
        """Unmet if a Ping is answered still."""
        self.send(Ping(b"still there?"))
        for packet in self.within():
            if any(isinstance(chunk, PingReply) for chunk in packet.chunks):
                raise Unmet(about, "a Ping Reply")

    def expect_no_flows(self) -> None:
        """Unmet if the target answers the data of a flow."""
        self.send(UserData(_ANY, 1, 1, b"anybody there?", options=flow_options(b"?")))
        for packet in self.within():
            for chunk in packet.chunks:
                if isinstance(chunk, (*ACKS, FlowException)) and chunk.flow_id == _ANY:
                    raise Unmet("no answer to data in a session that is closed", str(chunk))

    # -- flows --------------------------------------------------------------------------

    def ack(self, flow_id: int) -> DataAck:
        """Wait for an acknowledgement of one of our flows (RFC 7016 §3.6.3.4)."""
        return self.wait_ack(flow_id, lambda _: True)

    def wait_ack(self, flow_id: int, wanted: Callable[[DataAck], bool]) -> DataAck:
        """Wait for an acknowledgement that says something."""
        for packet in self.packets():
            for chunk in packet.chunks:
                if isinstance(chunk, ACKS) and chunk.flow_id == flow_id and wanted(chunk):
                    return chunk
            if self.ended:
                break
        raise Unmet("an acknowledgement", "the end of the session")

    def acknowledge(self, flow_id: int, window: int | None = None) -> None:
        """Acknowledge what has come of a flow; it takes `window` blocks from now on."""
        self.window = self.window if window is None else window
        self.send(self.readers[flow_id].ack(self.window))

    def _taken(self, packet: Packet) -> Packet:
        self._round_trip.heard(packet.timestamp, packet.timestamp_echo, time.monotonic())
        packet = Packet(
            packet.mode,
            tuple(expand_next_user_data(packet.chunks)),
            packet.timestamp,
            packet.timestamp_echo,
        )
        replies: list[Chunk] = []
        due = dict.fromkeys(self._take(chunk, replies) for chunk in packet.chunks)
        if self.acknowledges:
            replies += [self.readers[each].ack(self.window) for each in due if each is not None]
        if replies:
            self.send(*replies)
        return packet

    def _take(self, chunk: Chunk, replies: list[Chunk]) -> int | None:
        """Take a chunk; gives the flow that is to be acknowledged."""
        match chunk:
            case UserData():
                reader = self.readers.setdefault(chunk.flow_id, FlowReader(chunk))
                self.messages += [(reader, message) for message in reader.take(chunk)]
                return chunk.flow_id
            case DataAckRanges() | DataAckBitmap():
                self.known.add(chunk.flow_id)
            case BufferProbe() if chunk.flow_id in self.readers:
                return chunk.flow_id
            case Ping() if self.answers:
                replies.append(PingReply(chunk.message))
            case SessionClose():
                if self.answers:
                    self.ended = True
                    replies.append(SessionCloseAck())
            case SessionCloseAck():
                self.ended = True
        return None
