"""What a message may cost is known before it is spent."""

import pytest

from rtmplite.amf.cursor import MAX_DEPTH, Cursor
from rtmplite.errors import RemoteError


def test_it_gives_what_is_there():
    cursor = Cursor(memoryview(b"-\x81\x00\x05aa"), 1)
    assert (cursor.left, cursor.u29(), cursor.u8(), cursor.take(2)) == (5, 128, 5, b"aa")
    with pytest.raises(RemoteError, match="1 bytes more"):
        cursor.u8()
    with pytest.raises(RemoteError, match="integer"):
        Cursor(b"\xff\xff").u29()


@pytest.mark.parametrize("raw", [b"caf\xe9", b"\xed\xa0\x80", b"\xff"])
def test_bad_utf8_is_replaced(raw):
    """Covers AMF0 §1.3.1 [utf8], AMF3 §1.3.2 [utf8]."""
    assert "\ufffd" in Cursor(raw).text(len(raw))
    assert Cursor("å𝄞".encode()).text(6) == "å𝄞"


def test_the_budget_grows_with_the_message():
    small, large = Cursor(b""), Cursor(bytes(1000))
    large.spend(small.budget + 30_000)
    with pytest.raises(RemoteError, match="memory"):
        small.spend(small.budget + 1)


def test_depth_counts_what_is_open():
    cursor = Cursor(b"")
    for _ in range(2 * MAX_DEPTH):
        cursor.enter()
        cursor.leave()
    for _ in range(MAX_DEPTH):
        cursor.enter()
    with pytest.raises(RemoteError, match="deep"):
        cursor.enter()
