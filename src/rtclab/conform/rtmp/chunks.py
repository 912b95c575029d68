"""Chunks that the target reads: all types of header, numbers, times and sizes.

Implements RTMP 1.0 §5.3, from the sender's side.  Whether a chunk was read rightly is seen by the
answer to the command in it, or at a player.
"""

import os
from functools import partial
from typing import Final

from rtclab.conform.case import Cases, NotApplicable, Unmet
from rtclab.conform.rtmp.chunks_seen import chunk
from rtclab.conform.rtmp.line import NO_PONG, RtmpLine
from rtclab.conform.rtmp.peer import AUDIO, VIDEO, NetStream, RtmpPeer
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message

cases: Cases[RtmpPeer] = Cases()
must = partial(cases.case, role="server")
should = partial(cases.case, role="server", level="SHOULD")
SOUND: Final = b"\x82" + bytes(range(99))  # mu-law, which has no headers of its own
FULL: Final = 0xFFFFFF
CALL: Final = 5  # a chunk stream that nothing else uses


@must("RTMP 1.0 §5.3.1.2.1", "type-0-is-absolute")
def type_0_has_an_absolute_time(peer: RtmpPeer) -> None:
    """Two messages with headers of type 0 have the times that stand there (§5.3.1.2.1)."""
    publisher, player = peer.pair()
    publisher.line.send(_first(publisher, 1000) + _first(publisher, 1033))
    player.expect([(AUDIO, 1000, SOUND), (AUDIO, 1033, SOUND)])


@must("RTMP 1.0 §5.3.1.2.2", "type-1-same-stream")
def type_1_has_a_delta(peer: RtmpPeer) -> None:
    """A header of type 1 has a delta, and the message stream of before (§5.3.1.2.2)."""
    publisher, player = peer.pair()
    more = chunk(1, CALL, SOUND[:50], time=40, type_id=AUDIO)
    publisher.line.send(_first(publisher, 1000) + more)
    player.expect([(AUDIO, 1000, SOUND), (AUDIO, 1040, SOUND[:50])])


@must("RTMP 1.0 §5.3.1.2.3", "type-2-same-length")
def type_2_keeps_the_length(peer: RtmpPeer) -> None:
    """A header of type 2 has a delta, and length and type of before (§5.3.1.2.3)."""
    publisher, player = peer.pair()
    publisher.line.send(_first(publisher, 1000) + chunk(2, CALL, SOUND, time=40))
    player.expect([(AUDIO, 1000, SOUND), (AUDIO, 1040, SOUND)])


@must("RTMP 1.0 §5.3.1.2.4", "type-3-takes-all")
def type_3_begins_a_message(peer: RtmpPeer) -> None:
    """A header of type 3 after a message has the delta of before (§5.3.1.2.4)."""
    publisher, player = peer.pair()
    again = chunk(2, CALL, SOUND, time=40) + chunk(3, CALL, SOUND) + chunk(3, CALL, SOUND)
    publisher.line.send(_first(publisher, 1000) + again)
    player.expect([(AUDIO, time, SOUND) for time in (1000, 1040, 1080, 1120)])


@must("RTMP 1.0 §5.3.1", "header-lengths")
def headers_come_byte_by_byte(peer: RtmpPeer) -> None:
    """Each byte of a chunk may come alone (§5.3.1.2)."""
    line = peer.connected()
    line.send(*(bytes((each,)) for each in _call(7, line.writer)))
    line.answer(7)


@must("RTMP 1.0 §5.3.1.1", "id-range")
def chunk_stream_63_has_one_byte(peer: RtmpPeer) -> None:
    """Chunk streams up to 63 have basic headers of one byte (§5.3.1.1)."""
    _expect_on(peer, 63)


@must("RTMP 1.0 §5.3.1.1", "forms")
def chunk_stream_64_has_two_bytes(peer: RtmpPeer) -> None:
    """Chunk streams from 64 on have basic headers of two bytes (§5.3.1.1)."""
    _expect_on(peer, 64)


@must("RTMP 1.0 §5.3.1.1", "forms")
def chunk_stream_320_has_three_bytes(peer: RtmpPeer) -> None:
    """Chunk streams from 320 on have basic headers of three bytes (§5.3.1.1)."""
    _expect_on(peer, 320)


@must("RTMP 1.0 §5.3.1.1", "id-range")
def chunk_stream_65599_is_the_last(peer: RtmpPeer) -> None:
    """The largest number of a chunk stream is 65599 (§5.3.1.1)."""
    _expect_on(peer, 65599)


@must("RTMP Errata §4.1", "number-is-little")
def three_bytes_have_the_low_byte_first(peer: RtmpPeer) -> None:
    """A message that begins with two bytes may go on with three, low byte first (§5.3.1.1)."""
    line, payload = peer.connected(), _payload(7)
    low_first = bytes((0xC1, 100 - 64, 0))  # type 3
    line.send(chunk(0, 100, payload[:128], length=len(payload), type_id=20))
    line.send(low_first + payload[128:256] + low_first + payload[256:])
    line.answer(7)


