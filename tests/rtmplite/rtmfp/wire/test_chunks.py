"""Chunks in a row: types, lengths, padding, and chunks that are ignored."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError
from rtmplite.rtmfp.wire import chunks
from rtmplite.rtmfp.wire.chunks import (
    NextUserData,
    Ping,
    UnknownChunk,
    UserData,
    encode_chunk,
    expand_next_user_data,
    parse_chunks,
)
from rtmplite.strategies.rtmfp import padding, session_chunks, startup_chunks, unknown_chunks

ROWS = st.lists(session_chunks() | startup_chunks(), max_size=5)


def wire(row):
    return b"".join(map(encode_chunk, row))


@given(ROWS, padding(), st.sampled_from([bytes, memoryview]))
def test_reading_undoes_writing_up_to_the_padding(row, rest, kind):
    """Covers RFC 7016 §2.3 [chunk-layout], §2.2.4 [padding-told]."""
    assert parse_chunks(kind(b"!" + wire(row) + rest), 1) == row


TYPES = {
    "Fragment": 0x7F,
    "InitiatorHello": 0x30,
    "ForwardedInitiatorHello": 0x0F,
    "ResponderHello": 0x70,
    "ResponderRedirect": 0x71,
    "RHelloCookieChange": 0x79,
    "InitiatorInitialKeying": 0x38,
    "ResponderInitialKeying": 0x78,
    "Ping": 0x01,
    "PingReply": 0x41,
    "UserData": 0x10,
    "NextUserData": 0x11,
    "DataAckBitmap": 0x50,
    "DataAckRanges": 0x51,
    "BufferProbe": 0x18,
    "FlowException": 0x5E,
    "SessionClose": 0x0C,
    "SessionCloseAck": 0x4C,
}


@given(session_chunks() | startup_chunks())
def test_type_and_length_stand_before_the_payload(chunk):
    """Covers RFC 7016 §2.3 [chunk-layout] [chunk-types]."""
    data, payload = encode_chunk(chunk), chunk.encode()
    assert data[0] == TYPES.get(type(chunk).__name__, chunk.type_id)
    assert data[1:] == len(payload).to_bytes(2, "big") + payload


@pytest.mark.parametrize(("name", "type_id"), TYPES.items())
def test_the_types_of_the_memo(name, type_id):
    """Covers RFC 7016 §2.3 [chunk-types]."""
    kind = getattr(chunks, name)
    assert kind.type_id == type_id
    data = bytes((type_id, 0, 16)) + b"\1" * 16
    assert [type(chunk) for chunk in parse_chunks(data)] == [kind]


@given(unknown_chunks(), session_chunks())
def test_unknown_chunks_are_kept_apart_and_the_next_is_read(unknown, known):
    """Covers RFC 7016 §2.3 [unknown-ignored]."""
    assert parse_chunks(wire([unknown, known])) == [unknown, known]


@pytest.mark.parametrize("ignored", ["00 0000", "ff 0002 0102", "00 0003 010000"])
def test_the_padding_types_are_passed_by(ignored):
    """Covers RFC 7016 §2.3 [chunk-types]."""
    data = encode_chunk(Ping(b"1")) + bytes.fromhex(ignored) + encode_chunk(Ping(b"2"))
    assert parse_chunks(data) == [Ping(b"1"), Ping(b"2")]
    with pytest.raises(LocalError):
        encode_chunk(UnknownChunk(bytes.fromhex(ignored)[0], b""))


@pytest.mark.parametrize(
    "damaged", ["10 0000", "10 0003 800205", "7f 0003 000000", "5e 0001 05", "38 0002 0102"]
)
def test_a_damaged_chunk_is_as_if_it_were_not_there(damaged):
    """Covers RFC 7016 §2.3 [damaged-ignored], §2 [errors-abort]."""
    data = encode_chunk(Ping(b"1")) + bytes.fromhex(damaged) + encode_chunk(Ping(b"2"))
    assert parse_chunks(data) == [Ping(b"1"), Ping(b"2")]


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("", []),
        ("01", []),
        ("01 00", []),
        ("01 0000", [Ping()]),
        ("01 0001", []),
        ("01 0002 21", []),
        ("01 0001 21", [Ping(b"!")]),
        ("01 0001 21 01 0001", [Ping(b"!")]),
        ("ff" * 15, []),
    ],
)
def test_what_does_not_fit_is_padding(rest, found):
    """Covers RFC 7016 §2.2.4 [padding-told]."""
    assert parse_chunks(bytes.fromhex(rest)) == found


def test_a_chunk_has_65535_bytes_at_most():
    """Covers RFC 7016 §2.3 [chunk-layout]."""
    assert parse_chunks(encode_chunk(Ping(bytes(0xFFFF)))) == [Ping(bytes(0xFFFF))]
    with pytest.raises(LocalError):
        encode_chunk(Ping(bytes(0x10000)))


def test_next_user_data_is_spelled_out_as_in_the_memo():
    """Covers RFC 7016 §2.3.12 [next-number]: RFC 7016 Figure 3."""
    data = bytes.fromhex("100007 00 020503 000102 110004 00 030405 110004 00 060708")
    first, *following = expand_next_user_data(parse_chunks(data))
    assert first == UserData(2, 5, 3, b"\0\1\2")
    assert following == [UserData(2, 6, 4, b"\3\4\5"), UserData(2, 7, 5, b"\6\7\x08")]


def test_next_user_data_goes_on_with_the_user_data_before_whatever_is_between():
    """Covers RFC 7016 §2.3.12 [next-number] [follows-user-data]."""
    one, other = UserData(2, 5, 3, b"a"), UserData(4, 9, 1, b"b")
    row = [NextUserData(b"!"), Ping(), one, Ping(), NextUserData(b"c"), other, NextUserData(b"d")]
    assert list(expand_next_user_data(row)) == [
        *(Ping(), one, Ping(), UserData(2, 6, 4, b"c"), other, UserData(4, 10, 2, b"d"))
    ]


@given(mutations(ROWS.map(wire)))
def test_any_bytes_are_read(data):
    """Covers RFC 7016 §2.3 [chunk-layout]: no bytes raise an error."""
    row = parse_chunks(data)
    event(f"{min(len(row), 3)} chunks")
    assert parse_chunks(wire(row)) == row
    for chunk in expand_next_user_data(row):
        assert not isinstance(chunk, NextUserData)


@pytest.mark.parametrize(
    "unit",
    [
        b"\x11\0\1\0",
        b"\x10\0\4\0\2\5\3",
        b"\x01\0\0",
        b"\x0c\0\0",
        b"\xec\0\0",
        b"\x51\0\3\1\2\3",
        b"\x10\0\6\x80\2\5\3\0!",
        b"\x30\0\1\0",
        b"\0\0\0",
    ],
)
def test_memory_is_bounded(unit):
    """Covers RFC 7016 §2.3 [chunk-layout]: thousands of tiny chunks take no more than that."""
    data = unit * (20000 // len(unit))
    assert peak(lambda: parse_chunks(data)) <= 32 * len(data) + 65536
