"""The reader takes whatever a sender may write, in any pieces, and bears what none may."""

from contextlib import suppress
from time import process_time

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.rtmp.wire.chunk_reader import (
    BYTES_PER_MESSAGE,
    FREE_MESSAGES,
    STREAM_COST,
    ChunkReader,
)
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter, encode_absolute
from rtmplite.rtmp.wire.control import Abort
from rtmplite.rtmp.wire.message import Message
from rtmplite.strategies import rtmp


def read(text, reader=None):
    """What a new reader, or this one, makes of hexadecimal text."""
    return (reader or ChunkReader()).feed(bytes.fromhex(text))


def byte_by_byte(text):
    """The same by the long way, which headers take that are not all there."""
    reader = ChunkReader()
    return [message for each in bytes.fromhex(text) for message in reader.feed(bytes([each]))]


@given(rtmp.cut_streams() | rtmp.tolerated_streams(), st.integers(1, 40))
def test_the_beginning_of_a_stream_and_what_no_sender_should_do(stream, step):
    """Covers RTMP 1.0 §5.3.1.2.4, §5.3.1.3 [extended-on-type-3]: what is not whole is waited for.

    Field §"Absent extended time".
    """
    raw, messages = stream
    assert ChunkReader().feed(raw) == messages
    reader = ChunkReader()
    pieces = [raw[start : start + step] for start in range(0, len(raw), step)]
    assert [each for piece in pieces for each in reader.feed(piece)] == messages


@given(rtmp.chunk_streams(), st.integers(1, 40))
def test_every_legal_stream_in_any_pieces(stream, step):
    """Covers RTMP 1.0 §5.3 [by-chunk-stream], RTMP 1.0 §5.3.1 [header-lengths].

    And §5.4 [at-once], §5.4.1 [size-until-further-notice] [default-128], §5.4.2 [abort-discards].
    """
    raw, messages = stream
    assert ChunkReader().feed(raw) == messages
    reader, got = ChunkReader(), []
    for start in range(0, len(raw), step):
        got += reader.feed(memoryview(raw)[start : start + step])
    assert got == messages and reader.bytes_received == len(raw)


def test_each_header_type_keeps_what_it_leaves_out():
    """Covers RTMP 1.0 §5.3.1 [header-lengths], RTMP 1.0 §5.3.1.2.1 [type-0-is-absolute].

    And §5.3.1.2.2 [type-1-same-stream], §5.3.1.2.3 [type-2-same-length],
    §5.3.1.2.4 [type-3-takes-all], §5.3.1.2.5 [delta-is-difference] [length-is-of-message]
    [stream-id-is-little].
    """
    raw = "04 0003e8 000001 08 39300000 aa  44 000014 000002 09 bbbb  84 00001e cccc  c4 dddd"
    wanted = [
        Message(8, 1000, 12345, b"\xaa"),
        Message(9, 1020, 12345, b"\xbb\xbb"),
        Message(9, 1050, 12345, b"\xcc\xcc"),
        Message(9, 1080, 12345, b"\xdd\xdd"),
    ]
    assert read(raw) == wanted and byte_by_byte(raw) == wanted


def test_type_3_after_type_0_repeats_its_time():
    """Covers RTMP 1.0 §5.3.1.2.4 [type-3-after-type-0], Field §"Type 3 after type 0"."""
    raw = "04 00001a 000001 08 01000000 aa  c4 bb"
    for got in (read(raw), byte_by_byte(raw)):
        assert [message.timestamp for message in got] == [26, 52]


def test_messages_grow_side_by_side():
    """Covers RTMP 1.0 §5.3 [by-chunk-stream]."""
    video, audio = bytes(range(200)), bytes(60)
    slow, fast = ChunkWriter().write(Message(9, 0, 1, video), 6), ChunkWriter()
    reader = ChunkReader()
    assert reader.feed(slow[:140] + fast.write(Message(8, 5, 1, audio), 4)) == [
        Message(8, 5, 1, audio)
    ]
    assert reader.feed(slow[140:]) == [Message(9, 0, 1, video)]


