"""VLU: a whole number in as many bytes as it needs, and byte strings with a VLU as length.

Implements RFC 7016 §2.1.2.  Seven bits a byte, the most significant first; the high bit of a byte
says that another follows.

    >>> encode_vlu(0x7F).hex(), encode_vlu(0x80).hex(), encode_vlu(1 << 14).hex()
    ('7f', '8100', '818000')
    >>> decode_vlu(bytes.fromhex("ff 81 00 ff"), 1)
    (128, 3)
"""

from typing import Final

from rtmplite.errors import LocalError, RemoteError

MAX: Final = (1 << 64) - 1  # what §2.1.2 [vlu-64-bits] asks for; nothing counts further
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))
_FURTHER: Final = tuple(bytes((value | 0x80,)) for value in range(0x80))


def encode_vlu(value: int) -> bytes:
    """Write `value` in as few bytes as possible: §2.1.2.

    Raises LocalError unless 0 <= `value` < 2**64.
    """
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    if not 0 <= value <= MAX:
        raise LocalError(f"{value} does not fit the 64 bits of a VLU")
    out = _ONE_BYTE[value & 0x7F]
    while value := value >> 7:
        out = _FURTHER[value & 0x7F] + out  # §2.1.2 [vlu-layout]
    return out


def decode_vlu(data: bytes, at: int = 0) -> tuple[int, int]:
    """Read the number at `at`; return it and the index of the next byte: §2.1.2.

    A number in more bytes than it needs is accepted.  Raises RemoteError when `data` ends first
    (§2), and beyond the 64 bits that §2.1.2 asks for.
    """
    try:
        byte = data[at]
        at += 1
        value = byte & 0x7F  # §2.1.2 [vlu-layout]
        while byte >= 0x80:  # §2.1.2 [vlu-layout]
            byte = data[at]
            at += 1
            value = value << 7 | byte & 0x7F  # §2.1.2 [vlu-layout]
            if value > MAX:  # §2.1.2 [vlu-64-bits]
                raise RemoteError("a VLU of more than 64 bits")
    except IndexError:  # §2 [truncation-noticed]
        raise RemoteError("a VLU is cut off") from None
    return value, at


def vlu_length(value: int) -> int:
    """Return how many bytes `encode_vlu(value)` has: §2.1.2 [vlu-layout]."""
    return max(1, (value.bit_length() + 6) // 7)


def encode_counted(data: bytes) -> bytes:
    """Write `data` after a VLU with its length, as in most fields of chunks: RFC 7016 §2.3.2."""
    return encode_vlu(len(data)) + data


def decode_counted(data: bytes, at: int = 0) -> tuple[bytes, int]:
    """Read a VLU and as many bytes as it says; return them and the index of the next: §2.3.2.

    Raises RemoteError when `data` ends first: §2 [truncation-noticed].
    """
    length, start = decode_vlu(data, at)
    end = start + length
    if end > len(data):
        raise RemoteError(f"{length} bytes announced, {len(data) - start} there")
    return data[start:end], end
