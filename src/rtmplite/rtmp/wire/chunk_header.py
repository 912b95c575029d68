"""The basic header of a chunk: one to three bytes with format and chunk stream.

Implements RTMP 1.0 §5.3.1.1, with RTMP Errata §4.1 for the byte order of the longest form.
"""

from functools import lru_cache
from typing import Final

from rtmplite.errors import LocalError

DEFAULT_CHUNK_SIZE: Final = 128  # bytes, until a Set Chunk Size: §5.4.1
MAX_CHUNK_SIZE: Final = 0x7FFFFFFF  # §5.4.1
CONTROL_CHUNK_STREAM: Final = 2  # §5.4
MAX_CHUNK_STREAM: Final = 65599  # §5.3.1.1
EXTENDED: Final = 0xFFFFFF  # in a 24-bit time: the real one follows: §5.3.1.3
MESSAGE_HEADER_LENGTHS: Final = (11, 7, 3, 0)  # bytes by fmt: §5.3.1


@lru_cache(maxsize=1024)
def basic_header(fmt: int, chunk_stream_id: int) -> bytes:
    """Write format and chunk stream: §5.3.1.1.  LocalError unless 2 <= stream <= 65599."""
    if not 2 <= chunk_stream_id <= MAX_CHUNK_STREAM:  # §5.3.1.1 [id-range]
        raise LocalError(f"no chunk stream has the number {chunk_stream_id}")  # §5.3.1.1 [id-range]
    if chunk_stream_id < 64:  # §5.3.1.1 [smallest-form]
        return bytes((fmt << 6 | chunk_stream_id,))
    rest = chunk_stream_id - 64
    if rest < 256:  # §5.3.1.1 [smallest-form]
        return bytes((fmt << 6, rest))
    # §5.3.1.1 [three-byte-order], RTMP Errata §4.1 [number-is-little]
    return bytes((fmt << 6 | 1, rest & 0xFF, rest >> 8))


def read_basic_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Read format, chunk stream, and the next offset: §5.3.1.1.  IndexError to wait for more."""
    fmt, low = data[at] >> 6, data[at] & 0x3F
    if low >= 2:  # §5.3.1.1 [forms]
        return fmt, low, at + 1
    if low == 0:  # §5.3.1.1 [forms]
        return fmt, data[at + 1] + 64, at + 2  # §5.3.1.1 [forms]
    # §5.3.1.1 [forms] [three-byte-order], RTMP Errata §4.1 [number-is-little]
    return fmt, data[at + 1] + (data[at + 2] << 8) + 64, at + 3
