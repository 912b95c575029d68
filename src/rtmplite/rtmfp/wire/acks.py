"""Acknowledgements of a flow's fragments, in two forms: a bit map, or runs of missing and received.

Implements RFC 7016 §2.3.13 and §2.3.14.  `ranges()` gives the sequence numbers that either form
acknowledges.  We send runs only, whichever form is shorter: see `range_ack`.

    >>> ack = DataAckBitmap.parse(bytes.fromhex("05 7f 10 79 06"))
    >>> list(ack.ranges())
    [(0, 16), (18, 18), (21, 24), (27, 28)]
    >>> range_ack(5, 127, ack.ranges()).runs
    (1, 1, 2, 4, 2, 2)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.vlu import decode_vlu, encode_vlu, vlu_length

BUFFER_BLOCK: Final = 1024  # bytes: §2.3.13 [buffer-blocks]
Ranges = Iterable[tuple[int, int]]  # first and last sequence number of each, both included


@dataclass(frozen=True, slots=True)
class DataAckBitmap:
    """All up to `cumulative_ack` is received, and above it the numbers set in `bitmap`: §2.3.13.

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
        """The bytes that the receiver has room for: §2.3.13 [buffer-blocks]."""
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
        """Give the acknowledged ranges in order, that of 0 first: §2.3.13."""
        start, last = 0, self.cumulative_ack
        number = last + 2  # §2.3.13 [bitmap-order]
        for byte in self.bitmap:
            for bit in range(8):
                if byte >> bit & 1:  # §2.3.13 [bitmap-order]
                    if number > last + 1:
                        yield start, last
                        start = number
                    last = number
                number += 1
        yield start, last


@dataclass(frozen=True, slots=True)
class DataAckRanges:
    """All up to `cumulative_ack` is received, and above it what `runs` say: §2.3.14.

    `runs` are pairs: how many numbers are missing, and how many after these are received; none is
    0.
    """

    type_id: ClassVar[int] = 0x51
    flow_id: int
    buffer_blocks_available: int
    cumulative_ack: int
    runs: tuple[int, ...] = ()

    @property
    def buffer_bytes_available(self) -> int:
        """The bytes that the receiver has room for: §2.3.14 [buffer-blocks]."""
        return self.buffer_blocks_available * BUFFER_BLOCK

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the payload: §2.3.14."""
        flow_id, blocks, cumulative, at = _decode_head(payload)
        runs: list[int] = []
        while at < len(payload):
            try:
                missing, at = decode_vlu(payload, at)
                received, at = decode_vlu(payload, at)
            except RemoteError:  # §2.3.14 [truncated-range]
                break
            runs += (missing + 1, received + 1)  # §2.3.14 [range-ack-layout]
        return cls(flow_id, blocks, cumulative, tuple(runs))

    def encode(self) -> bytes:
        """Write the payload; LocalError for a wrong or empty run: §2.3.14 [range-ack-layout]."""
        if len(self.runs) % 2 or not all(self.runs):
            raise LocalError(f"{self.runs} are no pairs of missing and received")
        return _encode_head(self) + b"".join(encode_vlu(run - 1) for run in self.runs)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Give the acknowledged ranges in order, that of 0 first: §2.3.14."""
        last = self.cumulative_ack
        yield 0, last
        runs = iter(self.runs)
        for missing, received in zip(runs, runs, strict=True):
            # §2.3.14 [range-ack-layout]
            first, last = last + missing + 1, last + missing + received
            yield first, last


DataAck = DataAckBitmap | DataAckRanges


def range_ack(flow_id: int, blocks: int, ranges: Ranges, room: int = 0xFFFF) -> DataAckRanges:
    """Acknowledge `ranges` by runs.

    `ranges` are in order and apart, the first from 0 (LocalError otherwise).  The highest ones are
    left out if the payload would be longer than `room` bytes: §3.6.3.4.2.
    Departs from RFC 7016 §3.6.3.4.3 [most-compact]: always runs, since there are senders that do
    not understand bit maps, and take for lost what those acknowledge: Field §"RTMFP bitmap acks".
    Departs from RFC 7016 §2.3.13 [shorter-format]: for the same senders.
    Departs from RFC 7016 §2.3.14 [shorter-format]: for the same senders.
    """
    pairs = iter(ranges)
    first, last = next(pairs, (1, 0))
    if first != 0:
        raise LocalError("what is acknowledged begins with 0")
    cumulative = last
    room -= len(_encode_head(DataAckRanges(flow_id, blocks, cumulative)))
    runs: list[int] = []
    for first, final in pairs:
        if not last + 1 < first <= final:
            raise LocalError(f"ranges in disorder: {first} to {final} after {last}")
        missing, received = first - last - 1, final - first + 1
        room -= vlu_length(missing - 1) + vlu_length(received - 1)
        if room < 0:
            break
        runs += (missing, received)
        last = final
    return DataAckRanges(flow_id, blocks, cumulative, tuple(runs))


def _encode_head(ack: DataAck) -> bytes:
    numbers = ack.flow_id, ack.buffer_blocks_available, ack.cumulative_ack
    return b"".join(map(encode_vlu, numbers))


def _decode_head(payload: bytes) -> tuple[int, int, int, int]:
    """Read the three numbers that both begin with, and the index after them: §2.3.13, §2.3.14."""
    flow_id, at = decode_vlu(payload)
    blocks, at = decode_vlu(payload, at)
    cumulative, at = decode_vlu(payload, at)
    return flow_id, blocks, cumulative, at
