"""The chunks about a session, field by field."""

import pytest
from hypothesis import given

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.address import Origin, SocketAddress
from rtmplite.rtmfp.wire.chunks import PARSERS, encode_chunk, parse_chunks
from rtmplite.rtmfp.wire.control_chunks import (
    ForwardedInitiatorHello,
    Fragment,
    Ping,
    PingReply,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.strategies.rtmfp import session_chunks

V4 = SocketAddress("192.0.2.7", 1935, Origin.OBSERVED)

VECTORS = [
    (Fragment(0x80, 0, b"piece", True), "80 8100 00 7069656365"),
    (Fragment(7, 0x81, b"!"), "00 07 8101 21"),
    (ForwardedInitiatorHello(b"epd", V4, b"tag"), "03 657064 02 c0000207 078f 746167"),
    (Ping(b"hello"), "68656c6c6f"),
    (Ping(), ""),
    (PingReply(b"hello"), "68656c6c6f"),
    (SessionClose(), ""),
    (SessionCloseAck(), ""),
]


@pytest.mark.parametrize(("chunk", "payload"), VECTORS)
def test_each_field_has_its_place(chunk, payload):
    """Covers RFC 7016 §2.3.1 [fragment-layout], §2.3.3 [fihello-layout], §2.3.9 [ping-layout].

    And §2.3.10 [ping-reply-layout], §2.3.17 [close-layout], §2.3.18 [close-ack-layout].
    """
    wire = bytes.fromhex(payload)
    assert chunk.encode() == wire
    assert type(chunk).parse(wire) == chunk


@given(session_chunks())
def test_reading_undoes_writing(chunk):
    """Covers RFC 7016 §2.3 [chunk-layout]."""
    assert parse_chunks(encode_chunk(chunk)) == [chunk]


def test_the_reserved_bits_of_a_fragment_are_ignored_and_left_clear():
    """Covers RFC 7016 §2 [reserved-ignored] [reserved-clear]."""
    assert Fragment.parse(b"\x7f\0\0!") == Fragment(0, 0, b"!")
    assert Fragment.parse(b"\xff\0\0!") == Fragment(0, 0, b"!", more_fragments=True)
    assert Fragment.parse(b"\xff\0\0!").encode() == b"\x80\0\0!"


def test_a_fragment_of_nothing_is_neither_read_nor_made():
    """Covers RFC 7016 §2.3.1 [fragment-not-empty]."""
    with pytest.raises(RemoteError):
        Fragment.parse(b"\x80\0\0")
    with pytest.raises(LocalError):
        Fragment(0, 0, b"")


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (0x7F, ""),
        (0x7F, "80"),
        (0x7F, "80 00"),
        (0x7F, "80 00 80"),
        (0x0F, "05 6570"),
        (0x0F, "00 02 c00002"),
        (0x0F, "00"),
    ],
)
def test_what_is_cut_off_is_refused(kind, payload):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    with pytest.raises(RemoteError):
        PARSERS[kind](bytes.fromhex(payload))


def test_a_close_with_a_payload_is_a_close():
    """Covers RFC 7016 §2.3.17 [close-layout], §2.3.18 [close-ack-layout]: nobody may need it."""
    assert SessionClose.parse(b"why") == SessionClose()
    assert SessionCloseAck.parse(b"why") == SessionCloseAck()
