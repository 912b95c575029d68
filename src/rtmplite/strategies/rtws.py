"""The frames of RTWebSocket.

Own design, over Field §"RTWebSocket frames".
"""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtmplite.rtws import frames
from rtmplite.strategies.rtmfp import blobs, numbers


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
