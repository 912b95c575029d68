"""Options, chunks and packets of RTMFP, and the ways of the wire that our own encoder never takes.

Own design, over RFC 7016 §2.  `long_vlus` and `received_packets` make what a receiver has to take
though our encoders never write it: longer numbers, reserved bits, chunks to ignore, padding.
"""

from dataclasses import replace
from functools import cache
from itertools import chain
from typing import cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from rtmplite.rtmfp.wire import chunks
from rtmplite.rtmfp.wire.address import Origin, SocketAddress
from rtmplite.rtmfp.wire.flow_chunks import FragmentControl
from rtmplite.rtmfp.wire.option import Option
from rtmplite.rtmfp.wire.packet import Mode, Packet
from rtmplite.rtmfp.wire.vlu import encode_vlu

_EDGES = [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, (1 << 32) - 1, (1 << 64) - 1]
_SESSION_IDS = st.integers(0, (1 << 32) - 1)
_SMALL = st.integers(1, 300)
_TIMES = st.none() | st.sampled_from([0, 1, 0x7FFF, 0x8000, 0xFFFF]) | st.integers(0, 0xFFFF)
_BYTES = st.integers(0, 255)
_MODES = st.sampled_from([Mode.INITIATOR, Mode.RESPONDER, Mode.STARTUP])
_CONTROLS = st.sampled_from(FragmentControl)
_RUNS = [st.tuples(st.integers(1, gap), _SMALL) for gap in (3, 40, 1 << 20)]
_ALL_RUNS = st.one_of([st.lists(runs, max_size=12) for runs in _RUNS])
_CUT_RANGES = st.sampled_from([b"", b"\x05", b"\x85", b"\x05\x85"])
_RESERVED = st.sampled_from([0, 0x10, 0x20, 0x30])
_OF_ONE_MODE = chunks.STARTUP_TYPES | chunks.SESSION_TYPES
_UNKNOWN_TYPES = sorted({0xEC, *range(1, 0xFF)} - set(chunks.PARSERS))


@cache
def numbers() -> SearchStrategy[int]:
    """Whole numbers of up to 64 bits, with a liking for where a VLU grows: RFC 7016 §2.1.2."""
    return st.integers(0, 200) | st.sampled_from(_EDGES) | st.integers(0, (1 << 64) - 1)


@cache
@st.composite
def long_vlus(draw: DrawFn) -> tuple[int, bytes]:
    """A number, and a VLU of it that begins with digits of 0: RFC 7016 §2.1.2."""
    number, zeros = draw(numbers()), draw(st.integers(0, 12))
    return number, b"\x80" * zeros + encode_vlu(number)


@cache
def blobs() -> SearchStrategy[bytes]:
    """Own design: bytes without meaning, some beyond the 127 that one byte of length counts."""
    return st.binary(max_size=24) | st.sampled_from([bytes(128), b"\xff" * 300])


@cache
def openings() -> SearchStrategy[tuple[Option, ...]]:
    """The options of a new flow, with some that a receiver ignores: RFC 7016 §2.3.11.1."""
    more = st.builds(Option, st.integers(0x2000, 1 << 20), blobs())
    answered = numbers().map(lambda flow: Option(0x0A, encode_vlu(flow)))
    some = st.tuples(st.builds(Option, st.just(0), blobs()), st.none() | answered, st.none() | more)
    return some.flatmap(lambda drawn: st.permutations([each for each in drawn if each])).map(tuple)


@cache
def options() -> SearchStrategy[Option]:
    """Options of any type: RFC 7016 §2.1.3."""
    kinds = st.sampled_from([0x00, 0x0A, 0x1FFF, 0x2000]) | numbers()
    return st.builds(Option, kinds, blobs())


@cache
def option_lists() -> SearchStrategy[tuple[Option, ...] | None]:
    """The options before user data: no list, or one of any length: RFC 7016 §2.3.11."""
    return st.none() | st.lists(options(), max_size=3).map(tuple)


@cache
def addresses() -> SearchStrategy[SocketAddress]:
    """IPv4 and IPv6 addresses, spelled as `parse_address` spells them: RFC 7016 §2.1.5."""
    texts = st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str)
    return st.builds(SocketAddress, texts, st.integers(0, 0xFFFF), st.sampled_from(Origin))


@cache
def startup_chunks() -> SearchStrategy[chunks.Chunk]:
    """The chunks of packets of mode 3: RFC 7016 §2.3.2 and §2.3.4 to §2.3.8."""
    destinations = st.lists(addresses(), max_size=3).map(tuple)
    blob = blobs()
    return cast(
        SearchStrategy[chunks.Chunk],
        st.one_of(
            st.builds(chunks.InitiatorHello, blob, blob),
            st.builds(chunks.ResponderHello, blob, blob, blob),
            st.builds(chunks.ResponderRedirect, blob, destinations),
            st.builds(chunks.RHelloCookieChange, blob, blob),
            st.builds(chunks.InitiatorInitialKeying, _SESSION_IDS, blob, blob, blob, blob),
            st.builds(chunks.ResponderInitialKeying, _SESSION_IDS, blob, blob),
            fragments(),
            unknown_chunks(),
        ),
    )


@cache
def session_chunks() -> SearchStrategy[chunks.Chunk]:
    """The chunks of packets of modes 1 and 2: RFC 7016 §2.3.1, §2.3.3 and §2.3.9 to §2.3.18."""
    return cast(
        SearchStrategy[chunks.Chunk],
        st.one_of(
            user_data(),
            next_user_data(),
            bitmap_acks(),
            range_acks(),
            st.builds(chunks.ForwardedInitiatorHello, blobs(), addresses(), blobs()),
            st.builds(chunks.Ping, blobs()),
            st.builds(chunks.PingReply, blobs()),
            st.builds(chunks.BufferProbe, numbers()),
            st.builds(chunks.FlowException, numbers(), numbers()),
            st.just(chunks.SessionClose()),
            st.just(chunks.SessionCloseAck()),
            fragments(),
            unknown_chunks(),
        ),
    )


