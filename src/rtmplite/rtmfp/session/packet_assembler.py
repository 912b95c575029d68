"""The packets of a session: as few as possible, and from chunks to datagrams and back.

Implements RFC 7016 §2.2, §3.5.2, §3.6.2.3 and §3.6.3.4.5.
"""

from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.profile import PacketCipher
from rtmplite.rtmfp.session.congestion import TimeCritical
from rtmplite.rtmfp.session.path_mtu import PathMtu
from rtmplite.rtmfp.session.recv_flow import RecvSide
from rtmplite.rtmfp.session.rtt import RoundTrip
from rtmplite.rtmfp.session.send_side import SendSide
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.chunks import Chunk, encode_chunk
from rtmplite.rtmfp.wire.fast_path import encode_header, read_header
from rtmplite.rtmfp.wire.packet import Mode, scramble

_COUNTER_GROWTH: Final = 4  # bytes that a cipher's count of packets may still take
_CONTROL_MOST: Final = 64  # chunks that wait; more Pings than that are not answered

TIME_CRITICAL: Final = 0x80  # flags of a packet: §2.2.4
TIME_CRITICAL_REVERSE: Final = 0x40
_MODE: Final = 0x03
_ID_BYTES: Final = 4  # of the session ID before the packet: §2.2.2
_HEADER_MOST: Final = 5  # flags, timestamp and echo: §2.2.4


class PacketProtection:
    """Seals packets to `far_id` and opens those of one session's far end: §2.2."""

    __slots__ = ("_cipher", "_far_id", "_far_mode", "_mode", "_notices", "_round_trip")

    def __init__(
        self,
        cipher: PacketCipher,
        initiator: bool,
        far_id: int,
        round_trip: RoundTrip,
        notices: TimeCritical,
    ) -> None:
        self._cipher, self._far_id = cipher, far_id
        # §2.2.4 [initiator-marks] [responder-marks]
        self._mode = Mode.INITIATOR if initiator else Mode.RESPONDER
        self._far_mode = Mode.RESPONDER if initiator else Mode.INITIATOR
        self._round_trip, self._notices = round_trip, notices

    def room(self, size: int) -> int:
        """Return the bytes of chunks that fit in a datagram of `size` bytes: §3.6.2.2."""
        return self._cipher.room(size - _ID_BYTES) - _HEADER_MOST

    def seal(self, chunks: bytes | bytearray, now: float, *, critical: bool = False) -> bytes:
        """Return a datagram; `critical` says that real-time data is in it: §2.2.2, §3.5.2."""
        timestamp, echo = self._round_trip.stamp(now)
        flags = int(self._mode)
        if critical:
            flags |= TIME_CRITICAL
        if self._notices.others(self, now):  # §3.5.2 [tcr-when-others]
            flags |= TIME_CRITICAL_REVERSE
        packet = b"".join((encode_header(flags, timestamp, echo), chunks))
        return scramble(self._far_id, self._cipher.seal(packet))

    def open(self, encrypted: bytes) -> tuple[bytes, int, int | None, int | None, int]:
        """Return packet, flags, times, index of the first chunk; RemoteError: §2.2.4."""
        packet = self._cipher.open(encrypted)  # §2.2.3 [decrypted-by-session]
        flags, timestamp, echo, at = read_header(packet)
        if flags & _MODE != self._far_mode:
            # §2.2.4 [initiator-ignores-1] [responder-ignores-2]
            raise RemoteError(f"a packet with the flags {flags:#x}")
        return packet, flags, timestamp, echo, at

    def heard(self, flags: int, now: float) -> bool:
        """Note the flags of real-time traffic, and return TIME_CRITICAL_REVERSE: §3.5.2.1."""
        if flags & TIME_CRITICAL:
            self._notices.heard(self, now)
        return flags & TIME_CRITICAL_REVERSE != 0


class PacketAssembler:
    """Makes packets: of control chunks first, then of acknowledgements and user data: §3.6.3.4.2.

    Own design: datagrams wait until `take`, so that everything due by then shares them.
    """

    def __init__(
        self, protection: PacketProtection, mtu: PathMtu, send: SendSide, recv: RecvSide
    ) -> None:
        self._protection, self._mtu, self._send, self._recv = protection, mtu, send, recv
        self._control: list[bytes] = []  # chunks
        self._datagrams: list[tuple[bytes, Address]] = []
        self.measure()

    @property
    def has_work(self) -> bool:
        """Whether there is something to send that congestion control allows: §3.6.2.3."""
        return self._control != [] or self._recv.ack_now or self._send.has_work

    def measure(self) -> None:
        """Set how many bytes of chunks flows may put in a packet: §3.6.2.2."""
        room = self._protection.room(self._mtu.size)  # §3.6.2.2 [fits-the-path]
        self._send.room = room - _COUNTER_GROWTH

    def queue(self, chunk: Chunk) -> bool:
        """Send a control chunk soon; False if it fits no packet, or too many wait."""
        if len(self._control) >= _CONTROL_MOST:
            return False
        data = encode_chunk(chunk)
        if len(data) > self._send.room:
            return False
        self._control.append(data)
        return True

    def drop(self) -> None:
        """Forget the control chunks that wait, as when a session closes: §3.5.5."""
        self._control.clear()

    def fill(self, to: Address, now: float) -> None:
        """Make packets of everything that is due and allowed: §3.6.2.3, §3.6.3.4.5."""
        send, recv = self._send, self._recv
        room = 0
        while self.has_work:
            room = room or self._protection.room(self._mtu.size)
            chunks = bytearray()
            critical = False
            while self._control and len(chunks) + len(self._control[0]) <= room:
                chunks += self._control.pop(0)
            if recv.ack_now:
                recv.assemble(chunks, room)
            if send.has_work:
                size = len(chunks)
                critical = send.assemble(chunks, room, now)
                if len(chunks) > size and recv.should_ack:  # §3.6.3.4.1 [acknowledge-soon]
                    recv.assemble(chunks, room)
            if not chunks:  # §2.2.4 [one-chunk]: no flow was ready after all
                break
            self._post(chunks, to, now, critical=critical)
        send.filled()

    def ask(self, chunk: Chunk, to: Address, now: float) -> None:
        """Send a chunk alone, to an address that is to be checked: §3.5.4.2 [check-new-address]."""
        self._post(encode_chunk(chunk), to, now)

    def probe(self, size: int, to: Address, now: float) -> None:
        """Send a datagram of `size` bytes, to find out whether it arrives: §3.5.4.3."""
        datagram = self._protection.seal(self._mtu.probe(self._protection.room(size)), now)
        self._mtu.sent(len(datagram))
        self._datagrams.append((datagram, to))

    def take(self) -> list[tuple[bytes, Address]]:
        """Give the datagrams that wait, each with its destination."""
        datagrams, self._datagrams = self._datagrams, []
        return datagrams

    def _post(
        self, chunks: bytes | bytearray, to: Address, now: float, *, critical: bool = False
    ) -> None:
        self._datagrams.append((self._protection.seal(chunks, now, critical=critical), to))
