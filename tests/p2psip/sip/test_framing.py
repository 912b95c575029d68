"""A stream comes apart into the same messages however it is cut."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import RemoteError
from p2psip.sip.framing import KeepAlive, Malformed, StreamFramer
from p2psip.sip.message import parse_message
from p2psip.sip.message_limits import MAX_HEAD
from p2psip.strategies.sip import messages

REQUEST = b"OPTIONS sip:a@b SIP/2.0\r\nContent-Length: 2\r\n\r\nhi"
PING = [KeepAlive.PONG, KeepAlive.PING]
streams = st.lists(messages().map(bytes) | st.just(b"\r\n"), max_size=4).map(b"".join)


def told(items):
    """Items as values that compare: errors have no equality of their own."""
    return [
        (item.error.status, item.error.reason, item.data, item.fatal)
        if isinstance(item, Malformed)
        else item
        for item in items
    ]


@given(st.lists(messages(), max_size=4))
def test_messages_come_out_as_they_went_in(sent):
    """Covers RFC 3261 §18.3 [length-on-streams]."""
    assert StreamFramer().feed(b"".join(map(bytes, sent))) == sent


@given(mutations(streams), st.integers(1, 50))
def test_cuts_make_no_difference(stream, size):
    """Covers RFC 3261 §18.3, also where the stream is broken."""
    whole = StreamFramer(limit=300)
    items = told(whole.feed(stream))
    for step in (1, size):
        cut = StreamFramer(limit=300)
        pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
        assert told([item for piece in pieces for item in cut.feed(memoryview(piece))]) == items
        assert cut.broken == whole.broken
    event("broken" if whole.broken else "sound")


def test_pings_and_pongs_between_messages():
    """Covers RFC 5626 §3.5.1 and RFC 3261 §7.5 [crlf-before-a-message]."""
    message = parse_message(REQUEST)
    framer = StreamFramer()
    assert framer.feed(b"\r\n\r\n" + REQUEST + b"\r\n" + REQUEST) == [
        *PING, message, KeepAlive.PONG, message,
    ]  # fmt: skip
    assert framer.feed(b"\r\n\r\n\r\n") == [*PING, KeepAlive.PONG]
    assert framer.feed(b"\r") == [] and framer.feed(b"\n") == [KeepAlive.PING]


@pytest.mark.parametrize("beat", [b"\r\n\0", b"\r\n\r\n\0", b"\0\0\0\0"])
def test_octets_of_zero_between_messages_are_no_part_of_them(beat):
    """Covers Field §"Keep-alives of other kinds"."""
    message = b"OPTIONS sip:a@b SIP/2.0\r\nContent-Length: 0\r\n\r\n"
    for size in (1, 1000):
        framer, stream = StreamFramer(), message + beat + message
        found = [framer.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
        read = [each for items in found for each in items if not isinstance(each, KeepAlive)]
        assert read == [parse_message(message)] * 2 and not framer.broken


def test_a_malformed_message_does_not_end_the_stream():
    """Covers RFC 3261 §18.3: its length is known, so the next one is found."""
    bad = REQUEST.replace(b"SIP/2.0", b"SIP/7.0\r\nVia: SIP/2.0/TCP host.example.com")
    first, second = StreamFramer().feed(bad + REQUEST)
    assert (first.error.status, first.data, first.fatal) == (505, bad, False)
    assert second == parse_message(REQUEST)


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (REQUEST.replace(b"h: 2", b"h: -2"), 400),
        (REQUEST.replace(b"h: 2", b"h: five"), 400),
        (REQUEST.replace(b"h: 2", b"h: 2\r\nl: 3"), 400),
        (REQUEST.replace(b"Content-Length: 2\r\n", b""), 400),
        (REQUEST.replace(b"h: 2", b"h: 400"), 513),
        (REQUEST.replace(b"h: 2", b"h: 2\r\nSubject: " + b"x" * 400), 513),
        (b"x" * 400, 513),
        (b"x\r\nl:0\r\n\r\n", 400),
        (REQUEST.replace(b"SIP/2.0\r\n", b"SIP/2.0\n"), 400),
    ],
)
def test_where_no_length_can_be_trusted_the_stream_ends(stream, status):
    """Covers RFC 3261 §18.3 [length-on-streams] and RFC 4475 §3.1.2.3, §3.3.9."""
    framer = StreamFramer(limit=400)
    first, error = framer.feed(REQUEST + stream + REQUEST)
    assert first == parse_message(REQUEST)
    assert isinstance(error, Malformed) and error.fatal and framer.broken
    assert isinstance(error.error, RemoteError) and error.error.status == status
    assert framer.feed(REQUEST) == []


def test_folded_and_compact_lengths_are_found():
    """Covers RFC 3261 §7.3.1, §7.3.3 and §25.1 [folds-are-spaces]."""
    for spelling in (b"l:2", b"L\t:\r\n 2", b"CONTENT-LENGTH : 0002 "):
        stream = REQUEST.replace(b"Content-Length: 2", spelling)
        assert StreamFramer().feed(stream) == [parse_message(REQUEST)]


def test_no_stream_swells():
    """Own design: memory stays in proportion to the input."""
    for stream in (b"\r\n" * 30000, b"a:\r\n" * 15000 + b"\r\n", b"x\r\nl:0\r\n\r\n" * 6000):
        assert peak(lambda stream=stream: StreamFramer().feed(stream)) <= 32 * len(stream) + 65536


def test_waiting_for_the_end_of_a_head_is_linear():
    """Own design: octets that trickle in are searched once."""
    framer = StreamFramer()
    for _ in range(MAX_HEAD):
        framer.feed(b"x")
    assert not framer.broken
    assert framer.feed(b"x")[0].error.status == 513


def test_a_message_a_little_over_64_kib_is_read():
    """Covers RFC 3261 §18.1.1: a body may fill a datagram, and its head comes on top."""
    head = b"MESSAGE sip:bob@b SIP/2.0\r\nContent-Length: 65507\r\n\r\n"
    items = StreamFramer().feed(head + b"x" * 65_507)
    assert [len(item.body) for item in items] == [65_507]
