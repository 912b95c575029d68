"""Reads messages from chunks; the bytes may arrive in any pieces.

Implements RTMP 1.0 §5.3.  Feed it what the transport delivers and take what is complete:

    >>> reader = ChunkReader()
    >>> header = bytes.fromhex("03 0003e8 000005 08 01000000")
    >>> reader.feed(header + b"he")
    []
    >>> reader.feed(b"llo")
    [Message(type_id=8, timestamp=1000, stream_id=1, payload=b'hello')]

Only the part of a header is ever kept back; payload goes straight into its message, so the work
is proportional to the bytes, whatever the size of the pieces.
"""

from struct import Struct
from typing import Final, NamedTuple

from rtmplite.errors import RemoteError
from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.rtmp.wire.chunk_header import (
    DEFAULT_CHUNK_SIZE,
    EXTENDED,
    MESSAGE_HEADER_LENGTHS,
    read_basic_header,
)
from rtmplite.rtmp.wire.control import Abort, SetChunkSize
from rtmplite.rtmp.wire.message import MAX_PAYLOAD, TIMESTAMP_MASK, Message, MessageType

# Own design: what one peer may make us remember.  A Flash client opens about five chunk streams
# for each of its message streams.
MAX_STREAMS: Final = 4096
FREE_MESSAGES: Final = 512  # that one feed may give, however small they are ...
BYTES_PER_MESSAGE: Final = 8  # ... and beyond that, the mean size which we still believe
STREAM_COST: Final = 512  # bytes of memory for each chunk stream
BLOCK: Final = 16 * 1024  # bytes that are paid for at once

_LAST_OBEYED: Final = int(MessageType.ABORT)  # the highest type that is about chunks themselves

_WHOLE_HEADERS: Final = (12, 8, 4, 1)  # by type, with a basic header of one byte: §5.3.1

_TWO_WORDS: Final = Struct(">II").unpack_from  # basic header's last byte, time; length, type
_WORD: Final = Struct(">I").unpack_from
_STREAM_ID: Final = Struct("<I").unpack_from


class ChunkStreamState(NamedTuple):
    """A chunk stream between two messages, for somebody who reads on: §5.3.1.

    `longest` is the length of a message that comes in one chunk, `delta` what the last time field
    said.
    """

    chunk_stream_id: int
    stream_id: int
    timestamp: int
    delta: int
    length: int
    longest: int


class _Incoming:
    """One chunk stream as its receiver sees it: the last header, and a message under way."""

    __slots__ = ("delta", "extended", "length", "partial", "stream_id", "timestamp", "type_id")

    def __init__(self) -> None:
        self.timestamp = 0  # ms, absolute
        self.delta = 0  # ms, what the last time field said, absolute or not
        self.extended = False
        self.length = 0
        self.type_id = 0
        self.stream_id = 0
        self.partial = bytearray()


