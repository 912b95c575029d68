"""The browser's side of a WebSocket may say anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations, peak
from support.wrong_frames import WRONG

from rtmplite.net.http import websocket

HEADERS = [
    ("Host", "x"),
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]
# A ping, a text in two pieces, a binary message, a close: all masked by zeros (RFC 6455 §5.2).
FRAMES = (
    b"\x89\x82\0\0\0\0hi",
    b"\x01\x83\0\0\0\0abc\x80\x80\0\0\0\0",
    b"\x82\xfe\0\x80\0\0\0\0" + bytes(128),
    b"\x88\x82\0\0\0\0\x03\xe8",
)

pytestmark = pytest.mark.skipif(not websocket.AVAILABLE, reason="wsproto is not installed")


def test_each_frame_is_understood():
    """A ping is answered, a close too, data is of no interest.

    Covers RFC 6455 §4.2.2 [handshake-is-answered], §5.1 [server-does-not-mask] and §5.5.1
    [close-is-answered] [answered-at-once].
    """
    web = websocket.WebSocket.accept(HEADERS, "/")
    answers = [web.receive(frame, 0.0) for frame in FRAMES]
    assert answers == [
        (b"\x8a\x02hi", False),
        (b"", False),
        (b"", False),
        (b"\x88\x02\x03\xe8", True),
    ]


def test_a_ping_between_fragments_is_answered():
    """Covers RFC 6455 §5.4 [control-among-fragments]: the message goes on, and the connection."""
    web = websocket.WebSocket.accept(HEADERS, "/")
    ping, text, _, close = FRAMES
    first, last = text[:9], text[9:]
    answers = [web.receive(frame, 0.0) for frame in (first, ping, last, ping, close)]
    pong = (b"\x8a\x02hi", False)
    assert answers == [(b"", False), pong, (b"", False), pong, (b"\x88\x02\x03\xe8", True)]


def test_one_pong_answers_all_pings_of_a_read():
    """Covers RFC 6455 §5.5.3 [last-ping-alone], §5.5.2 [ping-is-answered] [answered-soon]."""
    web = websocket.WebSocket.accept(HEADERS, "/")
    pings = b"".join(b"\x89\x82\0\0\0\0%02d" % number for number in range(50))
    assert web.receive(pings, 0.0) == (b"\x8a\x0249", False)
    assert web.receive(b"\x89\x81\0\0\0\0a" + FRAMES[-1], 0.0) == (
        b"\x8a\x01a\x88\x02\x03\xe8",
        True,
    )


def test_a_viewer_that_says_too_much_is_closed():
    """Players say next to nothing; what they said a minute ago does not count."""
    web, ping = websocket.WebSocket.accept(HEADERS, "/"), b"\x89\x80\0\0\0\0"
    for number in range(3):
        moment = number * (websocket.FRAMES_SECONDS + 1) + 1
        assert web.receive(ping * websocket.MAX_FRAMES, moment) == (b"\x8a\0", False)
    assert web.receive(ping, moment) == (b"\x88\x02\x03\xf0", True)


@pytest.mark.parametrize(("frame", "code"), WRONG)
def test_a_frame_that_is_wrong_ends_it(frame, code):
    """Covers RFC 6455 §5.1 [unmasked-is-refused], §5.2 [reserved-bits-end-it]
    [unknown-opcode-ends-it] [length-of-63-bits] [shortest-length], §5.6 [text-is-utf-8] and
    §7.4.1 [reserved-codes-stay], §8.1 [no-utf-8-fails].
    """
    reply, closed = websocket.WebSocket.accept(HEADERS, "/").receive(frame, 0.0)
    assert closed and reply[0] == 0x88
    assert reply[2:4] == (b"" if code is None else code.to_bytes(2, "big"))


@pytest.mark.parametrize(
    ("octets", "head"), [(0, "8200"), (125, "827d"), (126, "827e007e"), (1 << 16, "827f")]
)
def test_a_message_is_one_frame_of_the_shortest_length(octets, head):
    """Covers RFC 6455 §5.1 [server-does-not-mask], §5.2 [reserved-bits-are-zero]
    [shortest-length], §6.1 [in-frames] [last-has-fin].
    """
    frame = websocket.WebSocket.frame(bytes(octets))
    length = len(frame) - octets
    assert frame.hex().startswith(head) and length == (10 if octets >> 16 else len(head) // 2)


def test_nothing_is_agreed_on_that_was_not_asked_for():
    """Covers RFC 6455 §4.2.2 [none-unasked] [no-extensions], §9 [only-requested], §7.1.2
    [close-frame-comes-first].
    """
    asked = [("Sec-WebSocket-Protocol", "flv"), ("Sec-WebSocket-Extensions", "permessage-deflate")]
    web = websocket.WebSocket.accept([*HEADERS, *asked], "/")
    names = [line.partition(b":")[0].lower() for line in web.head.split(b"\r\n")[1:]]
    assert names == [b"upgrade", b"connection", b"sec-websocket-accept", b"", b""]
    assert web.close() == b"\x88\x02\x03\xe8" and web.close() == b""


@given(st.lists(mutations(st.sampled_from(FRAMES)) | st.binary(max_size=40), max_size=6))
def test_nothing_else_ever_happens(pieces):
    """No bytes raise anything, nor are they kept."""
    web = websocket.WebSocket.accept(HEADERS, "/")

    def feed():
        for piece in pieces:
            reply, closed = web.receive(piece, 0.0)
            assert isinstance(reply, bytes)
            if closed:
                break

    assert peak(feed) <= 32 * sum(map(len, pieces)) + 65536


@given(
    st.lists(
        st.tuples(st.text("Upgrade-ws: é", max_size=9), st.text("13ws,;é", max_size=9)), max_size=4
    )
)
def test_no_request_raises_anything(headers):
    """It is a WebSocket or none."""
    for given_headers in (headers, [*headers, *HEADERS], [*HEADERS, *headers]):
        found = websocket.WebSocket.accept(given_headers, "/é")
        assert found is None or found.head.startswith(b"HTTP/1.1 101")
