"""RTMP chunk streams and messages that every reader must refuse.

Own design, over RTMP 1.0 §5.3, §5.4, §6.2 and §7.1.  Too long, too many or too often is no fault
here: each reader has limits of its own.
"""

from struct import pack
from typing import Final

from hypothesis import strategies as st

from rtmplite.amf import amf0
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.strategies.faults import Fault, Octets
from rtmplite.strategies.rtmp import chunk_streams

_UNUSED: Final = st.sampled_from([4, 40, 62, 65, 300])  # chunk streams that no valid draw uses
_U32: Final = st.integers(0, 0xFFFFFFFF)
_EVENTS: Final = [0, 1, 2, 3, 4, 6, 7]


def _basic(fmt: int) -> Octets:
    """A basic header for a chunk stream that has not begun: RTMP 1.0 §5.3.1.1."""

    def write(number: int) -> bytes:
        if number < 64:
            return bytes((fmt << 6 | number,))
        if number < 320:
            return bytes((fmt << 6, number - 64))
        return bytes((fmt << 6 | 1, number - 64 & 0xFF, number - 64 >> 8))

    return _UNUSED.map(write)


def _chunk(number: int, type_id: int, payload: bytes) -> bytes:
    """One message in one chunk of type 0: RTMP 1.0 §5.3.1.2.1."""
    return bytes((number, 0, 0, 0)) + pack(">IBI", len(payload), type_id, 0)[1:] + payload


def _in_chunk(name: str, section: str, type_id: int, payloads: Octets) -> Fault[bytes]:
    """A broken message about chunks, alone or after another message."""
    before = st.just(b"") | st.binary(max_size=99).map(lambda data: _chunk(3, 20, data))
    broken_one = payloads.map(lambda payload: _chunk(2, type_id, payload))
    return Fault(name, f"RTMP 1.0 §{section}", st.tuples(before, broken_one).map(b"".join))


def _begun(name: str, section: str, fmt: int) -> Fault[bytes]:
    """A chunk stream that begins with a short header: no earlier one has its fields."""
    before = st.just(b"") | chunk_streams().map(lambda drawn: drawn[0])
    parts = st.tuples(before, _basic(fmt), st.binary(min_size=8, max_size=12))
    return Fault(name, f"RTMP 1.0 §{section}", parts.map(b"".join))


CHUNK_FAULTS: Final = (
    _begun("type 2 first", "5.3.1.2.1", 2),
    _begun("type 3 first", "5.3.1.2.1", 3),
    _in_chunk("chunk size of 0", "5.4.1", MessageType.SET_CHUNK_SIZE, st.just(bytes(4))),
    _in_chunk(
        "chunk size with its first bit",
        "5.4.1",
        MessageType.SET_CHUNK_SIZE,
        st.integers(1 << 31, (1 << 32) - 1).map(lambda size: pack(">I", size)),
    ),
    _in_chunk("chunk size cut", "5.4.1", MessageType.SET_CHUNK_SIZE, st.binary(max_size=3)),
    _in_chunk("abort cut", "5.4.2", MessageType.ABORT, st.binary(max_size=3)),
)
"""Every fault of a chunk stream: RTMP 1.0 §5.3 and §5.4."""


def _message(
    name: str, clause: str, type_id: int, payloads: Octets, stream_ids: tuple[int, ...] = (0,)
) -> Fault[Message]:
    streams = st.sampled_from(stream_ids)
    return Fault(name, clause, st.builds(Message, st.just(type_id), _U32, streams, payloads))


def _event(name: str, kinds: list[int], most: int) -> Fault[Message]:
    """An event of `kinds` with `most` bytes of data at most, which are too few."""
    heads = st.sampled_from(kinds).map(lambda kind: pack(">H", kind))
    payloads = st.tuples(heads, st.binary(max_size=most)).map(b"".join)
    return _message(name, "RTMP 1.0 §7.1.7", MessageType.USER_CONTROL, payloads)


CONTROL_FAULTS: Final = (
    _message(
        "chunk size cut", "RTMP 1.0 §5.4.1", MessageType.SET_CHUNK_SIZE, st.binary(max_size=3)
    ),
    _message(
        "chunk size out of range",
        "RTMP 1.0 §5.4.1",
        MessageType.SET_CHUNK_SIZE,
        st.sampled_from([0, 1 << 31, 0xFFFFFFFF]).map(lambda size: pack(">I", size)),
    ),
    _message("abort cut", "RTMP 1.0 §5.4.2", MessageType.ABORT, st.binary(max_size=3)),
    _message(
        "acknowledgement cut", "RTMP 1.0 §5.4.3", MessageType.ACKNOWLEDGEMENT, st.binary(max_size=3)
    ),
    _message(
        "window cut",
        "RTMP 1.0 §5.4.4",
        MessageType.WINDOW_ACKNOWLEDGEMENT_SIZE,
        st.binary(max_size=3),
    ),
    _message(
        "bandwidth cut", "RTMP 1.0 §5.4.5", MessageType.SET_PEER_BANDWIDTH, st.binary(max_size=4)
    ),
    _message(
        "unknown limit type",
        "RTMP 1.0 §5.4.5",
        MessageType.SET_PEER_BANDWIDTH,
        st.builds(lambda size, kind: pack(">IB", size, kind), _U32, st.integers(3, 255)),
    ),
    _message(
        "event without type", "RTMP 1.0 §6.2", MessageType.USER_CONTROL, st.binary(max_size=1)
    ),
    _event("event cut", _EVENTS, 3),
    _event("buffer length cut", [3], 7),
)
"""Every fault of protocol control and user control: RTMP 1.0 §5.4 and §6.2."""