@cache
def fragments() -> SearchStrategy[chunks.Fragment]:
    """Pieces of packets, which go with every mode: RFC 7016 §2.3.1."""
    pieces = st.binary(min_size=1, max_size=24)
    return st.builds(chunks.Fragment, numbers(), numbers(), pieces, st.booleans())


@cache
def unknown_chunks() -> SearchStrategy[chunks.UnknownChunk]:
    """Chunks of types that nobody has defined: RFC 7016 §2.3."""
    return st.builds(chunks.UnknownChunk, st.sampled_from(_UNKNOWN_TYPES), blobs())


@cache
@st.composite
def user_data(draw: DrawFn) -> chunks.UserData:
    """User data whose Forward Sequence Number is possible: RFC 7016 §2.3.11."""
    abandon, number = draw(st.booleans()), draw(numbers())
    if not abandon:
        number = max(number, 1)
    offset = min(draw(numbers()), number) if abandon else draw(st.integers(1, number))
    control, final = draw(_CONTROLS), draw(st.booleans())
    return chunks.UserData(
        draw(numbers()),
        number,
        offset,
        draw(blobs()),
        control,
        abandon,
        final,
        draw(option_lists()),
    )


@cache
def next_user_data() -> SearchStrategy[chunks.NextUserData]:
    """Next User Data chunks, which follow user data: RFC 7016 §2.3.12."""
    flag = st.booleans()
    return st.builds(chunks.NextUserData, blobs(), _CONTROLS, flag, flag, option_lists())


@cache
def bitmap_acks() -> SearchStrategy[chunks.DataAckBitmap]:
    """Acknowledgements with any bits, trailing zeros too: RFC 7016 §2.3.13."""
    bits = st.binary(max_size=8)
    return st.builds(chunks.DataAckBitmap, numbers(), numbers(), numbers(), bits)


@cache
def range_acks() -> SearchStrategy[chunks.DataAckRanges]:
    """Acknowledgements with any runs: RFC 7016 §2.3.14."""
    run = _SMALL | st.integers(1, 1 << 64)
    runs = st.lists(st.tuples(run, run), max_size=5).map(lambda pairs: tuple(chain(*pairs)))
    return st.builds(chunks.DataAckRanges, numbers(), numbers(), numbers(), runs)


@cache
@st.composite
def received(draw: DrawFn) -> tuple[tuple[int, int], ...]:
    """Ranges to acknowledge, dense or far apart, the first from 0: RFC 7016 §3.6.3.4."""
    last = draw(numbers())
    found = [(0, last)]
    for missing, more in draw(_ALL_RUNS):
        found.append((last + missing + 1, last + missing + more))
        last += missing + more
    return tuple(found)


@cache
@st.composite
def packets(draw: DrawFn) -> Packet:
    """Packets of every mode that is allowed, with chunks that go with it: RFC 7016 §2.2.4."""
    mode = draw(_MODES)
    kind = startup_chunks() if mode is Mode.STARTUP else session_chunks()
    inside = tuple(draw(st.lists(kind, max_size=4)))
    flag = st.booleans()
    return Packet(mode, inside, draw(_TIMES), draw(_TIMES), draw(flag), draw(flag))


@cache
def padding() -> SearchStrategy[bytes]:
    """Ends of packets in which no chunk begins, or none that fits: RFC 7016 §2.2.4."""
    too_long = st.tuples(_BYTES, st.binary(max_size=12)).map(
        lambda parts: bytes((parts[0], 0xFF, 0xFF)) + parts[1]
    )
    return st.integers(0, 40).map(lambda count: b"\xff" * count) | st.binary(max_size=2) | too_long


def _received(draw: DrawFn, chunk: chunks.Chunk) -> bytes:
    data = chunks.encode_chunk(chunk)
    if not isinstance(chunk, chunks.DataAckRanges):
        return data
    data += draw(_CUT_RANGES)
    return data[:1] + (len(data) - chunks.HEADER_LENGTH).to_bytes(2, "big") + data[3:]


@cache
def _ignored(at_startup: bool) -> SearchStrategy[bytes]:
    """What is passed over: chunks of the other modes, or of the padding types, or nothing."""
    other = session_chunks() if at_startup else startup_chunks()
    foreign = other.filter(lambda chunk: chunk.type_id in _OF_ONE_MODE).map(chunks.encode_chunk)
    return st.just(b"") | foreign | st.sampled_from([b"\0\0\0", b"\xff\0\x01!", b"\0\0\x02!!"])


@cache
@st.composite
def received_packets(draw: DrawFn) -> tuple[Packet, bytes]:
    """A packet, and bytes that a receiver reads it from: RFC 7016 §2.2.4 and §2.3.

    They may have reserved bits set, chunks of the padding types or of the other modes in between,
    padding at the end, and in acknowledgements a last range that is cut off (RFC 7016 §2.3.14).
    """
    packet = draw(packets())
    head = bytearray(replace(packet, chunks=()).encode())
    head[0] |= draw(_RESERVED)
    ignored = _ignored(packet.mode is Mode.STARTUP)
    wire = [draw(ignored) + _received(draw, chunk) for chunk in packet.chunks]
    return packet, b"".join((bytes(head), *wire, draw(ignored), draw(padding())))
