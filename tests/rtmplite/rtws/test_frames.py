"""The frames of RTWebSocket, there and back and broken."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import RemoteError
from rtmplite.rtws.frames import (
    Abandon,
    AckWindow,
    Data,
    DataAck,
    FlowClose,
    FlowOpen,
    FlowRejection,
    LifeSign,
    parse_frame,
)
from rtmplite.strategies import rtws as strategies

# As the other programs write them: their sources, read.
KNOWN = [
    ("01 70", LifeSign(b"p")),
    ("41 70", LifeSign(b"p", is_reply=True)),
    ("0a 9578", AckWindow(2808)),
    ("10 00 544304 00", FlowOpen(0, b"TC\x04\x00")),
    ("30 01 00 544304 00", FlowOpen(1, b"TC\x04\x00", 0)),
    ("1d 05 6869", Data(5, b"hi")),
    ("3d 05 6869", Data(5, b"hi", more=True)),
    ("1a 05", Abandon(5)),
    ("1a 05 01", Abandon(5, 2)),
    ("1c 05", FlowClose(5)),
    ("5a 05 8a78 848000", DataAck(5, 1400, 65536)),
    ("5c 05", FlowClose(5, is_ack=True)),
    ("5e 05", FlowRejection(5)),
    ("5e 05 00 6e6f", FlowRejection(5, 0, b"no")),
]


@pytest.mark.parametrize(("raw", "frame"), KNOWN)
def test_frames_of_other_programs(raw, frame):
    """Covers Field §"RTWebSocket frames" [first-byte] [absent-is-one]."""
    assert bytes(frame) == bytes.fromhex(raw)
    assert parse_frame(memoryview(bytes.fromhex(raw))) == frame


@given(strategies.any_frame())
def test_there_and_back(frame):
    assert parse_frame(bytes(frame)) == frame
    if isinstance(frame, Data):
        assert frame.size == len(bytes(frame))


@pytest.mark.parametrize("raw", [b"", b"\x00", b"\x02later", b"\xff"])
def test_what_is_unknown_is_ignored(raw):
    """Covers Field §"RTWebSocket frames" [unknown-ignored]."""
    assert parse_frame(raw) is None


@given(st.data())
def test_what_is_broken_is_an_error_and_nothing_else(data):
    """It is read, ignored, or a RemoteError."""
    raw = data.draw(mutations(strategies.any_frame().map(bytes)))
    try:
        frame = parse_frame(raw)
    except RemoteError:
        event("refused")
    else:
        event(type(frame).__name__)


@pytest.mark.parametrize("raw", ["10", "10 81", "30 01", "1d", "1d ff", "5a 05", "5a 05 05", "0a"])
def test_what_is_cut_off_is_refused(raw):
    with pytest.raises(RemoteError, match="cut off"):
        parse_frame(bytes.fromhex(raw))
