"""The size of pictures of VP8, which every key frame tells.

Own design: the format of the frames is RFC 6386, which is not in the catalogue.
"""

from struct import Struct
from typing import Final

AT: Final = 6  # octets before width and height, which have 14 bits of 16
_SIDE: Final = 0x3FFF
_SIDES: Final = Struct("<HH")


def size_of(key_frame: bytes) -> tuple[int, int] | None:
    """Width and height of a key frame, None if it is cut short."""
    if len(key_frame) < AT + _SIDES.size:
        return None
    width, height = _SIDES.unpack_from(key_frame, AT)
    return width & _SIDE, height & _SIDE
