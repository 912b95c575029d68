"""Packets on a stream, however it is cut."""

import pytest

from p2psip.errors import LocalError, RemoteError
from p2psip.nat.stream_framing import FrameReader, framed

PACKETS = [b"one", b"x" * 300, bytes(2048), b"\x80"]


def test_packets_are_read_as_they_were_however_the_stream_is_cut():
    """Covers RFC 4571 §2 [length-counts-the-packet] [zero-is-an-empty-packet]."""
    data = b"".join(map(framed, (PACKETS[0], b"", *PACKETS[1:])))
    assert data.startswith(b"\0\x03one\0\0\x01\x2c")
    for size in (1, 2, 3, 299, 5000):
        reader = FrameReader(2048)
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert [packet for piece in pieces for packet in reader.put(piece)] == PACKETS


def test_a_packet_beyond_the_limit_is_refused_by_its_length_alone():
    """Own design: nothing is kept of it, and nothing can be read behind it."""
    with pytest.raises(RemoteError):
        FrameReader(2048).put(b"\x08\x01")
    with pytest.raises(LocalError):
        framed(bytes(65536))
    assert framed(bytes(65535)).startswith(b"\xff\xff")