@pytest.mark.parametrize("time", [0xFFFFFF, 0x01000000, 0xFFFFFFFF])
def test_an_extended_time_stands_on_every_chunk(time):
    """Covers RTMP 1.0 §5.3.1.3 [extended-when-full] [extended-on-type-3], RTMP Errata §5.1."""
    again = f"{time:08x}"
    reader = ChunkReader()
    assert read(f"04 ffffff 000081 08 01000000 {again}" + "00" * 128, reader) == []
    assert read(f"c4 {again} 01", reader) == [Message(8, time, 1, bytes(128) + b"\1")]
    (later,) = read(f"c4 {again}" + "00" * 128 + f"c4 {again} 02", reader)
    assert later.timestamp == (2 * time) & 0xFFFFFFFF
    (delta,) = read(f"84 ffffff {again}" + "00" * 128 + f"c4 {again} 03", reader)
    assert delta == Message(8, (3 * time) & 0xFFFFFFFF, 1, bytes(128) + b"\3")


@pytest.mark.parametrize("cut", range(6))
def test_an_absent_extended_time_is_noticed(cut):
    """Covers RTMP 1.0 §5.3.1.3 [extended-on-type-3], Field §"Absent extended time".

    However the bytes arrive: the first one that differs decides.
    """
    reader = ChunkReader()
    read("04 ffffff 000085 08 01000000 01000000" + "00" * 128, reader)
    rest = bytes.fromhex("c4 0100000500")
    got = reader.feed(rest[:cut]) + reader.feed(rest[cut:])
    assert got == [Message(8, 0x01000000, 1, bytes(128) + rest[1:])]


def test_an_extended_time_may_be_the_absolute_one():
    """Covers Field §"Absent extended time"."""
    reader = ChunkReader()
    read("04 000001 000001 08 01000000 aa", reader)
    read("44 ffffff 000081 08 01000000" + "00" * 128, reader)
    assert read("c4 01000001 07", reader) == [Message(8, 0x01000001, 1, bytes(128) + b"\7")]


def test_timestamps_wrap():
    """Covers RTMP 1.0 §4, RTMP 1.0 §5.3.1.2.5 [delta-is-difference]."""
    got = read("04 ffffff 000000 08 01000000 fffffff0  84 000020  c4")
    assert [message.timestamp for message in got] == [0xFFFFFFF0, 0x10, 0x30]


def test_the_chunk_size_changes_at_once():
    """Covers RTMP 1.0 §5.4.1 [size-until-further-notice], RTMP 1.0 §5.4 [at-once].

    And RTMP 1.0 §5.3 [size-per-direction], RTMP 1.0 §5.4.1 [default-128].
    """
    reader = ChunkReader()
    size, audio = reader.feed(
        ChunkWriter().set_chunk_size(131) + encode_absolute(8, 0, 1, bytes(131), 4, 131)
    )
    assert (size.type_id, len(audio.payload), reader.chunk_size) == (1, 131, 131)
    assert ChunkReader().chunk_size == 128


def test_a_message_begun_before_goes_on_in_the_new_size():
    """Covers RTMP 1.0 §5.4 [at-once]."""
    reader = ChunkReader()
    reader.feed(encode_absolute(9, 0, 1, bytes(300), 4, 128)[:140])
    reader.feed(ChunkWriter().set_chunk_size(1000))
    assert reader.feed(b"\xc4" + bytes(172)) == [Message(9, 0, 1, bytes(300))]


def test_an_abandoned_message_is_forgotten():
    """Covers RTMP 1.0 §5.4.2 [abort-discards] [abort-names-chunk-stream], RTMP Errata §6
    [abort-then-new] [aborted-time-counts].

    Its time still counts for the next one.
    """
    reader, writer = ChunkReader(), ChunkWriter()
    reader.feed(writer.write(Message(9, 1000, 1, bytes(300)), 4)[:140])
    other = ChunkWriter()
    reader.feed(other.write(Message(9, 2000, 1, b"\1" * 300), 5)[:140])
    assert reader.feed(writer.write(Abort(4).message(), 2)) == [Abort(4).message()]
    assert reader.feed(writer.write(Abort(77).message(), 2)) == [Abort(77).message()]
    new = Message(9, 1040, 1, b"\2" * 300)  # as long as the other, so that nothing else tells them
    assert reader.feed(writer.write(new, 4)) == [new]
    (last,) = reader.feed(b"\xc5" + b"\1" * 128 + b"\xc5" + b"\1" * 44)
    assert last == Message(9, 2000, 1, b"\1" * 300)


