"""U29: an integer of up to 29 bits in one to four bytes.

Implements AMF3 §1.3.1.  Seven bits a byte, the highest first, and a flag in each of the first three
that says "more follows"; a fourth byte gives all of its eight.

    >>> pack(0x7F).hex(), pack(0x80).hex(), pack(MAX).hex()
    ('7f', '8100', 'ffffffff')
"""

from typing import Final

from rtmplite.errors import LocalError

MAX: Final = (1 << 29) - 1  # Source: §1.3.1


def pack(value: int) -> bytes:
    """Write `value` in as few bytes as can hold it (§1.3.1); LocalError beyond 29 bits."""
    if not 0 <= value <= MAX:  # §1.3.1 [u29-range]
        raise LocalError(f"{value} does not fit the 29 bits of AMF3")  # §1.3.1 [u29-range]
    if value < 0x80:
        return bytes((value,))  # §1.3.1 [u29-layout]
    if value < 0x4000:
        return bytes((value >> 7 | 0x80, value & 0x7F))  # §1.3.1 [u29-layout]
    if value < 0x200000:
        # §1.3.1 [u29-layout]
        return bytes((value >> 14 | 0x80, value >> 7 & 0x7F | 0x80, value & 0x7F))
    # §1.3.1 [u29-layout]
    high = value >> 22 | 0x80, value >> 15 & 0x7F | 0x80, value >> 8 & 0x7F | 0x80
    return bytes((*high, value & 0xFF))  # §1.3.1 [u29-layout]


def unpack(data: bytes, at: int) -> tuple[int, int] | None:
    """Read the integer at `at`, and the next offset (§1.3.1); None if `data` ends within it."""
    value = 0
    for index, byte in enumerate(data[at : at + 4]):
        if index == 3:  # §1.3.1 [u29-layout]
            return value << 8 | byte, at + 4  # §1.3.1 [u29-layout]
        value = value << 7 | byte & 0x7F  # §1.3.1 [u29-layout]
        if byte < 0x80:  # §1.3.1 [u29-layout]
            return value, at + index + 1
    return None


def signed(value: int) -> int:
    """Take the highest of the 29 bits for the sign (AMF3 §3.6)."""
    # AMF3 §3.6 [integer-is-signed]
    return value - (1 << 29) if value >> 28 else value
