"""The browser's side of a WebSocket may say anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations, peak

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
    """A ping is answered, a close too, data is of no interest."""
    web = websocket.WebSocket.accept(HEADERS, "/")
    answers = [web.receive(frame) for frame in FRAMES]
    assert answers == [
        (b"\x8a\x02hi", False),
        (b"", False),
        (b"", False),
        (b"\x88\x02\x03\xe8", True),
    ]


@given(st.lists(mutations(st.sampled_from(FRAMES)) | st.binary(max_size=40), max_size=6))
def test_nothing_else_ever_happens(pieces):
    """No bytes raise anything, nor are they kept."""
    web = websocket.WebSocket.accept(HEADERS, "/")

    def feed():
        for piece in pieces:
            reply, closed = web.receive(piece)
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
