"""The fast readers and writers against the legible ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.wire.acks import DataAckRanges
from rtmplite.rtmfp.wire.fast_path import (
    encode_header,
    read_header,
    read_next_user_data,
    read_range_ack,
    read_user_data,
)
from rtmplite.rtmfp.wire.flow_chunks import FragmentControl, NextUserData, UserData
from rtmplite.rtmfp.wire.option import Option
from rtmplite.rtmfp.wire.packet import Mode, Packet

numbers = st.one_of(st.integers(0, 300), st.integers(0, 1 << 40))
options = st.none() | st.lists(
    st.builds(Option, st.integers(0, 300), st.binary(max_size=5)), max_size=3
).map(tuple)
user_data = st.builds(
    lambda flow, number, offset, **rest: UserData(flow, number + offset, offset, **rest),
    numbers,
    numbers,
    st.integers(1, 1 << 20),
    data=st.binary(max_size=20),
    fragment_control=st.sampled_from(FragmentControl),
    abandon=st.booleans(),
    final=st.booleans(),
    options=options,
)
runs = st.lists(st.integers(1, 1 << 40), max_size=6).map(
    lambda each: tuple(each[: len(each) // 2 * 2])
)
acks = st.builds(DataAckRanges, numbers, numbers, numbers, runs)
times = st.none() | st.integers(0, 0xFFFF)


@given(mutations(user_data.map(UserData.encode)), st.binary(max_size=6))
def test_user_data(payload, after):
    """RFC 7016 §2.3.11: both give the same fields, or refuse the payload."""
    packet = b"head" + payload + after
    try:
        want = UserData.parse(payload)
    except RemoteError:
        with pytest.raises(RemoteError):
            read_user_data(packet, 4, 4 + len(payload))
        return
    flow_id, number, fsn, flags, data, listed = read_user_data(packet, 4, 4 + len(payload))
    assert (flow_id, number, fsn) == (
        want.flow_id,
        want.sequence_number,
        want.forward_sequence_number,
    )
    assert (flags >> 4 & 3, bool(flags & 2), bool(flags & 1)) == (
        want.fragment_control,
        want.abandon,
        want.final,
    )
    assert (data, listed) == (want.data, want.options)


@given(mutations(user_data.map(lambda chunk: bytes(1) + chunk.data)), st.binary(max_size=6))
def test_next_user_data(payload, after):
    """RFC 7016 §2.3.12."""
    packet = b"head" + payload + after
    try:
        want = NextUserData.parse(payload)
    except RemoteError:
        with pytest.raises(RemoteError):
            read_next_user_data(packet, 4, 4 + len(payload))
        return
    flags, data, listed = read_next_user_data(packet, 4, 4 + len(payload))
    assert (flags >> 4 & 3, data, listed) == (want.fragment_control, want.data, want.options)


@given(times, times, st.booleans(), st.booleans())
def test_headers(timestamp, echo, critical, reverse):
    """RFC 7016 §2.2.4."""
    want = Packet(Mode.INITIATOR, (), timestamp, echo, critical, reverse).encode()
    packet = encode_header(1 | critical << 7 | reverse << 6, timestamp, echo)
    assert packet == want
    flags, heard, echoed, at = read_header(packet + b"chunks")
    assert (flags, heard, echoed, at) == (packet[0], timestamp, echo, len(packet))
    for end in range(len(packet)):
        with pytest.raises(RemoteError):
            read_header(packet[:end])


@given(mutations(acks.map(DataAckRanges.encode)))
def test_acknowledgements(payload):
    """RFC 7016 §2.3.14: both give the same ranges, or refuse the payload."""
    try:
        want = DataAckRanges.parse(payload)
    except RemoteError:
        with pytest.raises(RemoteError):
            read_range_ack(payload)
        return
    flow_id, blocks, ranges = read_range_ack(payload)
    assert (flow_id, blocks) == (want.flow_id, want.buffer_blocks_available)
    assert ranges == list(want.ranges())
