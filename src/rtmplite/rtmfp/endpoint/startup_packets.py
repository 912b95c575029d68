"""Sends and receives the packets of startups: limits their rate, cuts large ones, joins fragments.

Implements RFC 7016 §3.3 and §3.4.
"""

import heapq
import itertools
from collections.abc import Iterator
from math import ceil, inf
from typing import Final, TypeAlias

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.profile import PacketCipher
from rtmplite.rtmfp.endpoint.rate_limiter import Limiter
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.chunks import HEADER_LENGTH, Chunk
from rtmplite.rtmfp.wire.control_chunks import Fragment
from rtmplite.rtmfp.wire.packet import NO_TYPES, Mode, Packet, scramble
from rtmplite.rtmfp.wire.startup_chunks import (
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
)

# §3.4 [rate-limited]
BURST_SECONDS: Final = 0.2
BURST_BYTES: Final = 4380
BURST_PACKETS: Final = 4
FRAGMENTS_AT_ONCE: Final = 3  # full datagrams within those bytes
DATAGRAM_BYTES: Final = 1192  # as sessions begin: what passes everywhere
_ID_BYTES: Final = 4
_SEAL_MOST: Final = 32  # bytes that padding, checksum and session ID may add
_FRAGMENT_HEAD: Final = 3 + HEADER_LENGTH + 1 + 3 + 3  # flags and time; flags, id and number
_TICK: Final = 250  # of the timestamp, a second: §2.2.4
_WAITING: Final = 512  # datagrams that nobody has fetched; the others are dropped
CHUNKS_MOST: Final = 4  # looked at in one packet; peers send one
_ASKED_FOR: Final = frozenset(
    (ResponderHello.type_id, ResponderRedirect.type_id, ResponderInitialKeying.type_id)
)
_ID_MASK: Final = 0x1FFFFF  # of packet IDs: three bytes as a VLU

WHOLE_SECONDS: Final = 60.0  # §3.4 [sixty-seconds]
PROGRESS_SECONDS: Final = 1.0
BUFFER_BYTES: Final = 65536  # §3.4 [buffers-limited]
_OVERHEAD: Final = 64  # bytes that a fragment costs besides its own; own design

Origin: TypeAlias = tuple[Address, int]
"""The origin of fragments: the source of the packets, and their session ID."""


class _Buffer:
    """The fragments of one packet so far."""

    __slots__ = ("begun", "highest", "last", "mode", "pieces", "progress", "size")

    def __init__(self, mode: int, now: float) -> None:
        self.mode = mode
        self.begun = self.progress = now
        self.pieces: dict[int, bytes] = {}
        self.size = 0
        self.highest = -1
        self.last: int | None = None  # the number of the final fragment

    @property
    def expires(self) -> float:
        # §3.4 [sixty-seconds]
        return min(self.begun + WHOLE_SECONDS, self.progress + PROGRESS_SECONDS)

    @property
    def whole(self) -> bytes | None:
        """All of the packet, if all is there: §3.4 [fragments-concatenated]."""
        if self.last is None or len(self.pieces) <= self.last:
            return None
        return b"".join(self.pieces[number] for number in range(self.last + 1))

    def add(self, fragment: Fragment, now: float) -> bool:
        """Take a fragment; False if it makes the packet larger than we take, or contradicts it."""
        number = fragment.fragment_number
        if number in self.pieces:
            return True
        if not fragment.more_fragments:
            if self.last is not None:
                return False
            self.last = number
        self.highest = max(self.highest, number)
        if self.last is not None and self.highest > self.last:
            return False
        self.pieces[number] = fragment.packet_fragment
        self.size += len(fragment.packet_fragment) + _OVERHEAD
        self.progress = now
        return self.size <= BUFFER_BYTES  # §3.4 [buffers-limited]


class Reassembler:
    """Puts packets together from fragments: §3.4.

        >>> pieces = Reassembler(limit=10)
        >>> sender = ("192.0.2.1", 1935), 0
        >>> pieces.add(sender, 3, Fragment(7, 1, b"later"), 0.0)
        >>> pieces.add(sender, 3, Fragment(7, 0, b"sooner or ", more_fragments=True), 0.1)
        b'sooner or later'

    At most `limit` at a time.  When all places are taken, the packets whose fragments keep coming
    stay.  Fragments of other packets are discarded until one of the former pauses for a second.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffers: dict[tuple[Origin, int], _Buffer] = {}
        self._look_at = inf  # before that nothing expires

    def __len__(self) -> int:
        return len(self._buffers)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None while nothing waits: §3.4."""
        return None if self._look_at == inf else self._look_at

    def tick(self, now: float) -> None:
        """Forget packets that have paused, or have taken too long: §3.4."""
        if now < self._look_at:
            return
        # §3.4 [sixty-seconds]
        kept = {key: buffer for key, buffer in self._buffers.items() if now < buffer.expires}
        self._buffers = kept
        self._look_at = min((buffer.expires for buffer in kept.values()), default=inf)

    def add(self, origin: Origin, mode: int, fragment: Fragment, now: float) -> bytes | None:
        """Take a fragment of a packet of `mode`; return the packet that it completes: §3.4."""
        self.tick(now)
        key = origin, fragment.packet_id  # §3.4 [by-address-and-id]
        buffer = self._buffers.get(key)
        if buffer is None:
            if len(self._buffers) >= self._limit:  # §3.4 [buffers-limited]
                return None
            buffer = self._buffers[key] = _Buffer(mode, now)
            self._look_at = min(self._look_at, buffer.expires)
        if mode != buffer.mode:  # §3.4 [fragment-mode]
            return None
        if not buffer.add(fragment, now):
            del self._buffers[key]
            return None
        packet = buffer.whole
        if packet is not None:
            del self._buffers[key]
            if packet[0] & 3 != mode:  # §3.4 [packet-mode]
                return None
        return packet


