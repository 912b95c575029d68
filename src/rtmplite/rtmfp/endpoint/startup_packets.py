"""Sends and receives the packets of startups: limits their rate, and cuts large ones.

Implements RFC 7016 §3.3 and §3.4.
"""

import heapq
import itertools
from collections.abc import Iterator
from math import ceil, inf
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.profile import PacketCipher
from rtmplite.rtmfp.endpoint.rate_limiter import Limiter
from rtmplite.rtmfp.endpoint.reassembly import Reassembler
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