def _command(name: str, clause: str, payloads: Octets, type_id: int = 20) -> Fault[Message]:
    return _message(name, clause, type_id, payloads, (0, 1))


_NO_NAME: Final = st.none() | st.floats() | st.booleans() | st.dictionaries(st.just("a"), st.none())
_NO_NUMBER: Final = st.none() | st.booleans() | st.text(max_size=4)
_BROKEN_VALUES: Final = st.sampled_from(  # AMF0: `amf_faults` has them all
    [b"\x02\x00\x05ab", b"\x0a\0\0\0\x09", b"\x04", b"\x07\0\x09", b"\x55", b"\x03\0\x01a", b"\0"]
)
_PLAY: Final = amf0.encode("play", 0.0, None)

COMMAND_FAULTS: Final = (
    _command("empty command", "RTMP 1.0 §7.1.1", st.just(b"")),
    _command("no name", "RTMP 1.0 §7.1.1", st.builds(amf0.encode, _NO_NAME, st.floats())),
    _command("no transaction id", "RTMP 1.0 §7.1.1", st.builds(amf0.encode, st.text(), _NO_NUMBER)),
    _command("broken argument", "AMF0 §2.1", _BROKEN_VALUES.map(_PLAY.__add__)),
    _command("format without a byte", "RTMP Errata §7.2", st.just(b""), 17),
    _command(
        "unknown format",
        "RTMP Errata §7.2",
        st.integers(1, 255).map(lambda form: bytes((form,)) + _PLAY),
        17,
    ),
    _command("another type", "RTMP 1.0 §7.1.1", st.builds(amf0.encode, st.text(), st.floats()), 18),
)
"""Every fault of a command: RTMP 1.0 §7.1.1, RTMP Errata §7.2."""

_OBJECT: Final = b"\x00\x01s" + bytes(12)  # name, version and flags of a shared object


def _shared(name: str, payloads: Octets, type_id: int = 19) -> Fault[Message]:
    return _message(name, "RTMP 1.0 §7.1.3", type_id, payloads)


def _change(payloads: Octets) -> Octets:
    """A Change event, all of whose octets are there, around broken data."""
    return payloads.map(lambda data: _OBJECT + pack(">BI", 4, len(data)) + data)


SHARED_OBJECT_FAULTS: Final = (
    _shared("name cut", st.integers(1, 9).map(lambda size: pack(">H", size) + b"s" * (size - 1))),
    _shared("header cut", st.integers(3, 14).map(lambda size: _OBJECT[:size])),
    _shared("event header cut", st.integers(1, 4).map(lambda size: _OBJECT + bytes(size))),
    _shared(
        "event cut",
        st.integers(1, 1 << 31).map(
            lambda size: _OBJECT + pack(">BI", 8, size) + bytes(9)[: size - 1]
        ),
    ),
    _shared("slot name cut", _change(st.sampled_from([b"", b"\0", b"\0\x01", b"\0\x02a"]))),
    _shared("slot value broken", _change(_BROKEN_VALUES.map(b"\x00\x01a".__add__))),
    _shared("another type", st.just(_OBJECT), 20),
    _shared("unknown format", st.integers(1, 255).map(lambda form: bytes((form,)) + _OBJECT), 16),
)
"""Every fault of a shared object message: RTMP 1.0 §7.1.3."""


def _part(size: int, payload: bytes) -> bytes:
    """A part of an aggregate that announces `size` bytes: RTMP 1.0 §7.1.6."""
    return pack(">II3x", MessageType.AUDIO << 24 | size, 0) + payload


def _aggregate(name: str, last: Octets) -> Fault[Message]:
    whole = st.binary(max_size=9).map(lambda data: _part(len(data), data) + bytes(4))
    before = st.lists(whole, max_size=3).map(b"".join)
    parts = st.tuples(before, last).map(b"".join)
    return _message(name, "RTMP 1.0 §7.1.6", MessageType.AGGREGATE, parts, (1,))


AGGREGATE_FAULTS: Final = (
    _aggregate("part header cut", st.integers(1, 10).map(lambda size: _part(9, b"")[:size])),
    _aggregate(
        "part cut", st.integers(1, 0xFFFFFF).map(lambda size: _part(size, bytes(9)[: size - 1]))
    ),
)
"""Every fault of an aggregate message: RTMP 1.0 §7.1.6."""
