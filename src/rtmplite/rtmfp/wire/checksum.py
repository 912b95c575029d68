"""The Internet checksum, which verifies packets without an HMAC.

Implements RFC 1071 §1 and §2, as RFC 7425 §4.7.3.1 uses it: an odd last byte counts as the low
half of its word, not as the high one.

    >>> hex(checksum(bytes.fromhex("0001 f203 f4f5 f6f7")))
    '0x220d'
"""


def checksum(data: bytes) -> int:
    """Give the ones' complement of the ones' complement sum of all 16-bit words of `data`.

    RFC 7425 §4.7.3.1 is the definition.  65536 is 1 modulo 65535, so that the whole of `data` as
    one number, modulo 65535, is that sum with all carries brought around.  Only 0 and 65535, the
    two zeros of ones' complement, need care: a sum of anything but zeros never is 0.
    """
    if len(data) % 2:
        data = data[:-1] + b"\0" + data[-1:]
    number = int.from_bytes(data, "big")
    # RFC 1071 §1 [end-around-carry], RFC 1071 §2 [carries-of-carries]
    total = number % 0xFFFF or (0xFFFF if number else 0)
    return total ^ 0xFFFF