@must("RTMP 1.0 §5.4.1", "default-128")
def chunks_have_128_bytes_at_first(peer: RtmpPeer) -> None:
    """Without Set Chunk Size a message is cut after each 128 bytes (§5.4.1)."""
    line = peer.connected()
    line.send(_call(7, ChunkWriter()))
    line.answer(7)


@must("RTMP 1.0 §5.3.1.2.5", "length-is-of-message")
def length_is_that_of_the_message(peer: RtmpPeer) -> None:
    """A message of 300,000 bytes in chunks of 128 comes to the player whole (§5.3.1.2.5)."""
    publisher, player = peer.pair()
    picture = b"\x12" + os.urandom(300_000)
    publisher.send(VIDEO, 0, picture)
    player.expect([(VIDEO, 0, picture)])


@must("RTMP 1.0 §5.4.1", "size-until-further-notice")
def chunk_size_counts_until_the_next(peer: RtmpPeer) -> None:
    """Set Chunk Size is obeyed, and then another (§5.4.1)."""
    _expect_sizes(peer, 200, 4096)


@must("RTMP 1.0 §5.4", "at-once")
def smaller_chunks_follow_at_once(peer: RtmpPeer) -> None:
    """Chunks that are smaller than before may arrive together with their Set Chunk Size (§5.4)."""
    _expect_sizes(peer, 64)


@must("RTMP 1.0 §5.4.1", "size-at-least-1")
def chunks_may_have_one_byte(peer: RtmpPeer) -> None:
    """The smallest chunk size is 1 (§5.4.1)."""
    _expect_sizes(peer, 1)


@must("RTMP 1.0 §5.4.1", "size-top-bit-zero")
def chunks_may_be_as_large_as_31_bits_say(peer: RtmpPeer) -> None:
    """The largest chunk size is 2147483647, which is a way to cut nothing (§5.4.1)."""
    _expect_sizes(peer, 0x7FFFFFFF)


@must("RTMP 1.0 §5.3", "size-per-direction")
def chunk_size_is_per_direction(peer: RtmpPeer) -> None:
    """The size of our chunks does not change the size of the target's (§5.3)."""
    publisher, player = peer.pair()
    picture = b"\x12" + os.urandom(20_000)
    for line, size in ((publisher.line, 50), (player.line, 65536)):
        line.set_chunk_size(size)
        line.between()
    publisher.send(VIDEO, 0, picture)
    player.expect([(VIDEO, 0, picture)])


@should("RTMP 1.0 §5.4", "at-once")
def chunk_size_changes_within_a_message(peer: RtmpPeer) -> None:
    """Set Chunk Size between two chunks of a message counts for the next chunk (§5.4)."""
    line, payload = peer.connected(), _payload(7)
    begin = chunk(0, CALL, payload[:128], length=len(payload), type_id=20)
    line.send(begin + line.writer.set_chunk_size(4096) + chunk(3, CALL, payload[128:]))
    line.answer(7)


@must("RTMP 1.0 §5.3", "by-chunk-stream")
def chunks_of_two_messages_take_turns(peer: RtmpPeer) -> None:
    """Chunks of two chunk streams may alternate (§5.3)."""
    line = peer.connected()
    pieces = [_pieces(CALL, 7), _pieces(8, 8)]
    line.send(b"".join(first + second for first, second in zip(*pieces, strict=True)))
    line.answer(7)
    line.answer(8)


@must("RTMP 1.0 §6.2", "at-once")
def control_comes_between_chunks(peer: RtmpPeer) -> None:
    """A Ping Request between two chunks of a message is answered before the rest (§6.2)."""
    line, pieces = peer.connected(), _pieces(CALL, 7)
    line.send(pieces[0])
    found = line.ping(4711)
    line.send(*pieces[1:])
    line.answer(7)
    if found is None and line.ping(4712) is None:
        raise NotApplicable(NO_PONG)
    if found is None:
        raise Unmet("a Ping Response", "none before the rest of the message")


@must("RTMP 1.0 §5.4.2", "abort-discards")
def abort_discards_what_has_come(peer: RtmpPeer) -> None:
    """After Abort the part of a message is gone, and the next one whole (§5.4.2)."""
    line = peer.connected()
    line.send(_pieces(CALL, 7)[0])
    line.tell(control.Abort(CALL))
    line.send(*_pieces(CALL, 8))
    if (number := _answered(line)) != 8:
        raise Unmet("an answer to call 8", f"one to call {number:g}")


@must("RTMP 1.0 §5.4.2", "abort-names-chunk-stream")
def abort_leaves_other_chunk_streams(peer: RtmpPeer) -> None:
    """Abort of one chunk stream leaves what has come on another (§5.4.2)."""
    line, pieces = peer.connected(), _pieces(CALL, 7)
    line.send(pieces[0])
    line.tell(control.Abort(9))
    line.send(*pieces[1:])
    line.answer(7)


