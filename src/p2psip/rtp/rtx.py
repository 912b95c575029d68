"""Packets that are sent again in a stream of their own, which leaves the first one's counts true.

Implements RFC 4588 §4, with both streams in one session (SSRC multiplexing).

    >>> original = bytes.fromhex("80e00007 000003e8 0000cafe") + b"part"
    >>> stream = RtxSender(0xF00D, 90000, random=bytes)
    >>> again = stream.again(original, payload_type=97, now=0.0)
    >>> again.hex(" ", -4)
    '80e10001 000003e8 0000f00d 00077061 7274'
    >>> original_of(again)
    (7, 14)
"""

from typing import Final

from p2psip.rtp import fast
from p2psip.rtp.sender import Sender

OSN_OCTETS: Final = 2  # Source: §4, of the original sequence number


class RtxSender(Sender):
    """The stream of ours that repeats packets of another: §4.

    Its source has an SSRC of its own, and reports like any other.
    """

    def again(self, original: bytes, payload_type: int, now: float) -> bytes:
        """Make the datagram that repeats one of ours, which is whole and has no padding: §4."""
        header = fast.unpack(original)
        assert header is not None
        _, marker, sequence, timestamp, _, start, end = header
        # §4 [osn-is-the-number] [payload-follows-osn] [timestamp-of-the-original]
        # §4 [marker-is-copied] [numbers-by-one]
        payload = sequence.to_bytes(OSN_OCTETS, "big") + original[start:end]
        return self.send(payload_type, payload, timestamp, marker, now)


def original_of(data: bytes | memoryview) -> tuple[int, int] | None:
    """Give the number of the packet that this one repeats, and where its payload begins: §4.

    None for a packet without one: padding, by which browsers probe a path (Field §"Padding by
    RTX").
    """
    header = fast.unpack(data)
    if header is None:
        return None
    start, end = header[5:]
    if end - start < OSN_OCTETS:
        return None
    # §4 [osn-is-the-number]
    return int.from_bytes(data[start : start + OSN_OCTETS], "big"), start + OSN_OCTETS
