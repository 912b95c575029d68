"""Puts a session's output into packets, as few as possible.

Implements RFC 7016 §3.6.2.3 and §3.6.3.4.5.
"""

from typing import Final

from rtmplite.rtmfp.session.packet_protection import PacketProtection
from rtmplite.rtmfp.session.path_mtu import PathMtu
from rtmplite.rtmfp.session.recv_side import RecvSide
from rtmplite.rtmfp.session.send_side import SendSide
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.chunks import Chunk, encode_chunk

_COUNTER_GROWTH: Final = 4  # bytes that a cipher's count of packets may still take
_CONTROL_MOST: Final = 64  # chunks that wait; more Pings than that are not answered


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
        """Send a control chunk with the next packet; False if it is dropped.

        A chunk is dropped if it fits no packet, or if too many wait already.
        """
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
            self._post(bytes(chunks), to, now, critical=critical)
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

    def _post(self, chunks: bytes, to: Address, now: float, *, critical: bool = False) -> None:
        self._datagrams.append((self._protection.seal(chunks, now, critical=critical), to))
