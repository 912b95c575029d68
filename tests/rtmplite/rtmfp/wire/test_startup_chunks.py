"""The chunks of the startup, field by field."""

import pytest
from hypothesis import event, given
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.address import Origin, SocketAddress
from rtmplite.rtmfp.wire.chunks import PARSERS, encode_chunk, parse_chunks
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
    RHelloCookieChange,
)
from rtmplite.strategies.rtmfp import startup_chunks

V4 = SocketAddress("192.0.2.7", 1935, Origin.OBSERVED)
V6 = SocketAddress("2001:db8::1", 1936, Origin.LOCAL)
LONG = bytes(200)  # so that a length takes two bytes

VECTORS = [
    (InitiatorHello(b"epd", b"tag"), "03 657064 746167"),
    (InitiatorHello(b"", b""), "00"),
    (ResponderHello(b"tag", LONG, b"cert"), "03 746167 8148" + "00" * 200 + "63657274"),
    (ResponderRedirect(b"tag"), "03 746167"),
    (
        ResponderRedirect(b"", (V4, V6)),
        "00 02 c0000207 078f 81 20010db8 0000 0000 0000 0000 00000001 0790",
    ),
    (RHelloCookieChange(b"old", b"newer"), "03 6f6c64 6e65776572"),
    (
        InitiatorInitialKeying(0x01020304, b"co", b"cert", b"skic", b"X"),
        "01020304 02 636f 04 63657274 04 736b6963 58",
    ),
    (ResponderInitialKeying(0xFFFFFFFE, b"skrc", b"X"), "fffffffe 04 736b7263 58"),
]


@pytest.mark.parametrize(("chunk", "payload"), VECTORS)
def test_each_field_has_its_place(chunk, payload):
    """Covers RFC 7016 §2.3.2 [ihello-layout], §2.3.4 [rhello-layout], §2.3.5 [redirect-layout].

    And §2.3.6 [cookie-change-layout], §2.3.7 [iikeying-layout], §2.3.8 [rikeying-layout].
    """
    wire = bytes.fromhex(payload)
    assert chunk.encode() == wire
    assert type(chunk).parse(wire) == chunk


@given(startup_chunks())
def test_reading_undoes_writing(chunk):
    """Covers RFC 7016 §2.3 [chunk-layout]."""
    assert parse_chunks(encode_chunk(chunk)) == [chunk]


def test_a_redirect_without_addresses_means_where_it_came_from():
    """Covers RFC 7016 §2.3.5 [implied-redirect]."""
    assert ResponderRedirect.parse(b"\x03tag").is_implied
    assert not ResponderRedirect.parse(b"\x03tag" + V4.encode()).is_implied


def test_what_the_initiator_signs_is_all_before_the_signature():
    """Covers RFC 7016 §2.3.7 [iikeying-signed]: as it came, even if it could be said shorter."""
    parameters = bytes.fromhex("00000007 8002 636f 04 63657274 8004 736b6963")
    chunk = InitiatorInitialKeying.parse(parameters + b"signature")
    assert chunk.signed_parameters == parameters and chunk.signature == b"signature"
    assert chunk.encode() == parameters + b"signature"
    same = InitiatorInitialKeying(7, b"co", b"cert", b"skic", b"signature")
    assert same == chunk
    assert same.signed_parameters == bytes.fromhex("00000007 02 636f 04 63657274 04 736b6963")


def test_what_the_responder_signs_ends_with_the_initiators_component():
    """Covers RFC 7016 §2.3.8 [rikeying-signed] [rikeying-layout]."""
    portion = bytes.fromhex("00000009 8004 736b7263")
    chunk = ResponderInitialKeying.parse(portion + b"signature")
    assert chunk.signed_parameters_portion == portion and chunk.signature == b"signature"
    assert chunk.signed_parameters(b"skic") == portion + b"skic"
    same = ResponderInitialKeying(9, b"skrc", b"signature")
    assert same == chunk
    assert same.signed_parameters(b"skic") == bytes.fromhex("00000009 04 736b7263") + b"skic"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (0x30, ""),
        (0x30, "05 6570"),
        (0x70, "00"),
        (0x70, "00 05 63"),
        (0x71, "00 02 c00002"),
        (0x71, "00 82 c0000207 078f"),
        (0x79, "01"),
        (0x38, "010203"),
        (0x38, "01020304 00 00"),
        (0x78, "01020304"),
        (0x78, "0102"),
    ],
)
def test_what_is_cut_off_is_refused(kind, payload):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    with pytest.raises(RemoteError):
        PARSERS[kind](bytes.fromhex(payload))


@pytest.mark.parametrize("session_id", [-1, 1 << 32])
def test_a_session_id_beyond_32_bits_is_our_own_bug(session_id):
    """Covers RFC 7016 §2.3.7 [iikeying-layout], §2.3.8 [rikeying-layout]."""
    with pytest.raises(LocalError):
        InitiatorInitialKeying(session_id, b"", b"", b"", b"").encode()
    with pytest.raises(LocalError):
        ResponderInitialKeying(session_id, b"", b"").encode()


@given(mutations(startup_chunks().map(encode_chunk)))
def test_any_bytes_are_read_or_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    parse = PARSERS.get(data[0]) if data else None
    if parse is None:
        event("no such chunk")
        return
    try:
        parse(data[3:])
        event("read")
    except RemoteError:
        event("refused")


def test_memory_is_bounded():
    """Covers RFC 7016 §2.3.5 [redirect-layout]: many addresses take no more than that."""
    for data in (b"\0" + V4.encode() * 9000, b"\0" + V6.encode() * 3000):
        assert peak(lambda data=data: ResponderRedirect.parse(data)) <= 32 * len(data) + 65536
