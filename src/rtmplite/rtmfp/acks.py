"""What a flow's receiver has got: as a bit map, or as runs of lost and received.

Implements RFC 7016 §2.3.13 and §2.3.14.  Both say the same, and a receiver takes whichever is
shorter; `ranges()` reads either as the sequence numbers it acknowledges.

    >>> ack = DataAckBitmap.parse(bytes.fromhex("05 7f 10 79 06"))
    >>> list(ack.ranges())
    [(0, 16), (18, 18), (21, 24), (27, 28)]
    >>> most_compact_ack(5, 127, ack.ranges()) == ack
    True
    >>> most_compact_ack(5, 127, [(0, 16), (18, 18), (221, 224)])
    DataAckRanges(flow_id=5, buffer_blocks_available=127, cumulative_ack=16, runs=(1, 1, 202, 4))
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.vlu import decode_vlu, encode_vlu, vlu_length

BUFFER_BLOCK: Final = 1024  # bytes: §2.3.13 [buffer-blocks]
Ranges = Iterable[tuple[int, int]]  # first and last sequence number of each, both included


@dataclass(frozen=True, slots=True)
class DataAckBitmap:
    """Received up to `cumulative_ack`, and beyond it what `bitmap` has bits for: §2.3.13.

    The least significant bit of the first byte stands for `cumulative_ack` + 2: the number in
    between is missing, or it would be part of the cumulative acknowledgement.
    """

    type_id: ClassVar[int] = 0x50
    flow_id: int
    buffer_blocks_available: int
    cumulative_ack: int
    bitmap: bytes = b""

    @property
    def buffer_bytes_available(self) -> int:
        """How many bytes the receiver would take: §2.3.13 [buffer-blocks]."""
        return self.buffer_blocks_available * BUFFER_BLOCK

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.13 [bitmap-ack-layout]."""
        flow_id, blocks, cumulative, at = _decode_head(payload)
        return cls(flow_id, blocks, cumulative, payload[at:])

    def encode(self) -> bytes:
        """Write the payload: §2.3.13 [bitmap-ack-layout]."""
        return _encode_head(self) + self.bitmap

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Give what is acknowledged, in order, 0 first: §2.3.13 [bitmap-order]."""
        start, last = 0, self.cumulative_ack
        number = last + 2
        for byte in self.bitmap:
            for bit in range(8):
                if byte >> bit & 1:
                    if number > last + 1:
                        yield start, last
                        start = number
                    last = number
                number += 1
        yield start, last


@dataclass(frozen=True, slots=True)
class DataAckRanges:
    """Received up to `cumulative_ack`, and beyond it in runs: §2.3.14.

    `runs` are how many are missing, how many are received after those, and so on in pairs; none of
    them is 0.
    """

    type_id: ClassVar[int] = 0x51
    flow_id: int
    buffer_blocks_available: int
    cumulative_ack: int
    runs: tuple[int, ...] = ()

    @property
    def buffer_bytes_available(self) -> int:
        """How many bytes the receiver would take: §2.3.14 [buffer-blocks]."""
        return self.buffer_blocks_available * BUFFER_BLOCK

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.14 [range-ack-layout]."""
        flow_id, blocks, cumulative, at = _decode_head(payload)
        runs: list[int] = []
        while at < len(payload):
            try:
                missing, at = decode_vlu(payload, at)
                received, at = decode_vlu(payload, at)
            except RemoteError:  # §2.3.14 [truncated-range]
                break
            runs += (missing + 1, received + 1)
        return cls(flow_id, blocks, cumulative, tuple(runs))

    def encode(self) -> bytes:
        """Write the payload: §2.3.14 [range-ack-layout].

        Raises LocalError for half a pair, and for a run of nothing.
        """
        if len(self.runs) % 2 or not all(self.runs):
            raise LocalError(f"{self.runs} are no pairs of missing and received")
        return _encode_head(self) + b"".join(encode_vlu(run - 1) for run in self.runs)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Give what is acknowledged, in order, 0 first: §2.3.14 [range-ack-layout]."""
        last = self.cumulative_ack
        yield 0, last
        runs = iter(self.runs)
        for missing, received in zip(runs, runs, strict=True):
            first, last = last + missing + 1, last + missing + received
            yield first, last


DataAck = DataAckBitmap | DataAckRanges


def most_compact_ack(flow_id: int, blocks: int, ranges: Ranges, room: int = 0xFFFF) -> DataAck:
    """Acknowledge `ranges` by the chunk that takes fewer bytes.

    §2.3.13 [shorter-format], §2.3.14 [shorter-format].  `ranges` are in order and apart, the first
    from 0 (LocalError otherwise).  What does not go into a payload of `room` bytes is left out, the
    highest first, as §3.6.3.4.2 wants it.
    """
    cumulative, runs, last = _runs(ranges)
    plain = DataAckRanges(flow_id, blocks, cumulative)
    room -= len(plain.encode())
    length = sum(vlu_length(run - 1) for run in runs)
    if (last - cumulative + 6) // 8 < length:
        return DataAckBitmap(flow_id, blocks, cumulative, _bitmap(runs)[: max(0, room)])
    kept = 0
    for index in range(0, len(runs), 2):
        room -= vlu_length(runs[index] - 1) + vlu_length(runs[index + 1] - 1)
        if room < 0:
            break
        kept = index + 2
    return DataAckRanges(flow_id, blocks, cumulative, tuple(runs[:kept]))


def _runs(ranges: Ranges) -> tuple[int, list[int], int]:
    """Turn ranges into the cumulative acknowledgement, runs beyond it, and the last number."""
    pairs = iter(ranges)
    first, last = next(pairs, (1, 0))
    if first != 0:
        raise LocalError("what is acknowledged begins with 0")
    cumulative = last
    runs: list[int] = []
    for first, final in pairs:
        if not last + 1 < first <= final:
            raise LocalError(f"ranges in disorder: {first} to {final} after {last}")
        runs += (first - last - 1, final - first + 1)
        last = final
    return cumulative, runs, last


def _bitmap(runs: list[int]) -> bytes:
    """Set a bit for all that is received after the first number missing: §2.3.13 [bitmap-order]."""
    bits, position = 0, -1
    for missing, received in zip(runs[::2], runs[1::2], strict=True):
        position += missing
        bits |= (1 << received) - 1 << position
        position += received
    return bits.to_bytes((position + 7) // 8, "little")


def _encode_head(ack: DataAck) -> bytes:
    numbers = ack.flow_id, ack.buffer_blocks_available, ack.cumulative_ack
    return b"".join(map(encode_vlu, numbers))


def _decode_head(payload: bytes) -> tuple[int, int, int, int]:
    """Read the three numbers both begin with, and tell where the rest is: §2.3.13, §2.3.14."""
    flow_id, at = decode_vlu(payload)
    blocks, at = decode_vlu(payload, at)
    cumulative, at = decode_vlu(payload, at)
    return flow_id, blocks, cumulative, at