class ChunkReader:
    """One direction of a connection, as its receiver sees it: §5.3.

    `bytes_received` counts everything fed, as an Acknowledgement will report it (§5.4.3);
    `max_message` is the longest payload accepted, in bytes, and half of what may lie unfinished;
    it and `max_streams` can be changed.  `account` pays for what is kept.
    """

    def __init__(
        self,
        max_message: int = MAX_PAYLOAD,
        max_streams: int = MAX_STREAMS,
        account: Account | None = None,
    ) -> None:
        self.chunk_size = DEFAULT_CHUNK_SIZE  # §5.4.1 [default-128]
        self.bytes_received = 0
        self.max_message, self.max_streams = max_message, max_streams
        self._account = account or Account(MemoryBudget())
        self._streams: dict[int, _Incoming] = {}
        self._kept = b""  # the beginning of a header
        self._stream = _Incoming()  # whose chunk we are in
        self._left = 0  # bytes, still missing of that chunk
        self._unfinished = 0  # bytes, in all partial messages
        self._paid = 0  # bytes, for those

    def feed(self, data: bytes | memoryview) -> list[Message]:
        """Take bytes from the transport, give the messages that they complete.

        Set Chunk Size and Abort are obeyed here, at once (§5.4), and given all the same.
        Raises RemoteError when the peer breaks the rules; nothing read later would make sense.
        """
        self.bytes_received += len(data)
        data, self._kept = self._kept + data if self._kept else bytes(data), b""
        messages: list[Message] = []
        most = FREE_MESSAGES + len(data) // BYTES_PER_MESSAGE
        at, end = 0, len(data)
        while at < end:
            if self._left == 0:
                if (whole := self._whole(data, at)) is not None:
                    messages.append(whole[0])
                    at = whole[1]
                    if len(messages) > most:
                        raise RemoteError("a flood of tiny messages")
                    continue
                body = self._header(data, at)
                if body < 0:
                    self._kept = data[at:]
                    break
                at = body
            stream = self._stream
            payload = data[at : at + self._left]
            size = len(payload)
            at += size
            self._left -= size
            if size != stream.length:
                payload = self._collect(stream, payload)
                if len(payload) != stream.length:
                    continue
            # §5.1 [message-fields]
            message = Message(stream.type_id, stream.timestamp, stream.stream_id, payload)
            messages.append(message)
            if stream.type_id <= _LAST_OBEYED:
                self._obey(message)  # §5.4 [at-once]
            if len(messages) > most:
                raise RemoteError("a flood of tiny messages")
        return messages

    def state(self, type_id: int, stream_id: int) -> ChunkStreamState | None:
        """The chunk stream whose last message was of this type and stream; None within a chunk.

        Nor in front of an extended timestamp, or with a basic header of two octets: §5.3.1.1.
        """
        if self._left or self._kept:
            return None
        for number, stream in self._streams.items():
            if (stream.type_id, stream.stream_id) == (type_id, stream_id) and number <= 0x3F:
                if stream.partial or stream.extended:
                    return None
                longest = min(self.chunk_size, self.max_message)
                state = stream.stream_id, stream.timestamp, stream.delta, stream.length
                return ChunkStreamState(number, *state, longest)
        return None

    def went_on(
        self, chunk_stream_id: int, octets: int, timestamp: int, delta: int, length: int
    ) -> None:
        """Follow whole messages that were read elsewhere, from `state` on: §5.3.1, §5.4.3."""
        stream = self._streams[chunk_stream_id]
        self.bytes_received += octets
        stream.timestamp, stream.delta, stream.length = timestamp, delta, length

    def _whole(self, data: bytes, at: int) -> tuple[Message, int] | None:
        """Read a whole message of one chunk; give it and where the next one begins.

        Own design: media mostly come so, and this is `_header` and the rest in one piece, for
        their sake.  None leaves the usual way to go: for what is longer, cut, new, or special.
        """
        first = data[at]
        # 0 and 1, which begin longer basic headers, are no stream's number: §5.3.1.1
        stream = self._streams.get(first & 0x3F)
        after = at + _WHOLE_HEADERS[first >> 6]
        if stream is None or stream.partial or stream.extended or after > len(data):
            return None
        length, type_id, stream_id = stream.length, stream.type_id, stream.stream_id
        if first < 0x80:  # type 0 or 1: §5.3.1.2.5 [length-is-of-message]
            time, rest = _TWO_WORDS(data, at)
            time &= 0xFFFFFF
            length, type_id = rest >> 8, rest & 0xFF
        elif first < 0xC0:  # type 2: §5.3.1.2.3 [type-2-same-length]
            time = _WORD(data, at)[0] & 0xFFFFFF
        else:  # §5.3.1.2.4 [type-3-takes-all] [type-3-after-type-0]
            time = stream.delta
        end = after + length
        if (
            time == EXTENDED
            or type_id <= _LAST_OBEYED
            or length > self.chunk_size
            or length > self.max_message
            or end > len(data)
        ):
            return None
        stream.delta, stream.length, stream.type_id = time, length, type_id
        if first < 0x40:  # §5.3.1.2.1 [type-0-is-absolute]
            # §5.3.1.2.5 [stream-id-is-little]
            stream.stream_id = stream_id = _STREAM_ID(data, at + 8)[0]
        else:  # §5.3.1.2.5 [delta-is-difference], §5.3.1.2.2 [type-1-same-stream]
            time = (stream.timestamp + time) & TIMESTAMP_MASK
        stream.timestamp = time
        return Message(type_id, time, stream_id, data[after:end]), end

    def _header(self, data: bytes, at: int) -> int:
        """Read a chunk header, give where its data begins, or -1 if the header is incomplete."""
        first = data[at]
        fmt, chunk_stream_id = first >> 6, first & 0x3F
        if chunk_stream_id >= 2:
            at += 1
        else:
            try:
                fmt, chunk_stream_id, at = read_basic_header(data, at)
            except IndexError:
                return -1
        stream = self._streams.get(chunk_stream_id)
        if fmt == 3:
            if stream is None:
                raise RemoteError(f"chunk stream {chunk_stream_id} begins with type 3")
            return self._repeated(stream, data, at)
        return self._explicit(stream, fmt, chunk_stream_id, data, at)

    def _explicit(
        self, stream: _Incoming | None, fmt: int, chunk_stream_id: int, data: bytes, at: int
    ) -> int:
        """Read a header of type 0, 1 or 2, whose fields begin at `at`: §5.3.1.2."""
        after = at + MESSAGE_HEADER_LENGTHS[fmt]  # §5.3.1 [header-lengths]
        if after > len(data):
            return -1
        time, rest = _TWO_WORDS(data, at - 1) if fmt < 2 else (*_WORD(data, at - 1), 0)
        time &= 0xFFFFFF
        extended = time == EXTENDED
        if extended:
            if after + 4 > len(data):
                return -1
            time = _WORD(data, after)[0]  # §5.3.1.3 [extended-when-full]
        if stream is None:
            stream = self._open(chunk_stream_id, fmt)
        # What a shorter header leaves out stays: §5.3.1.2.2 [type-1-same-stream],
        # §5.3.1.2.3 [type-2-same-length]
        changed = False
        if fmt < 2:  # §5.3.1.2.5 [length-is-of-message]
            length, type_id = rest >> 8, rest & 0xFF
            changed = length != stream.length or type_id != stream.type_id
            stream.length, stream.type_id = length, type_id
            if length > self.max_message:
                raise RemoteError(f"a message of {length} bytes")
        stream.extended = extended
        # For the rest of a message type 3 is but a SHOULD (§5.3.1.2.4).  Another type goes on with
        # it, its time ignored, unless length or message type differ: then a new message begins.
        if changed or not stream.partial:
            if stream.partial:
                self._drop(stream)
            stream.delta = time
            if fmt == 0:
                stream.timestamp = time  # §5.3.1.2.1 [type-0-is-absolute]
                # §5.3.1.2.5 [stream-id-is-little], RTMP Errata §4.2 [stream-id-is-little]
                stream.stream_id = _STREAM_ID(data, at + 7)[0]
            else:
                # §5.3.1.2.5 [delta-is-difference]
                stream.timestamp = (stream.timestamp + time) & TIMESTAMP_MASK
        self._begin_chunk(stream)
        return after + 4 if extended else after

    def _repeated(self, stream: _Incoming, data: bytes, at: int) -> int:
        """Read the extended timestamp of a type 3, if there is one at `at`: §5.3.1.2.4, §5.3.1.3.

        The extended time must be there again (RTMP Errata §5.1), but some peers leave it out.
        Four bytes that are neither time nor delta are payload: Field §"Absent extended time".
        """
        timestamp = stream.timestamp
        if not stream.partial:
            # A new message: §5.3.1.2.4 [type-3-takes-all] [type-3-after-type-0]
            timestamp = (timestamp + stream.delta) & TIMESTAMP_MASK
        if stream.extended:
            found = data[at : at + 4]  # §5.3.1.3 [extended-on-type-3]
            wanted = stream.delta.to_bytes(4, "big"), timestamp.to_bytes(4, "big")
            if found in wanted:
                at += 4
            elif len(found) < 4 and any(each.startswith(found) for each in wanted):
                return -1
        stream.timestamp = timestamp
        self._begin_chunk(stream)
        return at

    def _open(self, chunk_stream_id: int, fmt: int) -> _Incoming:
        """Begin a chunk stream by type 0, or 1 as librtmp: §5.3.1.2.1, Field §"Type 1 first"."""
        if fmt == 2:
            raise RemoteError(f"chunk stream {chunk_stream_id} begins with type 2")
        if len(self._streams) >= self.max_streams:
            raise RemoteError(f"more than {self.max_streams} chunk streams")
        self._account.take(STREAM_COST)
        stream = self._streams[chunk_stream_id] = _Incoming()
        return stream

    def _begin_chunk(self, stream: _Incoming) -> None:
        self._stream = stream  # messages grow apart: §5.3 [by-chunk-stream]
        left = stream.length - len(stream.partial)
        self._left = left if left < self.chunk_size else self.chunk_size

    def _collect(self, stream: _Incoming, piece: bytes) -> bytes:
        """Add a piece of a message; give the whole payload, or nothing yet (b"")."""
        stream.partial += piece
        self._unfinished += len(piece)
        if self._unfinished > self._paid:
            self._pay()
        if len(stream.partial) < stream.length:
            return b""
        payload = bytes(stream.partial)
        self._drop(stream)
        return payload

    def _pay(self) -> None:
        """Pay for unfinished messages, in whole blocks, so that most chunks need no such call."""
        most = 2 * self.max_message
        if self._unfinished > most:
            raise RemoteError("too many unfinished messages")
        needed = min(most, -(-self._unfinished // BLOCK) * BLOCK)
        self._account.take(needed - self._paid)
        self._paid = needed

    def _drop(self, stream: _Incoming) -> None:
        self._unfinished -= len(stream.partial)
        stream.partial.clear()
        if self._paid > BLOCK and not self._unfinished:  # the first block will be needed again
            self._account.give(self._paid - BLOCK)
            self._paid = BLOCK

    def _obey(self, message: Message) -> None:
        """Obey a message of type 1 or 2: §5.4.1, §5.4.2."""
        if message.type_id == MessageType.SET_CHUNK_SIZE:
            # §5.4.1 [size-until-further-notice], §5.3 [size-per-direction]
            self.chunk_size = SetChunkSize.parse(message.payload).size
        elif message.type_id == MessageType.ABORT:
            # §5.4.2 [abort-names-chunk-stream]
            aborted = self._streams.get(Abort.parse(message.payload).chunk_stream_id)
            if aborted is not None:
                # §5.4.2 [abort-discards], RTMP Errata §6 [abort-then-new] [aborted-time-counts]
                self._drop(aborted)