def test_every_abort_is_obeyed():
    """Covers RTMP 1.0 §5.4.2 [abort-discards], RTMP 1.0 §5.4 [at-once].

    Those after the first have a short header, and are all there at once.
    """
    reader, writer = ChunkReader(), ChunkWriter()
    for number in range(3):
        lost = Message(9, 1000 * number, 1, bytes(300))
        new = Message(9, 1000 * number + 40, 1, b"\2" * 300)
        abort = Abort(4).message()
        raw = writer.write(lost, 4)[:-174] + writer.write(abort, 2) + writer.write(new, 4)
        assert reader.feed(raw) == [abort, new]


def test_an_equal_header_in_the_middle_goes_on():
    """Covers RTMP 1.0 §5.3.1.2.4: type 3 is but a SHOULD for the rest of a message."""
    header = "04 000000 0000c8 09 01000000"
    (message,) = read(header + "00" * 128 + header + "01" * 72)
    assert message == Message(9, 0, 1, bytes(128) + b"\1" * 72)


@pytest.mark.parametrize("changed", ["0000c8 08", "0000c9 09"])
def test_another_type_or_length_in_the_middle_begins_anew(changed):
    """Covers RTMP 1.0 §5.3.1.2.5 [length-is-of-message], RTMP 1.0 §5.3.1.2.4.

    Another type will do, or another length; what came before is lost.
    """
    started = "04 000000 0000c8 09 01000000" + "00" * 128
    size, type_id = bytes.fromhex(changed)[2:]
    body = "44 000005" + changed + "01" * 128 + "c4" + "01" * (size - 128)
    assert read(started + body) == [Message(type_id, 5, 1, b"\1" * size)]


def test_an_equal_short_header_in_the_middle_goes_on_too():
    """Covers RTMP 1.0 §5.3.1.2.3 [type-2-same-length], RTMP 1.0 §5.3.1.2.4."""
    header = "04 000000 0000c8 09 01000000"
    one, two = read(
        f"{header} {'00' * 128} c4 {'01' * 72} 84 000005 {'02' * 128} 84 000005 {'03' * 72}"
    )
    assert one == Message(9, 0, 1, bytes(128) + b"\1" * 72)
    assert two == Message(9, 5, 1, b"\2" * 128 + b"\3" * 72)


def test_another_header_in_the_middle_begins_anew():
    """Covers RTMP 1.0 §5.3.1.2.1."""
    (message,) = read(
        "04 000000 0000c8 09 01000000" + "00" * 128 + "04 000005 000001 08 01000000 aa"
    )
    assert message == Message(8, 5, 1, b"\xaa")


def test_type_1_may_come_first():
    """Covers Field §"Type 1 first"."""
    (ping,) = read("42 000000 000006 04 0006 00000d0f")
    assert ping == Message(4, 0, 0, bytes.fromhex("000600000d0f"))


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ("84 000000", "begins with type 2"),
        ("c4", "begins with type 3"),
        ("02 000000 000004 01 00000000 00000000", "chunk size of 0"),
        ("02 000000 000004 01 00000000 80000080", "chunk size"),
        ("02 000000 000003 01 00000000 000080", "control message of 3 bytes"),
        ("02 000000 000003 02 00000000 000080", "control message of 3 bytes"),
    ],
)
def test_what_no_sender_may_write_is_refused(raw, complaint):
    """Covers RTMP 1.0 §5.4.1 [size-at-least-1] [size-top-bit-zero], RTMP 1.0 §5.3.1.2.1."""
    with pytest.raises(RemoteError, match=complaint):
        read(raw)