@must("RTMP Errata §6", "aborted-time-counts")
def time_of_an_aborted_message_counts(peer: RtmpPeer) -> None:
    """A delta starts from the time of the message before, an aborted one too (RTMP Errata §6)."""
    publisher, player = peer.pair()
    long = dict(length=500, type_id=AUDIO, stream_id=publisher.id)
    publisher.line.send(_first(publisher, 1000) + chunk(0, CALL, bytes(128), time=1100, **long))
    publisher.line.tell(control.Abort(CALL))
    publisher.line.send(chunk(1, CALL, SOUND, time=40, type_id=AUDIO))
    player.expect([(AUDIO, 1000, SOUND), (AUDIO, 1140, SOUND)])


@must("RTMP 1.0 §5.3.1.3", "extended-when-full")
def time_of_32_bits_is_extended(peer: RtmpPeer) -> None:
    """0xFFFFFF announces four bytes, which may say as little as 0xFFFFFF (§5.3.1.3)."""
    publisher, player = peer.pair()
    for time in (FULL - 1, FULL, FULL + 1, FULL + 40):
        extended = time if time >= FULL else None
        publisher.line.send(_first(publisher, min(time, FULL), extended))
    player.expect([(AUDIO, time, SOUND) for time in (FULL - 1, FULL, FULL + 1, FULL + 40)])


@must("RTMP Errata §5.1", "extended-on-every-3")
def extended_time_is_on_every_type_3(peer: RtmpPeer) -> None:
    """Later chunks of a message have its extended time, which is no payload (RTMP Errata §5.1)."""
    publisher, player = peer.pair()
    picture, time = b"\x12" + os.urandom(999), FULL + 5
    publisher.send(VIDEO, time, picture)
    publisher.send(VIDEO, time + 40, picture)
    player.expect([(VIDEO, time, picture), (VIDEO, time + 40, picture)])


@must("RTMP Errata §5.1", "extended-on-every-3")
def extended_time_begins_messages_too(peer: RtmpPeer) -> None:
    """A message that begins with type 3 has an extended time if the last had (RTMP Errata §5.1)."""
    publisher, player = peer.pair()
    first = _first(publisher, 0)
    delta = chunk(2, CALL, SOUND, time=FULL, extended=FULL) + chunk(3, CALL, SOUND, extended=FULL)
    publisher.line.send(first + delta)
    player.expect([(AUDIO, time, SOUND) for time in (0, FULL, 2 * FULL)])


@should("RTMP 1.0 §4", "serial-numbers")
def times_wrap(peer: RtmpPeer) -> None:
    """After 4294967295 ms comes 0 (§4)."""
    publisher, player = peer.pair()
    times = [2**32 - 40, 2**32 - 20, 0, 20]
    publisher.send_all((AUDIO, time, SOUND) for time in times)
    player.expect([(AUDIO, time, SOUND) for time in times])


@must("RTMP 1.0 §5.3.1.2.5", "length-is-of-message")
def empty_message_takes_no_data(peer: RtmpPeer) -> None:
    """After a message of no bytes the next one is read rightly (§5.3.1.2.5)."""
    publisher = peer.publisher()
    empty = chunk(0, CALL, b"", type_id=AUDIO, stream_id=publisher.id)
    publisher.line.send(empty + _call(7, publisher.line.writer))
    publisher.line.answer(7)


def _payload(number: float) -> bytes:
    """A createStream that needs three chunks of 128 bytes."""
    return bytes(Command("createStream", number, None, ("-" * 300,)))


def _call(number: float, writer: ChunkWriter, chunk_stream: int = CALL) -> bytes:
    return writer.write(Message(20, 0, 0, _payload(number)), chunk_stream)


def _pieces(chunk_stream: int, number: float) -> list[bytes]:
    """The same, chunk by chunk."""
    payload = _payload(number)
    begin = chunk(0, chunk_stream, payload[:128], length=len(payload), type_id=20)
    rest = [payload[at : at + 128] for at in range(128, len(payload), 128)]
    return [begin, *(chunk(3, chunk_stream, each) for each in rest)]


def _first(publisher: NetStream, time: int, extended: int | None = None) -> bytes:
    """A sound with a header of type 0."""
    return chunk(
        0, CALL, SOUND, time=time, type_id=AUDIO, stream_id=publisher.id, extended=extended
    )


def _expect_on(peer: RtmpPeer, chunk_stream: int) -> None:
    line = peer.connected()
    line.send(_call(7, line.writer, chunk_stream))
    line.answer(7)


def _expect_sizes(peer: RtmpPeer, *sizes: int) -> None:
    line = peer.connected()
    for number, size in enumerate(sizes, 7):
        line.send(line.writer.set_chunk_size(size) + _call(number, line.writer))
        line.answer(number)


def _answered(line: RtmpLine) -> float:
    return next(each.transaction_id for each, _ in line.commands() if each.name == "_result")
