"""What a session has to send, made into packets: as few as it fits into.

Implements RFC 7016 §3.6.2.3 and §3.6.3.4.5.
"""

from typing import Final

from rtmplite.rtmfp.session.packet_protection import Wire
from rtmplite.rtmfp.session.path_mtu import PathMtu
from rtmplite.rtmfp.session.recv_side import RecvSide
from rtmplite.rtmfp.session.send_side import SendSide
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.chunks import Chunk, encode_chunk

_COUNTER_GROWTH: Final = 4  # bytes that a cipher's count of packets may still take
_CONTROL_MOST: Final = 64  # chunks that wait; more Pings than that are not answered


class Outbound:
    """Chunks that wait, and datagrams that do: see `Session.take`.

    Chunks of no flow come first, then acknowledgements, then user data: §3.6.3.4.2.
    """

    def __init__(self, wire: Wire, mtu: PathMtu, send: SendSide, recv: RecvSide) -> None:
        self._wire, self._mtu, self._send, self._recv = wire, mtu, send, recv
        self._control: list[bytes] = []  # chunks
        self._datagrams: list[tuple[bytes, Address]] = []
        self.measure()

    @property
    def has_work(self) -> bool:
        """Whether there is anything to make packets of, and the network takes it: §3.6.2.3."""
        return self._control != [] or self._recv.ack_now or self._send.has_work

    def measure(self) -> None:
        """Tell the flows how large a packet may be now: §3.6.2.2 [fits-the-path]."""
        self._send.room = self._wire.room(self._mtu.size) - _COUNTER_GROWTH

    def queue(self, chunk: Chunk) -> bool:
        """Send a chunk of no flow with the next packet; False if it is dropped.

        Own design: that is one that fits no packet, or one of too many.
        """
        if len(self._control) >= _CONTROL_MOST:
            return False
        data = encode_chunk(chunk)
        if len(data) > self._send.room:
            return False
        self._control.append(data)
        return True

    def drop(self) -> None:
        """Forget the chunks that wait, as when a session closes: §3.5.5."""
        self._control.clear()

    def fill(self, to: Address, now: float) -> None:
        """Make packets of all that is due and allowed: §3.6.2.3, §3.6.3.4.5."""
        send, recv = self._send, self._recv
        room = 0
        while self.has_work:
            room = room or self._wire.room(self._mtu.size)
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

    def ask(self, chunk: Chunk, to: Address, now: float) -> None:
        """Send a chunk to another address than the far end's: §3.5.4.2 [check-new-address]."""
        self._post(encode_chunk(chunk), to, now)

    def probe(self, size: int, to: Address, now: float) -> None:
        """Find out whether a datagram of `size` bytes arrives: §3.5.4.3."""
        datagram = self._wire.seal(self._mtu.probe(self._wire.room(size)), now)
        self._mtu.sent(len(datagram))
        self._datagrams.append((datagram, to))

    def take(self) -> list[tuple[bytes, Address]]:
        """Give the datagrams there are.  Own design: the house's way out."""
        datagrams, self._datagrams = self._datagrams, []
        return datagrams

    def _post(self, chunks: bytes, to: Address, now: float, *, critical: bool = False) -> None:
        self._datagrams.append((self._wire.seal(chunks, now, critical=critical), to))