def test_a_peer_cannot_fill_our_memory():
    """Covers RTMP Errata §7: every kind of hoard has its limit."""
    with pytest.raises(RemoteError, match="a message of 1001 bytes"):
        ChunkReader(max_message=1000).feed(encode_absolute(8, 0, 1, bytes(1001), 4, 128))
    many = [encode_absolute(8, 0, 1, bytes(129), number, 128)[:-2] for number in range(3, 60)]
    with pytest.raises(RemoteError, match="unfinished"):
        ChunkReader(max_message=1000).feed(b"".join(many))
    with pytest.raises(RemoteError, match="chunk streams"):
        ChunkReader(max_streams=10).feed(b"".join(many))
    with pytest.raises(RemoteError, match="flood"):
        ChunkReader().feed(encode_absolute(8, 1, 1, b"", 4, 128) + b"\xc4" * 60000)


def test_limits_may_be_reached_and_not_passed():
    """Covers RTMP 1.0 §5.3: own limits, to the byte, and each chunk stream has its price."""
    raw = [encode_absolute(8, 0, 1, bytes(100), number, 128) for number in (4, 5, 6)]
    assert len(ChunkReader(max_message=100).feed(raw[0])) == 1
    with pytest.raises(RemoteError):
        ChunkReader(max_message=99).feed(raw[0])
    budget = MemoryBudget()
    reader = ChunkReader(max_streams=2, account=Account(budget))
    assert len(reader.feed(b"".join(raw[:2]))) == 2 and budget.used == 2 * STREAM_COST
    with pytest.raises(RemoteError):
        reader.feed(raw[2])


@pytest.mark.parametrize("size", [129, 130, 131, 132])
def test_a_short_rest_without_the_extended_time_is_not_waited_for(size):
    """Covers RTMP 1.0 §5.3.1.3 [extended-on-type-3], Field §"Absent extended time"."""
    raw = encode_absolute(9, 1 << 24, 1, b"?" * size, 4, 1000)
    raw = raw[: 16 + 128] + b"\xc4" + raw[16 + 128 :]
    assert ChunkReader().feed(raw) == [Message(9, 1 << 24, 1, b"?" * size)]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (encode_absolute(8, 1, 1, b"", 4, 128), b"\xc4"),
        (encode_absolute(1, 0, 0, b"\0\0\0\x80", 2, 128), b"\xc2\0\0\0\x80"),
    ],
)
def test_a_flood_begins_where_messages_are_too_many_for_their_bytes(first, again):
    """Covers RTMP 1.0 §5.3: whichever way they are read, whole media or what is obeyed."""

    def is_flood(count):
        return count + 1 > FREE_MESSAGES + (len(first) + count * len(again)) // BYTES_PER_MESSAGE

    most = max(count for count in range(4000) if not is_flood(count))
    assert len(ChunkReader().feed(first + again * most)) == most + 1
    with pytest.raises(RemoteError, match="flood"):
        ChunkReader().feed(first + again * (most + 1))


@pytest.mark.parametrize(
    "unit", [b"\xc4", b"\x44\0\0\1\0\0\1\x08?", b"\x04\0\0\1\0\0\0\x08\0\0\0\1"]
)
def test_memory_follows_the_input(unit):
    """Covers RTMP 1.0 §5.3."""
    raw = encode_absolute(8, 1 << 20, 1, b"", 4, 128) + unit * 3000

    def feed():
        with suppress(RemoteError):
            ChunkReader().feed(raw)

    assert peak(feed) <= 32 * len(raw) + 65536


@given(mutations(rtmp.chunk_streams().map(lambda stream: stream[0])) | st.binary())
def test_nothing_else_ever_happens(raw):
    """Covers RTMP 1.0 §5.3."""
    messages = []

    def feed():
        with suppress(RemoteError):
            reader = ChunkReader()
            for start in range(0, len(raw), 50):
                messages.extend(reader.feed(raw[start : start + 50]))

    assert peak(feed) <= 32 * len(raw) + 65536
    event("some messages" if messages else "none")


def test_work_is_proportional_to_the_bytes():
    """Covers RTMP 1.0 §5.3: a long message in small pieces costs no more a byte than a short."""

    def cost(size):
        raw = ChunkWriter().set_chunk_size(1 << 20) + encode_absolute(
            9, 0, 1, bytes(size), 4, 1 << 20
        )
        reader, begun = ChunkReader(), process_time()
        for start in range(0, len(raw), 20):
            reader.feed(raw[start : start + 20])
        return (process_time() - begun) / size

    assert min(cost(400_000) for _ in range(3)) < 4 * max(cost(50_000) for _ in range(3))
