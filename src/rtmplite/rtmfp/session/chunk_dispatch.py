"""Takes a session's packets apart, and hands each chunk to the part that it concerns.

Implements RFC 7016 §2.2.4 and §3.6.3.2.  User data goes straight to the receiving flows, without an
object for each fragment; every other chunk goes to the session.
"""

from collections.abc import Callable
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.session.recv_side import RecvSide
from rtmplite.rtmfp.wire.address import Address
from rtmplite.rtmfp.wire.chunks import HEADER_LENGTH, PARSERS, Chunk
from rtmplite.rtmfp.wire.fast_path import read_next_user_data, read_user_data
from rtmplite.rtmfp.wire.flow_chunks import NextUserData, UserData
from rtmplite.rtmfp.wire.vlu import MAX

_FRAGMENTS: Final = (UserData.type_id, NextUserData.type_id)
_Before = tuple[int, int, int] | None  # flow, number and FSN of the fragment before


class ChunkDispatch:
    """Takes packets apart: §2.2.4.

    `on_chunk` is called with every chunk that is no user data, and with its packet's source.
    """

    def __init__(self, recv: RecvSide, on_chunk: Callable[[Chunk, Address, float], None]) -> None:
        self._recv, self._on_chunk = recv, on_chunk

    def read(self, packet: bytes, at: int, source: Address, now: float) -> bool:
        """Take the chunks from `at` on; return whether there was user data: §3.6.3.2."""
        has_data = False
        before: _Before = None
        while len(packet) - at >= HEADER_LENGTH:
            type_id, start = packet[at], at + HEADER_LENGTH
            at = start + (packet[at + 1] << 8 | packet[at + 2])
            if at > len(packet):  # padding: §2.2.4
                break
            try:
                if type_id in _FRAGMENTS:
                    before = self._take_fragment(type_id, packet, start, at, before, now)
                    has_data = has_data or before is not None
                elif (parse := PARSERS.get(type_id)) is not None:
                    self._on_chunk(parse(packet[start:at]), source, now)
            except RemoteError:  # §2.3: a damaged chunk is skipped, and what numbers itself by it
                before = None if type_id in _FRAGMENTS else before
        return has_data

    def _take_fragment(
        self, type_id: int, packet: bytes, start: int, end: int, before: _Before, now: float
    ) -> _Before:
        """Take (Next) User Data; return its flow, number and FSN, None if it was not taken."""
        if type_id == UserData.type_id:
            flow_id, number, fsn, flags, data, options = read_user_data(packet, start, end)
        elif before is None:
            return None
        else:
            flow_id, number, fsn = before[0], before[1] + 1, before[2]
            if number > MAX:  # no acknowledgement could contain it
                raise RemoteError("a sequence number of more than 64 bits")
            flags, data, options = read_next_user_data(packet, start, end)
        if self._recv.is_over:
            return None
        self._recv.take(flow_id, number, fsn, flags, data, options, now)
        return flow_id, number, fsn
