"""The writer takes the shortest header that is right, and shared bytes fit any history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.errors import LocalError
from rtmplite.rtmp.wire.chunk_header import basic_header
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter, encode_absolute
from rtmplite.rtmp.wire.message import Message
from rtmplite.strategies import rtmp

STREAMS = st.sampled_from([2, 3, 64, 400])


@pytest.fixture(autouse=True)
def fresh():
    """Forget basic headers made before, so that every test makes its own."""
    basic_header.cache_clear()


def audio(timestamp, size=32, stream_id=1):
    return Message(8, timestamp, stream_id, bytes(size))


def formats(*messages):
    """The header types a new writer gives these messages."""
    writer = ChunkWriter(1000)
    return [writer.write(message, 4)[0] >> 6 for message in messages]


def test_the_first_example():
    """Covers RTMP 1.0 §5.3.2.1, RTMP 1.0 §5.3.1.2 [compact].

    And §5.3.1.2.1 [type-0-first], §5.3.1.2.3 [type-2-constant], §5.3.1.2.4 [type-3-repeats].
    """
    writer = ChunkWriter()
    sizes = [len(writer.write(audio(1000 + 20 * i, stream_id=12345), 3)) for i in range(4)]
    assert sizes == [44, 36, 33, 33]


def test_the_second_example():
    """Covers RTMP 1.0 §5.3.2.2, RTMP 1.0 §5.4.1 [default-128].

    And §5.3.1.2.4 [type-3-continues], §5.3.1.2.5 [length-is-of-message], §5.3 [chunk-whole].
    """
    raw = ChunkWriter().write(Message(9, 1000, 12346, b"?" * 307), 4)
    assert len(raw) == 140 + 129 + 52
    assert raw[:12] == bytes.fromhex("04 0003e8 000133 09 3a300000")
    assert raw[140] == raw[140 + 129] == 0xC4
    (message,) = ChunkReader().feed(raw)
    assert message == Message(9, 1000, 12346, b"?" * 307)


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        ([audio(0), audio(20), audio(40)], [0, 2, 3]),
        ([audio(20), audio(40), audio(60)], [0, 2, 3]),  # never 3 after 0
        ([audio(0), audio(20, 33), audio(40, 33), audio(60, 33)], [0, 1, 3, 3]),
        ([audio(0), audio(20), audio(41), audio(61)], [0, 2, 2, 2]),
        ([audio(0), audio(20), Message(9, 40, 1, bytes(32))], [0, 2, 1]),
        ([audio(0), audio(20, stream_id=2)], [0, 0]),
        ([audio(100), audio(99), audio(199)], [0, 0, 2]),
        ([audio(0), audio(0), audio(0)], [0, 2, 3]),
        ([audio(0), audio(0x7FFFFFFF), audio(0xFFFFFFFF)], [0, 2, 0]),  # half the circle is back
        ([audio(0xFFFFFFF0), audio(4), audio(24)], [0, 2, 3]),
    ],
)
def test_the_shortest_header_that_is_right(messages, wanted):
    """Covers RTMP 1.0 §5.3.1.2.1 [type-0-first] [type-0-backward], RTMP 1.0 §5.3.1.2 [compact].

    And §5.3.1.2.2 [type-1-variable], §5.3.1.2.3 [type-2-constant], §5.3.1.2.4 [type-3-repeats],
    RTMP 1.0 §4, Field §"Type 3 after type 0".
    """
    assert formats(*messages) == wanted


@pytest.mark.parametrize("time", [0xFFFFFE, 0xFFFFFF, 0x1000000, 0xFFFFFFFF])
def test_an_extended_time_is_repeated(time):
    """Covers RTMP 1.0 §5.3.1.2.1 [type-0-extended], RTMP Errata §5.1 [extended-on-every-3]."""
    extra = 4 if time >= 0xFFFFFF else 0
    raw = ChunkWriter().write(Message(8, time, 1, b"?" * 200), 3)
    assert len(raw) == 12 + 128 + 1 + 72 + 2 * extra
    assert raw[1:4] == min(time, 0xFFFFFF).to_bytes(3, "big")
    assert raw[12:].count(time.to_bytes(4, "big")) == (2 if extra else 0)
    assert raw == encode_absolute(8, time, 1, b"?" * 200, 3, 128)


def test_an_extended_delta_is_repeated():
    """Covers RTMP 1.0 §5.3.1.2.5 [delta-extended], RTMP Errata §5.1."""
    writer, step = ChunkWriter(), 0x01000000
    raw = [writer.write(audio(i * step), 3) for i in range(3)]
    assert raw[1][:8] == bytes.fromhex("83 ffffff 01000000")
    assert raw[2][:5] == bytes.fromhex("c3 01000000")


@given(st.lists(st.tuples(STREAMS, rtmp.messages())), st.sampled_from([1, 128, 4096]))
def test_the_reader_understands_the_writer(sent, size):
    """Covers RTMP 1.0 §5.3 [chunk-whole] [by-chunk-stream] [size-per-direction].

    And §5.3.1.2.1 [type-0-first] [type-0-extended], §5.3.1.2.4 [type-3-continues],
    §5.3.1.2.5 [delta-extended] [stream-id-is-little].
    """
    reader, writer = ChunkReader(), ChunkWriter()
    assert len(reader.feed(writer.set_chunk_size(size))) == 1
    for number, message in [*sent, (5, audio(0, 129))]:
        assert reader.feed(writer.write(message, number)) == [message]
    other = ChunkReader()
    assert other.chunk_size == 128 and reader.chunk_size == size == writer.chunk_size


@given(rtmp.chunk_streams(), rtmp.messages(), st.sampled_from([2, 3, 4, 63, 64, 65599]))
def test_shared_bytes_fit_any_history(history, message, number):
    """Covers RTMP 1.0 §5.3.1.2.1 [type-0-is-absolute], RTMP 1.0 §5.3.1.2.5 [stream-id-is-little].

    Whatever came before on that chunk stream, even in another form.
    """
    reader = ChunkReader()
    reader.feed(history[0])
    raw = encode_absolute(
        message.type_id,
        message.timestamp,
        message.stream_id,
        message.payload,
        number,
        reader.chunk_size,
    )
    assert reader.feed(raw) == [message]
    assert reader.feed(raw) == [message]


def test_timestamps_wrap():
    """Covers RTMP 1.0 §4."""
    (message,) = ChunkReader().feed(encode_absolute(8, (1 << 32) + 5, 1, b"", 3, 128))
    assert message.timestamp == 5


@pytest.mark.parametrize("size", [0, -1, 1 << 31])
def test_a_chunk_size_has_limits(size):
    """Covers RTMP 1.0 §5.4.1 [size-at-least-1] [size-top-bit-zero]."""
    writer = ChunkWriter()
    with pytest.raises(LocalError):
        writer.set_chunk_size(size)
    assert writer.chunk_size == 128


@pytest.mark.parametrize("size", [1, (1 << 31) - 1])
def test_a_chunk_size_may_be_extreme(size):
    """Covers RTMP 1.0 §5.4.1 [size-at-least-1] [size-top-bit-zero]."""
    writer = ChunkWriter()
    told = bytes.fromhex("02 000000 000004 01 00000000") + size.to_bytes(4, "big")
    assert writer.set_chunk_size(size) == told
    assert writer.chunk_size == size


def test_no_message_is_longer_than_its_length_can_say():
    """Covers RTMP Errata §7 [within-limits]."""
    with pytest.raises(LocalError):
        ChunkWriter().write(audio(0, 1 << 24), 3)
    with pytest.raises(LocalError):
        encode_absolute(8, 0, 1, bytes(1 << 24), 3, 128)


@pytest.mark.parametrize("time", [0, 0xFFFFFE, 0xFFFFFF, 0x1000000, 0xFFFFFFFF])
@pytest.mark.parametrize("length", [0, 127, 128, 129])
@pytest.mark.parametrize("number", [2, 3, 63, 64, 65, 319, 320])
def test_what_is_shared_is_what_a_writer_begins_with(time, length, number):
    """Covers RTMP Errata §7 [within-limits], RTMP 1.0 §5.3.1.2.1 [type-0-extended].

    At the limits of times, chunks and numbers; and RTMP 1.0 §5.3.1.2.5 [stream-id-is-little],
    RTMP Errata §4.2 [stream-id-is-little].
    """
    message = Message(9, time, 0x04030201, b"?" * length)
    raw = encode_absolute(9, time, 0x04030201, message.payload, number, 128)
    assert raw == ChunkWriter().write(message, number)
    assert ChunkReader().feed(raw) == [message]
    extended = b"\xff\xff\xff" if time >= 0xFFFFFF else time.to_bytes(3, "big")
    at = len(basic_header(0, number))
    assert raw[: at + 3] == basic_header(0, number) + extended
    assert raw[at + 7 : at + 11] == b"\1\2\3\4"


def test_the_longest_message_is_written():
    """Covers RTMP Errata §7 [within-limits], RTMP 1.0 §5.3.1.2 [compact]."""
    message = Message(9, 0, 1, bytes((1 << 24) - 1))
    writer = ChunkWriter(1 << 24)
    raw = writer.write(message, 3)
    assert raw == encode_absolute(9, 0, 1, message.payload, 3, 1 << 24)
    assert raw[4:7] == b"\xff\xff\xff" and len(raw) == 12 + len(message.payload)
    assert encode_absolute(9, 0, 1, message.payload, 3, 1 << 23)[4:7] == b"\xff\xff\xff"
