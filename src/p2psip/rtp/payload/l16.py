"""L16: audio that is not compressed, 16 bits a sample in network byte order.

Implements RFC 3551 §4.5.11, with the channels of §4.1.

    >>> encode_l16([1, -2]).hex()
    '0001fffe'
    >>> decode_l16(bytes.fromhex("0001fffe")).tolist()
    [1, -2]
"""

import sys
from array import array
from collections.abc import Iterable

from p2psip.errors import RemoteError


def decode_l16(payload: bytes | memoryview, channels: int = 1) -> "array[int]":
    """Turn a payload into signed 16-bit samples, of all channels in turn: §4.1.  RemoteError."""
    if len(payload) % (2 * channels):
        raise RemoteError("L16 payload that ends within a sample")
    samples = array("h", bytes(payload))
    if sys.byteorder == "little":  # §4.5.11 [network-order]
        samples.byteswap()
    return samples


def encode_l16(samples: Iterable[int]) -> bytes:
    """Turn signed 16-bit samples, of all channels in turn, into a payload: §4.5.11."""
    result = array("h", samples)
    if sys.byteorder == "little":  # §4.5.11 [network-order]
        result.byteswap()
    return result.tobytes()
