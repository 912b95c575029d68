"""Aggregate messages are taken apart, and nothing is believed about them."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import RemoteError
from rtmplite.flv.tag import Tag
from rtmplite.rtmp.wire.aggregate import MAX_PARTS, aggregated
from rtmplite.rtmp.wire.message import Message
from rtmplite.strategies import rtmp

parts = st.lists(
    st.tuples(st.sampled_from([8, 9, 18]), st.integers(0, 2**32 - 1), st.binary(max_size=40)),
    max_size=5,
)


def packed(content):
    raw = [bytes(Tag(kind, time - (time >> 31 << 32), data)) for kind, time, data in content]
    return b"".join(tag + len(tag).to_bytes(4, "big") for tag in raw)


@given(parts, st.integers(0, 2**32 - 1))
def test_parts_come_out_on_the_time_scale_of_the_whole(content, timestamp):
    """Covers RTMP 1.0 §7.1.6 [stream-overrides] [offset] [back-pointer]."""
    messages = list(aggregated(Message(22, timestamp, 7, packed(content))))
    assert [(m.type_id, m.payload, m.stream_id) for m in messages] == [
        (kind, data, 7) for kind, _, data in content
    ]
    for message, (_, time, _) in zip(messages, content, strict=True):
        assert (message.timestamp - timestamp) % 2**32 == (time - content[0][1]) % 2**32


@given(rtmp.aggregates())
def test_the_parts_of_any_aggregate_are_found(drawn):
    """Covers RTMP 1.0 §7.1.6 [stream-overrides] [offset] [back-pointer]."""
    message, parts = drawn
    assert list(aggregated(message)) == parts


def test_an_aggregate_within_an_aggregate_is_left_out():
    """Nesting could go on for ever."""
    assert list(aggregated(Message(22, 0, 1, packed([(22 & 0x1F, 0, b"..")])))) == []


@pytest.mark.parametrize("cut", [1, 5, 10, 11, 12, 15])
def test_what_ends_too_early_is_the_peers_fault(cut):
    """Covers RTMP Errata §2 [errors-noticed], in RTMP 1.0 §7.1.6."""
    with pytest.raises(RemoteError):
        list(aggregated(Message(22, 0, 1, packed([(8, 0, b"12345")])[:cut])))


@pytest.mark.parametrize("data", [b"", b"12345"])
def test_the_last_size_may_be_missing(data):
    """Covers RTMP Errata §2 [errors-noticed], RTMP 1.0 §7.1.6 [back-pointer]: nobody reads it."""
    whole = packed([(8, 0, b"one"), (9, 5, data)])
    for raw in (whole, whole[:-4]):
        found = [(part.type_id, part.payload) for part in aggregated(Message(22, 0, 1, raw))]
        assert found == [(8, b"one"), (9, data)]


def test_parts_have_an_end():
    """Each of a million empty parts would cost as much as a real one."""
    part = packed([(8, 0, b"")])
    assert len(list(aggregated(Message(22, 0, 1, part * MAX_PARTS)))) == MAX_PARTS
    with pytest.raises(RemoteError):
        list(aggregated(Message(22, 0, 1, part * (MAX_PARTS + 1))))


@given(mutations(parts.map(packed)))
def test_never_raises_anything_else(data):
    """Any bytes give messages or a RemoteError."""
    try:
        count = len(list(aggregated(Message(22, 0, 1, data))))
        event("some parts" if count else "nothing")
    except RemoteError:
        event("refused")
