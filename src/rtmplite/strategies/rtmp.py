"""Messages, commands and chunks, the latter by every freedom that the chunk stream gives a sender.

Own design, over RTMP 1.0 §5.3 and §5.4.  `chunk_streams` shares no code with `ChunkWriter`: it
interleaves messages, takes longer headers than needed, changes the chunk size in between and
abandons messages half way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from struct import pack
from typing import TypeAlias, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.strategies import amf

_U32 = st.integers(0, 0xFFFFFFFF)
_PLAIN_TYPES = st.just(0) | st.integers(3, 255)  # 1 and 2 mean something to the reader itself
_STREAM_IDS = st.sampled_from([0, 1, 0xFFFFFF, 0x01020304])
_LENGTHS = st.sampled_from([0, 1, 60, 127, 128, 129, 256, 300])
_IDS = st.sampled_from([2, 3, 63, 64, 319, 320, 65599])
_REPEATS = st.sampled_from([1, 1, 1, 2, 3])
_NO_ID = 77  # of no chunk stream that is drawn
_EXTENDED = 0xFFFFFF


@cache
def timestamps() -> SearchStrategy[int]:
    """Times in ms, with a liking for the edges of RTMP 1.0 §5.3.1.3 and of the 32 bits."""
    edges = st.sampled_from([0, _EXTENDED - 1, _EXTENDED, _EXTENDED + 1, 0x7FFFFFFF, 0xFFFFFFFF])
    return st.integers(0, 5000) | edges | _U32


@cache
def messages() -> SearchStrategy[Message]:
    """Messages that chunks carry without looking into them: RTMP 1.0 §6.1.1."""
    payloads = st.binary(max_size=20) | _LENGTHS.map(lambda length: bytes(range(256)) * 2)
    return st.builds(
        lambda kind, time, stream, payload, length: Message(kind, time, stream, payload[:length]),
        _PLAIN_TYPES,
        timestamps(),
        _STREAM_IDS,
        payloads,
        _LENGTHS,
    )


@cache
def commands() -> SearchStrategy[Command]:
    """Commands with any arguments: RTMP 1.0 §7.1.1."""
    names = st.sampled_from(["connect", "play", "_result", "onStatus"]) | st.text("aé", max_size=9)
    arguments = st.lists(amf.values(4), max_size=3).map(tuple)
    numbers = st.floats(0, 1e9) | st.integers(0, 99).map(float)
    return st.builds(Command, names, numbers, amf.values(6), arguments)


@cache
def controls() -> SearchStrategy[control.Control]:
    """Protocol control and user control of every kind: RTMP 1.0 §5.4 and §7.1.7."""
    limits = st.sampled_from(control.LimitType)
    unknown = st.sampled_from([5, *range(8, 40), 0xFFFF])
    return cast(
        SearchStrategy[control.Control],
        st.one_of(
            st.builds(control.SetChunkSize, st.integers(1, 0x7FFFFFFF)),
            st.builds(control.Abort, _U32),
            st.builds(control.Acknowledgement, _U32),
            st.builds(control.WindowAcknowledgementSize, _U32),
            st.builds(control.SetPeerBandwidth, _U32, limits),
            st.builds(control.StreamBegin, _U32),
            st.builds(control.StreamEof, _U32),
            st.builds(control.StreamDry, _U32),
            st.builds(control.SetBufferLength, _U32, _U32),
            st.builds(control.StreamIsRecorded, _U32),
            st.builds(control.PingRequest, _U32),
            st.builds(control.PingResponse, _U32),
            st.builds(control.OtherUserControl, unknown, st.binary(max_size=12)),
        ),
    )


_Known: TypeAlias = tuple[int, int, int, int, int]  # time, field, length, type, stream of the last


@dataclass(slots=True)
class _Sender:
    """A sender that takes any way RTMP 1.0 §5.3 leaves open."""

    choose: Callable[[SearchStrategy[int]], int]
    size: int = 128
    out: bytearray = field(default_factory=bytearray)
    complete: list[Message] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # where each of these is complete
    known: dict[int, _Known] = field(default_factory=dict)
    half: dict[int, tuple[Message, int]] = field(default_factory=dict)  # message, bytes sent

    def basic(self, fmt: int, number: int) -> bytes:
        rest = number - 64
        forms = []
        if number < 64:
            forms.append(bytes((fmt << 6 | number,)))
        if 0 <= rest < 256:
            forms.append(bytes((fmt << 6, rest)))
        if rest >= 0:
            forms.append(bytes((fmt << 6 | 1, rest & 255, rest >> 8)))
        return forms[self.choose(st.integers(0, len(forms) - 1))]

    def header(self, number: int, message: Message, fmt: int, delta: int) -> None:
        value = message.timestamp if fmt == 0 else delta
        known = message.timestamp, value, len(message.payload), message.type_id, message.stream_id
        self.known[number] = known
        time = min(value, _EXTENDED).to_bytes(3, "big")
        shape = len(message.payload).to_bytes(3, "big") + bytes((message.type_id,))
        parts = (time, shape, message.stream_id.to_bytes(4, "little"))
        self.out += self.basic(fmt, number) + b"".join(parts[: 3 - fmt])
        if value >= _EXTENDED:
            self.out += pack(">I", value)

    def begin(self, number: int, message: Message) -> None:
        """Open a message with one of the header types that can say it."""
        possible, delta = [0], 0
        if number in self.known:
            time, last, length, kind, stream = self.known[number]
            delta = (message.timestamp - time) & 0xFFFFFFFF
            if stream == message.stream_id:
                possible.append(1)
                if (length, kind) == (len(message.payload), message.type_id):
                    possible += [2, 3] if delta == last else [2]
        self.header(
            number, message, possible[self.choose(st.integers(0, len(possible) - 1))], delta
        )
        self.data(number, message, 0)

    def go_on(self, number: int) -> None:
        message, sent = self.half.pop(number)
        value = self.known[number][1]
        self.out += self.basic(3, number) + (pack(">I", value) if value >= _EXTENDED else b"")
        self.data(number, message, sent)

    def data(self, number: int, message: Message, sent: int) -> None:
        piece = message.payload[sent : sent + self.size]
        self.out += piece
        if sent + len(piece) == len(message.payload):
            self.complete.append(message)
            self.ends.append(len(self.out))
        else:
            self.half[number] = message, sent + len(piece)

    def control(self, message: Message) -> None:
        self.header(2, message, 0, 0)
        self.data(2, message, 0)
        while 2 in self.half:
            self.go_on(2)


@cache
@st.composite
def chunk_streams(
    draw: DrawFn, of: SearchStrategy[Message] | None = None
) -> tuple[bytes, list[Message]]:
    """Bytes as any sender may cut messages of `of`, and the messages: RTMP 1.0 §5.3."""
    sender = _sent(draw, of)
    return bytes(sender.out), sender.complete


@cache
@st.composite
def cut_streams(draw: DrawFn) -> tuple[bytes, list[Message]]:
    """The beginning of such bytes, and the messages that are complete in it: RTMP 1.0 §5.3."""
    sender = _sent(draw, None)
    size = draw(st.integers(0, len(sender.out)))
    whole = sum(end <= size for end in sender.ends)
    return bytes(sender.out[:size]), sender.complete[:whole]


def _repeated(drawn: tuple[int, Message, int, int]) -> list[tuple[int, Message]]:
    """A message and others like it, `gap` ms apart or as far as from 0: RTMP 1.0 §5.3.1.2.4."""
    number, message, count, gap = drawn
    gap = gap or message.timestamp
    times = [(message.timestamp + gap * index) & 0xFFFFFFFF for index in range(count)]
    return [(number, message._replace(timestamp=time)) for time in times]


_STEPS = st.sampled_from("mmmmmsa")
_CHUNK_SIZES = st.sampled_from([1, 64, 128, 200, 4096, 0x7FFFFFFF])


@cache
def _below(count: int) -> SearchStrategy[int]:
    return st.sampled_from(range(count))


@cache
def _to_send(
    of: SearchStrategy[Message] | None,
) -> SearchStrategy[list[tuple[int, Message, int, int]]]:
    some = st.tuples(_IDS, messages() if of is None else of, _REPEATS, st.integers(0, 40))
    return st.lists(some, max_size=6)


def _sent(draw: DrawFn, of: SearchStrategy[Message] | None) -> _Sender:
    sender = _Sender(draw)
    waiting = list(chain.from_iterable(map(_repeated, draw(_to_send(of)))))
    while waiting or sender.half:
        step = draw(_STEPS)
        if step == "s" and 2 not in sender.half:
            size = draw(_CHUNK_SIZES)
            sender.control(Message(MessageType.SET_CHUNK_SIZE, 0, 0, pack(">I", size)))
            sender.size = size
        elif step == "a" and 2 not in sender.half:
            known = [*sorted(sender.half), _NO_ID]
            number = known[draw(_below(len(known)))]
            sender.control(Message(MessageType.ABORT, 0, 0, pack(">I", number)))
            sender.half.pop(number, None)
        else:
            ready = {number: False for number in sender.half}
            ready |= {number: True for number, _ in waiting[:3] if number not in sender.half}
            number = sorted(ready)[draw(_below(len(ready)))]
            if ready[number]:
                at = next(i for i, (each, _) in enumerate(waiting) if each == number)
                sender.begin(number, waiting.pop(at)[1])
            else:
                sender.go_on(number)
    return sender


_AUDIO_OR_VIDEO = st.sampled_from([MessageType.AUDIO, MessageType.VIDEO])
_LATER = st.integers(_EXTENDED, 0xFFFFFFFF).filter(lambda time: time != 0x3F3F3F3F)


@cache
def tolerated_streams() -> SearchStrategy[tuple[bytes, list[Message]]]:
    """What a sender should not do, and what our reader makes of it: RTMP 1.0 §5.3.1.2.4, §5.3.1.3.

    A long message goes on with another header than type 3; such a header is of another message; or
    an extended time is not there again.  Another reader may take it otherwise, or refuse it.
    """
    sizes, times = st.integers(129, 255), st.integers(0, 5000)
    gone_on = st.builds(_gone_on, _AUDIO_OR_VIDEO, times, sizes, st.integers(0, 2))
    return gone_on | st.builds(_untimed, _LATER, sizes) | st.builds(_begun_anew, times, sizes)


def _head(fmt: int, time: int, length: int, type_id: int) -> bytes:
    """The header of a chunk of chunk stream 4, and message stream 1: RTMP 1.0 §5.3.1."""
    parts = (time.to_bytes(3, "big"), pack(">IB", length, type_id)[1:], b"\1\0\0\0")
    return bytes((fmt << 6 | 4,)) + b"".join(parts[: 3 - fmt])


def _gone_on(type_id: int, time: int, size: int, fmt: int) -> tuple[bytes, list[Message]]:
    payload = b"?" * size
    first = _head(0, time, size, type_id) + payload[:128]
    return first + _head(fmt, 5, size, type_id) + payload[128:], [
        Message(type_id, time, 1, payload)
    ]


def _begun_anew(time: int, size: int) -> tuple[bytes, list[Message]]:
    lost = _head(0, 0, size, MessageType.VIDEO) + bytes(128)
    data = lost + _head(0, time, 1, MessageType.AUDIO) + b"?"
    return data, [Message(MessageType.AUDIO, time, 1, b"?")]


def _untimed(time: int, size: int) -> tuple[bytes, list[Message]]:
    """Field §"Absent extended time"."""
    payload = b"?" * size
    first = _head(0, _EXTENDED, size, MessageType.VIDEO) + pack(">I", time) + payload[:128]
    return first + b"\xc4" + payload[128:], [Message(MessageType.VIDEO, time, 1, payload)]


@cache
def _parts() -> SearchStrategy[list[tuple[int, int, bytes]]]:
    kinds = st.sampled_from([8, 9, 18, MessageType.AGGREGATE])
    return st.lists(st.tuples(kinds, timestamps(), st.binary(max_size=20)), max_size=4)


@cache
@st.composite
def aggregates(draw: DrawFn) -> tuple[Message, list[Message]]:
    """An aggregate, and the messages in it; aggregates within are left out: RTMP 1.0 §7.1.6."""
    time, stream = draw(timestamps()), draw(_STREAM_IDS)
    drawn = draw(_parts())
    payload, parts = bytearray(), []
    for kind, own, data in drawn:
        payload += pack(">I", kind << 24 | len(data)) + pack(">I", own)[1:] + pack(">B", own >> 24)
        payload += bytes(3) + data + pack(">I", 11 + len(data))
        if kind != MessageType.AGGREGATE:
            shifted = (own - drawn[0][1] + time) & 0xFFFFFFFF
            parts.append(Message(kind, shifted, stream, data))
    return Message(MessageType.AGGREGATE, time, stream, bytes(payload)), parts
