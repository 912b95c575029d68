"""The name of a device that registers.

Implements RFC 5626 §4.1.
"""

from collections.abc import Callable


def new_instance(random: Callable[[int], bytes]) -> str:
    """The URN of a random UUID, for a device that keeps none: §4.1."""
    octets = bytearray(random(16))
    octets[6], octets[8] = octets[6] & 0x0F | 0x40, octets[8] & 0x3F | 0x80
    text = octets.hex()
    return f"urn:uuid:{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
