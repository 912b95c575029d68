"""The frames of RTWebSocket, there and back and broken."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.faults import refused
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
from rtmplite.strategies.faults import broken

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


@given(strategies.odd_frames())
def test_longer_numbers_and_a_count_of_one_are_read(drawn):
    """Covers RFC 7016 §2.1.2 and Field §"RTWebSocket frames"."""
    assert parse_frame(drawn[0]) == drawn[1]


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


def test_each_fault_is_refused():
    """Covers Field §"RTWebSocket frames" and RFC 7016 §2.1.2."""
    cut = {fault.name: "cut off" for fault in strategies.FRAME_FAULTS}
    refused(broken(strategies.FRAME_FAULTS), parse_frame, RemoteError, cut)
    above = {fault.name: "more than 64 bits" for fault in strategies.FRAME_LIMITS}
    refused(broken(strategies.FRAME_LIMITS), parse_frame, RemoteError, above)
