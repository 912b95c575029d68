"""The frames of RTWebSocket, as our own end writes them, in other ways, and broken.

Own design, over Field §"RTWebSocket frames".
"""

from functools import cache
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.rtmfp.wire.vlu import encode_vlu
from rtmplite.rtws import frames
from rtmplite.rtws.frames import FrameKind
from rtmplite.strategies.faults import Fault, Octets
from rtmplite.strategies.rtmfp import blobs, long_vlus, numbers
from rtmplite.strategies.rtmfp_faults import LONG_VLU, OPEN_VLU


@cache
def sizes() -> SearchStrategy[int]:
    """Numbers that a VLU holds, and one more as well: RFC 7016 §2.1.2."""
    return numbers().map(lambda number: min(number, (1 << 64) - 2))


@cache
def any_frame() -> SearchStrategy[frames.Frame]:
    """Frames of every kind: Field §"RTWebSocket frames"."""
    exceptions = st.builds(frames.FlowRejection, numbers(), numbers(), blobs())
    return st.one_of(
        st.builds(frames.LifeSign, blobs(), st.booleans()),
        st.builds(frames.AckWindow, numbers()),
        st.builds(frames.FlowOpen, numbers(), blobs(), st.none() | numbers()),
        st.builds(frames.Data, numbers(), blobs(), st.booleans()),
        st.builds(frames.Abandon, numbers(), sizes().map(lambda number: number + 1)),
        st.builds(frames.FlowClose, numbers(), st.booleans()),
        st.builds(frames.DataAck, numbers(), numbers(), numbers()),
        st.builds(frames.FlowRejection, numbers()) | exceptions,
    )


@cache
def small_frames() -> SearchStrategy[frames.Frame]:
    """Frames about few flows, so that they meet in one session: Field §"RTWebSocket flows"."""
    flows = st.integers(0, 3)
    counts = st.sampled_from([0, 1, 100, 2800, 1 << 20, 1 << 63])
    metadata = st.sampled_from([b"", b"TC\x04\x00", b"TC\x04\x01", b"other"])
    return st.one_of(
        st.builds(frames.LifeSign, blobs(), st.booleans()),
        st.builds(frames.AckWindow, counts),
        st.builds(frames.FlowOpen, flows, metadata, st.none() | flows),
        st.builds(frames.Data, flows, blobs(), st.booleans()),
        st.builds(frames.Abandon, flows, st.integers(1, 3)),
        st.builds(frames.FlowClose, flows, st.booleans()),
        st.builds(frames.DataAck, flows, counts, counts),
        st.builds(frames.FlowRejection, flows),
    )


@cache
def odd_frames() -> SearchStrategy[tuple[bytes, frames.Frame]]:
    """Frames with longer numbers than they need, or with one that could be left out.

    RFC 7016 §2.1.2; Field §"RTWebSocket frames".
    """
    long = long_vlus()
    return st.one_of(
        long.map(lambda flow: (b"\x1a" + flow[1] + b"\0", frames.Abandon(flow[0]))),
        long.map(lambda size: (b"\x0a" + size[1], frames.AckWindow(size[0]))),
        st.builds(
            lambda flow, answers, rest: (
                b"\x30" + flow[1] + answers[1] + rest,
                frames.FlowOpen(flow[0], rest, answers[0]),
            ),
            *(long, long, blobs()),
        ),
        st.builds(
            lambda flow, rest: (b"\x3d" + flow[1] + rest, frames.Data(flow[0], rest, more=True)),
            *(long, blobs()),
        ),
        st.builds(
            lambda flow, count, window: (
                b"\x5a" + flow[1] + count[1] + window[1],
                frames.DataAck(flow[0], count[0], window[0]),
            ),
            *(long, long, long),
        ),
    )


@cache
def ignored_frames() -> SearchStrategy[bytes]:
    """What is no frame of today: Field §"RTWebSocket frames"."""
    kinds = st.sampled_from(sorted(set(range(256)) - set(FrameKind)))
    return st.just(b"") | st.builds(lambda kind, rest: bytes((kind,)) + rest, kinds, blobs())


_NUMBER: Final = numbers().map(encode_vlu)
_CUT: Final = OPEN_VLU.filter(len)


def _fault(name: str, kind: FrameKind, *parts: Octets) -> Fault[bytes]:
    octets = st.tuples(st.just(bytes((kind,))), *parts).map(b"".join)
    return Fault(name, 'Field §"RTWebSocket frames"', octets)


FRAME_FAULTS: Final = (
    _fault("window cut", FrameKind.ACK_WINDOW, OPEN_VLU),
    _fault("flow of an opening cut", FrameKind.FLOW_OPEN, OPEN_VLU),
    _fault("flow of a returning one cut", FrameKind.RETURN_FLOW_OPEN, OPEN_VLU),
    _fault("answered flow cut", FrameKind.RETURN_FLOW_OPEN, _NUMBER, OPEN_VLU),
    _fault("flow of a part cut", FrameKind.DATA_MORE, OPEN_VLU),
    _fault("flow of the last part cut", FrameKind.DATA_LAST, OPEN_VLU),
    _fault("abandoned flow cut", FrameKind.ABANDON, OPEN_VLU),
    _fault("abandoned number cut", FrameKind.ABANDON, _NUMBER, _CUT),
    _fault("closed flow cut", FrameKind.FLOW_CLOSE, OPEN_VLU),
    _fault("flow of an acknowledged end cut", FrameKind.CLOSE_ACK, OPEN_VLU),
    _fault("acknowledged flow cut", FrameKind.DATA_ACK, OPEN_VLU),
    _fault("acknowledged bytes cut", FrameKind.DATA_ACK, _NUMBER, OPEN_VLU),
    _fault("window of an acknowledgement cut", FrameKind.DATA_ACK, _NUMBER, _NUMBER, OPEN_VLU),
    _fault("rejected flow cut", FrameKind.FLOW_EXCEPTION, OPEN_VLU),
    _fault("code cut", FrameKind.FLOW_EXCEPTION, _NUMBER, _CUT),
)
"""Every fault of a frame: Field §"RTWebSocket frames"."""

FRAME_LIMITS: Final = (
    Fault("number of more than 64 bits", "RFC 7016 §2.1.2", LONG_VLU.map(b"\x0a".__add__)),
)
"""What only our own reader refuses: RFC 7016 §2.1.2 asks for 64 bits."""
