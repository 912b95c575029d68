"""Acknowledgements: bit maps and runs."""

from collections import deque
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.acks import DataAckBitmap, DataAckRanges, range_ack
from rtmplite.strategies.rtmfp import bitmap_acks, numbers, range_acks, received

FIGURES = [
    (DataAckBitmap, "05 7f 10 79 06", [(0, 16), (18, 18), (21, 24), (27, 28)]),  # Figure 4
    (DataAckRanges, "05 7f 10 00 00 01 03", [(0, 16), (18, 18), (21, 24)]),  # Figure 5
    (DataAckRanges, "05 7f 10 00 00 01 83", [(0, 16), (18, 18)]),  # Figure 6
    (DataAckRanges, "05 7f 10 00 00 01", [(0, 16), (18, 18)]),
    (DataAckRanges, "05 7f 10 83", [(0, 16)]),
    (DataAckBitmap, "05 7f 10", [(0, 16)]),
    (DataAckBitmap, "05 7f 00 00 01", [(0, 0), (10, 10)]),
    (DataAckBitmap, "05 7f 10 80 01", [(0, 16), (25, 26)]),
    (DataAckRanges, "05 7f 8100 8100 8100", [(0, 128), (258, 386)]),
]


TRUNCATED = ("05 7f 10 00 00 01 83", "05 7f 10 00 00 01", "05 7f 10 83")


@pytest.mark.parametrize(("kind", "payload", "want"), FIGURES)
def test_the_figures_of_the_memo(kind, payload, want):
    """Covers RFC 7016 §2.3.13 [bitmap-ack-layout] [bitmap-order] [buffer-blocks].

    And §2.3.14 [range-ack-layout] [truncated-range] [buffer-blocks].
    """
    ack = kind.parse(bytes.fromhex(payload))
    assert (ack.flow_id, ack.buffer_blocks_available) == (5, 127)
    assert ack.buffer_bytes_available == 127 * 1024
    assert list(ack.ranges()) == want
    if payload not in TRUNCATED:
        assert ack.encode() == bytes.fromhex(payload)


@given(bitmap_acks() | range_acks())
def test_reading_undoes_writing(ack):
    """Covers RFC 7016 §2.3.13, §2.3.14."""
    assert type(ack).parse(ack.encode()) == ack


def acknowledged_by_the_bit(ack):
    """Follow the memo's structure for bit maps to the letter."""
    found, cursor = set(range(ack.cumulative_ack + 1)), ack.cumulative_ack + 1
    for byte in ack.bitmap:
        for position in range(8, 0, -1):
            if byte & 1 << (position - 1):
                found.add(cursor + position)
        cursor += 8
    return found


@given(st.binary(max_size=6), st.integers(0, 20))
def test_bits_are_read_as_the_memo_does(bitmap, cumulative):
    """Covers RFC 7016 §2.3.13 [bitmap-order]."""
    ack = DataAckBitmap(1, 2, cumulative, bitmap)
    ranges = list(ack.ranges())
    spelled = [number for first, last in ranges for number in range(first, last + 1)]
    assert spelled == sorted(acknowledged_by_the_bit(ack))
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(ranges))


@given(received(), numbers())
@example(((0, 16), (18, 18), (21, 24)), 127)
@example(((0, 0), (2, 2), (1 << 30, 1 << 30)), 0)
@example(((0, 16), (20, 22), (24, 24)), 127)
def test_runs_say_it_all_even_where_bits_were_shorter(ranges, blocks):
    """RFC 7016 §3.6.3.4.3: runs contain the same ranges as a shorter bit map."""
    ack = range_ack(9, blocks, ranges)
    assert isinstance(ack, DataAckRanges)
    assert tuple(ack.ranges()) == ranges
    assert (ack.flow_id, ack.buffer_blocks_available) == (9, blocks)
    assert DataAckRanges.parse(ack.encode()) == ack


@given(received(), st.integers(3, 60))
def test_what_does_not_fit_is_left_out_from_above(ranges, room):
    """RFC 7016 §3.6.3.4.2: the rest is correct, and within its room."""
    ack = range_ack(9, 5, ranges, room)
    head = len(DataAckRanges(9, 5, ranges[0][1]).encode())
    assert len(ack.encode()) <= max(room, head)
    said = list(ack.ranges())
    event("whole" if tuple(said) == ranges else "cut")
    *but_last, (first, last) = said
    assert tuple(but_last) == ranges[: len(but_last)]
    assert first == ranges[len(but_last)][0] and last <= ranges[len(but_last)][1]


@pytest.mark.parametrize(
    "ranges", [[], [(1, 4)], [(0, 4), (5, 6)], [(0, 4), (3, 3)], [(0, 4), (8, 7)]]
)
def test_ranges_in_disorder_are_our_own_bug(ranges):
    """RFC 7016 §2.3.14."""
    with pytest.raises(LocalError):
        range_ack(9, 5, ranges)


@pytest.mark.parametrize("runs", [(1,), (1, 0), (0, 1), (1, 2, 3)])
def test_runs_that_are_no_pairs_are_our_own_bug(runs):
    """Covers RFC 7016 §2.3.14 [range-ack-layout]."""
    with pytest.raises(LocalError):
        DataAckRanges(1, 2, 3, runs).encode()


@pytest.mark.parametrize("kind", [DataAckBitmap, DataAckRanges])
@pytest.mark.parametrize("payload", ["", "05", "05 7f", "05 7f 80"])
def test_what_is_cut_off_is_refused(kind, payload):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    with pytest.raises(RemoteError):
        kind.parse(bytes.fromhex(payload))


@given(
    st.sampled_from([DataAckBitmap, DataAckRanges]),
    mutations(received().map(lambda ranges: range_ack(9, 5, ranges).encode())),
)
def test_any_bytes_are_read_or_refused(kind, data):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    try:
        ack = kind.parse(data)
    except RemoteError:
        event("refused")
        return
    event("read")
    assert all(first <= last for first, last in ack.ranges())


def drain(kind, data):
    """Read an acknowledgement to the end without keeping its ranges."""
    deque(kind.parse(data).ranges(), maxlen=0)


@pytest.mark.parametrize("unit", [b"\0", b"\xff", b"\x55", b"\x82\0", b"\x84\0\1"])
def test_memory_is_bounded(unit):
    """Covers RFC 7016 §2.3.14 [range-ack-layout]: ranges are given one after the other."""
    for kind in (DataAckBitmap, DataAckRanges):
        for data in (b"\1\2\3" + unit * 30, b"\1\2\3" + unit * 8000):
            assert peak(partial(drain, kind, data)) <= 32 * len(data) + 65536
