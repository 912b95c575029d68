"""Arithmetic on the blocks of a packet: the checksum, and XOR of the first block.

Implements RFC 7425 §4.7.1 and §4.7.3.1.  Own design: what takes a microsecond or two in Python, and
is done for every packet; where it is compiled, `_blocks.c` does the same.
"""

from rtmplite.rtmfp.crypto.params import BLOCK


def checksum(data: bytes, /) -> int:
    """Give the ones' complement of the ones' complement sum of all 16-bit words of `data`.

    RFC 7425 §4.7.3.1 defines it after RFC 1071 §1 and §2: an odd last byte counts as the low half
    of its word, not as the high one.  65536 is 1 modulo 65535, so that the whole of `data` as
    one number, modulo 65535, is that sum with all carries brought around.  Only 0 and 65535, the
    two zeros of ones' complement, need care: a sum of anything but zeros never is 0.

        >>> hex(checksum(bytes.fromhex("0001 f203 f4f5 f6f7")))
        '0x220d'
    """
    if len(data) % 2:
        data = data[:-1] + b"\0" + data[-1:]
    number = int.from_bytes(data, "big")
    # RFC 1071 §1 [end-around-carry], RFC 1071 §2 [carries-of-carries]
    total = number % 0xFFFF or (0xFFFF if number else 0)
    return total ^ 0xFFFF


def mix(blocks: bytes, block: bytes, /) -> bytes:
    """XOR `block` into the first of `blocks`; ValueError without one: §4.7.1.

    >>> mix(bytes(20), bytes(range(16))).hex()
    '000102030405060708090a0b0c0d0e0f00000000'
    """
    if len(blocks) < BLOCK or len(block) != BLOCK:
        raise ValueError("no block to mix")
    first = int.from_bytes(blocks[:BLOCK]) ^ int.from_bytes(block)
    return first.to_bytes(BLOCK) + blocks[BLOCK:]
