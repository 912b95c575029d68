"""No bytes can make the reader do anything but read or refuse, at a bounded cost."""

from contextlib import suppress

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.amf import amf3, u29
from rtmplite.amf.amf3 import FLEX
from rtmplite.amf.amf3_reader import Amf3Reader
from rtmplite.amf.cursor import Cursor
from rtmplite.errors import RemoteError
from rtmplite.strategies import amf
from rtmplite.strategies import amf3 as strategies


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ("12", "no marker"),
        ("04", "integer"),
        ("04 ff", "integer"),
        ("05 3ff0", "bytes more"),
        ("06 05 61", "bytes more"),
        ("06 00", "reference"),
        ("06 01 06 00", "reference"),
        ("06 ffffffff", "bytes more"),
        ("08 01", "bytes more"),
        ("09 00", "reference"),
        ("09 ffffffff 01", "items"),
        ("09 03 01 09 02", "reference"),
        ("09 01 03 61 01", "integer"),
        ("0a 01", "reference"),
        ("0a fffffff3 01", "items"),
        ("0a 0b 01 03 61", "bytes more"),
        ("0a 13 01 03 61", "bytes more"),
        ("0c ffffffff", "bytes more"),
        ("0d ffffffff 00", "items"),
        ("0f 03 00 00000000", "items"),
        ("10 ffffffff 00 01", "items"),
        ("11 05 00 01 01 01", "items"),
        ("09 03 01" * 65 + "01", "deep"),
        ("09 ff7f 01" + "0a 03 01" + "0a 01" * 8190, "memory"),
    ],
    ids=lambda text: text[:14],
)
def test_what_no_writer_may_send_is_refused(raw, complaint):
    """Covers AMF3 §3.1 [markers], AMF3 §2.2 [from-zero]."""
    with pytest.raises(RemoteError, match=complaint):
        amf3.decode(bytes.fromhex(raw))


wounded = mutations(strategies.encoded() | strategies.unusual().map(lambda pair: pair[0]))


@given(st.tuples(strategies.encoded(), wounded).map(b"".join) | wounded | st.binary())
def test_nothing_else_ever_happens(raw):
    """Covers AMF3 §3."""
    reader = Amf3Reader(Cursor(raw), FLEX)
    with suppress(RemoteError):
        reader.value()
        event("passed the first value")
    assert peak(lambda: _swallow(raw)) <= 32 * len(raw) + 65536


@given(wounded)
def test_whatever_was_read_can_be_written(raw):
    """Covers AMF3 §3."""
    with suppress(RemoteError):
        values = amf3.decode(raw)
        assert amf.alike(amf3.decode(amf3.encode(*values)), values)


@pytest.mark.parametrize(
    "raw",
    [
        "01",
        "04 8200",
        "05 0000000000000000",
        "06 03 e9",
        "06 05 c480",
        "06 02",
        "08 01 0000000000000000",
        "09 01 01",
        "09 01 03 61 01 01",
        "09 03 03 61 01 01 01",
        "0a 0b 01 01",
        "0a 03 01",
        "0a 13 01 03 61 01",
        "0a 01 04 05",
        "0a 01",
        "0b 01",
        "0c 01",
        "0d 01 00",
        "10 01 00 01",
        "11 03 00 01 01",
    ],
)
def test_memory_follows_the_input(raw):
    """Covers AMF3 §3."""
    head = bytes.fromhex("0a 13 01 03 78 01")  # traits to refer to
    many = head + bytes.fromhex(raw) * 7500
    assert peak(lambda: _swallow(many)) <= 32 * len(many) + 16384


@pytest.mark.parametrize("count", [5, 6, 11, 22, 700, 1400, 20000])
def test_memory_of_large_containers_follows_the_input(count):
    """Covers AMF3 §3."""
    names = (chr(0x800 + index).encode() for index in range(count))
    members = (
        bytes.fromhex("0a 0b 01") + b"".join(b"\x07" + name + b"\x01" for name in names) + b"\x01"
    )
    numbers = b"\x0e" + u29.pack(count << 1 | 1) + b"\x00" + b"\xff" * 4 * count
    for raw in (members, numbers):
        assert peak(lambda: _swallow(raw)) <= 32 * len(raw) + 65536  # noqa: B023
        assert count > 2000 or _swallow(raw)


def test_nothing_is_free_while_others_spend_it_all():
    """Covers AMF3 §3."""
    names = (chr(0x800 + index).encode() for index in range(12000))
    members = bytes.fromhex("0a 0b 01") + b"".join(b"\x07" + name + b"\x01" for name in names)
    empty = bytes.fromhex("0a 03 01") + bytes.fromhex("0a 05") * 30000
    raw = b"\x09" + u29.pack(30002 << 1 | 1) + b"\x01" + members + b"\x01" + empty
    assert peak(lambda: _swallow(raw)) <= 32 * len(raw) + 65536


def _swallow(raw):
    with suppress(RemoteError):
        return amf3.decode(raw)