class StartupPackets:
    """Seals an endpoint's packets with the Default Session Key before there are session keys.

    That is the key of session ID 0: §3.3, §2.2.2.  Only these packets are ever cut into fragments:
    §3.4.
    """

    def __init__(self, cipher: PacketCipher, secret: bytes, reassemblies: int) -> None:
        self._cipher = cipher
        self._limiter = Limiter(secret, 1.0, BURST_SECONDS)
        self._reassembler = Reassembler(reassemblies)
        self._packet_ids, self._order = itertools.count(), itertools.count()
        self._outbox: list[tuple[bytes, Address]] = []
        self._later: list[tuple[float, int, bytes, Address]] = []  # a heap
        self._fragment_room = cipher.room(DATAGRAM_BYTES - _ID_BYTES) - _FRAGMENT_HEAD

    @property
    def reassembling(self) -> int:
        """The number of packets that have come in part: §3.4."""
        return len(self._reassembler)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never: §3.4."""
        later = self._later[0][0] if self._later else inf
        deadline = self._reassembler.deadline
        earliest = later if deadline is None else min(later, deadline)
        return None if earliest == inf else earliest

    def tick(self, now: float) -> None:
        """Send the fragments that had to wait, forget packets that never became whole: §3.4."""
        self._reassembler.tick(now)
        while self._later and self._later[0][0] <= now:
            _, _, datagram, destination = heapq.heappop(self._later)
            self._outbox.append((datagram, destination))

    def take(self) -> list[tuple[bytes, Address]]:
        """Return the datagrams to send now: §3.4."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def send(self, chunk: Chunk, destination: Address, now: float, session_id: int = 0) -> bool:
        """Send a chunk in a packet of its own, with the time like real peers.

        False if it is dropped, as `destination` has had enough for now: §3.4.  The
        network might have lost it as well: a startup repeats each packet until it is answered.
        """
        packet = Packet(Mode.STARTUP, (chunk,), timestamp=int(now * _TICK) & 0xFFFF).encode()
        room = self._cipher.room(DATAGRAM_BYTES - _ID_BYTES)
        is_whole = room >= len(packet)  # §3.4 [only-unavoidable]
        # §3.4 [startup-only] [not-for-user-data]: nothing else is cut
        plain = [packet] if is_whole else list(self._cut(packet, now))
        if len(self._outbox) + len(self._later) + len(plain) > _WAITING:
            return False
        # §3.4 [rate-limited]
        cost = float(ceil(len(plain) / FRAGMENTS_AT_ONCE))  # in bursts
        if is_whole:
            # §3.4 [rate-limited]
            cost = max(1 / BURST_PACKETS, (len(packet) + _SEAL_MOST) / BURST_BYTES)
        # §3.4 [rate-limited]
        if not self._limiter.allows(f"{destination[0]} {destination[1]}", now, cost):
            return False
        for number, part in enumerate(plain):
            # §3.3 [default-key-for-zero], §2.2.2 [session-0]
            datagram = scramble(session_id, self._cipher.seal(part))
            if number < FRAGMENTS_AT_ONCE:  # §3.4 [rate-limited]
                self._outbox.append((datagram, destination))
            else:
                # §3.4 [rate-limited]
                due = now + number // FRAGMENTS_AT_ONCE * BURST_SECONDS
                heapq.heappush(self._later, (due, next(self._order), datagram, destination))
        return True

    def open(
        self,
        encrypted: bytes,
        source: Address,
        session_id: int,
        now: float,
        *,
        is_asking: bool = True,
    ) -> tuple[Chunk, ...]:
        """Return the chunks of a packet, none if it is not of a startup: §2.2.4, §3.4.

        RemoteError if it is not sealed with the Default Session Key.  Answers are looked at only
        while a session is opening from here (`is_asking`).
        """
        unwanted = NO_TYPES if is_asking else _ASKED_FOR
        # §3.3 [default-key-for-zero], §2.2.2 [session-0]
        packet = Packet.parse(self._cipher.open(encrypted), CHUNKS_MOST, unwanted)
        if packet.mode is not Mode.STARTUP:  # §3.3 [default-key-for-zero]
            return ()
        chunks = packet.chunks
        whole = self._reassembled(packet, (source, session_id), now)
        return chunks if whole is None else chunks + whole.chunks

    def _reassembled(
        self, packet: Packet, origin: tuple[Address, int], now: float
    ) -> Packet | None:
        for chunk in packet.chunks:
            if isinstance(chunk, Fragment):
                plain = self._reassembler.add(origin, packet.mode, chunk, now)
                if plain is not None:
                    try:
                        return Packet.parse(plain, CHUNKS_MOST)
                    except RemoteError:
                        return None
        return None

    def _cut(self, packet: bytes, now: float) -> Iterator[bytes]:
        """Cut a packet that is too large into others: §3.4, §2.3.1."""
        packet_id = next(self._packet_ids) & _ID_MASK
        size = self._fragment_room
        starts = range(0, len(packet), size)
        for number, start in enumerate(starts):
            more = start != starts[-1]
            # §2.3.1 [first-is-0]
            fragment = Fragment(packet_id, number, packet[start : start + size], more)
            time = int(now * _TICK) & 0xFFFF
            # §3.4 [fragment-mode]
            yield Packet(Mode.STARTUP, (fragment,), timestamp=time).encode()
