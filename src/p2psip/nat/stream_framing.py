"""Packets on a stream: each one behind its length, as ICE has STUN, DTLS and RTP over TCP.

Implements RFC 4571 §2, as RFC 6544 §3 uses it.

    >>> reader = FrameReader(limit=100)
    >>> reader.put(framed(b"one") + framed(b"two")[:3])
    [b'one']
    >>> reader.put(b"wo")
    [b'two']
"""

from typing import Final

from p2psip.errors import LocalError, RemoteError

LENGTH_OCTETS: Final = 2  # Source: §2
MAX_PACKET: Final = 0xFFFF  # Source: §2, octets of one packet


def framed(packet: bytes) -> bytes:
    """Write a packet as it stands on a stream: §2.  LocalError if it is longer than 65,535."""
    if len(packet) > MAX_PACKET:
        raise LocalError("a packet for a stream has up to 65535 octets")
    # §2 [length-counts-the-packet]
    return len(packet).to_bytes(LENGTH_OCTETS, "big") + packet


class FrameReader:
    """Cuts a stream into its packets: §2.  `limit` is the longest that is taken, in octets."""

    def __init__(self, limit: int) -> None:
        self._limit, self._rest = limit, b""

    def put(self, data: bytes) -> list[bytes]:
        """Take octets of the stream; the packets that are whole, without empty ones: §2.

        Raises RemoteError for a packet beyond the limit: nothing can be read behind it.
        """
        data, at, packets = self._rest + data, 0, []
        while len(data) - at >= LENGTH_OCTETS:
            # §2 [length-counts-the-packet]
            length = int.from_bytes(data[at : at + LENGTH_OCTETS], "big")
            if length > self._limit:
                raise RemoteError("a packet longer than any that a browser sends")
            end = at + LENGTH_OCTETS + length
            if end > len(data):
                break
            if length:  # §2 [zero-is-an-empty-packet]
                packets.append(data[at + LENGTH_OCTETS : end])
            at = end
        self._rest = data[at:]
        return packets
