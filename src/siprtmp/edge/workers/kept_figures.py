"""What workers have counted, in memory that outlives each of them.

Own design: a counter of `/metrics` must not fall when a worker dies, so each worker writes its own
before it tells them, and its successor counts on from there.  Two halves are written in turns, each
with a checksum: a worker that is killed while it writes leaves the other one whole.
"""

import json
import mmap
import struct
from typing import Any, Final
from zlib import crc32

HALF: Final = 1 << 16  # octets
_HEAD: Final = struct.Struct("=QII")  # number, length, checksum

Kept = dict[str, Any]


class KeptFigures:
    """Room for each worker, made before the first is started."""

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, 2 * HALF * workers)
        self._number = 0

    def keep(self, worker: int, values: Kept) -> None:
        """Write what a worker has counted; what does not fit is not kept."""
        data = json.dumps(values).encode("ascii")
        if len(data) > HALF - _HEAD.size:
            return
        self._number = max(self._number, *(number for number, _ in self._halves(worker))) + 1
        begin = (2 * worker + self._number % 2) * HALF
        self._memory[begin : begin + _HEAD.size] = _HEAD.pack(self._number, len(data), crc32(data))
        begin += _HEAD.size
        self._memory[begin : begin + len(data)] = data

    def kept(self, worker: int) -> Kept:
        """What a worker or its predecessor has written last."""
        _, data = max(self._halves(worker))
        values: Kept = json.loads(data) if data else {}
        return values

    def _halves(self, worker: int) -> list[tuple[int, bytes]]:
        """The number and the data of both halves; 0 and none if one is not whole."""
        found = []
        for begin in (2 * worker * HALF, (2 * worker + 1) * HALF):
            number, size, check = _HEAD.unpack_from(self._memory, begin)
            start = begin + _HEAD.size
            data = bytes(self._memory[start : start + min(size, HALF)])
            found.append((number, data) if data and crc32(data) == check else (0, b""))
        return found
